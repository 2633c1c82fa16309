//! `SendMessage`: what a message comes to.

use chio_core::receipt::Decision;
use serde_json::{Value, json};

use crate::world::{Beginning, World, message, number, receipt};

/// The params of a message of this name.
fn named(id: &str) -> Value {
    let mut params = message("hello");
    params["message"]["messageId"] = json!(id);
    params
}

// covers: BRIDGE-059, BRIDGE-077, BRIDGE-081, BRIDGE-110, CROSS-034
#[tokio::test]
async fn a_message_runs_the_skill_and_comes_back_as_a_completed_task_with_its_receipt() {
    let world = World::with(&["echo"]).await;
    let result = world.send("hello").await;
    let task = &result["task"];
    assert_eq!(result.as_object().unwrap().len(), 1, "{result}");
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    let artifact =
        json!({"artifactId": "result", "name": "echo", "parts": [{"text": "echo: hello"}]});
    assert_eq!(task["artifacts"], json!([artifact]));
    assert!(task["id"].as_str().unwrap().starts_with("a2a-task-"));
    let receipt = receipt(task);
    assert_eq!((&*receipt.tool_server, &*receipt.tool_name), ("srv", "echo"));
    assert_eq!(receipt.decision, Some(Decision::Allow));
    assert_eq!(task["metadata"]["chio"]["decision"], "allow");
    let bridge = &receipt.metadata.as_ref().unwrap()["chio"]["bridge"];
    assert_eq!(bridge["sourceProtocol"], "a2a");
    let origin = &bridge["trace"]["hops"][0]["requestId"];
    assert_eq!(*origin, task["id"], "the task is the call");
    let (arguments, context) = world.told.last();
    assert_eq!(arguments, json!({"message": "hello"}));
    let expected = json!({
        "skillId": "echo", "messageId": task["history"][0]["messageId"], "contextId": task["contextId"],
        "taskId": task["id"],
    });
    assert_eq!(context.as_ref(), Some(&expected));
    assert_eq!(bridge["capabilityEnvelope"]["capabilityRef"]["protocolContext"], expected);
    assert!(number(&world.task("again").await) > number(task));
}

#[tokio::test]
async fn every_message_of_the_test_kit_comes_to_what_it_wants() {
    let world = World::with(&["kit"]).await;
    let send = async |id: &str| world.rpc("SendMessage", named(id)).send().await.result();
    let state = async |id: &str| send(id).await["task"]["status"]["state"].clone();
    let parts = async |id: &str| send(id).await["task"]["artifacts"][0]["parts"].clone();
    assert_eq!(state("tck-complete-task-1").await, "TASK_STATE_COMPLETED");
    assert_eq!(parts("tck-artifact-text").await, json!([{"text": "Generated text content"}]));
    let file = json!({
        "raw": "R2VuZXJhdGVk", "filename": "output.txt", "mediaType": "text/plain",
    });
    assert_eq!(parts("tck-artifact-file").await, json!([file]));
    let url = json!({
        "url": "https://example.com/output.txt", "filename": "output.txt",
        "mediaType": "text/plain",
    });
    assert_eq!(parts("tck-artifact-file-url").await, json!([url]));
    let data = json!({"data": {"key": "value", "count": 42}});
    assert_eq!(parts("tck-artifact-data").await, json!([data]));
    assert_eq!(state("tck-input-required-1").await, "TASK_STATE_INPUT_REQUIRED");
    let reply = send("tck-message-response").await;
    assert!(reply.get("task").is_none(), "{reply}");
    assert_eq!(reply["message"]["role"], "ROLE_AGENT");
    assert_eq!(reply["message"]["parts"], json!([{"text": "Direct message response"}]));
    receipt(&reply["message"]);
    assert_eq!(state("anything").await, "TASK_STATE_COMPLETED");
}

#[tokio::test]
async fn no_member_of_an_answer_has_another_spelling_and_times_are_times() {
    let world = World::with(&["kit"]).await;
    for id in ["tck-artifact-data", "tck-input-required", "tck-message-response"] {
        let result = world.rpc("SendMessage", named(id)).send().await.result();
        check_members(&result);
    }
    check_members(&world.rpc("ListTasks", json!({})).send().await.result());
}

