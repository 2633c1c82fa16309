//! The road of one call or read: each stage takes the proof of the stage before and makes its own.

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

use chio_core::registry::ErrorCode;
use tokio::time::Instant;

pub use read::{Read, ReadOutcome, ReadRequest};
pub use reserve::Permit;

pub(crate) use draft::{Draft, MAX_NESTING, bounded};
pub(crate) use read::session_tool;
pub(crate) use reserve::{refusal, unwritten};
pub(crate) use review::{Remarks, Reviewers};
pub(crate) use verify::{deny_store, grants_above};

use approval::Need;
use dispatch::Interrupt;
use draft::Checked;
use governed::Stated;
use guarding::Guarded;
use possession::check_possession;
use receipt::Ending;

use crate::call::{Denial, Evaluation, Outcome, ToolCall};
use crate::caller::Caller;
use crate::error::KernelError;
use crate::kernel::Inner;
use crate::resource_provider::ReadKind;
use crate::work::when_large;

impl Inner {
    /// Runs a call, or a read, through its stages and records how it ended: the last stage, receipt,
    /// follows whatever the stages before it came to.
    pub(crate) async fn evaluate_and_record(
        &self,
        mut call: Box<ToolCall>,
        read: Option<ReadKind>,
        caller: Arc<dyn Caller>,
    ) -> Result<Evaluation, KernelError> {
        let ticket = self.running.enter(&call.request_id);
        let mut draft = Draft::new(self, &mut call, read, caller.session())?;
        let task_id = call.task_id.take();
        let is_task = task_id.is_some() || call.task.is_some();
        draft.task = call.task.take();
        if let Some(task_id) = task_id
            && let Err(error) = self.claim(task_id, &call, &*caller, &mut draft).await
        {
            // Another call may have the task; no intent of this one is open.
            ticket.leave(error.ran_nothing());
            return Err(error);
        }
        let ended = self.run_stages(call, &caller, &mut draft).await;
        let ending = ended.unwrap_or_else(Stop::into_ending);
        let task = is_task.then(|| caller.task_end(&ending.outcome));
        // Without a token that holds, and without a guard that charges for it.
        when_large(draft.argument_bytes, || draft.keep_back()).await?;
        let verdict = ending.verdict();
        let recorded = self.receipt(draft, ending, caller.session(), task).await;
        ticket.leave(recorded.is_ok());
        let evaluation = recorded?;
        tracing::debug!(verdict, receipt_id = evaluation.receipt.id, "ended");
        Ok(evaluation)
    }

    /// The stages up to dispatch and review, with a wait for an approval where one is needed. A
    /// denial at any of them ends the call there.
    async fn run_stages(
        &self,
        mut call: Box<ToolCall>,
        caller: &Arc<dyn Caller>,
        draft: &mut Draft,
    ) -> Result<Ending, Stop> {
        // A task that is cancelled before it has run is claimed for its receipt alone.
        if draft.open.is_some() && caller.cancellation().is_cancelled() {
            return Err(Interrupt::ByCaller.before_dispatch());
        }
        self.check_open(&call).await?;
        let mut decided = self.decide(&call, caller, draft).await?;
        if let Some(approval) = &call.approval {
            self.accept_presented(&call, approval, decided.stated.take(), draft)?;
        } else if let Some(need) = decided.need.take() {
            self.park(&call, &need, decided.stated.take(), caller, draft).await?;
            // Much may have changed while the call waited for an answer.
            draft.deadline = Instant::now() + self.trust().deadline;
            self.check_open(&call).await?;
            let problem =
                |_| Denial::by_kernel(ErrorCode::InternalError, "`_meta` cannot be recorded");
            draft.judge_by(self.pipeline(), &mut call).map_err(problem)?;
            decided = self.decide(&call, caller, draft).await?;
        }
        let (permit, held) = self.reserve(decided.guarded, draft).await?;
        Ok(self.dispatch(permit, held, call, caller, draft).await)
    }

    /// The stages verify, govern, authorize and guard: they decide about a call and take nothing,
    /// so that a call which has waited passes them again.
    async fn decide(
        &self,
        call: &ToolCall,
        caller: &Arc<dyn Caller>,
        draft: &mut Draft,
    ) -> Result<Decided, Stop> {
        draft.record.started_at = self.clock.unix_seconds();
        let verified = self.verify(call, draft).await?;
        draft.reach(Checked::Token);
        let stated = self.govern(call, draft).await?;
        let mut authorized = match draft.read {
            None => self.authorize(call, &verified, stated.as_ref())?,
            Some(kind) => self.authorize_read(kind, call, &verified)?,
        };
        if !draft.resumed() {
            check_possession(call, authorized.asks_proof(), draft)?;
        }
        let need = authorized.take_need();
        let (guarded, asked) = self.guard_or_cancelled(call, authorized, caller, draft).await?;
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
    /// It was cancelled, for this reason.
    Cancelled(&'static str),
}

impl Stop {
    fn into_ending(self) -> Ending {
        match self {
            Self::Denied(denial) => Ending::before_dispatch(Outcome::Denied(denial)),
            Self::Cancelled(reason) => Ending::cancelled(reason),
        }
    }
}

impl From<Denial> for Stop {
    fn from(denial: Denial) -> Self {
        Self::Denied(denial)
    }
}
