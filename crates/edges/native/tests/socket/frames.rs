//! Frames and what is none, on bare sockets.

use chio_core::frame::MAX_PAYLOAD;
use chio_core::message::{AgentMessage, KernelMessage};
use chio_testkit::process::until;
use chio_testkit::receipts::written;
use chio_testkit::token::grant;
use serde_json::json;

use crate::world::World;

const HEARTBEAT: &[u8] = b"\x00\x00\x00\x14{\"type\":\"heartbeat\"}";

// covers: WIRE-004, WIRE-005, WIRE-020, WIRE-023, WIRE-032
#[test]
fn a_heartbeat_is_answered_and_leaves_no_receipt() {
    let world = World::new();
    let mut wire = world.connect();
    for _ in 0..3 {
        wire.send_bytes(HEARTBEAT).unwrap();
        assert_eq!(wire.payload().unwrap(), HEARTBEAT[4..]);
    }
    assert!(world.embedded.receipts().is_empty());
}

#[test]
fn a_frame_may_arrive_byte_by_byte_and_many_at_once() {
    let world = World::new();
    let mut wire = world.connect();
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
    let world = World::new();
    let mut wire = world.connect();
    let mut payload = br#"{"type":"heartbeat"}"#.to_vec();
    payload.resize(MAX_PAYLOAD, b' ');
    wire.send_payload(&payload);
    assert_eq!(wire.message(), Some(KernelMessage::Heartbeat));
    assert!(wire.is_alive());
}

#[test]
fn an_answer_owed_before_the_bad_frame_is_cancelled_with_a_receipt() {
    let world = World::new();
    let token = world.token("bad-after-1", vec![grant("sleep")]);
    let mut wire = world.connect();
    wire.send_call("1", &token, "sleep", json!({"ms": 30_000}));
    wire.send_payload(b"garbage");
    // What is owed may still be answered; then it ends.
    while let Some(message) = wire.message() {
        assert!(matches!(message, KernelMessage::ToolCallResponse(_)), "{message:?}");
    }
    let receipts = until("a receipt", || {
        Some(world.receipts("bad-after-1")).filter(|receipts| !receipts.is_empty())
    });
    assert_eq!(receipts.len(), 1);
    let decision = serde_json::to_value(&receipts[0].decision).unwrap();
    assert_eq!(decision["verdict"], "cancelled");
}

#[test]
fn a_connection_that_says_nothing_holds_up_nobody() {
    let world = World::new();
    let token = world.token("silent-1", vec![grant("echo")]);
    let _silent = world.connect();
    let mut halfway = world.connect();
    halfway.send_bytes(&HEARTBEAT[..10]).unwrap();
    let mut wire = world.connect();
    let response = wire.call("1", &token, "echo", json!({"text": "x"}));
    assert_eq!(written(&response.result)["status"], "ok");
    halfway.send_bytes(&HEARTBEAT[10..]).unwrap();
    assert_eq!(halfway.message(), Some(KernelMessage::Heartbeat));
}

#[test]
fn arguments_beyond_what_a_receipt_can_carry_are_denied_with_one() {
    let world = World::new();
    let token = world.token("heavy-1", vec![grant("echo")]);
    let text = "x".repeat(5 << 20);
    let response = world.connect().call("1", &token, "echo", json!({"text": text}));
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
    world.check_receipt(&response);
}

#[test]
fn a_payload_of_nothing_but_depth_breaks_nothing() {
    let world = World::new();
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = format!("{}1{}", open.repeat(500_000), close.repeat(500_000));
        let whole = format!("{{\"type\":\"heartbeat\",\"x\":{deep}}}");
        for payload in [deep, whole, open.repeat(1_000_000)] {
            let mut wire = world.connect();
            wire.send_payload(payload.as_bytes());
            assert_eq!(wire.message(), None);
        }
    }
    assert!(world.connect().is_alive());
}

#[test]
fn nothing_is_sent_unasked() {
    let world = World::new();
    let mut wire = world.connect();
    wire.send(&AgentMessage::ListCapabilities);
    assert_eq!(wire.message(), Some(KernelMessage::CapabilityList { capabilities: Vec::new() }));
    wire.shut();
    assert_eq!(wire.message(), None);
}

/// Versions are agreed on before peers connect: whatever proposes one is no message.
// covers: WIRE-086, WIRE-087
#[test]
fn nothing_is_negotiated_on_the_connection() {
    let world = World::new();
    for proposal in [
        json!({"type": "hello", "version": "chio-wire-v1"}),
        json!({"type": "initialize", "protocolVersion": "chio-wire-v1"}),
        json!({"type": "negotiate", "versions": ["chio-wire-v1", "chio-wire-v2"]}),
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}),
    ] {
        let mut wire = world.connect();
        wire.send_payload(proposal.to_string().as_bytes());
        assert_eq!(wire.message(), None, "{proposal}");
    }
    // Nor does the server begin: what it sends first is the answer to the first frame.
    let mut wire = world.connect();
    wire.send_bytes(HEARTBEAT).unwrap();
    assert_eq!(wire.payload().unwrap(), HEARTBEAT[4..]);
}
