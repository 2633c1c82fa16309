//! Frames and what is none, on bare sockets.

use chio_core::frame::MAX_PAYLOAD;
use chio_core::message::{AgentMessage, KernelMessage};
use chio_testkit::process::until;
use chio_testkit::token::grant;
use serde_json::json;

use crate::support::{Shared, World, written};

const HEARTBEAT: &[u8] = b"\x00\x00\x00\x14{\"type\":\"heartbeat\"}";

// covers: WIRE-004, WIRE-005, WIRE-020, WIRE-023, WIRE-032
#[test]
fn a_heartbeat_is_answered_and_leaves_no_receipt() {
    let (world, server) = World::served();
    let mut wire = server.connect();
    for _ in 0..3 {
        wire.send_bytes(HEARTBEAT).unwrap();
        assert_eq!(wire.payload().unwrap(), HEARTBEAT[4..]);
    }
    assert!(world.rows("").is_empty());
}

#[test]
fn a_frame_may_arrive_byte_by_byte_and_many_at_once() {
    let shared = Shared::get();
    let mut wire = shared.server.connect();
    for byte in HEARTBEAT {
        wire.send_bytes(&[*byte]).unwrap();
    }
    assert_eq!(wire.message(), Some(KernelMessage::Heartbeat));
    wire.send_bytes(&HEARTBEAT.repeat(200)).unwrap();
    for _ in 0..200 {
        assert_eq!(wire.message(), Some(KernelMessage::Heartbeat));
    }
}

// covers: WIRE-007
#[test]
fn the_largest_frame_is_taken() {
    let shared = Shared::get();
    let mut wire = shared.server.connect();
    let mut payload = br#"{"type":"heartbeat"}"#.to_vec();
    payload.resize(MAX_PAYLOAD, b' ');
    wire.send_payload(&payload);
    assert_eq!(wire.message(), Some(KernelMessage::Heartbeat));
    assert!(wire.is_alive());
}

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

#[test]
fn an_answer_owed_before_the_bad_frame_is_cancelled_with_a_receipt() {
    let shared = Shared::get();
    let token = shared.world.token("bad-after-1", vec![grant("sleep")]);
    let mut wire = shared.server.connect();
    wire.send_call("1", &token, "sleep", json!({"ms": 30_000}));
    wire.send_payload(b"garbage");
    // What is owed may still be answered; then it ends.
    while let Some(message) = wire.message() {
        assert!(matches!(message, KernelMessage::ToolCallResponse(_)), "{message:?}");
    }
    let receipts = until("a receipt", || {
        Some(shared.world.receipts("bad-after-1")).filter(|receipts| !receipts.is_empty())
    });
    assert_eq!(receipts.len(), 1);
    let decision = serde_json::to_value(&receipts[0].decision).unwrap();
    assert_eq!(decision["verdict"], "cancelled");
}

#[test]
fn a_connection_that_says_nothing_holds_up_nobody() {
    let shared = Shared::get();
    let token = shared.world.token("silent-1", vec![grant("echo")]);
    let _silent = shared.server.connect();
    let mut halfway = shared.server.connect();
    halfway.send_bytes(&HEARTBEAT[..10]).unwrap();
    let mut wire = shared.server.connect();
    let response = wire.call("1", &token, "echo", json!({"text": "x"}));
    assert_eq!(written(&response.result)["status"], "ok");
    halfway.send_bytes(&HEARTBEAT[10..]).unwrap();
    assert_eq!(halfway.message(), Some(KernelMessage::Heartbeat));
}

#[test]
fn arguments_beyond_what_a_receipt_can_carry_are_denied_with_one() {
    let shared = Shared::get();
    let token = shared.world.token("heavy-1", vec![grant("echo")]);
    let text = "x".repeat(5 << 20);
    let response = shared.server.connect().call("1", &token, "echo", json!({"text": text}));
    let error = &written(&response.result)["error"];
    assert_eq!(error["code"], "policy_denied");
    assert!(
        error["detail"]["reason"]
            .as_str()
            .unwrap()
            .contains("expected shorter and flatter arguments"),
        "{error}"
    );
    assert!(serde_json::to_vec(&response.receipt).unwrap().len() < 10_000);
    shared.world.check_receipt(&response);
}

#[test]
fn a_payload_of_nothing_but_depth_breaks_nothing() {
    let shared = Shared::get();
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = format!("{}1{}", open.repeat(500_000), close.repeat(500_000));
        let whole = format!("{{\"type\":\"heartbeat\",\"x\":{deep}}}");
        for payload in [deep, whole, open.repeat(1_000_000)] {
            let mut wire = shared.server.connect();
            wire.send_payload(payload.as_bytes());
            assert_eq!(wire.message(), None);
        }
    }
    assert!(shared.server.connect().is_alive());
}

#[test]
fn nothing_is_sent_unasked() {
    let shared = Shared::get();
    let mut wire = shared.server.connect();
    wire.send(&AgentMessage::ListCapabilities);
    assert_eq!(wire.message(), Some(KernelMessage::CapabilityList { capabilities: Vec::new() }));
    wire.shut();
    assert_eq!(wire.message(), None);
}
