//! Streams: what is sent again, to whom, and what is no longer there.

use chio_testkit::mcp::{Request, Session, Stream, Wire, text_of};
use chio_testkit::process::until;
use serde_json::{Value, json};

use crate::world::World;

const WATCHED: &str = "test://watched-resource";
const UPDATED: &str = "notifications/resources/updated";

/// A session that is told of changes of the watched resource.
#[track_caller]
fn watching(session: &Session) {
    let answer = session.request("resources/subscribe", &json!({"uri": WATCHED}));
    assert!(answer.get("result").is_some(), "{answer}");
}

#[track_caller]
fn touch(session: &Session) {
    assert_eq!(text_of(&session.call("touch_watched", &json!({}))), "The watcher was told.");
}

// covers: WIRE-049, WIRE-063
#[test]
fn a_session_has_one_notification_stream() {
    let world = World::fixture();
    let session = world.door.open();
    watching(&session);
    let mut stream = session.listen();
    assert_eq!(stream.answer.header("x-chio-mcp-response-mode"), Some("get_sse_live"));
    let mut second = session.send(Request::get()).is(409);
    assert_eq!(second.json()["error"]["code"], -32600);
    // Another session has its own.
    let other = world.door.open();
    let _other = other.listen();
    touch(&session);
    assert_eq!(stream.hears(UPDATED)["params"]["uri"], WATCHED);
    // When the first is gone, there may be another.
    drop(stream);
    until("the stream to be free", || (session.send(Request::get()).status == 200).then_some(()));
}

/// Comes back as soon as no other request listens.
#[track_caller]
fn listen_from(session: &Session, last: &str) -> Stream {
    let answer = until("the stream to be free", || {
        let answer = session.come_back(last);
        (answer.status != 409).then_some(answer)
    });
    assert_eq!(answer.header("x-chio-mcp-response-mode"), Some("get_sse_replay"));
    session.stream(answer.is(200), Value::Null)
}

// covers: WIRE-049, WIRE-064, WIRE-065
#[test]
fn notifications_are_sent_again_from_the_event_that_is_named() {
    let world = World::fixture();
    let session = world.door.open();
    watching(&session);
    let mut stream = session.listen();
    let mut seen = vec![stream.event().unwrap()];
    assert_eq!((&seen[0].kind, &seen[0].data), (&None, &None), "only a number");
    for _ in 0..3 {
        touch(&session);
        seen.push(stream.event().unwrap());
    }
    drop(stream);
    // What happens while no request listens is kept.
    touch(&session);
    let mut stream = listen_from(&session, &seen[3].id);
    seen.push(stream.event().unwrap());
    drop(stream);
    for (place, last) in seen.iter().enumerate() {
        let mut stream = listen_from(&session, &last.id);
        for expected in &seen[place + 1..] {
            assert_eq!(stream.event().as_ref(), Some(expected));
        }
    }
    // And then it is live.
    let mut stream = listen_from(&session, &seen[0].id);
    seen[1..].iter().for_each(|_| drop(stream.hears(UPDATED)));
    touch(&session);
    let newest = stream.event().unwrap();
    assert!(stream.number(&newest.id) > stream.number(&seen[4].id));
}

// covers: WIRE-065, WIRE-066
#[test]
fn events_that_were_never_sent_or_are_anothers_are_a_conflict() {
    let world = World::fixture();
    let (session, other) = (world.door.open(), world.door.open());
    let mut stream = other.listen();
    let theirs = stream.event().unwrap().id;
    let id = &session.id;
    for last in [
        theirs.as_str(),
        &format!("{id}-1000000"),
        &format!("{id}-0"),
        &format!("{id}-18446744073709551615"),
        &format!("{id}-99999999999999999999999999"),
        &format!("{id}--1"),
        &format!("{id}-+1"),
        &format!("{id}-01"),
        &format!("{id}-1 OR 1"),
        &format!("{id}-"),
        id,
        &format!("{id}x-1"),
        "-1",
        "1",
        "garbage",
        "",
        &"x".repeat(4000),
    ] {
        let message = session.come_back(last).check_for(409, last).json();
        assert_eq!(message["error"]["code"], -32600, "{message}");
    }
    // No other client's stream was taken away.
    watching(&other);
    touch(&other);
    stream.hears(UPDATED);
}

