//! Issuing a delegated token: what an issuer checks before it signs one.

use super::delegation::{DelegationError, DelegationReceipt, check_hop};
use super::scope::ChioScope;
use super::verify::VerifyOptions;
use super::{CapabilityToken, Validity};
use crate::crypto::{Keypair, PublicKey};
use crate::signed::Signed;

/// A child token that an issuer is asked to sign.
#[derive(Debug)]
pub struct Child<'a> {
    /// The token that was delegated.
    pub parent: &'a CapabilityToken,
    /// The delegation, signed by the parent's subject.
    pub receipt: &'a DelegationReceipt,
    /// What the child receives.
    pub scope: ChioScope,
    /// The child's id.
    pub id: String,
    /// When the child begins.
    pub issued_at: u64,
}

impl Child<'_> {
    /// Checks parent, link and hop, and signs the child. The parent must come from the issuer
    /// itself or from one of `trusted`: the signer of a child vouches for all tokens before it.
    ///
    /// # Errors
    /// With the first check that does not hold.
    pub fn signed(
        self,
        issuer: &Keypair,
        trusted: &[PublicKey],
    ) -> Result<CapabilityToken, DelegationError> {
        let mut trusted = trusted.to_vec();
        trusted.push(issuer.public_key().clone());
        self.check_parent(&trusted)?;
        self.check_receipt()?;
        let link = &self.receipt.link;
        let ends = self.receipt.attenuation.child_expires_at.unwrap_or(self.parent.expires_at);
        let validity = Validity { issued_at: self.issued_at, expires_at: ends };
        check_hop(link, &self.parent.hop_to(&self.scope, validity))?;
        let (key, subject) = (issuer.public_key().clone(), link.delegatee.clone());
        let mut child = CapabilityToken::draft(self.id, key, subject, self.scope, validity);
        child.delegation_chain = self.receipt.chain();
        child.check_chain(None).map_err(DelegationError::Chain)?;
        Ok(child.signed(issuer)?)
    }

    fn check_parent(&self, trusted: &[PublicKey]) -> Result<(), DelegationError> {
        let options =
            VerifyOptions { now: self.issued_at, trusted_issuers: trusted, max_chain_depth: None };
        self.parent.verify(&options)?;
        let profile = self.parent.unsupported_profile();
        profile.map_or(Ok(()), |profile| Err(DelegationError::Unsupported(profile)))
    }

    /// The receipt itself is not signed: whatever it says beside its link must agree with it.
    fn check_receipt(&self) -> Result<(), DelegationError> {
        let (receipt, link) = (self.receipt, &self.receipt.link);
        let agree = receipt.parent_capability_id == link.capability_id
            && receipt.parent_chain == self.parent.delegation_chain
            && receipt.signed_at == link.timestamp
            && receipt.attenuation.steps == link.attenuations;
        if !agree {
            return Err(DelegationError::Disagrees);
        }
        let plain = receipt.attenuation.budget_share_bps.is_none()
            && receipt.aggregate_budget.is_none()
            && receipt.cumulative_approval.is_none();
        if plain { Ok(()) } else { Err(DelegationError::Unsupported("it shares a budget")) }
    }
}
