//! Streams: order, hashes, bounds, callers that leave.

use std::sync::Arc;

use chio_core::canonical;
use chio_core::hash::sha256_hex;
use chio_kernel::{Outcome, Review, ReviewMode};
use serde_json::{Value, json};

use crate::support::tokens::token;
use crate::support::world::Ended;
use crate::support::world::metadata;
use crate::support::{Setup, TestCaller, World, grant, guard};

async fn stream(world: &World, caller: TestCaller, arguments: Value) -> (Ended, Vec<Value>) {
    let caller = Arc::new(caller);
    let token = token(&format!("cap-{}", world.kernel.new_request_id()), &[grant("*")]);
    let call = world.call(&token, "stream", arguments);
    let ended = world.run_for(call, Arc::<TestCaller>::clone(&caller)).await;
    let got = caller.chunks();
    let indices: Vec<u64> = got.iter().map(|(index, _)| *index).collect();
    let expected: Vec<u64> = (0..).take(got.len()).collect();
    assert_eq!(indices, expected, "chunks are numbered from 0, in order");
    (ended, got.into_iter().map(|(_, data)| data).collect())
}

/// Checks what a receipt says of a stream.
fn assert_hashed(ended: &Ended, chunks: &[Value]) {
    let hashes: Vec<String> = chunks.iter().map(|it| canonical::hash(it).unwrap()).collect();
    let bytes: usize = chunks.iter().map(|it| canonical::to_vec(it).unwrap().len()).sum();
    let record = json!({
        "chunks_expected": null,
        "chunks_received": chunks.len(),
        "total_bytes": bytes,
        "chunk_hashes": hashes,
    });
    assert_eq!(*metadata(ended, "stream"), record);
    assert_eq!(ended.receipt.content_hash, sha256_hex(hashes.concat().as_bytes()));
}

fn incomplete(ended: &Ended, words: &str, expected: u64) {
    match &ended.outcome {
        Outcome::Incomplete { reason, chunks } => {
            assert!(reason.contains(words), "{reason}");
            assert_eq!(*chunks, expected);
        }
        other => panic!("expected an incomplete stream, found {other:?}"),
    }
}

#[tokio::test]
async fn chunks_come_in_order_and_each_is_hashed() {
    let world = World::new().await;
    let chunks = vec![json!({"b": 1, "a": [2]}), json!("ö"), json!(null), json!(1.5)];
    let (ended, got) = stream(&world, world.caller(), json!({"chunks": chunks})).await;
    assert_eq!((&ended.outcome, &got), (&Outcome::Stream { chunks: 4 }, &chunks));
    assert_hashed(&ended, &chunks);
}

#[tokio::test]
async fn a_value_after_chunks_is_the_last_of_them() {
    let world = World::new().await;
    let (ended, got) = stream(&world, world.caller(), json!({"chunks": [1], "value": 2})).await;
    assert_eq!(ended.outcome, Outcome::Stream { chunks: 2 });
    assert_eq!(got, [json!(1), json!(2)]);
    assert_hashed(&ended, &got);
    let (ended, got) = stream(&world, world.caller(), json!({"chunks": [], "value": 2})).await;
    assert_eq!((ended.outcome.clone(), got.len()), (Outcome::Value(json!(2)), 0));
    assert!(metadata(&ended, "stream").is_null());
}

#[tokio::test]
async fn an_intent_is_durable_before_the_first_chunk_leaves() {
    let world = World::new().await;
    stream(&world, world.caller(), json!({"chunks": [1, 2]})).await;
    let expected = ["run stream", "reserve", "chunk 0", "chunk 1", "append"];
    assert_eq!(world.journal.all(), expected, "and only one is written");
    let reservation = world.ledger.reservations().remove(0);
    assert_eq!(reservation.intent.tool_name, "stream");
    assert!(reservation.alternatives[0].holds.is_empty());
    assert_eq!(world.open_intents().await, 0);
}

#[tokio::test]
async fn a_stream_with_side_effects_has_its_intent_already() {
    let world = World::new().await;
    world.run_tool("effect_stream", json!({"chunks": [1, 2]})).await;
    let expected = ["reserve", "run effect_stream", "chunk 0", "chunk 1", "append"];
    assert_eq!(world.journal.all(), expected);
}

#[tokio::test]
async fn a_stream_without_chunks_needs_no_intent() {
    let world = World::new().await;
    stream(&world, world.caller(), json!({"chunks": []})).await;
    assert_eq!(world.journal.all(), ["run stream", "append"]);
}

#[tokio::test]
async fn a_stream_has_a_most_number_of_chunks() {
    let world = Setup::default().config(|it| it.limits.max_chunks = 2).start().await;
    let (ended, got) = stream(&world, world.caller(), json!({"chunks": [1, 2]})).await;
    assert_eq!((ended.outcome, got.len()), (Outcome::Stream { chunks: 2 }, 2));
    let cases = [json!({"chunks": [1, 2, 3, 4]}), json!({"chunks": [1, 2], "value": 3})];
    for arguments in cases {
        let (ended, got) = stream(&world, world.caller(), arguments).await;
        incomplete(&ended, "more chunks than allowed", 2);
        assert_eq!(got, [json!(1), json!(2)]);
        assert_hashed(&ended, &got);
    }
}

