//! How sessions end, and what a client that uses one afterwards is answered.

use chio_testkit::process::until;
use serde_json::{Value, json};

use crate::http::Request;
use crate::session::{Session, text_of};
use crate::support::World;

/// Checks that nothing can be done in a session that ended so.
#[track_caller]
fn check_over(session: &Session, state: &str) {
    let echo = json!({"name": "echo", "arguments": {"text": "x"}});
    let answer = json!({"jsonrpc": "2.0", "id": "chio-1", "result": {}});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    for request in [
        session.asks("tools/call", &echo).1,
        session.asks("tools/list", &json!({})).1,
        session.asks("ping", &json!({})).1,
        Request::post(&answer),
        Request::post(&ready),
        Request::get(),
        Request::get().with("Last-Event-ID", &format!("{}-1", session.id)),
        Request::delete(),
    ] {
        let what = format!("{request:?}");
        let message = session.send(request).check_for(404, &what).json();
        assert_eq!(message["id"], Value::Null, "{what}: {message}");
        assert_eq!(message["error"]["code"], -32600, "{what}: {message}");
        let known = &message["error"]["data"]["chioError"];
        assert_eq!(known["name"], "session_not_initialized", "{what}: {message}");
        assert_eq!(known["retry"]["strategy"], "reinitialize", "{what}: {message}");
        let words = message["error"]["message"].as_str().unwrap();
        assert!(words.contains(state), "{what}: {message}");
    }
}

// covers: WIRE-050, WIRE-070, WIRE-071, WIRE-072
#[test]
fn a_session_that_its_client_ended_is_gone_before_anything_runs() {
    let (world, served) = World::wrapped("");
    let (session, other) = (served.door.open(), served.door.open());
    session.call("echo", &json!({"text": "before"}));
    let mut answer = session.send(Request::delete()).is(204);
    assert_eq!(answer.text(), "");
    check_over(&session, "deleted");
    world.check_calls(&[("echo", "allow")]);
    // Others go on, and a client that initializes again has another session.
    other.call("echo", &json!({"text": "other"}));
    let again = served.door.open();
    assert_ne!(again.id, session.id);
    again.call("echo", &json!({"text": "again"}));
    check_over(&session, "deleted");
    assert_eq!(world.calls().len(), 3);
}

// covers: WIRE-070, WIRE-071, WIRE-072
#[test]
fn a_session_that_nobody_uses_expires() {
    let (world, served) = World::wrapped("--session-idle 1s");
    let (session, used) = (served.door.open(), served.door.open());
    let mut listening = used.listen();
    // A client that asks uses it, so it is left alone for longer than it lives.
    let expired = (0..10).any(|_| {
        std::thread::sleep(std::time::Duration::from_secs(2));
        session.send(session.asks("ping", &json!({})).1).status == 404
    });
    assert!(expired);
    check_over(&session, "expired");
    // A client that listens uses it, too.
    used.call("echo", &json!({"text": "still here"}));
    used.send(Request::delete()).is(204);
    assert_eq!(listening.message(), None);
    world.check_calls(&[("echo", "allow")]);
}

// covers: WIRE-050, WIRE-071
#[test]
fn the_end_of_a_session_ends_its_streams_and_cancels_what_runs() {
    let (world, served) = World::wrapped("");
    let session = served.door.open();
    let mut listening = session.listen();
    let mut call = session.start_call("slow", &json!({"ms": 60_000}));
    call.event().unwrap();
    session.send(Request::delete()).is(204);
    assert_eq!(listening.message(), None);
    let answer = call.answer();
    assert_eq!(answer["error"]["code"], -32800, "{answer}");
    until("a receipt", || (!world.calls().is_empty()).then_some(()));
    world.check_calls(&[("slow", "cancelled")]);
    check_over(&session, "deleted");
}

// covers: WIRE-050
#[test]
fn a_session_that_is_not_ready_can_be_ended_too() {
    let (world, served) = World::wrapped("");
    let session = served.door.begin(&json!({}));
    session.send(Request::delete()).is(204);
    check_over(&session, "deleted");
    assert!(world.receipts().is_empty());
}

// covers: WIRE-071, WIRE-072
#[test]
fn sessions_do_not_outlive_their_process() {
    let world = World::new();
    let mut served = world.wrap("--policy permissive --anonymous default");
    let mut session = served.door.open();
    session.call("echo", &json!({"text": "before"}));
    served.server.end();
    let served = world.wrap("--policy permissive --anonymous default");
    session.door = served.door.clone();
    check_over(&session, "unknown");
    world.check_calls(&[("echo", "allow")]);
    assert_eq!(text_of(&served.door.open().call("echo", &json!({"text": "new"}))), "new");
}

// covers: WIRE-070, WIRE-071
#[test]
fn while_the_server_ends_no_session_takes_on_anything_new() {
    let (world, mut served) = World::wrapped("");
    let session = served.door.open();
    let mut call = session.start_call("slow", &json!({"ms": 1500}));
    call.event().unwrap();
    // A connection from before, on which a request may still be sent.
    let wire = crate::http::Wire::connect(&served.door.address);
    let wire = wire.send(&session.of(session.asks("ping", &json!({})).1)).is(200).into_wire();
    served.server.signal("TERM");
    until("the door to close", || {
        std::net::TcpStream::connect(&served.door.address).is_err().then_some(())
    });
    drop(wire);
    assert_eq!(text_of(&call.result()), "This took 1500 ms.");
    assert!(served.server.wait().success(), "{}", served.server.stderr());
    world.check_calls(&[("slow", "allow")]);
    world.audit();
}
