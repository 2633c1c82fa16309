//! Delegation: a subject signs a link, an issuer signs the token that the link leads to.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::attenuation::{Attenuation, AttenuationError, Extent};
use super::profile::AggregateBudgetMarker;
use super::scope::ChioScope;
use super::verify::TokenError;
use super::{CapabilityToken, Validity};
use crate::crypto::{Keypair, PublicKey, Signature};
use crate::registry::ErrorCode;
use crate::signed::{ArtifactError, Signed, signed_by};

/// The whole of a budget, in basis points.
pub(super) const WHOLE_SHARE: u16 = 10_000;

/// One delegation in a token's history, signed by the delegator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelegationLink {
    /// The token that was delegated.
    pub capability_id: String,
    /// Its subject, who signs.
    pub delegator: PublicKey,
    /// The subject of the token that follows.
    pub delegatee: PublicKey,
    /// The steps that narrowed the scope.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attenuations: Vec<Attenuation>,
    /// When it was signed, in Unix seconds.
    pub timestamp: u64,
    /// SHA-256 of the scope that was delegated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope_hash: Option<String>,
    /// A rare profile, passed on unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregate_budget: Option<AggregateBudgetMarker>,
    /// A rare profile, passed on unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cumulative_approval: Option<Map<String, Value>>,
    /// The delegator's signature.
    pub signature: Signature,
}

signed_by!(DelegationLink, delegator);

impl DelegationLink {
    /// SHA-256 of what the delegator signed, as continuation tokens carry it.
    ///
    /// # Errors
    /// When the link has no canonical form.
    pub fn hash(&self) -> Result<String, crate::canonical::CanonicalError> {
        Ok(crate::hash::sha256_hex(&self.signing_input()?))
    }
}

/// What a delegator wants to delegate.
#[derive(Debug, Clone)]
pub struct Delegation {
    /// The subject of the child.
    pub delegatee: PublicKey,
    /// The scope of the child.
    pub scope: ChioScope,
    /// When the child ends, in Unix seconds.
    pub expires_at: u64,
    /// The steps that led from the parent to it, as the link declares them.
    pub steps: Vec<Attenuation>,
    /// The part of the parent's budget, in basis points.
    pub budget_share_bps: Option<u16>,
    /// Now, in Unix seconds.
    pub signed_at: u64,
    /// 16 random bytes, never reused.
    pub nonce: [u8; 16],
}

/// What a delegator gives to an issuer to have the child token signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DelegationReceipt {
    /// The links before this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parent_chain: Vec<DelegationLink>,
    /// The steps that narrowed the scope.
    pub attenuation: AttenuationSummary,
    /// When it was signed, in Unix seconds.
    pub signed_at: u64,
    /// 32 hex digits.
    pub nonce: String,
    /// The signed link.
    pub link: DelegationLink,
    /// The token that was delegated.
    pub parent_capability_id: String,
    /// A rare profile, passed on unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregate_budget: Option<AggregateBudgetMarker>,
    /// A rare profile, passed on unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cumulative_approval: Option<Map<String, Value>>,
}

/// A summary of what a delegation narrowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AttenuationSummary {
    /// The declared steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Attenuation>,
    /// When the child ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_expires_at: Option<u64>,
    /// The child's part of the budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_share_bps: Option<u16>,
}

impl DelegationReceipt {
    /// The chain of the child token: the links before, then this one.
    pub fn chain(&self) -> Vec<DelegationLink> {
        let mut chain = self.parent_chain.clone();
        chain.push(self.link.clone());
        chain
    }
}

