//! A2A 0.3: parts, messages and tasks say what kind of thing they are.

use chio_core::calendar::rfc3339_millis;
use chio_core::text::members;
use serde_json::{Map, Value, json};

use super::Fields;
use super::v1::read_send_with;
use crate::error::Fault;
use crate::message::{Content, Message, Part, Role, SendRequest, Shown};
use crate::record::{State, TaskRecord};

/// Reads the params of `message/send`.
pub(crate) fn read_send(params: Map<String, Value>) -> Result<SendRequest, Fault> {
    // A client that does not say waits for the end.
    let at_once = |fields: &mut Fields| Ok(fields.flag("blocking")? == Some(false));
    read_send_with(params, (read_role, read_part), at_once, "pushNotificationConfig")
}

fn read_role(message: &mut Fields) -> Result<Role, Fault> {
    match message.text("role")?.as_deref() {
        Some("user") => Ok(Role::User),
        Some("agent") => Ok(Role::Agent),
        _ => Err(Fault::params("expected a `role` of `user` or `agent`")),
    }
}

fn read_part(value: Value) -> Result<Part, Fault> {
    let mut part = Fields::from_value(value, "part")?;
    let metadata = part.object("metadata")?;
    let kind = part.text("kind")?;
    let missing = |what: &str| Fault::params(format!("expected a part with `{what}`"));
    let (content, media_type, filename) = match kind.as_deref() {
        Some("text") => {
            (Content::Text(part.text("text")?.ok_or_else(|| missing("text"))?), None, None)
        }
        Some("data") => {
            (Content::Data(part.take("data")?.ok_or_else(|| missing("data"))?), None, None)
        }
        Some("file") => {
            let file = part.object("file")?.ok_or_else(|| missing("file"))?;
            let mut file = Fields::new(file, "file");
            let content = match (file.bytes("bytes")?, file.text("uri")?) {
                (Some(bytes), None) => Content::Raw(bytes),
                (None, Some(uri)) => Content::Url(uri),
                _ => return Err(Fault::params("expected a file with one of `bytes` and `uri`")),
            };
            (content, file.name("mimeType")?, file.name("name")?)
        }
        _ => return Err(Fault::params("expected a part of kind `text`, `file` or `data`")),
    };
    Ok(Part { content, media_type, filename, metadata, shown: Shown::Everywhere })
}

const fn state(state: State) -> &'static str {
    match state {
        State::Working => "working",
        State::Completed => "completed",
        State::Failed => "failed",
        State::Canceled => "canceled",
        State::Rejected => "rejected",
        State::InputRequired => "input-required",
    }
}

fn set(members: &mut Map<String, Value>, name: &str, value: Option<&String>) {
    if let Some(value) = value {
        members.insert(name.to_owned(), json!(value));
    }
}

fn write_part(part: &Part) -> Value {
    let mut value = match &part.content {
        Content::Text(text) => json!({"kind": "text", "text": text}),
        Content::Data(data) => json!({"kind": "data", "data": data}),
        Content::Raw(text) | Content::Url(text) => {
            let mut file = Map::new();
            let is_raw = matches!(part.content, Content::Raw(_));
            file.insert((if is_raw { "bytes" } else { "uri" }).to_owned(), json!(text));
            set(&mut file, "mimeType", part.media_type.as_ref());
            set(&mut file, "name", part.filename.as_ref());
            json!({"kind": "file", "file": file})
        }
    };
    if let (Some(metadata), Value::Object(members)) = (&part.metadata, &mut value) {
        members.insert("metadata".to_owned(), json!(metadata));
    }
    value
}

fn write_parts(parts: &[Part]) -> Vec<Value> {
    parts.iter().filter(|part| part.shown != Shown::InSeed).map(write_part).collect()
}

/// A message of the agent.
fn agent_message(record: &TaskRecord, suffix: &str, parts: &[Part]) -> Map<String, Value> {
    let mut members = members(json!({
        "kind": "message",
        "messageId": format!("{}-{suffix}", record.id),
        "role": "agent",
        "parts": write_parts(parts),
    }));
    set(&mut members, "contextId", record.context_id.as_ref());
    members
}

fn write_message(message: &Message, record: &TaskRecord) -> Value {
    let id = message.id.clone().unwrap_or_else(|| format!("{}-message", record.id));
    let role = match message.role {
        Role::User => "user",
        Role::Agent => "agent",
    };
    let mut members = agent_message(record, "message", &message.parts);
    members.insert("messageId".to_owned(), json!(id));
    members.insert("role".to_owned(), json!(role));
    members.insert("taskId".to_owned(), json!(record.id));
    Value::Object(members)
}

/// The result of `message/send`: a task, or a message.
pub(crate) fn write_sent(record: &TaskRecord, history: Option<usize>) -> Value {
    if !record.replies {
        return write_task(record, history);
    }
    let mut reply = agent_message(record, "reply", &record.output);
    reply.insert("metadata".to_owned(), json!(record.report.in_a2a()));
    Value::Object(reply)
}

/// A task.
pub(crate) fn write_task(record: &TaskRecord, history: Option<usize>) -> Value {
    let timestamp = rfc3339_millis(record.updated_at);
    let mut status = members(json!({"state": state(record.state), "timestamp": timestamp}));
    if !record.words.is_empty() {
        let mut message = agent_message(record, "status", &record.words);
        message.insert("taskId".to_owned(), json!(record.id));
        status.insert("message".to_owned(), Value::Object(message));
    }
    let mut task = members(json!({
        "kind": "task",
        "id": record.id,
        // 0.3 has it in every task.
        "contextId": record.context_id.as_deref().unwrap_or_default(),
    }));
    task.insert("status".to_owned(), Value::Object(status));
    let output = write_parts(&record.output);
    if !output.is_empty() {
        let artifact = json!({"artifactId": "result", "name": record.skill, "parts": output});
        task.insert("artifacts".to_owned(), json!([artifact]));
    }
    let messages = record.newest(history).iter().map(|message| write_message(message, record));
    let messages: Vec<Value> = messages.collect();
    if !messages.is_empty() {
        task.insert("history".to_owned(), json!(messages));
    }
    task.insert("metadata".to_owned(), json!(record.report.in_a2a()));
    Value::Object(task)
}

#[cfg(test)]
mod tests;
