//! Tasks: whose they are, over restarts and between tools.

use serde_json::{Value, json};

use crate::agent::{ALL, RPC, Speaks, card, model, task, whole, with};
use crate::server::{Reply, Server};
use crate::support::{Folder, World, begin, config, with_model};

fn follow_ups(id: &str) -> Vec<Value> {
    vec![
        json!({"get_task": {"id": id}}),
        json!({"subscribe_task": {"id": id}}),
        json!({"cancel_task": {"id": id}}),
        json!({"message": "more", "task_id": id}),
        json!({"message": "more", "task_id": id, "stream": true}),
        json!({"create_push_notification_config": {"task_id": id, "url": "https://h.example"}}),
        json!({"get_push_notification_config": {"task_id": id, "id": "c"}}),
        json!({"list_push_notification_configs": {"task_id": id}}),
        json!({"delete_push_notification_config": {"task_id": id, "id": "c"}}),
    ]
}

// covers: A2A-069
#[tokio::test]
async fn a_task_that_nobody_was_told_of_is_not_asked_for() {
    for speaks in ALL {
        let (server, world) = with_model(speaks).await;
        begin(&world).await;
        let before = server.calls().len();
        for arguments in follow_ups("task-2") {
            let failure = world.failure(arguments).await;
            assert!(failure.starts_with("lifecycle correlation failed"), "{failure}");
            assert!(failure.contains("never recorded"), "{failure}");
        }
        assert_eq!(server.calls().len(), before, "nothing went out");
    }
}

// covers: A2A-070
#[tokio::test]
async fn a_task_of_one_tool_is_none_of_another() {
    let (server, world) = with_model(RPC).await;
    begin(&world).await;
    let before = server.calls().len();
    for arguments in follow_ups("task-1") {
        let failure = world.failure_of("other", arguments).await;
        assert!(failure.ends_with("found one of another tool"), "{failure}");
    }
    assert_eq!(server.calls().len(), before, "nothing went out");
}

#[tokio::test]
async fn an_agent_cannot_hand_a_task_to_another_tool() {
    let (server, world) = with_model(RPC).await;
    begin(&world).await;
    // The model answers `other` with `task-1` as well.
    for arguments in [json!({"message": "x"}), json!({"message": "x", "stream": true})] {
        let done = world.run("other", arguments.clone()).await;
        assert!(done.chunks.is_empty());
        let failure = world.failure_of("other", arguments).await;
        assert!(failure.ends_with("found one of another tool"), "{failure}");
    }
    assert_eq!(server.calls().len(), 5);
    world.value(json!({"get_task": {"id": "task-1"}})).await;
}

#[tokio::test]
async fn a_message_can_go_on_with_its_task() {
    let (server, world) = with_model(RPC).await;
    begin(&world).await;
    world.value(json!({"message": "more", "task_id": "task-1", "context_id": "ctx"})).await;
    let message = server.last().json()["params"]["message"].take();
    assert_eq!((&message["taskId"], &message["contextId"]), (&json!("task-1"), &json!("ctx")));
}

// covers: A2A-014, A2A-067, A2A-068
#[tokio::test]
async fn tasks_outlive_the_adapter_in_a_file_and_not_without_one() {
    let folder = Folder::new("restart");
    let file = folder.file("tasks.json");
    let server = Server::start(|seen| model(seen, RPC)).await;
    let with_file = || config(&server).with_task_registry_file(&file);
    begin(&World::new(with_file()).await).await;
    World::new(with_file()).await.value(json!({"get_task": {"id": "task-1"}})).await;
    let kept: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let row = &kept["tasks"]["task-1"];
    for (member, expected) in [
        ("toolName", json!("research")),
        ("serverId", json!(format!("a2a:{}", server.address))),
        ("interfaceUrl", json!(server.url("/a2a"))),
        ("protocolBinding", json!("JSONRPC")),
        ("partner", json!("127.0.0.1")),
        ("lastState", json!("TASK_STATE_COMPLETED")),
        ("lastSource", json!("get_task")),
    ] {
        assert_eq!(row[member], expected, "{member}");
    }
    let without = World::new(config(&server)).await;
    let failure = without.failure(json!({"get_task": {"id": "task-1"}})).await;
    assert!(failure.contains("never recorded"), "{failure}");
    let renamed = World::new(with_file().with_server_id("other")).await;
    let failure = renamed.failure(json!({"get_task": {"id": "task-1"}})).await;
    assert!(failure.ends_with("another server"), "{failure}");
}

// covers: A2A-070
#[tokio::test]
async fn a_task_of_another_interface_binding_or_tenant_is_not_asked_for() {
    let folder = Folder::new("rebound");
    let file = folder.file("tasks.json");
    let server = Server::start(|seen| model(seen, RPC)).await;
    begin(&World::new(config(&server).with_task_registry_file(&file)).await).await;
    let text = std::fs::read_to_string(&file).unwrap();
    for (from, to, what) in [
        ("/a2a\"", "/a2b\"", "interface"),
        ("\"JSONRPC\"", "\"HTTP+JSON\"", "binding"),
        ("\"partner\"", "\"tenant\": \"t\", \"partner\"", "tenant"),
        ("\"127.0.0.1\"", "\"somebody\"", "partner"),
    ] {
        let changed = text.replace(from, to);
        assert_ne!(changed, text);
        std::fs::write(&file, changed).unwrap();
        let world = World::new(config(&server).with_task_registry_file(&file)).await;
        let failure = world.failure(json!({"get_task": {"id": "task-1"}})).await;
        assert!(failure.ends_with(&format!("another {what}")), "{failure}");
    }
    assert_eq!(server.calls().len(), 1);
}

