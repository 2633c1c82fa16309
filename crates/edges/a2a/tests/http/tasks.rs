//! `GetTask`, `ListTasks` and `CancelTask`, and tasks that run when they are asked for.

use std::sync::Arc;

use async_trait::async_trait;
use chio_a2a_edge::A2aEdgeConfig;
use chio_edge::Edge as _;
use chio_store::StoreUrl;
use chio_testkit::kernel::{Guard, GuardInput, GuardOutcome, Pipeline, Verdict};
use chio_testkit::process::Folder;
use serde_json::{Value, json};

use crate::world::{BOB, Beginning, World, message, number, receipt, unique, until};

#[tokio::test]
async fn a_task_can_be_read_again_with_as_much_history_as_is_wanted() {
    let world = World::with(&["echo"]).await;
    let task = world.task("hello").await;
    assert_eq!(world.get(&task["id"]).await, task);
    let said = &task["history"][0];
    assert!(said["messageId"].as_str().unwrap().starts_with("m-"));
    assert_eq!(said["role"], "ROLE_USER");
    assert_eq!((&said["taskId"], &said["contextId"]), (&task["id"], &task["contextId"]));
    for (length, expected) in [(0, 0), (1, 1), (9, 1)] {
        let params = json!({"id": task["id"], "historyLength": length});
        let found = world.rpc("GetTask", params).send().await.result();
        let history = found.get("history").and_then(Value::as_array).map_or(0, Vec::len);
        assert_eq!(history, expected);
        assert_eq!(found.get("history").is_none(), length == 0);
    }
    let error = world.rpc("GetTask", json!({"id": "a2a-task-0"})).send().await.error(-32001);
    assert_eq!(error["data"][0]["reason"], "TASK_NOT_FOUND");
    assert_eq!(error["data"][0]["domain"], "a2a-protocol.org");
    world.rpc("GetTask", json!({})).send().await.error(-32602);
}

#[tokio::test]
async fn a_task_that_is_answered_at_once_begins_at_once_and_no_one_waits_to_read_it() {
    let world = World::with(&["gate"]).await;
    let task = world.begun("later").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_WORKING");
    let pending = json!({"receiptPending": true, "decision": "pending"});
    assert_eq!(task["metadata"]["chio"], pending);
    until(|| world.told.runs() == 1).await;
    assert_eq!(world.get(&task["id"]).await["status"]["state"], "TASK_STATE_WORKING");
    let listed = world.rpc("ListTasks", json!({})).send().await.result();
    assert_eq!(listed["tasks"][0]["status"]["state"], "TASK_STATE_WORKING");
    assert_eq!(listed["totalSize"], 1);
    world.told.gate.add_permits(1);
    let done = world.settled(&task["id"]).await;
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(done["artifacts"][0]["parts"], json!([{"text": "echo: later"}]));
    assert_eq!((&done["id"], &done["contextId"]), (&task["id"], &task["contextId"]));
    assert_eq!(done["history"], task["history"]);
    receipt(&done);
    assert_eq!(world.get(&task["id"]).await, done);
    assert_eq!(world.told.runs(), 1);
    let mut params = message("more");
    params["message"]["taskId"] = task["id"].clone();
    world.rpc("SendMessage", params).send().await.error(-32004);
}

// covers: BRIDGE-090, BRIDGE-092, BRIDGE-093
#[tokio::test]
async fn a_deferred_task_runs_when_it_is_asked_for_and_once() {
    let world = World::with(&["echo"]).await;
    let task = world.deferred("later").await;
    let listed = world.rpc("ListTasks", json!({})).send().await.result();
    assert_eq!(listed["tasks"][0]["status"]["state"], "TASK_STATE_WORKING");
    assert_eq!(world.told.runs(), 0, "listing runs nothing");
    // 1.0 never waits for it.
    assert_eq!(world.get(&task["id"]).await["status"]["state"], "TASK_STATE_WORKING");
    let done = world.settled(&task["id"]).await;
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED");
    receipt(&done);
    assert_eq!(world.told.runs(), 1);
}

