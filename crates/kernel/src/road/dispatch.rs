//! Dispatch: the tool runs, until it ends, fails, takes too long or is cancelled.

use std::sync::Arc;

use chio_core::money::MonetaryAmount;
use chio_core::receipt::Execution;
use chio_core::registry::ErrorCode;
use chio_core::text::members;
use chio_core::tool_result::ToolResult;
use tokio::time::Instant;

use super::draft::Open;
use super::reserve::Held;
use super::{Draft, Ending, Permit, Reviewers, Stop};
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
        let Ran { outcome, execution, cost, answered } = tokio::select! {
            biased;
            ran = run => ran,
            interrupt = self.interrupted(caller, draft.deadline) => interrupt.at_tool(&context),
        };
        context.settle().await;
        let (stream, remarks) = (context.stream_record(), context.remarks());
        let content_hash = context.content_hash(&outcome);
        let cost = cost.or_else(|| draft.price().cloned());
        let intent = context.into_intent();
        draft.open = draft.open.take().or(intent.map(Open::from));
        Ending { outcome, execution, content_hash, stream, remarks, cost, answered }
    }

    /// Waits until the call is ended from outside.
    pub(super) async fn interrupted(
        &self,
        caller: &Arc<dyn Caller>,
        deadline: Instant,
    ) -> Interrupt {
        tokio::select! {
            biased;
            () = caller.cancellation().cancelled() => Interrupt::ByCaller,
            () = self.running.given_up() => Interrupt::Shutdown,
            () = tokio::time::sleep_until(deadline) => Interrupt::Deadline,
        }
    }
}

/// What ends a call from outside.
#[derive(Debug, Clone, Copy)]
pub(super) enum Interrupt {
    ByCaller,
    Shutdown,
    Deadline,
}

impl Interrupt {
    const fn reason(self) -> &'static str {
        match self {
            Self::ByCaller => "called off by the caller",
            Self::Shutdown => "the kernel is shutting down",
            Self::Deadline => "the call took longer than its deadline",
        }
    }

    /// Why a call does not reach its tool: only its caller cancels a call.
    pub(super) fn before_dispatch(self) -> Stop {
        match self {
            Self::ByCaller => Stop::Cancelled(self.reason()),
            Self::Shutdown | Self::Deadline => {
                Denial::by_kernel(ErrorCode::InternalError, self.reason()).into()
            }
        }
    }

    /// The end of a call that its tool server has.
    fn at_tool(self, context: &CallContext<'_>) -> Ran {
        let (reason, chunks) = (self.reason().to_owned(), context.chunks_sent());
        let execution = if context.is_not_sent() { Execution::NotBegun } else { Execution::Begun };
        let outcome = match (self, execution) {
            (Self::ByCaller, _) => Outcome::Cancelled { reason, chunks },
            (_, Execution::NotBegun) => Outcome::Denied(Denial::by_tool_server(reason)),
            _ => Outcome::Incomplete { reason, chunks },
        };
        Ran::new(outcome, execution)
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
        let meta = call.meta.take();
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
                None => {
                    context.not_sent();
                    Err(KernelError::ToolServerError("the server has only tools".to_owned()))
                }
            },
        }
    }
}

/// What a run came to, after the output guards.
struct Ran {
    outcome: Outcome,
    /// What became of it at its tool.
    execution: Execution,
    /// What it cost, as its server says.
    cost: Option<MonetaryAmount>,
    /// The error that its server answered with.
    answered: Option<ServerError>,
}

impl Ran {
    const fn new(outcome: Outcome, execution: Execution) -> Self {
        Self { outcome, execution, cost: None, answered: None }
    }
}

/// Passes what a server answered through the output guards.
async fn outcome(
    ran: Result<Result<ToolOutput, KernelError>, Panicked>,
    context: &CallContext<'_>,
) -> Ran {
    let result = match (context.broken(), ran) {
        // Why a stream broke off says more than the error that the tool made of it.
        (Some(outcome), Ok(_)) => return Ran::new(outcome, Execution::Begun),
        (_, Ok(result)) => result,
        (_, Err(Panicked)) => Err(KernelError::Incomplete("the tool panicked".to_owned())),
    };
    let error = match result {
        Ok(ToolOutput { value, cost }) => {
            let outcome = context.finish(value).await;
            let execution = ended(&outcome, context);
            return Ran { cost, ..Ran::new(outcome, execution) };
        }
        Err(error) => error,
    };
    let is_lost = matches!(error, KernelError::Incomplete(_));
    let (words, answered) = match error {
        KernelError::ToolServerError(words) | KernelError::Incomplete(words) => (words, None),
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
    let reason = shortened(context.review_failure(words).await);
    let not_sent = context.is_not_sent();
    if is_lost && !not_sent {
        let chunks = context.chunks_sent();
        return Ran::new(Outcome::Incomplete { reason, chunks }, Execution::Begun);
    }
    let outcome = Outcome::Denied(Denial::by_tool_server(reason));
    let execution = if not_sent { Execution::NotBegun } else { Execution::Failed };
    Ran { answered, ..Ran::new(outcome, execution) }
}

/// What became of a call whose tool returned.
fn ended(outcome: &Outcome, context: &CallContext<'_>) -> Execution {
    let failed = match outcome {
        Outcome::Value(value) => ToolResult::new(value).is_error(),
        Outcome::Stream { .. } => context.says_failed(),
        // The rest of its stream did not reach the caller.
        Outcome::Cancelled { .. } | Outcome::Incomplete { .. } => return Execution::Begun,
        Outcome::Denied(_) => false,
    };
    if failed { Execution::Failed } else { Execution::Completed }
}
