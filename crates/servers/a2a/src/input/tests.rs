//! Arguments that are taken, and arguments that are not.

use serde_json::{Value, json};

use super::Operation;
use crate::card::Accepts;
use crate::manifest::Abilities;

const BOTH: Accepts = Accepts { text: true, json: true };
const ALL: Abilities = Abilities { streaming: true, push: true, history: true };
const NONE: Abilities = Abilities { streaming: false, push: false, history: false };

fn read(arguments: Value) -> Result<Operation, String> {
    Operation::read(arguments, BOTH, ALL).map_err(|error| error.to_string())
}

// covers: A2A-039, A2A-040, A2A-041, A2A-043, A2A-044, A2A-046, A2A-054, A2A-055, A2A-056
#[test]
fn each_mode_is_read_in_either_spelling() {
    for (arguments, name, task) in [
        (json!({"message": "hi"}), "message", None),
        (json!({"data": {"a": 1}}), "message", None),
        (json!({"data": null}), "message", None),
        (
            json!({"message": "hi", "data": 1, "stream": true, "return_immediately": true}),
            "message",
            None,
        ),
        (
            json!({"message": "hi", "taskId": "t", "contextId": "c", "referenceTaskIds": ["r"]}),
            "message",
            Some("t"),
        ),
        (
            json!({"message": "hi", "messageMetadata": {}, "historyLength": 2, "returnImmediately": false}),
            "message",
            None,
        ),
        (json!({"get_task": {"id": "t", "history_length": 2}}), "get_task", Some("t")),
        (json!({"getTask": {"id": "t", "historyLength": 2}}), "get_task", Some("t")),
        (json!({"get_task": {"id": "t"}, "stream": false}), "get_task", Some("t")),
        (json!({"get_task": {"id": "t"}, "message": null}), "get_task", Some("t")),
        (json!({"subscribe_task": {"id": "t"}}), "subscribe_task", Some("t")),
        (
            json!({"cancel_task": {"id": "t", "metadata": {"reason": "user-request"}}}),
            "cancel_task",
            Some("t"),
        ),
        (
            json!({"create_push_notification_config": {"task_id": "t", "url": "https://h.example", "token": "x"}}),
            "create_push_notification_config",
            Some("t"),
        ),
        (
            json!({"getPushNotificationConfig": {"taskId": "t", "id": "c"}}),
            "get_push_notification_config",
            Some("t"),
        ),
        (
            json!({"list_push_notification_configs": {"task_id": "t", "page_size": 5}}),
            "list_push_notification_configs",
            Some("t"),
        ),
        (
            json!({"delete_push_notification_config": {"task_id": "t", "id": "c"}}),
            "delete_push_notification_config",
            Some("t"),
        ),
    ] {
        let operation =
            read(arguments.clone()).unwrap_or_else(|error| panic!("{arguments}: {error}"));
        assert_eq!((operation.name(), operation.task_id()), (name, task), "{arguments}");
    }
}

// covers: A2A-045
#[test]
fn modes_stand_alone() {
    for field in [
        json!({"message": "hunter2"}),
        json!({"data": null}),
        json!({"context_id": "c"}),
        json!({"task_id": "t"}),
        json!({"reference_task_ids": []}),
        json!({"metadata": {}}),
        json!({"message_metadata": {}}),
        json!({"history_length": 1}),
        json!({"return_immediately": false}),
        json!({"stream": true}),
        json!({"cancel_task": {"id": "t"}}),
        json!({"list_push_notification_configs": {"task_id": "t"}}),
    ] {
        let mut arguments = json!({"get_task": {"id": "t"}});
        let name = field.as_object().unwrap().keys().next().unwrap().clone();
        arguments[&name] = field[&name].clone();
        let message = read(arguments).unwrap_err();
        assert!(message.contains("alone") && message.contains(&name), "{message}");
        assert!(!message.contains("hunter2"));
    }
}

