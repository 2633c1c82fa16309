//! Calls that are cancelled.

use chio_testkit::mcp::text_of;
use serde_json::json;

use crate::world::World;

#[test]
fn a_call_that_is_cancelled_ends_and_leaves_a_receipt_that_says_so() {
    let world = World::fixture();
    let session = world.door.open();
    let mut call = session.start_call("slow", &json!({"ms": 60_000}));
    call.event().unwrap();
    session.cancel(&call.id);
    // Who cancels a request waits for no answer.
    assert_eq!(call.try_answer(), None);
    world.check_calls(&[("slow", "cancelled")]);
    assert_eq!(text_of(&session.call("echo", &json!({"text": "still here"}))), "still here");
}

#[test]
fn a_call_of_a_tool_that_never_answers_can_be_cancelled() {
    let world = World::fixture();
    let session = world.door.open();
    for _ in 0..3 {
        let mut call = session.start_call("hang", &json!({}));
        call.event().unwrap();
        session.cancel(&call.id);
        assert_eq!(call.try_answer(), None);
    }
    assert_eq!(text_of(&session.call("echo", &json!({"text": "still here"}))), "still here");
    let hang = ("hang", "cancelled");
    world.check_calls(&[hang, hang, hang, ("echo", "allow")]);
    world.audit();
}

#[test]
fn only_the_session_of_a_call_can_call_it_off() {
    let world = World::fixture();
    let (session, other) = (world.door.open(), world.door.open());
    let mut call = session.start_call("slow", &json!({"ms": 800}));
    call.event().unwrap();
    // The same id means nothing in another session, and an unknown one nothing at all.
    other.cancel(&call.id);
    for id in [json!(99), json!("1"), json!(null), json!({})] {
        session.cancel(&id);
    }
    assert_eq!(text_of(&call.result()), "This took 800 ms.");
    // Too late.
    session.cancel(&call.id);
    world.check_calls(&[("slow", "allow")]);
}

#[test]
fn of_several_calls_only_the_one_that_is_named_is_cancelled() {
    let world = World::fixture();
    let session = world.door.open();
    let mut calls: Vec<_> =
        (0..4).map(|_| session.start_call("slow", &json!({"ms": 700}))).collect();
    session.cancel(&calls[2].id.clone());
    for (number, call) in calls.iter_mut().enumerate() {
        assert_eq!(call.try_answer().is_none(), number == 2);
    }
    let calls = world.calls();
    let cancelled = calls.iter().filter(|(_, end)| end == "cancelled").count();
    assert_eq!((calls.len(), cancelled), (4, 1));
}
