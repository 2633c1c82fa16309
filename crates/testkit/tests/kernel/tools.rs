//! Tools that fail, panic, hang, and say anything at all.

use chio_core::receipt::{Decision, LoggedReceipt};
use chio_testkit::process::until;
use serde_json::{Value, json};

use crate::support::{World, written};

// covers: WIRE-027
#[test]
fn arguments_and_values_may_be_any_json() {
    let world = World::new("");
    let values = [
        Value::Null,
        json!(true),
        json!(-0.5),
        json!(9_007_199_254_740_991_u64),
        json!("\u{0}\u{7f}\u{2028}é😀"),
        json!([]),
        json!([[[]], {}]),
        json!({"": {"b": 1, "a": [null]}, "\u{20ac}": 1e21}),
    ];
    for (number, value) in values.into_iter().enumerate() {
        let response = world.call(&format!("any-{number}"), "test/give", value.clone());
        assert_eq!(written(&response.result), json!({"status": "ok", "value": value}));
        assert_eq!(response.receipt.action.parameters, value);
    }
    world.end();
}

// covers: WIRE-044
#[test]
fn a_tool_that_fails_is_a_tool_server_error_and_one_that_panics_is_incomplete() {
    let world = World::new("");
    let words = "the disk is full";
    let response = world.call("fail-1", "test/fail", json!({"text": words}));
    let error = json!({"code": "tool_server_error", "detail": words});
    assert_eq!(written(&response.result), json!({"status": "err", "error": error}));
    let (reason, guard) = (words.to_owned(), "tool_server".to_owned());
    assert_eq!(response.receipt.decision, Some(Decision::Deny { reason, guard }));
    let response = world.call("panic-1", "test/panic", json!({}));
    let reason = "the tool panicked".to_owned();
    let expected = json!({"status": "incomplete", "reason": reason, "chunks_received": 0});
    assert_eq!(written(&response.result), expected);
    assert_eq!(response.receipt.decision, Some(Decision::Incomplete { reason }));
    assert!(world.connect().is_alive());
    world.end();
}

#[test]
fn a_stream_that_fails_tells_what_went_before() {
    let world = World::new("");
    let params = json!({"n": 3, "bytes": 4, "fails": "the wire was cut"});
    let (chunks, response) = world.stream("cut-1", "test/stream", params);
    assert_eq!(chunks, ["xxxx"; 3]);
    let error = json!({"code": "tool_server_error", "detail": "the wire was cut"});
    assert_eq!(written(&response.result), json!({"status": "err", "error": error}));
    let metadata = response.receipt.metadata.as_ref().unwrap();
    assert_eq!(metadata["stream"]["chunks_received"], 3);
    world.end();
}

// covers: WIRE-036
#[test]
fn a_tool_that_hangs_is_left_at_its_deadline_with_or_without_chunks() {
    let world = World::new("--deadline-ms 60");
    let reason = "the call took longer than its deadline";
    for (id, tool) in [("hang-1", "test/hang"), ("hang-2", "test/hang_with_effects")] {
        let response = world.call(id, tool, json!({}));
        let expected = json!({"status": "incomplete", "reason": reason, "chunks_received": 0});
        assert_eq!(written(&response.result), expected);
        let reason = reason.to_owned();
        assert_eq!(response.receipt.decision, Some(Decision::Incomplete { reason }));
    }
    let params = json!({"n": 1000, "bytes": 1, "pause_ms": 20});
    let (chunks, response) = world.stream("hang-3", "test/stream", params);
    let result = written(&response.result);
    assert_eq!((&result["status"], &result["reason"]), (&json!("incomplete"), &json!(reason)));
    assert_eq!(result["chunks_received"], chunks.len());
    world.end();
}

#[test]
fn a_stream_is_cancelled_in_the_middle_when_its_caller_hangs_up() {
    let world = World::new("");
    let mut wire = world.connect();
    let params = json!({"n": 1000, "bytes": 1, "pause_ms": 20});
    wire.send_call("1", &world.token("gone-1"), "test/stream", params);
    assert!(wire.message().is_some());
    drop(wire);
    let receipts = until("a receipt", || {
        Some(world.receipts("gone-1")).filter(|receipts| !receipts.is_empty())
    });
    assert_eq!(receipts.len(), 1);
    assert!(matches!(receipts[0].decision, Some(Decision::Cancelled { .. })));
    let received = &receipts[0].metadata.as_ref().unwrap()["stream"]["chunks_received"];
    assert!(received.as_u64().unwrap() < 1000, "{received}");
    world.end();
}

#[test]
fn a_question_that_native_callers_cannot_be_asked_leaves_a_child_receipt() {
    let world = World::new("");
    let response = world.call("ask-1", "test/ask", json!({}));
    let answer = &written(&response.result)["value"]["answer"]["Err"];
    assert!(answer.as_str().unwrap().contains("does not take this kind of question"), "{answer}");
    let all = world.all();
    let [LoggedReceipt::Call(_), LoggedReceipt::Child(child)] = all.as_slice() else {
        panic!("{all:?}")
    };
    let context = &response.receipt.metadata.as_ref().unwrap()["receipt_context"];
    assert_eq!(context["request_id"], child.parent_request_id);
    world.end();
}

#[test]
fn a_shutdown_breaks_off_what_outlasts_its_patience() {
    let mut world = World::new("--patience-ms 100");
    let mut wire = world.connect();
    wire.send_call("1", &world.token("stuck-1"), "test/hang_with_effects", json!({}));
    assert!(wire.is_alive());
    world.server.signal("TERM");
    world.server.wait();
    let receipts = world.receipts("stuck-1");
    assert_eq!(receipts.len(), 1);
    let Some(Decision::Incomplete { reason }) = &receipts[0].decision else {
        panic!("{receipts:?}")
    };
    assert_eq!(reason, "the kernel is shutting down");
}
