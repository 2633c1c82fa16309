//! `GetTask`, `ListTasks` and `CancelTask`, and tasks that run when they are asked for.

use chio_edge::Edge as _;
use chio_store::StoreUrl;
use chio_testkit::process::Folder;
use serde_json::{Value, json};

use crate::world::{BOB, Beginning, World, message, number, receipt, until};

/// The params of a text that is to be answered at once.
fn at_once(text: &str) -> Value {
    let mut params = message(text);
    params["configuration"] = json!({"returnImmediately": true});
    params
}

async fn deferred(world: &World, text: &str) -> Value {
    world.rpc("SendMessage", at_once(text)).send().await.result()["task"].clone()
}

#[tokio::test]
async fn a_task_can_be_read_again_with_as_much_history_as_is_wanted() {
    let world = World::with(&["echo"]).await;
    let task = world.task("hello").await;
    assert_eq!(world.get(&task["id"]).await, task);
    let said = &task["history"][0];
    assert_eq!((&said["messageId"], &said["role"]), (&json!("m-1"), &json!("ROLE_USER")));
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

// covers: BRIDGE-090, BRIDGE-092, BRIDGE-093
#[tokio::test]
async fn a_task_that_is_answered_at_once_runs_when_it_is_asked_for_and_once() {
    let world = World::with(&["echo"]).await;
    let task = deferred(&world, "later").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_WORKING");
    let pending = json!({"receiptPending": true, "decision": "pending"});
    assert_eq!(task["metadata"]["chio"], pending);
    assert_eq!(world.told.runs(), 0);
    let listed = world.rpc("ListTasks", json!({})).send().await.result();
    assert_eq!(listed["tasks"][0]["status"]["state"], "TASK_STATE_WORKING");
    assert_eq!(world.told.runs(), 0, "listing runs nothing");
    let done = world.get(&task["id"]).await;
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

#[tokio::test]
async fn a_task_of_a_token_that_does_not_hold_is_rejected_with_a_receipt() {
    let granted = &["srv/other"];
    let world = Beginning { granted, ..Beginning::default() }.start().await;
    let task = deferred(&world, "x").await;
    // Whether it may run is decided when it runs.
    assert_eq!(task["status"]["state"], "TASK_STATE_WORKING");
    let done = world.get(&task["id"]).await;
    assert_eq!(done["status"]["state"], "TASK_STATE_REJECTED");
    receipt(&done);
    assert_eq!(world.told.runs(), 0);
}

// covers: BRIDGE-081, BRIDGE-090
#[tokio::test]
async fn a_task_that_waits_outlives_the_process_and_no_number_comes_again() {
    let folder = Folder::new();
    let begin =
        || Beginning { url: StoreUrl::Sqlite(folder.path("store")), ..Beginning::default() };
    let world = begin().start().await;
    let task = deferred(&world, "later").await;
    world.service.close().await;
    drop(world);
    let world = begin().start().await;
    let fresh = world.task("new").await;
    assert!(number(&fresh) > number(&task), "{} {}", fresh["id"], task["id"]);
    let done = world.get(&task["id"]).await;
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(done["contextId"], task["contextId"]);
    assert_eq!(done["artifacts"][0]["parts"], json!([{"text": "echo: later"}]));
    assert_eq!(done["artifacts"][0]["name"], "echo");
    receipt(&done);
}

#[tokio::test]
async fn tasks_are_their_owners_alone() {
    let world = World::with(&["kit"]).await;
    let (own, waiting) = (world.task("x").await, deferred(&world, "y").await);
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
    let waiting = deferred(&world, "x").await;
    let off = cancel(&waiting["id"]).send().await.result();
    assert_eq!(off["status"]["state"], "TASK_STATE_CANCELED");
    assert_eq!(off["contextId"], waiting["contextId"]);
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
    let task = deferred(&world, "x").await;
    let running = tokio::spawn(world.rpc("GetTask", json!({"id": task["id"]})).send());
    until(|| world.told.runs() == 1).await;
    assert_eq!(world.get(&task["id"]).await["status"]["state"], "TASK_STATE_WORKING");
    let off = world.rpc("CancelTask", json!({"id": task["id"]})).send().await.result();
    assert_eq!(off["status"]["state"], "TASK_STATE_CANCELED");
    assert_eq!(running.await.unwrap().result()["status"]["state"], "TASK_STATE_CANCELED");
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
async fn only_so_many_tasks_and_calls_are_kept() {
    let few = Beginning {
        servers: vec![("srv", vec!["gate"])],
        options: |options| {
            options.limits.tasks_per_owner = 2;
            options.limits.running = 8;
        },
        ..Beginning::default()
    };
    let world = few.start().await;
    let waiting: Vec<_> =
        (0..2).map(|_| tokio::spawn(world.rpc("SendMessage", message("x")).send())).collect();
    until(|| world.told.runs() == 2).await;
    world.rpc("SendMessage", message("x")).send().await.error(-32603);
    world.told.gate.add_permits(2);
    for answer in waiting {
        answer.await.unwrap().result();
    }
    world.told.gate.add_permits(1);
    world.task("x").await;
    let listed = world.rpc("ListTasks", json!({})).send().await.result();
    assert_eq!(listed["totalSize"], 2, "the oldest made room");
    assert_eq!(world.told.runs(), 3);
}
