//! Answers as plain HTTP would give them: a status, a body, and the receipt's id.

use chio_core::registry::{Category, ErrorCode};
use chio_kernel::Evaluation;
use serde_json::{Value, json};

use crate::DiscoveryProtocol;
use crate::executor::{CrossProtocolTargetRequest, FailureState, Finish, TargetProtocolExecutor};

const OK: u16 = 200;
const BAD_REQUEST: u16 = 400;
const UNAUTHORIZED: u16 = 401;
const FORBIDDEN: u16 = 403;
const CONFLICT: u16 = 409;
const TOO_MANY_REQUESTS: u16 = 429;
const INTERNAL: u16 = 500;
const BAD_GATEWAY: u16 = 502;

/// Projects calls into a status and a body.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct HttpTargetExecutor;

impl TargetProtocolExecutor for HttpTargetExecutor {
    fn protocol(&self) -> DiscoveryProtocol {
        DiscoveryProtocol::Http
    }

    fn project(&self, request: &CrossProtocolTargetRequest<'_>, evaluation: &Evaluation) -> Value {
        let (status, body) = match Finish::of(&evaluation.outcome, request.chunks) {
            Finish::Value(value) => (OK, value.clone()),
            Finish::Stream(chunks) => (OK, json!(chunks)),
            Finish::Failure(failure) => {
                let status = match failure.state {
                    FailureState::Denied(code) => status_of(code),
                    FailureState::Cancelled => CONFLICT,
                    FailureState::Incomplete => BAD_GATEWAY,
                };
                (status, json!({"error": failure.reason}))
            }
        };
        json!({"status": status, "body": body, "receipt_id": evaluation.receipt.id})
    }
}

/// What HTTP calls a registered kind of refusal.
fn status_of(code: ErrorCode) -> u16 {
    match code.category() {
        Category::Protocol => BAD_REQUEST,
        Category::Auth => UNAUTHORIZED,
        Category::Capability | Category::Guard => FORBIDDEN,
        Category::Budget => TOO_MANY_REQUESTS,
        Category::Tool => BAD_GATEWAY,
        Category::Internal => INTERNAL,
    }
}

#[cfg(test)]
mod tests {
    use chio_kernel::{Denial, Outcome};

    use super::*;
    use crate::executor::tests::{cancelled, incomplete, project, stream};

    fn check(outcome: Outcome, chunks: &[Value], status: u16, body: &Value) {
        let expected = json!({"status": status, "body": body, "receipt_id": "receipt-1"});
        assert_eq!(project(&HttpTargetExecutor, outcome, chunks), expected);
    }

    #[test]
    fn results_are_bodies() {
        check(Outcome::Value(json!({"a": 1})), &[], 200, &json!({"a": 1}));
        check(Outcome::Value(json!(null)), &[], 200, &json!(null));
        check(stream(), &[json!("a"), json!(1)], 200, &json!(["a", 1]));
    }

    #[test]
    fn failures_have_the_status_of_their_kind_and_no_part_of_the_result() {
        let chunks = [json!("part")];
        for (code, status) in [
            (ErrorCode::InvalidRequestShape, 400),
            (ErrorCode::AuthMissingOrInvalid, 401),
            (ErrorCode::CapabilityDenied, 403),
            (ErrorCode::CapabilityRevoked, 403),
            (ErrorCode::GuardDenied, 403),
            (ErrorCode::BudgetExhausted, 429),
            (ErrorCode::ToolServerError, 502),
            (ErrorCode::InternalError, 500),
        ] {
            let outcome = Outcome::Denied(Denial::by_kernel(code, "why"));
            check(outcome, &chunks, status, &json!({"error": "why"}));
        }
        check(cancelled("why"), &chunks, 409, &json!({"error": "why"}));
        check(incomplete("why"), &chunks, 502, &json!({"error": "why"}));
    }
}
