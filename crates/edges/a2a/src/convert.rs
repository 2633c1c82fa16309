//! What came of a call, as parts and as a state.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use chio_core::registry::ErrorCode;
use chio_core::tool_result::{Block, File, FileContent, ResultForm, ToolResult};
use chio_cross_protocol::{Denial, Outcome};
use serde_json::Value;

use crate::message::{Content, Part, Shown, texts};
use crate::record::State;

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TaskOutcome {
    pub(crate) state: State,
    /// What came of it.
    pub(crate) output: Vec<Part>,
    /// Why it is so, or what is asked.
    pub(crate) words: Vec<Part>,
    /// Whether the tool asked for the answer to be a message.
    pub(crate) replies: bool,
}

impl TaskOutcome {
    /// The task came to nothing, or to nothing yet, for this reason.
    const fn without_output(state: State, words: Vec<Part>) -> Self {
        Self { state, output: Vec::new(), words, replies: false }
    }
}

/// The state of a task whose call ended so, with the chunks that a streaming tool gave.
pub(crate) fn state_of(outcome: &Outcome, chunks: &[Value]) -> State {
    match outcome {
        Outcome::Value(value) => {
            let result = ToolResult::new(value);
            if is_failed_content(&result) || result.failed_task().is_some() {
                return State::Failed;
            }
            match result.reply() {
                Some("input_required") => State::InputRequired,
                _ => State::Completed,
            }
        }
        Outcome::Stream { .. } if ToolResult::failed_task_of(chunks).is_some() => State::Failed,
        Outcome::Stream { .. } => State::Completed,
        Outcome::Denied(denial) => match denial.code {
            ErrorCode::ToolServerError | ErrorCode::InternalError => State::Failed,
            _ => State::Rejected,
        },
        Outcome::Cancelled { .. } => State::Canceled,
        Outcome::Incomplete { .. } => State::Failed,
    }
}

/// Whether this is content that says that the tool failed.
fn is_failed_content(result: &ToolResult<'_>) -> bool {
    result.is_error() && matches!(result.form(), ResultForm::Content(_))
}

/// What an outcome means, with the chunks that a streaming tool gave.
pub(crate) fn task_outcome(outcome: &Outcome, chunks: &[Value]) -> TaskOutcome {
    let state = state_of(outcome, chunks);
    match outcome {
        Outcome::Value(value) => value_outcome(value, state),
        Outcome::Stream { .. } => {
            let output = chunks.iter().flat_map(parts).collect();
            if let Some(said) = ToolResult::failed_task_of(chunks) {
                return failed(&said, output);
            }
            TaskOutcome { state: State::Completed, output, words: Vec::new(), replies: false }
        }
        Outcome::Denied(Denial { reason, .. })
        | Outcome::Cancelled { reason, .. }
        | Outcome::Incomplete { reason, .. } => {
            TaskOutcome::without_output(state, vec![Part::text(reason)])
        }
    }
}

/// What came of a task that the agent behind us has failed: what it said, then all that it gave.
fn failed(said: &[&str], gave: Vec<Part>) -> TaskOutcome {
    let said = if said.is_empty() { &["the agent's task failed"][..] } else { said };
    let words = said.iter().map(|text| Part::text(*text)).chain(gave).collect();
    TaskOutcome::without_output(State::Failed, words)
}

fn value_outcome(value: &Value, state: State) -> TaskOutcome {
    let result = ToolResult::new(value);
    let parts = parts(value);
    if is_failed_content(&result) {
        let silent = texts(&parts).is_empty();
        let failed = silent.then(|| Part::text("the tool failed"));
        let words = failed.into_iter().chain(parts).collect();
        return TaskOutcome::without_output(State::Failed, words);
    }
    if let Some(said) = result.failed_task() {
        return failed(&said, parts);
    }
    if state == State::InputRequired {
        return TaskOutcome::without_output(state, parts);
    }
    // A message has at least one part.
    let replies = result.reply() == Some("message") && !parts.is_empty();
    TaskOutcome { state, output: parts, words: Vec::new(), replies }
}

/// The parts of one result.
pub(crate) fn parts(value: &Value) -> Vec<Part> {
    let result = ToolResult::new(value);
    match result.form() {
        ResultForm::Text(text) => vec![Part::text(text)],
        ResultForm::Scalar(scalar) => vec![Part::text(scalar.to_string())],
        ResultForm::Data(data) => vec![Part::new(Content::Data(data.clone()))],
        ResultForm::Content(blocks) => content_parts(blocks, result.structured()),
    }
}

