//! A2A 1.0: the JSON of its protocol buffers.

use serde_json::{Map, Value, json};

use super::Fields;
use crate::error::{Fault, Kind};
use crate::message::{Content, MAX_NAME, Message, Part, Role, Send, Shown, TaskRef};
use crate::moment::timestamp;
use crate::record::TaskRecord;

/// The roles, by number.
const ROLES: [&str; 3] = ["ROLE_UNSPECIFIED", "ROLE_USER", "ROLE_AGENT"];
/// The states, by number.
pub(crate) const STATES: [&str; 9] = [
    "TASK_STATE_UNSPECIFIED",
    "TASK_STATE_SUBMITTED",
    "TASK_STATE_WORKING",
    "TASK_STATE_COMPLETED",
    "TASK_STATE_FAILED",
    "TASK_STATE_CANCELED",
    "TASK_STATE_INPUT_REQUIRED",
    "TASK_STATE_REJECTED",
    "TASK_STATE_AUTH_REQUIRED",
];
/// The most parts that a message may have.
pub(super) const MAX_PARTS: usize = 256;

/// Reads a `SendMessageRequest`.
pub(crate) fn read_send(params: Map<String, Value>) -> Result<Send, Fault> {
    let mut params = Fields::new(params, "params");
    let message = params.take("message")?;
    let message = message.ok_or_else(|| Fault::params("expected `message`, found none"))?;
    let message = read_message(message)?;
    let configuration = params.object("configuration")?.unwrap_or_default();
    let mut configuration = Fields::new(configuration, "configuration");
    let history = history_length(&mut configuration)?;
    let at_once = configuration.flag("returnImmediately")?.unwrap_or(false);
    if configuration.take("taskPushNotificationConfig")?.is_some() {
        return Err(no_push());
    }
    Ok(Send { message, metadata: params.object("metadata")?, at_once, history })
}

/// Nobody is notified.
pub(super) fn no_push() -> Fault {
    Fault::new(Kind::PushNotSupported, "push notifications are not supported")
}

/// How many messages of the history are wanted.
pub(super) fn history_length(fields: &mut Fields) -> Result<Option<usize>, Fault> {
    let Some(length) = fields.integer("historyLength")? else { return Ok(None) };
    let length = usize::try_from(length);
    length.map(Some).map_err(|_| Fault::params("expected `historyLength` of at least 0"))
}

/// Reads a `GetTaskRequest` or `CancelTaskRequest`.
pub(crate) fn read_task(params: Map<String, Value>) -> Result<TaskRef, Fault> {
    let mut params = Fields::new(params, "params");
    let id = params.name("id")?.ok_or_else(|| Fault::params("expected the `id` of a task"))?;
    let history = history_length(&mut params)?;
    Ok(TaskRef { id, metadata: params.object("metadata")?, history })
}

fn read_message(value: Value) -> Result<Message, Fault> {
    let mut message = Fields::of(value, "message")?;
    let id = bounded(&mut message, "messageId")?;
    let id = id.ok_or_else(|| Fault::params("expected a `messageId`, found none"))?;
    let role = match message.one_of("role", &ROLES)? {
        Some("ROLE_USER") => Role::User,
        Some("ROLE_AGENT") => Role::Agent,
        _ => return Err(Fault::params("expected a `role` of ROLE_USER or ROLE_AGENT")),
    };
    let parts = read_parts(message.list("parts")?, read_part)?;
    Ok(Message {
        id: Some(id),
        role,
        parts,
        context_id: bounded(&mut message, "contextId")?,
        task_id: bounded(&mut message, "taskId")?,
        metadata: message.object("metadata")?,
        extensions: message.texts("extensions")?,
        reference_task_ids: message.texts("referenceTaskIds")?,
    })
}

/// A name that receipts can repeat.
pub(super) fn bounded(fields: &mut Fields, name: &'static str) -> Result<Option<String>, Fault> {
    let Some(text) = fields.name(name)? else { return Ok(None) };
    let sound = text.len() <= MAX_NAME && !text.chars().any(char::is_control);
    let wrong = || {
        Fault::params(format!(
            "expected `{name}` of at most {MAX_NAME} bytes without control characters"
        ))
    };
    if sound { Ok(Some(text)) } else { Err(wrong()) }
}

pub(super) fn read_parts(
    parts: Vec<Value>,
    read: fn(Value) -> Result<Part, Fault>,
) -> Result<Vec<Part>, Fault> {
    if parts.is_empty() || parts.len() > MAX_PARTS {
        return Err(Fault::params(format!("expected 1 to {MAX_PARTS} `parts`")));
    }
    parts.into_iter().map(read).collect()
}

