//! Dispatch: the tool runs, until it ends, fails, takes too long or is called off.

use std::sync::Arc;

use chio_core::money::MonetaryAmount;
use chio_core::registry::ErrorCode;

use super::reserve::Held;
use super::{Draft, Ending, Permit, Reviewers};
use crate::call::{Denial, Outcome, ToolCall};
use crate::caller::Caller;
use crate::catch::{Catch, Panicked};
use crate::error::KernelError;
use crate::guard::GuardInput;
use crate::kernel::Inner;
use crate::line::Line;
use crate::tool_server::{ToolInvocation, ToolOutput};

/// How the tool's run ended.
enum Ran {
    Ended(Result<Result<ToolOutput, KernelError>, Panicked>),
    Cancelled(&'static str),
}

impl Inner {
    /// Steps 8 and 9 of the road.
    pub(super) async fn dispatch(
        &self,
        permit: Permit,
        held: Held,
        mut call: Box<ToolCall>,
        caller: &Arc<dyn Caller>,
        draft: &mut Draft,
    ) -> Ending {
        if caller.cancellation().is_cancelled() {
            let reason = "called off before it began".to_owned();
            return Ending::before_dispatch(Outcome::Cancelled { reason, chunks: 0 });
        }
        let invocation = ToolInvocation {
            request_id: call.request_id.clone(),
            tool_name: call.tool_name.clone(),
            // The receipt has its own copy; only guards that review output look at these again.
            arguments: if self.reviewers.any() {
                call.arguments.clone()
            } else {
                std::mem::take(&mut call.arguments)
            },
        };
        let input = GuardInput {
            request_id: &call.request_id,
            token: &call.token,
            server_id: &call.server_id,
            tool_name: &call.tool_name,
            arguments: &call.arguments,
            session: caller.session(),
            now: draft.started_at,
        };
        let reviewers = Reviewers::new(self, &input);
        let line = Line::new(self, draft, &held.authority, caller, reviewers);
        let ran = self.invoke(&held, permit, invocation, &line).await;
        let ending = self.end(ran, &line, draft.price.as_ref()).await;
        let intent = line.into_intent();
        draft.intent = draft.intent.or(intent);
        ending
    }

    async fn invoke(
        &self,
        held: &Held,
        permit: Permit,
        invocation: ToolInvocation,
        line: &Line<'_>,
    ) -> Ran {
        let run = Catch::new(held.server.connection().invoke(permit, invocation, line));
        tokio::select! {
            biased;
            ended = run => Ran::Ended(ended),
            () = line.cancellation().cancelled() => Ran::Cancelled("called off by the caller"),
            () = self.running.given_up() => Ran::Cancelled("the kernel is shutting down"),
            () = tokio::time::sleep(self.config.limits.deadline) => {
                Ran::Cancelled("the tool took longer than its deadline")
            }
        }
    }

    /// What the run came to, after the output guards.
    async fn end(&self, ran: Ran, line: &Line<'_>, price: Option<&MonetaryAmount>) -> Ending {
        let (outcome, cost) = match ran {
            Ran::Cancelled(reason) => {
                let chunks = line.chunks_sent();
                (Outcome::Cancelled { reason: reason.to_owned(), chunks }, None)
            }
            Ran::Ended(Err(Panicked)) => (failure("the tool panicked"), None),
            // Why a stream broke off says more than the error that the tool made of it.
            Ran::Ended(Ok(result)) => match (line.broken(), result) {
                (Some(outcome), _) => (outcome, None),
                (None, Err(KernelError::ToolServerError(detail))) => (failure(&detail), None),
                (None, Err(other)) => (failure(&other.to_string()), None),
                (None, Ok(output)) => (line.finish(output.value).await, output.cost),
            },
        };
        let stream = line.stream_record();
        let sanitized = line.sanitized();
        let content_hash = line.content_hash(&outcome);
        let cost = cost.or_else(|| price.cloned());
        Ending { outcome, content_hash, stream, sanitized, cost, dispatched: true }
    }
}

/// A tool that failed is a denial in the kernel's name, with the tool's words.
fn failure(detail: &str) -> Outcome {
    Outcome::Denied(Denial::by_kernel(ErrorCode::ToolServerError, detail))
}
