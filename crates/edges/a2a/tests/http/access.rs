//! Who is let in, and with which capability.

use std::time::Duration;

use chio_a2a_edge::Rate;
use chio_core::capability::{CapabilityToken, DpopProof, DpopTarget};
use chio_testkit::{key, token};
use serde_json::{Value, json};

use crate::world::{ALICE, BEARER, BOB, Beginning, ISSUER, World, message, receipt, unique};

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Base64url without padding.
fn base64url(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut group = [0_u8; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let number = u32::from_be_bytes([0, group[0], group[1], group[2]]);
        for place in 0..=chunk.len() {
            let digit = (number >> (18 - 6 * place)) & 63;
            text.push(char::from(BASE64[digit as usize]));
        }
    }
    text
}

fn capability_of(task: &Value) -> String {
    receipt(task).capability_id
}

#[tokio::test]
async fn a_capability_comes_in_a_header_in_authorization_or_in_metadata() {
    let world = Beginning { closed: true, ..Beginning::default() }.start().await;
    let own = world.token(ALICE, "cap-own");
    let json_text = serde_json::to_string(&own).unwrap();
    let send = || world.rpc("SendMessage", message("x"));
    let refused = send().send().await.is(401);
    assert!(refused.header("www-authenticate").unwrap().starts_with("Bearer"));
    for method in ["GetTask", "ListTasks", "SendStreamingMessage", "GetExtendedAgentCard"] {
        let params = json!({"id": "a2a-task-1"});
        world.rpc(method, params).send().await.is(401);
    }
    let encoded = base64url(json_text.as_bytes());
    for ask in [
        send().with("X-Chio-Capability", &json_text),
        send().with("Authorization", &format!("Bearer {json_text}")),
        send().with("Authorization", &format!("Bearer {encoded}")),
        send()
            .with("X-Chio-Capability", &json_text)
            .with("Authorization", &format!("Bearer {encoded}")),
    ] {
        let task = ask.send().await.result()["task"].clone();
        assert_eq!(capability_of(&task), "cap-own");
    }
    for value in [json!(own), json!(json_text)] {
        let mut params = message("x");
        params["metadata"] = json!({"chio": {"capability": value}});
        let task = world.rpc("SendMessage", params).send().await.result()["task"].clone();
        assert_eq!(capability_of(&task), "cap-own");
        let mut get = json!({"id": task["id"]});
        get["metadata"] = json!({"chio": {"capability": value}});
        world.rpc("GetTask", get).send().await.result();
        let mut in_message = message("x");
        in_message["message"]["metadata"] = json!({"chio": {"capability": value}});
        world.rpc("SendMessage", in_message).send().await.result();
    }
    let known = send().with("Authorization", &format!("Bearer {BEARER}"));
    assert_eq!(capability_of(&known.send().await.result()["task"]), "cap-bob");
}

#[tokio::test]
async fn two_capabilities_that_differ_and_one_that_nobody_issued_are_refused() {
    let world = World::with(&["echo"]).await;
    let one = serde_json::to_string(&world.token(ALICE, "cap-1")).unwrap();
    let other = serde_json::to_string(&world.token(ALICE, "cap-2")).unwrap();
    let send = || world.rpc("SendMessage", message("x"));
    let two = send().with("X-Chio-Capability", &one);
    two.with("Authorization", &format!("Bearer {other}")).send().await.is(401);
    let mut params = message("x");
    params["metadata"] = json!({"chio": {"capability": other}});
    world.rpc("SendMessage", params.clone()).with("X-Chio-Capability", &one).send().await.is(401);
    params["message"]["metadata"] = json!({"chio": {"capability": one}});
    world.rpc("SendMessage", params).send().await.error(-32602);
    let now = world.kernel.clock().unix_seconds();
    let forged =
        token::token(&key(9), key(ALICE).public_key(), "cap", vec![token::grant("srv/*")], now);
    let forged = serde_json::to_string(&forged).unwrap();
    send().with("X-Chio-Capability", &forged).send().await.is(401);
    send().with("X-Chio-Capability", "{}").send().await.is(401);
    let mut params = message("x");
    params["metadata"] = json!({"chio": {"capability": {"id": 7}}});
    world.rpc("SendMessage", params).send().await.error(-32602);
    assert_eq!(world.told.runs(), 0);
}

#[tokio::test]
async fn a_door_that_takes_no_capabilities_takes_none_in_any_place() {
    let closed = Beginning { closed: true, capabilities: false, ..Beginning::default() };
    let world = closed.start().await;
    let own = serde_json::to_string(&world.token(ALICE, "cap-own")).unwrap();
    let send = || world.rpc("SendMessage", message("x"));
    send().with("X-Chio-Capability", &own).send().await.is(401);
    assert!(send().with("Authorization", &format!("Bearer {own}")).send().await.status >= 400);
    let mut params = message("x");
    params["metadata"] = json!({"chio": {"capability": own}});
    world.rpc("SendMessage", params.clone()).send().await.is(401);
    let ask = world.rpc("SendMessage", params);
    ask.with("Authorization", &format!("Bearer {BEARER}")).send().await.is(401);
    send().with("Authorization", &format!("Bearer {BEARER}")).send().await.result();
    send().with("Authorization", "Bearer somebody-elses-token").send().await.is(401);
    assert_eq!(world.told.runs(), 1);
}

