//! How a call ended, in the words of the native transport. This is the one place that says so.

use chio_core::message::{ToolCallError, ToolCallResult};
use chio_core::registry::ErrorCode;
use chio_cross_protocol::{Denial, Outcome};

/// The result of an outcome.
pub(crate) fn result(outcome: Outcome) -> ToolCallResult {
    match outcome {
        Outcome::Value(value) => ToolCallResult::Ok { value },
        Outcome::Stream { chunks } => ToolCallResult::StreamComplete { total_chunks: chunks },
        Outcome::Denied(denial) => ToolCallResult::Err { error: error(denial) },
        Outcome::Cancelled { reason, chunks } => {
            ToolCallResult::Cancelled { reason, chunks_received: chunks }
        }
        Outcome::Incomplete { reason, chunks } => {
            ToolCallResult::Incomplete { reason, chunks_received: chunks }
        }
    }
}

fn error(denial: Denial) -> ToolCallError {
    let Denial { code, guard, reason } = denial;
    match code {
        ErrorCode::CapabilityDenied => ToolCallError::CapabilityDenied(reason),
        ErrorCode::CapabilityExpired => ToolCallError::CapabilityExpired,
        ErrorCode::CapabilityRevoked => ToolCallError::CapabilityRevoked,
        ErrorCode::ToolServerError => ToolCallError::ToolServerError(reason),
        ErrorCode::InternalError => ToolCallError::InternalError(reason),
        // A guard's denial, and whatever has no name of its own on this transport.
        ErrorCode::GuardDenied
        | ErrorCode::BudgetExhausted
        | ErrorCode::InvalidRequestShape
        | ErrorCode::ProtocolVersionUnsupported
        | ErrorCode::SessionNotInitialized
        | ErrorCode::AuthMissingOrInvalid => ToolCallError::PolicyDenied { guard, reason },
    }
}

/// The result of a call whose own result is too large for a frame. Its receipt tells what happened.
pub(crate) fn too_large(found: u64) -> ToolCallResult {
    let most = chio_core::frame::MAX_PAYLOAD;
    let detail =
        format!("the call ran, but its result makes a frame of {found} bytes, above {most}");
    ToolCallResult::Err { error: ToolCallError::InternalError(detail) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn written(outcome: Outcome) -> Value {
        serde_json::to_value(result(outcome)).unwrap()
    }

    // covers: WIRE-033..WIRE-038
    #[test]
    fn each_ending_has_its_status() {
        let reason = || "why".to_owned();
        let cases = [
            (Outcome::Value(json!([1])), json!({"status": "ok", "value": [1]})),
            (Outcome::Value(Value::Null), json!({"status": "ok", "value": null})),
            (
                Outcome::Stream { chunks: 3 },
                json!({"status": "stream_complete", "total_chunks": 3}),
            ),
            (
                Outcome::Cancelled { reason: reason(), chunks: 1 },
                json!({"status": "cancelled", "reason": "why", "chunks_received": 1}),
            ),
            (
                Outcome::Incomplete { reason: reason(), chunks: 2 },
                json!({"status": "incomplete", "reason": "why", "chunks_received": 2}),
            ),
        ];
        for (outcome, expected) in cases {
            assert_eq!(written(outcome), expected);
        }
    }

    // covers: WIRE-039..WIRE-045, WIRE-118
    #[test]
    fn each_denial_has_the_most_specific_code_that_there_is() {
        for code in ErrorCode::ALL {
            let denial = Denial { code, guard: "g".to_owned(), reason: "why".to_owned() };
            let error = match code {
                ErrorCode::CapabilityExpired => json!({"code": "capability_expired"}),
                ErrorCode::CapabilityRevoked => json!({"code": "capability_revoked"}),
                ErrorCode::CapabilityDenied
                | ErrorCode::ToolServerError
                | ErrorCode::InternalError => json!({"code": code.name(), "detail": "why"}),
                _ => json!({"code": "policy_denied", "detail": {"guard": "g", "reason": "why"}}),
            };
            let expected = json!({"status": "err", "error": error});
            assert_eq!(written(Outcome::Denied(denial)), expected);
            if let Some(name) = code.native_name() {
                assert_eq!(expected["error"]["code"], name);
            }
        }
    }
}
