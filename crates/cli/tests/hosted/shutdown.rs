//! How a server ends while clients are there.

use chio_testkit::mcp::text_of;
use chio_testkit::process::until;
use serde_json::json;

use crate::support::World;

#[test]
fn calls_that_run_when_it_is_told_to_end_are_finished_and_answered() {
    let (world, mut served) = World::wrapped("");
    let session = served.door.open();
    let mut calls: Vec<_> =
        (0..4).map(|_| session.start_call("slow", &json!({"ms": 800}))).collect();
    for call in &mut calls {
        call.event().unwrap();
    }
    served.server.signal("TERM");
    for call in &mut calls {
        assert_eq!(text_of(&call.result()), "This took 800 ms.");
    }
    assert!(served.server.wait().success(), "{}", served.server.stderr());
    assert_eq!(world.calls(), vec![("slow".to_owned(), "allow".to_owned()); 4]);
    world.audit();
}

#[test]
fn calls_of_clients_that_are_gone_are_finished_too() {
    let (world, mut served) = World::up();
    let session = served.door.open();
    for _ in 0..5 {
        session.vanish_from("sleep", &json!({"ms": 700}));
    }
    // Whatever was sent before has been begun by now.
    session.request("tools/list", &json!({}));
    served.server.end();
    let calls = world.calls();
    assert!(calls.iter().all(|(_, end)| end == "allow"), "{calls:?}");
    world.audit();
}

#[test]
fn a_client_that_only_listens_does_not_keep_it_from_ending() {
    let (world, mut served) = World::wrapped("");
    let session = served.door.open();
    let mut listening = session.listen();
    listening.event().unwrap();
    served.server.signal("TERM");
    assert_eq!(listening.message(), None);
    assert!(served.server.wait().success(), "{}", served.server.stderr());
    world.audit();
}

#[test]
fn a_client_that_does_not_read_does_not_keep_it_from_ending() {
    let (world, mut served) = World::wrapped("");
    let session = served.door.open();
    let _unread = session.start_call("huge", &json!({"megabytes": 7}));
    until("a receipt", || (!world.calls().is_empty()).then_some(()));
    served.server.end();
    world.check_calls(&[("huge", "allow")]);
    world.audit();
}

#[test]
fn a_call_that_would_never_end_is_cancelled_when_it_ends() {
    let (world, mut served) = World::wrapped("");
    let session = served.door.open();
    let mut call = session.start_call("hang", &json!({}));
    call.event().unwrap();
    served.server.signal("TERM");
    served.server.wait();
    let calls = world.calls();
    assert_eq!(calls.len(), 1, "{calls:?}");
    assert_ne!(calls[0].1, "allow");
    world.audit();
}

#[test]
fn a_call_that_ran_when_it_was_killed_has_one_receipt_after_the_next_start() {
    let (world, mut served) = World::wrapped("");
    let session = served.door.open_with(&json!({"elicitation": {"form": {}}}));
    let mut call = session.start_call("test_elicitation", &json!({"message": "Your name?"}));
    // No client is asked anything before it is known that the call has begun.
    call.hears("elicitation/create");
    served.server.kill();
    assert_eq!(call.message(), None);
    assert!(world.calls().is_empty());
    let served = world.wrap("--policy permissive --anonymous default");
    served.door.open().call("echo", &json!({"text": "x"}));
    world.check_calls(&[("test_elicitation", "incomplete"), ("echo", "allow")]);
    world.audit();
}

#[test]
fn tasks_that_run_when_it_is_told_to_end_have_one_receipt() {
    let (world, mut served) = World::wrapped("");
    let session = served.door.open();
    let params = json!({"name": "slow", "arguments": {"ms": 500}, "task": {}});
    session.request("tools/call", &params);
    served.server.end();
    assert_eq!(world.calls().len(), 1);
    world.audit();
}
