//! How a session begins: `initialize`, versions, and what waits until the client is ready.

use std::time::Duration;

use chio_edge::{SettingValue, Settings};
use chio_mcp_edge::SUPPORTED;
use chio_testkit::mcp::{Door, Request, Session, initialize};
use serde_json::{Value, json};

use crate::world::{Beginning, World};

/// An older version, and no other.
fn versions() -> SettingValue {
    SettingValue::Texts(vec!["2025-06-18".to_owned()])
}

/// What the params of `initialize` are refused with.
#[track_caller]
fn refusal(door: &Door, params: &Value) -> Value {
    let mut answer = door.send(Request::post(&initialize(params))).is(200);
    assert_eq!(answer.header("mcp-session-id"), None);
    let message = answer.json();
    assert_eq!((&message["id"], message.get("result")), (&json!(0), None), "{message}");
    message["error"].clone()
}

// covers: WIRE-048, WIRE-051, WIRE-055, WIRE-056, WIRE-065
#[test]
fn the_answer_is_a_stream_that_names_the_session_and_ends() {
    let world = World::demo();
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}});
    let mut answer = world.door.send(Request::post(&initialize(&params))).is(200);
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    assert_eq!(answer.header("x-chio-mcp-response-mode"), Some("initialize_sse"));
    let id = answer.header("mcp-session-id").unwrap().to_owned();
    assert!(id.len() >= 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
    let text = answer.text();
    let (prime, message) = text.split_once("\n\n").unwrap();
    assert_eq!(prime, format!("id: {id}-1\nretry: 1000"));
    let data = message.strip_prefix(&format!("id: {id}-2\ndata: ")).unwrap();
    let data: Value = serde_json::from_str(data.strip_suffix("\n\n").unwrap()).unwrap();
    assert_eq!(data["id"], 0);
    assert_eq!(data["result"]["serverInfo"]["name"], "chio");
}

// covers: WIRE-074, WIRE-075, WIRE-076, WIRE-078, WIRE-079
#[test]
fn a_version_that_is_known_is_echoed_in_both_places_and_absence_is_the_usual_one() {
    let world = World::demo();
    for (params, version) in [
        (json!({"protocolVersion": "2025-11-25"}), "2025-11-25"),
        (json!({"protocolVersion": "2025-06-18"}), "2025-06-18"),
        (json!({"protocolVersion": "2025-03-26"}), "2025-03-26"),
        (json!({"protocolVersion": "2024-11-05"}), "2024-11-05"),
        (json!({"protocolVersion": "2026-07-28"}), "2026-07-28"),
        (json!({}), "2025-11-25"),
    ] {
        let welcome = world.door.begin(&params).welcome;
        assert_eq!(welcome["protocolVersion"], version);
        let chosen = &welcome["capabilities"]["experimental"]["chioProtocol"];
        assert_eq!(chosen["selectedProtocolVersion"], version, "{welcome}");
        assert_eq!(chosen["supportedProtocolVersions"], json!(SUPPORTED));
        assert_eq!(chosen["compatibility"], "exact_match");
        assert_eq!(chosen["downgradeBehavior"], "reject");
    }
}

// covers: WIRE-075, WIRE-077, WIRE-080, WIRE-119
#[test]
fn any_other_version_is_refused_with_the_registrys_account_and_opens_nothing() {
    let world = World::demo();
    for version in ["2025-06-17", "2024-10-07", "2099-01-01", "2025-11-25 ", "", "2025-11-2"] {
        let error = refusal(&world.door, &json!({"protocolVersion": version}));
        assert_eq!(error["code"], -32600, "{error}");
        let known = &error["data"]["chioError"];
        assert_eq!(known["code"], 1000, "{error}");
        assert_eq!(known["name"], "protocol_version_unsupported");
        assert_eq!((&known["category"], &known["transient"]), (&json!("protocol"), &json!(false)));
        assert_eq!(known["retry"]["strategy"], "do_not_retry_until_version_change");
        assert_eq!(error["data"]["requested"], version);
        assert_eq!(error["data"]["supported"], json!(SUPPORTED));
    }
    for version in [json!(20_251_125), json!(null), json!(["2025-11-25"])] {
        let error = refusal(&world.door, &json!({"protocolVersion": version}));
        assert_eq!(error["code"], -32600, "{error}");
        assert_eq!(error["data"]["chioError"]["name"], "invalid_request_shape", "{error}");
    }
    assert!(world.receipts().is_empty());
}

// covers: WIRE-075, WIRE-076, WIRE-077
#[test]
fn only_the_versions_that_an_operator_lists_are_spoken() {
    let world = World::with("versions", versions());
    let session = world.door.begin(&json!({"protocolVersion": "2025-06-18"}));
    assert_eq!(session.welcome["protocolVersion"], "2025-06-18");
    let error = refusal(&world.door, &json!({"protocolVersion": "2025-11-25"}));
    assert_eq!(error["data"]["supported"], json!(["2025-06-18"]), "{error}");
    let error = refusal(&world.door, &json!({"protocolVersion": "2026-07-28"}));
    assert_eq!(error["data"]["supported"], json!(["2025-06-18"]), "{error}");
    // Absent is not silently another.
    let error = refusal(&world.door, &json!({}));
    assert_eq!(error["data"]["chioError"]["code"], 1000, "{error}");
}

