//! Several messages in one body, which one version of the protocol has.

use chio_edge::{SettingValue, Settings};
use chio_mcp_edge::SUPPORTED;
use chio_testkit::mcp::{Request, Session, receipt_of};
use serde_json::{Value, json};

use crate::world::{Beginning, Tools, World};

/// The version that has them.
const VERSION: &str = "2025-03-26";

fn open(world: &World) -> Session {
    world.door.open_as(VERSION, &json!({}))
}

fn request(id: impl Into<Value>, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

fn echo(id: u64, text: &str) -> Value {
    request(id, "tools/call", &json!({"name": "echo", "arguments": {"text": text}}))
}

/// Sends a batch, and gives the answers in the order of their ids.
#[track_caller]
fn answers(session: &Session, batch: &Value) -> Vec<Value> {
    let mut stream = session.stream(session.send(Request::post(batch)).is(200), Value::Null);
    let mut answers: Vec<Value> = std::iter::from_fn(|| stream.message()).collect();
    answers.sort_by_key(|answer| answer["id"].to_string());
    answers
}

#[test]
fn each_call_of_a_batch_is_a_call_of_its_own() {
    let world = Beginning { policy: "default", ..Beginning::default() }.start();
    let session = open(&world);
    let secret = request(
        3,
        "tools/call",
        &json!({"name": "read_file",
        "arguments": {"path": "/etc/shadow"}}),
    );
    let batch = json!([
        echo(1, "one"),
        {"jsonrpc": "2.0", "method": "notifications/of/others"},
        echo(2, "two"),
        secret,
        request(4, "tools/list", &json!({})),
        request(5, "initialize", &json!({"protocolVersion": VERSION})),
        request(6, "no/such/method", &json!({})),
        {"jsonrpc": "2.0", "id": "nobody asked", "result": {}},
        {"jsonrpc": "1.0", "id": 7, "method": "ping"},
        8,
    ]);
    let answers = answers(&session, &batch);
    let ids: Vec<String> = answers.iter().map(|answer| answer["id"].to_string()).collect();
    assert_eq!(ids, ["1", "2", "3", "4", "5", "6", "7", "null"]);
    let receipts = [&answers[0], &answers[1], &answers[2]].map(|it| receipt_of(&it["result"]));
    assert!(receipts[0] != receipts[1] && receipts[1] != receipts[2]);
    assert_eq!(answers[0]["result"]["content"][0]["text"], "one");
    assert_eq!(answers[1]["result"]["content"][0]["text"], "two");
    assert_eq!(answers[2]["result"]["isError"], true);
    assert!(answers[3]["result"]["tools"].is_array());
    for (place, code) in [(4, -32600), (5, -32601), (6, -32600), (7, -32600)] {
        assert_eq!(answers[place]["error"]["code"], code, "{}", answers[place]);
    }
    let mut calls = world.calls();
    calls.sort();
    let expected = [("echo", "allow"), ("echo", "allow"), ("read_file", "deny")];
    let expected = expected.map(|(tool, how)| (tool.to_owned(), how.to_owned()));
    assert_eq!(calls, expected);
    world.audit();
}

#[test]
fn a_batch_that_asks_for_nothing_is_accepted() {
    let world = World::fixture();
    let params = json!({"protocolVersion": VERSION, "capabilities": {}});
    let session = world.door.begin(&params);
    // Also the one message that makes the session ready.
    session.post_for_nothing(&json!([{"jsonrpc": "2.0", "method": "notifications/initialized"}]));
    session.post_for_nothing(&json!([{"jsonrpc": "2.0", "id": 1, "result": {}}]));
    assert_eq!(answers(&session, &json!([echo(1, "x")]))[0]["id"], 1);
}

#[test]
fn the_same_id_twice_in_a_batch_is_one_request() {
    let world = World::demo();
    let session = open(&world);
    let sleep = request(1, "tools/call", &json!({"name": "sleep", "arguments": {"ms": 300}}));
    let answers = answers(&session, &json!([sleep, echo(1, "x")]));
    let refused = answers.iter().filter(|answer| answer["error"]["code"] == -32600);
    assert_eq!((answers.len(), refused.count()), (2, 1), "{answers:?}");
    assert_eq!(world.calls().len(), 1);
}

#[test]
fn a_request_that_is_cancelled_in_its_own_batch_is_cancelled() {
    let world = World::demo();
    let session = open(&world);
    let sleep = request(1, "tools/call", &json!({"name": "sleep", "arguments": {"ms": 60_000}}));
    let params = json!({"requestId": 1});
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    let answers = answers(&session, &json!([sleep, cancel, echo(2, "x")]));
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(answers[0]["id"], 2, "{answers:?}");
    let mut calls = world.calls();
    calls.sort();
    let expected = [("echo", "allow"), ("sleep", "cancelled")];
    assert_eq!(calls, expected.map(|(tool, how)| (tool.to_owned(), how.to_owned())));
}

#[test]
fn batches_of_other_versions_and_other_sizes_are_refused() {
    let world = World::demo();
    let batch = json!([echo(1, "x")]);
    for version in SUPPORTED.into_iter().chain(["2026-07-28"]) {
        let session = world.door.open_as(version, &json!({}));
        if version == VERSION {
            receipt_of(&answers(&session, &batch)[0]["result"]);
            continue;
        }
        let answer = session.send(Request::post(&batch));
        let message = answer.check_for(400, version).json();
        assert_eq!(message["error"]["message"], "expected one message, found a batch");
        assert_eq!((&message["id"], &message["error"]["code"]), (&Value::Null, &json!(-32600)));
    }
    let session = open(&world);
    let many: Vec<Value> = (0..65).map(|id| request(id, "ping", &json!({}))).collect();
    for (batch, found) in [(json!([]), 0), (json!(many), 65)] {
        let message = session.send(Request::post(&batch)).is(400).json();
        let expected = format!("expected a batch of 1 to 64 messages, found {found}");
        assert_eq!(message["error"]["message"], expected);
    }
    assert_eq!(answers(&session, &json!(many[..64])).len(), 64);
    // A session is not opened so.
    let initialize = request(0, "initialize", &json!({"protocolVersion": VERSION}));
    world.door.send(Request::post(&json!([initialize]))).is(400);
    assert_eq!(world.calls().len(), 1);
}

#[test]
fn each_message_of_a_batch_counts_against_the_rate() {
    let settings = Settings::default().with("rate", Some(SettingValue::Number(10)));
    let world = Beginning { tools: Tools::Demo, settings, ..Beginning::default() }.start();
    let session = open(&world);
    let batch: Vec<Value> = (1..=4).map(|id| echo(id, "x")).collect();
    answers(&session, &json!(batch));
    // Two of ten opened the session, and four were calls.
    assert_eq!(answers(&session, &json!(batch)).len(), 4);
    let refused = session.send(Request::post(&json!(batch))).is(429);
    assert!(refused.header("retry-after").is_some());
    assert_eq!(world.calls().len(), 8);
    // So does each notification.
    let told = vec![json!({"jsonrpc": "2.0", "method": "notifications/vendor/x"}); 20];
    session.send(Request::post(&json!(told))).is(429);
}

#[test]
fn over_byte_streams_the_responses_of_a_batch_are_one_line() {
    let world = World::demo();
    for version in SUPPORTED {
        let has_batches = version == VERSION;
        let params = json!({"protocolVersion": version, "capabilities": {}});
        let lines = world.lines(&[
            json!([request(1, "ping", &json!({}))]),
            request(0, "initialize", &params),
            json!([{"jsonrpc": "2.0", "method": "notifications/initialized"}]),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!([echo(1, "x"), request(2, "no/such/method", &json!({})), 7]),
        ]);
        let refused =
            |line: &Value| line["error"]["message"] == "expected one message, found a batch";
        assert!(refused(&lines[0]), "before there is a session: {}", lines[0]);
        assert_eq!(lines[1]["result"]["protocolVersion"], version);
        if !has_batches {
            assert!(lines[2..].iter().all(refused) && lines.len() == 4, "{version} {lines:?}");
            continue;
        }
        let [answers] = &lines[2..] else { panic!("{lines:?}") };
        let mut ids: Vec<String> =
            answers.as_array().unwrap().iter().map(|answer| answer["id"].to_string()).collect();
        ids.sort();
        assert_eq!(ids, ["1", "2", "null"], "{answers}");
    }
    world.check_calls(&[("echo", "allow")]);
}
