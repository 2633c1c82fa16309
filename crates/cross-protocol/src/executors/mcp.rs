//! Answers as MCP writes them: results of `tools/call`.

use chio_core::text::members;
use chio_core::tool_result::{CONTENT, IS_ERROR, STRUCTURED, ToolResult};
use chio_kernel::Evaluation;
use serde_json::{Map, Value, json};

use crate::DiscoveryProtocol;
use crate::executor::{
    CrossProtocolTargetRequest, Failure, FailureState, Finish, TargetProtocolExecutor,
};

const META: &str = "_meta";
/// The member of `_meta` that names the receipt.
const RECEIPT: &str = "chioReceiptId";

/// Projects calls into results of `tools/call`, for a client that takes no chunks.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct McpTargetExecutor;

impl McpTargetExecutor {
    /// The result of `tools/call` that says this value, without a word about its receipt.
    pub fn result_of(value: Value) -> Map<String, Value> {
        let result = ToolResult::new(&value);
        if let Some(why) = result.failed_task().filter(|_| value.get(CONTENT).is_none()) {
            return failed_result(&why, &value);
        }
        let is_mcp = result.is_mcp();
        let Value::Object(mut object) = value else {
            let words = ToolResult::new(&value).to_text();
            return members(json!({CONTENT: [text(&words)], IS_ERROR: false}));
        };
        if !is_mcp {
            let value = Value::Object(object);
            let content = block(value.to_string());
            let mut result = Map::new();
            result.insert(CONTENT.to_owned(), Value::Array(vec![content]));
            result.insert(STRUCTURED.to_owned(), value);
            result.insert(IS_ERROR.to_owned(), Value::Bool(false));
            return result;
        }
        if !object.contains_key(CONTENT) {
            let rendered = object.get(STRUCTURED).map_or_else(String::new, Value::to_string);
            object.insert(CONTENT.to_owned(), json!([text(&rendered)]));
        }
        object.entry(IS_ERROR).or_insert(Value::Bool(false));
        object
    }
}

impl TargetProtocolExecutor for McpTargetExecutor {
    fn protocol(&self) -> DiscoveryProtocol {
        DiscoveryProtocol::Mcp
    }

    fn project(&self, request: &CrossProtocolTargetRequest<'_>, evaluation: &Evaluation) -> Value {
        let mut result = match Finish::of(&evaluation.outcome, request.chunks) {
            Finish::Value(value) => Self::result_of(value.clone()),
            Finish::Stream(chunks) => stream_result(chunks, None),
            Finish::Failure(failure) if failure.chunks.is_empty() => {
                members(json!({CONTENT: [text(failure.reason)], IS_ERROR: true}))
            }
            Finish::Failure(failure) => stream_result(failure.chunks, Some(&failure)),
        };
        let named = json!(evaluation.receipt.id);
        match result.get_mut(META).and_then(Value::as_object_mut) {
            Some(meta) => drop(meta.insert(RECEIPT.to_owned(), named)),
            None => drop(result.insert(META.to_owned(), json!({RECEIPT: named}))),
        }
        Value::Object(result)
    }
}

/// The result of an agent that has failed its task. Why comes first: a model can act on that.
fn failed_result(why: &[&str], value: &Value) -> Map<String, Value> {
    let mut structured = value.clone();
    if let Value::Object(members) = &mut structured {
        members.remove(IS_ERROR);
    }
    let told = why.iter().map(|why| text(why)).chain([block(structured.to_string())]);
    members(json!({CONTENT: told.collect::<Vec<_>>(), STRUCTURED: structured, IS_ERROR: true}))
}

/// A stream in one result, whole or up to where it ended.
fn stream_result(chunks: &[Value], failure: Option<&Failure<'_>>) -> Map<String, Value> {
    let mut content: Vec<_> =
        chunks.iter().map(|chunk| text(&ToolResult::new(chunk).to_text())).collect();
    let mut stream = json!({
        "mode": "collapsed_result",
        "totalChunks": chunks.len(),
        "terminalState": state(failure.map(|failure| failure.state)),
        "chunks": chunks,
    });
    if let (Some(failure), Some(stream)) = (failure, stream.as_object_mut()) {
        content.push(text(failure.reason));
        stream.insert("reason".to_owned(), json!(failure.reason));
    }
    members(json!({
        CONTENT: content,
        STRUCTURED: {"chioToolStream": stream},
        IS_ERROR: failure.is_some() || ToolResult::failed_task_of(chunks).is_some(),
    }))
}

const fn state(failure: Option<FailureState>) -> &'static str {
    match failure {
        None => "completed",
        Some(FailureState::Denied(_)) => "denied",
        Some(FailureState::Cancelled) => "cancelled",
        Some(FailureState::Incomplete) => "incomplete",
    }
}

fn text(text: &str) -> Value {
    block(text.to_owned())
}

/// A block of text.
fn block(text: String) -> Value {
    let mut block = Map::new();
    block.insert("type".to_owned(), Value::String("text".to_owned()));
    block.insert("text".to_owned(), Value::String(text));
    Value::Object(block)
}

