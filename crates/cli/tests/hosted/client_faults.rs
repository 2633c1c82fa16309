//! What clients that vanish, come too often or never read cost the process.

use chio_testkit::mcp::{Request, Wire, initialize, text_of};
use chio_testkit::process::until;
use serde_json::json;

use crate::support::{Growth, World};

/// By how many megabytes a process may grow.
const MOST_GROWTH: u64 = 150;
/// How many sessions a client tries to open.
const GREEDY: usize = 10_000;

/// Waits until this many calls have ended.
#[track_caller]
fn calls_end(world: &World, number: usize) {
    until("receipts", || (world.calls().len() >= number).then_some(()));
}

#[test]
fn calls_of_clients_that_vanish_at_once_have_a_receipt_if_they_ran() {
    let (world, mut served) = World::up();
    let session = served.door.open();
    for _ in 0..50 {
        session.vanish_from("note_put", &json!({"name": "a", "text": "x"}));
    }
    served.server.end();
    let calls = world.calls();
    let number = |end: &str| calls.iter().filter(|(_, it)| it == end).count();
    let served = world.up_with("");
    let counted = served.door.open().call("note_count", &json!({}))["structuredContent"].clone();
    let puts = usize::try_from(counted["puts"].as_u64().unwrap()).unwrap();
    // One that was cancelled may have run, and may not.
    let (ran, cancelled) = (number("allow"), number("cancelled"));
    assert!(puts >= ran && puts <= ran + cancelled, "{puts} puts, {ran} and {cancelled}");
    assert!(puts > 0, "{calls:?}");
    world.audit();
}

#[test]
fn clients_that_vanish_while_their_session_is_opened_leave_no_server_behind() {
    let (_world, served) = World::wrapped("--max-sessions 6");
    let before = served.children();
    let hello = Request::post(&initialize(&json!({})));
    for _ in 0..12 {
        drop(Wire::connect(&served.door.address).send_only(&hello));
    }
    // Sessions whose client has gone live on for a while, but each has its place.
    until("all places to be taken", || {
        (served.door.send(hello.clone()).status == 503).then_some(())
    });
    until("as many servers as sessions", || (served.children() == before + 6).then_some(()));
}

#[test]
fn a_client_that_reads_nothing_costs_little() {
    let (world, served) = World::wrapped("");
    let session = served.door.open();
    let growth = Growth::of(&served, MOST_GROWTH);
    let params = json!({"name": "flood", "arguments": {"count": 20_000},
        "_meta": {"progressToken": "p"}});
    let mut unread: Vec<_> = (0..5).map(|_| session.start("tools/call", &params)).collect();
    calls_end(&world, 5);
    for number in 0..40 {
        unread.push(session.start_call("huge", &json!({"megabytes": 3})));
        calls_end(&world, 6 + number);
    }
    growth.check("a greedy client");
    for call in &mut unread {
        // What is left of the stream ends; an answer may have had to make room.
        while call.message().is_some() {}
    }
    assert_eq!(text_of(&session.call("echo", &json!({"text": "x"}))), "x");
    assert_eq!(world.calls().len(), 46);
}

#[test]
fn ten_thousand_sessions_are_refused_beyond_the_limit_with_a_time_to_come_back() {
    let (world, served) = World::up();
    let first = served.door.open();
    let growth = Growth::of(&served, MOST_GROWTH);
    let hello = Request::post(&initialize(&json!({})));
    let (mut opened, mut refused) = (0, 0);
    let mut wire = Wire::connect(&served.door.address);
    for _ in 0..GREEDY {
        let mut answer = wire.send(&hello);
        match answer.status {
            200 => opened += 1,
            503 | 429 => {
                refused += 1;
                let seconds = answer.header("retry-after").and_then(|it| it.parse::<u64>().ok());
                assert!(seconds.is_some_and(|seconds| seconds > 0));
                assert_eq!(answer.header("mcp-session-id"), None);
                if refused == 1 {
                    let message = answer.json();
                    assert!(message["error"]["data"]["chioError"]["code"].is_number(), "{message}");
                }
            }
            other => panic!("expected a session or a refusal, found {other}"),
        }
        wire = answer.into_wire();
    }
    assert!(opened > 100 && refused > GREEDY / 2, "{opened} and {refused}");
    growth.check("a greedy client");
    // Who was there before goes on.
    assert_eq!(first.call("echo", &json!({"text": "x"}))["isError"], false);
    world.check_calls(&[("echo", "allow")]);
}