#[tokio::test]
async fn a_task_of_a_token_that_does_not_hold_is_rejected_with_a_receipt() {
    let granted = &["srv/other"];
    let world = Beginning { granted, ..Beginning::default() }.start().await;
    let task = world.begun("x").await;
    // Whether it may run is decided when it runs.
    assert_eq!(task["status"]["state"], "TASK_STATE_WORKING");
    let done = world.settled(&task["id"]).await;
    assert_eq!(done["status"]["state"], "TASK_STATE_REJECTED");
    receipt(&done);
    assert_eq!(world.told.runs(), 0);
}

// covers: BRIDGE-081, BRIDGE-090
#[tokio::test]
async fn tasks_outlive_the_process_and_no_number_comes_again() {
    let folder = Folder::new();
    let begin = || Beginning {
        url: StoreUrl::Sqlite(folder.path("store")),
        servers: vec![("srv", vec!["kit"])],
        ..Beginning::default()
    };
    let world = begin().start().await;
    let waiting = world.deferred("later").await;
    let done = world.task("x").await;
    let mut params = message("go");
    params["message"]["messageId"] = json!(unique("tck-input-required"));
    params["message"]["contextId"] = json!("ctx-of-alice");
    let asking = world.rpc("SendMessage", params).send().await.result()["task"].clone();
    world.service.close().await;
    drop(world);
    let world = begin().start().await;
    for task in [&done, &asking] {
        assert_eq!(world.get(&task["id"]).await, *task, "as it was");
    }
    let listed = world.rpc("ListTasks", json!({})).send().await.result();
    assert_eq!(listed["totalSize"], 3);
    let fresh = world.task("new").await;
    assert!(number(&fresh) > number(&asking), "{} {}", fresh["id"], asking["id"]);
    let ran = world.settled(&waiting["id"]).await;
    assert_eq!(ran["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(ran["artifacts"][0]["name"], "kit");
    receipt(&ran);
    let mut answer = message("this one");
    answer["message"]["taskId"] = asking["id"].clone();
    let answered = world.rpc("SendMessage", answer).send().await.result()["task"].clone();
    assert_eq!(answered["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(answered["contextId"], "ctx-of-alice");
    assert_eq!(answered["history"].as_array().unwrap().len(), 3);
    let bob = serde_json::to_string(&world.token(BOB, "cap-b")).unwrap();
    let mut foreign = message("x");
    foreign["message"]["contextId"] = json!("ctx-of-alice");
    let foreign = world.rpc("SendMessage", foreign).with("X-Chio-Capability", &bob);
    foreign.send().await.error(-32602);
}

#[tokio::test]
async fn what_an_earlier_process_accepted_runs_in_the_next_without_being_asked_for() {
    let folder = Folder::new();
    let begin = |running: usize| {
        let url = StoreUrl::Sqlite(folder.path("store"));
        let options: fn(&mut A2aEdgeConfig) = match running {
            1 => |options| options.limits.running = 1,
            _ => |_| (),
        };
        let servers = vec![("srv", vec!["gate"])];
        Beginning { url, servers, options, ..Beginning::default() }
    };
    let world = begin(1).start().await;
    let first = world.begun("first").await;
    until(|| world.told.runs() == 1).await;
    // There is no room for it.
    let second = world.begun("second").await;
    assert_eq!(world.get(&second["id"]).await["status"]["state"], "TASK_STATE_WORKING");
    world.told.gate.add_permits(1);
    world.settled(&first["id"]).await;
    until(|| world.told.runs() == 2).await;
    let third = world.begun("third").await;
    world.service.close().await;
    drop(world);
    let world = begin(8).start().await;
    world.told.gate.add_permits(8);
    let ran = world.settled(&third["id"]).await;
    assert_eq!(ran["artifacts"][0]["parts"], json!([{"text": "echo: third"}]), "{ran}");
    receipt(&ran);
    // The process ended while it ran.
    let cut = world.settled(&second["id"]).await;
    assert_eq!(cut["status"]["state"], "TASK_STATE_CANCELED", "{cut}");
    receipt(&cut);
    assert_eq!(world.told.runs(), 1);
}

#[tokio::test]
async fn the_same_message_of_the_same_caller_runs_once() {
    let world = World::with(&["gate"]).await;
    let params = message("once");
    let send = |params: &Value| tokio::spawn(world.rpc("SendMessage", params.clone()).send());
    let (one, other) = (send(&params), send(&params));
    until(|| world.told.runs() == 1).await;
    let mut at_once = params.clone();
    at_once["configuration"] = json!({"returnImmediately": true});
    let seen = send(&at_once).await.unwrap().result()["task"].clone();
    assert_eq!(seen["status"]["state"], "TASK_STATE_WORKING");
    world.told.gate.add_permits(8);
    let (one, other) = (one.await.unwrap().result(), other.await.unwrap().result());
    assert_eq!(one, other);
    assert_eq!(one["task"]["id"], seen["id"]);
    let again = send(&params).await.unwrap().result();
    assert_eq!(again, one, "also when it is over");
    assert_eq!(world.told.runs(), 1);
    let mut different = params.clone();
    different["message"]["parts"] = json!([{"text": "twice"}]);
    send(&different).await.unwrap().error(-32602);
    assert_eq!(world.told.runs(), 1);
    let bob = serde_json::to_string(&world.token(BOB, "cap-b")).unwrap();
    let ask = world.rpc("SendMessage", params).with("X-Chio-Capability", &bob);
    assert_ne!(ask.send().await.result()["task"]["id"], one["task"]["id"], "another caller's");
}

#[tokio::test]
async fn a_message_is_the_same_only_to_the_same_skill_and_with_the_same_content_however_long() {
    let world = World::with(&["echo", "kit"]).await;
    let send = async |id: &str, skill: &str, text: &str| {
        let mut params = message(text);
        params["message"]["messageId"] = json!(id);
        params["metadata"] = json!({"chio": {"targetSkillId": skill}});
        world.rpc("SendMessage", params).send().await
    };
    let first = send("m-1", "echo", "hello").await.result();
    assert_eq!(send("m-1", "echo", "hello").await.result(), first);
    send("m-1", "kit", "hello").await.error(-32602);
    let (one, other) = ("x".repeat(300 << 10), "y".repeat(300 << 10));
    let long = send("m-2", "echo", &one).await.result();
    let kept = long["task"]["history"][0]["parts"][0]["text"].as_str().unwrap();
    assert!(kept.contains("bytes, sha256 ") && kept.len() < 200, "{kept}");
    assert_eq!(send("m-2", "echo", &one).await.result(), long);
    send("m-2", "echo", &other).await.error(-32602);
}

/// Keeps a word out of receipts.
struct Hides;

#[async_trait]
impl Guard for Hides {
    fn name(&self) -> &str {
        "hides"
    }

    async fn check(&self, input: &GuardInput<'_>) -> Result<GuardOutcome, String> {
        let redacted = self.redact(input.arguments);
        Ok(GuardOutcome { redacted, ..Verdict::Allow.into() })
    }

    fn redact(&self, arguments: &Value) -> Option<Value> {
        let text = arguments.to_string();
        let less = text.replace("hunter2", "[redacted]");
        (less != text).then(|| serde_json::from_str(&less).unwrap())
    }
}

#[tokio::test]
async fn a_history_has_nothing_that_a_guard_keeps_out_of_receipts() {
    let world = World::with(&["echo"]).await;
    world.kernel.set_pipeline(Pipeline::new("hides", vec![Arc::new(Hides)]));
    let params = message("the word is hunter2");
    let first = world.rpc("SendMessage", params.clone()).send().await.result();
    let said = &first["task"]["history"][0]["parts"];
    assert_eq!(*said, json!([{"text": "the word is [redacted]"}]));
    assert_eq!(world.told.last().0, json!({"message": "the word is hunter2"}), "the tool has it");
    assert_eq!(world.rpc("SendMessage", params).send().await.result(), first);
    assert_eq!(world.told.runs(), 1);
}

#[tokio::test]
async fn tasks_are_their_owners_alone() {
    let world = World::with(&["kit"]).await;
    let (own, waiting) = (world.task("x").await, world.deferred("y").await);
    let bob = serde_json::to_string(&world.token(BOB, "cap-b")).unwrap();
    for task in [&own, &waiting] {
        for method in ["GetTask", "CancelTask"] {
            let ask = world.rpc(method, json!({"id": task["id"]}));
            ask.with("X-Chio-Capability", &bob).send().await.error(-32001);
        }
        let mut params = message("x");
        params["message"]["taskId"] = task["id"].clone();
        let ask = world.rpc("SendMessage", params).with("X-Chio-Capability", &bob);
        ask.send().await.error(-32001);
    }
    let ask = world.rpc("ListTasks", json!({})).with("X-Chio-Capability", &bob);
    assert_eq!(ask.send().await.result()["totalSize"], 0);
    assert_eq!(world.rpc("ListTasks", json!({})).send().await.result()["totalSize"], 2);
}

// covers: BRIDGE-023
#[tokio::test]
async fn a_task_is_cancelled_before_it_runs_and_not_after() {
    let world = World::with(&["echo"]).await;
    let cancel = |id: &Value| world.rpc("CancelTask", json!({"id": id}));
    let waiting = world.deferred("x").await;
    let off = cancel(&waiting["id"]).send().await.result();
    assert_eq!(off["status"]["state"], "TASK_STATE_CANCELED");
    let ended = serde_json::to_value(receipt(&off)).unwrap();
    assert_eq!(ended["decision"]["verdict"], "cancelled");
    assert_eq!(ended["metadata"]["execution"], "not_begun");
    assert_eq!(off["metadata"]["chio"]["decision"], "cancelled");
    cancel(&waiting["id"]).send().await.error(-32002);
    assert_eq!(world.get(&waiting["id"]).await["status"]["state"], "TASK_STATE_CANCELED");
    assert_eq!(world.told.runs(), 0);
    let done = world.task("x").await;
    let error = cancel(&done["id"]).send().await.error(-32002);
    assert_eq!(error["data"][0]["reason"], "TASK_NOT_CANCELABLE");
    cancel(&json!("a2a-task-0")).send().await.error(-32001);
}

#[tokio::test]
async fn a_call_that_runs_is_cancelled_from_another_connection() {
    let world = World::with(&["gate"]).await;
    let running = tokio::spawn(world.rpc("SendMessage", message("x")).send());
    until(|| world.told.runs() == 1).await;
    let listed = world.rpc("ListTasks", json!({})).send().await.result();
    let id = &listed["tasks"][0]["id"];
    assert_eq!(world.get(id).await["status"]["state"], "TASK_STATE_WORKING");
    let mut more = message("more");
    more["message"]["taskId"] = id.clone();
    world.rpc("SendMessage", more).send().await.error(-32004);
    let off = world.rpc("CancelTask", json!({"id": id})).send().await.result();
    assert_eq!(off["status"]["state"], "TASK_STATE_CANCELED");
    receipt(&off);
    let answered = running.await.unwrap().result();
    assert_eq!(answered["task"]["status"]["state"], "TASK_STATE_CANCELED");
}

#[tokio::test]
async fn a_deferred_task_that_runs_is_cancelled_too() {
    let world = World::with(&["gate"]).await;
    let task = world.deferred("x").await;
    let running = tokio::spawn(world.rpc("task/get", json!({"taskId": task["id"]})).send());
    until(|| world.told.runs() == 1).await;
    assert_eq!(world.get(&task["id"]).await["status"]["state"], "TASK_STATE_WORKING");
    let off = world.rpc("CancelTask", json!({"id": task["id"]})).send().await.result();
    assert_eq!(off["status"]["state"], "TASK_STATE_CANCELED");
    assert_eq!(running.await.unwrap().result()["status"], "cancelled");
    assert_eq!(world.told.runs(), 1);
}

#[tokio::test]
async fn a_call_goes_on_when_its_client_leaves() {
    let world = World::with(&["gate"]).await;
    drop(world.rpc("SendMessage", message("x")).leave().await);
    until(|| world.told.runs() == 1).await;
    world.told.gate.add_permits(1);
    let state = async || {
        let listed = world.rpc("ListTasks", json!({})).send().await.result();
        listed["tasks"][0]["status"]["state"].clone()
    };
    while state().await == "TASK_STATE_WORKING" {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(state().await, "TASK_STATE_COMPLETED");
}

#[tokio::test]
async fn tasks_are_listed_page_by_page_the_newest_first() {
    let world = World::with(&["echo"]).await;
    for number in 0..5 {
        let mut params = message(&number.to_string());
        params["message"]["contextId"] = json!(format!("ctx-{}", number % 2));
        world.rpc("SendMessage", params).send().await.result();
    }
    let list = async |params: Value| world.rpc("ListTasks", params).send().await;
    let all = list(json!({})).await.result();
    assert_eq!((&all["totalSize"], &all["pageSize"]), (&json!(5), &json!(50)));
    assert_eq!(all["nextPageToken"], "");
    assert!(all["tasks"][0].get("artifacts").is_none());
    let ids = |page: &Value| -> Vec<String> {
        let tasks = page["tasks"].as_array().unwrap();
        tasks.iter().map(|task| task["id"].as_str().unwrap().to_owned()).collect()
    };
    let (mut seen, mut token) = (Vec::new(), String::new());
    loop {
        let params = json!({"page_size": 2, "page_token": token});
        let page = list(params).await.result();
        assert_eq!((&page["pageSize"], &page["totalSize"]), (&json!(2), &json!(5)));
        seen.extend(ids(&page));
        token = page["nextPageToken"].as_str().unwrap().to_owned();
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(seen, ids(&all));
    let of_one = list(json!({"contextId": "ctx-1"})).await.result();
    assert_eq!(of_one["totalSize"], 2);
    let with = list(json!({"includeArtifacts": true, "historyLength": 0})).await.result();
    assert!(with["tasks"][0]["artifacts"].is_array());
    assert!(with["tasks"][0].get("history").is_none());
    for (status, count) in [("TASK_STATE_COMPLETED", 5), ("TASK_STATE_FAILED", 0)] {
        let found = list(json!({"status": status})).await.result();
        assert_eq!(found["totalSize"], count, "{status}");
        assert!(found["tasks"].is_array());
    }
    let ahead = json!({"statusTimestampAfter": "2999-01-01T00:00:00Z"});
    assert_eq!(list(ahead).await.result()["totalSize"], 0);
    for wrong in [
        json!({"pageSize": 0}),
        json!({"pageSize": 101}),
        json!({"pageToken": "x"}),
        json!({"status": "DONE"}),
        json!({"historyLength": -1}),
        json!({"statusTimestampAfter": "yesterday"}),
    ] {
        list(wrong).await.error(-32602);
    }
}

#[tokio::test]
async fn only_so_many_tasks_of_a_caller_are_kept_and_what_is_not_over_stays() {
    let few = Beginning {
        servers: vec![("srv", vec!["kit"])],
        options: |options| {
            options.limits.open_tasks = 2;
            options.limits.ended_tasks = 3;
        },
        ..Beginning::default()
    };
    let world = few.start().await;
    let ask = || {
        let mut params = message("go");
        params["message"]["messageId"] = json!(unique("tck-input-required"));
        world.rpc("SendMessage", params)
    };
    let first = ask().send().await.result()["task"].clone();
    for _ in 0..8 {
        world.task("x").await;
    }
    let listed = world.rpc("ListTasks", json!({})).send().await.result();
    assert_eq!(listed["totalSize"], 4, "three that are over, and the question");
    let second = ask().send().await.result()["task"].clone();
    let refused = world.rpc("SendMessage", message("x")).send().await.error(-32603);
    assert!(refused["message"].as_str().unwrap().contains("answer or cancel"), "{refused}");
    let bob = serde_json::to_string(&world.token(BOB, "cap-b")).unwrap();
    world.rpc("SendMessage", message("x")).with("X-Chio-Capability", &bob).send().await.result();
    for task in [first, second] {
        let state = world.get(&task["id"]).await["status"]["state"].clone();
        assert_eq!(state, "TASK_STATE_INPUT_REQUIRED");
        world.rpc("CancelTask", json!({"id": task["id"]})).send().await.result();
    }
    world.task("x").await;
}

#[tokio::test]
async fn only_so_many_calls_run_at_once() {
    let few = Beginning {
        servers: vec![("srv", vec!["gate"])],
        options: |options| options.limits.running = 8,
        ..Beginning::default()
    };
    let world = few.start().await;
    let waiting: Vec<_> =
        (0..2).map(|_| tokio::spawn(world.rpc("SendMessage", message("x")).send())).collect();
    until(|| world.told.runs() == 2).await;
    world.rpc("SendMessage", message("x")).send().await.error(-32603);
    world.told.gate.add_permits(3);
    for answer in waiting {
        answer.await.unwrap().result();
    }
    world.task("x").await;
    assert_eq!(world.told.runs(), 3);
}