/// The parts of content as MCP writes it. Chio's own dialect shows its texts, and A2A all of it,
/// but not the same thing twice.
fn content_parts(blocks: &[Value], structured: Option<&Value>) -> Vec<Part> {
    let mut parts: Vec<Part> = blocks.iter().filter_map(block_part).collect();
    let Some(structured) = structured else { return parts };
    let mut data = Part::new(Content::Data(structured.clone()));
    if !parts.is_empty() {
        data.shown = Shown::InA2a;
    }
    for part in &mut parts {
        let repeats = part.as_text().is_some_and(|text| {
            serde_json::from_str::<Value>(text).is_ok_and(|value| value == *structured)
        });
        if repeats {
            part.shown = Shown::InSeed;
        }
    }
    parts.push(data);
    parts
}

fn block_part(value: &Value) -> Option<Part> {
    let part = match Block::new(value)? {
        Block::Text(text) => return Some(Part::text(text)),
        Block::File(file) => file_part(file),
        Block::Other(_) => None,
    };
    // What no part can hold is shown as it is: nothing that the tool gave is lost.
    let part = part.unwrap_or_else(|| Part::new(Content::Data(value.clone())));
    Some(Part { shown: Shown::InA2a, ..part })
}

fn file_part(file: File<'_>) -> Option<Part> {
    let content = match file.content {
        FileContent::Base64(data) => Content::Raw(base64(data)?),
        FileContent::Text(text) => Content::Text(text.to_owned()),
        FileContent::Uri(uri) => Content::Url(uri.to_owned()),
    };
    let media_type = file.media_type.map(str::to_owned);
    let filename = file.name.map(str::to_owned);
    Some(Part { media_type, filename, ..Part::new(content) })
}

