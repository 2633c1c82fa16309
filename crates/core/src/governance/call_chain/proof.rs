//! The delegator's signed statement about a call's parent.

use serde::{Deserialize, Serialize};

use super::{CallChainContext, CallChainError, CurrentCall, require};
use crate::crypto::{PublicKey, Signature};
use crate::signed::{Signed, signed_by};
use crate::window::Validity;

/// The delegator's signed statement that a subject continues its call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpstreamProof {
    /// The delegator, who signs.
    pub signer: PublicKey,
    /// Who continues the call.
    pub subject: PublicKey,
    /// The parent.
    #[serde(flatten)]
    pub context: CallChainContext,
    /// The first second in which it holds, in Unix time.
    pub issued_at: u64,
    /// The first second in which it no longer holds, in Unix time.
    pub expires_at: u64,
    /// The signer's signature over the rest.
    pub signature: Signature,
}

signed_by!(UpstreamProof, signer);

/// An upstream proof that passed [`UpstreamProof::check`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedProof(pub(super) UpstreamProof);

impl UpstreamProof {
    /// Accepts the proof that `call` has the parent that `context` names.
    ///
    /// # Errors
    /// The first of these that fails: the capability is delegated, the proof holds now, it is
    /// about this subject and this parent, its signer made the capability's last link, and has
    /// signed it.
    pub fn check(
        self,
        context: &CallChainContext,
        call: &CurrentCall<'_>,
    ) -> Result<AcceptedProof, CallChainError> {
        let delegation = call.delegation.ok_or(CallChainError::Undelegated)?;
        Validity { issued_at: self.issued_at, expires_at: self.expires_at }.check(call.now)?;
        require("subject", &*call.subject.to_hex(), &*self.subject.to_hex())?;
        context.require_same(&self.context)?;
        if self.signer != *delegation.delegator {
            let expected = "the capability's last delegator";
            return Err(CallChainError::Signer { expected, found: self.signer });
        }
        self.check_signature()?;
        Ok(AcceptedProof(self))
    }
}
