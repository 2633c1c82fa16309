//! Approval: an approver has to say yes to exactly this call, once.
//!
//! A call that comes with an approval goes on with it. One that comes without waits in the inbox:
//! it is a durable row there, holds nothing, and ends when it is answered, cancelled or too old.

use std::sync::Arc;
use std::time::Duration;

use chio_core::crypto::PublicKey;
use chio_core::governance::{
    ApprovalError, ApprovalRecord, ApprovalTerms, ApprovalToken, GovernedTransactionReceipt,
};
use chio_core::principal::NamedPrincipal;
use chio_core::signed::Signed as _;
use serde_json::json;

use super::draft::Open;
use super::governed::{Stated, made_intent, names_arguments};
use super::possession::refusal;
use super::verify::deny_store;
use super::{Draft, Stop};
use crate::call::{Denial, ToolCall};
use crate::caller::Caller;
use crate::kernel::Inner;
use crate::store::{ApprovalRequest, ApprovalState, ApprovalUse, Opened, Opening};

/// The name under which the kernel denies approvals.
const GUARD: &str = "approval";

/// How often an unanswered request is looked at, should no news come.
const LOOK: Duration = Duration::from_secs(1);

/// A guard or the kernel asks for an approval.
#[derive(Debug)]
pub(crate) struct Need {
    /// A guard's name, or the kernel's.
    pub(super) asked_by: String,
    pub(super) reason: String,
}

impl Need {
    pub(super) fn by_kernel(reason: impl Into<String>) -> Self {
        Self { asked_by: Denial::KERNEL.to_owned(), reason: reason.into() }
    }

    /// The denial of a call that does not get what it needs.
    pub(super) fn unmet(&self, problem: &str) -> Denial {
        let reason = format!("an approval is needed ({}), {problem}", self.reason);
        Denial::by_guard(&self.asked_by, reason)
    }
}

/// A call that waits. Its caller is told, and told again when this is dropped, for whatever reason.
struct Parked<'a>(&'a dyn Caller);

impl<'a> Parked<'a> {
    fn new(caller: &'a dyn Caller, request: &ApprovalRequest) -> Self {
        caller.parked(Some(request));
        Self(caller)
    }
}

impl Drop for Parked<'_> {
    fn drop(&mut self) {
        self.0.parked(None);
    }
}

pub(super) fn deny(reason: impl Into<String>) -> Denial {
    Denial::by_guard(GUARD, reason)
}

impl Inner {
    /// Notes the intent that approvals of this call are bound to: the one it was stated with, or
    /// one made of exactly this call.
    fn bound(
        &self,
        call: &ToolCall,
        stated: Option<Stated>,
        draft: &mut Draft,
    ) -> Result<Stated, Denial> {
        if let Some(stated) = stated {
            return Ok(stated);
        }
        let intent = made_intent(call)?;
        let record = GovernedTransactionReceipt::new(&intent).map_err(|e| deny(e.to_string()))?;
        let hash = record.intent_hash.clone();
        draft.governed = Some(Box::new(record));
        Ok(Stated { intent: Box::new(intent), hash })
    }

    /// Goes on with the approval that came with the call.
    pub(super) fn accept_presented(
        &self,
        call: &ToolCall,
        token: &ApprovalToken,
        stated: Option<Stated>,
        draft: &mut Draft,
    ) -> Result<(), Denial> {
        // SECURITY: one name and one loose intent could go with any arguments.
        if stated.as_ref().is_some_and(|stated| !names_arguments(&stated.intent)) {
            return Err(deny(
                "expected an intent that names its arguments in `context.parameterHash`, as an \
                 approval is for no others, found one for any",
            ));
        }
        let stated = self.bound(call, stated, draft)?;
        // The caller knows the call by its own name for it.
        let named = call.origin_request_id.as_ref().filter(|id| **id == token.request_id);
        let request_id = named.unwrap_or(&call.request_id).clone();
        self.accept(call, token, &request_id, &stated.hash, draft)
    }

