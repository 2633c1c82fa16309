//! Messages of the native transport.

mod token_cache;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::canonical::{self, CanonicalError};
use crate::capability::{CapabilityToken, DpopProof, PresentedToken};
use crate::governance::{ApprovalToken, ExecutionNonce, GovernedTransactionIntent};
use crate::receipt::ChioReceipt;
use crate::registry::ErrorCode;
use crate::strict::{self, StrictError};
pub use token_cache::TokenCache;

/// The most approval tokens that one request carries.
pub const MAX_APPROVAL_TOKENS: usize = 32;

/// What an agent sends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentMessage {
    /// Call one tool under one capability.
    ToolCallRequest(Box<ToolCallRequest>),
    /// Ask for the capabilities that are valid now.
    ListCapabilities,
    /// A heartbeat.
    Heartbeat,
}

/// A call of one tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCallRequest<T = CapabilityToken> {
    /// The request id, repeated in every response.
    pub id: String,
    /// The authority for the call.
    pub capability_token: T,
    /// The tool server.
    pub server_id: String,
    /// The tool.
    pub tool: String,
    /// The arguments.
    pub params: Value,
    /// The governed intent: purpose, amount, call chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governed_intent: Option<GovernedTransactionIntent>,
    /// One approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_token: Option<ApprovalToken>,
    /// Approvals under a threshold proposal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approval_tokens: Vec<ApprovalToken>,
    /// The proposal that they approve, passed on unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold_approval_proposal: Option<Map<String, Value>>,
    /// An extension, passed on unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supplemental_authorization: Option<SupplementalAuthorization>,
    /// A nonce from an earlier response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_nonce: Option<ExecutionNonce>,
    /// Proof that the caller holds the token's subject key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpop_proof: Option<DpopProof>,
}

/// An extension that is passed on and not interpreted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SupplementalAuthorization {
    /// The extension.
    pub signed_extension: Value,
}

/// What the kernel sends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum KernelMessage {
    /// A chunk of a stream, before the response.
    ToolCallChunk {
        /// The request.
        id: String,
        /// The index of the chunk, from 0.
        chunk_index: u64,
        /// The chunk.
        data: Value,
    },
    /// The end of a call.
    ToolCallResponse(Box<ToolCallResponse>),
    /// The answer to `list_capabilities`.
    CapabilityList {
        /// The capabilities that are valid now.
        capabilities: Vec<CapabilityToken>,
    },
    /// A capability was revoked.
    CapabilityRevoked {
        /// The id of the token.
        id: String,
    },
    /// A heartbeat.
    Heartbeat,
}

/// How a call ended, with its receipt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCallResponse {
    /// The request.
    pub id: String,
    /// How it ended.
    pub result: ToolCallResult,
    /// The signed account of it.
    pub receipt: ChioReceipt,
    /// A nonce for a later request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_nonce: Option<ExecutionNonce>,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum ToolCallResult {
    /// With a value.
    Ok {
        /// The value.
        value: Value,
    },
    /// With the end of a stream.
    StreamComplete {
        /// The number of chunks sent before.
        total_chunks: u64,
    },
    /// Cancelled by the caller.
    Cancelled {
        /// The reason, as readable text.
        reason: String,
        /// The number of chunks sent before.
        chunks_received: u64,
    },
    /// Interrupted: it began, and its end is unknown.
    Incomplete {
        /// The reason, as readable text.
        reason: String,
        /// The number of chunks sent before.
        chunks_received: u64,
    },
    /// With a refusal or a failure.
    Err {
        /// The refusal or failure.
        error: ToolCallError,
    },
}

/// Why a call was refused or failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "code", content = "detail", rename_all = "snake_case")]
pub enum ToolCallError {
    /// The token is malformed, invalid or not the caller's.
    CapabilityDenied(String),
    /// The token is outside its window.
    CapabilityExpired,
    /// The token was revoked.
    CapabilityRevoked,
    /// A guard denied the call.
    PolicyDenied {
        /// The name of the guard.
        guard: String,
        /// The reason, as readable text.
        reason: String,
    },
    /// The tool server failed.
    ToolServerError(String),
    /// The kernel failed.
    InternalError(String),
}

impl ToolCallError {
    /// The registry code.
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::CapabilityDenied(_) => ErrorCode::CapabilityDenied,
            Self::CapabilityExpired => ErrorCode::CapabilityExpired,
            Self::CapabilityRevoked => ErrorCode::CapabilityRevoked,
            Self::PolicyDenied { .. } => ErrorCode::GuardDenied,
            Self::ToolServerError(_) => ErrorCode::ToolServerError,
            Self::InternalError(_) => ErrorCode::InternalError,
        }
    }
}

/// The member that distinguishes messages.
#[derive(Deserialize)]
struct Tag<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
}

impl AgentMessage {
    /// Reads the payload of one frame.
    ///
    /// # Errors
    /// When it is not one message of an agent.
    pub fn decode(payload: &[u8]) -> Result<Self, StrictError> {
        // Straight from the text where the message is large: by way of the tagged enum, all of it
        // would be buffered, and errors would lose their position.
        match strict::checked_object::<Tag<'_>>(payload)?.kind.as_ref() {
            "tool_call_request" => strict::reread(payload).map(Self::ToolCallRequest),
            _ => strict::reread(payload),
        }
    }
}

