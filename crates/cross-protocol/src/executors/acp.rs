//! Answers as the ACP edge writes them: results of `tool/invoke`.

use chio_kernel::Evaluation;
use serde_json::{Value, json};

use crate::DiscoveryProtocol;
use crate::executor::{CrossProtocolTargetRequest, Finish, TargetProtocolExecutor, chio_metadata};

/// Projects calls into results of `tool/invoke`.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct AcpTargetExecutor;

impl TargetProtocolExecutor for AcpTargetExecutor {
    fn protocol(&self) -> DiscoveryProtocol {
        DiscoveryProtocol::Acp
    }

    fn project(&self, request: &CrossProtocolTargetRequest<'_>, evaluation: &Evaluation) -> Value {
        let metadata = chio_metadata(evaluation);
        let stream = |chunks: &[Value]| json!({"stream": chunks});
        match Finish::of(&evaluation.outcome, request.chunks) {
            Finish::Value(value) => json!({"success": true, "data": value, "metadata": metadata}),
            Finish::Stream(chunks) => {
                json!({"success": true, "data": stream(chunks), "metadata": metadata})
            }
            Finish::Failure(failure) => {
                let part = (!failure.chunks.is_empty()).then(|| stream(failure.chunks));
                let error = failure.reason;
                json!({"success": false, "data": part, "error": error, "metadata": metadata})
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use chio_kernel::Outcome;

    use super::*;
    use crate::executor::tests::{cancelled, denied, incomplete, project, stream};

    #[test]
    fn each_outcome_is_a_success_or_an_error() {
        let chunks = [json!("a"), json!(1)];
        let part = json!({"stream": ["a", 1]});
        let cases = [
            (
                Outcome::Value(json!({"text": "hello"})),
                &chunks[..0],
                json!({"text": "hello"}),
                None,
            ),
            (Outcome::Value(json!(null)), &chunks[..0], json!(null), None),
            (stream(), &chunks, part.clone(), None),
            (stream(), &chunks[..0], json!({"stream": []}), None),
            (denied("why"), &chunks, json!(null), Some("why")),
            (cancelled("why"), &chunks[..0], json!(null), Some("why")),
            (cancelled("why"), &chunks, part.clone(), Some("why")),
            (incomplete("why"), &chunks, part, Some("why")),
        ];
        for (outcome, chunks, data, error) in cases {
            let mut expected = json!({
                "success": error.is_none(), "data": data,
                "metadata": {"chio": {"receiptId": "receipt-1"}},
            });
            if let Some(error) = error {
                expected["error"] = json!(error);
            }
            assert_eq!(project(&AcpTargetExecutor, outcome, chunks), expected);
        }
    }
}