    /// Checks an approval and notes that it is to be used up.
    fn accept(
        &self,
        call: &ToolCall,
        token: &ApprovalToken,
        request_id: &str,
        intent_hash: &str,
        draft: &mut Draft,
    ) -> Result<(), Denial> {
        let now = self.clock.unix_seconds();
        let record = ApprovalRecord::new(token).map_err(|error| deny(error.to_string()))?;
        let digest = record.approval_artifact_digest.clone().unwrap_or_default();
        let (subject, trust) = (&call.token.subject, self.trust());
        let terms =
            ApprovalTerms { now, request_id, intent_hash, subject, approvers: &trust.approvers };
        let checked = token.check(&terms);
        let barred = self.barred(&token.approver, call);
        // The receipt records an answer of a trusted approver, be it yes or no.
        let counts = match &checked {
            Ok(()) => true,
            // The check stops at a no before it looks at who signed it.
            Err(ApprovalError::Denied) => {
                trust.approvers.contains(&token.approver) && token.check_signature().is_ok()
            }
            Err(_) => false,
        };
        if let Some(governed) = &mut draft.governed
            && counts
            && barred.is_none()
        {
            governed.approval = Some(record);
        }
        checked.map_err(|error| match error {
            ApprovalError::Denied if counts => {
                deny(format!("approver `{}` said no", token.approver))
            }
            ApprovalError::Denied => deny("somebody who does not count said no"),
            other => deny(other.to_string()),
        })?;
        if let Some(barred) = barred {
            return Err(barred);
        }
        draft.approval = Some(ApprovalUse {
            digest,
            request_id: request_id.to_owned(),
            intent_hash: intent_hash.to_owned(),
            issued_at: token.issued_at,
            expires_at: token.expires_at,
            now,
        });
        Ok(())
    }

    /// Why an approver cannot approve this call, even a trusted one.
    fn barred(&self, approver: &PublicKey, call: &ToolCall) -> Option<Denial> {
        // A delegator could have kept the token, and may be the caller by another name.
        let mut chain = call.token.delegation_chain.iter();
        let is_caller = *approver == call.token.subject
            || chain.any(|link| [&link.delegator, &link.delegatee].contains(&approver));
        if is_caller && !self.trust().allow_self_approval {
            return Some(deny(
                "expected an approval by somebody else, found that of the caller, or of one whose \
                 authority the caller has",
            ));
        }
        (approver == self.key.public_key())
            .then(|| deny("expected an approver's key, found a kernel's"))
    }

    /// Waits in the inbox until an approver answers, and goes on with a yes.
    pub(super) async fn park(
        &self,
        call: &ToolCall,
        need: &Need,
        stated: Option<Stated>,
        caller: &Arc<dyn Caller>,
        draft: &mut Draft,
    ) -> Result<(), Stop> {
        if draft.read.is_some() {
            return Err(need.unmet("and what only reads cannot wait for it").into());
        }
        if self.trust().approvers.is_empty() {
            return Err(need.unmet("and nobody is trusted to give it").into());
        }
        if !caller.can_wait() {
            return Err(need.unmet("and this caller cannot wait for it").into());
        }
        let stated = self.bound(call, stated, draft)?;
        let mut request = self.request(call, need, &stated, draft);
        request.principal = caller.session().principal.named().map(NamedPrincipal::into_owned);
        let id = request.id.clone();
        let summary = json!({"id": id, "asked_by": need.asked_by, "reason": need.reason});
        draft.metadata.insert("approval", summary);
        draft.note_governed().map_err(|error| deny(error.to_string()))?;
        let mut intent = draft.intent().map_err(|error| deny(error.to_string()))?;
        intent.parked = true;
        let opened = self.ledger.open(Opening {
            intent,
            resumes: draft.intent_id(),
            proofs: std::mem::take(&mut draft.proofs),
            waits_for: Some(request.clone()),
            claims: None,
        });
        match opened.await.map_err(|error| deny_store(&error))? {
            Opened::At(intent) => {
                let waited = Some(ApprovalState::Cancelled);
                draft.open = Some(Open { waited, ..intent.into() });
            }
            Opened::Refused(refused) => return Err(refusal(refused).into()),
            Opened::InboxFull => return Err(need.unmet("and the inbox is full").into()),
            Opened::NotClaimed(_) | Opened::IntentClosed => {
                return Err(need.unmet("and the call was taken for abandoned").into());
            }
        }
        let answer = {
            let _parked = Parked::new(&**caller, &request);
            self.wait_for_answer(&id, need, caller, draft).await?
        };
        self.accept(call, &answer, &call.request_id, &stated.hash, draft)?;
        Ok(())
    }

