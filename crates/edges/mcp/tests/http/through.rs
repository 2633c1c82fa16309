//! What comes through between a client and a server beyond calls and reads: errors with their data,
//! metadata, methods and notifications that are no part of MCP, and what a server says of itself.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chio_mcp_adapter::Limits;
use chio_testkit::kernel::{Guard, GuardInput, GuardOutcome, Verdict};
use chio_testkit::mcp::{Request, Session, Stream, text_of};
use chio_testkit::process::until;
use chio_testkit::{key, receipts};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::world::{World, capability, now, scope};

/// What a tool gives as JSON in its text.
#[track_caller]
fn data(result: &Value) -> Value {
    serde_json::from_str(text_of(result)).unwrap()
}

fn url_client() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}})
}

/// The receipts of what is neither a call nor a question.
fn children(world: &World) -> Vec<Value> {
    world.receipts().into_iter().filter(|it| it.get("operation_kind").is_some()).collect()
}

#[test]
fn a_servers_error_keeps_its_code_its_words_and_its_data() {
    let world = World::through();
    let session = world.door.open_with(&url_client());
    let answer = session.request("tools/call", &json!({"name": "sign_in", "arguments": {}}));
    let error = &answer["error"];
    assert_eq!(error["code"], -32042, "{answer}");
    assert_eq!(error["message"], "This needs you to sign in.", "{answer}");
    let elicitation = &error["data"]["elicitations"][0];
    assert_eq!(elicitation["url"], "https://example.com/sign-in", "{answer}");
    assert_eq!(elicitation["elicitationId"], "sign-in-1", "{answer}");
    let receipt = world.receipt(error["data"]["chio"]["receiptId"].as_str().unwrap());
    assert_eq!(receipt["tool_name"], "sign_in");
    // A client that opens no URLs is told that the tool failed.
    let forms = world.door.open_with(&json!({"elicitation": {}}));
    let result = forms.start("tools/call", &json!({"name": "sign_in", "arguments": {}})).result();
    assert_eq!(result["isError"], true, "{result}");
    assert!(text_of(&result).contains("This needs you to sign in."), "{result}");
    assert_eq!(result["_meta"]["chio"]["execution"], "failed", "{result}");
    let missing = session.request("resources/read", &json!({"uri": "test://none"}));
    assert_eq!(missing["error"]["code"], -32002, "{missing}");
    assert_eq!(missing["error"]["data"]["uri"], "test://none", "{missing}");
    assert!(missing["error"]["data"]["chio"]["receiptId"].is_string(), "{missing}");
}

#[test]
fn a_url_is_opened_only_by_clients_that_say_that_they_can() {
    let world = World::through();
    let session = world.door.open_with(&url_client());
    let mut call = session.start_call("ask_url", &json!({}));
    let question = call.hears("elicitation/create");
    assert_eq!(question["params"]["mode"], "url", "{question}");
    assert_eq!(question["params"]["elicitationId"], "sign-in-1", "{question}");
    session.reply(&question, &json!({"action": "accept"}));
    assert_eq!(data(&call.result()), json!({"action": "accept"}));
    for client in [json!({"elicitation": {}}), json!({"elicitation": {"form": {}}})] {
        let session = world.door.open_with(&client);
        let mut call = session.start_call("ask_url", &json!({}));
        let result = call.result();
        assert!(text_of(&result).contains("does not take this kind of question"), "{result}");
        assert!(call.before.is_empty(), "{:?}", call.before);
    }
    let only_urls = world.door.open_with(&json!({"elicitation": {"url": {}}}));
    let mut call = only_urls.start_call("test_elicitation", &json!({"message": "Name?"}));
    assert_eq!(call.result()["isError"], true);
    assert!(call.before.is_empty(), "{:?}", call.before);
}

