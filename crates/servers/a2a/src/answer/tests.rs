//! Answers that are taken, and answers that are not.

use serde_json::{Value, json};

use super::{SeenTask, about, event, is_final, read};
use crate::input::{ListPush, OnePush, Operation};
use crate::interface::Dialect;

fn get() -> Operation {
    Operation::Get { id: "t".to_owned(), history_length: None }
}

fn list() -> Operation {
    Operation::ListPush(ListPush { task_id: "t".to_owned(), page_size: None, page_token: None })
}

fn one_push() -> OnePush {
    OnePush { task_id: "t".to_owned(), id: "c".to_owned() }
}

// covers: A2A-026, A2A-027, A2A-028, A2A-029
#[test]
fn an_event_has_what_it_must_have() {
    let state = |state: &str| json!({"state": state});
    for (value, expected) in [
        (json!({"task": {"id": "t", "status": state("TASK_STATE_WORKING")}}), Some(false)),
        (json!({"task": {"id": "t", "status": state("TASK_STATE_COMPLETED")}}), Some(true)),
        (
            json!({"task": {"id": "t", "status": state("TASK_STATE_INPUT_REQUIRED")}, "message": null}),
            Some(true),
        ),
        (json!({"message": {"messageId": "m"}}), Some(true)),
        (json!({"message": {"messageId": "m"}, "isError": false, "content": []}), Some(true)),
        (
            json!({"statusUpdate": {"taskId": "t", "status": state("TASK_STATE_SUBMITTED")}}),
            Some(false),
        ),
        // No state of A2A.
        (json!({"statusUpdate": {"taskId": "t", "status": state("TASK_STATE_DONE")}}), None),
        (
            json!({"statusUpdate": {"taskId": "t", "status": state("TASK_STATE_FAILED")}}),
            Some(true),
        ),
        (json!({"artifactUpdate": {"taskId": "t", "artifact": {}}}), Some(false)),
        (json!({"task": {"status": state("TASK_STATE_WORKING")}}), None),
        (json!({"task": {"id": "", "status": state("TASK_STATE_WORKING")}}), None),
        (json!({"task": {"id": 1, "status": state("TASK_STATE_WORKING")}}), None),
        (json!({"task": {"id": "x".repeat(1025), "status": state("TASK_STATE_WORKING")}}), None),
        (json!({"task": {"id": "t\u{0}", "status": state("TASK_STATE_WORKING")}}), None),
        (json!({"task": {"id": "t"}}), None),
        (json!({"task": {"id": "t", "status": {}}}), None),
        (json!({"task": {"id": "t", "status": state(" ")}}), None),
        (json!({"task": {"id": "t", "status": {"state": 3}}}), None),
        (json!({"task": "t"}), None),
        (json!({"message": "m"}), None),
        (json!({"statusUpdate": {"status": state("x")}}), None),
        (json!({"statusUpdate": {"taskId": "t"}}), None),
        (json!({"artifactUpdate": {"taskId": "t"}}), None),
        (json!({"artifactUpdate": {"taskId": "t", "artifact": []}}), None),
        (json!({"artifactUpdate": {"artifact": {}}}), None),
        (json!({"task": {"id": "t", "status": state("x")}, "message": {}}), None),
        (json!({}), None),
        (json!([]), None),
        (json!(null), None),
    ] {
        let found = event(Dialect::V1, value.clone()).ok();
        assert_eq!(found.as_ref().map(|answer| answer.ends), expected, "{value}");
        if let Some(answer) = found {
            let mut passed = answer.value;
            let marked = passed.as_object_mut().unwrap().remove("isError");
            let mut alone = value.clone();
            alone.as_object_mut().unwrap().retain(|_, member| member.is_object());
            assert_eq!(passed, alone, "passed on as it came, and nothing beside it");
            let failed = value.to_string().contains("TASK_STATE_FAILED");
            assert_eq!(marked, failed.then(|| json!(true)), "{value}");
        }
    }
}