    /// How long the call waits: as long as its policy says, else as the kernel does.
    fn approval_timeout(&self, draft: &Draft) -> Duration {
        draft.pipeline.approval_timeout().unwrap_or(self.trust().approval_timeout)
    }

    fn request(
        &self,
        call: &ToolCall,
        need: &Need,
        stated: &Stated,
        draft: &Draft,
    ) -> ApprovalRequest {
        let now = self.clock.unix_seconds();
        ApprovalRequest {
            id: self.unique_name("appr-"),
            request_id: call.request_id.clone(),
            subject: call.token.subject.clone(),
            capability_id: draft.record.capability_id.clone(),
            server_id: call.server_id.clone(),
            tool_name: call.tool_name.clone(),
            action: draft.record.action.clone(),
            intent: (*stated.intent).clone(),
            intent_hash: stated.hash.clone(),
            asked_by: need.asked_by.clone(),
            reason: need.reason.clone(),
            requested_at: now,
            expires_at: now.saturating_add(self.approval_timeout(draft).as_secs().max(1)),
            principal: None,
            trace_id: draft.trace_id.clone(),
            approvers: self.approvers_of(call),
        }
    }

    /// Who may approve this call.
    fn approvers_of(&self, call: &ToolCall) -> Vec<PublicKey> {
        let trusted = self.trust().approvers.clone();
        trusted.into_iter().filter(|key| self.barred(key, call).is_none()).collect()
    }

    async fn wait_for_answer(
        &self,
        id: &str,
        need: &Need,
        caller: &Arc<dyn Caller>,
        draft: &mut Draft,
    ) -> Result<ApprovalToken, Stop> {
        let mut news = self.revocations.epochs();
        let timeout = tokio::time::sleep(self.approval_timeout(draft));
        tokio::pin!(timeout);
        loop {
            // A store that does not answer now may do so before the time is up.
            if let Ok(Some(approval)) = self.store.approval(id).await {
                match (approval.state, approval.answer) {
                    (ApprovalState::Pending, _) => {}
                    (ApprovalState::Approved | ApprovalState::Denied, Some(answer)) => {
                        return Ok(answer);
                    }
                    _ => return Err(need.unmet("and its request was closed").into()),
                }
            }
            let reason = tokio::select! {
                biased;
                () = caller.cancellation().cancelled() => "called off by the caller",
                () = self.running.closed() => "the kernel is shutting down",
                () = &mut timeout => {
                    if let Some(open) = &mut draft.open {
                        open.waited = Some(ApprovalState::Expired);
                    }
                    return Err(need.unmet("and nobody gave it in time").into());
                }
                _ = news.changed() => continue,
                () = tokio::time::sleep(LOOK) => continue,
            };
            return Err(Stop::Cancelled(reason));
        }
    }
}

#[cfg(test)]
mod tests {
    use chio_core::registry::ErrorCode;

    use super::*;

    #[test]
    fn who_asked_says_no() {
        let need = Need { asked_by: "careful".to_owned(), reason: "large".to_owned() };
        let denial = need.unmet("and nobody gave it");
        assert_eq!((denial.guard.as_str(), denial.code), ("careful", ErrorCode::GuardDenied));
        assert_eq!(denial.reason, "an approval is needed (large), and nobody gave it");
    }
}
