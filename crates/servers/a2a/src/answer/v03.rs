//! What agents of A2A 0.3 answer, as those of 1.0 would.
//!
//! Callers then have one contract whichever version the agent speaks. What is not known is left as
//! it is; what must be there is checked afterwards.

use serde_json::{Map, Value, json};

use crate::error::AgentError;

/// The states whose name is not the old one in capitals.
const STATES: [(&str, &str); 4] = [
    ("TASK_STATE_CANCELLED", "TASK_STATE_CANCELED"),
    ("input-required", "TASK_STATE_INPUT_REQUIRED"),
    ("auth-required", "TASK_STATE_AUTH_REQUIRED"),
    ("unknown", "TASK_STATE_UNSPECIFIED"),
];

/// An answer or an event: what `kind` said is said by the member that it is in.
///
/// # Errors
/// When it says no kind at all.
pub(super) fn event(value: Value) -> Result<Value, AgentError> {
    let Value::Object(mut object) = value else {
        return Err(AgentError::Protocol("expected an object, found something else".to_owned()));
    };
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    match kind.as_str() {
        "task" => Ok(json!({"task": task(Value::Object(object))})),
        "message" => Ok(json!({"message": message(Value::Object(object))})),
        "status-update" => Ok(json!({"statusUpdate": update(object)})),
        "artifact-update" => Ok(json!({"artifactUpdate": update(object)})),
        // Over HTTP+JSON it is wrapped already, as in 1.0.
        _ => {
            type Renew = fn(Value) -> Value;
            let known: [(&str, Renew); 4] = [
                ("task", task),
                ("message", message),
                ("statusUpdate", renew_update),
                ("artifactUpdate", renew_update),
            ];
            for (name, renew) in known {
                if let Some(inner) = object.remove(name) {
                    object.insert(name.to_owned(), renew(inner));
                }
            }
            Ok(Value::Object(object))
        }
    }
}

/// A task.
pub(super) fn task(value: Value) -> Value {
    let Value::Object(mut task) = value else { return value };
    task.remove("kind");
    change(&mut task, "status", status);
    change_each(&mut task, "artifacts", artifact);
    change_each(&mut task, "history", message);
    Value::Object(task)
}

/// A push-notification config: flat, with its task.
pub(super) fn push_config(value: Value) -> Value {
    let Value::Object(mut outer) = value else { return value };
    let Some(Value::Object(mut config)) = outer.remove("pushNotificationConfig") else {
        return Value::Object(outer);
    };
    // Over HTTP+JSON the task is in the name of the resource.
    let name = outer.get("name").and_then(Value::as_str).unwrap_or_default();
    let named = name.strip_prefix("tasks/").and_then(|rest| rest.split('/').next());
    let named = named.map(|task_id| json!(task_id));
    if let Some(task_id) = outer.remove("taskId").or(named) {
        config.insert("taskId".to_owned(), task_id);
    }
    change(&mut config, "authentication", |authentication| {
        let Value::Object(mut it) = authentication else { return authentication };
        if let Some(Value::Array(schemes)) = it.remove("schemes") {
            it.insert("scheme".to_owned(), schemes.into_iter().next().unwrap_or_default());
        }
        Value::Object(it)
    });
    Value::Object(config)
}

fn renew_update(value: Value) -> Value {
    match value {
        Value::Object(object) => update(object),
        other => other,
    }
}

fn update(mut update: Map<String, Value>) -> Value {
    update.remove("kind");
    update.remove("final");
    change(&mut update, "status", status);
    change(&mut update, "artifact", artifact);
    Value::Object(update)
}

fn status(value: Value) -> Value {
    let Value::Object(mut status) = value else { return value };
    change(&mut status, "state", |state| match state.as_str() {
        Some(name) => json!(state_name(name)),
        None => state,
    });
    change(&mut status, "message", message);
    Value::Object(status)
}

fn state_name(old: &str) -> String {
    if let Some((_, new)) = STATES.iter().find(|(known, _)| *known == old) {
        return (*new).to_owned();
    }
    let plain = !old.is_empty() && old.bytes().all(|byte| byte.is_ascii_lowercase());
    if plain { format!("TASK_STATE_{}", old.to_ascii_uppercase()) } else { old.to_owned() }
}

fn artifact(value: Value) -> Value {
    let Value::Object(mut artifact) = value else { return value };
    change_each(&mut artifact, "parts", part);
    Value::Object(artifact)
}

fn message(value: Value) -> Value {
    let Value::Object(mut message) = value else { return value };
    message.remove("kind");
    change(&mut message, "role", |role| match role.as_str() {
        Some("user") => json!("ROLE_USER"),
        Some("agent") => json!("ROLE_AGENT"),
        _ => role,
    });
    // Over HTTP+JSON they are called so.
    if let Some(parts) = message.remove("content") {
        message.insert("parts".to_owned(), parts);
    }
    change_each(&mut message, "parts", part);
    Value::Object(message)
}

fn part(value: Value) -> Value {
    let Value::Object(mut part) = value else { return value };
    let says_kind = part.remove("kind").is_some();
    // Over HTTP+JSON data is wrapped once more.
    if !says_kind
        && let Some(Value::Object(wrapped)) = part.get_mut("data")
        && wrapped.len() == 1
        && let Some(data) = wrapped.remove("data")
    {
        part.insert("data".to_owned(), data);
    }
    let Some(Value::Object(mut file)) = part.remove("file") else { return Value::Object(part) };
    for (old, new) in [
        ("bytes", "raw"),
        ("fileWithBytes", "raw"),
        ("uri", "url"),
        ("fileWithUri", "url"),
        ("name", "filename"),
        ("mimeType", "mediaType"),
    ] {
        if let Some(value) = file.remove(old) {
            part.insert(new.to_owned(), value);
        }
    }
    Value::Object(part)
}

fn change(object: &mut Map<String, Value>, member: &str, change: fn(Value) -> Value) {
    if let Some(value) = object.get_mut(member) {
        *value = change(value.take());
    }
}

fn change_each(object: &mut Map<String, Value>, member: &str, change: fn(Value) -> Value) {
    if let Some(Value::Array(values)) = object.get_mut(member) {
        for value in values {
            *value = change(value.take());
        }
    }
}
