//! What a call takes along when its tool calls another organisation for it.
//!
//! The server called there learns which capability stands behind the call, which request it is made
//! for, and, where the key that we call with is known, has our signature for it.

use chio_core::canonical;
use chio_core::capability::CapabilityToken;
use chio_core::capability_ref::CrossProtocolCapabilityRef;
use chio_core::crypto::{PublicKey, Signature};
use chio_core::governance::{CallChainContext, ContinuationToken};
use chio_core::protocol::DiscoveryProtocol;
use chio_core::signed::Signed;

use crate::call_context::CallContext;
use crate::error::KernelError;

/// How long another kernel may take a call for a continued one, in seconds.
const LIFETIME: u64 = 300;

/// What goes along with a call to somewhere else.
#[derive(Debug, Clone, PartialEq)]
pub struct Onward {
    /// Refers to the capability that is presented there; to that of this call when none is.
    pub capability_ref: CrossProtocolCapabilityRef,
    /// The call that the other one is made for.
    pub call_chain: CallChainContext,
    /// Our signed statement of it, for a kernel that accepts it.
    pub continuation: Option<ContinuationToken>,
}

impl CallContext<'_> {
    /// What goes along when this call is continued elsewhere over `protocol`, with the capability
    /// that is presented there, if one is.
    ///
    /// # Errors
    /// When something has no form that can be signed.
    pub fn onward(
        &self,
        protocol: DiscoveryProtocol,
        presents: Option<&CapabilityToken>,
    ) -> Result<Onward, KernelError> {
        let (kernel, draft, ours) = (self.kernel, self.draft, self.reviewers.input.token);
        let before = draft.governed.as_ref().and_then(|record| record.call_chain.as_ref());
        let subject = ours.subject.to_hex();
        let mut context = CallChainContext {
            chain_id: draft.trace_id.clone().unwrap_or_else(|| draft.record.request_id.clone()),
            parent_request_id: draft.record.request_id.clone(),
            // The receipt is signed when the call has ended.
            parent_receipt_id: None,
            origin_subject: before
                .map_or_else(|| subject.clone(), |chain| chain.context.origin_subject.clone()),
            delegator_subject: subject,
        };
        let links = presents.map_or(&[][..], |token| &token.delegation_chain);
        if let (Some(first), Some(last)) = (links.first(), links.last()) {
            // A capability that was delegated says by itself who handed the call on.
            context.origin_subject = first.delegator.to_hex();
            context.delegator_subject = last.delegator.to_hex();
        }
        let continuation = presents.map(|token| {
            let now = kernel.clock.unix_seconds();
            self.continuation(&token.subject, context.clone(), now).signed(&kernel.key)
        });
        let continuation = continuation.transpose()?;
        let reference = presents.unwrap_or(ours);
        Ok(Onward {
            capability_ref: CrossProtocolCapabilityRef {
                chio_capability_id: reference.id.clone(),
                origin_protocol: protocol,
                parent_capability_hash: canonical::hash(reference)?,
                protocol_context: None,
            },
            call_chain: context,
            continuation,
        })
    }

    fn continuation(
        &self,
        subject: &PublicKey,
        context: CallChainContext,
        now: u64,
    ) -> ContinuationToken {
        ContinuationToken {
            schema: ContinuationToken::SCHEMA.to_owned(),
            token_id: self.kernel.unique_name("cont-"),
            signer: self.kernel.key.public_key().clone(),
            subject: subject.clone(),
            context,
            parent_receipt_hash: None,
            parent_session_anchor: None,
            current_subject: subject.to_hex(),
            parent_capability_id: None,
            delegation_link_hash: None,
            governed_intent_hash: None,
            audience: None,
            nonce: None,
            issued_at: now,
            expires_at: now.saturating_add(LIFETIME),
            signature: Signature::blank(),
        }
    }
}
