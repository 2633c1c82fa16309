//! Requests and tasks of 0.3, as they stand on the wire.

use super::*;
use crate::call_report::CallReport;
use crate::error::Kind;
use crate::modes::AcceptedModes;

fn read(parts: &Value, configuration: &Value) -> Result<SendRequest, Fault> {
    let message = json!({"kind": "message", "messageId": "m", "role": "user", "parts": parts});
    let params = json!({"message": message, "configuration": configuration});
    read_send(params.as_object().unwrap().clone())
}

#[test]
fn parts_come_back_as_they_were_read() {
    let parts = json!([
        {"kind": "text", "text": "x", "metadata": {"k": 1}},
        {"kind": "data", "data": {"a": 1}},
        {"kind": "file", "file": {"bytes": "AA==", "mimeType": "a/b", "name": "f"}},
        {"kind": "file", "file": {"uri": "https://x"}},
    ]);
    let sent = read(&parts, &json!({})).unwrap();
    assert_eq!(Value::Array(write_parts(&sent.message.parts)), parts);
    assert_eq!((sent.at_once, sent.history), (false, None));
}

#[test]
fn only_what_says_so_does_not_block() {
    let part = json!([{"kind": "text", "text": "x"}]);
    for (configuration, at_once) in [
        (json!({"blocking": false, "historyLength": 1}), true),
        (json!({"blocking": true}), false),
        (json!({"blocking": null}), false),
    ] {
        assert_eq!(read(&part, &configuration).unwrap().at_once, at_once, "{configuration}");
    }
    let push = json!({"pushNotificationConfig": {"url": "https://x"}});
    assert_eq!(read(&part, &push).unwrap_err().kind, Kind::PushNotSupported);
}

#[test]
fn parts_that_are_none_are_refused() {
    for part in [
        json!({"text": "x"}),
        json!({"kind": "text"}),
        json!({"kind": "data"}),
        json!({"kind": "file", "file": {}}),
        json!({"kind": "file", "file": {"bytes": "AA==", "uri": "x"}}),
        json!({"kind": "video"}),
        json!("x"),
    ] {
        assert_eq!(read(&json!([part]), &json!({})).unwrap_err().kind, Kind::Params, "{part}");
    }
    assert!(read(&json!([]), &json!({})).is_err());
}

#[test]
fn a_task_says_that_it_is_one() {
    let record = TaskRecord {
        id: "a2a-task-7".to_owned(),
        context_id: None,
        skill: "read".to_owned(),
        state: State::InputRequired,
        output: Vec::new(),
        words: vec![Part::text("which?")],
        accepted: AcceptedModes::All,
        history: vec![Message::new(Role::User, vec![Part::text("q")])],
        report: CallReport::without_outcome("cancelled", None),
        replies: false,
        updated_at: 0,
    };
    let message = json!({
        "kind": "message", "messageId": "a2a-task-7-status", "role": "agent",
        "parts": [{"kind": "text", "text": "which?"}], "taskId": "a2a-task-7",
    });
    let said = json!({
        "kind": "message", "messageId": "a2a-task-7-message", "role": "user",
        "parts": [{"kind": "text", "text": "q"}], "taskId": "a2a-task-7",
    });
    let expected = json!({
        "kind": "task", "id": "a2a-task-7", "contextId": "",
        "status": {
            "state": "input-required", "timestamp": "1970-01-01T00:00:00.000Z",
            "message": message,
        },
        "history": [said],
        "metadata": {"chio": {"receiptPending": false, "decision": "cancelled"}},
    });
    assert_eq!(write_task(&record, None), expected);
}
