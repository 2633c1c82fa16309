//! A kernel's signed permission to continue a call elsewhere.

use serde::{Deserialize, Serialize};

use super::{CallChainContext, CallChainError, CurrentCall, require};
use crate::crypto::{PublicKey, Signature};
use crate::session::SessionAnchorReference;
use crate::signed::{Signed, require_schema, signed_by};
use crate::window::Validity;

/// A parent kernel's signed permission for a subject to continue its call, perhaps with one tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContinuationToken {
    /// [`Self::SCHEMA`].
    pub schema: String,
    /// The token's id, chosen by the signer.
    pub token_id: String,
    /// The parent's kernel or the delegator, who signs.
    pub signer: PublicKey,
    /// Who continues the call.
    pub subject: PublicKey,
    /// The parent.
    #[serde(flatten)]
    pub context: CallChainContext,
    /// [`crate::canonical::hash`] of the parent's full receipt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_receipt_hash: Option<String>,
    /// The parent's session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session_anchor: Option<SessionAnchorReference>,
    /// Who continues the call, as text.
    pub current_subject: String,
    /// The capability that was delegated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_capability_id: Option<String>,
    /// The hash of the link that delegated it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegation_link_hash: Option<String>,
    /// The hash of the intent with which the call is continued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governed_intent_hash: Option<String>,
    /// The only tool with which the call may be continued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<Audience>,
    /// Unique where the signer wants single use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<String>,
    /// The first second in which it holds, in Unix time.
    pub issued_at: u64,
    /// The first second in which it no longer holds, in Unix time.
    pub expires_at: u64,
    /// The signer's signature over the rest.
    pub signature: Signature,
}

/// The one tool that a continuation token is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Audience {
    /// The server that runs it.
    pub server_id: String,
    /// The tool.
    pub tool_name: String,
}

signed_by!(ContinuationToken, signer, |token| require_schema(
    ContinuationToken::SCHEMA,
    &token.schema
));

impl ContinuationToken {
    /// The value of `schema`.
    pub const SCHEMA: &'static str = "chio.call_chain_continuation.v1";

    /// Checks that `call` may continue the parent that `context` names. Use of the nonce is for
    /// the caller to count.
    ///
    /// # Errors
    /// The first of these that fails: the token holds now, it is about this subject and this
    /// parent, its signer is the capability's last delegator or one of the `trusted` kernels,
    /// what it names beyond that is so, and the signer has signed it. Only the parent's receipt
    /// and session go unchecked where the kernel does not know them.
    pub fn check(
        &self,
        context: &CallChainContext,
        call: &CurrentCall<'_>,
        trusted: &[PublicKey],
    ) -> Result<(), CallChainError> {
        Validity { issued_at: self.issued_at, expires_at: self.expires_at }.check(call.now)?;
        let subject = call.subject.to_hex();
        require("subject", &*subject, &*self.subject.to_hex())?;
        require("currentSubject", &*subject, &*self.current_subject)?;
        context.require_same(&self.context)?;
        let delegator = call.delegation.map(|delegation| delegation.delegator);
        if delegator != Some(&self.signer) && !trusted.contains(&self.signer) {
            let expected = "the capability's last delegator or a trusted kernel";
            return Err(CallChainError::Signer { expected, found: self.signer.clone() });
        }
        self.check_named(call)?;
        Ok(self.check_signature()?)
    }

    /// Checks the optional members that are there.
    fn check_named(&self, call: &CurrentCall<'_>) -> Result<(), CallChainError> {
        if let Some(audience) = &self.audience {
            require("audience.serverId", call.server_id, &*audience.server_id)?;
            require("audience.toolName", call.tool_name, &*audience.tool_name)?;
        }
        if let Some(hash) = &self.governed_intent_hash {
            require("governedIntentHash", call.intent_hash, &**hash)?;
        }
        if let Some(id) = &self.parent_capability_id {
            let expected = call.delegation.map(|delegation| delegation.capability_id);
            require("parentCapabilityId", expected, &**id)?;
        }
        if let Some(hash) = &self.delegation_link_hash {
            let expected = call.delegation.map(|delegation| delegation.link_hash);
            require("delegationLinkHash", expected, &**hash)?;
        }
        if let (Some(hash), Some(known)) = (&self.parent_receipt_hash, call.parent_receipt_hash) {
            require("parentReceiptHash", known, &**hash)?;
        }
        if let (Some(anchor), Some(known)) = (&self.parent_session_anchor, call.parent_anchor) {
            require("sessionAnchorId", &*known.session_anchor_id, &*anchor.session_anchor_id)?;
            let [known, named] = [known, anchor].map(|anchor| &*anchor.session_anchor_hash);
            require("sessionAnchorHash", known, named)?;
        }
        Ok(())
    }
}
