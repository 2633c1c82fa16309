//! Messages that are none, methods that do not exist, versions that are not spoken.

use serde_json::{Value, json};

use crate::world::{Beginning, World, message, until};

// covers: BRIDGE-163
#[tokio::test]
async fn what_is_no_message_has_its_code() {
    let world = World::with(&["echo"]).await;
    let post = |body: &str| {
        let ask = world.ask("POST", "/").text(body).with("A2A-Version", "1.0");
        ask.with("Content-Type", "application/json")
    };
    for (body, code) in [
        ("not json", -32700),
        ("", -32700),
        ("[]", -32600),
        ("7", -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"GetTask"}]"#, -32600),
        (r#"{"id":1,"method":"GetTask"}"#, -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"GetTask"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
        // What is no message at all is no notification either.
        (r#"{"jsonrpc":"2.0"}"#, -32600),
        (r#"{"method":"GetTask"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"GetTask"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"GetTask"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"Nothing"}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":[1]}"#, -32602),
    ] {
        let error = post(body).send().await.error(code);
        let members: Vec<&String> = error.as_object().unwrap().keys().collect();
        assert!(members.iter().all(|name| ["code", "message", "data"].contains(&&***name)));
    }
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{{"x":{deep}}}}}"#);
    post(&deep).send().await.error(-32600);
    let large = "x".repeat((4 << 20) + 1);
    assert_eq!(post(&large).send().await.status, 413);
}

#[tokio::test]
async fn ids_come_back_as_they_were_and_notifications_are_run_and_not_answered() {
    let world = World::with(&["echo"]).await;
    for id in [json!("text"), json!(7), json!(null)] {
        let body = json!({
            "jsonrpc": "2.0", "id": id, "method": "SendMessage", "params": message("x"),
        });
        let ask = world.ask("POST", "/").json(&body).with("A2A-Version", "1.0");
        assert_eq!(ask.send().await.is(200).value()["id"], id);
    }
    assert_eq!(world.told.runs(), 3);
    let body = json!({"jsonrpc": "2.0", "method": "SendMessage", "params": message("x")});
    let ask = world.ask("POST", "/").json(&body).with("A2A-Version", "1.0");
    assert_eq!(ask.send().await.is(202).body, "");
    until(|| world.told.runs() == 4).await;
}

#[tokio::test]
async fn a_body_that_is_not_json_is_refused_before_it_is_read() {
    let world = World::with(&["echo"]).await;
    for kind in ["text/plain", "application/xml"] {
        let ask = world.ask("POST", "/").text("<xml/>").with("Content-Type", kind);
        let error = ask.send().await.error(-32005);
        assert_eq!(error["data"][0]["reason"], "CONTENT_TYPE_NOT_SUPPORTED");
    }
    world.ask("POST", "/").text("{}").send().await.error(-32005);
    let ask = world.rpc("SendMessage", message("x")).with("Content-Type", "application/a2a+json");
    ask.send().await.result();
}

#[tokio::test]
async fn a_version_is_spoken_or_refused() {
    let world = World::with(&["echo"]).await;
    let send = || world.rpc("SendMessage", message("x"));
    for version in ["99.0", "0.3", "", "x"] {
        let error = send().with("A2A-Version", version).send().await.error(-32009);
        assert_eq!(error["data"][0]["reason"], "VERSION_NOT_SUPPORTED");
    }
    send().without("A2A-Version").send().await.error(-32009);
    for version in ["1.0", "1.0.1", "1"] {
        send().with("A2A-Version", version).send().await.result();
    }
    let ask = world.rpc_at("/?A2A-Version=1.0", "SendMessage", message("x"));
    ask.without("A2A-Version").send().await.result();
    let ask = send().with("A2A-Extensions", "https://example.com/unknown");
    ask.send().await.result();
    let lenient = Beginning {
        options: |options| options.accept_missing_version = true,
        ..Beginning::default()
    };
    let world = lenient.start().await;
    let ask = world.rpc("SendMessage", message("x")).without("A2A-Version");
    ask.send().await.result();
}

#[tokio::test]
async fn what_the_card_does_not_offer_has_its_code() {
    let world = World::with(&["echo"]).await;
    for (method, code) in [
        ("SendStreamingMessage", -32004),
        ("SubscribeToTask", -32004),
        ("CreateTaskPushNotificationConfig", -32003),
        ("GetTaskPushNotificationConfig", -32003),
        ("ListTaskPushNotificationConfigs", -32003),
        ("DeleteTaskPushNotificationConfig", -32003),
        ("GetExtendedAgentCard", -32004),
    ] {
        let error = world.rpc(method, message("x")).send().await.error(code);
        assert!(error["data"][0]["reason"].is_string(), "{method}");
    }
    let params: Value = json!({});
    world.rpc("Unknown", params).send().await.error(-32601);
    assert_eq!(world.told.runs(), 0);
}

#[tokio::test]
async fn every_mount_answers_with_and_without_a_slash() {
    let world = World::with(&["echo", "lookup"]).await;
    let send = |path: &str| world.rpc_at(path, "SendMessage", message("x"));
    for path in ["/skills/echo", "/skills/echo/"] {
        let task = send(path).send().await.result()["task"].clone();
        assert_eq!(task["artifacts"][0]["name"], "echo");
    }
    for path in ["/", "/strict", "/strict/"] {
        send(path).send().await.error(-32602);
    }
    send("/skills/nothing").send().await.error(-32602);
    let mut other = message("x");
    other["metadata"] = json!({"chio": {"targetSkillId": "lookup"}});
    world.rpc_at("/strict", "SendMessage", other.clone()).send().await.result();
    world.rpc_at("/skills/echo", "SendMessage", other).send().await.error(-32602);
    assert_eq!(world.ask("GET", "/").send().await.status, 405);
}
