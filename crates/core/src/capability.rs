//! Capability tokens: who may call what, until when, and who granted it.

mod attenuation;
mod child;
mod constraint;
mod delegation;
mod dpop;
mod matching;
mod negotiation;
mod presented;
mod profile;
mod scope;
mod verify;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use attenuation::{Attenuation, AttenuationError};
pub use child::Child;
pub use constraint::{
    ApprovalThreshold, Constraint, ContentReviewTier, CumulativeThreshold, ModelRequirement,
    OperationClass,
};
pub use delegation::{
    AttenuationSummary, Delegation, DelegationError, DelegationLink, DelegationReceipt, Hop,
    check_hop, delegate,
};
pub use dpop::{DPOP_LIFETIME, DPOP_SCHEMA, DPOP_SKEW, DpopBody, DpopError, DpopProof, DpopTarget};
pub use matching::{ConstraintError, Match, Patterns, Stage};
pub use negotiation::{CapabilityNegotiation, NEGOTIATION_SCHEMA};
pub use presented::PresentedToken;
pub use profile::{
    AggregateBudgetMarker, AggregateInvocationBudget, AggregateScope, AttenuationProof, GrantKind,
    GrantRelation, RootBinding, RootBindingBody, SubsetWitness,
};
pub use scope::{ChioScope, Operation, PromptGrant, ResourceGrant, ToolGrant, WILDCARD};
pub use verify::{SignatureForm, TokenError, TokenReport, VerifyOptions};

use crate::canonical::{self, CanonicalError};
use crate::crypto::{Algorithm, PublicKey, Signature};
pub use crate::window::Validity;

/// The schema that every token carries.
pub const CAPABILITY_SCHEMA: &str = "chio.capability.v1";

/// A signed grant of authority from an issuer to a subject.
// Members stand in canonical order, so that the writer need not sort them on every call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapabilityToken {
    /// A rare profile, passed on and never enforced: see [`CapabilityToken::unsupported_profile`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregate_invocation_budget: Option<AggregateInvocationBudget>,
    /// An unsigned hint; it may not contradict the signature.
    #[serde(default, skip_serializing_if = "Algorithm::is_default")]
    pub algorithm: Option<Algorithm>,
    /// A rare profile: a witness that the scope is narrower than its parent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attenuation_proof: Option<AttenuationProof>,
    /// A rare profile: the part of the parent's budget, in basis points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_share_bps: Option<u16>,
    /// Any caveat makes the token invalid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caveats: Vec<Value>,
    /// The delegations from the root to the subject, root first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delegation_chain: Vec<DelegationLink>,
    /// The first second in which the token is no longer valid.
    pub expires_at: u64,
    /// The id, by which the token is revoked.
    pub id: String,
    /// The first second in which the token is valid.
    pub issued_at: u64,
    /// The key that signed.
    pub issuer: PublicKey,
    /// [`CAPABILITY_SCHEMA`]; old tokens leave it out.
    #[serde(default = "capability_schema")]
    pub schema: String,
    /// What may be done.
    pub scope: ChioScope,
    /// A rare profile: the steps by which the issuer narrowed the scope.
    #[serde(default, skip_serializing_if = "none_or_empty")]
    pub scope_attenuations: Option<Vec<Attenuation>>,
    /// The issuer's signature.
    pub signature: Signature,
    /// The key that may use the token.
    pub subject: PublicKey,
}

fn capability_schema() -> String {
    CAPABILITY_SCHEMA.to_owned()
}

// Serde passes the field by reference.
fn none_or_empty(steps: &Option<Vec<Attenuation>>) -> bool {
    steps.as_ref().is_none_or(Vec::is_empty)
}

impl CapabilityToken {
    /// An unsigned token; [`crate::signed::Signed::signed`] makes it one.
    pub fn draft(
        id: impl Into<String>,
        issuer: PublicKey,
        subject: PublicKey,
        scope: ChioScope,
        validity: Validity,
    ) -> Self {
        Self {
            schema: capability_schema(),
            id: id.into(),
            issuer,
            subject,
            scope,
            issued_at: validity.issued_at,
            expires_at: validity.expires_at,
            delegation_chain: Vec::new(),
            aggregate_invocation_budget: None,
            algorithm: None,
            caveats: Vec::new(),
            scope_attenuations: None,
            attenuation_proof: None,
            budget_share_bps: None,
            signature: Signature::blank(),
        }
    }

    /// When the token is valid.
    pub const fn validity(&self) -> Validity {
        Validity { issued_at: self.issued_at, expires_at: self.expires_at }
    }

    /// SHA-256 of the whole signed token, as capability references carry it.
    ///
    /// # Errors
    /// When the token has no canonical form.
    pub fn hash(&self) -> Result<String, CanonicalError> {
        canonical::hash(self)
    }
}

#[cfg(test)]
mod tests;