#[test]
fn what_an_agent_failed_or_rejected_is_marked_and_the_answer_to_a_question_is_not() {
    for (state, failed) in [
        ("TASK_STATE_FAILED", true),
        ("TASK_STATE_REJECTED", true),
        ("TASK_STATE_CANCELED", false),
        ("TASK_STATE_COMPLETED", false),
    ] {
        let task = json!({"id": "t", "status": {"state": state}});
        let sent = event(Dialect::V1, json!({"task": task})).unwrap();
        assert_eq!(sent.value.get("isError").is_some(), failed, "{state}");
        let get = Operation::Get { id: "t".to_owned(), history_length: None };
        let got = read(&get, Dialect::V1, Some(task)).unwrap();
        assert_eq!(got.value.get("isError"), None, "{state}");
    }
}

#[test]
fn answers_are_about_the_task_that_was_asked_for() {
    let task = |id: &str| json!({"id": id, "status": {"state": "TASK_STATE_WORKING"}});
    let answer = read(&get(), Dialect::V1, Some(task("t"))).unwrap();
    assert_eq!(answer.value, json!({"task": task("t")}));
    let state = Some("TASK_STATE_WORKING".to_owned());
    assert_eq!(answer.seen_task, Some(SeenTask { task_id: "t".to_owned(), state }));
    assert!(read(&get(), Dialect::V1, Some(task("other"))).is_err());
    assert!(read(&get(), Dialect::V1, Some(json!({"task": task("t")}))).is_err());
    assert!(read(&get(), Dialect::V1, None).is_err());
    assert!(about(&answer, "other").is_err());
}

#[test]
fn push_configs_come_out_flat_and_of_the_task() {
    let (fetch, delete) = (Operation::GetPush(one_push()), Operation::DeletePush(one_push()));
    let config = json!({"taskId": "t", "id": "c", "url": "https://h.example"});
    let told = json!({"push_notification_config": config});
    assert_eq!(read(&fetch, Dialect::V1, Some(config.clone())).unwrap().value, told);
    let old = json!({
        "taskId": "t",
        "pushNotificationConfig": {"id": "c", "url": "https://h.example", "authentication": {"schemes": ["Bearer"]}},
    });
    let found = read(&fetch, Dialect::V03, Some(old.clone())).unwrap().value;
    assert_eq!(found["push_notification_config"]["authentication"], json!({"scheme": "Bearer"}));
    assert_eq!(found["push_notification_config"]["taskId"], "t");
    for wrong in
        [json!({"id": "c"}), json!({"url": "u", "taskId": "other"}), json!([]), json!(null)]
    {
        assert!(read(&fetch, Dialect::V1, Some(wrong.clone())).is_err(), "{wrong}");
    }
    for (dialect, result, next) in [
        (Dialect::V1, json!({"configs": [config], "nextPageToken": "n"}), json!("n")),
        (Dialect::V1, json!({"configs": [config], "nextPageToken": ""}), json!(null)),
        (Dialect::V03, json!([old]), json!(null)),
    ] {
        let found = read(&list(), dialect, Some(result)).unwrap().value;
        assert_eq!(found["push_notification_configs"].as_array().unwrap().len(), 1);
        assert_eq!(found["next_page_token"], next);
    }
    let none = json!({"push_notification_configs": [], "next_page_token": null});
    assert_eq!(read(&list(), Dialect::V1, Some(json!({}))).unwrap().value, none);
    assert!(read(&list(), Dialect::V1, Some(json!({"configs": [{"id": "c"}]}))).is_err());
    for result in [None, Some(json!(null)), Some(json!({}))] {
        assert_eq!(read(&delete, Dialect::V1, result).unwrap().value, json!({"deleted": true}));
    }
}

