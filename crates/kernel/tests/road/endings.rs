//! How calls end that do not end by themselves: deadlines, cancellation, tools that break.

use std::sync::Arc;
use std::time::Duration;

use chio_core::canonical;
use chio_core::receipt::{Decision, EXECUTION_MEMBER, Execution, NO_OUTPUT_HASH};
use chio_core::registry::ErrorCode as Code;
use chio_kernel::{Caller as _, Outcome, Review, ReviewMode, Verdict};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::tokens::{counted, token};
use crate::support::world::{Ended, assert_denied, assert_failed};
use crate::support::{Setup, TestCaller, World, grant, guard};

/// What a receipt says that became of its call, and whether it says so in as many words.
fn execution(ended: &Ended) -> (Option<Execution>, bool) {
    let said = ended.receipt.metadata.as_ref().unwrap().get(EXECUTION_MEMBER).is_some();
    (ended.receipt.execution(), said)
}

#[tokio::test]
async fn a_receipt_says_what_became_of_the_call_at_its_tool() {
    let denies = guard("no").checks(|input| {
        let denied = input.arguments["deny"] == json!(true);
        let verdict = if denied { Verdict::Deny("no".to_owned()) } else { Verdict::Allow };
        Ok(verdict.into())
    });
    let world = Setup::default().guard(denies).start().await;
    let stream = |last: Value| json!({"chunks": [1, last]});
    let failed = json!({"isError": true});
    for (tool, arguments, verdict, expected) in [
        ("effect", json!({"deny": true}), "deny", (Execution::NotBegun, true)),
        ("nothing", json!({}), "deny", (Execution::NotBegun, true)),
        ("refuse", json!({}), "deny", (Execution::NotBegun, true)),
        ("fail", json!({}), "deny", (Execution::Failed, true)),
        ("big", json!({"size": 100 << 20}), "deny", (Execution::Completed, true)),
        ("lose", json!({}), "incomplete", (Execution::Begun, true)),
        ("panic", json!({}), "incomplete", (Execution::Begun, true)),
        ("echo", json!({}), "allow", (Execution::Completed, false)),
        ("echo", failed.clone(), "allow", (Execution::Failed, true)),
        ("stream", stream(json!(2)), "allow", (Execution::Completed, false)),
        ("stream", stream(failed), "allow", (Execution::Failed, true)),
    ] {
        let ended = world.run_tool(tool, arguments).await;
        let decision = serde_json::to_value(&ended.receipt.decision).unwrap();
        assert_eq!(decision["verdict"], verdict, "{tool}");
        assert_eq!(execution(&ended), (Some(expected.0), expected.1), "{tool}");
        ended.receipt.verify().unwrap();
    }
    assert_eq!((world.kernel.in_flight(), world.open_intents().await), (0, 0));
}

#[tokio::test]
async fn a_tool_server_that_fails_is_named_and_not_the_kernel() {
    let world = World::new().await;
    let ended = world.run_tool("fail", json!({"detail": "row 7 is locked"})).await;
    assert_failed(&ended, "row 7 is locked");
    let ended = world.run_tool("panic", json!({})).await;
    let reason = "the tool panicked".to_owned();
    assert_eq!(ended.outcome, Outcome::Incomplete { reason, chunks: 0 });
    assert_eq!(world.kernel.in_flight(), 0);
    let ended = world.run_tool("echo", json!(1)).await;
    assert!(matches!(ended.outcome, Outcome::Value(_)));
}

/// Ends a call of a tool that first waits for a connection: before it has one, or after.
async fn end_while_connecting(
    setup: Setup,
    sent: bool,
    end: impl AsyncFnOnce(&World, &TestCaller),
) -> Ended {
    let world = setup.start().await;
    let caller = Arc::new(world.caller());
    let call = world.call(&token("cap-1", &[counted("connect", 1)]), "connect", json!({}));
    let running = world.spawn(call, &caller);
    world.until("run connect").await;
    if sent {
        world.gate.add_permits(1);
        world.until("sent").await;
    }
    end(&world, &caller).await;
    running.await.unwrap().unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_ends_a_call_from_outside_is_told_apart_before_and_after_it_was_sent() {
    let deadline = Duration::from_secs(5);
    let setup = || Setup::default().config(|it| it.limits.deadline = deadline);
    let cancel = async |_: &World, caller: &TestCaller| caller.cancel();
    let drain = async |world: &World, _: &TestCaller| {
        world.kernel.drain(Duration::from_secs(1)).await.unwrap();
    };
    let wait = async |_: &World, _: &TestCaller| {};
    for (sent, execution) in [(false, Execution::NotBegun), (true, Execution::Begun)] {
        let ended = end_while_connecting(setup(), sent, cancel).await;
        assert!(matches!(ended.outcome, Outcome::Cancelled { .. }), "{:?}", ended.outcome);
        assert_eq!(ended.receipt.execution(), Some(execution));
        let drained = end_while_connecting(setup(), sent, drain).await;
        let late = end_while_connecting(setup(), sent, wait).await;
        for (ended, words) in [(drained, "shutting down"), (late, "longer than its deadline")] {
            assert_eq!(ended.receipt.execution(), Some(execution), "{words}");
            match &ended.outcome {
                Outcome::Incomplete { reason, .. } if sent => assert!(reason.contains(words)),
                _ => assert_failed(&ended, words),
            }
        }
    }
}

// Only its caller cancels a call.
#[tokio::test(start_paused = true)]
async fn a_deadline_that_passes_while_a_guard_thinks_is_a_denial() {
    let setup = Setup::default().config(|it| it.limits.deadline = Duration::from_secs(5));
    let world = setup.guard(guard("slow").hangs()).start().await;
    let ended = world.run_tool("effect", json!({})).await;
    assert_denied(&ended, Code::InternalError, "longer than its deadline");
    assert_eq!(ended.receipt.execution(), Some(Execution::NotBegun));
}

// A receipt has to fit into a frame, whatever a tool has to say about its failure.
#[tokio::test]
async fn the_words_of_a_tool_that_fails_are_bounded() {
    let world = World::new().await;
    let words = "x".repeat(3 << 20);
    let ended = world.run_tool("fail", json!({"detail": words})).await;
    assert_failed(&ended, "xxx");
    let reason = &crate::support::world::denial(&ended).reason;
    assert!(reason.len() <= 1 << 20, "{} bytes of reason", reason.len());
    let size = canonical::to_vec(&ended.receipt).unwrap().len();
    assert!(size < 16 << 20, "{size} bytes of receipt");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_tool_that_outlasts_its_deadline_is_not_known() {
    let deadline = Duration::from_secs(5);
    let world = Setup::default().config(|it| it.limits.deadline = deadline).start().await;
    let began = Instant::now();
    let ended = world.run_tool("hang", json!({})).await;
    let reason = "the call took longer than its deadline".to_owned();
    assert_eq!(ended.outcome, Outcome::Incomplete { reason, chunks: 0 });
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
        assert_eq!(execution(&ended), (Some(Execution::Begun), true));
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
async fn a_drain_waits_for_running_calls_and_breaks_off_the_rest() {
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
    assert_eq!(outcome, Outcome::Incomplete { reason, chunks: 0 });
    // The last checkpoint covers both.
    assert_eq!(world.checkpoints().await.last().unwrap().body.batch_end_seq, 2);
}

/// A caller that takes no more from chunk 1 on cancels; the tool has ended by then.
async fn call_off_after_the_tool(setup: Setup, arguments: Value) {
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
    assert!(matches!(ended.outcome, Outcome::Incomplete { .. }));
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
