//! Requests and tasks of 1.0, as they stand on the wire.

use serde_json::{Value, json};

use super::*;
use crate::call_report::CallReport;
use crate::modes::AcceptedModes;
use crate::record::{State, TaskRecord};

fn object(value: Value) -> Map<String, Value> {
    serde_json::from_value(value).unwrap()
}

/// A message with these members beside the usual ones.
fn with(members: Value) -> Map<String, Value> {
    let mut message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]});
    message.as_object_mut().unwrap().extend(object(members));
    object(json!({"message": message}))
}

#[test]
fn a_message_is_read_in_every_spelling() {
    let part = json!({
        "url": "https://x", "mediaType": "a/b", "filename": "f", "metadata": {"k": 1},
    });
    let camel = json!({
        "parts": [part], "contextId": "c", "taskId": "t", "metadata": {"m": 1},
        "extensions": ["e"], "referenceTaskIds": ["r"], "unknown": 1,
    });
    let snake_part = json!({
        "url": "https://x", "media_type": "a/b", "filename": "f", "metadata": {"k": 1},
    });
    let mut snake = with(json!({
        "parts": [snake_part], "context_id": "c", "task_id": "t", "metadata": {"m": 1},
        "extensions": ["e"], "reference_task_ids": ["r"], "role": 1,
    }));
    snake["message"]["message_id"] = snake["message"]["messageId"].take();
    snake["message"].as_object_mut().unwrap().remove("messageId");
    let one = read_send(with(camel)).unwrap();
    assert_eq!(one, read_send(snake).unwrap());
    let message = &one.message;
    assert_eq!((message.id.as_deref(), message.role), (Some("m"), Role::User));
    assert_eq!(message.context_id.as_deref(), Some("c"));
    assert_eq!(message.task_id.as_deref(), Some("t"));
    assert_eq!(message.reference_task_ids, ["r"]);
    let read = &message.parts[0];
    assert_eq!(read.content, Content::Url("https://x".to_owned()));
    assert_eq!(write_part(read), part);
}

#[test]
fn what_is_unset_or_null_has_its_default() {
    let plain = read_send(with(json!({"contextId": null, "taskId": "", "metadata": null})));
    let plain = plain.unwrap();
    assert_eq!((plain.at_once, plain.history), (false, None));
    assert_eq!((&plain.message.context_id, &plain.message.task_id), (&None, &None));
    let mut params = with(json!({}));
    params.insert(
        "configuration".to_owned(),
        json!({
            "return_immediately": true, "history_length": "3", "acceptedOutputModes": ["text"],
        }),
    );
    params.insert("metadata".to_owned(), json!({"chio": {}}));
    let asked = read_send(params).unwrap();
    assert_eq!((asked.at_once, asked.history), (true, Some(3)));
    assert!(asked.metadata.is_some());
}

#[test]
fn a_task_is_named_by_its_id() {
    let read = |params: Value| read_task(object(params));
    let task = read(json!({"id": "t", "historyLength": 2, "tenant": ""})).unwrap();
    assert_eq!((&*task.id, task.history), ("t", Some(2)));
    for wrong in [json!({}), json!({"id": ""}), json!({"id": 7}), json!({"id": null})] {
        assert_eq!(read(wrong).unwrap_err().kind, Kind::Params);
    }
}

#[test]
fn the_numbers_of_states_are_those_of_the_protocol_buffers() {
    for (number, name) in [(3, "COMPLETED"), (5, "CANCELED"), (7, "REJECTED")] {
        assert_eq!(STATES[number], format!("TASK_STATE_{name}"));
    }
}

fn record(state: State) -> TaskRecord {
    let said =
        Message { id: Some("m".to_owned()), ..Message::new(Role::User, vec![Part::text("q")]) };
    TaskRecord {
        id: "a2a-task-7".to_owned(),
        context_id: Some("c".to_owned()),
        skill: "read".to_owned(),
        state,
        output: Vec::new(),
        words: Vec::new(),
        accepted: AcceptedModes::All,
        history: vec![said],
        report: CallReport::pending(),
        replies: false,
        updated_at: 0,
    }
}

fn written_task(record: &TaskRecord, history: Option<usize>, artifacts: bool) -> Value {
    serde_json::to_value(Task::new(record, history, artifacts)).unwrap()
}

#[test]
fn a_task_has_only_what_is_set() {
    let written = written_task(&record(State::Working), Some(0), true);
    let expected = json!({
        "id": "a2a-task-7", "contextId": "c",
        "status": {"state": "TASK_STATE_WORKING", "timestamp": "1970-01-01T00:00:00.000Z"},
        "metadata": {"chio": {"receiptPending": true, "decision": "pending"}},
    });
    assert_eq!(written, expected);
}

#[test]
fn results_are_artifacts_and_reasons_are_messages() {
    let mut done = record(State::Completed);
    done.output = vec![Part::text("a")];
    done.output.push(Part { shown: Shown::InSeed, ..Part::text("b") });
    let written = written_task(&done, None, true);
    let artifact = json!({"artifactId": "result", "name": "read", "parts": [{"text": "a"}]});
    assert_eq!(written["artifacts"], json!([artifact]));
    let said = json!({
        "messageId": "m", "role": "ROLE_USER", "parts": [{"text": "q"}], "taskId": "a2a-task-7",
        "contextId": "c",
    });
    assert_eq!(written["history"], json!([said]));
    assert!(written_task(&done, None, false).get("artifacts").is_none());
    let mut failed = record(State::Rejected);
    failed.words = vec![Part::text("no")];
    let message = json!({
        "messageId": "a2a-task-7-status", "role": "ROLE_AGENT", "parts": [{"text": "no"}],
        "taskId": "a2a-task-7", "contextId": "c",
    });
    assert_eq!(written_task(&failed, None, true)["status"]["message"], message);
    done.replies = true;
    let reply = serde_json::to_value(Sent::new(&done, None)).unwrap();
    assert_eq!(reply["message"]["parts"], json!([{"text": "a"}]));
    assert!(reply.get("task").is_none());
}