#[test]
fn answers_of_0_3_come_out_as_those_of_1_0() {
    let message = json!({
        "kind": "message", "messageId": "m", "role": "agent",
        "parts": [
            {"kind": "text", "text": "hi"},
            {"kind": "data", "data": {"a": 1}},
            {"kind": "file", "file": {"uri": "https://f.example", "name": "f", "mimeType": "text/plain"}},
            {"kind": "file", "file": {"bytes": "aGk="}},
        ],
    });
    let parts = json!([
        {"text": "hi"}, {"data": {"a": 1}},
        {"url": "https://f.example", "filename": "f", "mediaType": "text/plain"}, {"raw": "aGk="},
    ]);
    let new = json!({"messageId": "m", "role": "ROLE_AGENT", "parts": parts});
    let task = json!({
        "kind": "task", "id": "t", "contextId": "c",
        "status": {"state": "input-required", "message": message},
        "artifacts": [{"artifactId": "a", "parts": [{"kind": "text", "text": "x"}]}],
        "history": [message],
    });
    let new_task = json!({
        "id": "t", "contextId": "c",
        "status": {"state": "TASK_STATE_INPUT_REQUIRED", "message": new},
        "artifacts": [{"artifactId": "a", "parts": [{"text": "x"}]}],
        "history": [new],
    });
    for (old, expected) in [
        (message.clone(), json!({"message": new})),
        (task.clone(), json!({"task": new_task})),
        (
            json!({"kind": "status-update", "taskId": "t", "final": true, "status": {"state": "completed"}}),
            json!({"statusUpdate": {"taskId": "t", "status": {"state": "TASK_STATE_COMPLETED"}}}),
        ),
        (
            json!({"kind": "artifact-update", "taskId": "t", "artifact": {"artifactId": "a", "parts": []}}),
            json!({"artifactUpdate": {"taskId": "t", "artifact": {"artifactId": "a", "parts": []}}}),
        ),
    ] {
        assert_eq!(event(Dialect::V03, old.clone()).unwrap().value, expected, "{old}");
    }
    let answer = read(&get(), Dialect::V03, Some(task)).unwrap();
    assert_eq!(answer.value, json!({"task": new_task}));
    for wrong in [json!({"kind": "x"}), json!("x"), json!({"kind": "task"})] {
        assert!(event(Dialect::V03, wrong.clone()).is_err(), "{wrong}");
    }
}

#[test]
fn answers_of_0_3_over_http_and_json_do_too() {
    for (old, expected) in [
        (
            json!({"task": {"id": "t", "status": {"state": "TASK_STATE_WORKING"}}}),
            json!({"task": {"id": "t", "status": {"state": "TASK_STATE_WORKING"}}}),
        ),
        (
            json!({"message": {"role": "ROLE_AGENT", "content": [{"text": "x"}, {"data": {"data": {"a": 1}}}]}}),
            json!({"message": {"role": "ROLE_AGENT", "parts": [{"text": "x"}, {"data": {"a": 1}}]}}),
        ),
        (
            json!({"kind": "message", "parts": [{"kind": "data", "data": {"data": 1}}]}),
            json!({"message": {"parts": [{"data": {"data": 1}}]}}),
        ),
        (
            json!({"message": {"content": [{"data": {"data": 1, "x": 2}}]}}),
            json!({"message": {"parts": [{"data": {"data": 1, "x": 2}}]}}),
        ),
    ] {
        assert_eq!(event(Dialect::V03, old.clone()).unwrap().value, expected, "{old}");
    }
}

#[test]
fn a_task_that_waits_for_its_caller_is_not_over() {
    for (state, expected) in [
        ("TASK_STATE_COMPLETED", true),
        ("TASK_STATE_REJECTED", true),
        ("TASK_STATE_INPUT_REQUIRED", false),
        ("TASK_STATE_WORKING", false),
        ("completed", false),
    ] {
        assert_eq!(is_final(state), expected, "{state}");
    }
    let value: Value =
        json!({"statusUpdate": {"taskId": "t", "status": {"state": "TASK_STATE_AUTH_REQUIRED"}}});
    assert!(event(Dialect::V1, value).unwrap().ends);
}
