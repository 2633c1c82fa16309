//! How sessions end, and what a client that uses one afterwards is answered.

use std::thread;
use std::time::Duration;

use chio_edge::SettingValue;
use chio_testkit::mcp::{Request, text_of};
use chio_testkit::process::until;
use serde_json::json;

use crate::world::World;

// covers: WIRE-050, WIRE-070, WIRE-071, WIRE-072
#[test]
fn a_session_that_its_client_ended_is_gone_before_anything_runs() {
    let world = World::fixture();
    let (session, other) = (world.door.open(), world.door.open());
    session.call("echo", &json!({"text": "before"}));
    let mut answer = session.send(Request::delete()).is(204);
    assert_eq!(answer.text(), "");
    session.check_over("deleted");
    world.check_calls(&[("echo", "allow")]);
    // Others go on, and a client that initializes again has another session.
    other.call("echo", &json!({"text": "other"}));
    let again = world.door.open();
    assert_ne!(again.id, session.id);
    again.call("echo", &json!({"text": "again"}));
    session.check_over("deleted");
    assert_eq!(world.calls().len(), 3);
}

// covers: WIRE-070, WIRE-071, WIRE-072
#[test]
fn a_session_that_nobody_uses_expires() {
    let world = World::with("session_idle", SettingValue::Duration(Duration::from_secs(1)));
    let (session, used) = (world.door.open(), world.door.open());
    let mut listening = used.listen();
    // A client that asks uses it, so it is left alone for longer than it lives.
    let expired = (0..10).any(|_| {
        thread::sleep(Duration::from_secs(2));
        session.send(session.asks("ping", &json!({})).1).status == 404
    });
    assert!(expired);
    session.check_over("expired");
    // A client that listens uses it, too.
    used.call("echo", &json!({"text": "still here"}));
    used.send(Request::delete()).is(204);
    assert_eq!(listening.message(), None);
    world.check_calls(&[("echo", "allow")]);
}

// covers: WIRE-050, WIRE-071
#[test]
fn the_end_of_a_session_ends_its_streams_and_cancels_what_runs() {
    let world = World::fixture();
    let session = world.door.open();
    let mut listening = session.listen();
    let mut call = session.start_call("slow", &json!({"ms": 60_000}));
    call.event().unwrap();
    session.send(Request::delete()).is(204);
    assert_eq!(listening.message(), None);
    let answer = call.answer();
    assert_eq!(answer["error"]["code"], -32800, "{answer}");
    until("a receipt", || (!world.calls().is_empty()).then_some(()));
    world.check_calls(&[("slow", "cancelled")]);
    session.check_over("deleted");
}

// covers: WIRE-070, WIRE-071
#[test]
fn while_the_edge_ends_a_session_takes_on_nothing_new_and_afterwards_it_is_closed() {
    let world = World::fixture();
    let (session, other) = (world.door.open(), world.door.open());
    let mut call = session.start_call("slow", &json!({"ms": 2000}));
    call.event().unwrap();
    thread::scope(|scope| {
        let ending = scope.spawn(|| world.end_edge());
        until("the session to drain", || {
            (session.send(session.asks("ping", &json!({})).1).status == 404).then_some(())
        });
        session.check_over("draining");
        other.check_over("draining");
        // What was begun before may end.
        assert_eq!(text_of(&call.result()), "This took 2000 ms.");
        ending.join().unwrap();
    });
    session.check_over("closed");
    other.check_over("closed");
    world.check_calls(&[("slow", "allow")]);
}

// covers: WIRE-050
#[test]
fn a_session_that_is_not_ready_can_be_ended_too() {
    let world = World::fixture();
    let session = world.door.begin(&json!({}));
    session.send(Request::delete()).is(204);
    session.check_over("deleted");
    assert!(world.receipts().is_empty());
}