#[tokio::test]
async fn a_damaged_registry_stops_the_adapter_and_its_follow_ups() {
    let folder = Folder::new("damaged");
    let file = folder.file("tasks.json");
    let server = Server::start(|seen| model(seen, RPC)).await;
    let with_file = || config(&server).with_task_registry_file(&file);
    let world = World::new(with_file()).await;
    begin(&world).await;
    std::fs::write(&file, "{\"version\": ").unwrap();
    for arguments in [json!({"get_task": {"id": "task-1"}}), json!({"message": "x"})] {
        let failure = world.failure(arguments).await;
        assert!(failure.contains("the task registry cannot be understood"), "{failure}");
    }
    let error = World::try_new(with_file()).await.map(drop).unwrap_err().to_string();
    assert!(error.contains("the task registry cannot be understood"), "{error}");
}

#[tokio::test]
async fn two_adapters_of_one_file_know_each_others_tasks() {
    let folder = Folder::new("two");
    let file = folder.file("deep/tasks.json");
    let server = Server::start(|seen| model(seen, RPC)).await;
    let with_file = || config(&server).with_task_registry_file(&file);
    let (one, other) = (World::new(with_file()).await, World::new(with_file()).await);
    begin(&one).await;
    other.value(json!({"get_task": {"id": "task-1"}})).await;
}

#[tokio::test]
async fn ids_that_would_lead_elsewhere_are_encoded_or_refused() {
    let speaks = Speaks { rest: true, old: false };
    for (id, line) in [
        ("a/../b c?d#e", Some("GET /a2a/tasks/a%2F..%2Fb%20c%3Fd%23e")),
        ("x:cancel", Some("GET /a2a/tasks/x%3Acancel")),
        ("%2e%2e", Some("GET /a2a/tasks/%252e%252e")),
        ("..", None),
        (".", None),
    ] {
        let server = Server::start(move |seen| {
            if seen.is_card() {
                return Reply::json(&card(&seen.base, speaks));
            }
            let task = task(id, "TASK_STATE_WORKING");
            if seen.path.ends_with("message:send") {
                return whole(seen, speaks, &json!({"task": task}));
            }
            whole(seen, speaks, &task)
        })
        .await;
        let world = World::new(config(&server)).await;
        world.value(json!({"message": "x"})).await;
        match line {
            Some(line) => {
                world.value(json!({"get_task": {"id": id}})).await;
                assert_eq!(server.last().line(), line);
            }
            None => {
                let failure = world.failure(json!({"get_task": {"id": id}})).await;
                assert!(failure.contains("found a path"), "{failure}");
                assert_eq!(server.calls().len(), 1);
            }
        }
    }
}

// covers: A2A-058, A2A-059
#[tokio::test]
async fn callbacks_that_may_not_be_are_refused_here() {
    let (server, world) = with_model(RPC).await;
    begin(&world).await;
    for url in ["http://hook.example/", "https://u:hunter2@hook.example/", "https://h.example/#x"] {
        let config = json!({"task_id": "task-1", "url": url});
        let failure = world.failure(json!({"create_push_notification_config": config})).await;
        assert!(
            failure.starts_with("invalid URL: expected an https URL for callbacks"),
            "{failure}"
        );
        assert!(!failure.contains("hunter2"));
    }
    assert_eq!(server.calls().len(), 1);
    let config = json!({"task_id": "task-1", "url": "http://localhost:8080/hook"});
    world.value(json!({"create_push_notification_config": config})).await;
    assert_eq!(server.last().json()["params"]["url"], "http://localhost:8080/hook");
}

// covers: A2A-057
#[tokio::test]
async fn an_agent_without_notifications_is_not_asked_for_any() {
    let server = Server::start(|seen| {
        if seen.is_card() {
            let card = card(&seen.base, RPC);
            return Reply::json(&with(card, "/capabilities/pushNotifications", json!(false)));
        }
        model(seen, RPC)
    })
    .await;
    let world = World::new(config(&server)).await;
    begin(&world).await;
    for arguments in follow_ups("task-1").into_iter().skip(5) {
        let failure = world.failure(arguments).await;
        assert!(failure.contains("`capabilities.pushNotifications`"), "{failure}");
    }
    assert_eq!(server.calls().len(), 1);
}

#[tokio::test]
async fn contexts_and_references_belong_to_their_caller_also_after_a_restart() {
    let folder = Folder::new("contexts");
    let server = Server::start(|seen| model(seen, RPC)).await;
    let with_file = || config(&server).with_task_registry_file(folder.file("tasks.json"));
    let world = World::new(with_file()).await;
    // The agent answers with `task-1` in `ctx`.
    begin(&world).await;
    world.value(json!({"message": "x", "context_id": "own"})).await;
    drop(world);
    let world = World::new(with_file()).await;
    let before = server.calls().len();
    for context in ["ctx", "own"] {
        let failure = world.failure_by(9, json!({"message": "x", "context_id": context})).await;
        assert!(failure.ends_with("found one of another caller"), "{failure}");
    }
    let about = |id: &str| json!({"message": "x", "reference_task_ids": [id]});
    let failure = world.failure_by(9, about("task-1")).await;
    assert!(failure.ends_with("found one of another caller"), "{failure}");
    let failure = world.failure(about("task-2")).await;
    assert!(failure.contains("never recorded"), "{failure}");
    assert_eq!(server.calls().len(), before, "nothing went out");
    for context in ["ctx", "own"] {
        world.value(json!({"message": "x", "context_id": context})).await;
    }
    world.value(about("task-1")).await;
}