/// Checks that every member is written as 1.0 writes it.
fn check_members(value: &Value) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                assert!(!name.contains('_'), "{name}");
                if name == "timestamp" {
                    let text = value.as_str().unwrap();
                    assert!(text.len() == 24 && text.ends_with('Z'), "{text}");
                }
                check_members(value);
            }
        }
        Value::Array(items) => items.iter().for_each(check_members),
        _ => {}
    }
}

// covers: BRIDGE-112
#[tokio::test]
async fn a_failed_tool_and_a_refusal_are_tasks_with_receipts() {
    let world = World::with(&["fail"]).await;
    let task = world.task("x").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_FAILED");
    let told = &task["status"]["message"]["parts"][0]["text"];
    assert!(told.as_str().unwrap().contains("no such row"), "{told}");
    assert!(matches!(receipt(&task).decision, Some(Decision::Deny { .. })));
    assert!(task.get("artifacts").is_none());
    let world = World::with(&["error"]).await;
    let task = world.task("x").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_FAILED");
    assert_eq!(task["status"]["message"]["parts"], json!([{"text": "it broke"}]));
    assert_eq!(receipt(&task).decision, Some(Decision::Allow), "the kernel let it run");
    let granted = &["srv/other"];
    let world = Beginning { granted, ..Beginning::default() }.start().await;
    let task = world.task("x").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_REJECTED");
    assert_eq!(task["metadata"]["chio"]["decision"], "deny");
    assert!(matches!(receipt(&task).decision, Some(Decision::Deny { .. })));
    assert_eq!(world.told.runs(), 0);
}

#[tokio::test]
async fn what_a_tool_streams_comes_as_one_result() {
    let world = World::with(&["stream"]).await;
    let task = world.task("x").await;
    let parts = json!([{"text": "one"}, {"data": {"two": 2}}]);
    assert_eq!(task["artifacts"][0]["parts"], parts);
}

#[tokio::test]
async fn messages_are_read_as_protocol_buffers_are() {
    let world = World::with(&["files"]).await;
    let send = async |message: Value| {
        let ask = world.rpc("SendMessage", json!({"message": message, "unknown": {"x": 1}}));
        ask.send().await.result()["task"].clone()
    };
    let task = send(json!({
        "message_id": "m", "role": 1, "context_id": "ctx-7", "task_id": null,
        "parts": [{"text": "a"}, {"raw": "-_8", "media_type": "x/y", "filename": null}],
    }))
    .await;
    assert_eq!(task["contextId"], "ctx-7");
    let files = json!([{"raw": "+/8=", "mediaType": "x/y"}]);
    let arguments = json!({"message": "a", "parts": files});
    assert_eq!(task["artifacts"][0]["parts"], json!([{"data": arguments}]));
}

#[tokio::test]
async fn a_part_that_the_skill_has_no_place_for_is_refused_and_nothing_runs() {
    let world = World::with(&["echo", "lookup"]).await;
    for (skill, parts) in [
        ("echo", json!([{"raw": "AA==", "mediaType": "application/x-unsupported-tck-type"}])),
        ("echo", json!([{"text": "x"}, {"url": "https://example.com/x"}])),
        ("echo", json!([{"data": {"a": 1}}, {"data": {"b": 2}}])),
        ("lookup", json!([{"data": {"query": "tides"}}, {"text": "x"}])),
    ] {
        let mut params = message("x");
        params["message"]["parts"] = parts;
        let ask = world.rpc_at(&format!("/skills/{skill}"), "SendMessage", params);
        let error = ask.send().await.error(-32005);
        assert_eq!(error["data"][0]["reason"], "CONTENT_TYPE_NOT_SUPPORTED", "{error}");
    }
    assert_eq!(world.told.runs(), 0);
    let mut params = message("x");
    params["message"]["parts"] = json!([{"data": {"limit": 3}}, {"text": "tides"}]);
    world.rpc_at("/skills/lookup", "SendMessage", params).send().await.result();
    assert_eq!(world.told.last().0, json!({"limit": 3, "query": "tides"}));
}

