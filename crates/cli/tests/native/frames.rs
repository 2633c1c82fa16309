//! What is no frame, and what the operator is told of it.

use chio_testkit::process::until;
use chio_testkit::token::grant;
use serde_json::json;

use crate::support::World;

const HEARTBEAT: &[u8] = b"\x00\x00\x00\x14{\"type\":\"heartbeat\"}";

// covers: WIRE-009, WIRE-016, WIRE-019
#[test]
fn an_oversize_frame_ends_its_connection_before_the_payload_and_no_other() {
    let (_world, server) = World::served();
    let mut other = server.connect();
    for prefix in [[1, 0, 0, 1], [0xff; 4]] {
        let mut wire = server.connect();
        assert!(wire.is_alive());
        wire.send_bytes(&prefix).unwrap();
        assert_eq!(wire.message(), None);
        assert!(other.is_alive());
    }
    until("the operator to be told", || {
        server.stderr().contains("message_too_large").then_some(())
    });
    assert!(server.connect().is_alive());
}

// covers: WIRE-017, WIRE-018
#[test]
fn a_payload_that_is_no_message_ends_its_connection_and_no_other() {
    let (world, server) = World::served();
    let mut other = server.connect();
    for payload in [
        b"".as_slice(),
        b"garbage",
        b"{",
        b"[]",
        b"null",
        b"\"heartbeat\"",
        b"{}",
        b"{\"type\":\"fly\"}",
        b"{\"type\":7}",
        b"{\"type\":\"capability_list\",\"capabilities\":[]}",
        b"{\"type\":\"heartbeat\"}{\"type\":\"heartbeat\"}",
        b"{\"type\":\"heartbeat\",\"type\":\"heartbeat\"}",
        b"{\"type\":\"tool_call_request\"}",
        b"\xff\xfe",
        b"{\"type\":\"heart\xffbeat\"}",
    ] {
        let mut wire = server.connect();
        wire.send_payload(payload);
        // What follows is not looked at: there is no way to find the next frame.
        let _ = wire.send_bytes(HEARTBEAT);
        assert_eq!(wire.message(), None, "{}", String::from_utf8_lossy(payload));
    }
    assert!(other.is_alive());
    until("the operator to be told", || {
        server.stderr().contains("no message of an agent").then_some(())
    });
    assert!(!server.stderr().contains("garbage"), "{}", server.stderr());
    assert!(world.rows("").is_empty());
}

// covers: WIRE-014, WIRE-015
#[test]
fn the_end_of_input_inside_a_frame_delivers_nothing() {
    let (world, server) = World::served();
    let token = world.token("cut-1", vec![grant("echo")]);
    let mut other = server.connect();
    let message = json!({"type": "tool_call_request", "id": "1", "capability_token": token,
        "server_id": "demo", "tool": "echo", "params": {"text": "x"}});
    let frame = chio_core::frame::encode(&message).unwrap();
    for end in [1, 3, 4, 5, frame.len() / 2, frame.len() - 1] {
        let mut wire = server.connect();
        wire.send_bytes(&frame[..end]).unwrap();
        wire.shut();
        assert_eq!(wire.message(), None, "{end}");
        assert!(other.is_alive());
    }
    until("the operator to be told", || {
        server.stderr().contains("connection_closed").then_some(())
    });
    assert!(world.rows("").is_empty());
}
