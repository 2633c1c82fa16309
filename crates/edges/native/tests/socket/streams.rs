//! Streams, and calls whose caller goes away.

use chio_core::canonical;
use chio_core::message::{KernelMessage, ToolCallResponse};
use chio_core::receipt::{ContentHash, Decision};
use chio_testkit::process::{Wire, until};
use chio_testkit::receipts::written;
use chio_testkit::token::grant;
use serde_json::{Value, json};

use crate::world::World;

/// The chunks of a call, and its response.
fn stream(wire: &mut Wire) -> (Vec<(u64, Value)>, ToolCallResponse) {
    let mut chunks = Vec::new();
    loop {
        match wire.message().unwrap() {
            KernelMessage::ToolCallChunk { id, chunk_index, data } => {
                assert_eq!(id, "s");
                chunks.push((chunk_index, data));
            }
            KernelMessage::ToolCallResponse(response) => return (chunks, *response),
            other => panic!("{other:?}"),
        }
    }
}

// covers: WIRE-028, WIRE-035
#[test]
fn chunks_come_before_the_response_and_the_receipt_has_their_hashes() {
    let world = World::new();
    let token = world.token("stream-1", vec![grant("count_to")]);
    let mut wire = world.connect();
    wire.send_call("s", &token, "count_to", json!({"n": 200}));
    let (chunks, response) = stream(&mut wire);
    let expected: Vec<_> = (0..200).map(|index| (index, json!({"n": index + 1}))).collect();
    assert_eq!(chunks, expected);
    assert_eq!(
        written(&response.result),
        json!({"status": "stream_complete", "total_chunks": 200})
    );
    let mut hash = ContentHash::stream();
    for (_, data) in &chunks {
        assert_eq!(hash.push(data).unwrap(), canonical::hash(data).unwrap());
    }
    let record = &response.receipt.metadata.as_ref().unwrap()["stream"];
    assert_eq!(record["chunk_hashes"], json!(hash.chunk_hashes()));
    assert_eq!(record["chunks_received"], 200);
    assert_eq!(record["total_bytes"], hash.total_bytes());
    assert_eq!(response.receipt.content_hash, hash.finish());
    assert_eq!(response.receipt.decision, Some(Decision::Allow));
    world.check_receipt(&response);
}

#[test]
fn a_stream_of_no_chunks_is_complete() {
    let world = World::new();
    let token = world.token("stream-2", vec![grant("count_to")]);
    let mut wire = world.connect();
    wire.send_call("s", &token, "count_to", json!({"n": 0}));
    let (chunks, response) = stream(&mut wire);
    assert!(chunks.is_empty());
    assert_eq!(written(&response.result), json!({"status": "stream_complete", "total_chunks": 0}));
    world.check_receipt(&response);
}

/// The one receipt of a token's calls, once it is there.
fn awaited(world: &World, token: &str) -> Option<Decision> {
    let receipts =
        until("a receipt", || Some(world.receipts(token)).filter(|receipts| !receipts.is_empty()));
    assert_eq!(receipts.len(), 1);
    receipts[0].decision.clone()
}

#[test]
fn a_call_is_cancelled_when_its_caller_hangs_up() {
    let world = World::new();
    let token = world.token("gone-1", vec![grant("sleep")]);
    let mut wire = world.connect();
    wire.send_call("1", &token, "sleep", json!({"ms": 60_000}));
    assert!(wire.is_alive());
    drop(wire);
    let decision = awaited(&world, "gone-1");
    let Some(Decision::Cancelled { reason }) = decision else { panic!("{decision:?}") };
    // It may not have begun when the end was noticed.
    assert!(reason.starts_with("called off"), "{reason}");
}

/// On a socket, a client that sends no more is gone: there is no message to cancel one call.
// covers: WIRE-036
#[test]
fn a_call_is_cancelled_when_its_caller_sends_no_more_and_the_answer_says_so() {
    let world = World::new();
    let token = world.token("gone-2", vec![grant("sleep")]);
    let mut wire = world.connect();
    wire.send_call("1", &token, "sleep", json!({"ms": 60_000}));
    wire.shut();
    let response = wire.response();
    let result = written(&response.result);
    assert_eq!((&result["status"], &result["chunks_received"]), (&json!("cancelled"), &json!(0)));
    assert!(result["reason"].as_str().unwrap().starts_with("called off"), "{result}");
    assert_eq!(wire.message(), None);
    world.check_receipt(&response);
}

#[test]
fn a_stream_whose_caller_hangs_up_is_cancelled() {
    let world = World::new();
    let token = world.token("gone-3", vec![grant("count_to")]);
    let mut wire = world.connect();
    wire.send_call("s", &token, "count_to", json!({"n": 10_000}));
    assert!(matches!(wire.message(), Some(KernelMessage::ToolCallChunk { .. })));
    drop(wire);
    // It may also have been quick enough to end before the kernel noticed.
    let decision = awaited(&world, "gone-3");
    let decision = serde_json::to_value(decision).unwrap();
    assert!(["cancelled", "allow"].contains(&decision["verdict"].as_str().unwrap()), "{decision}");
}
