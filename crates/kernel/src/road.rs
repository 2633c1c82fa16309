//! The road of one call: each stage takes the proof of the stage before and makes its own.

mod approval;
mod authorize;
mod authorize_read;
mod claim;
mod dispatch;
mod draft;
mod governed;
mod guarding;
mod possession;
mod read;
mod receipt;
mod reserve;
mod review;
mod verify;

use std::sync::Arc;

use tokio::time::Instant;

pub use read::{Read, ReadCall, ReadOutcome};
pub use reserve::Permit;

pub(crate) use draft::{Draft, MAX_NESTING};
pub(crate) use read::session_tool;
pub(crate) use receipt::Ending;
pub(crate) use reserve::{refusal, unwritten};
pub(crate) use review::{Remarks, Reviewers};
pub(crate) use verify::deny_store;

use approval::Need;
use governed::Stated;
use guarding::Guarded;
use possession::prove;

use crate::call::{Denial, Evaluation, Outcome, ToolCall};
use crate::caller::Caller;
use crate::error::KernelError;
use crate::kernel::Inner;

impl Inner {
    /// Everything that happens to a call, in order. A denial at any step goes straight to the
    /// receipt.
    pub(crate) async fn evaluate_call(
        &self,
        mut call: Box<ToolCall>,
        caller: Arc<dyn Caller>,
    ) -> Result<Evaluation, KernelError> {
        let ticket = self.running.enter(&call.request_id);
        let mut draft = Draft::new(self, &mut call, caller.session())?;
        if let Some(task_id) = call.task_id.take()
            && let Err(error) = self.claim(task_id, &call, &mut draft).await
        {
            // Another call may have the task; no intent of this one is open.
            ticket.leave(matches!(error, KernelError::NotClaimed(_) | KernelError::NotNow(_)));
            return Err(error);
        }
        let ending = match self.run_stages(call, &caller, &mut draft).await {
            Ok(ending) | Err(Stop::Ended(ending)) => ending,
            Err(Stop::Denied(denial)) => Ending::before_dispatch(Outcome::Denied(denial)),
        };
        draft.result = draft.claimed.then(|| caller.task_result(&ending.outcome));
        if !draft.guarded {
            draft.redact_unguarded()?;
        }
        if !draft.verified {
            draft.distrust()?;
        }
        let evaluation = self.receipt(draft, ending).await;
        ticket.leave(evaluation.is_ok());
        evaluation
    }

    async fn run_stages(
        &self,
        call: Box<ToolCall>,
        caller: &Arc<dyn Caller>,
        draft: &mut Draft,
    ) -> Result<Ending, Stop> {
        self.check_open(&call, draft)?;
        let mut decided = self.decide(&call, caller, draft).await?;
        if let Some(approval) = &call.approval {
            self.accept_presented(&call, approval, decided.stated.take(), draft)?;
        } else if let Some(need) = decided.need.take() {
            self.park(&call, &need, decided.stated.take(), caller, draft).await?;
            // Much may have changed while the call waited for an answer.
            draft.deadline = Instant::now() + self.config.limits.deadline;
            self.check_open(&call, draft)?;
            draft.pipeline = self.pipeline();
            decided = self.decide(&call, caller, draft).await?;
        }
        let (permit, held) = self.reserve(decided.guarded, draft).await?;
        Ok(self.dispatch(permit, held, (call, None), caller, draft).await.0)
    }

    /// The stages verify, govern, authorize and guard: everything that can be decided about a call
    /// before it reserves anything.
    async fn decide(
        &self,
        call: &ToolCall,
        caller: &Arc<dyn Caller>,
        draft: &mut Draft,
    ) -> Result<Decided, Stop> {
        draft.started_at = self.clock.unix_seconds();
        let verified = self.verify(call, draft).await?;
        draft.verified = true;
        let stated = self.govern(call, draft).await?;
        let mut authorized = self.authorize(call, &verified, stated.as_ref())?;
        if !draft.resumed {
            prove(call, authorized.asks_proof(), draft)?;
        }
        let (need, deadline) = (authorized.take_need(), draft.deadline);
        // Guards may wait for others; nothing is reserved yet, so they can be left at any time.
        let ended = tokio::select! {
            biased;
            guarded = self.guard(call, authorized, caller.session(), draft) => Ok(guarded),
            reason = self.cancelled(caller, deadline) => Err(reason),
        };
        let (guarded, asked) = match ended {
            Ok(guarded) => {
                // Only now has each had its chance to take secrets out.
                draft.guarded = true;
                guarded?
            }
            Err(reason) => {
                let (reason, chunks) = (reason.to_owned(), 0);
                let outcome = Outcome::Cancelled { reason, chunks };
                return Err(Stop::Ended(Ending::before_dispatch(outcome)));
            }
        };
        Ok(Decided { guarded, stated, need: need.or(asked) })
    }
}

/// What was decided before anything is taken.
struct Decided {
    guarded: Guarded,
    /// What the caller says it intends.
    stated: Option<Stated>,
    /// The approval that is still missing.
    need: Option<Need>,
}

/// Why a call does not reach its tool.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It was denied.
    Denied(Denial),
    /// It ended otherwise.
    Ended(Ending),
}

impl From<Denial> for Stop {
    fn from(denial: Denial) -> Self {
        Self::Denied(denial)
    }
}
