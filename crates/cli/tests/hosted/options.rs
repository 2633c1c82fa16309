//! The options of the edge, from the command line to the client.

use std::time::Duration;

use chio_testkit::mcp::{Request, initialize, text_of};
use serde_json::json;

use crate::support::World;

#[test]
fn the_versions_that_are_named_are_the_ones_that_are_spoken() {
    let (_world, served) = World::wrapped("--protocol-version 2025-06-18");
    let params = json!({"protocolVersion": "2025-11-25"});
    let message = served.door.send(Request::post(&initialize(&params))).is(200).json();
    assert_eq!(message["error"]["data"]["supported"], json!(["2025-06-18"]), "{message}");
    served.door.begin(&json!({"protocolVersion": "2025-06-18"}));
}

#[test]
fn streams_rotate_and_sessions_expire_after_the_times_that_are_named() {
    let (world, served) = World::wrapped("--rotate-streams 150ms --session-idle 1s");
    let (session, idle) = (served.door.open(), served.door.open());
    let mut call = session.start_call("slow", &json!({"ms": 600}));
    assert!(call.event().is_some());
    assert_eq!(call.event(), None, "the stream is closed before the answer");
    let answer = session.go_on(call);
    assert_eq!(text_of(&answer["result"]), "This took 600 ms.");
    // A client that asks uses the session, so it is left alone for longer than it lives.
    let expired = (0..10).any(|_| {
        std::thread::sleep(Duration::from_secs(2));
        idle.send(idle.asks("ping", &json!({})).1).status == 404
    });
    assert!(expired);
    world.check_calls(&[("slow", "allow")]);
}
