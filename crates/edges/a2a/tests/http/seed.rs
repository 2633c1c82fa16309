//! The dialect of Chio's own documents.

use serde_json::{Value, json};

use crate::world::{World, until};

fn params(part: &Value) -> Value {
    json!({"message": {"role": "user", "parts": [part]}})
}

fn text(text: &str) -> Value {
    params(&json!({"type": "text", "text": text}))
}

// covers: BRIDGE-077, BRIDGE-082, BRIDGE-084, BRIDGE-094
#[tokio::test]
async fn message_send_comes_back_as_a_completed_task_with_all_of_its_metadata() {
    let world = World::with(&["echo"]).await;
    let task = world.rpc("message/send", text("hi")).send().await.result();
    assert_eq!(task["status"], "completed");
    let message = json!({"role": "agent", "parts": [{"type": "text", "text": "echo: hi"}]});
    assert_eq!(task["message"], message);
    assert!(task.get("statusMessage").is_none());
    let chio = &task["metadata"]["chio"];
    let receipt: chio_core::receipt::ChioReceipt =
        serde_json::from_value(chio["receipt"].clone()).unwrap();
    receipt.verify().unwrap();
    assert_eq!(chio["receiptId"], receipt.id);
    assert_eq!(chio["capabilityId"], "cap-alice");
    assert_eq!(chio["decision"], "allow");
    assert_eq!(chio["authorityPath"], "cross_protocol_orchestrator");
    assert_eq!(chio["authoritative"], true);
    assert_eq!(chio["terminalState"], json!({"state": "completed"}));
    assert_eq!(chio["a2aSurface"], "authoritative_blocking_send");
    assert_eq!(chio["routeSelection"]["decision"], "select");
    let bridge = format!("chio-bridge-a2a-native-{}", task["id"].as_str().unwrap());
    assert_eq!(chio["bridge"]["bridgeId"], bridge);
    assert_eq!(chio["bridge"]["route"]["selectedProtocols"], json!(["a2a", "native"]));
    let reference = &chio["bridge"]["capabilityRef"];
    assert_eq!(reference["chioCapabilityId"], "cap-alice");
    assert_eq!(chio["receiptRef"]["traceId"], chio["bridge"]["trace"]["traceId"]);
    assert_eq!(chio["targetExecution"]["routeHopCount"], 2);
    assert_eq!(chio["lifecycle"]["messageStream"], "deferred_task_poll");
    assert_eq!(chio["runtimeLifecycle"]["surface"], "a2a_authoritative");
    assert_eq!((&chio["reason"], &chio["executionNonce"]), (&Value::Null, &Value::Null));
}

// covers: BRIDGE-083, BRIDGE-085
#[tokio::test]
async fn a_failure_is_failed_and_says_why() {
    let world = World::with(&["fail"]).await;
    let task = world.rpc("message/send", text("x")).send().await.result();
    assert_eq!(task["status"], "failed");
    assert!(task["statusMessage"].as_str().unwrap().contains("no such row"));
    assert!(task.get("message").is_none());
    assert_eq!(task["metadata"]["chio"]["decision"], "deny");
    assert!(task["metadata"]["chio"]["receiptId"].is_string());
}

// covers: BRIDGE-086..BRIDGE-093
#[tokio::test]
async fn message_stream_is_a_task_that_runs_when_it_is_asked_for() {
    let world = World::with(&["stream"]).await;
    let task = world.rpc("message/stream", text("x")).send().await.result();
    assert_eq!(task["status"], "working");
    assert!(!task["statusMessage"].as_str().unwrap().is_empty());
    let chio = &task["metadata"]["chio"];
    for (member, value) in [
        ("receiptId", Value::Null),
        ("receipt", Value::Null),
        ("capabilityId", Value::Null),
        ("decision", json!("pending")),
        ("authorityPath", json!("cross_protocol_orchestrator")),
        ("authoritative", json!(true)),
        ("compatibilityOnly", json!(false)),
        ("claimEligible", json!(true)),
        ("receiptBearing", json!(false)),
        ("receiptPending", json!(true)),
    ] {
        assert_eq!(chio[member], value, "{member}");
    }
    assert_eq!(world.told.runs(), 0);
    let get = || world.rpc("task/get", json!({"taskId": task["id"]}));
    let done = get().send().await.result();
    assert_eq!(done["status"], "completed");
    let parts = json!([{"type": "text", "text": "one"}, {"type": "data", "data": {"two": 2}}]);
    assert_eq!(done["message"]["parts"], parts);
    assert_eq!(done["metadata"]["chio"]["streamProjection"], "collated_final_message");
    assert!(done["metadata"]["chio"]["receiptId"].is_string());
    assert_eq!(get().send().await.result(), done);
    assert_eq!(world.told.runs(), 1);
    world.rpc("task/cancel", json!({"taskId": task["id"]})).send().await.error(-32602);
}

