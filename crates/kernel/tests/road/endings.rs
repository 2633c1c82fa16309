//! How calls end that do not end by themselves: deadlines, cancellation, tools that break.

use std::sync::Arc;
use std::time::Duration;

use chio_core::canonical;
use chio_core::receipt::{Decision, NO_OUTPUT_HASH};
use chio_core::registry::ErrorCode as Code;
use chio_kernel::{Caller as _, Outcome, Review, ReviewMode};
use serde_json::json;
use tokio::time::Instant;

use crate::support::tokens::{counted, token};
use crate::support::world::assert_denied;
use crate::support::{Setup, TestCaller, World, grant, guard};

#[tokio::test]
async fn a_tool_that_fails_or_panics_is_denied_in_the_kernels_name() {
    let world = World::new().await;
    let ended = world.run_tool("fail", json!({"detail": "row 7 is locked"})).await;
    assert_denied(&ended, Code::ToolServerError, "row 7 is locked");
    let ended = world.run_tool("panic", json!({})).await;
    assert_denied(&ended, Code::ToolServerError, "the tool panicked");
    assert_eq!(world.kernel.in_flight(), 0);
    let ended = world.run_tool("echo", json!(1)).await;
    assert!(matches!(ended.outcome, Outcome::Value(_)));
}

// A receipt has to fit into a frame, whatever a tool has to say about its failure.
#[tokio::test]
async fn the_words_of_a_tool_that_fails_are_bounded() {
    let world = World::new().await;
    let words = "x".repeat(3 << 20);
    let ended = world.run_tool("fail", json!({"detail": words})).await;
    assert_denied(&ended, Code::ToolServerError, "xxx");
    let reason = &crate::support::world::denial(&ended).reason;
    assert!(reason.len() <= 1 << 20, "{} bytes of reason", reason.len());
    let size = canonical::to_vec(&ended.receipt).unwrap().len();
    assert!(size < 16 << 20, "{size} bytes of receipt");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_outlasts_its_deadline_is_cancelled() {
    let deadline = Duration::from_secs(5);
    let world = Setup::default().config(|it| it.limits.deadline = deadline).start().await;
    let began = Instant::now();
    let ended = world.run_tool("hang", json!({})).await;
    let reason = "the call took longer than its deadline".to_owned();
    assert_eq!(ended.outcome, Outcome::Cancelled { reason, chunks: 0 });
    assert_eq!(began.elapsed(), deadline);
    assert_eq!(ended.receipt.content_hash, NO_OUTPUT_HASH);
}

#[tokio::test]
async fn a_caller_can_call_off() {
    let world = World::new().await;
    for tool in ["hang", "gate"] {
        let caller = Arc::new(world.caller());
        let call = world.call(&token(&format!("cap-{tool}"), &[grant(tool)]), tool, json!({}));
        let request_id = call.request_id.clone();
        let running = world.spawn(call, &caller);
        world.until(&format!("run {tool}")).await;
        assert_eq!(world.kernel.in_flight(), 1);
        caller.cancel();
        let ended = running.await.unwrap().unwrap();
        world.check(&request_id, &ended).await;
        let reason = "called off by the caller".to_owned();
        assert_eq!(ended.outcome, Outcome::Cancelled { reason, chunks: 0 });
    }
    assert_eq!((world.kernel.in_flight(), world.open_intents().await), (0, 0));
}

#[tokio::test]
async fn a_stream_that_is_cancelled_keeps_its_prefix_in_the_receipt() {
    let world = World::new().await;
    let caller = Arc::new(world.caller().stuck_at(1));
    let call = world.call(&token("cap-1", &[grant("*")]), "stream", json!({"chunks": [1, 2, 3]}));
    let running = world.spawn(call, &caller);
    world.until("chunk 1").await;
    caller.cancel();
    let ended = running.await.unwrap().unwrap();
    assert!(matches!(ended.outcome, Outcome::Cancelled { .. }));
    let hashes = ended.receipt.metadata.as_ref().unwrap()["stream"]["chunk_hashes"].clone();
    assert_eq!(hashes[0], json!(canonical::hash(&1).unwrap()));
    assert_ne!(ended.receipt.content_hash, NO_OUTPUT_HASH);
    assert_eq!(world.open_intents().await, 0);
}

#[tokio::test]
async fn dropping_the_future_does_not_stop_the_call() {
    let world = World::new().await;
    let call = world.call(&token("cap-1", &[counted("gate", 1)]), "gate", json!({}));
    let request_id = call.request_id.clone();
    let caller = Arc::new(world.caller());
    {
        let evaluate = world.kernel.evaluate(call, Arc::<TestCaller>::clone(&caller));
        tokio::pin!(evaluate);
        tokio::select! {
            biased;
            _ = &mut evaluate => panic!("the gate is closed"),
            () = world.until("run gate") => {}
        }
    }
    assert!(!caller.cancellation().is_cancelled());
    assert_eq!(world.kernel.in_flight(), 1);
    world.gate.add_permits(1);
    world.until("append").await;
    let receipts = world.receipts_of(&request_id).await;
    assert_eq!(receipts.len(), 1);
    assert_eq!(receipts[0].decision, Some(Decision::Allow));
    assert_eq!(world.open_intents().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_running_calls_and_cancels_the_rest() {
    let world = World::new().await;
    let caller = Arc::new(world.caller());
    let token = token("cap-1", &[grant("*")]);
    let ends = world.spawn(world.call(&token, "gate", json!({})), &caller);
    let hangs = world.spawn(world.call(&token, "hang", json!({})), &caller);
    world.until("run gate").await;
    world.until("run hang").await;
    let gate = Arc::clone(&world.gate);
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(2)).await;
        gate.add_permits(1);
    });
    let began = Instant::now();
    world.kernel.drain(Duration::from_secs(3)).await.unwrap();
    assert_eq!(began.elapsed(), Duration::from_secs(3));
    assert!(matches!(ends.await.unwrap().unwrap().outcome, Outcome::Value(_)));
    let outcome = hangs.await.unwrap().unwrap().outcome;
    let reason = "the kernel is shutting down".to_owned();
    assert_eq!(outcome, Outcome::Cancelled { reason, chunks: 0 });
    // The last checkpoint covers both.
    assert_eq!(world.checkpoints().await.last().unwrap().body.batch_end_seq, 2);
}

