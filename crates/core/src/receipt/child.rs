//! Receipts of requests inside a call: nested questions, reads of resources and prompts.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::canonical::{self, CanonicalError};
use crate::crypto::{Algorithm, PublicKey, Signature};
use crate::signed::{require_hint, signed_by};

/// A signed account of one nested request. Its id is the signer's choice, and is signed with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildReceipt {
    /// `child-rcpt-` and a UUID.
    pub id: String,
    /// When it was signed, in Unix seconds.
    pub timestamp: u64,
    /// The session.
    pub session_id: String,
    /// The request that this one belongs to.
    pub parent_request_id: String,
    /// This request.
    pub request_id: String,
    /// What was asked.
    pub operation_kind: OperationKind,
    /// How it ended.
    pub terminal_state: TerminalState,
    /// The hash of its outcome; see [`ChildOutcome`].
    pub outcome_hash: String,
    /// The policy in force.
    pub policy_hash: String,
    /// Everything else that is signed.
    #[serde(default, skip_serializing_if = "crate::text::is_absent")]
    pub metadata: Option<Value>,
    /// The key that signed.
    pub kernel_key: PublicKey,
    /// An unsigned hint.
    #[serde(default, skip_serializing_if = "Algorithm::is_default")]
    pub algorithm: Option<Algorithm>,
    /// The kernel's signature.
    pub signature: Signature,
}

signed_by!(ChildReceipt, kernel_key, |child| require_hint(child.algorithm, &child.signature));

/// What a nested request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationKind {
    /// A tool call.
    ToolCall,
    /// A message from the caller's model.
    CreateMessage,
    /// An answer from the caller's user.
    CreateElicitation,
    /// The caller's roots.
    ListRoots,
    /// Resources.
    ListResources,
    /// A resource.
    ReadResource,
    /// Resource templates.
    ListResourceTemplates,
    /// Prompts.
    ListPrompts,
    /// A prompt.
    GetPrompt,
    /// A completion.
    Complete,
    /// Capabilities.
    ListCapabilities,
    /// A heartbeat.
    Heartbeat,
}

/// How a nested request ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum TerminalState {
    /// With an answer.
    Completed,
    /// Cancelled.
    Cancelled {
        /// The reason, as signed.
        reason: String,
    },
    /// The end is unknown.
    Incomplete {
        /// The reason, as signed.
        reason: String,
    },
}

/// What a nested request came to.
#[derive(Debug, Clone, PartialEq)]
pub enum ChildOutcome {
    /// An answer.
    Result(Value),
    /// An error with this message.
    Error(String),
}

impl ChildOutcome {
    /// The hash that the receipt carries.
    ///
    /// # Errors
    /// When the answer has no canonical form.
    pub fn hash(&self) -> Result<String, CanonicalError> {
        match self {
            Self::Result(value) => canonical::hash(&json!({"outcome": "result", "result": value})),
            Self::Error(message) => {
                canonical::hash(&json!({"outcome": "error", "message": message}))
            }
        }
    }

    /// The metadata that repeats the outcome without its value.
    pub fn metadata(&self) -> Value {
        match self {
            Self::Result(_) => json!({"outcome": "result"}),
            Self::Error(message) => json!({"outcome": "error", "message": message}),
        }
    }
}
