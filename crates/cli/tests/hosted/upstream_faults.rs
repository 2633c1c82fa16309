//! Servers that flood: each call has its answer and its one receipt, and memory stays bounded.

use chio_testkit::mcp::{Session, receipt_of, text_of};
use chio_testkit::process::until;
use serde_json::{Value, json};

use crate::support::{Growth, World};

/// By how many megabytes a process may grow.
const MOST_GROWTH: u64 = 150;

/// Checks that a session works.
#[track_caller]
fn check_works(session: &Session) {
    assert_eq!(text_of(&session.call("echo", &json!({"text": "still here"}))), "still here");
}

/// Checks that a call failed with a receipt of its own.
#[track_caller]
fn check_failed(world: &World, result: &Value) {
    assert_eq!(result["isError"], true, "{result}");
    assert_eq!(result["_meta"]["chio"]["decision"], "incomplete", "{result}");
    let receipt = world.receipt(receipt_of(result));
    assert_eq!(receipt["decision"]["verdict"], "incomplete", "{receipt}");
}

#[test]
fn a_flood_of_progress_drowns_nobody() {
    let (world, served) = World::wrapped("");
    let session = served.door.open();
    let growth = Growth::of(&served, MOST_GROWTH);
    let params = json!({"name": "flood", "arguments": {"count": 100_000},
        "_meta": {"progressToken": "p"}});
    let mut call = session.start("tools/call", &params);
    assert_eq!(text_of(&call.result()), "100000 notifications were sent.");
    assert!(!call.heard("notifications/progress").is_empty());
    check_works(&session);
    growth.check("in the flood");
    world.check_calls(&[("flood", "allow"), ("echo", "allow")]);
}

#[test]
fn a_flood_of_progress_that_nobody_asked_for_reaches_nobody() {
    let (world, served) = World::wrapped("");
    let session = served.door.open();
    let growth = Growth::of(&served, MOST_GROWTH);
    let mut call = session.start_call("flood", &json!({"count": 100_000}));
    call.result();
    assert!(call.before.is_empty(), "{:?}", call.before);
    growth.check("in the flood");
    world.check_calls(&[("flood", "allow")]);
}

#[test]
fn a_flood_of_logs_drowns_nobody_whether_it_is_read_or_not() {
    let (world, served) = World::wrapped("");
    let session = served.door.open();
    let growth = Growth::of(&served, MOST_GROWTH);
    let mut call = session.start_call("log_flood", &json!({"count": 100_000}));
    assert_eq!(text_of(&call.result()), "100000 messages were sent.");
    // A client that does not read its stream until the end.
    let mut lazy = session.start_call("log_flood", &json!({"count": 100_000}));
    until("a receipt", || (world.calls().len() == 2).then_some(()));
    growth.check("in the flood");
    let answer = match lazy.try_answer() {
        Some(answer) => answer,
        // It was too slow to have it all, and comes back.
        None => session.go_on(lazy),
    };
    assert_eq!(text_of(&answer["result"]), "100000 messages were sent.");
    check_works(&session);
    growth.check("in the flood");
}

#[test]
fn a_result_of_a_hundred_megabytes_is_refused_and_does_not_fill_memory() {
    let (world, served) = World::wrapped("");
    let (session, other) = (served.door.open(), served.door.open());
    let growth = Growth::of(&served, MOST_GROWTH);
    let result = session.call("huge", &json!({"megabytes": 100}));
    check_failed(&world, &result);
    assert!(result.to_string().len() < 10_000);
    growth.check("in the flood");
    check_works(&other);
    until("the session to work", || {
        (session.call("echo", &json!({"text": "x"}))["isError"] != true).then_some(())
    });
    let huge = world.calls().into_iter().filter(|(tool, _)| tool == "huge").count();
    assert_eq!(huge, 1);
    world.audit();
}

#[test]
fn a_result_as_long_as_a_line_may_be_does_not_fill_memory() {
    let (world, served) = World::wrapped("");
    let session = served.door.open();
    let growth = Growth::of(&served, MOST_GROWTH);
    let result = session.call("huge", &json!({"megabytes": 15}));
    receipt_of(&result);
    assert_eq!(world.calls().len(), 1);
    growth.check("in the flood");
}
