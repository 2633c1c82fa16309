//! Reads: resources, prompts and completions. They take the same road as a call, with other grants;
//! they change nothing, wait for nothing, and leave a child receipt. So do methods that are no part of
//! the protocol, but that what they change is not known: an intent comes before them.

use std::sync::{Arc, LazyLock};

use chio_core::canonical;
use chio_core::capability::PresentedToken;
use chio_core::crypto::{PublicKey, Signature};
use chio_core::manifest::ToolDefinition;
use chio_core::principal::NamedPrincipal;
use chio_core::receipt::{
    ChildOutcome, ChildReceipt, EXECUTION_MEMBER, SealedReceipt, TerminalState,
};
use chio_core::registry::ErrorCode;
use chio_core::signed::Signed;
use serde_json::{Map, Value, json};

use super::{Draft, Ending};
use crate::call::{Denial, Outcome, ServerError, ToolCall};
use crate::caller::Session;
use crate::error::KernelError;
use crate::kernel::Inner;
use crate::resource_provider::ReadKind;
use crate::store::Intent;

/// A read of a resource or prompt, or a completion, as an edge decodes it.
#[derive(Debug, Clone)]
pub struct ReadRequest {
    /// The kind of read, which decides the grants that cover it.
    pub kind: ReadKind,
    /// The authority that is presented.
    pub token: PresentedToken,
    /// The subject key of the caller, which has to be the token's.
    pub agent: PublicKey,
    /// The tool server that is read from.
    pub server_id: String,
    /// The params of the read, as the server takes them.
    pub params: Map<String, Value>,
    /// What the client adds to its request for the server, such as `traceparent`.
    pub meta: Option<Value>,
}

impl ReadRequest {
    /// The call that takes the road: it states no intent, and brings no proof and no approval.
    pub(crate) fn into_call(self, request_id: String) -> ToolCall {
        let Self { kind, token, agent, server_id, params, meta } = self;
        let params = Value::Object(params);
        let call = ToolCall::new(request_id, token, server_id, kind.name(), params);
        ToolCall { agent, meta, ..call }
    }
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
        /// What it says for programs.
        data: Option<Box<Value>>,
    },
    /// It was cancelled.
    Cancelled(String),
    /// The server was asked, and its answer did not come.
    Incomplete(String),
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

fn plain_tool(name: &str, description: &str, has_side_effects: bool) -> Arc<ToolDefinition> {
    Arc::new(ToolDefinition {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema: Map::new(),
        output_schema: None,
        pricing: None,
        has_side_effects,
        latency_hint: None,
    })
}

/// What guards see in the place of a tool when something is read.
pub(super) fn read_tool(kind: ReadKind) -> Arc<ToolDefinition> {
    let description = if kind.has_side_effects() {
        "Does what only the server knows: it is no part of the protocol."
    } else {
        "Looks something up in the server's library."
    };
    plain_tool(kind.name(), description, kind.has_side_effects())
}

/// What guards see in the place of a tool when a server speaks outside of any call.
pub(crate) fn session_tool() -> &'static ToolDefinition {
    static TOOL: LazyLock<Arc<ToolDefinition>> =
        LazyLock::new(|| plain_tool("session", "What a server says outside of any call.", false));
    &TOOL
}

impl Inner {
    /// Signs the child receipt of a read.
    pub(super) fn sign_read(
        &self,
        kind: ReadKind,
        draft: &Draft,
        ending: &Ending,
        session: &Session,
    ) -> Result<SealedReceipt, KernelError> {
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
            members.extend(account(kind, &draft.record, ending));
            if let Some(principal) = session.principal.named() {
                members.insert(NamedPrincipal::METADATA_MEMBER.to_owned(), json!(principal));
            }
        }
        let child = ChildReceipt {
            id: self.unique_name("child-rcpt-"),
            timestamp: self.clock.unix_seconds(),
            session_id: session.id.clone(),
            parent_request_id: session.id.clone(),
            request_id: draft.record.request_id.clone(),
            operation_kind: kind.operation(),
            terminal_state,
            outcome_hash: outcome.hash()?,
            policy_hash: draft.pipeline.policy_hash().to_owned(),
            metadata: Some(metadata),
            kernel_key: self.key.public_key().clone(),
            algorithm: None,
            signature: Signature::blank(),
        };
        let child = child.signed(&self.key)?;
        Ok(SealedReceipt { bytes: canonical::to_vec(&child)?, id: child.id })
    }
}

/// What the receipt says about a read besides how it ended.
fn account(kind: ReadKind, record: &Intent, ending: &Ending) -> Map<String, Value> {
    let mut members = Map::new();
    members.insert("read".to_owned(), json!(kind.name()));
    members.insert("server".to_owned(), json!(record.tool_server));
    members.insert("parameters".to_owned(), record.action.parameters.clone());
    members.insert("capability_id".to_owned(), json!(record.capability_id));
    if let Outcome::Denied(denial) = &ending.outcome {
        let (code, name) = (denial.code, denial.code.name());
        let denial = json!({"code": code, "name": name, "guard": denial.guard});
        members.insert("denial".to_owned(), denial);
    }
    if let Some(execution) = ending.execution() {
        members.insert(EXECUTION_MEMBER.to_owned(), json!(execution));
    }
    if !record.evidence.is_empty() {
        members.insert("evidence".to_owned(), json!(record.evidence));
    }
    if !ending.remarks.is_empty() {
        members.insert("post_invocation".to_owned(), json!(ending.remarks));
    }
    members
}

impl ReadOutcome {
    /// What a read came to, and the error that its server answered with.
    pub(crate) fn of(outcome: Outcome, answered: Option<ServerError>) -> Self {
        match (outcome, answered) {
            (Outcome::Value(value), _) => Self::Value(value),
            (Outcome::Denied(denial), Some(ServerError { code, data })) => {
                Self::Answered { code, message: denial.reason, data }
            }
            (Outcome::Denied(denial), None) => Self::Denied(denial),
            (Outcome::Cancelled { reason, .. }, _) => Self::Cancelled(reason),
            (Outcome::Incomplete { reason, .. }, _) => Self::Incomplete(reason),
            (Outcome::Stream { .. }, _) => {
                let reason = "expected one value from the server, found a stream";
                Self::Denied(Denial::by_kernel(ErrorCode::ToolServerError, reason))
            }
        }
    }
}