#[test]
fn the_metadata_of_a_request_reaches_the_server_but_for_ours_and_this_hops() {
    let world = World::through();
    let session = world.door.open();
    let sent = json!({
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "acme/tool-use": {"id": [7]},
        "progressToken": "mine",
        "chio": {}, "chioRequestId": "r-1",
        "io.modelcontextprotocol/related-task": {"taskId": "t"},
    });
    let params = json!({"name": "meta", "arguments": {}, "_meta": sent});
    let came = data(&session.start("tools/call", &params).result());
    assert_eq!(came["traceparent"], sent["traceparent"], "{came}");
    assert_eq!(came["acme/tool-use"], sent["acme/tool-use"], "{came}");
    assert!(came["progressToken"].is_u64(), "the token is of the next hop: {came}");
    assert_eq!(came.as_object().unwrap().len(), 3, "{came}");
    // A task, too.
    let params = json!({"name": "meta", "arguments": {}, "_meta": {"acme": 1}, "task": {}});
    let task = session.request("tools/call", &params)["result"]["task"]["taskId"].clone();
    let result = session.request("tasks/result", &json!({"taskId": task}))["result"].clone();
    assert_eq!(data(&result), json!({"acme": 1}));
    let large = json!({"name": "meta", "arguments": {}, "_meta": {"a": "x".repeat(20 << 10)}});
    let refused = session.request("tools/call", &large);
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    // A receipt has the hash of what was sent, and none of it.
    let receipts = json!(world.receipts());
    assert!(!receipts.to_string().contains("acme"), "{receipts}");
    let noted =
        json!({"bytes": 10, "sha256": chio_core::canonical::hash(&json!({"acme": 1})).unwrap()});
    let noted_in = |receipt: &Value| receipt.pointer("/metadata/request_meta") == Some(&noted);
    assert!(receipts.as_array().unwrap().iter().any(noted_in), "{receipts}");
}

#[test]
fn secrets_in_the_metadata_of_a_request_do_not_leave() {
    let world = World::through_judged();
    let session = world.door.open();
    let secret = concat!("AKIA", "Q7ZLM2XW9RTB5KDV");
    let meta = json!({"acme": format!("key {secret}"), "traceparent": "00-1"});
    let params = json!({"name": "meta", "arguments": {}, "_meta": meta});
    let came = data(&session.start("tools/call", &params).result());
    assert_eq!(came["traceparent"], "00-1", "{came}");
    assert!(!came.to_string().contains(secret), "{came}");
}

#[test]
fn the_metadata_of_a_request_is_judged_as_its_arguments_are() {
    let world = World::through_judged();
    let session = world.door.open();
    for meta in [
        json!({"path": "~/.ssh/id_rsa"}),
        json!({"acme/options": {"url": "http://169.254.169.254/latest/meta-data/"}}),
        json!({"command": "rm -rf /"}),
    ] {
        let params = json!({"name": "meta", "arguments": {}, "_meta": meta});
        let result = session.start("tools/call", &params).result();
        assert_eq!(result["isError"], true, "{meta}: {result}");
        assert!(result["_meta"]["chio"]["guard"].is_string(), "{meta}: {result}");
    }
}

#[test]
fn methods_and_notifications_that_are_no_part_of_mcp_reach_the_server() {
    let world = World::through();
    let session = world.door.open();
    let params = json!({"a": [1], "_meta": {"acme": 1, "progressToken": 1}});
    let answer = session.request("fixture/echo", &params);
    let came = &answer["result"]["params"];
    assert_eq!((&came["a"], &came["_meta"]["acme"]), (&json!([1]), &json!(1)), "{answer}");
    let receipt = world.receipt(answer["result"]["_meta"]["chio"]["receiptId"].as_str().unwrap());
    assert_eq!(receipt["operation_kind"], "tool_call", "{receipt}");
    assert_eq!(receipt["metadata"]["read"], "call_method", "{receipt}");
    assert_eq!(receipt["metadata"]["parameters"]["method"], "fixture/echo", "{receipt}");
    let unknown = session.request("fixture/none", &json!({}));
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    session.notify("notifications/fixture/saved", &json!({"file": 1, "_meta": {"acme": 2}}));
    // None of these is for the server.
    session.notify("notifications/chio/tool_call_chunk", &json!({}));
    session.notify("notifications/progress", &json!({"progressToken": 1, "progress": 1}));
    let heard = data(&session.call("heard", &json!({})));
    let expected = json!([{"method": "notifications/fixture/saved",
        "params": {"file": 1, "_meta": {"acme": 2}}}]);
    assert_eq!(heard, expected);
    // MCP's own methods are no extension, whatever the server may have under their names.
    for method in ["tools/other", "server/discover", "notifications/fixture", "chio x"] {
        let refused = session.request(method, &json!({}));
        assert_eq!(refused["error"]["code"], -32601, "{refused}");
    }
    assert_eq!(children(&world).len(), 3);
    world.audit();
}

