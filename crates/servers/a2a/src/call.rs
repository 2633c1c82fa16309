//! One call of a tool: checked here, sent, checked again, and told on.

use std::sync::atomic::Ordering;

use chio_core::capability::CapabilityToken;
use chio_core::capability_ref::CapabilityBridge;
use chio_kernel::{CallContext, ToolInvocation, ToolOutput};
use chio_net::client::EventStream;
use chio_net::sse::SseLimits;
use serde_json::{Map, Value};

use crate::adapter::Inner;
use crate::answer::{self, Answer};
use crate::auth::{Credentials, negotiate};
use crate::bridge::A2aAgentBridge;
use crate::discovery::{DiscoveredAgent, Tool};
use crate::error::AgentError;
use crate::exchange::Exchange;
use crate::input::Operation;
use crate::registry::{Bound, Seen};
use crate::wire::{self, Envelope, Outgoing};

/// One call, when everything that can be checked here has been.
struct Call<'a> {
    agent: &'a DiscoveredAgent,
    tool: &'a Tool,
    operation: Operation,
    envelope: Envelope,
}

/// What an answer came as.
enum Answered {
    Whole(Option<Value>),
    Stream(Box<EventStream>),
}

impl Inner {
    /// Runs a call. When the agent is gone from where it was and speaks somewhere else now, there.
    pub(crate) async fn call(
        &self,
        invocation: &ToolInvocation,
        context: &CallContext<'_>,
    ) -> Result<ToolOutput, AgentError> {
        let agent = self.agent();
        context.not_sent();
        match self.attempt(&agent, invocation, context).await {
            Err(error) if error.says_gone() => match self.look_again(&agent).await {
                // What was answered once has begun, whatever becomes of this.
                Some(fresh) => self.attempt(&fresh, invocation, context).await,
                None => Err(error),
            },
            other => other,
        }
    }

    async fn attempt(
        &self,
        agent: &DiscoveredAgent,
        invocation: &ToolInvocation,
        context: &CallContext<'_>,
    ) -> Result<ToolOutput, AgentError> {
        let tool = agent.tool(&invocation.tool_name)?;
        let arguments = invocation.arguments.clone();
        let operation = Operation::read(arguments, tool.accepts, agent.abilities)?;
        if let Some(task_id) = operation.task_id() {
            self.registry.check(task_id, &bound(agent, tool, context)).await?;
        }
        if let Operation::Send(send) = &operation {
            // SECURITY: the agent may remember by these what was said before.
            let bound = bound(agent, tool, context);
            self.registry.check_references(&send.reference_task_ids, &bound).await?;
            if let Some(context_id) = &send.context_id {
                self.registry.claim(context_id, bound, self.now()).await?;
            }
        }
        let capability = self.transport.config().capability.as_deref();
        let envelope = Envelope {
            message_id: format!("chio-{}", invocation.request_id),
            skill_id: tool.id.clone(),
            skill_name: tool.name.clone(),
            output_modes: tool.output_modes.clone(),
            lineage: match operation {
                Operation::Send(_) => lineage(context, capability)?,
                _ => Map::new(),
            },
        };
        let call = Call { agent, tool, operation, envelope };
        let (id, credentials, answered) = self.exchange(&call, context).await?;
        let (transport, interface) = (&self.transport, &agent.interface);
        match answered {
            Answered::Whole(result) => {
                let dialect = interface.dialect;
                let answer = answer::read(&call.operation, dialect, result)?;
                self.record(&call, &answer, context).await?;
                Ok(ToolOutput::value(answer.value))
            }
            Answered::Stream(events) => {
                let exchange = Exchange { transport, credentials: &credentials, interface, id };
                self.follow(&call, &exchange, events, context).await
            }
        }
    }

    /// Sends a call; once more, with a fresh token, when the one that it had was not taken.
    async fn exchange(
        &self,
        call: &Call<'_>,
        context: &CallContext<'_>,
    ) -> Result<(u64, Credentials, Answered), AgentError> {
        let (transport, interface) = (&self.transport, &call.agent.interface);
        let was_sent = !context.is_not_sent();
        let mut retried = false;
        loop {
            let credentials = negotiate(transport, &self.tokens, call.agent, call.tool).await?;
            let id = self.next_id.fetch_add(1, Ordering::Relaxed);
            let outgoing = wire::outgoing(&call.operation, &call.envelope, interface, id)?;
            let exchange = Exchange { transport, credentials: &credentials, interface, id };
            context.sent();
            let answered = self.send(call, &exchange, &outgoing).await;
            match answered {
                Err(error @ AgentError::NotReached(_)) => {
                    if !was_sent && !retried {
                        context.not_sent();
                    }
                    return Err(error);
                }
                Err(error)
                    if error.says_unauthorized() && !credentials.tokens.is_empty() && !retried =>
                {
                    retried = true;
                    for (key, token) in &credentials.tokens {
                        self.tokens.forget(key, token).await;
                    }
                }
                answered => return Ok((id, credentials, answered?)),
            }
        }
    }

