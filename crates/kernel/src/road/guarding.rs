//! Guard: every guard in order has its say; the first that does not allow ends the call.

use std::sync::Arc;

use chio_core::receipt::GuardEvidence;
use chio_core::registry::ErrorCode;

use super::approval::Need;
use super::authorize::Authorized;
use super::{Checked, Draft, Stop};
use crate::call::{Denial, ToolCall, shortened};
use crate::caller::{Caller, Session};
use crate::guard::{GuardInput, Verdict};
use crate::kernel::Inner;
use crate::pipeline::ask;
use crate::work::Work;

/// Proof that every guard allowed the call.
pub(crate) struct Guarded {
    authorized: Authorized,
}

impl Guarded {
    pub(super) const fn authorized(&self) -> &Authorized {
        &self.authorized
    }
}

impl Inner {
    /// The stage guard, which a cancellation ends at any time: nothing is reserved yet, and guards
    /// may wait for others.
    pub(super) async fn guard_or_cancelled(
        &self,
        call: &ToolCall,
        authorized: Authorized,
        caller: &Arc<dyn Caller>,
        draft: &mut Draft,
    ) -> Result<(Guarded, Option<Need>), Stop> {
        let deadline = draft.deadline;
        let work = Work::until(Some(deadline));
        tokio::select! {
            biased;
            guarded = self.guard(call, authorized, caller.session(), &work, draft) => {
                // Only now has each had its chance to take secrets out; not one that was broken off.
                if !work.is_spent() {
                    draft.reach(Checked::Guards);
                }
                Ok(guarded?)
            }
            interrupt = self.interrupted(caller, deadline) => Err(interrupt.before_dispatch()),
        }
    }

    /// Asks every guard. Tells which of them asks for an approval, unless one denies.
    async fn guard(
        &self,
        call: &ToolCall,
        authorized: Authorized,
        session: &Session,
        work: &Work,
        draft: &mut Draft,
    ) -> Result<(Guarded, Option<Need>), Denial> {
        let (pipeline, memo) = (Arc::clone(&draft.pipeline), Arc::clone(&draft.memo));
        let first = authorized.alternatives().first();
        let input = GuardInput {
            grant_index: first.map(|way| way.grant_index).unwrap_or_default(),
            cost: first.and_then(|way| way.price.as_ref()),
            ..GuardInput::new(call, session, &authorized.tool().definition, &memo, work, draft)
        };
        // Whether the approval that came holds is seen to next.
        let approved = draft.resumed() || call.approval.is_some();
        // After an approval all of them speak again.
        draft.record.evidence.clear();
        draft.record.evidence.reserve(pipeline.guards().len());
        let mut need = None;
        for guard in pipeline.guards() {
            let name = guard.name();
            let said = ask(&**guard, &input).await;
            let asks = matches!(said.verdict, Verdict::AwaitApproval(_));
            let verdict = said.verdict == Verdict::Allow || (asks && approved);
            let guard_name = name.to_owned();
            let details = said.evidence.map(shortened);
            draft.record.evidence.push(GuardEvidence { guard_name, verdict, details });
            if let Some(redacted) = said.redacted {
                let problem = |_| Denial::by_guard(name, "the redacted arguments cannot be kept");
                draft.redact(&call.arguments, redacted).map_err(problem)?;
            }
            match said.verdict {
                Verdict::Allow => {}
                Verdict::Deny(reason) => return Err(Denial::by_guard(name, reason)),
                Verdict::WrongArguments(reason) => {
                    let code = ErrorCode::InvalidRequestShape;
                    return Err(Denial { code, ..Denial::by_guard(name, reason) });
                }
                Verdict::AwaitApproval(_) if approved => {}
                Verdict::AwaitApproval(reason) => {
                    // Those after it may still deny; then no approver need be asked.
                    let reason = shortened(reason);
                    need = need.or(Some(Need { asked_by: name.to_owned(), reason }));
                }
            }
        }
        Ok((Guarded { authorized }, need))
    }
}