/// Lets nothing pass before a call of `echo` was seen.
struct AfterEcho(Semaphore);

#[async_trait]
impl Guard for AfterEcho {
    fn name(&self) -> &str {
        "after-echo"
    }

    async fn check(&self, input: &GuardInput<'_>) -> Result<GuardOutcome, String> {
        if input.tool_name == "echo" {
            self.0.add_permits(1);
        }
        let _seen = self.0.acquire().await.map_err(|error| error.to_string())?;
        Ok(Verdict::Allow.into())
    }
}

#[test]
fn what_follows_a_notification_on_a_line_does_not_wait_for_the_guards_of_it() {
    let world = World::through();
    let guard = Arc::new(AfterEcho(Semaphore::new(0)));
    world.kernel().set_pipeline(world.kernel().pipeline().preceded_by(guard));
    let saved = |file: u64| json!({"jsonrpc": "2.0", "method": "notifications/fixture/saved", "params": {"file": file}});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    let echo = json!({"name": "echo", "arguments": {"text": "hi"}});
    let lines = world.lines(&[
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        saved(1),
        saved(2),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": echo}),
    ]);
    assert_eq!(lines[1]["result"]["isError"], false, "{lines:?}");
    // They are passed on nevertheless, in their order.
    let children = children(&world);
    let files = children.iter().map(|it| it["metadata"]["parameters"]["params"]["file"].clone());
    assert_eq!(files.collect::<Vec<Value>>(), [1, 2], "{children:?}");
    assert!(children.iter().all(|it| it["terminal_state"]["state"] == "completed"), "{children:?}");
}

#[test]
fn what_is_no_part_of_mcp_needs_a_grant_of_the_whole_server() {
    let world = World::through();
    let agent = key(8);
    for (number, tools) in
        [["fixture/meta", "fixture/heard"], ["other/*", "fixture/heard"]].iter().enumerate()
    {
        let id = format!("cap-some-{number}");
        let some = capability(&id, agent.public_key(), scope(tools, &[]), now());
        let session = world.door.with("X-Chio-Capability", &json!(some).to_string()).open();
        let refused = session.request("fixture/echo", &json!({}));
        assert_eq!(refused["error"]["code"], -32601, "{refused}");
        let receipt = refused["error"]["data"]["chio"]["receiptId"].as_str().unwrap();
        assert_eq!(world.receipt(receipt)["metadata"]["denial"]["guard"], "kernel");
        session.notify("notifications/fixture/saved", &json!({}));
        assert_eq!(data(&session.call("heard", &json!({}))), json!([]));
    }
}

#[test]
fn a_server_may_notify_and_ask_what_is_no_part_of_mcp() {
    let world = World::through();
    let session = world.door.open_with(&json!({"experimental": {"fixture": {}}}));
    let mut call = session.start_call("extend", &json!({}));
    let noted = call.hears("notifications/fixture/noted");
    assert_eq!(noted["params"], json!({"a": 1}));
    let question = call.hears("fixture/ask");
    assert_eq!(question["params"], json!({"q": 1}));
    session.reply(&question, &json!({"answer": 42}));
    assert_eq!(data(&call.result()), json!({"answer": 42}));
    assert_eq!(children(&world).len(), 1, "the question has its receipt");
    // A client that declares no extension is asked nothing, and our own is none of the server's.
    for client in [json!({}), json!({"experimental": {"chioToolStreaming": {}}})] {
        let session = world.door.open_with(&client);
        let mut call = session.start_call("extend", &json!({}));
        let result = call.result();
        assert!(text_of(&result).contains("did not say that it can do experimental"), "{result}");
        assert_eq!(call.before.len(), 1, "the notification: {:?}", call.before);
    }
}