#[tokio::test]
async fn a_proof_of_possession_comes_in_its_header_or_in_metadata() {
    let world = World::with(&["echo"]).await;
    let now = world.kernel.clock().unix_seconds();
    let mut grant = token::grant("srv/echo");
    grant.dpop_required = Some(true);
    let own = token::token(&key(ISSUER), key(BOB).public_key(), "cap-dpop", vec![grant], now - 1);
    let arguments = json!({"message": "x"});
    let proof = |nonce: &str| {
        let target = DpopTarget {
            token: &own,
            tool_server: "srv",
            tool_name: "echo",
            arguments: &arguments,
        };
        // On a store in memory, what was proved before the start is not remembered.
        DpopProof::new(&target, nonce, now + 1, &key(BOB)).unwrap()
    };
    let own_text = serde_json::to_string(&own).unwrap();
    let state = |answer: Value| answer["task"]["status"]["state"].clone();
    let send =
        |params: Value| world.rpc("SendMessage", params).with("X-Chio-Capability", &own_text);
    let bare = state(send(message("x")).send().await.result());
    assert_eq!(bare, "TASK_STATE_REJECTED");
    let header = base64url(&serde_json::to_vec(&proof("nonce-1")).unwrap());
    let proved = send(message("x")).with("DPoP", &header).send().await.result();
    assert_eq!(state(proved), "TASK_STATE_COMPLETED");
    let mut params = message("x");
    params["metadata"] = json!({"chio": {"dpop": proof("nonce-2")}});
    assert_eq!(state(send(params.clone()).send().await.result()), "TASK_STATE_COMPLETED");
    params["message"]["messageId"] = json!(unique("m"));
    assert_eq!(state(send(params).send().await.result()), "TASK_STATE_REJECTED", "used up");
    send(message("x")).with("DPoP", "nothing").send().await.is(401);
    // A task that runs later takes the proof of the client that asks.
    let mut later = message("x");
    later["configuration"] = json!({"returnImmediately": true});
    let task = send(later).send().await.result()["task"].clone();
    let mut get = json!({"id": task["id"]});
    get["metadata"] = json!({"chio": {"dpop": proof("nonce-3")}});
    let get = || world.rpc("GetTask", get.clone()).with("X-Chio-Capability", &own_text);
    while get().send().await.result()["status"]["state"] == "TASK_STATE_WORKING" {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(get().send().await.result()["status"]["state"], "TASK_STATE_COMPLETED");
}

#[tokio::test]
async fn pages_of_others_and_crowds_are_refused() {
    let busy = Beginning {
        options: |options| {
            options.http_json = true;
            let window = Duration::from_secs(600);
            options.limits.rate = Some(Rate { requests: 2, window });
        },
        ..Beginning::default()
    };
    let world = busy.start().await;
    let send = || world.rpc("SendMessage", message("x"));
    send().with("Origin", "https://evil.example").send().await.is(403);
    send().with("Host", "evil.example").send().await.is(403);
    let card = world.ask("GET", "/.well-known/agent-card.json");
    card.with("Host", "evil.example").send().await.is(403);
    send().send().await.result();
    send().send().await.result();
    let many = send().send().await.is(429);
    assert!(many.header("retry-after").is_some());
    let rest = world.ask("GET", "/rest/tasks").with("A2A-Version", "1.0").send().await.is(429);
    assert_eq!(rest.value()["error"]["status"], "RESOURCE_EXHAUSTED");
}

// covers: BRIDGE-160
#[tokio::test]
async fn a_capability_that_does_not_hold_does_nothing_with_tasks_but_leaves_receipts_of_calls() {
    let world = Beginning { options: |options| options.http_json = true, ..Beginning::default() };
    let world = world.start().await;
    let now = world.kernel.clock().unix_seconds();
    let text = |token: &CapabilityToken| serde_json::to_string(token).unwrap();
    let good = text(&world.token(ALICE, "cap-good"));
    let revoked = text(&world.token(ALICE, "cap-revoked"));
    let grants = vec![token::grant("srv/*")];
    let alice = key(ALICE);
    let old = token::token(&key(ISSUER), alice.public_key(), "cap-old", grants, 1000);
    let expired = text(&old);
    let grants = vec![token::grant("srv/*")];
    let soon = token::token(&key(ISSUER), alice.public_key(), "cap-soon", grants, now + 3600);
    let early = text(&soon);
    assert!(now > 1_000_000_000, "the old one has ended");
    let parts = json!([{"type": "text", "text": "x"}]);
    let later = json!({"message": {"role": "user", "parts": parts}});
    let sent = world.rpc("message/stream", later).with("X-Chio-Capability", &good).send().await;
    let task = sent.result();
    let ask = |method: &str, params: Value, with: &str| {
        world.rpc(method, params).with("X-Chio-Capability", with)
    };
    // Until it is revoked, it is as good as the other: both are of one subject.
    ask("ListTasks", json!({}), &revoked).send().await.result();
    world.kernel.revoke("cap-revoked").await.unwrap();
    for ended in [&revoked, &expired, &early] {
        for method in ["GetTask", "CancelTask"] {
            ask(method, json!({"id": task["id"]}), ended).send().await.is(401);
        }
        let refused = ask("ListTasks", json!({}), ended).send().await.is(401);
        assert!(refused.header("www-authenticate").is_some());
        let list = world.ask("GET", "/rest/tasks").with("A2A-Version", "1.0");
        list.with("X-Chio-Capability", ended).send().await.is(401);
        let mut more = message("x");
        more["message"]["taskId"] = task["id"].clone();
        ask("SendMessage", more, ended).send().await.is(401);
        let denied = ask("SendMessage", message("x"), ended).send().await.result();
        assert_eq!(denied["task"]["status"]["state"], "TASK_STATE_REJECTED");
        assert!(denied["task"]["metadata"]["chio"]["receiptId"].is_string(), "{denied}");
    }
    assert_eq!(world.told.runs(), 0, "nothing was run for them");
    let got = ask("task/get", json!({"taskId": task["id"]}), &good).send().await.result();
    assert_eq!(got["status"], "completed");
}

#[tokio::test]
async fn while_everything_is_stopped_tasks_are_read_and_cancelled_and_calls_are_denied() {
    let world = World::with(&["echo"]).await;
    let own = serde_json::to_string(&world.token(BOB, "cap-bob")).unwrap();
    for header in [("X-Chio-Capability", own.as_str()), ("X-Nothing", "x")] {
        let ask = |method: &str, params: Value| world.rpc(method, params).with(header.0, header.1);
        let parts = json!([{"type": "text", "text": "x"}]);
        let later = json!({"message": {"role": "user", "parts": parts}});
        let task = ask("message/stream", later).send().await.result();
        world.kernel.emergency_stop("fire").await.unwrap();
        let listed = ask("ListTasks", json!({})).send().await.result();
        assert_eq!(listed["tasks"][0]["id"], task["id"]);
        let off = ask("CancelTask", json!({"id": task["id"]})).send().await.result();
        assert_eq!(off["status"]["state"], "TASK_STATE_CANCELED");
        let denied = ask("SendMessage", message("x")).send().await.result()["task"].clone();
        assert_eq!(denied["status"]["state"], "TASK_STATE_REJECTED");
        assert!(denied["metadata"]["chio"]["receiptId"].is_string());
        world.kernel.resume().await.unwrap();
    }
    assert_eq!(world.told.runs(), 0);
}

// covers: BRIDGE-160
#[tokio::test]
async fn what_is_in_authorization_and_is_no_capability_is_not_taken_for_nothing() {
    let world = World::with(&["echo"]).await;
    let text = serde_json::to_string(&world.token(BOB, "cap-bob")).unwrap();
    let encoded = base64url(text.as_bytes());
    let send = |value: &str| world.rpc("SendMessage", message("x")).with("Authorization", value);
    send(&format!("Bearer {text}")).send().await.result();
    send(&format!("Bearer {encoded}")).send().await.result();
    for damaged in [
        format!("Bearer {}", text.strip_suffix('}').unwrap()),
        format!("Bearer {}", encoded.chars().skip(1).collect::<String>()),
        format!("Capability {text}"),
        "Bearer nobodys-token".to_owned(),
        "Basic eDp5".to_owned(),
        "Bearer".to_owned(),
    ] {
        let answer = send(&damaged).send().await.is(401);
        assert!(answer.value().to_string().contains("expected no `Authorization`"), "{damaged}");
    }
    assert_eq!(world.told.runs(), 2);
}

#[tokio::test]
async fn a_list_is_of_whom_the_capability_in_its_metadata_names() {
    let world = World::with(&["echo"]).await;
    world.rpc("SendMessage", message("x")).send().await.result();
    let bobs = world.token(BOB, "cap-bob");
    let count = |list: Value| list["tasks"].as_array().unwrap().len();
    let params = json!({"metadata": {"chio": {"capability": bobs}}});
    assert_eq!(count(world.rpc("ListTasks", params).send().await.result()), 0);
    assert_eq!(count(world.rpc("ListTasks", json!({})).send().await.result()), 1);
}