/// Why a delegation was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DelegationError {
    /// The parent token itself is not valid.
    #[error("the parent token does not hold: {0}")]
    Parent(#[from] TokenError),
    /// The parent has a profile that cannot be delegated.
    #[error("the parent token cannot be delegated: {0}")]
    Unsupported(&'static str),
    /// Delegated outside the parent's window.
    #[error("expected a time within the parent's window, found {0}")]
    OutsideWindow(u64),
    /// The child begins before it was delegated.
    #[error("expected the child to begin at or after {earliest}, found {found}")]
    BeforeLink {
        /// The link's time, or the parent's begin.
        earliest: u64,
        /// The child's begin.
        found: u64,
    },
    /// The delegator is not the parent's subject.
    #[error("expected the parent's subject as delegator, found another key")]
    NotHolder,
    /// The link names another token.
    #[error("expected a link from token `{expected}`, found `{found}`")]
    WrongParent {
        /// The parent at hand.
        expected: String,
        /// The link's parent.
        found: String,
    },
    /// The link was made for another scope than the parent's.
    #[error("expected the parent's scope hash in the link, found another")]
    WrongScopeHash,
    /// No grant of the parent may be delegated.
    #[error("expected a `delegate` operation in the parent's scope, found none")]
    NotDelegable,
    /// The child has more than the parent.
    #[error("expected a scope within the parent's delegable grants, found one that exceeds them")]
    ExceedsScope,
    /// The child would never be valid.
    #[error("expected an end after {begin}, when the child begins, found {end}")]
    EmptyWindow {
        /// The child's begin.
        begin: u64,
        /// The child's end.
        end: u64,
    },
    /// The child ends after the parent.
    #[error("expected an end at or before the parent's, {most}, found {found}")]
    ExceedsExpiry {
        /// The parent's end.
        most: u64,
        /// The child's end.
        found: u64,
    },
    /// The child's share is above the parent's, or missing where it must be stated.
    #[error("expected a budget share of at most {most} basis points, found {found:?}")]
    ExceedsShare {
        /// The parent's share.
        most: u16,
        /// The child's share.
        found: Option<u16>,
    },
    /// A delegation receipt contradicts its link or its parent.
    #[error("expected a delegation receipt that agrees with its link and its parent")]
    Disagrees,
    /// The chain that the link completes does not hold.
    #[error(transparent)]
    Chain(TokenError),
    /// A declared step does not hold.
    #[error(transparent)]
    Step(#[from] AttenuationError),
    /// The link could not be signed.
    #[error(transparent)]
    Signing(#[from] ArtifactError),
}

impl DelegationError {
    /// The registry code of a refusal for this.
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Parent(error) | Self::Chain(error) => error.code(),
            _ => ErrorCode::CapabilityDenied,
        }
    }
}

/// Parent and child of one delegation, as far as its rules depend on them.
#[derive(Debug, Clone, Copy)]
pub struct Hop<'a> {
    /// The parent's id.
    pub parent_id: &'a str,
    /// The parent's subject.
    pub parent_subject: &'a PublicKey,
    /// The parent's scope.
    pub parent_scope: &'a ChioScope,
    /// The parent's window.
    pub parent_validity: Validity,
    /// The child's scope.
    pub child_scope: &'a ChioScope,
    /// The child's window.
    pub child_validity: Validity,
}