#[test]
fn a_server_speaks_for_itself() {
    let world = World::through();
    let session = world.door.open();
    let welcome = &session.welcome;
    assert_eq!(welcome["serverInfo"]["name"], "mcp-fixture", "{welcome}");
    assert_eq!(welcome["_meta"]["chio"]["serverInfo"]["name"], "chio", "{welcome}");
    assert_eq!(welcome["instructions"], "Every tool is for tests.");
    let experimental = &welcome["capabilities"]["experimental"];
    assert_eq!(experimental["fixture"], json!({"echo": true}), "{welcome}");
    assert!(experimental["chioProtocol"].is_object(), "not the server's: {welcome}");
    let tools = session.request("tools/list", &json!({}))["result"]["tools"].clone();
    for (tool, support) in
        [("meta", json!("forbidden")), ("heard", json!("optional")), ("echo", Value::Null)]
    {
        let tool = tools.as_array().unwrap().iter().find(|it| it["name"] == tool).unwrap();
        assert_eq!(tool["execution"]["taskSupport"], support, "{tool}");
    }
}

#[test]
fn what_cannot_be_kept_is_reported_as_what_it_is() {
    let world = World::through();
    let session = world.door.open();
    let raw = |json: &str| session.call("raw", &json!({"json": json}));
    assert_eq!(raw("[18446744073709551615, 1e300]")["structuredContent"]["raw"][0], u64::MAX);
    for (json, problem) in [
        ("123456789012345678901234", "integers of at most 64 bits"),
        (r#""\ud800""#, "half of a surrogate pair"),
        ("1e999", "a larger one"),
    ] {
        let result = raw(json);
        assert!(text_of(&result).contains(problem), "{result}");
    }
    for (argument, problem) in [
        ("123456789012345678901234", "integers of at most 64 bits"),
        (r#""\ud800""#, "half of a surrogate pair"),
    ] {
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{{"name":"echo","arguments":{{"text":{argument}}}}}}}"#
        );
        let answer = session.send(Request::post_bytes(message)).is(400).json();
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!(77), &json!(-32600)),
            "{answer}"
        );
        assert!(answer["error"]["message"].as_str().unwrap().contains(problem), "{answer}");
    }
    assert_eq!(text_of(&session.call("echo", &json!({"text": "still here"}))), "still here");
}

/// A call that logs, and then takes its time.
fn start_logging(session: &Session, text: &str, ms: u64) -> Stream {
    session.start_call("log_then_wait", &json!({"text": text, "ms": ms}))
}

// covers: WIRE-067, WIRE-068
#[test]
fn a_shared_server_speaks_to_a_session_only_while_all_calls_are_its() {
    let world = World::through_shared(Duration::ZERO);
    let client = json!({"sampling": {}, "elicitation": {}, "roots": {}});
    let (session, other) = (world.door.open_with(&client), world.door.open_with(&client));
    // Alone, it hears and is asked.
    let mut call = start_logging(&session, "to the first", 0);
    call.result();
    assert_eq!(call.heard("notifications/message")[0]["params"]["data"], "to the first");
    let mut call = session.start_call("ask_roots", &json!({}));
    let question = call.hears("roots/list");
    session.reply(&question, &json!({"roots": []}));
    assert_eq!(text_of(&call.result()), "[]");
    // Beside a call of another session, neither.
    let mut others = start_logging(&other, "to the second", 60_000);
    others.hears("notifications/message");
    let mut call = start_logging(&session, "to whom?", 0);
    call.result();
    assert!(call.before.is_empty(), "{:?}", call.before);
    let mut call = session.start_call("ask_roots", &json!({}));
    assert!(text_of(&call.result()).contains("while all calls are of one session"));
    assert!(call.before.is_empty(), "{:?}", call.before);
    // A call that was left may still be worked on, so that nothing is sure for a while.
    other.cancel(&others.id);
    assert_eq!(others.try_answer(), None);
    assert!(others.before.iter().all(|it| it["params"]["data"] == "to the second"));
    until("the receipts", || (receipts::calls(&world.receipts()).len() == 5).then_some(()));
    let mut call = start_logging(&session, "too soon", 0);
    call.result();
    assert!(call.before.is_empty(), "{:?}", call.before);
    world.audit();
}

// covers: WIRE-067, WIRE-068
#[test]
fn what_a_shared_server_says_late_of_a_call_reaches_no_other_session() {
    let world = World::through_shared(Limits::default().late);
    let (session, other) = (world.door.open(), world.door.open());
    session.call("log_late", &json!({"text": "of the first", "ms": 200}));
    let mut call = start_logging(&other, "of the other, or not?", 600);
    call.result();
    assert!(call.before.is_empty(), "{:?}", call.before);
    world.audit();
}
