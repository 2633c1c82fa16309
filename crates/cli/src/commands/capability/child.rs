//! The token at the end of a new link: what an issuer checks before it signs one.

use chio_core::capability::{
    CapabilityToken, ChioScope, DelegationError, DelegationReceipt, TokenError, Validity,
    VerifyOptions, check_hop,
};
use chio_core::crypto::{Keypair, PublicKey};
use chio_core::registry::ErrorCode;
use chio_core::signed::Signed;

use crate::date;
use crate::outcome::Refused;

/// A child token that an issuer is asked to sign.
#[derive(Debug)]
pub(super) struct Child<'a> {
    /// The token that was handed on.
    pub(super) parent: &'a CapabilityToken,
    /// The hand-over.
    pub(super) receipt: &'a DelegationReceipt,
    /// What the child receives.
    pub(super) scope: ChioScope,
    /// The child's name.
    pub(super) id: String,
    /// When the child begins.
    pub(super) issued_at: u64,
}

impl Child<'_> {
    /// Checks parent, link and hop, and signs the child. The parent must come from the issuer
    /// itself or from one of `trusted`: whoever signs a child vouches for all before it.
    pub(super) fn sign(
        self,
        issuer: &Keypair,
        trusted: &[PublicKey],
    ) -> Result<CapabilityToken, Refused> {
        let mut trusted = trusted.to_vec();
        trusted.push(issuer.public_key().clone());
        self.check_parent(&trusted)?;
        self.check_receipt()?;
        let link = &self.receipt.link;
        link.check_signature()
            .map_err(|error| refuse(format!("the link's signature does not hold: {error}")))?;
        let validity = self.validity()?;
        check_hop(link, &self.parent.hop_to(&self.scope, validity)).map_err(|e| refused(&e))?;
        let (issuer_key, subject) = (issuer.public_key().clone(), link.delegatee.clone());
        let mut child = CapabilityToken::draft(self.id, issuer_key, subject, self.scope, validity);
        child.delegation_chain = self.receipt.chain();
        child.check_chain(None).map_err(|error| refuse(error.to_string()))?;
        child.signed(issuer).map_err(Refused::from)
    }

    fn check_parent(&self, trusted: &[PublicKey]) -> Result<(), Refused> {
        let options =
            VerifyOptions { now: self.issued_at, trusted_issuers: trusted, max_chain_depth: None };
        let parent = self.parent;
        parent.verify(&options).map_err(|error| match error {
            TokenError::UntrustedIssuer(_) => refuse(
                "expected a parent from this issuer, found another's: \
                 pass its key with --trusted-issuer if you trust it",
            ),
            error => refused(&DelegationError::Parent(error)),
        })?;
        let profile = parent.unsupported_profile().map(DelegationError::Unsupported);
        profile.map_or(Ok(()), |error| Err(refused(&error)))
    }

    /// The receipt itself is not signed: whatever it says beside its link must agree with it.
    fn check_receipt(&self) -> Result<(), Refused> {
        let (receipt, link) = (self.receipt, &self.receipt.link);
        let agree = receipt.parent_capability_id == link.capability_id
            && receipt.parent_chain == self.parent.delegation_chain
            && receipt.signed_at == link.timestamp
            && receipt.attenuation.steps == link.attenuations;
        if !agree {
            return Err(refuse(
                "expected a delegation receipt that agrees with its link and its parent",
            ));
        }
        let plain = receipt.attenuation.budget_share_bps.is_none()
            && receipt.aggregate_budget.is_none()
            && receipt.cumulative_approval.is_none();
        if plain { Ok(()) } else { Err(refuse("shared budgets are unsupported")) }
    }

    fn validity(&self) -> Result<Validity, Refused> {
        let most = self.parent.expires_at;
        let expires_at = self.receipt.attenuation.child_expires_at.unwrap_or(most);
        if self.issued_at < expires_at {
            return Ok(Validity { issued_at: self.issued_at, expires_at });
        }
        let ended = date::utc(expires_at);
        Err(refuse(format!(
            "expected a delegation that is still open, found one that ended {ended}"
        )))
    }
}

/// A refusal with the code of a token that does not allow what is asked.
fn refuse(message: impl Into<String>) -> Refused {
    Refused::with_code(message, ErrorCode::CapabilityDenied)
}

/// The refusal of a hand-over.
pub(super) fn refused(error: &DelegationError) -> Refused {
    match error {
        DelegationError::Parent(cause) => Refused::with_code(error.to_string(), cause.code()),
        error => refuse(error.to_string()),
    }
}
