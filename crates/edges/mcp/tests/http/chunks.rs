//! Tools that answer piece by piece.

use chio_testkit::mcp::{Request, Session, receipt_of};
use chio_testkit::process::until;
use serde_json::{Value, json};

use crate::world::World;

const CHUNK: &str = "notifications/chio/tool_call_chunk";

/// A client that takes chunks one by one.
fn streaming() -> Value {
    json!({"experimental": {"chioToolStreaming": {}}})
}

/// Counts, and checks that every chunk came in its order.
#[track_caller]
fn check_count(session: &Session, most: usize) {
    let mut call = session.start_call("count_to", &json!({"n": most}));
    let result = call.result();
    let chunks = call.heard(CHUNK);
    assert_eq!(chunks.len(), most);
    for (number, chunk) in chunks.iter().enumerate() {
        assert_eq!(chunk["params"]["requestId"], call.id, "{chunk}");
        assert_eq!(chunk["params"]["chunkIndex"], number, "{chunk}");
    }
    let told = &result["structuredContent"]["chioToolStream"];
    assert_eq!(told["mode"], "notification_stream", "{result}");
    assert_eq!(told["totalChunks"], most, "{result}");
    receipt_of(&result);
}

#[test]
fn a_client_that_takes_chunks_gets_each_before_the_answer() {
    let world = World::demo();
    let session = world.door.open_with(&streaming());
    check_count(&session, 5);
    world.check_calls(&[("count_to", "allow")]);
}

#[test]
fn as_many_chunks_as_a_tool_gives_arrive() {
    let world = World::demo();
    let session = world.door.open_with(&streaming());
    check_count(&session, 10_000);
    world.check_calls(&[("count_to", "allow")]);
}

#[test]
fn a_client_that_takes_none_gets_them_all_in_the_answer() {
    let world = World::demo();
    let session = world.door.open();
    let mut call = session.start_call("count_to", &json!({"n": 100}));
    let result = call.result();
    assert!(call.before.is_empty(), "{:?}", call.before);
    assert_eq!(result["isError"], false, "{result}");
    let chunks = &result["structuredContent"]["chioToolStream"]["chunks"];
    let chunks = chunks.as_array().unwrap_or_else(|| panic!("{result}"));
    assert_eq!(chunks.len(), 100, "{result}");
    receipt_of(&result);
    world.check_calls(&[("count_to", "allow")]);
}

#[test]
fn a_client_that_takes_chunks_and_reads_none_can_call_off() {
    let world = World::demo();
    let session = world.door.open_with(&streaming());
    let call = session.start_call("count_to", &json!({"n": 10_000}));
    session.cancel(&call.id);
    until("a receipt", || (!world.calls().is_empty()).then_some(()));
    assert_eq!(session.request("ping", &json!({}))["result"], json!({}));
    assert_eq!(world.calls().len(), 1);
}

// covers: WIRE-064
#[test]
fn a_client_that_takes_chunks_and_vanishes_has_the_rest_when_it_comes_back() {
    let world = World::demo();
    let session = world.door.open_with(&streaming());
    let mut call = session.start_call("count_to", &json!({"n": 500}));
    // The answer may be there before anything is read, or not.
    let last = call.event().unwrap().id;
    let mut again = session.stream(session.come_back(&last).is(200), call.id.clone());
    again.result();
    assert_eq!(again.heard(CHUNK).len(), 500);
    world.check_calls(&[("count_to", "allow")]);
}

#[test]
fn a_client_that_takes_chunks_and_ends_its_session_leaves_one_receipt() {
    let world = World::demo();
    let session = world.door.open_with(&streaming());
    let mut call = session.start_call("count_to", &json!({"n": 10_000}));
    call.event().unwrap();
    drop(call);
    session.send(Request::delete()).is(204);
    until("a receipt", || (!world.calls().is_empty()).then_some(()));
    assert_eq!(world.calls().len(), 1);
    world.audit();
}
