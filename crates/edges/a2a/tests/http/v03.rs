//! A2A 0.3.

use serde_json::{Value, json};

use crate::world::{World, receipt, unique, until};

fn params(part: &Value) -> Value {
    json!({"message": {
        "kind": "message", "messageId": unique("old"), "role": "user", "parts": [part],
    }})
}

fn text(text: &str) -> Value {
    params(&json!({"kind": "text", "text": text}))
}

#[tokio::test]
async fn a_message_comes_back_as_a_task_that_says_what_it_is() {
    let world = World::with(&["echo"]).await;
    let task = world.rpc("message/send", text("hi")).send().await.result();
    assert_eq!((&task["kind"], &task["status"]["state"]), (&json!("task"), &json!("completed")));
    let part = json!({"kind": "text", "text": "echo: hi"});
    assert_eq!(task["artifacts"][0]["parts"], json!([part]));
    let said = &task["history"][0];
    assert_eq!((&said["kind"], &said["role"]), (&json!("message"), &json!("user")));
    receipt(&task);
    assert_eq!(world.rpc("tasks/get", json!({"id": task["id"]})).send().await.result(), task);
}

#[tokio::test]
async fn files_have_their_own_shape_and_replies_are_messages() {
    let world = World::with(&["kit"]).await;
    let send = async |id: &str| {
        let mut params = text("x");
        params["message"]["messageId"] = json!(id);
        world.rpc("message/send", params).send().await.result()
    };
    let file = json!({"kind": "file", "file": {
        "bytes": "R2VuZXJhdGVk", "name": "output.txt", "mimeType": "text/plain",
    }});
    assert_eq!(send("tck-artifact-file").await["artifacts"][0]["parts"], json!([file]));
    let uri = &send("tck-artifact-file-url").await["artifacts"][0]["parts"][0]["file"]["uri"];
    assert_eq!(*uri, "https://example.com/output.txt");
    let reply = send("tck-message-response").await;
    assert_eq!((&reply["kind"], &reply["role"]), (&json!("message"), &json!("agent")));
    receipt(&reply);
    let asks = send("tck-input-required").await;
    assert_eq!(asks["status"]["state"], "input-required");
    let world = World::with(&["files"]).await;
    let part = json!({"kind": "file", "file": {"uri": "https://x", "mimeType": "a/b"}});
    let task = world.rpc("message/send", params(&part)).send().await.result();
    let data = &task["artifacts"][0]["parts"][0]["data"];
    assert_eq!(data["parts"], json!([{"url": "https://x", "mediaType": "a/b"}]));
}

#[tokio::test]
async fn what_does_not_block_begins_at_once_and_can_be_cancelled() {
    let world = World::with(&["gate"]).await;
    let at_once = || {
        let mut params = text("x");
        params["configuration"] = json!({"blocking": false});
        params
    };
    let task = world.rpc("message/send", at_once()).send().await.result();
    assert_eq!(task["status"]["state"], "working");
    until(|| world.told.runs() == 1).await;
    let get = || world.rpc("tasks/get", json!({"id": task["id"]}));
    assert_eq!(get().send().await.result()["status"]["state"], "working");
    world.told.gate.add_permits(1);
    while get().send().await.result()["status"]["state"] == "working" {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(get().send().await.result()["status"]["state"], "completed");
    world.rpc("tasks/cancel", json!({"id": task["id"]})).send().await.error(-32002);
    let other = world.rpc("message/send", at_once()).send().await.result();
    let off = world.rpc("tasks/cancel", json!({"id": other["id"]})).send().await.result();
    assert_eq!(off["status"]["state"], "canceled");
}

#[tokio::test]
async fn what_is_not_there_has_its_code() {
    let world = World::with(&["echo"]).await;
    for (method, params, code) in [
        ("message/stream", text("x"), -32004),
        ("tasks/resubscribe", json!({"id": "a2a-task-1"}), -32004),
        ("tasks/pushNotificationConfig/set", json!({}), -32003),
        ("tasks/pushNotificationConfig/get", json!({}), -32003),
        ("tasks/pushNotificationConfig/list", json!({}), -32003),
        ("tasks/pushNotificationConfig/delete", json!({}), -32003),
        ("agent/getAuthenticatedExtendedCard", json!({}), -32004),
        ("tasks/get", json!({"id": "a2a-task-0"}), -32001),
        ("tasks/cancel", json!({"id": "a2a-task-0"}), -32001),
        ("message/send", params(&json!({"kind": "video"})), -32602),
    ] {
        world.rpc(method, params).send().await.error(code);
    }
}
