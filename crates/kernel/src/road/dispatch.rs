//! Dispatch: the tool runs, until it ends, fails, takes too long or is cancelled.

use std::sync::Arc;

use chio_core::money::MonetaryAmount;
use chio_core::registry::ErrorCode;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::reserve::Held;
use super::{Draft, Ending, Permit, Reviewers};
use crate::call::{Denial, Outcome, ToolCall, shortened};
use crate::call_context::CallContext;
use crate::caller::Caller;
use crate::catch::{Catch, Panicked};
use crate::error::KernelError;
use crate::guard::{GuardInput, Known};
use crate::kernel::Inner;
use crate::resource_provider::{ReadKind, Reading};
use crate::tool_server::{ToolInvocation, ToolOutput, ToolServerConnection};

impl Inner {
    /// The stages dispatch and review, for a tool or for a read. With the code of an error that a server
    /// answered with.
    pub(super) async fn dispatch(
        &self,
        permit: Permit,
        held: Held,
        (mut call, read): (Box<ToolCall>, Option<ReadKind>),
        caller: &Arc<dyn Caller>,
        draft: &mut Draft,
    ) -> (Ending, Option<i64>) {
        if caller.cancellation().is_cancelled() {
            let reason = "called off before it began".to_owned();
            let outcome = Outcome::Cancelled { reason, chunks: 0 };
            return (Ending::before_dispatch(outcome), None);
        }
        let work = Work::of(&mut call, read, draft);
        let (pipeline, shared) = (Arc::clone(&draft.pipeline), Arc::clone(&draft.shared));
        let known = Known {
            argument_bytes: draft.argument_bytes,
            tool: &held.tool,
            grant_index: draft.grant_index(),
            cost: draft.price.as_ref(),
            now: draft.started_at,
            resumed: draft.resumed,
            shared: &shared,
        };
        let input = GuardInput::new(&call, caller.session(), known);
        let reviewers = Reviewers::new(&pipeline, &input);
        let context = CallContext::new(self, draft, &held.authority, caller, reviewers);
        let run = async {
            let ran = Box::pin(work.invoke(permit, held.server.connection(), &context));
            outcome(Catch::new(ran).await, &context).await
        };
        // The whole way of the output to the caller can be cancelled, not only the tool.
        let (outcome, cost, code) = tokio::select! {
            biased;
            ended = run => ended,
            reason = self.cancelled(caller, draft.deadline) => {
                let (reason, chunks) = (reason.to_owned(), context.chunks_sent());
                (Outcome::Cancelled { reason, chunks }, None, None)
            }
        };
        context.settle().await;
        let (stream, remarks) = (context.stream_record(), context.remarks());
        let content_hash = context.content_hash(&outcome);
        let cost = cost.or_else(|| draft.price.clone());
        let ending = Ending { outcome, content_hash, stream, remarks, cost, dispatched: true };
        let intent = context.into_intent();
        draft.intent = draft.intent.or(intent);
        (ending, code)
    }

    /// Waits until the call is cancelled, and says by what.
    pub(super) async fn cancelled(
        &self,
        caller: &Arc<dyn Caller>,
        deadline: Instant,
    ) -> &'static str {
        tokio::select! {
            biased;
            () = caller.cancellation().cancelled() => "called off by the caller",
            () = self.running.given_up() => "the kernel is shutting down",
            () = tokio::time::sleep_until(deadline) => "the call took longer than its deadline",
        }
    }
}

/// What a server is asked to do.
enum Work {
    Tool(ToolInvocation),
    Read(Reading),
}

impl Work {
    /// Takes the arguments out of the call, unless guards look at them again. The receipt has its
    /// own copy.
    fn of(call: &mut ToolCall, read: Option<ReadKind>, draft: &Draft) -> Self {
        let arguments = if draft.pipeline.reviews() {
            call.arguments.clone()
        } else {
            std::mem::take(&mut call.arguments)
        };
        let request_id = call.request_id.clone();
        match read {
            None => Self::Tool(ToolInvocation {
                request_id,
                trace_id: draft.trace_id.clone(),
                tool_name: call.tool_name.clone(),
                arguments,
                context: call.context.take(),
            }),
            Some(kind) => {
                let params = match arguments {
                    Value::Object(params) => params,
                    _ => Map::new(),
                };
                Self::Read(Reading { request_id, kind, params })
            }
        }
    }

    async fn invoke(
        self,
        permit: Permit,
        server: &dyn ToolServerConnection,
        context: &CallContext<'_>,
    ) -> Result<ToolOutput, KernelError> {
        match self {
            Self::Tool(invocation) => server.invoke(permit, invocation, context).await,
            Self::Read(reading) => match server.resources() {
                Some(provider) => {
                    Ok(ToolOutput::value(provider.read(permit, reading, context).await?))
                }
                None => Err(KernelError::ToolServerError("the server has only tools".to_owned())),
            },
        }
    }
}

/// What the run came to, after the output guards.
async fn outcome(
    ran: Result<Result<ToolOutput, KernelError>, Panicked>,
    context: &CallContext<'_>,
) -> (Outcome, Option<MonetaryAmount>, Option<i64>) {
    let Ok(result) = ran else { return (failure("the tool panicked"), None, None) };
    // Why a stream broke off says more than the error that the tool made of it.
    match (context.broken(), result) {
        (Some(outcome), _) => (outcome, None, None),
        (None, Err(KernelError::Incomplete(words))) => {
            let reason = shortened(context.review_failure(words).await);
            (Outcome::Incomplete { reason, chunks: context.chunks_sent() }, None, None)
        }
        (None, Err(error)) => {
            let (words, code) = match error {
                KernelError::ToolServerError(detail) => (detail, None),
                KernelError::Answered { code, message } => (message, Some(code)),
                other => (other.to_string(), None),
            };
            // They reach the caller and the receipt, as a result would.
            (failure(&context.review_failure(words).await), None, code)
        }
        (None, Ok(output)) => (context.finish(output.value).await, output.cost, None),
    }
}

/// A tool that failed is a denial in the kernel's name, with the tool's words.
fn failure(detail: &str) -> Outcome {
    Outcome::Denied(Denial::by_kernel(ErrorCode::ToolServerError, detail))
}