/// An [`AgentMessage`] as a kernel receives it: calls with the same token share it.
#[derive(Debug, Clone, PartialEq)]
pub enum ReceivedMessage {
    /// Call one tool under one capability.
    Call(Box<ToolCallRequest<PresentedToken>>),
    /// Ask for the capabilities that are valid now.
    ListCapabilities,
    /// A heartbeat.
    Heartbeat,
}

impl ReceivedMessage {
    /// As [`AgentMessage::decode`]; a token whose text is in the cache is not parsed again. A call
    /// with something else in its place is one with [`PresentedToken::unreadable`].
    ///
    /// # Errors
    /// When it is not one message of an agent.
    pub fn decode(payload: &[u8], tokens: &mut TokenCache) -> Result<Self, StrictError> {
        Ok(match strict::checked_object::<Tag<'_>>(payload)?.kind.as_ref() {
            "tool_call_request" => {
                let request: ToolCallRequest<&RawValue> = strict::reread(payload)?;
                let token = tokens.read(request.capability_token.get());
                Self::Call(Box::new(request.with_token(token)))
            }
            _ => match strict::reread::<AgentMessage>(payload)? {
                AgentMessage::ToolCallRequest(request) => {
                    let token = request.capability_token.clone().into();
                    Self::Call(Box::new(request.with_token(token)))
                }
                AgentMessage::ListCapabilities => Self::ListCapabilities,
                AgentMessage::Heartbeat => Self::Heartbeat,
            },
        })
    }
}

/// Writes a response around a receipt that is in its canonical form already: the same bytes as a
/// [`KernelMessage::ToolCallResponse`] without a nonce, without writing the receipt again.
///
/// # Errors
/// When the result has no canonical form.
pub fn encode_response(
    id: &str,
    result: &ToolCallResult,
    receipt: &[u8],
) -> Result<Vec<u8>, CanonicalError> {
    const AROUND: usize = 64;
    let (id, result) = (canonical::to_vec(id)?, canonical::to_vec(result)?);
    let mut payload = Vec::with_capacity(id.len() + result.len() + receipt.len() + AROUND);
    for part in [
        br#"{"id":"#.as_slice(),
        &id,
        br#","receipt":"#,
        receipt,
        br#","result":"#,
        &result,
        br#","type":"tool_call_response"}"#,
    ] {
        payload.extend_from_slice(part);
    }
    Ok(payload)
}

impl KernelMessage {
    /// Reads the payload of one frame.
    ///
    /// # Errors
    /// When it is not one message of a kernel.
    pub fn decode(payload: &[u8]) -> Result<Self, StrictError> {
        match strict::checked_object::<Tag<'_>>(payload)?.kind.as_ref() {
            "tool_call_response" => strict::reread(payload).map(Self::ToolCallResponse),
            _ => strict::reread(payload),
        }
    }
}

/// Why the approval members of a request do not go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ApprovalConflict {
    /// Both the single and the list form.
    #[error("expected `approval_token` or `approval_tokens`, found both")]
    Both,
    /// A proposal without approvals.
    #[error("expected `approval_tokens` with `threshold_approval_proposal`, found none")]
    ProposalAlone,
    /// Approvals without a proposal.
    #[error("expected `threshold_approval_proposal` with `approval_tokens`, found none")]
    TokensAlone,
    /// Too many approvals.
    #[error("expected at most {MAX_APPROVAL_TOKENS} approval tokens, found {0}")]
    TooMany(usize),
}

impl<T> ToolCallRequest<T> {
    /// A plain call, without any of the optional members.
    pub fn new(
        id: impl Into<String>,
        capability_token: T,
        server_id: impl Into<String>,
        tool: impl Into<String>,
        params: Value,
    ) -> Self {
        Self {
            id: id.into(),
            capability_token,
            server_id: server_id.into(),
            tool: tool.into(),
            params,
            governed_intent: None,
            approval_token: None,
            approval_tokens: Vec::new(),
            threshold_approval_proposal: None,
            supplemental_authorization: None,
            execution_nonce: None,
            dpop_proof: None,
        }
    }

    /// The same request with this token.
    fn with_token<U>(self, capability_token: U) -> ToolCallRequest<U> {
        ToolCallRequest {
            id: self.id,
            capability_token,
            server_id: self.server_id,
            tool: self.tool,
            params: self.params,
            governed_intent: self.governed_intent,
            approval_token: self.approval_token,
            approval_tokens: self.approval_tokens,
            threshold_approval_proposal: self.threshold_approval_proposal,
            supplemental_authorization: self.supplemental_authorization,
            execution_nonce: self.execution_nonce,
            dpop_proof: self.dpop_proof,
        }
    }

    /// Checks that the approval members go together.
    ///
    /// # Errors
    /// When they do not.
    pub const fn check_approvals(&self) -> Result<(), ApprovalConflict> {
        let tokens = self.approval_tokens.len();
        if tokens > MAX_APPROVAL_TOKENS {
            return Err(ApprovalConflict::TooMany(tokens));
        }
        match (
            self.approval_token.is_some(),
            tokens > 0,
            self.threshold_approval_proposal.is_some(),
        ) {
            (true, true, _) => Err(ApprovalConflict::Both),
            (_, false, true) => Err(ApprovalConflict::ProposalAlone),
            (_, true, false) => Err(ApprovalConflict::TokensAlone),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
