//! What a request has to look like, and what each that does not is answered.

use chio_testkit::mcp::{Request, Wire, initialize, receipt_of};
use serde_json::{Value, json};

use crate::world::World;

fn echo() -> Value {
    let params = json!({"name": "echo", "arguments": {"text": "x"}});
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
}

// covers: WIRE-048, WIRE-058, WIRE-060, WIRE-061, BRIDGE-002
#[test]
fn what_is_not_as_it_should_be_is_refused_as_json_and_nothing_runs() {
    let world = World::demo();
    let session = world.door.open();
    let call = || session.of(Request::post(&echo()));
    let (get, delete) = (session.of(Request::get()), session.of(Request::delete()));
    let no_session = |request: Request| request.without("MCP-Session-Id");
    for (what, request, status) in [
        ("no session", no_session(call()), 400),
        ("no session to listen to", no_session(get.clone()), 400),
        ("no session to end", no_session(delete.clone()), 400),
        ("two sessions", call().and("MCP-Session-Id", &session.id), 400),
        ("an empty session", call().with("MCP-Session-Id", ""), 404),
        ("an unknown session", call().with("MCP-Session-Id", &"0".repeat(64)), 404),
        ("unknown to listen to", get.clone().with("MCP-Session-Id", &"0".repeat(64)), 404),
        ("unknown to end", delete.clone().with("MCP-Session-Id", &"0".repeat(64)), 404),
        ("another version", call().with("MCP-Protocol-Version", "2026-07-28"), 400),
        ("another to listen to", get.clone().with("MCP-Protocol-Version", "2025-06-18"), 400),
        ("another to end", delete.with("MCP-Protocol-Version", "2025-06-18"), 400),
        ("no version", call().with("MCP-Protocol-Version", ""), 400),
        ("no type", call().without("Content-Type"), 415),
        ("another type", call().with("Content-Type", "text/plain"), 415),
        ("nearly the type", call().with("Content-Type", "application/jsonp"), 415),
        ("takes nothing", call().without("Accept"), 406),
        ("takes no stream", call().with("Accept", "application/json"), 406),
        ("takes no JSON", call().with("Accept", "text/event-stream"), 406),
        ("takes pages", call().with("Accept", "text/html"), 406),
        ("listens to JSON", get.clone().with("Accept", "application/json"), 406),
        ("listens to nothing", get.without("Accept"), 406),
    ] {
        let message = world.door.send(request).check_for(status, what).json();
        assert_eq!(message["jsonrpc"], "2.0", "{what}: {message}");
        assert_eq!(message["id"], Value::Null, "{what}: {message}");
        assert_eq!(message["error"]["code"], -32600, "{what}: {message}");
        assert!(message["error"]["data"]["chioError"]["code"].is_number(), "{what}: {message}");
    }
    assert!(world.receipts().is_empty(), "nothing ran");
    // The session is none the worse for it.
    session.call("echo", &json!({"text": "still here"}));
    world.check_calls(&[("echo", "allow")]);
}

// covers: WIRE-051, WIRE-059
#[test]
fn headers_may_be_written_in_any_way_that_means_the_same() {
    let world = World::demo();
    let session = world.door.open();
    let plain = || Request::post(&echo()).with("mcp-session-id", &session.id);
    for request in [
        plain(),
        plain().with("MCP-PROTOCOL-VERSION", "2025-11-25"),
        plain().with("Accept", "text/event-stream, application/json"),
        plain().with("Accept", "application/json;q=0.9").and("Accept", "text/event-stream"),
        plain().with("Accept", "*/*"),
        plain().with("Content-Type", "Application/JSON; charset=utf-8"),
    ] {
        let answer = world.door.send(request).is(200);
        receipt_of(&session.stream(answer, json!(1)).result());
    }
    assert_eq!(world.calls().len(), 6);
}

// covers: WIRE-048
#[test]
fn a_body_that_is_no_message_is_refused_with_the_reason() {
    let world = World::demo();
    let session = world.door.open();
    let twice = r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}"#;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for (body, code) in [
        ("", -32700),
        ("{", -32700),
        ("not JSON", -32700),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"} {}", -32700),
        ("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", -32700),
        (deep.as_str(), -32600),
        (twice, -32600),
        ("[]", -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
        ("1", -32600),
        ("{}", -32600),
        (r#"{"id":1,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#, -32600),
    ] {
        let shown: String = body.chars().take(60).collect();
        let message = session.send(Request::post_bytes(body)).check_for(400, &shown).json();
        assert_eq!(message["error"]["code"], code, "{shown}: {message}");
        assert!(message.get("id").is_some(), "{shown}: {message}");
    }
    let mut answer = session.send(Request::post_bytes(b"\xff\xfe{}".to_vec())).is(400);
    assert_eq!(answer.json()["error"]["code"], -32700);
    assert!(world.receipts().is_empty());
}