#[tokio::test]
async fn a_stream_has_a_most_number_of_bytes() {
    let world = Setup::default().config(|it| it.limits.max_stream_bytes = 10).start().await;
    let (ended, got) = stream(&world, world.caller(), json!({"chunks": ["abc", "abc"]})).await;
    assert_eq!((ended.outcome, got.len()), (Outcome::Stream { chunks: 2 }, 2));
    for chunks in [json!(["abc", "abc", 1]), json!(["abc", "abcd"]), json!(["123456789"])] {
        let (ended, got) = stream(&world, world.caller(), json!({"chunks": chunks})).await;
        incomplete(&ended, "more bytes than allowed", u64::try_from(got.len()).unwrap());
        assert_hashed(&ended, &got);
    }
}

#[tokio::test]
async fn one_chunk_has_the_bound_of_a_value() {
    let world = Setup::default().config(|it| it.limits.max_output_bytes = 6).start().await;
    let (ended, got) = stream(&world, world.caller(), json!({"chunks": ["abcd", "abcde"]})).await;
    incomplete(&ended, "more bytes than allowed", 1);
    assert_hashed(&ended, &got);
}

fn wants_all() -> crate::support::guards::Scripted {
    guard("all").reviews(ReviewMode::Whole, |_| Ok(Review::Pass))
}

#[tokio::test]
async fn a_stream_that_is_held_back_has_the_same_bound_of_chunks() {
    let setup = Setup::default().guard(wants_all()).config(|it| it.limits.max_chunks = 2);
    let world = setup.start().await;
    let (ended, got) = stream(&world, world.caller(), json!({"chunks": [1, 2, 3]})).await;
    incomplete(&ended, "more chunks than allowed", 0);
    assert_eq!(got.len(), 0);
}

// A stream that is held back is held in memory: the bound on bytes matters there most.
#[tokio::test]
async fn a_stream_that_is_held_back_has_the_same_bound_of_bytes() {
    let setup = Setup::default().guard(wants_all()).config(|it| it.limits.max_stream_bytes = 10);
    let world = setup.start().await;
    let chunks = json!({"chunks": ["abcd", "abcd", "abcd"]});
    let (ended, got) = stream(&world, world.caller(), chunks).await;
    incomplete(&ended, "more bytes than allowed", 0);
    assert_eq!(got.len(), 0);
}

#[tokio::test]
async fn a_caller_that_is_gone_cancels_the_call() {
    let world = World::new().await;
    let caller = world.caller().gone_after(1);
    let (ended, got) = stream(&world, caller, json!({"chunks": [1, 2, 3, 4]})).await;
    assert!(matches!(&ended.outcome, Outcome::Cancelled { reason, .. } if reason.contains("gone")));
    assert_eq!(got, [json!(1)]);
    assert_eq!(world.open_intents().await, 0);
}

#[tokio::test]
async fn a_caller_that_is_gone_was_not_given_the_chunk_that_it_did_not_take() {
    let world = World::new().await;
    let caller = world.caller().gone_after(1);
    let (ended, _) = stream(&world, caller, json!({"chunks": [1, 2, 3, 4]})).await;
    assert!(matches!(ended.outcome, Outcome::Cancelled { chunks: 1, .. }), "{:?}", ended.outcome);
}

#[tokio::test]
async fn a_value_has_a_most_size() {
    use chio_core::registry::ErrorCode as Code;
    let world = Setup::default().config(|it| it.limits.max_output_bytes = 100).start().await;
    let ended = world.run_tool("big", json!({"size": 98})).await;
    assert!(matches!(ended.outcome, Outcome::Value(_)));
    let ended = world.run_tool("big", json!({"size": 99})).await;
    crate::support::world::assert_denied(&ended, Code::ToolServerError, "at most 100 bytes");
}

#[tokio::test]
async fn a_token_that_is_revoked_during_a_call_sends_no_first_chunk() {
    let world = World::new().await;
    let token = token("cap-1", &[grant("stream")]);
    // The store hears of it between the last look at the epoch and the first chunk.
    let shared = chio_kernel::store::SharedStore::clone(&world.store);
    let late = guard("late").reviews(ReviewMode::EachChunk, move |_| {
        let shared = chio_kernel::store::SharedStore::clone(&shared);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                runtime.block_on(shared.revoke("cap-1", crate::support::NOW)).unwrap();
            });
        });
        Ok(Review::Pass)
    });
    let second = Setup::beside(&world).guard(late).start().await;
    let caller = Arc::new(second.caller());
    let call = second.call(&token, "stream", json!({"chunks": [1]}));
    let ended = second.run_for(call, Arc::<TestCaller>::clone(&caller)).await;
    let code = chio_core::registry::ErrorCode::CapabilityRevoked;
    crate::support::world::assert_denied(&ended, code, "cap-1");
    assert!(caller.chunks().is_empty());
}
