//! A call on its way through the kernel, and what comes of it.

use chio_core::capability::{CapabilityToken, ChioScope, DpopProof};
use chio_core::crypto::PublicKey;
use chio_core::governance::{ApprovalToken, GovernedTransactionIntent, ModelMetadata};
use chio_core::money::MonetaryAmount;
use chio_core::receipt::ChioReceipt;
use chio_core::registry::ErrorCode;
use serde_json::{Map, Value};

/// One call, decoded and routed.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// The kernel's own name of the call; see [`crate::ChioKernel::new_request_id`].
    pub request_id: String,
    /// The authority that is presented.
    pub token: CapabilityToken,
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
    /// Why, for how much, on whose behalf.
    pub governed_intent: Option<Box<GovernedTransactionIntent>>,
    /// An approval.
    pub approval: Option<Box<ApprovalToken>>,
    /// The model that asks.
    pub model: Option<Box<ModelMetadata>>,
    /// Members for the receipt's metadata: how the call got here.
    pub evidence: Map<String, Value>,
    /// A denial that was already decided on the way; the kernel signs it and runs nothing.
    pub refusal: Option<Denial>,
}

impl ToolCall {
    /// A plain call by the token's own subject.
    #[must_use]
    pub fn new(
        request_id: String,
        token: CapabilityToken,
        server_id: impl Into<String>,
        tool_name: impl Into<String>,
        arguments: Value,
    ) -> Self {
        Self {
            request_id,
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
            evidence: Map::new(),
            refusal: None,
        }
    }
}

/// Why a call did not run, or came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
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

    /// A denial by the kernel itself.
    #[must_use]
    pub fn by_kernel(code: ErrorCode, reason: impl Into<String>) -> Self {
        Self { code, guard: Self::KERNEL.to_owned(), reason: shortened(reason.into()) }
    }

    /// A denial by a guard.
    #[must_use]
    pub fn by_guard(guard: &str, reason: impl Into<String>) -> Self {
        let guard = guard.to_owned();
        Self { code: ErrorCode::GuardDenied, guard, reason: shortened(reason.into()) }
    }
}

/// The most that somebody else's words may take up in a receipt, in bytes: it has to fit into a
/// frame.
const MAX_WORDS: usize = 16 << 10;

/// Words of guards, tools and callers, cut where they are too long for a receipt.
pub(crate) fn shortened(mut words: String) -> String {
    words.truncate(words.floor_char_boundary(MAX_WORDS));
    words
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// With a value.
    Value(Value),
    /// With the end of a stream of so many chunks.
    Stream {
        /// How many chunks the caller was given.
        chunks: u64,
    },
    /// It did not run, or its tool failed.
    Denied(Denial),
    /// Called off.
    Cancelled {
        /// Why.
        reason: String,
        /// How many chunks the caller was given.
        chunks: u64,
    },
    /// Broken off.
    Incomplete {
        /// Why.
        reason: String,
        /// How many chunks the caller was given.
        chunks: u64,
    },
}

/// What `evaluate` answers: an outcome and its durable, signed receipt.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// How it ended.
    pub outcome: Outcome,
    /// The signed account of it.
    pub receipt: ChioReceipt,
    /// The receipt's canonical form, as it is in the log.
    pub receipt_bytes: Vec<u8>,
    /// Its place in the kernel's log, from 1.
    pub seq: u64,
    /// What it was charged.
    pub cost: Option<MonetaryAmount>,
}
