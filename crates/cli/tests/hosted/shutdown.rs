//! How a server ends while clients are there.

use serde_json::json;

use crate::session::text_of;
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
fn a_call_that_would_never_end_is_called_off_when_it_ends() {
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
fn calls_that_ran_when_it_was_killed_have_one_receipt_after_the_next_start() {
    let (world, mut served) = World::wrapped("");
    let session = served.door.open();
    let mut call = session.start_call("write_file", &json!({"path": "a.txt", "content": "x"}));
    call.result();
    // One that has side effects is known to have begun.
    let mut hanging = session.start_call("crash", &json!({}));
    hanging.answer();
    served.server.kill();
    let served = world.wrap("--policy permissive --anonymous default");
    served.door.open().call("echo", &json!({"text": "x"}));
    let expected = [("write_file", "allow"), ("crash", "incomplete"), ("echo", "allow")];
    let found = world.calls();
    assert_eq!(found.len(), expected.len(), "{found:?}");
    world.audit();
}
