//! Clients that vanish or come back too often.

use std::time::Duration;

use chio_edge::{SettingValue, Settings};
use chio_testkit::mcp::{Request, Session, Wire, initialize, text_of};
use chio_testkit::process::until;
use serde_json::json;

use crate::world::{Beginning, World};

/// Waits until this many calls have ended.
#[track_caller]
fn calls_end(world: &World, number: usize) {
    until("receipts", || (world.calls().len() >= number).then_some(()));
}

// covers: WIRE-064
#[test]
fn a_client_that_vanishes_finds_its_result_when_it_comes_back() {
    let world = World::fixture();
    let session = world.door.open();
    let mut call = session.start_call("slow", &json!({"ms": 400}));
    let last = call.event().unwrap().id;
    let id = call.id.clone();
    drop(call);
    calls_end(&world, 1);
    let mut again = session.stream(session.come_back(&last).is(200), id);
    assert_eq!(text_of(&again.result()), "This took 400 ms.");
    world.check_calls(&[("slow", "allow")]);
    world.audit();
}

// covers: WIRE-064
#[test]
fn a_client_that_vanishes_and_comes_back_in_time_waits_on() {
    let world = World::fixture();
    let session = world.door.open();
    let mut call = session.start_call("slow", &json!({"ms": 1200}));
    let (last, id) = (call.event().unwrap().id, call.id.clone());
    drop(call);
    // Again and again.
    for _ in 0..3 {
        drop(session.come_back(&last).is(200));
    }
    let mut again = session.stream(session.come_back(&last).is(200), id);
    assert_eq!(text_of(&again.result()), "This took 1200 ms.");
    world.check_calls(&[("slow", "allow")]);
}

#[test]
fn clients_that_vanish_have_no_more_calls_at_once_than_others() {
    let world = World::demo();
    let session = world.door.open();
    for _ in 0..150 {
        session.vanish_from("sleep", &json!({"ms": 60_000}));
    }
    session.send(Request::delete()).is(204);
    world.end();
    let calls = world.calls();
    assert!(calls.len() <= 64, "{} calls of one session ran at once", calls.len());
    assert!(calls.iter().all(|(_, end)| end == "cancelled"), "{calls:?}");
}

#[test]
fn half_a_request_is_none() {
    let world = World::fixture();
    let session = world.door.open();
    for request in [
        session.of(session.asks("tools/call", &json!({"name": "echo"})).1),
        Request::post(&initialize(&json!({}))),
    ] {
        for part in [1, 20, 100, 200] {
            drop(Wire::connect(&world.door.address).send_part(&request, part));
        }
    }
    assert_eq!(text_of(&session.call("echo", &json!({"text": "x"}))), "x");
    world.check_calls(&[("echo", "allow")]);
}

#[test]
fn a_session_that_ends_makes_room_for_another() {
    let world = World::with("max_sessions", SettingValue::Number(3));
    let mut sessions: Vec<Session> = (0..3).map(|_| world.door.open()).collect();
    let hello = Request::post(&initialize(&json!({})));
    for _ in 0..5 {
        let answer = world.door.send(hello.clone()).is(503);
        assert!(answer.header("retry-after").is_some());
    }
    let gone = sessions.pop().unwrap();
    gone.send(Request::delete()).is(204);
    sessions.push(world.door.open());
    world.door.send(hello).is(503);
    for session in &sessions {
        assert_eq!(text_of(&session.call("echo", &json!({"text": "x"}))), "x");
    }
    assert_eq!(world.calls().len(), 3);
}

#[test]
fn a_session_that_no_client_uses_gives_way_to_a_new_one() {
    let settings = Settings::default()
        .with("max_sessions", Some(SettingValue::Number(3)))
        .with("session_idle", Some(SettingValue::Duration(Duration::from_secs(90))));
    let world = Beginning { settings, ..Beginning::default() }.start();
    let sessions: Vec<Session> = (0..3).map(|_| world.door.open()).collect();
    world.door.send(Request::post(&initialize(&json!({})))).is(503);
    // A 180th of the time that an unused session lives.
    std::thread::sleep(Duration::from_millis(600));
    let call = |session: &Session| session.call("echo", &json!({"text": "x"}));
    assert_eq!(text_of(&call(&sessions[0])), "x");
    let fresh = world.door.open();
    assert_eq!(text_of(&call(&fresh)), "x");
    assert_eq!(text_of(&call(&sessions[0])), "x");
    sessions[1].send(Request::post(&json!({"jsonrpc": "2.0", "id": 9, "method": "ping"}))).is(404);
}

// covers: WIRE-064, WIRE-066
#[test]
fn old_events_can_be_asked_for_again_and_again_and_nothing_runs_twice() {
    let world = World::fixture();
    let session = world.door.open();
    let mut call = session.start_call("echo", &json!({"text": "once"}));
    let prime = call.event().unwrap().id;
    let result = call.event().unwrap();
    for _ in 0..50 {
        let mut again = session.stream(session.come_back(&prime).is(200), call.id.clone());
        assert_eq!(again.event().as_ref(), Some(&result));
    }
    world.check_calls(&[("echo", "allow")]);
}

#[test]
fn too_many_requests_at_once_are_refused_and_the_others_go_on() {
    let world = World::demo();
    let session = world.door.open();
    let mut calls: Vec<_> = (0..64)
        .map(|_| {
            let mut call = session.start_call("sleep", &json!({"ms": 60_000}));
            call.event().unwrap();
            call
        })
        .collect();
    let answer = session.start_call("echo", &json!({"text": "x"})).answer();
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    // A ping says that it is alive.
    assert_eq!(session.request("ping", &json!({}))["result"], json!({}));
    for call in &mut calls {
        session.cancel(&call.id.clone());
        assert_eq!(call.try_answer(), None);
    }
    assert_eq!(session.call("echo", &json!({"text": "x"}))["isError"], false);
    assert_eq!(world.calls().len(), 65);
}