/// Base64 that every reader takes, of base64 as tools write it.
fn base64(text: &str) -> Option<String> {
    if STANDARD.decode(text).is_ok() {
        return Some(text.to_owned());
    }
    let bare = text.trim_end_matches('=');
    let bytes = STANDARD_NO_PAD.decode(bare).or_else(|_| URL_SAFE_NO_PAD.decode(bare)).ok()?;
    Some(STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::dialect::v1::write_part;

    /// The parts as A2A shows them, and as Chio's own dialect does.
    fn shown(result: &Value) -> (Value, Value) {
        let parts = parts(result);
        let of = |hidden: Shown| {
            let shown = parts.iter().filter(|part| part.shown != hidden);
            Value::Array(shown.map(write_part).collect())
        };
        (of(Shown::InSeed), of(Shown::InA2a))
    }

    // covers: BRIDGE-094..BRIDGE-097
    #[test]
    fn each_kind_of_result_has_its_parts() {
        for (result, parts) in [
            (json!("high tide"), json!([{"text": "high tide"}])),
            (
                json!({"content": [{"type": "text", "text": "a"}, {"text": "b"}, {"text": 1}]}),
                json!([{"text": "a"}, {"text": "b"}]),
            ),
            (json!({"content": []}), json!([])),
            (json!({"content": "text"}), json!([{"data": {"content": "text"}}])),
            (json!({"a": 1}), json!([{"data": {"a": 1}}])),
            (json!([1, 2]), json!([{"data": [1, 2]}])),
            (json!(7), json!([{"text": "7"}])),
            (json!(true), json!([{"text": "true"}])),
            (json!(null), json!([{"text": "null"}])),
            (json!({"content": [], "structuredContent": {"a": 1}}), json!([{"data": {"a": 1}}])),
        ] {
            assert_eq!(shown(&result), (parts.clone(), parts), "{result}");
        }
    }

    #[test]
    fn files_and_structure_are_shown_in_a2a_only() {
        for (result, in_a2a, in_seed) in [
            (
                json!({"content": [{"type": "image", "data": "AA==", "mimeType": "image/png"}]}),
                json!([{"raw": "AA==", "mediaType": "image/png"}]),
                json!([]),
            ),
            (
                json!({"content": [{"type": "resource", "resource": {
                    "uri": "file:///out/output.txt?x", "blob": "AA==", "mimeType": "text/plain",
                }}]}),
                json!([{"raw": "AA==", "mediaType": "text/plain", "filename": "output.txt"}]),
                json!([]),
            ),
            (
                json!({"content": [{"type": "resource", "resource": {
                    "uri": "file:///n", "text": "t", "mimeType": "text/plain",
                }}]}),
                json!([{"text": "t", "mediaType": "text/plain", "filename": "n"}]),
                json!([]),
            ),
            (
                json!({"content": [{
                    "type": "resource_link", "uri": "http://x/o", "name": "output.txt",
                    "mimeType": "text/plain",
                }]}),
                json!([{"url": "http://x/o", "mediaType": "text/plain", "filename": "output.txt"}]),
                json!([]),
            ),
            (
                json!({
                    "content": [{"type": "text", "text": "{\"a\": 1}"}],
                    "structuredContent": {"a": 1},
                }),
                json!([{"data": {"a": 1}}]),
                json!([{"text": "{\"a\": 1}"}]),
            ),
            (
                json!({
                    "content": [{"type": "text", "text": "one"}],
                    "structuredContent": {"a": 1},
                }),
                json!([{"text": "one"}, {"data": {"a": 1}}]),
                json!([{"text": "one"}]),
            ),
            (
                json!({"content": [{"type": "image", "data": "*"}, {"type": "x"}, 7]}),
                json!([{"data": {"type": "image", "data": "*"}}, {"data": {"type": "x"}}]),
                json!([]),
            ),
            (
                json!({"content": [{"type": "audio", "data": "-_8"}, {"type": "image", "data": "AA"}]}),
                json!([{"raw": "+/8="}, {"raw": "AA=="}]),
                json!([]),
            ),
        ] {
            assert_eq!(shown(&result), (in_a2a, in_seed), "{result}");
        }
    }

    // covers: BRIDGE-082, BRIDGE-083, BRIDGE-112
    #[test]
    fn each_outcome_has_its_state() {
        let denied = |code| Outcome::Denied(Denial::by_kernel(code, "why"));
        let content = json!([{"type": "text", "text": "t"}]);
        let with = |reply: &str| {
            let meta = json!({"chio": {"a2a": {"reply": reply}}});
            Outcome::Value(json!({"content": content, "_meta": meta}))
        };
        let task = |failed: bool| json!({"task": {"id": "t", "status": {}}, "isError": failed});
        let (reason, chunks) = ("why".to_owned(), 0);
        for (outcome, state, replies) in [
            (Outcome::Value(json!("x")), State::Completed, false),
            (Outcome::Stream { chunks: 0 }, State::Completed, false),
            (denied(ErrorCode::GuardDenied), State::Rejected, false),
            (denied(ErrorCode::CapabilityDenied), State::Rejected, false),
            (denied(ErrorCode::BudgetExhausted), State::Rejected, false),
            (denied(ErrorCode::ToolServerError), State::Failed, false),
            (Outcome::Cancelled { reason: reason.clone(), chunks }, State::Canceled, false),
            (Outcome::Incomplete { reason, chunks }, State::Failed, false),
            (Outcome::Value(json!({"content": content, "isError": true})), State::Failed, false),
            (Outcome::Value(json!({"isError": true})), State::Completed, false),
            (Outcome::Value(task(true)), State::Failed, false),
            (Outcome::Value(task(false)), State::Completed, false),
            (with("message"), State::Completed, true),
            (with("input_required"), State::InputRequired, false),
            (with("other"), State::Completed, false),
        ] {
            let ending = task_outcome(&outcome, &[]);
            assert_eq!((ending.state, ending.replies), (state, replies), "{outcome:?}");
            let silent = ending.words.is_empty();
            assert_eq!(silent, state == State::Completed, "{outcome:?}");
        }
    }

    #[test]
    fn a_stream_has_the_parts_of_its_chunks_one_after_another() {
        let chunks = [json!("a"), json!({"b": 1})];
        let ending = task_outcome(&Outcome::Stream { chunks: 2 }, &chunks);
        let written: Vec<Value> = ending.output.iter().map(write_part).collect();
        assert_eq!(json!(written), json!([{"text": "a"}, {"data": {"b": 1}}]));
        let last = json!({"statusUpdate": {"status": {}}, "isError": true});
        let failed = task_outcome(&Outcome::Stream { chunks: 2 }, &[json!("a"), last]);
        assert_eq!((failed.state, failed.words.len()), (State::Failed, 3));
    }
}
