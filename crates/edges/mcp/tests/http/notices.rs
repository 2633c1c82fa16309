//! Notifications: progress, logs and changes, each to the client it belongs to and to no other.

use chio_mcp_adapter::Sharing;
use chio_testkit::mcp::{Request, Session, Stream, text_of};
use serde_json::{Value, json};

use crate::world::World;

const PROGRESS: &str = "notifications/progress";
const LOG: &str = "notifications/message";
const UPDATED: &str = "notifications/resources/updated";
const TOOLS: &str = "notifications/tools/list_changed";
const WATCHED: &str = "test://watched-resource";

/// A call whose progress has this name.
#[track_caller]
fn with_progress(session: &Session, tool: &str, token: &Value) -> Stream {
    let params = json!({"name": tool, "arguments": {}, "_meta": {"progressToken": token}});
    session.start("tools/call", &params)
}

#[track_caller]
fn subscribe(session: &Session) {
    let answer = session.request("resources/subscribe", &json!({"uri": WATCHED}));
    assert!(answer.get("result").is_some(), "{answer}");
}

/// Has the session's server say that the watched resource changed.
#[track_caller]
fn touch(session: &Session) {
    assert_eq!(text_of(&session.call("touch_watched", &json!({}))), "The watcher was told.");
}

// covers: WIRE-048
#[test]
fn progress_reaches_the_stream_of_its_call_under_the_clients_name() {
    let world = World::fixture();
    let session = world.door.open();
    for token in [json!("my-progress"), json!(7)] {
        let mut call = with_progress(&session, "test_tool_with_progress", &token);
        call.result();
        let told = call.heard(PROGRESS);
        let steps: Vec<_> = told.iter().map(|it| it["params"]["progress"].as_f64()).collect();
        assert_eq!(steps, [Some(0.0), Some(50.0), Some(100.0)]);
        assert!(told.iter().all(|it| it["params"]["progressToken"] == token), "{told:?}");
    }
    // A client that asked for no progress hears of none.
    let mut call = session.start_call("test_tool_with_progress", &json!({}));
    call.result();
    assert!(call.before.is_empty(), "{:?}", call.before);
}

// covers: WIRE-048
#[test]
fn logs_reach_the_stream_of_their_call_from_the_level_that_was_asked_for() {
    let world = World::fixture();
    let (session, other) = (world.door.open(), world.door.open());
    let logged = |session: &Session| {
        let mut call = session.start_call("test_tool_with_logging", &json!({}));
        call.result();
        let told = call.heard(LOG).into_iter();
        told.map(|it| it["params"]["data"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let all = ["Tool execution started", "Tool processing data", "Tool execution completed"];
    assert_eq!(logged(&session), all);
    let level = |level: &str| session.request("logging/setLevel", &json!({"level": level}));
    assert_eq!(level("warning")["result"], json!({}));
    assert!(logged(&session).is_empty());
    // Another session has its own level.
    assert_eq!(logged(&other), all);
    level("debug");
    assert_eq!(logged(&session), all);
}

// covers: WIRE-049, WIRE-067
#[test]
fn a_change_of_a_resource_reaches_the_session_that_watches_it() {
    let world = World::fixture();
    let (session, other) = (world.door.open(), world.door.open());
    let (mut stream, mut others) = (session.listen(), other.listen());
    let unwatched = session.call("touch_watched", &json!({}));
    assert_eq!(text_of(&unwatched), "Nobody watches.");
    subscribe(&session);
    touch(&session);
    assert_eq!(stream.hears(UPDATED)["params"]["uri"], WATCHED);
    let answer = session.request("resources/unsubscribe", &json!({"uri": WATCHED}));
    assert!(answer.get("result").is_some(), "{answer}");
    assert_eq!(text_of(&session.call("touch_watched", &json!({}))), "Nobody watches.");
    // The first that the other hears of is its own.
    other.call("grow", &json!({}));
    others.hears(TOOLS);
    assert_eq!(world.calls().len(), 4);
}

// covers: WIRE-067, WIRE-068
#[test]
fn a_change_of_the_tools_reaches_the_session_whose_server_changed() {
    let world = World::fixture();
    let (session, other) = (world.door.open(), world.door.open());
    let (mut stream, mut others) = (session.listen(), other.listen());
    subscribe(&other);
    let before = session.tools();
    assert_eq!(text_of(&session.call("grow", &json!({}))), "grown_1");
    stream.hears(TOOLS);
    let after = session.tools();
    assert!(after.contains(&"grown_1".to_owned()) && after.len() == before.len() + 1, "{after:?}");
    assert_ne!(session.call("grown_1", &json!({}))["isError"], true);
    // The other has a server of its own, which has not grown.
    assert_eq!(other.tools(), before);
    touch(&other);
    others.hears(UPDATED);
}

// covers: WIRE-067, WIRE-068
#[test]
fn what_a_shared_server_says_outside_of_calls_reaches_no_session() {
    let world = World::sharing(Sharing::Shared);
    let (session, other) = (world.door.open(), world.door.open());
    let (mut stream, mut others) = (session.listen(), other.listen());
    subscribe(&session);
    // What it says while one session's call runs is for that.
    let mut call = session.start_call("test_tool_with_logging", &json!({}));
    call.result();
    assert_eq!(call.heard(LOG).len(), 3, "{:?}", call.before);
    // Changes of lists name no session.
    session.call("grow", &json!({}));
    let mut call = with_progress(&session, "test_tool_with_progress", &json!(1));
    call.result();
    // Progress names the call.
    assert_eq!(call.heard(PROGRESS).len(), 3);
    touch(&session);
    assert_eq!(stream.hears(UPDATED)["params"]["uri"], WATCHED, "and nothing before it");
    // The other hears nothing until it watches too, and then only of that.
    subscribe(&other);
    touch(&session);
    others.hears(UPDATED);
    stream.hears(UPDATED);
}

// covers: WIRE-067
#[test]
fn what_comes_late_stays_with_the_session_that_it_came_from() {
    let world = World::sharing(Sharing::Shared);
    let (session, other) = (world.door.open(), world.door.open());
    subscribe(&session);
    subscribe(&other);
    session.send(Request::delete()).is(204);
    // The watch of a session that is gone passes to no other.
    let mut stream = other.listen();
    touch(&other);
    assert_eq!(stream.hears(UPDATED)["params"]["uri"], WATCHED);
    let answer = other.request("resources/unsubscribe", &json!({"uri": WATCHED}));
    assert!(answer.get("result").is_some(), "{answer}");
    assert_eq!(text_of(&other.call("touch_watched", &json!({}))), "Nobody watches.");
}