// covers: WIRE-048, BRIDGE-162, BRIDGE-163
#[test]
fn requests_that_were_understood_are_answered_as_json_rpc() {
    let world = World::demo();
    let session = world.door.open();
    for (method, params, code) in [
        ("no/such/method", json!({}), -32601),
        ("server/discover", json!({}), -32601),
        ("tools/call", json!([]), -32602),
        ("tools/call", json!({}), -32602),
        ("tools/call", json!({"name": 7}), -32602),
        ("tools/call", json!({"name": "no_such_tool", "arguments": {}}), -32602),
        ("tools/call", json!({"name": "echo", "arguments": "x"}), -32602),
        ("tools/list", json!({"cursor": "far away"}), -32602),
        ("tools/list", json!({"cursor": "99999"}), -32602),
        ("logging/setLevel", json!({"level": "loud"}), -32602),
        ("tasks/get", json!({"taskId": "nobody's"}), -32602),
    ] {
        let mut answer = session.send(session.asks(method, &params).1).is(200);
        // Some clients do not take an error in a stream for the answer.
        let message = answer.json();
        assert_eq!(message["error"]["code"], code, "{method} {params}: {message}");
    }
    let null = json!({"jsonrpc": "2.0", "id": null, "method": "tools/list"});
    let message = session.send(Request::post(&null)).is(200).json();
    assert_eq!(message["error"]["code"], -32600, "{message}");
    // A method that is no part of MCP is judged, and denied: the server has only tools.
    let receipts = world.receipts();
    assert!(receipts.iter().all(|it| it["metadata"]["read"] == "call_method"), "{receipts:?}");
    assert_eq!(receipts.len(), 1, "{receipts:?}");
}

// covers: WIRE-048
#[test]
fn a_probe_without_a_session_is_told_to_initialize() {
    // Newer clients ask so first, and fall back when they are refused with this very code.
    let world = World::demo();
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    let probe = json!({"jsonrpc": "2.0", "id": "p", "method": "server/discover",
        "params": {"_meta": meta}});
    let request = Request::post(&probe).with("MCP-Protocol-Version", "2026-07-28");
    let message = world.door.send(request).is(400).json();
    assert_eq!(message["error"]["code"], -32600, "{message}");
}

// covers: WIRE-048
#[test]
fn pages_of_others_and_other_names_of_this_machine_are_refused() {
    let world = World::demo();
    let session = world.door.open();
    let port = session.door.address.rsplit_once(':').unwrap().1.to_owned();
    let requests =
        [Request::post(&echo()), Request::get(), Request::delete()].map(|it| session.of(it));
    for (name, value) in [
        ("Origin", "https://evil.example".to_owned()),
        ("Origin", "http://localhost.evil.example".to_owned()),
        ("Origin", format!("http://127.0.0.1.evil.example:{port}")),
        ("Origin", "null".to_owned()),
        ("Host", "evil.example".to_owned()),
        ("Host", format!("evil.example:{port}")),
        ("Host", format!("localhost.evil.example:{port}")),
    ] {
        for request in &requests {
            let answer = world.door.send(request.clone().with(name, &value));
            let message = answer.check_for(403, &value).json();
            assert!(message["error"]["code"].is_number(), "{message}");
        }
    }
    for (name, value) in [
        ("Origin", format!("http://127.0.0.1:{port}")),
        ("Origin", format!("http://localhost:{port}")),
        ("Host", format!("localhost:{port}")),
    ] {
        let answer = world.door.send(requests[0].clone().with(name, &value)).is(200);
        session.stream(answer, json!(1)).result();
    }
    assert_eq!(world.calls().len(), 3);
}

// covers: WIRE-048
#[test]
fn a_connection_carries_one_request_after_the_other() {
    let world = World::demo();
    let session = world.door.open();
    let mut wire = Wire::connect(&world.door.address);
    for (request, status) in [
        (session.of(Request::post(&echo())), 200),
        (session.of(Request::post_bytes("{")), 400),
        (Request::post(&echo()), 400),
        (session.of(Request::get().with("Last-Event-ID", "none")), 409),
        (session.of(Request::post(&echo())), 200),
        (session.of(Request::delete()), 204),
        (session.of(Request::delete()), 404),
        (Request::post(&initialize(&json!({}))), 200),
    ] {
        wire = wire.send(&request).is(status).into_wire();
    }
    assert_eq!(world.calls().len(), 2);
}

// covers: WIRE-048
#[test]
fn two_running_requests_of_a_session_never_share_an_id() {
    let world = World::demo();
    let session = world.door.open();
    let sleep = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call",
        "params": {"name": "sleep", "arguments": {"ms": 60_000}}});
    let mut first = session.stream(session.send(Request::post(&sleep)).is(200), json!(7));
    let message = session.send(Request::post(&sleep)).is(200).json();
    assert_eq!(message["error"]["code"], -32600, "{message}");
    session.cancel(&json!(7));
    assert_eq!(first.try_answer(), None);
    world.check_calls(&[("sleep", "cancelled")]);
}
