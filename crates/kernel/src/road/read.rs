//! Reads: resources, prompts and completions. They take the same checks, guards and review as a
//! call, change nothing, and leave a child receipt.

use std::sync::{Arc, LazyLock};

use chio_core::canonical;
use chio_core::crypto::Signature;
use chio_core::manifest::ToolDefinition;
use chio_core::receipt::{ChildOutcome, ChildReceipt, TerminalState};
use chio_core::registry::ErrorCode;
use chio_core::signed::Signed;
use serde_json::{Map, Value, json};

use super::{Draft, Ending, Stop};
use crate::call::{Denial, Outcome, ToolCall};
use crate::caller::{Caller, Session};
use crate::error::KernelError;
use crate::kernel::Inner;
use crate::resource_provider::ReadKind;
use crate::store::{Appended, Closing, Entry};

/// A read of a resource or prompt, or a completion, decoded.
#[derive(Debug, Clone)]
pub struct ReadCall {
    /// The kind of read, which decides the grants that cover it.
    pub kind: ReadKind,
    /// The caller, its capability and the server; the arguments are the params of the read.
    pub call: ToolCall,
}

/// How a read ended.
#[derive(Debug, Clone, PartialEq)]
pub enum ReadOutcome {
    /// With what was looked up.
    Value(Value),
    /// It may not be, or the server failed.
    Denied(Denial),
    /// The server answered with an error of its own protocol.
    Answered {
        /// The protocol's code.
        code: i64,
        /// The server's words.
        message: String,
    },
    /// It was cancelled.
    Cancelled(String),
}

/// What comes of a read, with its durable child receipt.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    /// How it ended.
    pub outcome: ReadOutcome,
    /// Its receipt's id.
    pub receipt_id: String,
    /// The kernel's own name of it.
    pub request_id: String,
}

fn plain_tool(name: &str, description: &str) -> Arc<ToolDefinition> {
    Arc::new(ToolDefinition {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema: Map::new(),
        output_schema: None,
        pricing: None,
        has_side_effects: false,
        latency_hint: None,
    })
}

/// What guards see in the place of a tool when something is read.
pub(super) fn read_tool(kind: ReadKind) -> Arc<ToolDefinition> {
    plain_tool(kind.name(), "Looks something up in the server's library.")
}

/// What guards see in the place of a tool when a server speaks outside of any call.
pub(crate) fn session_tool() -> &'static ToolDefinition {
    static TOOL: LazyLock<Arc<ToolDefinition>> =
        LazyLock::new(|| plain_tool("session", "What a server says outside of any call."));
    &TOOL
}

impl Inner {
    /// Runs a read through its stages and records how it ended, in a child receipt.
    pub(crate) async fn read_and_record(
        &self,
        read: Box<ReadCall>,
        caller: Arc<dyn Caller>,
    ) -> Result<Read, KernelError> {
        let ReadCall { kind, mut call } = *read;
        let request_id = call.request_id.clone();
        let ticket = self.running.enter(&request_id);
        kind.name().clone_into(&mut call.tool_name);
        let mut draft = Draft::new(self, &mut call, caller.session())?;
        let parent = call.parent_request_id.clone();
        let ended = self.run_read_stages(kind, Box::new(call), &caller, &mut draft).await;
        let ending = ended.unwrap_or_else(Stop::into_ending);
        draft.keep_back()?;
        let session = caller.session();
        let parent = parent.as_deref().unwrap_or(&session.id);
        let receipt = self.child_of_read(kind, &draft, &ending, session, parent)?;
        let closes = draft.intent.map(|intent| Closing {
            intent,
            refunds: Vec::new(),
            receipt_id: receipt.id.clone(),
            unanswered: draft.unanswered,
            task: None,
            closed_at: self.clock.unix_seconds(),
        });
        let entry = Entry { body: canonical::to_vec(&receipt)?, closes };
        let appended = self.log.append(entry).await;
        ticket.leave(appended.is_ok());
        match appended? {
            Appended::At(_) => {}
            Appended::IntentClosed => return Err(KernelError::Recovered),
        }
        let outcome = read_outcome(ending.outcome, ending.code);
        Ok(Read { outcome, receipt_id: receipt.id, request_id })
    }

