//! Bounds of one call: chunks, bytes, arguments, results.

use chio_core::receipt::Decision;
use serde_json::json;

use crate::support::{World, written};

// covers: WIRE-037
#[test]
fn a_stream_beyond_its_bounds_is_incomplete_and_what_left_is_accounted_for() {
    for (options, params, left) in [
        ("--max-chunks 5", json!({"n": 9, "bytes": 1}), 5),
        ("--max-chunks 5", json!({"n": 5, "bytes": 1, "last": "one too many"}), 5),
        ("--max-stream-bytes 100", json!({"n": 9, "bytes": 28}), 3),
        ("--max-output-bytes 100", json!({"texts": ["short"], "n": 1, "bytes": 200}), 1),
        ("--max-chunks 5 --guard block-whole=nothing", json!({"n": 9, "bytes": 1}), 0),
    ] {
        let world = World::new(options);
        let (chunks, response) = world.stream("bound-1", "test/stream", params);
        assert_eq!(chunks.len(), left, "{options}");
        let result = written(&response.result);
        assert_eq!(result["status"], "incomplete", "{options}: {result}");
        assert_eq!(result["chunks_received"], left, "{options}");
        assert!(matches!(response.receipt.decision, Some(Decision::Incomplete { .. })));
        let stream = &response.receipt.metadata.as_ref().unwrap()["stream"];
        assert_eq!(stream["chunks_received"], left, "{options}");
        world.end();
    }
}

#[test]
fn a_stream_within_its_bounds_is_complete() {
    let world = World::new("--max-chunks 5 --max-stream-bytes 100");
    let (chunks, response) = world.stream("bound-1", "test/stream", json!({"n": 5, "bytes": 18}));
    assert_eq!(chunks.len(), 5);
    assert_eq!(written(&response.result)["status"], "stream_complete");
}

#[test]
fn a_value_or_arguments_beyond_their_bounds_are_denied() {
    let world = World::new("--max-output-bytes 1000 --max-argument-bytes 1000");
    let response = world.call("value-1", "test/big", json!({"bytes": 2000}));
    let error = &written(&response.result)["error"];
    assert_eq!(error["code"], "tool_server_error");
    assert!(error["detail"].as_str().unwrap().contains("bytes of result"), "{error}");
    let response = world.call("value-2", "test/big", json!({"bytes": 900}));
    assert_eq!(written(&response.result)["status"], "ok");
    let params = json!({"text": "x".repeat(2000)});
    let response = world.call("arguments-1", "test/give", params);
    assert_eq!(written(&response.result)["error"]["code"], "policy_denied");
    assert!(serde_json::to_vec(&response.receipt).unwrap().len() < 4000);
    world.end();
}

/// A frame has its own bound, and the receipt is not what makes it too large.
// covers: WIRE-008
#[test]
fn a_result_that_no_frame_holds_is_told_with_the_receipt_of_the_call_that_ran() {
    let world = World::new("--max-output-bytes 40000000");
    let response = world.call("huge-1", "test/big", json!({"bytes": 17 << 20}));
    let error = &written(&response.result)["error"];
    assert_eq!(error["code"], "internal_error");
    assert!(error["detail"].as_str().unwrap().contains("the call ran"), "{error}");
    assert_eq!(response.receipt.decision, Some(Decision::Allow));
    world.end();
}