/// A caller that takes no more from chunk 1 on cancels; the tool has ended by then.
async fn call_off_after_the_tool(setup: Setup, arguments: serde_json::Value) {
    let world = setup.start().await;
    let caller = Arc::new(world.caller().stuck_at(1));
    let call = world.call(&token("cap-1", &[grant("*")]), "stream", arguments);
    let running = world.spawn(call, &caller);
    world.until("chunk 1").await;
    caller.cancel();
    let ended = tokio::time::timeout(Duration::from_secs(3600), running).await;
    let ended = ended.expect("the call ends when it is called off").unwrap().unwrap();
    assert!(matches!(ended.outcome, Outcome::Cancelled { .. }));
}

// Not only the tool can hang: a caller that stops reading must not keep a call for ever.
#[tokio::test(start_paused = true)]
async fn a_caller_can_call_off_while_a_held_back_stream_is_handed_over() {
    let all = guard("all").reviews(ReviewMode::Whole, |_| Ok(Review::Pass));
    let setup = Setup::default().guard(all);
    call_off_after_the_tool(setup, json!({"chunks": [1, 2]})).await;
}

#[tokio::test(start_paused = true)]
async fn a_caller_can_call_off_while_the_last_value_of_a_stream_is_handed_over() {
    let arguments = json!({"chunks": [1], "value": 2});
    call_off_after_the_tool(Setup::default(), arguments).await;
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_never_takes_the_last_value_meets_the_deadline() {
    let setup = Setup::default().config(|it| it.limits.deadline = Duration::from_secs(5));
    let world = setup.start().await;
    let caller = Arc::new(world.caller().stuck_at(1));
    let call =
        world.call(&token("cap-1", &[grant("*")]), "stream", json!({"chunks": [1], "value": 2}));
    let running = world.spawn(call, &caller);
    let ended = tokio::time::timeout(Duration::from_secs(3600), running).await;
    let ended = ended.expect("the call ends at its deadline").unwrap().unwrap();
    assert!(matches!(ended.outcome, Outcome::Cancelled { .. }));
}

/// A caller cancels while this guard thinks.
async fn call_off_during(guard: crate::support::guards::Scripted, event: &str) {
    let setup = Setup::default();
    let guard = guard.telling(&setup.journal).hangs();
    let world = setup.guard(guard).start().await;
    let caller = Arc::new(world.caller());
    let call = world.call(&token("cap-1", &[counted("effect", 1)]), "effect", json!({}));
    let running = world.spawn(call, &caller);
    world.until(event).await;
    caller.cancel();
    let ended = tokio::time::timeout(Duration::from_secs(3600), running).await;
    let ended = ended.expect("the call ends when it is called off").unwrap().unwrap();
    assert!(!matches!(ended.outcome, Outcome::Value(_)));
    assert_eq!(world.open_intents().await, 0);
}

// Guards are other people's code, and may wait for other people's servers.
#[tokio::test(start_paused = true)]
async fn a_caller_can_call_off_while_a_guard_thinks() {
    call_off_during(guard("slow"), "check slow").await;
}

#[tokio::test(start_paused = true)]
async fn a_caller_can_call_off_while_an_output_guard_thinks() {
    let slow = guard("slow").reviews(ReviewMode::EachChunk, |_| Ok(Review::Pass));
    call_off_during(slow, "review slow").await;
}
