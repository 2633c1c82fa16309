//! What an agent answers: what an answer must have, and which parts are passed on.

mod v03;

use serde_json::{Map, Value, json};

use crate::error::AgentError;
use crate::input::{MAX_ID, Operation};
use crate::interface::Dialect;

/// The states in which nothing more comes of a task by itself.
const ENDED: [&str; 6] = [
    "TASK_STATE_COMPLETED",
    "TASK_STATE_FAILED",
    "TASK_STATE_CANCELED",
    "TASK_STATE_REJECTED",
    "TASK_STATE_INPUT_REQUIRED",
    "TASK_STATE_AUTH_REQUIRED",
];

/// The states in which more may come; what 0.3 calls unknown among them.
const GOING_ON: [&str; 3] =
    ["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING", "TASK_STATE_UNSPECIFIED"];

/// The states in which an agent has not done what it was asked for.
const FAILED: [&str; 2] = ["TASK_STATE_FAILED", "TASK_STATE_REJECTED"];

/// How many of the states in which nothing more comes are final.
const FINAL: usize = 4;

/// Whether nothing can come of a task any more.
pub(crate) fn is_final(state: &str) -> bool {
    ENDED.iter().take(FINAL).any(|known| *known == state)
}

/// An answer that has all that it must have.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    /// As callers get it.
    pub(crate) value: Value,
    /// The task that it is about.
    pub(crate) seen_task: Option<SeenTask>,
    /// Whether a stream is over with it.
    pub(crate) ends: bool,
}

impl Answer {
    /// The context that it belongs to, where it says so.
    pub(crate) fn context_id(&self) -> Option<&str> {
        let inner = self.value.as_object()?.values().find_map(|inner| inner.get("contextId"))?;
        inner.as_str().filter(|id| !id.is_empty() && id.len() <= MAX_ID)
    }
}

/// A task that an answer is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SeenTask {
    pub(crate) task_id: String,
    pub(crate) state: Option<String>,
}

fn wrong(problem: impl Into<String>) -> AgentError {
    AgentError::Protocol(problem.into())
}

/// Checks what came of an operation that answers at once.
///
/// # Errors
/// When something is missing, or is about another task.
pub(crate) fn read(
    operation: &Operation,
    dialect: Dialect,
    result: Option<Value>,
) -> Result<Answer, AgentError> {
    if matches!(operation, Operation::DeletePush(_)) {
        return Ok(Answer { value: json!({"deleted": true}), seen_task: None, ends: true });
    }
    let result = result.ok_or_else(|| wrong("expected a result, found none"))?;
    match operation {
        Operation::Send(_) | Operation::Subscribe { .. } => {
            let answer = event(dialect, result)?;
            if !["task", "message"].iter().any(|kind| answer.value.get(kind).is_some()) {
                return Err(wrong("expected `task` or `message` in the answer, found another"));
            }
            Ok(answer)
        }
        Operation::Get { id, .. } | Operation::Cancel { id, .. } => {
            let task = match dialect {
                Dialect::V1 => result,
                Dialect::V03 => v03::task(result),
            };
            let answer = checked(json!({"task": task}))?;
            about(&answer, id)?;
            Ok(answer)
        }
        Operation::CreatePush(_) | Operation::GetPush(_) => {
            let task_id = operation.task_id().unwrap_or_default();
            let value = json!({"push_notification_config": push_config(dialect, result, task_id)?});
            Ok(Answer { value, seen_task: None, ends: true })
        }
        Operation::ListPush(push) => push_configs(dialect, result, &push.task_id),
        Operation::DeletePush(_) => Err(wrong("expected nothing")),
    }
}

/// Checks one event of a stream.
///
/// # Errors
/// When it is none of the four, or something is missing.
pub(crate) fn event(dialect: Dialect, value: Value) -> Result<Answer, AgentError> {
    let mut answer = match dialect {
        Dialect::V1 => checked(value)?,
        Dialect::V03 => checked(v03::event(value)?)?,
    };
    let state = answer.seen_task.as_ref().and_then(|seen_task| seen_task.state.as_deref());
    if let (true, Value::Object(members)) =
        (state.is_some_and(|state| FAILED.contains(&state)), &mut answer.value)
    {
        // The call went well, and what it was for did not: edges tell that by this member.
        members.insert("isError".to_owned(), Value::Bool(true));
    }
    Ok(answer)
}

/// Checks that an answer is about the task that was asked for.
///
/// # Errors
/// When it is about another.
pub(crate) fn about(answer: &Answer, id: &str) -> Result<(), AgentError> {
    match &answer.seen_task {
        Some(seen_task) if seen_task.task_id != id => {
            Err(wrong("expected an answer about the task that was asked for, found another task"))
        }
        _ => Ok(()),
    }
}

