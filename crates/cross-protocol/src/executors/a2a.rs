//! Answers as the A2A edge writes them: tasks whose messages have parts.

use chio_core::tool_result::{Block, ResultForm, ToolResult};
use chio_kernel::Evaluation;
use serde_json::{Value, json};

use crate::DiscoveryProtocol;
use crate::executor::{
    CrossProtocolTargetRequest, FailureState, Finish, TargetProtocolExecutor, chio_metadata,
};

/// Projects calls into terminal tasks.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct A2aTargetExecutor;

/// The parts of one tool result.
fn parts(result: &Value) -> Vec<Value> {
    match ToolResult::new(result).form() {
        ResultForm::Text(words) => vec![text(words)],
        ResultForm::Scalar(scalar) => vec![text(&scalar.to_string())],
        ResultForm::Data(data) => vec![json!({"type": "data", "data": data})],
        ResultForm::Content(blocks) => {
            let texts = blocks.iter().filter_map(|block| match Block::new(block)? {
                Block::Text(words) => Some(text(words)),
                Block::File(_) | Block::Other(_) => None,
            });
            texts.collect()
        }
    }
}

impl TargetProtocolExecutor for A2aTargetExecutor {
    fn protocol(&self) -> DiscoveryProtocol {
        DiscoveryProtocol::A2a
    }

    fn project(&self, request: &CrossProtocolTargetRequest<'_>, evaluation: &Evaluation) -> Value {
        let mut metadata = chio_metadata(evaluation);
        let id = request.origin_request_id;
        let completed = |parts: Vec<Value>, metadata: Value| {
            let message = json!({"role": "agent", "parts": parts});
            json!({"id": id, "status": "completed", "message": message, "metadata": metadata})
        };
        match Finish::of(&evaluation.outcome, request.chunks) {
            Finish::Value(value) => completed(parts(value), metadata),
            Finish::Stream(chunks) => {
                if let Some(chio) = metadata.get_mut("chio").and_then(Value::as_object_mut) {
                    chio.insert("streamProjection".to_owned(), json!("collated_final_message"));
                }
                completed(chunks.iter().flat_map(parts).collect(), metadata)
            }
            Finish::Failure(failure) => {
                let status = match failure.state {
                    FailureState::Denied(_) | FailureState::Incomplete => "failed",
                    FailureState::Cancelled => "cancelled",
                };
                let words = failure.reason;
                json!({"id": id, "status": status, "statusMessage": words, "metadata": metadata})
            }
        }
    }
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

#[cfg(test)]
mod tests {
    use chio_kernel::Outcome;

    use super::*;
    use crate::executor::tests::{cancelled, denied, incomplete, project, stream};

    /// Results and their parts.
    fn conversions() -> Vec<(Value, Value)> {
        vec![
            (json!("high tide"), json!([{"type": "text", "text": "high tide"}])),
            (
                json!({"content": [{"type": "text", "text": "a"}, {"text": "b"}, {"type": "image"},
                    {"text": 1}, "c"]}),
                json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
            ),
            (json!({"content": []}), json!([])),
            (json!({"content": "text"}), json!([{"type": "data", "data": {"content": "text"}}])),
            (json!({"a": 1}), json!([{"type": "data", "data": {"a": 1}}])),
            (json!([1, 2]), json!([{"type": "data", "data": [1, 2]}])),
            (json!(7), json!([{"type": "text", "text": "7"}])),
            (json!(true), json!([{"type": "text", "text": "true"}])),
            (json!(null), json!([{"type": "text", "text": "null"}])),
        ]
    }

    // covers: BRIDGE-094..BRIDGE-097
    #[test]
    fn each_kind_of_result_has_its_parts() {
        for (result, parts) in conversions() {
            let expected = json!({
                "id": "origin-1", "status": "completed",
                "message": {"role": "agent", "parts": parts},
                "metadata": {"chio": {"receiptId": "receipt-1"}},
            });
            assert_eq!(project(&A2aTargetExecutor, Outcome::Value(result), &[]), expected);
        }
    }

    #[test]
    fn a_streams_parts_are_those_of_its_chunks_one_after_another() {
        let (chunks, parts): (Vec<_>, Vec<_>) = conversions().into_iter().unzip();
        let parts: Vec<_> = parts.iter().flat_map(|parts| parts.as_array().unwrap()).collect();
        let answer = project(&A2aTargetExecutor, stream(), &chunks);
        assert_eq!(answer["message"]["parts"], json!(parts));
        let metadata =
            json!({"receiptId": "receipt-1", "streamProjection": "collated_final_message"});
        assert_eq!(answer["metadata"]["chio"], metadata);
    }

    #[test]
    fn failures_have_a_status_message_and_no_message() {
        for (outcome, status) in [
            (denied("why"), "failed"),
            (incomplete("why"), "failed"),
            (cancelled("why"), "cancelled"),
        ] {
            let expected = json!({
                "id": "origin-1", "status": status, "statusMessage": "why",
                "metadata": {"chio": {"receiptId": "receipt-1"}},
            });
            assert_eq!(project(&A2aTargetExecutor, outcome, &[json!("part")]), expected);
        }
    }
}