    async fn send(
        &self,
        call: &Call<'_>,
        exchange: &Exchange<'_>,
        outgoing: &Outgoing,
    ) -> Result<Answered, AgentError> {
        if !call.operation.streams() {
            return exchange.call(outgoing).await.map(Answered::Whole);
        }
        let limits = self.transport.config().limits;
        let limits = SseLimits { max_line: limits.line, max_event: limits.event };
        exchange.stream(outgoing, limits).await.map(Box::new).map(Answered::Stream)
    }

    /// Passes on each event as one chunk, until the task ends or waits for input.
    async fn follow(
        &self,
        call: &Call<'_>,
        exchange: &Exchange<'_>,
        mut events: Box<EventStream>,
        context: &CallContext<'_>,
    ) -> Result<ToolOutput, AgentError> {
        let limits = self.transport.config().limits;
        let (mut chunks, mut bytes) = (0_usize, 0_usize);
        let mut task = match &call.operation {
            Operation::Subscribe { id } => Some(id.clone()),
            _ => None,
        };
        loop {
            let event = events.next().await.map_err(|error| {
                AgentError::Incomplete(format!("after {chunks} events: {error}"))
            })?;
            let Some(event) = event else {
                let problem = "the agent ended it before the task had ended";
                return Err(AgentError::Incomplete(format!("after {chunks} events: {problem}")));
            };
            chunks += 1;
            bytes = bytes.saturating_add(event.data.len());
            if chunks > limits.chunks || bytes > limits.stream {
                return Err(AgentError::Incomplete(format!(
                    "expected at most {} events and {} bytes, found more",
                    limits.chunks, limits.stream
                )));
            }
            let dialect = exchange.interface.dialect;
            let answer = exchange.event(&event).map_err(without_codes)?;
            let answer = answer::event(dialect, answer)?;
            // A stream is about one task.
            let seen = answer.seen_task.as_ref().map(|seen_task| seen_task.task_id.clone());
            task.iter().try_for_each(|id| answer::about(&answer, id))?;
            task = task.or(seen);
            self.record(call, &answer, context).await?;
            if context.chunk(answer.value).await.is_err() || answer.ends {
                return Ok(ToolOutput::stream_end());
            }
        }
    }

    fn now(&self) -> u64 {
        self.transport.config().clock.unix_seconds()
    }

    async fn record(
        &self,
        call: &Call<'_>,
        answer: &Answer,
        context: &CallContext<'_>,
    ) -> Result<(), AgentError> {
        let now = self.now();
        if let Some(context_id) = answer.context_id() {
            // An agent may have one for all its callers, who then cannot name it.
            let bound = bound(call.agent, call.tool, context);
            let _ = self.registry.claim(context_id, bound, now).await;
        }
        let Some(seen_task) = answer.seen_task.clone() else { return Ok(()) };
        let source = match &call.operation {
            Operation::Send(send) if send.stream => Seen::StreamEvent,
            Operation::Subscribe { .. } => Seen::SubscribeEvent,
            Operation::Get { .. } => Seen::GetTask,
            Operation::Cancel { .. } => Seen::CancelTask,
            _ => Seen::SendMessage,
        };
        self.registry.record(seen_task, bound(call.agent, call.tool, context), source, now).await
    }
}

/// What happens in the middle of a stream is no reason to send anything again.
fn without_codes(error: AgentError) -> AgentError {
    match error {
        AgentError::RemoteRequestFailed { detail, .. } => {
            AgentError::RemoteRequestFailed { status: None, code: None, detail }
        }
        other => other,
    }
}

/// What a task of this tool belongs to.
fn bound(agent: &DiscoveredAgent, tool: &Tool, context: &CallContext<'_>) -> Bound {
    Bound {
        tool_name: tool.id.clone(),
        server_id: agent.manifest.server_id.clone(),
        interface_url: agent.interface.url.clone(),
        protocol_binding: agent.interface.binding.into_str().to_owned(),
        tenant: agent.interface.tenant.clone(),
        partner: agent.partner.clone(),
        subject: Some(context.subject().to_hex()),
    }
}

/// Where the call comes from, as `metadata.chio` carries it to another organisation.
fn lineage(
    context: &CallContext<'_>,
    presents: Option<&CapabilityToken>,
) -> Result<Map<String, Value>, AgentError> {
    let unsayable = || AgentError::Lifecycle("the call's lineage cannot be written".to_owned());
    let onward = context
        .onward(A2aAgentBridge.protocol(), presents)
        .map_err(|_| AgentError::Lifecycle("the call's lineage cannot be signed".to_owned()))?;
    let mut members = Map::new();
    A2aAgentBridge.inject(&mut members, &onward.capability_ref).map_err(|_| unsayable())?;
    let chain = serde_json::to_value(&onward.call_chain).map_err(|_| unsayable())?;
    members.insert("callChain".to_owned(), chain);
    if let Some(continuation) = &onward.continuation {
        let continuation = serde_json::to_value(continuation).map_err(|_| unsayable())?;
        members.insert("continuation".to_owned(), continuation);
    }
    Ok(members)
}
