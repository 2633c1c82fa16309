//! A call on its way through the kernel, and what comes of it.

use std::sync::Arc;

use chio_core::canonical::Written;
use chio_core::capability::{ChioScope, DpopProof, PresentedToken};
use chio_core::crypto::PublicKey;
use chio_core::fidelity::BridgeFidelity;
use chio_core::governance::{ApprovalToken, GovernedTransactionIntent, ModelMetadata};
use chio_core::money::MonetaryAmount;
use chio_core::protocol::DiscoveryProtocol;
use chio_core::receipt::SealedReceipt;
use chio_core::registry::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::store::{CallTask, TaskState};

/// One call, decoded and routed.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// The kernel's own name of the call; see [`crate::ChioKernel::new_request_id`].
    pub request_id: String,
    /// The caller's name of the call, if that is another; an approval may name it.
    pub origin_request_id: Option<String>,
    /// The authority that is presented.
    pub token: PresentedToken,
    /// Who calls; must be the token's subject.
    pub agent: PublicKey,
    /// The server called.
    pub server_id: String,
    /// The tool called.
    pub tool_name: String,
    /// The arguments.
    pub arguments: Value,
    /// The part of the token's scope that the route kept; the whole when absent. A scope that is
    /// not within the token's is denied.
    pub scope: Option<ChioScope>,
    /// Proof that the caller holds the subject's key.
    pub dpop_proof: Option<Box<DpopProof>>,
    /// The purpose, the amount and the principal that the caller states.
    pub governed_intent: Option<Box<GovernedTransactionIntent>>,
    /// An approval of exactly this call, which is used once.
    pub approval: Option<Box<ApprovalToken>>,
    /// The model that asks.
    pub model: Option<Box<ModelMetadata>>,
    /// The call that this one is made for, if that runs here.
    pub parent_request_id: Option<String>,
    /// The stored task that this call is.
    pub task_id: Option<String>,
    /// The task that this call is, to be stored with what comes of it.
    pub task: Option<Arc<CallTask>>,
    /// What the tool is addressed as, which may be another protocol than its own.
    pub target: DiscoveryProtocol,
    /// How honestly the caller's protocol can present the tool.
    pub fidelity: Option<Box<BridgeFidelity>>,
    /// The act that the call is part of.
    pub trace_id: Option<String>,
    /// What the caller's protocol calls the thing that is called, and the message that calls it:
    /// the tool server is told.
    pub context: Option<Value>,
    /// What the client adds to its request for the server: no argument, and no part of the receipt.
    pub meta: Option<Value>,
    /// Members for the receipt's metadata: how the call got here.
    pub evidence: Vec<(&'static str, Written)>,
    /// A denial that was already decided on the way; the kernel signs it and runs nothing.
    pub refusal: Option<Denial>,
}

impl ToolCall {
    /// A plain call by the token's own subject.
    pub fn new(
        request_id: String,
        token: impl Into<PresentedToken>,
        server_id: impl Into<String>,
        tool_name: impl Into<String>,
        arguments: Value,
    ) -> Self {
        let token = token.into();
        Self {
            request_id,
            origin_request_id: None,
            agent: token.subject.clone(),
            token,
            server_id: server_id.into(),
            tool_name: tool_name.into(),
            arguments,
            scope: None,
            dpop_proof: None,
            governed_intent: None,
            approval: None,
            model: None,
            parent_request_id: None,
            task_id: None,
            task: None,
            target: DiscoveryProtocol::Native,
            fidelity: None,
            trace_id: None,
            context: None,
            meta: None,
            evidence: Vec::new(),
            refusal: None,
        }
    }
}

/// Why a call did not run, or came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("denied by {guard}: {reason} [{code}]")]
pub struct Denial {
    /// The registered kind.
    pub code: ErrorCode,
    /// Who says so: a guard's name, or the kernel's.
    pub guard: String,
    /// Why, for people. Never holds an argument's value.
    pub reason: String,
}

impl Denial {
    /// The name under which the kernel itself denies.
    pub const KERNEL: &'static str = "kernel";
    /// The name in the place of a guard's when the tool server could not be had, or failed.
    pub const TOOL_SERVER: &'static str = "tool_server";

    /// A denial by the kernel itself.
    pub fn by_kernel(code: ErrorCode, reason: impl Into<String>) -> Self {
        Self { code, guard: Self::KERNEL.to_owned(), reason: shortened(reason.into()) }
    }

    /// The end of a call that its tool server did not take, or answered with an error.
    pub fn by_tool_server(reason: impl Into<String>) -> Self {
        let (code, guard) = (ErrorCode::ToolServerError, Self::TOOL_SERVER.to_owned());
        Self { code, guard, reason: shortened(reason.into()) }
    }

    /// A denial by a guard.
    pub fn by_guard(guard: &str, reason: impl Into<String>) -> Self {
        let guard = guard.to_owned();
        Self { code: ErrorCode::GuardDenied, guard, reason: shortened(reason.into()) }
    }
}

/// The most bytes that words of guards, tools and callers may take up in a receipt, which has to
/// fit into a frame.
const MAX_WORDS: usize = 16 << 10;

/// Words of guards, tools and callers, cut where they are too long for a receipt.
pub(crate) fn shortened(mut words: String) -> String {
    words.truncate(words.floor_char_boundary(MAX_WORDS));
    words
}

/// How a call ended. Whether it ran, its receipt says ([`chio_core::receipt::Execution`]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ended", content = "with", rename_all = "snake_case")]
pub enum Outcome {
    /// With a value.
    Value(Value),
    /// With the end of a stream of this many chunks.
    Stream {
        /// How many chunks the caller was given.
        chunks: u64,
    },
    /// It was refused, its tool server failed, or what came of it may not leave.
    Denied(Denial),
    /// Its caller cancelled it.
    Cancelled {
        /// The reason, for the receipt and the caller.
        reason: String,
        /// How many chunks the caller was given.
        chunks: u64,
    },
    /// It was given to its tool, and its end is not known: the tool took too long or died, or the
    /// kernel stopped.
    Incomplete {
        /// The reason, for the receipt and the caller.
        reason: String,
        /// How many chunks the caller was given.
        chunks: u64,
    },
}

impl Outcome {
    /// The state of a task whose call ended so, as far as its protocol knows no better.
    pub const fn task_state(&self) -> TaskState {
        match self {
            Self::Value(_) | Self::Stream { .. } => TaskState::Completed,
            Self::Cancelled { .. } => TaskState::Cancelled,
            Self::Denied(_) | Self::Incomplete { .. } => TaskState::Failed,
        }
    }
}

/// What `evaluate` answers: an outcome and its durable, signed receipt.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// How it ended.
    pub outcome: Outcome,
    /// The signed account of it, as it is in the log.
    pub receipt: SealedReceipt,
    /// Its place in the kernel's log, from 1.
    pub seq: u64,
    /// What it was charged.
    pub cost: Option<MonetaryAmount>,
    /// The error of its own protocol that the tool server answered with.
    pub answered: Option<ServerError>,
}

/// An error of a tool server's own protocol. Its words are in the denial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerError {
    /// The protocol's code.
    pub code: i64,
    /// What the server says for programs, as far as the output guards let it leave.
    pub data: Option<Box<Value>>,
}