// covers: BRIDGE-087
#[tokio::test]
async fn message_stream_finds_its_skill_as_message_send_does() {
    let world = World::with(&["echo", "lookup"]).await;
    world.rpc("message/stream", text("x")).send().await.error(-32602);
    let mut named = text("x");
    named["metadata"] = json!({"chio": {"targetSkillId": "lookup"}});
    let task = world.rpc("message/stream", named).send().await.result();
    let done = world.rpc("task/get", json!({"taskId": task["id"]})).send().await.result();
    assert_eq!(done["message"]["parts"][0]["data"], json!({"query": "x"}));
}

// covers: BRIDGE-023, BRIDGE-091
#[tokio::test]
async fn task_cancel_cancels_what_waits_and_may_be_repeated() {
    let world = World::with(&["echo"]).await;
    let task = world.rpc("message/stream", text("x")).send().await.result();
    let cancel = || world.rpc("task/cancel", json!({"taskId": task["id"]}));
    let off = cancel().send().await.result();
    assert_eq!(off["status"], "cancelled");
    assert_eq!(off["metadata"]["chio"]["decision"], "cancelled");
    assert!(off["metadata"]["chio"].get("receiptPending").is_none());
    assert_eq!(cancel().send().await.result()["status"], "cancelled");
    let got = world.rpc("task/get", json!({"taskId": task["id"]})).send().await.result();
    assert_eq!(got["status"], "cancelled");
    assert_eq!(world.told.runs(), 0);
}

// covers: BRIDGE-092
#[tokio::test]
async fn a_task_runs_once_however_many_ask_at_the_same_time() {
    let world = World::with(&["gate"]).await;
    let task = world.rpc("message/stream", text("x")).send().await.result();
    let get = || world.rpc("task/get", json!({"taskId": task["id"]}));
    let asked: Vec<_> = (0..4).map(|_| tokio::spawn(get().send())).collect();
    until(|| world.told.runs() == 1).await;
    world.told.gate.add_permits(4);
    let mut states = Vec::new();
    for answer in asked {
        states.push(answer.await.unwrap().result()["status"].clone());
    }
    assert!(states.contains(&json!("completed")), "{states:?}");
    assert_eq!(get().send().await.result()["status"], "completed");
    assert_eq!(world.told.runs(), 1);
}

#[tokio::test]
async fn errors_have_a_code_and_a_message_and_nothing_else() {
    let world = World::with(&["echo"]).await;
    for (method, params, code) in [
        ("message/send", json!({}), -32602),
        ("message/send", params(&json!({"type": "image", "data": "x"})), -32602),
        ("message/send", params(&json!({"type": "data", "data": [1]})), -32602),
        ("message/send", json!({"message": {"role": "user", "parts": []}}), -32602),
        ("message/send", json!({"message": {"parts": [{"type": "text", "text": ""}]}}), -32602),
        ("message/stream", json!({}), -32602),
        ("task/get", json!({}), -32602),
        ("task/get", json!({"taskId": " x"}), -32602),
        ("task/get", json!({"taskId": "a2a-task-0"}), -32602),
        ("task/cancel", json!({"taskId": "a2a-task-0"}), -32602),
        ("task/list", json!({}), -32601),
    ] {
        let error = world.rpc(method, params).send().await.error(code);
        let mut members: Vec<&String> = error.as_object().unwrap().keys().collect();
        members.sort();
        assert_eq!(members, ["code", "message"], "{method}");
    }
    let error = world.rpc("task/get", json!({"taskId": "a2a-task-0"})).send().await;
    assert_eq!(error.error(-32602)["message"], "a2a-task-0", "just the id");
    assert_eq!(world.told.runs(), 0);
}

#[tokio::test]
async fn a_task_of_one_dialect_is_read_in_another() {
    let world = World::with(&["echo"]).await;
    let task = world.rpc("message/send", text("hi")).send().await.result();
    let v1 = world.get(&task["id"]).await;
    assert_eq!(v1["status"]["state"], "TASK_STATE_COMPLETED");
    let v03 = world.rpc("tasks/get", json!({"id": task["id"]})).send().await.result();
    assert_eq!(v03["status"]["state"], "completed");
    assert_eq!(v1["metadata"]["chio"]["receiptId"], task["metadata"]["chio"]["receiptId"]);
    assert_eq!(v03["metadata"], v1["metadata"]);
}
