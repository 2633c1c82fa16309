//! How sessions end with their process.

use chio_testkit::mcp::{Wire, text_of};
use chio_testkit::process::until;
use serde_json::json;

use crate::support::World;

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
    session.check_over("unknown");
    world.check_calls(&[("echo", "allow")]);
    assert_eq!(text_of(&served.door.open().call("echo", &json!({"text": "new"}))), "new");
}

#[test]
fn while_the_server_ends_no_session_takes_on_anything_new() {
    let (world, mut served) = World::wrapped("");
    let session = served.door.open();
    let mut call = session.start_call("slow", &json!({"ms": 1500}));
    call.event().unwrap();
    // A connection from before, on which a request may still be sent.
    let wire = Wire::connect(&served.door.address);
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
