//! A model agent: it speaks both bindings and both versions, and always answers the same.

use serde_json::{Map, Value, json};

use crate::server::{Reply, Seen};

/// Which words an agent speaks, and over what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Speaks {
    pub(crate) rest: bool,
    pub(crate) old: bool,
}

pub(crate) const RPC: Speaks = Speaks { rest: false, old: false };
pub(crate) const ALL: [Speaks; 4] = [
    RPC,
    Speaks { rest: true, old: false },
    Speaks { rest: false, old: true },
    Speaks { rest: true, old: true },
];

/// The card of an agent with one skill, `research`.
pub(crate) fn card(base: &str, speaks: Speaks) -> Value {
    let binding = if speaks.rest { "HTTP+JSON" } else { "JSONRPC" };
    let mut card = json!({
        "name": "Model", "description": "Answers.", "version": "1.0.0",
        "capabilities": {
            "streaming": true, "pushNotifications": true, "stateTransitionHistory": true,
        },
        "defaultInputModes": ["text/plain", "application/json"],
        "defaultOutputModes": ["text/plain"],
        "skills": [
            {"id": "research", "name": "Research", "description": "Finds out.", "tags": ["find"]},
            {"id": "other", "name": "Other", "description": "Another.", "tags": ["x"]},
        ],
    });
    if speaks.old {
        card["url"] = json!(format!("{base}/a2a"));
        card["preferredTransport"] = json!(binding);
        card["protocolVersion"] = json!("0.3.0");
    } else {
        card["supportedInterfaces"] = json!([
            {"url": format!("{base}/a2a"), "protocolBinding": binding, "protocolVersion": "1.0"},
        ]);
    }
    card
}

/// Puts something into a card.
pub(crate) fn with(mut card: Value, pointer: &str, value: Value) -> Value {
    let (parent, member) = pointer.rsplit_once('/').unwrap();
    card.pointer_mut(parent).unwrap()[member] = value;
    card
}

/// A task as 1.0 writes it.
pub(crate) fn task(id: &str, state: &str) -> Value {
    json!({"id": id, "contextId": "ctx", "status": {"state": state}})
}

/// Answers with the model's card, or as the model does.
pub(crate) fn model(seen: &Seen, speaks: Speaks) -> Reply {
    if seen.is_card() {
        return Reply::json(&card(&seen.base, speaks));
    }
    answer(seen, speaks)
}

/// Answers as the model does.
pub(crate) fn answer(seen: &Seen, speaks: Speaks) -> Reply {
    let asked = asked(seen, speaks);
    let config = |id: &str| {
        let old = json!({"id": id, "url": "https://hook.example/x"});
        if speaks.old && speaks.rest {
            let name = format!("tasks/task-1/pushNotificationConfigs/{id}");
            json!({"name": name, "pushNotificationConfig": old})
        } else if speaks.old {
            json!({"taskId": "task-1", "pushNotificationConfig": old})
        } else {
            json!({"taskId": "task-1", "id": id, "url": "https://hook.example/x"})
        }
    };
    let result = match asked.as_str() {
        "send" => sent(speaks),
        "get" => one_task(speaks, "completed"),
        "cancel" => one_task(speaks, "canceled"),
        "stream" | "subscribe" => {
            return stream(seen, speaks, &[update(speaks, "working"), update(speaks, "completed")]);
        }
        "create" => config("made"),
        "fetch" => config("cfg"),
        "list" if speaks.old && !speaks.rest => json!([config("cfg")]),
        "list" => json!({"configs": [config("cfg")], "nextPageToken": "next"}),
        "delete" if speaks.rest => return Reply::text(204, ""),
        "delete" => json!(null),
        other => panic!("nobody asks for {other}"),
    };
    whole(seen, speaks, &result)
}

/// An answer at once, as the binding wants it.
pub(crate) fn whole(seen: &Seen, speaks: Speaks, result: &Value) -> Reply {
    if speaks.rest {
        return Reply::json(result).with("x-from", "model");
    }
    Reply::json(&json!({"jsonrpc": "2.0", "id": seen.json()["id"], "result": result}))
}

/// An answer in events, as the binding wants it.
pub(crate) fn stream(seen: &Seen, speaks: Speaks, events: &[Value]) -> Reply {
    Reply::events(events.iter().map(|event| line(seen, speaks, event)).collect::<String>())
}