/// Checks one link against the tokens at both its ends. The link's own signature is checked with
/// the chain; this is what no chain can show by itself.
///
/// # Errors
/// With the first rule that does not hold.
pub fn check_hop(link: &DelegationLink, hop: &Hop<'_>) -> Result<(), DelegationError> {
    if link.capability_id != hop.parent_id {
        let (expected, found) = (hop.parent_id.to_owned(), link.capability_id.clone());
        return Err(DelegationError::WrongParent { expected, found });
    }
    if link.delegator != *hop.parent_subject {
        return Err(DelegationError::NotHolder);
    }
    if !hop.parent_validity.contains(link.timestamp) {
        return Err(DelegationError::OutsideWindow(link.timestamp));
    }
    if let Some(hash) = &link.scope_hash
        && *hash != hop.parent_scope.hash().map_err(ArtifactError::from)?
    {
        return Err(DelegationError::WrongScopeHash);
    }
    if !hop.parent_scope.has_delegate() {
        return Err(DelegationError::NotDelegable);
    }
    if !hop.child_scope.is_delegable_from(hop.parent_scope) {
        return Err(DelegationError::ExceedsScope);
    }
    let earliest = link.timestamp.max(hop.parent_validity.issued_at);
    if hop.child_validity.issued_at < earliest {
        let found = hop.child_validity.issued_at;
        return Err(DelegationError::BeforeLink { earliest, found });
    }
    let (begin, end) = (hop.child_validity.issued_at, hop.child_validity.expires_at);
    if end <= begin {
        return Err(DelegationError::EmptyWindow { begin, end });
    }
    let (most, found) = (hop.parent_validity.expires_at, end);
    if found > most {
        return Err(DelegationError::ExceedsExpiry { most, found });
    }
    let parent = Extent { scope: hop.parent_scope, expires_at: most };
    let child = Extent { scope: hop.child_scope, expires_at: found };
    link.attenuations.iter().try_for_each(|step| step.check(parent, child))?;
    Ok(())
}

/// Delegates a part of `parent`: signs the link that an issuer needs for the child token.
///
/// # Errors
/// When the parent does not hold, `key` is not its subject's, or the child would have more.
pub fn delegate(
    parent: &CapabilityToken,
    delegation: Delegation,
    key: &Keypair,
) -> Result<DelegationReceipt, DelegationError> {
    parent.check_token_signature()?;
    parent.check_chain(None)?;
    check_share(parent.budget_share_bps, delegation.budget_share_bps)?;
    if let Some(profile) = parent.unsupported_profile() {
        return Err(DelegationError::Unsupported(profile));
    }
    // Shares are a rare profile: checked where they are stated, never made.
    if delegation.budget_share_bps.is_some() {
        return Err(DelegationError::Unsupported("it shares a budget"));
    }
    let link = DelegationLink {
        capability_id: parent.id.clone(),
        delegator: key.public_key().clone(),
        delegatee: delegation.delegatee,
        attenuations: delegation.steps.clone(),
        timestamp: delegation.signed_at,
        scope_hash: Some(parent.scope.hash().map_err(ArtifactError::from)?),
        aggregate_budget: None,
        cumulative_approval: None,
        signature: Signature::blank(),
    };
    let validity = Validity { issued_at: delegation.signed_at, expires_at: delegation.expires_at };
    check_hop(&link, &parent.hop_to(&delegation.scope, validity))?;
    Ok(DelegationReceipt {
        parent_chain: parent.delegation_chain.clone(),
        attenuation: AttenuationSummary {
            steps: delegation.steps,
            child_expires_at: Some(delegation.expires_at),
            budget_share_bps: None,
        },
        signed_at: delegation.signed_at,
        nonce: const_hex::encode(delegation.nonce),
        link: link.signed(key)?,
        parent_capability_id: parent.id.clone(),
        aggregate_budget: None,
        cumulative_approval: None,
    })
}

/// A child states its share where the parent has less than the whole, and it is no larger.
fn check_share(parent: Option<u16>, child: Option<u16>) -> Result<(), DelegationError> {
    let most = parent.unwrap_or(WHOLE_SHARE);
    let fits = child.unwrap_or(WHOLE_SHARE) <= most;
    if fits { Ok(()) } else { Err(DelegationError::ExceedsShare { most, found: child }) }
}

impl CapabilityToken {
    /// The hop from this token to a child of this scope and window.
    pub const fn hop_to<'a>(
        &'a self,
        child_scope: &'a ChioScope,
        child_validity: Validity,
    ) -> Hop<'a> {
        Hop {
            parent_id: self.id.as_str(),
            parent_subject: &self.subject,
            parent_scope: &self.scope,
            parent_validity: self.validity(),
            child_scope,
            child_validity,
        }
    }
}