    /// The stages of a read up to dispatch and review.
    async fn run_read_stages(
        &self,
        kind: ReadKind,
        call: Box<ToolCall>,
        caller: &Arc<dyn Caller>,
        draft: &mut Draft,
    ) -> Result<Ending, Stop> {
        self.check_open(&call, draft)?;
        let verified = self.verify(&call, draft).await?;
        draft.verified = true;
        let authorized = self.authorize_read(kind, &call, &verified)?;
        let (guarded, need) = self.guard_or_cancelled(&call, authorized, caller, draft).await?;
        if let Some(need) = need {
            return Err(need.unmet("and what only reads cannot wait for it").into());
        }
        let (permit, held) = self.reserve(guarded, draft).await?;
        Ok(self.dispatch(permit, held, call, Some(kind), caller, draft).await)
    }

    fn child_of_read(
        &self,
        kind: ReadKind,
        draft: &Draft,
        ending: &Ending,
        session: &Session,
        parent_request_id: &str,
    ) -> Result<ChildReceipt, KernelError> {
        use TerminalState::{Cancelled, Completed, Incomplete};
        let error = |reason: &str| ChildOutcome::Error(reason.to_owned());
        let (outcome, terminal_state) = match &ending.outcome {
            Outcome::Value(value) => (ChildOutcome::Result(value.clone()), Completed),
            Outcome::Cancelled { reason, .. } => {
                (error(reason), Cancelled { reason: reason.clone() })
            }
            Outcome::Incomplete { reason, .. } => {
                (error(reason), Incomplete { reason: reason.clone() })
            }
            Outcome::Denied(denial) => (error(&denial.reason), Completed),
            Outcome::Stream { .. } => (error("a stream"), Completed),
        };
        let mut metadata = outcome.metadata();
        if let Value::Object(members) = &mut metadata {
            members.extend(account(kind, draft, ending));
        }
        let child = ChildReceipt {
            id: self.unique_name("child-rcpt-"),
            timestamp: self.clock.unix_seconds(),
            session_id: session.id.clone(),
            parent_request_id: parent_request_id.to_owned(),
            request_id: draft.request_id.clone(),
            operation_kind: kind.operation(),
            terminal_state,
            outcome_hash: outcome.hash()?,
            policy_hash: draft.pipeline.policy_hash().to_owned(),
            metadata: Some(metadata),
            kernel_key: self.key.public_key().clone(),
            algorithm: None,
            signature: Signature::blank(),
        };
        Ok(child.signed(&self.key)?)
    }
}

/// What the receipt says about a read besides how it ended.
fn account(kind: ReadKind, draft: &Draft, ending: &Ending) -> Map<String, Value> {
    let mut members = Map::new();
    members.insert("read".to_owned(), json!(kind.name()));
    members.insert("server".to_owned(), json!(draft.tool_server));
    members.insert("parameters".to_owned(), draft.action.parameters.clone());
    members.insert("capability_id".to_owned(), json!(draft.capability_id));
    if let Some(trace_id) = &draft.trace_id {
        members.insert("traceId".to_owned(), json!(trace_id));
    }
    if let Outcome::Denied(denial) = &ending.outcome {
        let (code, name) = (denial.code, denial.code.name());
        let denial = json!({"code": code, "name": name, "guard": denial.guard});
        members.insert("denial".to_owned(), denial);
    }
    if !draft.evidence.is_empty() {
        members.insert("evidence".to_owned(), json!(draft.evidence));
    }
    if !ending.remarks.is_empty() {
        members.insert("post_invocation".to_owned(), json!(ending.remarks));
    }
    members
}

fn read_outcome(outcome: Outcome, code: Option<i64>) -> ReadOutcome {
    match (outcome, code) {
        (Outcome::Value(value), _) => ReadOutcome::Value(value),
        (Outcome::Denied(denial), Some(code)) => {
            ReadOutcome::Answered { code, message: denial.reason }
        }
        (Outcome::Denied(denial), None) => ReadOutcome::Denied(denial),
        (Outcome::Cancelled { reason, .. } | Outcome::Incomplete { reason, .. }, _) => {
            ReadOutcome::Cancelled(reason)
        }
        (Outcome::Stream { .. }, _) => {
            let reason = "expected one value from the server, found a stream";
            ReadOutcome::Denied(Denial::by_kernel(ErrorCode::ToolServerError, reason))
        }
    }
}
