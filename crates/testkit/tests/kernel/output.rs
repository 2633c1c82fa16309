//! Guards that look at output: nothing leaves that they have not passed.

use chio_core::receipt::{ContentHash, Decision};
use serde_json::json;

use crate::support::{World, written};

#[test]
fn a_secret_in_a_value_or_chunk_is_taken_out_and_the_receipt_is_of_what_left() {
    let world = World::new("--guard redact-output");
    let response = world.call("value-1", "test/give", json!({"a": "sk-1", "b": "plain"}));
    let left = json!({"a": "[redacted]", "b": "plain"});
    assert_eq!(written(&response.result), json!({"status": "ok", "value": left}));
    assert_eq!(response.receipt.content_hash, ContentHash::of_value(&left).unwrap());

    let params = json!({"texts": ["one", "sk-2", "three"], "last": "sk-4"});
    let (chunks, response) = world.stream("stream-1", "test/stream", params);
    assert_eq!(chunks, ["one", "[redacted]", "three", "[redacted]"]);
    assert_eq!(written(&response.result)["total_chunks"], 4);
    let mut hash = ContentHash::stream();
    for chunk in &chunks {
        hash.push(chunk).unwrap();
    }
    assert_eq!(response.receipt.content_hash, hash.finish());
    let metadata = response.receipt.metadata.as_ref().unwrap();
    assert_eq!(metadata["stream"]["chunk_hashes"], json!(hash.chunk_hashes()));
    world.end();
}

#[test]
fn a_value_that_a_guard_blocks_panics_or_errs_on_does_not_leave() {
    let world = World::new(
        "--guard block-output=forbidden --guard panic-on-output=now --guard error-on-output=echo",
    );
    for (id, tool, params, guard) in [
        ("block-1", "test/give", json!("forbidden fruit"), "block-output"),
        ("panic-1", "now", json!({}), "panic-on-output"),
        ("error-1", "echo", json!({"text": "hi"}), "error-on-output"),
    ] {
        let response = world.call(id, tool, params);
        let error = &written(&response.result)["error"];
        assert_eq!(error["code"], "policy_denied");
        assert_eq!(error["detail"]["guard"], guard, "{error}");
        let Some(Decision::Deny { guard: named, .. }) = &response.receipt.decision else {
            panic!("{:?}", response.receipt.decision)
        };
        assert_eq!(named, guard);
    }
    world.end();
}

#[test]
fn a_blocked_chunk_ends_the_stream_and_those_before_it_are_accounted_for() {
    let world = World::new("--guard block-output=forbidden");
    let params = json!({"texts": ["one", "two", "forbidden", "four"]});
    let (chunks, response) = world.stream("block-1", "test/stream", params);
    assert_eq!(chunks, ["one", "two"]);
    assert_eq!(written(&response.result)["error"]["detail"]["guard"], "block-output");
    let metadata = response.receipt.metadata.as_ref().unwrap();
    assert_eq!(metadata["stream"]["chunks_received"], 2);
    world.end();
}

#[test]
fn a_guard_that_wants_all_of_a_stream_has_all_of_it_before_any_of_it_leaves() {
    let world = World::new("--guard block-whole=forbidden");
    let params = json!({"texts": ["one", "two", "forbidden"], "pause_ms": 20});
    let (chunks, response) = world.stream("whole-1", "test/stream", params);
    assert!(chunks.is_empty(), "{chunks:?}");
    assert_eq!(written(&response.result)["error"]["detail"]["guard"], "block-whole");
    let params = json!({"texts": ["one", "two"], "last": "three"});
    let (chunks, response) = world.stream("whole-2", "test/stream", params);
    assert_eq!(chunks, ["one", "two", "three"]);
    assert_eq!(written(&response.result)["status"], "stream_complete");
    world.end();
}