/// One event, as the binding wants it.
pub(crate) fn line(seen: &Seen, speaks: Speaks, event: &Value) -> String {
    if speaks.rest {
        return format!("data: {event}\n\n");
    }
    let event = json!({"jsonrpc": "2.0", "id": seen.json()["id"], "result": event});
    format!(": ping\n\ndata: {event}\n\n")
}

impl Speaks {
    /// Whether members called `kind` say what is what; over HTTP+JSON 0.3 has the JSON form of its
    /// protocol buffers.
    fn has_kinds(self) -> bool {
        self.old && !self.rest
    }
}

pub(crate) fn one_task(speaks: Speaks, state: &str) -> Value {
    if speaks.has_kinds() {
        return json!({"kind": "task", "id": "task-1", "contextId": "ctx", "status": {"state": state}});
    }
    task("task-1", &format!("TASK_STATE_{}", state.to_uppercase()))
}

fn sent(speaks: Speaks) -> Value {
    let task = one_task(speaks, "working");
    if speaks.has_kinds() { task } else { json!({"task": task}) }
}

/// A status update, in the version's words.
pub(crate) fn update(speaks: Speaks, state: &str) -> Value {
    if speaks.has_kinds() {
        return json!({
            "kind": "status-update", "taskId": "task-1", "status": {"state": state}, "final": false,
        });
    }
    let state = format!("TASK_STATE_{}", state.to_uppercase());
    json!({"statusUpdate": {"taskId": "task-1", "status": {"state": state}}})
}

/// What was asked, whichever the binding and the version.
pub(crate) fn asked(seen: &Seen, speaks: Speaks) -> String {
    if !speaks.rest {
        let method = seen.json()["method"].as_str().unwrap().to_owned();
        let name = match method.as_str() {
            "SendMessage" | "message/send" => "send",
            "SendStreamingMessage" | "message/stream" => "stream",
            "GetTask" | "tasks/get" => "get",
            "SubscribeToTask" | "tasks/resubscribe" => "subscribe",
            "CancelTask" | "tasks/cancel" => "cancel",
            "CreateTaskPushNotificationConfig" | "tasks/pushNotificationConfig/set" => "create",
            "GetTaskPushNotificationConfig" | "tasks/pushNotificationConfig/get" => "fetch",
            "ListTaskPushNotificationConfigs" | "tasks/pushNotificationConfig/list" => "list",
            "DeleteTaskPushNotificationConfig" | "tasks/pushNotificationConfig/delete" => "delete",
            other => panic!("no version has {other}"),
        };
        assert_eq!(method.contains('/'), speaks.old, "{method}");
        return name.to_owned();
    }
    let prefix = if speaks.old { "/a2a/v1/" } else { "/a2a/" };
    let path = seen.path.strip_prefix(prefix).unwrap_or_else(|| panic!("{}", seen.path));
    let path = path.strip_prefix("tenant-alpha/").unwrap_or(path);
    let parts: Vec<&str> = path.split('/').collect();
    let name = match (seen.method.as_str(), parts.as_slice()) {
        ("POST", ["message:send"]) => "send",
        ("POST", ["message:stream"]) => "stream",
        ("GET", ["tasks", id]) if !id.contains(':') => "get",
        ("POST", ["tasks", id]) if id.ends_with(":cancel") => "cancel",
        ("POST", ["tasks", id]) if id.ends_with(":subscribe") => "subscribe",
        ("POST", ["tasks", _, "pushNotificationConfigs"]) => "create",
        ("GET", ["tasks", _, "pushNotificationConfigs"]) => "list",
        ("GET", ["tasks", _, "pushNotificationConfigs", _]) => "fetch",
        ("DELETE", ["tasks", _, "pushNotificationConfigs", _]) => "delete",
        other => panic!("nobody asks for {other:?}"),
    };
    name.to_owned()
}

/// The members of a request that say what is asked: the params, or the body.
pub(crate) fn params(seen: &Seen, speaks: Speaks) -> Map<String, Value> {
    let mut whole = seen.json();
    let params = if speaks.rest { whole } else { whole["params"].take() };
    match params {
        Value::Object(params) => params,
        _ => Map::new(),
    }
}
