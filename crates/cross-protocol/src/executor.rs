//! How a finished call is put into another protocol's shape.

use std::fmt;

use chio_core::registry::ErrorCode;
use chio_kernel::{Evaluation, Outcome};
use serde_json::{Value, json};

use crate::DiscoveryProtocol;

/// Puts what the kernel answered into a protocol's shape. It runs nothing: the kernel has.
pub trait TargetProtocolExecutor: Send + Sync + fmt::Debug {
    /// The protocol.
    fn protocol(&self) -> DiscoveryProtocol;

    /// The answer as the protocol writes it, with the receipt named.
    fn project(&self, request: &CrossProtocolTargetRequest<'_>, evaluation: &Evaluation) -> Value;
}

/// What an executor is told about the call.
#[derive(Debug, Clone, Copy)]
pub struct CrossProtocolTargetRequest<'a> {
    /// The caller's name of the call.
    pub origin_request_id: &'a str,
    /// The kernel's name of the call.
    pub kernel_request_id: &'a str,
    /// The server called.
    pub server_id: &'a str,
    /// The tool called.
    pub tool_name: &'a str,
    /// The protocol that the route selected.
    pub target: DiscoveryProtocol,
    /// What a streaming tool gave, if it streamed.
    pub chunks: &'a [Value],
}

/// What came of a call, as all executors look at it.
pub(crate) enum Finish<'a> {
    /// A value.
    Value(&'a Value),
    /// A whole stream.
    Stream(&'a [Value]),
    /// Nothing, or nothing whole.
    Failure(Failure<'a>),
}

/// A call without a whole result.
pub(crate) struct Failure<'a> {
    /// How it ended.
    pub(crate) state: FailureState,
    /// Why, for people.
    pub(crate) reason: &'a str,
    /// What the caller was given before; nothing when it was denied.
    pub(crate) chunks: &'a [Value],
}

/// How a call without a whole result ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureState {
    /// It did not run, or its tool failed.
    Denied(ErrorCode),
    /// It was cancelled.
    Cancelled,
    /// It ended early.
    Incomplete,
}

impl<'a> Finish<'a> {
    pub(crate) fn of(outcome: &'a Outcome, chunks: &'a [Value]) -> Self {
        let failure = |state, reason, chunks| Self::Failure(Failure { state, reason, chunks });
        match outcome {
            Outcome::Value(value) => Self::Value(value),
            Outcome::Stream { .. } => Self::Stream(chunks),
            // SECURITY: what was denied is not shown, whatever was gathered on the way.
            Outcome::Denied(denial) => {
                failure(FailureState::Denied(denial.code), denial.reason.as_str(), &[])
            }
            Outcome::Cancelled { reason, .. } => failure(FailureState::Cancelled, reason, chunks),
            Outcome::Incomplete { reason, .. } => failure(FailureState::Incomplete, reason, chunks),
        }
    }
}

/// The `metadata` member that names the receipt.
pub(crate) fn chio_metadata(evaluation: &Evaluation) -> Value {
    json!({"chio": {"receiptId": evaluation.receipt.id}})
}

#[cfg(test)]
pub(crate) mod tests {
    use chio_core::receipt::SealedReceipt;
    use chio_kernel::Denial;

    use super::{
        CrossProtocolTargetRequest, DiscoveryProtocol, ErrorCode, Evaluation, Outcome,
        TargetProtocolExecutor, Value, json,
    };

    /// An evaluation of whose receipt the tests here read only the id, `receipt-1`.
    fn evaluation(outcome: Outcome) -> Evaluation {
        let receipt = SealedReceipt { id: "receipt-1".to_owned(), bytes: Vec::new() };
        Evaluation { outcome, receipt, seq: 1, cost: None, answered: None }
    }

    pub(crate) fn denied(reason: &str) -> Outcome {
        Outcome::Denied(Denial::by_kernel(ErrorCode::CapabilityDenied, reason))
    }

    pub(crate) fn stream() -> Outcome {
        Outcome::Stream { chunks: 0 }
    }

    pub(crate) fn cancelled(reason: &str) -> Outcome {
        Outcome::Cancelled { reason: reason.to_owned(), chunks: 0 }
    }

    pub(crate) fn incomplete(reason: &str) -> Outcome {
        Outcome::Incomplete { reason: reason.to_owned(), chunks: 0 }
    }

    /// Projects an outcome with the chunks that came before it.
    pub(crate) fn project(
        executor: &dyn TargetProtocolExecutor,
        outcome: Outcome,
        chunks: &[Value],
    ) -> Value {
        let request = CrossProtocolTargetRequest {
            origin_request_id: "origin-1",
            kernel_request_id: "req-1",
            server_id: "srv",
            tool_name: "read",
            target: executor.protocol(),
            chunks,
        };
        executor.project(&request, &evaluation(outcome))
    }

    #[test]
    fn every_answer_names_its_receipt_and_no_denial_shows_a_chunk() {
        let registry = crate::TargetProtocolRegistry::complete();
        let chunks = [json!("s3cret")];
        for protocol in DiscoveryProtocol::ALL {
            let Some(executor) = registry.executor(protocol) else {
                assert_eq!(protocol, DiscoveryProtocol::Native);
                continue;
            };
            let outcomes = [
                Outcome::Value(json!({"a": 1})),
                stream(),
                denied("no"),
                cancelled("off"),
                incomplete("cut"),
            ];
            for outcome in outcomes {
                let is_denial = matches!(outcome, Outcome::Denied(_));
                let answer = project(executor.as_ref(), outcome, &chunks).to_string();
                assert!(answer.contains("receipt-1"), "{protocol}: {answer}");
                assert!(!is_denial || !answer.contains("s3cret"), "{protocol}: {answer}");
            }
        }
    }
}
