//! The dialect of Chio's own documents: `message/send`, `message/stream`, `task/get`,
//! `task/cancel`.

use chio_core::text::{is_sound, members};
use serde_json::{Map, Value, json};

use super::v1::MAX_PARTS;
use crate::error::Fault;
use crate::message::{Content, MAX_NAME, Message, Part, Role, SendRequest, Shown, TaskRef, texts};
use crate::modes::AcceptedModes;
use crate::record::{State, TaskRecord};

/// What an answer to `message/send` calls its surface.
pub(crate) const SENT: &str = "authoritative_blocking_send";
/// What every other answer does.
pub(crate) const FETCHED: &str = "authoritative_deferred_task";

/// Reads the params of `message/send` and `message/stream`.
pub(crate) fn read_send(mut params: Map<String, Value>) -> Result<SendRequest, Fault> {
    let Some(Value::Object(mut message)) = params.remove("message") else {
        return Err(Fault::params("expected `message` to be an object"));
    };
    let Some(Value::String(role)) = message.remove("role") else {
        return Err(Fault::params("expected `role` to be a string"));
    };
    let parts = match message.remove("parts") {
        Some(Value::Array(parts)) if (1..=MAX_PARTS).contains(&parts.len()) => parts,
        _ => return Err(Fault::params(format!("expected 1 to {MAX_PARTS} `parts`"))),
    };
    let parts = parts.into_iter().map(read_part).collect::<Result<Vec<Part>, Fault>>()?;
    let id = match message.remove("messageId") {
        Some(Value::String(id)) if (1..=MAX_NAME).contains(&id.len()) => Some(id),
        _ => None,
    };
    let id = id.filter(|id| !id.chars().any(char::is_control));
    let role = if role == "agent" { Role::Agent } else { Role::User };
    let metadata = object(message.remove("metadata"), "message.metadata")?;
    let message = Message { id, metadata, ..Message::new(role, parts) };
    let metadata = object(params.remove("metadata"), "metadata")?;
    let accepted = AcceptedModes::default();
    Ok(SendRequest { message, metadata, at_once: false, history: None, accepted })
}

fn object(value: Option<Value>, name: &'static str) -> Result<Option<Map<String, Value>>, Fault> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(members)) => Ok(Some(members)),
        Some(_) => Err(Fault::params(format!("expected `{name}` to be an object"))),
    }
}

fn read_part(value: Value) -> Result<Part, Fault> {
    let wrong = || Fault::params("expected a part of type `text` with text or `data` with data");
    let Value::Object(mut members) = value else { return Err(wrong()) };
    let kind = members.remove("type");
    let content = match kind.as_ref().and_then(Value::as_str) {
        Some("text") => match members.remove("text") {
            Some(Value::String(text)) => Content::Text(text),
            _ => return Err(wrong()),
        },
        Some("data") => Content::Data(members.remove("data").ok_or_else(wrong)?),
        _ => return Err(wrong()),
    };
    Ok(Part::new(content))
}

/// Reads the params of `task/get` and `task/cancel`.
pub(crate) fn read_task(mut params: Map<String, Value>) -> Result<TaskRef, Fault> {
    let wrong = || Fault::params("expected a `taskId` without blanks or control characters");
    let Some(Value::String(id)) = params.remove("taskId") else { return Err(wrong()) };
    if !is_sound(&id) {
        return Err(wrong());
    }
    let metadata = object(params.remove("metadata"), "metadata")?;
    Ok(TaskRef { id, metadata, history: None })
}

const fn status(state: State) -> &'static str {
    match state {
        // The dialect has no status for a task that waits for input.
        State::Working | State::InputRequired => "working",
        State::Completed => "completed",
        State::Failed | State::Rejected => "failed",
        State::Canceled => "cancelled",
    }
}

fn write_part(part: &Part) -> Option<Value> {
    match &part.content {
        _ if part.shown == Shown::InA2a => None,
        Content::Text(text) => Some(json!({"type": "text", "text": text})),
        Content::Data(data) => Some(json!({"type": "data", "data": data})),
        Content::Raw(_) | Content::Url(_) => None,
    }
}

/// A `TaskResponse`.
pub(crate) fn write(record: &TaskRecord, surface: &'static str) -> Value {
    let mut task = members(json!({"id": record.id, "status": status(record.state)}));
    if record.state == State::Completed {
        let parts: Vec<Value> = record.output.iter().filter_map(write_part).collect();
        task.insert("message".to_owned(), json!({"role": "agent", "parts": parts}));
    } else {
        let words = match texts(&record.words) {
            words if words.is_empty() && record.state == State::Working => {
                "the task runs when `task/get` asks for it".to_owned()
            }
            words => words,
        };
        task.insert("statusMessage".to_owned(), json!(words));
    }
    task.insert("metadata".to_owned(), record.report.in_seed(surface));
    Value::Object(task)
}

#[cfg(test)]
mod tests;
