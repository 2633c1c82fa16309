//! The road of one call: each stage takes the proof of the stage before and makes its own.

mod authorize;
mod dispatch;
mod draft;
mod guarding;
mod receipt;
mod reserve;
mod review;
mod verify;

use std::sync::Arc;

pub use reserve::Permit;

pub(crate) use draft::Draft;
pub(crate) use receipt::Ending;
pub(crate) use reserve::refusal;
pub(crate) use review::Reviewers;
pub(crate) use verify::deny_store;

use crate::call::{Denial, Evaluation, Outcome, ToolCall};
use crate::caller::Caller;
use crate::error::KernelError;
use crate::kernel::Inner;

impl Inner {
    /// Everything that happens to a call, in order. A denial at any step goes straight to the
    /// receipt.
    pub(crate) async fn run(
        &self,
        mut call: Box<ToolCall>,
        caller: Arc<dyn Caller>,
    ) -> Result<Evaluation, KernelError> {
        let ticket = self.running.enter(&call.request_id);
        let mut draft = Draft::new(self, &mut call, caller.session())?;
        let ending = match self.pass(call, &caller, &mut draft).await {
            Ok(ending) => ending,
            Err(denial) => Ending::before_dispatch(Outcome::Denied(denial)),
        };
        if !draft.verified {
            draft.distrust()?;
        }
        let evaluation = self.receipt(draft, ending).await;
        ticket.leave(evaluation.is_ok());
        evaluation
    }

    async fn pass(
        &self,
        call: Box<ToolCall>,
        caller: &Arc<dyn Caller>,
        draft: &mut Draft,
    ) -> Result<Ending, Denial> {
        self.check_open(&call, draft)?;
        let verified = self.verify(&call, draft).await?;
        draft.verified = true;
        let authorized = self.authorize(&call, &verified)?;
        // Guards may wait for others; nothing is reserved yet, so they can be left at any time.
        let guarded = tokio::select! {
            biased;
            guarded = self.guard(&call, authorized, caller.session(), draft) => guarded?,
            reason = self.called_off(caller) => {
                let reason = reason.to_owned();
                return Ok(Ending::before_dispatch(Outcome::Cancelled { reason, chunks: 0 }));
            }
        };
        let (permit, held) = self.reserve(guarded, draft).await?;
        Ok(self.dispatch(permit, held, call, caller, draft).await)
    }
}