#[test]
fn what_is_not_understood_is_refused_without_repeating_it() {
    for (arguments, expected) in [
        (json!("hunter2"), "expected an object"),
        (json!({}), "expected `message`, `data` or"),
        (json!({"stream": true}), "expected `message`, `data` or"),
        (json!({"message": ["hunter2"]}), ""),
        (json!({"message": "x", "skill": "hunter2"}), "skill"),
        (json!({"message": "x", "history_length": "hunter2"}), ""),
        (json!({"message": "x", "history_length": -1}), ""),
        (json!({"message": "x", "metadata": {"chio": "hunter2"}}), "`metadata.chio`"),
        (json!({"message": "x", "metadata": "hunter2"}), ""),
        (json!({"message": "x", "task_id": ""}), "`task_id`"),
        (json!({"message": "x", "task_id": "a\u{7}"}), "`task_id`"),
        (json!({"message": "x", "context_id": "  "}), "`context_id`"),
        (json!({"message": "x", "reference_task_ids": [""]}), "`reference_task_ids`"),
        (json!({"message": "x", "task_id": "a", "taskId": "b"}), ""),
        (json!({"get_task": {}}), "id"),
        (json!({"get_task": {"id": "t", "skill": "hunter2"}}), "skill"),
        (json!({"get_task": {"id": "x".repeat(1025)}}), "`id`"),
        (json!({"cancel_task": {"id": "t", "metadata": "hunter2"}}), ""),
    ] {
        let message = read(arguments.clone()).unwrap_err();
        assert!(message.contains(expected), "{arguments}: {message}");
        assert!(!message.contains("hunter2"), "{message}");
    }
}

// covers: A2A-042, A2A-057
#[test]
fn what_the_card_does_not_advertise_is_refused() {
    let push = json!({"task_id": "t", "id": "c"});
    for (arguments, capability) in [
        (json!({"message": "x", "stream": true}), "streaming"),
        (json!({"subscribe_task": {"id": "t"}}), "streaming"),
        (json!({"message": "x", "history_length": 1}), "stateTransitionHistory"),
        (
            json!({"create_push_notification_config": {"task_id": "t", "url": "https://h.example"}}),
            "pushNotifications",
        ),
        (json!({"get_push_notification_config": push}), "pushNotifications"),
        (json!({"list_push_notification_configs": {"task_id": "t"}}), "pushNotifications"),
        (json!({"delete_push_notification_config": push}), "pushNotifications"),
    ] {
        let message = Operation::read(arguments.clone(), BOTH, NONE).unwrap_err().to_string();
        assert!(message.contains(&format!("`capabilities.{capability}`")), "{message}");
        Operation::read(arguments, BOTH, ALL).unwrap();
    }
    // Polling is part of every agent, and so is how much of the history it shows.
    let poll = json!({"get_task": {"id": "t", "history_length": 1}});
    Operation::read(poll, BOTH, NONE).unwrap();
}

#[test]
fn a_kind_of_part_that_the_skill_does_not_take_is_refused() {
    for (accepts, arguments) in [
        (Accepts { text: false, json: true }, json!({"message": "x"})),
        (Accepts { text: true, json: false }, json!({"data": 1})),
        (Accepts { text: true, json: false }, json!({"message": "x", "data": 1})),
    ] {
        let message = Operation::read(arguments, accepts, ALL).unwrap_err().to_string();
        assert!(message.contains("the skill takes no"), "{message}");
    }
}

#[test]
fn callbacks_are_checked_before_anything_is_sent() {
    for config in [
        json!({"task_id": "t", "url": "http://h.example"}),
        json!({"task_id": "t", "url": "https://h.example", "token": " x"}),
        json!({"task_id": "t", "url": "https://h.example", "id": ""}),
        json!({"task_id": "t", "url": "https://h.example", "authentication": {"scheme": "a b"}}),
        json!({"task_id": "t", "url": "https://h.example", "authentication": {"scheme": "Bearer", "credentials": "a\nb"}}),
        json!({"task_id": "t", "url": "https://h.example", "authentication": {}}),
    ] {
        let arguments = json!({"create_push_notification_config": config});
        assert!(read(arguments.clone()).is_err(), "{arguments}");
    }
}