fn checked(mut value: Value) -> Result<Answer, AgentError> {
    const KINDS: [&str; 4] = ["task", "message", "statusUpdate", "artifactUpdate"];
    let there = |kind: &&&str| value.get(**kind).is_some_and(|it| !it.is_null());
    let mut kinds = KINDS.iter().filter(there);
    let (Some(kind), None) = (kinds.next(), kinds.next()) else {
        return Err(wrong(
            "expected exactly one of `task`, `message`, `statusUpdate` and `artifactUpdate`",
        ));
    };
    let inner = value.get(*kind).and_then(Value::as_object);
    let inner = inner.ok_or_else(|| wrong(format!("expected an object as `{kind}`")))?;
    let seen_task = match *kind {
        "task" => Some(SeenTask {
            task_id: id_of(inner, "task", "id")?,
            state: Some(state_of(inner, "task")?),
        }),
        "statusUpdate" => Some(SeenTask {
            task_id: id_of(inner, kind, "taskId")?,
            state: Some(state_of(inner, kind)?),
        }),
        "artifactUpdate" => {
            if !inner.get("artifact").is_some_and(Value::is_object) {
                return Err(wrong("expected an object as `artifactUpdate.artifact`"));
            }
            Some(SeenTask { task_id: id_of(inner, kind, "taskId")?, state: None })
        }
        _ => None,
    };
    let state = seen_task.as_ref().and_then(|seen_task| seen_task.state.as_deref());
    let ends = *kind == "message" || state.is_some_and(|state| ENDED.contains(&state));
    // What stands beside it is none of A2A, and could pass for a result of another protocol.
    let inner = value.get_mut(*kind).map(Value::take).unwrap_or_default();
    let value = json!({*kind: inner});
    Ok(Answer { value, seen_task, ends })
}

fn id_of(object: &Map<String, Value>, kind: &str, member: &str) -> Result<String, AgentError> {
    let id = object.get(member).and_then(Value::as_str);
    let fits =
        |id: &&str| !id.trim().is_empty() && id.len() <= MAX_ID && !id.contains(char::is_control);
    id.filter(fits)
        .map(str::to_owned)
        .ok_or_else(|| wrong(format!("expected an id as `{kind}.{member}`, found none that fits")))
}

fn state_of(object: &Map<String, Value>, kind: &str) -> Result<String, AgentError> {
    let state = object.get("status").and_then(|status| status.get("state"));
    let is_known = |state: &&str| ENDED.contains(state) || GOING_ON.contains(state);
    state.and_then(Value::as_str).filter(is_known).map(str::to_owned).ok_or_else(|| {
        wrong(format!("expected a state of A2A as `{kind}.status.state`, found another or none"))
    })
}

/// A config as 1.0 writes it, of the task that was asked for.
fn push_config(dialect: Dialect, config: Value, task_id: &str) -> Result<Value, AgentError> {
    let config = match dialect {
        Dialect::V1 => config,
        Dialect::V03 => v03::push_config(config),
    };
    if !config.get("url").is_some_and(Value::is_string) {
        return Err(wrong("expected a push-notification config with `url`, found none"));
    }
    match config.get("taskId") {
        None | Some(Value::Null) => Ok(config),
        Some(Value::String(found)) if found == task_id || found.is_empty() => Ok(config),
        Some(_) => Err(wrong("expected a push-notification config of the task, found another's")),
    }
}

fn push_configs(dialect: Dialect, result: Value, task_id: &str) -> Result<Answer, AgentError> {
    let (configs, next) = match result {
        // As 0.3 has it.
        Value::Array(configs) => (configs, Value::Null),
        Value::Object(mut page) => {
            let next = page.remove("nextPageToken").filter(|token| token != "");
            match page.remove("configs") {
                None | Some(Value::Null) => (Vec::new(), next.unwrap_or_default()),
                Some(Value::Array(configs)) => (configs, next.unwrap_or_default()),
                Some(_) => return Err(wrong("expected a list as `configs`")),
            }
        }
        _ => return Err(wrong("expected a list of push-notification configs")),
    };
    let configs = configs.into_iter().map(|config| push_config(dialect, config, task_id));
    let configs = configs.collect::<Result<Vec<_>, _>>()?;
    let value = json!({"push_notification_configs": configs, "next_page_token": next});
    Ok(Answer { value, seen_task: None, ends: true })
}

#[cfg(test)]
mod tests;