#[tokio::test]
async fn a_result_comes_in_a_form_that_the_client_takes_also_when_it_is_read_later() {
    let world = World::with(&["lookup"]).await;
    let send = async |modes: Value| {
        let mut params = message("tides");
        params["configuration"] = json!({"acceptedOutputModes": modes});
        world.rpc("SendMessage", params).send().await
    };
    for (modes, part) in [
        (json!([]), json!({"data": {"query": "tides"}})),
        (json!(["application/json"]), json!({"data": {"query": "tides"}})),
        (json!(["text/plain"]), json!({"text": r#"{"query":"tides"}"#})),
    ] {
        let task = send(modes.clone()).await.result()["task"].clone();
        assert_eq!(task["artifacts"][0]["parts"], json!([part]), "{modes}");
        assert_eq!(world.get(&task["id"]).await["artifacts"], task["artifacts"], "{modes}");
    }
    let before = world.told.runs();
    send(json!(["image/png"])).await.error(-32005);
    assert_eq!(world.told.runs(), before);
}

#[tokio::test]
async fn tools_are_told_what_they_ask_for() {
    let world = World::with(&["names"]).await;
    let task = world.task("x").await;
    let data = &task["artifacts"][0]["parts"][0]["data"];
    assert_eq!(data["messageId"], task["history"][0]["messageId"]);
    assert_eq!((&data["contextId"], &data["taskId"]), (&task["contextId"], &task["id"]));
    let world = World::with(&["lookup"]).await;
    let task = world.task("tides").await;
    assert_eq!(task["artifacts"][0]["parts"][0]["data"], json!({"query": "tides"}));
}

#[tokio::test]
async fn messages_that_are_none_are_refused() {
    let world = World::with(&["echo"]).await;
    let part = json!({"text": "x"});
    for params in [
        json!({}),
        json!({"message": null}),
        json!({"message": 7}),
        json!({"message": {"role": "ROLE_USER", "parts": [part]}}),
        json!({"message": {"messageId": "", "role": "ROLE_USER", "parts": [part]}}),
        json!({"message": {"messageId": "m", "parts": [part]}}),
        json!({"message": {"messageId": "m", "role": "user", "parts": [part]}}),
        json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": []}}),
        json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{}]}}),
        json!({"message": {"messageId": "m", "role": "ROLE_USER",
            "parts": [{"text": "x", "url": "y"}]}}),
        json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"raw": "*"}]}}),
        json!({"message": {"messageId": "m".repeat(257), "role": "ROLE_USER", "parts": [part]}}),
        json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [part]},
            "configuration": {"historyLength": -1}}),
        json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [part]},
            "metadata": {"chio": 7}}),
    ] {
        world.rpc("SendMessage", params).send().await.error(-32602);
    }
    let mut push = message("x");
    push["configuration"] = json!({"taskPushNotificationConfig": {"url": "https://x"}});
    world.rpc("SendMessage", push).send().await.error(-32003);
    assert_eq!(world.told.runs(), 0);
}

// covers: BRIDGE-078, BRIDGE-079, BRIDGE-080, BRIDGE-102, BRIDGE-162
#[tokio::test]
async fn the_skill_is_the_one_that_is_named() {
    let servers = vec![("srv", vec!["echo", "approved", "lookup"]), ("other", vec!["echo"])];
    let world = Beginning { servers, ..Beginning::default() }.start().await;
    let to = |skill: Value| {
        let mut params = message("x");
        params["metadata"] = json!({"chio": {"targetSkillId": skill}});
        params
    };
    let send = async |params: Value| world.rpc("SendMessage", params).send().await;
    send(message("x")).await.error(-32602);
    send(to(json!(null))).await.error(-32602);
    send(to(json!(""))).await.error(-32602);
    send(to(json!(" lookup"))).await.error(-32602);
    send(to(json!(7))).await.error(-32602);
    send(to(json!("approved"))).await.error(-32602);
    let unknown = send(to(json!("nothing"))).await.error(-32602);
    assert!(unknown["message"].as_str().unwrap().starts_with("there is no skill `nothing`"));
    let ambiguous = send(to(json!("echo"))).await.error(-32602);
    assert!(ambiguous["message"].as_str().unwrap().contains("other::echo, srv::echo"));
    let task = send(to(json!("other::echo"))).await.result()["task"].clone();
    assert_eq!(receipt(&task).tool_server, "other");
    let mut in_message = message("x");
    in_message["message"]["metadata"] = json!({"chio": {"targetSkillId": "lookup"}});
    assert_eq!(send(in_message).await.result()["task"]["artifacts"][0]["name"], "lookup");
    let mut two = to(json!("lookup"));
    two["message"]["metadata"] = json!({"chio": {"targetSkillId": "srv::echo"}});
    send(two).await.error(-32602);
    assert_eq!(world.told.runs(), 2);
}
