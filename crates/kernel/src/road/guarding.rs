//! Guard: every guard in order has its say; the first that does not allow ends the call.

use chio_core::receipt::GuardEvidence;

use super::Draft;
use super::approval::Need;
use super::authorize::Authorized;
use crate::call::{Denial, ToolCall, shortened};
use crate::caller::Session;
use crate::catch::Catch;
use crate::guard::{GuardInput, GuardOutcome, Verdict};
use crate::kernel::Inner;

/// Proof that every guard allowed the call.
#[derive(Debug)]
pub(crate) struct Guarded {
    authorized: Authorized,
}

impl Guarded {
    pub(super) const fn authorized(&self) -> &Authorized {
        &self.authorized
    }
}

impl Inner {
    /// Step 6 of the road. Tells who asks for an approval, unless somebody denies.
    pub(super) async fn guard(
        &self,
        call: &ToolCall,
        authorized: Authorized,
        session: &Session,
        draft: &mut Draft,
    ) -> Result<(Guarded, Option<Need>), Denial> {
        let input = GuardInput::new(call, session, draft.started_at, draft.resumed);
        // Whether the approval that came holds is seen to next.
        let approved = draft.resumed || call.approval.is_some();
        // After an approval all of them speak again.
        draft.evidence.clear();
        let mut need = None;
        for guard in &self.guards {
            let name = guard.name();
            let said = match Catch::new(guard.check(&input)).await {
                Ok(Ok(outcome)) => outcome,
                Ok(Err(problem)) => failed(format!("the guard failed: {problem}")),
                Err(_) => failed("the guard panicked".to_owned()),
            };
            let asks = matches!(said.verdict, Verdict::AwaitApproval(_));
            let verdict = said.verdict == Verdict::Allow || (asks && approved);
            let guard_name = name.to_owned();
            let details = said.evidence.map(shortened);
            draft.evidence.push(GuardEvidence { guard_name, verdict, details });
            if let Some(redacted) = said.redacted {
                let problem = |_| Denial::by_guard(name, "the redacted arguments cannot be kept");
                draft.redact(&call.arguments, redacted).map_err(problem)?;
            }
            match said.verdict {
                Verdict::Allow => {}
                Verdict::Deny(reason) => return Err(Denial::by_guard(name, reason)),
                Verdict::AwaitApproval(_) if approved => {}
                Verdict::AwaitApproval(reason) => {
                    // Those after it may still deny; then nobody need be asked.
                    let reason = shortened(reason);
                    need = need.or(Some(Need { asked_by: name.to_owned(), reason }));
                }
            }
        }
        Ok((Guarded { authorized }, need))
    }
}

fn failed(reason: String) -> GuardOutcome {
    Verdict::Deny(reason).into()
}
