//! Dispatch: the tool runs, until it ends, fails, takes too long or is cancelled.

use std::sync::Arc;

use chio_core::money::MonetaryAmount;
use chio_core::registry::ErrorCode;
use chio_core::text::members;
use tokio::time::Instant;

use super::draft::Open;
use super::reserve::Held;
use super::{Draft, Ending, Permit, Reviewers};
use crate::call::{Denial, Outcome, ServerError, ToolCall, shortened};
use crate::call_context::CallContext;
use crate::caller::Caller;
use crate::catch::{Catch, Panicked};
use crate::error::KernelError;
use crate::guard::GuardInput;
use crate::kernel::Inner;
use crate::resource_provider::Reading;
use crate::tool_server::{ToolInvocation, ToolOutput, ToolServerConnection};
use crate::work::Work;

impl Inner {
    /// The stages dispatch and review, for a tool or for a read.
    pub(super) async fn dispatch(
        &self,
        permit: Permit,
        held: Held,
        mut call: Box<ToolCall>,
        caller: &Arc<dyn Caller>,
        draft: &mut Draft,
    ) -> Ending {
        if caller.cancellation().is_cancelled() {
            return Ending::cancelled("called off before it began");
        }
        let _changes = held.tool.has_side_effects.then(|| self.running.change());
        let errand = Errand::of(&mut call, draft);
        let work = Work::until(Some(draft.deadline));
        let input = GuardInput {
            grant_index: draft.grant_index(),
            cost: draft.price(),
            ..GuardInput::new(&call, caller.session(), &held.tool, &draft.memo, &work, draft)
        };
        let reviewers = Reviewers::new(&draft.pipeline, &input);
        let context = CallContext::new(self, draft, &held.authority, caller, reviewers);
        let run = async {
            let ran = Box::pin(errand.invoke(permit, held.server.connection(), &context));
            outcome(Catch::new(ran).await, &context).await
        };
        // The whole way of the output to the caller can be cancelled, not only the tool.
        let Ran { outcome, cost, answered } = tokio::select! {
            biased;
            ran = run => ran,
            reason = self.cancelled(caller, draft.deadline) => {
                let (reason, chunks) = (reason.to_owned(), context.chunks_sent());
                Outcome::Cancelled { reason, chunks }.into()
            }
        };
        context.settle().await;
        let (stream, remarks) = (context.stream_record(), context.remarks());
        let content_hash = context.content_hash(&outcome);
        let cost = cost.or_else(|| draft.price().cloned());
        let intent = context.into_intent();
        draft.open = draft.open.take().or(intent.map(Open::from));
        Ending { outcome, content_hash, stream, remarks, cost, dispatched: true, answered }
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
enum Errand {
    Tool(ToolInvocation),
    Read(Reading),
}

impl Errand {
    /// Takes the arguments out of the call, unless guards look at them again. The receipt has its
    /// own copy.
    fn of(call: &mut ToolCall, draft: &Draft) -> Self {
        let arguments = if draft.pipeline.reviews() {
            call.arguments.clone()
        } else {
            std::mem::take(&mut call.arguments)
        };
        let request_id = call.request_id.clone();
        // SECURITY: no guard judges it, so what a guard would keep out of a receipt does not leave.
        let meta = call.meta.take().map(|meta| draft.pipeline.redacted(&meta).unwrap_or(meta));
        match draft.read {
            None => Self::Tool(ToolInvocation {
                request_id,
                trace_id: draft.trace_id.clone(),
                tool_name: call.tool_name.clone(),
                arguments,
                context: call.context.take(),
                meta,
            }),
            Some(kind) => {
                Self::Read(Reading { request_id, kind, params: members(arguments), meta })
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

/// What a run came to, after the output guards.
struct Ran {
    outcome: Outcome,
    /// What it cost, as its server says.
    cost: Option<MonetaryAmount>,
    /// The error that its server answered with.
    answered: Option<ServerError>,
}

impl From<Outcome> for Ran {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, cost: None, answered: None }
    }
}

/// Passes what a server answered through the output guards.
async fn outcome(
    ran: Result<Result<ToolOutput, KernelError>, Panicked>,
    context: &CallContext<'_>,
) -> Ran {
    let Ok(result) = ran else { return failure("the tool panicked").into() };
    // Why a stream broke off says more than the error that the tool made of it.
    match (context.broken(), result) {
        (Some(outcome), _) => outcome.into(),
        (None, Err(KernelError::Incomplete(words))) => {
            let reason = shortened(context.review_failure(words).await);
            Outcome::Incomplete { reason, chunks: context.chunks_sent() }.into()
        }
        (None, Err(error)) => {
            let (words, answered) = match error {
                KernelError::ToolServerError(detail) => (detail, None),
                KernelError::Answered { code, message, data } => {
                    let data = match data {
                        Some(data) => context.review_data(*data).await.map(Box::new),
                        None => None,
                    };
                    (message, Some(ServerError { code, data }))
                }
                other => (other.to_string(), None),
            };
            // They reach the caller and the receipt, as a result would.
            Ran { answered, ..failure(&context.review_failure(words).await).into() }
        }
        (None, Ok(ToolOutput { value, cost })) => {
            Ran { cost, ..context.finish(value).await.into() }
        }
    }
}

/// A tool that failed is a denial in the kernel's name, with the tool's words.
fn failure(detail: &str) -> Outcome {
    Outcome::Denied(Denial::by_kernel(ErrorCode::ToolServerError, detail))
}