// covers: WIRE-049, WIRE-065
#[test]
fn older_clients_get_no_events_that_they_would_choke_on() {
    let rotate = Some(SettingValue::Duration(Duration::from_millis(100)));
    let settings = Settings::default().with("versions", Some(versions()));
    let settings = settings.with("rotate_streams", rotate);
    let world = Beginning { settings, ..Beginning::default() }.start();
    let session = world.door.begin(&json!({"protocolVersion": "2025-06-18"}));
    session.notify("notifications/initialized", &json!({}));
    // No client can come back without a number, so the stream is not closed on it.
    let mut stream = session.start_call("slow", &json!({"ms": 500}));
    let event = stream.event().unwrap();
    assert!(event.kind.is_none() && event.data.unwrap().contains("This took 500 ms."));
    assert_eq!(stream.event(), None);
}

// covers: WIRE-053, WIRE-054
#[test]
fn initialize_is_a_request_with_an_id_and_without_a_session() {
    let world = World::demo();
    let session = world.door.open();
    let without_id = json!({"jsonrpc": "2.0", "method": "initialize", "params": {}});
    let null_id = json!({"jsonrpc": "2.0", "id": null, "method": "initialize", "params": {}});
    let whole = initialize(&json!({}));
    for (request, id) in [
        (Request::post(&without_id), json!(null)),
        (Request::post(&null_id), json!(null)),
        (session.of(Request::post(&whole)), json!(0)),
        (Request::post(&whole).with("MCP-Session-Id", "made-up"), json!(0)),
        (session.of(Request::post(&without_id)), json!(null)),
    ] {
        let mut answer = world.door.send(request).is(400);
        assert_eq!(answer.header("mcp-session-id"), None);
        let message = answer.json();
        assert_eq!((&message["error"]["code"], &message["id"]), (&json!(-32600), &id), "{message}");
    }
    // The session that was named is none the worse for it.
    assert!(session.call("echo", &json!({"text": "still here"}))["isError"] == false);
}

// covers: WIRE-052
#[test]
fn initialize_is_taken_by_post_only_and_at_this_path_only() {
    let world = World::demo();
    let whole = Request::post(&initialize(&json!({})));
    for (method, status) in
        [("PUT", 405), ("PATCH", 405), ("OPTIONS", 405), ("GET", 400), ("DELETE", 400)]
    {
        let answer = world.door.send(whole.clone().by(method)).check_for(status, method);
        assert_eq!(answer.header("mcp-session-id"), None, "{method}");
    }
    // Neither a stream nor another place is a way to begin.
    world.door.send(Request::get()).is(400);
    for path in ["/", "/mcp/initialize", "/sse", "/messages"] {
        let answer = world.door.send(whole.clone().at(path)).check_for(404, path);
        assert_eq!(answer.header("mcp-session-id"), None, "{path}");
    }
    world.door.send(whole).is(200).header("mcp-session-id").unwrap();
}

/// Asks for something, and gives the error.
#[track_caller]
fn error(session: &Session, method: &str, params: &Value) -> Value {
    let mut answer = session.send(session.asks(method, params).1).is(200);
    answer.json()["error"].clone()
}

// covers: WIRE-057, WIRE-062, WIRE-070
#[test]
fn nothing_but_a_ping_is_answered_until_the_client_is_ready() {
    let world = World::fixture();
    let session = world.door.begin(&json!({}));
    assert_eq!(session.request("ping", &json!({}))["result"], json!({}));
    let echo = json!({"name": "echo", "arguments": {"text": "x"}});
    for (method, params) in [
        ("tools/list", json!({})),
        ("tools/call", echo.clone()),
        ("resources/read", json!({"uri": "test://static-text"})),
        ("prompts/get", json!({"name": "test_simple_prompt"})),
        ("logging/setLevel", json!({"level": "info"})),
        ("tasks/list", json!({})),
    ] {
        let error = error(&session, method, &params);
        assert_eq!(error["code"], -32002, "{method}: {error}");
        assert_eq!(error["data"]["chioError"]["code"], 1001, "{method}: {error}");
        assert_eq!(error["data"]["chioError"]["name"], "session_not_initialized");
        assert_eq!(error["data"]["chioError"]["retry"]["strategy"], "reinitialize");
    }
    assert!(world.receipts().is_empty(), "nothing ran");
    session.notify("notifications/initialized", &json!({}));
    assert_eq!(session.request("tools/call", &echo)["result"]["isError"], false);
    world.check_calls(&[("echo", "allow")]);
}

// covers: WIRE-076, WIRE-078
#[test]
fn sessions_of_the_newest_version_say_what_their_results_are() {
    let world = World::demo();
    let session = world.door.begin(&json!({"protocolVersion": "2026-07-28"}));
    session.notify("notifications/initialized", &json!({}));
    let listed = session.request("tools/list", &json!({}))["result"].clone();
    assert_eq!(listed["resultType"], "complete", "{listed}");
    assert!(listed["ttlMs"].is_number() && listed["cacheScope"].is_string(), "{listed}");
    let called = session.call("echo", &json!({"text": "hi"}));
    assert_eq!((&called["resultType"], &called["isError"]), (&json!("complete"), &json!(false)));
    // The version before it says nothing of the kind.
    let older = world.door.open();
    assert_eq!(older.call("echo", &json!({"text": "hi"})).get("resultType"), None);
    assert_eq!(older.request("tools/list", &json!({}))["result"].get("ttlMs"), None);
}