// covers: WIRE-066
#[test]
fn events_that_are_no_longer_kept_are_a_conflict() {
    let world = World::fixture();
    let session = world.door.open();
    watching(&session);
    let mut stream = session.listen();
    let begin = stream.event().unwrap().id;
    touch(&session);
    let old = stream.event().unwrap().id;
    drop(stream);
    // Each request has a number.
    let mut wire = Wire::connect(&world.door.address);
    for _ in 0..1100 {
        let (_, request) = session.asks("ping", &json!({}));
        wire = wire.send(&session.of(request)).is(200).into_wire();
    }
    for last in [&begin, &old] {
        session.come_back(last).is(409);
    }
    // A client that names no event begins anew.
    let mut stream = session.listen();
    touch(&session);
    stream.hears(UPDATED);
}

// covers: WIRE-063, WIRE-064
#[test]
fn a_stream_that_was_closed_goes_on_while_notifications_are_read() {
    let world = World::rotating(200);
    let session = world.door.open();
    watching(&session);
    let mut notifications = session.listen();
    let mut call = session.start_call("test_reconnection", &json!({}));
    let prime = call.event().unwrap();
    assert_eq!((prime.kind.as_deref(), prime.data.as_deref()), (Some("prime"), Some("{}")));
    assert_eq!(prime.retry.as_deref(), Some("1000"));
    assert_eq!(call.event(), None, "the stream is closed before the answer");
    let answer = session.go_on(call);
    assert!(text_of(&answer["result"]).starts_with("Reconnection test completed"), "{answer}");
    // The other stream was closed too, and goes on from its number.
    assert_eq!(notifications.message(), None);
    touch(&session);
    let last = notifications.last_event.unwrap();
    let mut notifications = session.stream(session.come_back(&last).is(200), Value::Null);
    notifications.hears(UPDATED);
    world.check_calls(&[("test_reconnection", "allow"), ("touch_watched", "allow")]);
}

// covers: WIRE-063, WIRE-064
#[test]
fn a_stream_that_has_ended_is_sent_again_and_then_there_is_no_more() {
    let world = World::fixture();
    let session = world.door.open();
    let mut call = session.start_call("echo", &json!({"text": "once"}));
    let prime = call.event().unwrap().id;
    let result = call.event().unwrap();
    assert_eq!(call.event(), None);
    for _ in 0..2 {
        let mut again = session.stream(session.come_back(&prime).is(200), call.id.clone());
        assert_eq!(again.event().unwrap(), result);
        assert_eq!(again.event(), None, "nothing of others");
    }
    let mut over = session.come_back(&result.id).is(405);
    assert_eq!((over.text().as_str(), over.header("allow")), ("", Some("POST, DELETE")));
    world.check_calls(&[("echo", "allow")]);
}

// covers: WIRE-063, WIRE-065
#[test]
fn streams_of_several_calls_do_not_mix() {
    let world = World::rotating(150);
    let session = world.door.open();
    let params = |ms: u64| json!({"name": "test_tool_with_progress", "arguments": {}, "_meta": {"progressToken": ms}});
    let calls: Vec<_> = (1..=4).map(|token| session.start("tools/call", &params(token))).collect();
    let slow = session.start_call("slow", &json!({"ms": 600}));
    for (token, mut call) in (1..=4).zip(calls) {
        while let Some(message) = call.message() {
            call.before.push(message);
        }
        let told = call.heard("notifications/progress").into_iter();
        let tokens: Vec<_> =
            told.map(|message| message["params"]["progressToken"].clone()).collect();
        assert!(!tokens.is_empty() && tokens.iter().all(|it| *it == token), "{tokens:?}");
    }
    let answer = session.go_on(slow);
    assert_eq!(text_of(&answer["result"]), "This took 600 ms.");
    assert_eq!(world.calls().len(), 5);
}

// covers: WIRE-064
#[test]
fn whoever_comes_back_for_a_stream_takes_it_over() {
    let world = World::fixture();
    let session = world.door.open();
    let mut call = session.start_call("slow", &json!({"ms": 700}));
    let prime = call.event().unwrap().id;
    let mut second = session.stream(session.come_back(&prime).is(200), call.id.clone());
    let mut third = session.stream(session.come_back(&prime).is(200), call.id.clone());
    // One reader at a time: the answer is given once.
    assert_eq!((call.message(), second.message()), (None, None));
    assert_eq!(text_of(&third.result()), "This took 700 ms.");
    world.check_calls(&[("slow", "allow")]);
}