#[cfg(test)]
mod tests {
    use chio_kernel::Outcome;

    use super::*;
    use crate::executor::tests::{cancelled, denied, incomplete, project, stream};

    /// Checks the result but for its `_meta`, which must name the receipt.
    #[track_caller]
    fn check(outcome: Outcome, chunks: &[Value], expected: &Value) {
        let mut answer = project(&McpTargetExecutor, outcome, chunks);
        assert_eq!(answer["_meta"]["chioReceiptId"], "receipt-1");
        answer.as_object_mut().unwrap().remove("_meta");
        assert_eq!(answer, *expected);
    }

    #[test]
    fn plain_values_become_text_and_objects_are_structured_too() {
        let cases = [
            (json!("hi"), json!({"content": [{"type": "text", "text": "hi"}], "isError": false})),
            (json!(7), json!({"content": [{"type": "text", "text": "7"}], "isError": false})),
            (json!(null), json!({"content": [{"type": "text", "text": "null"}], "isError": false})),
            (json!([1]), json!({"content": [{"type": "text", "text": "[1]"}], "isError": false})),
            (
                json!({"a": 1}),
                json!({"content": [{"type": "text", "text": "{\"a\":1}"}],
                    "structuredContent": {"a": 1}, "isError": false}),
            ),
        ];
        for (value, expected) in cases {
            check(Outcome::Value(value), &[], &expected);
        }
    }

    #[test]
    fn what_is_an_mcp_result_already_is_kept_and_completed() {
        let block = json!([{"type": "image", "data": "", "mimeType": "image/png"}]);
        let cases = [
            (json!({"content": block}), json!({"content": block, "isError": false})),
            (
                json!({"isError": true, "task": {"status": {"message": {"parts": [{"text": "no"}]}}}}),
                json!({
                    "content": [
                        {"type": "text", "text": "no"},
                        {"type": "text",
                            "text": r#"{"task":{"status":{"message":{"parts":[{"text":"no"}]}}}}"#},
                    ],
                    "structuredContent": {"task": {"status": {"message": {"parts": [{"text": "no"}]}}}},
                    "isError": true,
                }),
            ),
            (
                json!({"content": [], "isError": true, "more": 1}),
                json!({"content": [], "isError": true, "more": 1}),
            ),
            (
                json!({"structuredContent": {"a": 1}}),
                json!({"content": [{"type": "text", "text": "{\"a\":1}"}],
                    "structuredContent": {"a": 1}, "isError": false}),
            ),
            (
                json!({"isError": true}),
                json!({"content": [{"type": "text", "text": ""}], "isError": true}),
            ),
        ];
        for (value, expected) in cases {
            check(Outcome::Value(value), &[], &expected);
        }
    }

    #[test]
    fn members_that_only_look_like_mcps_are_data() {
        for value in [
            json!({"content": "the file's text"}),
            json!({"content": [1, 2]}),
            json!({"content": [], "isError": "no"}),
            json!({"structuredContent": 1}),
        ] {
            let rendered = value.to_string();
            let expected = json!({"content": [{"type": "text", "text": rendered}],
                "structuredContent": value, "isError": false});
            check(Outcome::Value(value.clone()), &[], &expected);
        }
    }

    #[test]
    fn a_results_own_meta_is_kept_but_cannot_name_another_receipt() {
        let value = json!({"content": [], "_meta": {"own": 1, "chioReceiptId": "forged"}});
        let answer = project(&McpTargetExecutor, Outcome::Value(value), &[]);
        assert_eq!(answer["_meta"], json!({"own": 1, "chioReceiptId": "receipt-1"}));
        let odd = json!({"content": [], "_meta": "forged"});
        let answer = project(&McpTargetExecutor, Outcome::Value(odd), &[]);
        assert_eq!(answer["_meta"], json!({"chioReceiptId": "receipt-1"}));
    }

    #[test]
    fn failures_are_results_with_the_reason() {
        for outcome in [denied("why"), cancelled("why"), incomplete("why")] {
            let expected = json!({"content": [{"type": "text", "text": "why"}], "isError": true});
            check(outcome, &[], &expected);
        }
    }

    #[test]
    fn streams_collapse_into_one_result_and_say_how_they_ended() {
        let chunks = [json!("a"), json!({"b": 1})];
        let texts =
            [json!({"type": "text", "text": "a"}), json!({"type": "text", "text": "{\"b\":1}"})];
        let whole = json!({
            "content": texts,
            "structuredContent": {"chioToolStream": {"mode": "collapsed_result",
                "totalChunks": 2, "terminalState": "completed", "chunks": chunks}},
            "isError": false,
        });
        check(stream(), &chunks, &whole);
        for (outcome, state) in [(cancelled("why"), "cancelled"), (incomplete("why"), "incomplete")]
        {
            let broken = json!({
                "content": [texts[0], texts[1], {"type": "text", "text": "why"}],
                "structuredContent": {"chioToolStream": {"mode": "collapsed_result",
                    "totalChunks": 2, "terminalState": state, "chunks": chunks,
                    "reason": "why"}},
                "isError": true,
            });
            check(outcome, &chunks, &broken);
        }
    }
}
