//! Errors as the protocol carries them: JSON-RPC codes, with the registry's account beside them.

use chio_core::receipt::Execution;
use chio_core::registry::ErrorCode;
use chio_net::jsonrpc::RpcError;
use serde_json::{Value, json};

/// The code of a session that is not ready, and of a resource that is not there.
pub(crate) const NOT_READY: i64 = -32002;
/// The code of a request that was cancelled.
pub(crate) const CANCELLED: i64 = -32800;

/// What the registry says about a code, of a request that can be repeated: nothing ran for it, or
/// only a read.
pub(crate) fn chio_error(code: ErrorCode) -> Value {
    error_after(code, Some(Execution::NotBegun))
}

/// What the registry says about a code, and what a caller can do where this became of its call.
fn error_after(code: ErrorCode, execution: Option<Execution>) -> Value {
    json!({
        "code": code.number(),
        "name": code.name(),
        "category": code.category(),
        "transient": is_transient(code, execution),
        "retry": {
            "strategy": code.retry_after(execution),
            "guidance": guidance(code, execution),
        },
    })
}

/// Whether the same call may succeed later, and cannot run twice.
pub(crate) fn is_transient(code: ErrorCode, execution: Option<Execution>) -> bool {
    let waits = code.is_transient() || code == ErrorCode::ToolServerError;
    waits && execution == Some(Execution::NotBegun)
}

/// What a caller can do, in one sentence.
pub(crate) const fn guidance(code: ErrorCode, execution: Option<Execution>) -> &'static str {
    match execution {
        Some(Execution::NotBegun) => {}
        Some(Execution::Failed) => {
            return "The tool ran and failed. Look at what it says, and at what it did, before it is \
                    called again.";
        }
        Some(Execution::Completed) => {
            return "The tool ran; only its result was withheld. Calling it again runs it again.";
        }
        _ => {
            return "The tool may have run. Look at what it did before it is called again.";
        }
    }
    match code {
        ErrorCode::ProtocolVersionUnsupported => {
            "Initialize again with one of the supported protocol versions."
        }
        ErrorCode::SessionNotInitialized => {
            "Open a new session with `initialize`, then send `notifications/initialized`."
        }
        ErrorCode::InvalidRequestShape => "Correct what is named here, and send it again.",
        ErrorCode::AuthMissingOrInvalid => "Renew the credentials, then try again.",
        ErrorCode::CapabilityDenied => {
            "Trying again does not help: the capability does not allow this. Use another tool, or \
             ask the operator for more."
        }
        ErrorCode::CapabilityExpired | ErrorCode::CapabilityRevoked => {
            "Get a fresh capability (a new session gets one), then try again."
        }
        ErrorCode::GuardDenied => {
            "Trying the same again does not help: policy forbids it. Do it another way, or ask the \
             operator."
        }
        ErrorCode::BudgetExhausted => "Wait until the budget is raised, then try again.",
        ErrorCode::ToolServerError => "Trying again later is safe.",
        ErrorCode::InternalError => "Try again in a moment.",
    }
}

/// An error with the registry's account of it, of a request for which nothing ran.
pub(crate) fn registered(jsonrpc: i64, message: impl Into<String>, code: ErrorCode) -> RpcError {
    RpcError::new(jsonrpc, message).with_data(json!({"chioError": chio_error(code)}))
}

/// A session that is not ready.
pub(crate) fn not_ready(method: &str) -> RpcError {
    let message = format!(
        "`{method}` needs a session that is ready: `initialize`, then `notifications/initialized`"
    );
    registered(NOT_READY, message, ErrorCode::SessionNotInitialized)
}

/// A session that is over, or never was.
pub(crate) fn no_session(state: &str) -> RpcError {
    let message = format!("expected a session that is open, found one that is {state}");
    registered(RpcError::INVALID_REQUEST, message, ErrorCode::SessionNotInitialized)
}

/// A request that is not as it should be.
pub(crate) fn invalid(message: impl Into<String>) -> RpcError {
    registered(RpcError::INVALID_REQUEST, message, ErrorCode::InvalidRequestShape)
}

/// Params that are not as they should be.
pub(crate) fn invalid_params(message: impl Into<String>) -> RpcError {
    registered(RpcError::INVALID_PARAMS, message, ErrorCode::InvalidRequestShape)
}

/// A client that is not known.
pub(crate) fn unauthenticated(message: impl Into<String>) -> RpcError {
    registered(RpcError::INVALID_REQUEST, message, ErrorCode::AuthMissingOrInvalid)
}

/// Nothing may be released, because nothing could be made durable.
pub(crate) fn unreleased() -> RpcError {
    let message = "no receipt could be made durable, so nothing is released";
    // Whether something ran is for the operator to find out.
    let error = error_after(ErrorCode::InternalError, None);
    RpcError::new(RpcError::INTERNAL_ERROR, message).with_data(json!({"chioError": error}))
}
