//! Rare token profiles: passed on and verified as signed members, never issued, never enforced.

use serde::{Deserialize, Serialize};

use super::constraint::Constraint;
use super::scope::ChioScope;
use super::{CapabilityToken, TokenError};
use crate::crypto::{Algorithm, PublicKey, Signature};
use crate::hash::sha256_hex;

/// A budget of calls for a token or for all tokens that descend from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AggregateInvocationBudget {
    /// Whose calls count.
    pub scope: AggregateScope,
    /// The most calls.
    pub max_invocations: u32,
    /// The signed root of the family.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_binding: Option<RootBinding>,
}

/// Whose calls an aggregate budget counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AggregateScope {
    /// This token's.
    Capability,
    /// Those of all that descend from one root.
    DelegationFamily,
}

/// The signed root of an aggregate budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RootBinding {
    /// What the root's issuer signed.
    pub body: RootBindingBody,
    /// An unsigned hint.
    #[serde(default, skip_serializing_if = "Algorithm::is_default")]
    pub algorithm: Option<Algorithm>,
    /// The root issuer's signature.
    pub signature: Signature,
}

/// What a root binding says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RootBindingBody {
    /// `chio.aggregate-budget-root.v1`.
    pub schema: String,
    /// The root token.
    pub root_capability_id: String,
    /// Its hash.
    pub root_capability_hash: String,
    /// Its issuer.
    pub root_issuer: PublicKey,
    /// Its subject.
    pub root_subject: PublicKey,
    /// The family's budget.
    pub max_invocations: u32,
    /// The root's end.
    pub root_expires_at: u64,
    /// SHA-256 of the root's scope.
    pub root_scope_hash: String,
}

/// A link's reference to an aggregate budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AggregateBudgetMarker {
    /// Digest of the root binding.
    pub root_binding_digest: String,
    /// The family's budget.
    pub max_invocations: u32,
}

/// A witness that a token's scope is narrower than its parent's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AttenuationProof {
    /// SHA-256 of the parent's scope.
    pub parent_scope_hash: String,
    /// SHA-256 of the token's scope.
    pub child_scope_hash: String,
    /// Both scopes, and how their grants relate.
    pub normalized_subset_proof: SubsetWitness,
}

/// Both scopes of an attenuation, as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SubsetWitness {
    /// The parent's scope, canonical.
    pub normalized_parent_scope: String,
    /// The child's scope, canonical.
    pub normalized_child_scope: String,
    /// Which child grant fits into which parent grant; information only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subset_relations: Vec<GrantRelation>,
    /// What was restricted, as readable text; information only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restricted_predicates: Vec<String>,
    /// Passed on unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregate_budget: Option<serde_json::Map<String, serde_json::Value>>,
    /// Passed on unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cumulative_approval: Option<serde_json::Map<String, serde_json::Value>>,
}

/// One pair of grants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GrantRelation {
    /// Which list the grants are in.
    pub grant_kind: GrantKind,
    /// The child's index in its list.
    pub child_index: u64,
    /// The parent's index in its list.
    pub parent_index: u64,
    /// Whether the child fits.
    pub subset: bool,
}

/// The lists of a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantKind {
    /// `grants`.
    Tool,
    /// `resource_grants`.
    Resource,
    /// `prompt_grants`.
    Prompt,
}

impl AttenuationProof {
    /// Checks the witness against the scope of the token that carries it.
    pub(super) fn check(&self, scope: &ChioScope) -> Result<(), TokenError> {
        let witness = &self.normalized_subset_proof;
        let refuse = |problem| Err(TokenError::Structure(problem));
        let hashes = |text: &str, hash: &str| sha256_hex(text.as_bytes()) == hash;
        if !hashes(&witness.normalized_parent_scope, &self.parent_scope_hash)
            || !hashes(&witness.normalized_child_scope, &self.child_scope_hash)
        {
            return refuse("the attenuation proof's hashes do not match its scopes");
        }
        if witness.subset_relations.iter().any(|relation| !relation.subset) {
            return refuse("the attenuation proof names a grant that is not a subset");
        }
        let parse = |text: &str| crate::strict::from_slice::<ChioScope>(text.as_bytes());
        let (Ok(parent), Ok(child)) =
            (parse(&witness.normalized_parent_scope), parse(&witness.normalized_child_scope))
        else {
            return refuse("the attenuation proof holds a text that is no scope");
        };
        if !child.is_subset_of(&parent) {
            return refuse("the attenuation proof's child exceeds its parent");
        }
        if scope.hash()? != self.child_scope_hash {
            return refuse("the attenuation proof is about another scope");
        }
        Ok(())
    }
}

impl CapabilityToken {
    /// The rare profile that a decision on this token would depend on, if it has one.
    ///
    /// Such a token verifies and is passed on unchanged; a decision on it is a denial with this
    /// reason.
    pub fn unsupported_profile(&self) -> Option<&'static str> {
        let links = &self.delegation_chain;
        if self.aggregate_invocation_budget.is_some()
            || links.iter().any(|link| link.aggregate_budget.is_some())
        {
            Some("aggregate invocation budgets are unsupported")
        } else if self.has_cumulative_approval()
            || links.iter().any(|link| link.cumulative_approval.is_some())
        {
            Some("cumulative approval budgets are unsupported")
        } else if self.is_attenuated_profile() {
            Some("attenuation proofs and budget shares are unsupported")
        } else {
            None
        }
    }

    pub(super) fn is_attenuated_profile(&self) -> bool {
        self.attenuation_proof.is_some()
            || self.scope_attenuations.as_ref().is_some_and(|steps| !steps.is_empty())
            || self.budget_share_bps.is_some()
    }

    pub(super) fn has_cumulative_approval(&self) -> bool {
        self.scope
            .grants
            .iter()
            .any(|grant| grant.constraints.iter().any(Constraint::is_cumulative))
    }
}
