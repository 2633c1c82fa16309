//! A2A 1.0: the JSON of its protocol buffers.

mod write;

use serde_json::{Map, Value};

pub(crate) use write::{Sent, Task, write_part};

use super::Fields;
use crate::error::{Fault, Kind};
use crate::message::{Content, MAX_NAME, Message, Part, Role, SendRequest, Shown, TaskRef};
use crate::modes::AcceptedModes;

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
pub(crate) fn read_send(params: Map<String, Value>) -> Result<SendRequest, Fault> {
    let at_once = |fields: &mut Fields| Ok(fields.flag("returnImmediately")?.unwrap_or(false));
    read_send_with(params, (read_role, read_part), at_once, "taskPushNotificationConfig")
}

/// How a version reads roles and parts.
type Readers = (fn(&mut Fields) -> Result<Role, Fault>, fn(Value) -> Result<Part, Fault>);

/// Reads a message and its configuration, of any version.
pub(super) fn read_send_with(
    params: Map<String, Value>,
    readers: Readers,
    at_once: fn(&mut Fields) -> Result<bool, Fault>,
    push: &'static str,
) -> Result<SendRequest, Fault> {
    let mut params = Fields::new(params, "params");
    let message = params.take("message")?;
    let message = message.ok_or_else(|| Fault::params("expected `message`, found none"))?;
    let message = read_message(message, readers)?;
    let configuration = params.object("configuration")?.unwrap_or_default();
    let mut configuration = Fields::new(configuration, "configuration");
    let history = history_length(&mut configuration)?;
    let at_once = at_once(&mut configuration)?;
    let accepted = AcceptedModes::read(&configuration.texts("acceptedOutputModes")?)?;
    if configuration.take(push)?.is_some() {
        return Err(no_push());
    }
    let metadata = params.object("metadata")?;
    Ok(SendRequest { message, metadata, at_once, history, accepted })
}

/// Push notifications are not supported.
pub(crate) fn no_push() -> Fault {
    Fault::new(Kind::PushNotSupported, "push notifications are not supported")
}

/// The most messages of the history that the client wants; all when absent.
pub(crate) fn history_length(fields: &mut Fields) -> Result<Option<usize>, Fault> {
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

fn read_role(message: &mut Fields) -> Result<Role, Fault> {
    match message.one_of("role", &ROLES)? {
        Some("ROLE_USER") => Ok(Role::User),
        Some("ROLE_AGENT") => Ok(Role::Agent),
        _ => Err(Fault::params("expected a `role` of ROLE_USER or ROLE_AGENT")),
    }
}

fn read_message(value: Value, (read_role, read_part): Readers) -> Result<Message, Fault> {
    let mut message = Fields::from_value(value, "message")?;
    let id = bounded(&mut message, "messageId")?;
    let id = id.ok_or_else(|| Fault::params("expected a `messageId`, found none"))?;
    let role = read_role(&mut message)?;
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
fn bounded(fields: &mut Fields, name: &'static str) -> Result<Option<String>, Fault> {
    let Some(text) = fields.name(name)? else { return Ok(None) };
    let sound = text.len() <= MAX_NAME && !text.chars().any(char::is_control);
    let wrong = || {
        Fault::params(format!(
            "expected `{name}` of at most {MAX_NAME} bytes without control characters"
        ))
    };
    if sound { Ok(Some(text)) } else { Err(wrong()) }
}

fn read_parts(
    parts: Vec<Value>,
    read: fn(Value) -> Result<Part, Fault>,
) -> Result<Vec<Part>, Fault> {
    if parts.is_empty() || parts.len() > MAX_PARTS {
        return Err(Fault::params(format!("expected 1 to {MAX_PARTS} `parts`")));
    }
    parts.into_iter().map(read).collect()
}

fn read_part(value: Value) -> Result<Part, Fault> {
    let mut part = Fields::from_value(value, "part")?;
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

#[cfg(test)]
mod tests;