fn read_part(value: Value) -> Result<Part, Fault> {
    let mut part = Fields::of(value, "part")?;
    let found = [
        part.text("text")?.map(Content::Text),
        part.bytes("raw")?.map(Content::Raw),
        part.text("url")?.map(Content::Url),
        part.take("data")?.map(Content::Data),
    ];
    let mut found = found.into_iter().flatten();
    let (Some(content), None) = (found.next(), found.next()) else {
        return Err(Fault::params("expected a part with one of `text`, `raw`, `url` and `data`"));
    };
    Ok(Part {
        content,
        media_type: part.name("mediaType")?,
        filename: part.name("filename")?,
        metadata: part.object("metadata")?,
        shown: Shown::Everywhere,
    })
}

/// Sets a member that is not unset.
fn set(members: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        members.insert(name.to_owned(), value);
    }
}

/// A part as 1.0 writes it.
pub(crate) fn write_part(part: &Part) -> Value {
    let mut members = Map::new();
    let (name, value) = match &part.content {
        Content::Text(text) => ("text", json!(text)),
        Content::Raw(bytes) => ("raw", json!(bytes)),
        Content::Url(url) => ("url", json!(url)),
        Content::Data(data) => ("data", data.clone()),
    };
    members.insert(name.to_owned(), value);
    set(&mut members, "mediaType", part.media_type.as_ref().map(|it| json!(it)));
    set(&mut members, "filename", part.filename.as_ref().map(|it| json!(it)));
    set(&mut members, "metadata", part.metadata.as_ref().map(|it| json!(it)));
    Value::Object(members)
}

/// The parts that are shown in A2A.
fn write_parts(parts: &[Part]) -> Vec<Value> {
    parts.iter().filter(|part| part.shown != Shown::InSeed).map(write_part).collect()
}

fn write_message(message: &Message, record: &TaskRecord) -> Value {
    let mut members = Map::new();
    let role = match message.role {
        Role::User => "ROLE_USER",
        Role::Agent => "ROLE_AGENT",
    };
    let id = message.id.clone().unwrap_or_else(|| format!("{}-message", record.id));
    members.insert("messageId".to_owned(), json!(id));
    members.insert("role".to_owned(), json!(role));
    members.insert("parts".to_owned(), json!(write_parts(&message.parts)));
    members.insert("taskId".to_owned(), json!(record.id));
    set(&mut members, "contextId", record.context_id.as_ref().map(|it| json!(it)));
    let list = |texts: &Vec<String>| (!texts.is_empty()).then(|| json!(texts));
    set(&mut members, "extensions", list(&message.extensions));
    set(&mut members, "referenceTaskIds", list(&message.reference_task_ids));
    Value::Object(members)
}

/// A `SendMessageResponse`.
pub(crate) fn write_sent(record: &TaskRecord, history: Option<usize>) -> Value {
    if record.replies {
        return json!({"message": write_reply(record)});
    }
    json!({"task": write_task(record, history, true)})
}

/// The answer as a message, where the tool asked for one.
fn write_reply(record: &TaskRecord) -> Value {
    let mut members = Map::new();
    members.insert("messageId".to_owned(), json!(format!("{}-reply", record.id)));
    members.insert("role".to_owned(), json!("ROLE_AGENT"));
    members.insert("parts".to_owned(), json!(write_parts(&record.output)));
    set(&mut members, "contextId", record.context_id.as_ref().map(|it| json!(it)));
    members.insert("metadata".to_owned(), record.account.in_a2a());
    Value::Object(members)
}

/// A `Task`.
pub(crate) fn write_task(record: &TaskRecord, history: Option<usize>, artifacts: bool) -> Value {
    let mut status = Map::new();
    status.insert("state".to_owned(), json!(record.state.name()));
    status.insert("timestamp".to_owned(), json!(timestamp(record.updated_at)));
    let words = write_parts(&record.words);
    if !words.is_empty() {
        let mut message = Map::new();
        message.insert("messageId".to_owned(), json!(format!("{}-status", record.id)));
        message.insert("role".to_owned(), json!("ROLE_AGENT"));
        message.insert("parts".to_owned(), json!(words));
        message.insert("taskId".to_owned(), json!(record.id));
        set(&mut message, "contextId", record.context_id.as_ref().map(|it| json!(it)));
        status.insert("message".to_owned(), Value::Object(message));
    }
    let mut task = Map::new();
    task.insert("id".to_owned(), json!(record.id));
    set(&mut task, "contextId", record.context_id.as_ref().map(|it| json!(it)));
    task.insert("status".to_owned(), Value::Object(status));
    let output = if artifacts { write_parts(&record.output) } else { Vec::new() };
    if !output.is_empty() {
        let artifact = json!({"artifactId": "result", "name": record.skill, "parts": output});
        task.insert("artifacts".to_owned(), json!([artifact]));
    }
    let messages = record.newest(history).iter().map(|message| write_message(message, record));
    let messages: Vec<Value> = messages.collect();
    if !messages.is_empty() {
        task.insert("history".to_owned(), json!(messages));
    }
    task.insert("metadata".to_owned(), record.account.in_a2a());
    Value::Object(task)
}

#[cfg(test)]
mod tests;
