//! The tool behind which the checks of A2A servers find what they ask for.
//!
//! The official test kit of A2A says what it wants by the id of its message, since nothing else of
//! a message is left to it.

use serde_json::{Value, json};

use super::Tool;
use crate::call::{Call, Outcome, text};

/// "Generated text content", in base64.
const FILE: &str = "R2VuZXJhdGVkIHRleHQgY29udGVudA==";
/// Where a file could be; it is never read.
const FILE_URL: &str = "https://example.com/output.txt";

pub(super) const TOOLS: &[Tool] =
    &[Tool::new("tck", "Answers as the id of the message asks for.", tck).takes(|| {
        json!({
            "type": "object",
            "properties": {"message": {"type": "string"}, "parts": {"type": "array"}},
        })
    })];

fn tck(call: &Call) -> Outcome {
    let message = call.a2a_message.as_deref().unwrap_or_default();
    let is = |beginning: &str| message.starts_with(beginning);
    Ok(match message {
        _ if is("tck-artifact-text") => text("Generated text content"),
        // Before what it begins with.
        _ if is("tck-artifact-file-url") => link(),
        _ if is("tck-artifact-file") => file(),
        _ if is("tck-artifact-data") => {
            json!({"content": [], "structuredContent": {"key": "value", "count": 42}})
        }
        _ if is("tck-message-response") => replying("message", "Direct message response"),
        // Not of the kit: an answer that takes its time.
        _ if is("tck-wait") => {
            call.pause(60_000)?;
            text("Done.")
        }
        _ if is("tck-input-required") => replying("input_required", "Which one do you mean?"),
        _ => text("Done."),
    })
}

fn link() -> Value {
    let link = json!({
        "type": "resource_link",
        "uri": FILE_URL,
        "name": "output.txt",
        "mimeType": "text/plain",
    });
    json!({"content": [link]})
}

fn file() -> Value {
    let blob = json!({"uri": "file:///output.txt", "mimeType": "text/plain", "blob": FILE});
    json!({"content": [{"type": "resource", "resource": blob}]})
}

/// A text that is to be more than the result of a task.
fn replying(reply: &str, said: &str) -> Value {
    json!({
        "content": [{"type": "text", "text": said}],
        "_meta": {"chio": {"a2a": {"reply": reply}}},
    })
}
