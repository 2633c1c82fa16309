//! Answers as OpenAI's Responses API takes them back: function call outputs.

use chio_core::tool_result::ToolResult;
use chio_kernel::Evaluation;
use serde_json::{Value, json};

use crate::DiscoveryProtocol;
use crate::executor::{CrossProtocolTargetRequest, Finish, TargetProtocolExecutor};

/// The output of a call that says nothing.
const NOTHING: &str = "{}";

/// Projects calls into `function_call_output` items.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct OpenAiTargetExecutor;

impl TargetProtocolExecutor for OpenAiTargetExecutor {
    fn protocol(&self) -> DiscoveryProtocol {
        DiscoveryProtocol::OpenAi
    }

    fn project(&self, request: &CrossProtocolTargetRequest<'_>, evaluation: &Evaluation) -> Value {
        let output = match Finish::of(&evaluation.outcome, request.chunks) {
            Finish::Value(value) => ToolResult::new(value).to_text().into_owned(),
            Finish::Stream(chunks) => json!(chunks).to_string(),
            // An output has no mark of failure: a part would be taken for the whole.
            Finish::Failure(failure) if failure.reason.is_empty() => NOTHING.to_owned(),
            Finish::Failure(failure) => failure.reason.to_owned(),
        };
        json!({
            "type": "function_call_output",
            "call_id": request.origin_request_id,
            "output": output,
            "receipt_ref": evaluation.receipt.id,
        })
    }
}

#[cfg(test)]
mod tests {
    use chio_kernel::Outcome;

    use super::*;
    use crate::executor::tests::{cancelled, denied, incomplete, project, stream};

    #[test]
    fn each_outcome_is_one_output_string() {
        let chunks = [json!("a"), json!({"b": 1})];
        let cases = [
            (Outcome::Value(json!("high tide")), "high tide"),
            (Outcome::Value(json!({"tide": "06:12"})), r#"{"tide":"06:12"}"#),
            (Outcome::Value(json!([1, null])), "[1,null]"),
            (Outcome::Value(json!(null)), "null"),
            (Outcome::Value(json!(1.5)), "1.5"),
            (stream(), r#"["a",{"b":1}]"#),
            (denied("not yours"), "not yours"),
            (denied(""), "{}"),
            (cancelled("called off"), "called off"),
            (incomplete("broken off"), "broken off"),
        ];
        for (outcome, output) in cases {
            let answer = project(&OpenAiTargetExecutor, outcome, &chunks);
            let expected = json!({
                "type": "function_call_output", "call_id": "origin-1", "output": output,
                "receipt_ref": "receipt-1",
            });
            assert_eq!(answer, expected);
        }
        assert_eq!(project(&OpenAiTargetExecutor, stream(), &[])["output"], "[]");
    }
}
