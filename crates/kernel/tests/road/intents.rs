//! What is durable when: no effect without an intent, no answer without a receipt.

use std::sync::Arc;
use std::time::Duration;

use chio_core::receipt::Decision;
use chio_core::registry::ErrorCode as Code;
use chio_kernel::store::StoreError;
use chio_kernel::{KernelError, Outcome, ToolCall};
use serde_json::json;

use crate::support::tokens::{counted, priced, token};
use crate::support::world::Ended;
use crate::support::world::assert_denied;
use crate::support::{Setup, TestCaller, World, grant};

async fn evaluate(world: &World, call: ToolCall) -> Result<Ended, KernelError> {
    world.kernel.evaluate(call, Arc::new(world.caller())).await.map(Ended::from)
}

#[tokio::test]
async fn no_effect_and_no_budget_without_a_durable_intent() {
    for (tool, grants) in [
        ("effect", [grant("effect")]),
        ("echo", [counted("echo", 1)]),
        ("paid", [priced("paid", 50)]),
        ("paid", [grant("paid")]),
    ] {
        let world = World::new().await;
        world.run_with(&grants, tool, json!({})).await;
        assert_eq!(world.journal.all(), ["reserve", &format!("run {tool}"), "append"]);
        let intent = world.ledger.reservations().remove(0).intent;
        assert_eq!((&*intent.tool_name, &*intent.policy_hash), (tool, "policy-1"));
        assert_eq!(world.open_intents().await, 0, "the receipt closes it");
    }
}

#[tokio::test]
async fn a_plain_read_only_call_writes_only_its_receipt() {
    let world = World::new().await;
    world.run_tool("echo", json!(1)).await;
    assert_eq!(world.journal.all(), ["run echo", "append"]);
}

#[tokio::test]
async fn an_intent_holds_all_that_a_receipt_needs() {
    let world = World::new().await;
    let call = world.call(&token("cap-1", &[grant("fail"), grant("effect")]), "effect", json!([1]));
    let request_id = call.request_id.clone();
    let ended = world.run(call).await;
    let reservation = world.ledger.reservations().remove(0);
    let intent = reservation.intent;
    assert_eq!((&intent.request_id, &*intent.capability_id), (&request_id, "cap-1"));
    assert_eq!(intent.action, ended.receipt.action);
    assert_eq!(intent.redaction, ended.receipt.redaction_mode);
    assert_eq!(intent.tenant_id.as_deref(), Some("tenant-1"));
    assert_eq!(intent.metadata.to_value()["receipt_context"]["request_id"], json!(request_id));
    assert_eq!(reservation.alternatives[0].grant_index, 1);
    assert_eq!(reservation.authority, ["cap-1"]);
}

#[tokio::test]
async fn a_store_that_cannot_reserve_denies_and_runs_nothing() {
    let world = World::new().await;
    world.ledger.reserving.fail(true);
    for (tool, grants) in
        [("effect", [grant("effect")]), ("echo", [counted("echo", 1)]), ("paid", [grant("paid")])]
    {
        let ended = world.run_with(&grants, tool, json!({})).await;
        assert_denied(&ended, Code::InternalError, "unavailable");
        assert_eq!(world.runs(tool), 0);
    }
    // A stream that cannot write its intent sends nothing.
    let caller = Arc::new(world.caller());
    let call = world.call(&token("cap-1", &[grant("*")]), "stream", json!({"chunks": [1]}));
    let ended = world.run_for(call, Arc::<TestCaller>::clone(&caller)).await;
    assert_denied(&ended, Code::InternalError, "unavailable");
    assert!(caller.chunks().is_empty());
}

#[tokio::test]
async fn no_answer_leaves_when_its_receipt_is_not_durable() {
    let world = World::new().await;
    let token = token("cap-1", &[grant("*")]);
    world.ledger.appending.fail(true);
    for (tool, open) in [("echo", 0), ("effect", 1), ("fail", 1)] {
        let failed = evaluate(&world, world.call(&token, tool, json!(1))).await;
        let expected = StoreError::Unavailable("told to fail".to_owned());
        assert_eq!(failed, Err(KernelError::Store(expected)), "{tool}");
        assert_eq!(world.open_intents().await, open, "{tool}");
    }
    // A denial has no answer either.
    let failed = evaluate(&world, world.call(&token, "nothing", json!(1))).await;
    assert!(failed.is_err());
    assert!(world.logged().await.is_empty());
    assert_eq!(world.kernel.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_without_its_receipt_is_closed_once_as_soon_as_the_store_works_again() {
    let beat = Duration::from_secs(1);
    let world = Setup::default().config(|it| it.sweep_interval = beat).start().await;
    let token = token("cap-1", &[grant("*"), counted("echo", 5)]);
    world.ledger.appending.fail(true);
    let call = world.call(&token, "effect", json!({"n": 1}));
    let request_id = call.request_id.clone();
    assert!(evaluate(&world, call).await.is_err());
    tokio::time::sleep(beat * 5).await;
    assert_eq!(world.open_intents().await, 1, "it cannot be closed yet");
    world.ledger.appending.fail(false);
    tokio::time::sleep(beat * 5).await;
    let receipts = world.receipts_of(&request_id).await;
    assert_eq!((receipts.len(), world.open_intents().await), (1, 0));
    let receipt = &receipts[0];
    receipt.verify().unwrap();
    assert!(matches!(&receipt.decision, Some(Decision::Incomplete { reason })
        if reason.contains("could not be made durable")));
    assert_eq!(receipt.action.parameters, json!({"n": 1}));
    let metadata = receipt.metadata.as_ref().unwrap();
    assert_eq!(metadata["attribution"]["grant_index"], json!(0));
    assert_eq!(metadata["recovery"]["started_at"], json!(crate::support::NOW));
    assert_eq!(world.runs("effect"), 1, "nothing runs again");
    world.kernel.drain(Duration::ZERO).await.unwrap();
    assert!(world.audit().await.is_clean());
}

#[tokio::test(start_paused = true)]
async fn a_read_only_call_without_its_receipt_leaves_nothing() {
    let beat = Duration::from_secs(1);
    let world = Setup::default().config(|it| it.sweep_interval = beat).start().await;
    world.ledger.appending.fail(true);
    let call = world.call(&token("cap-1", &[grant("echo")]), "echo", json!(1));
    assert!(evaluate(&world, call).await.is_err());
    world.ledger.appending.fail(false);
    tokio::time::sleep(beat * 5).await;
    assert!(world.logged().await.is_empty());
    // The next receipt is the first of the log.
    assert_eq!(world.run_tool("echo", json!(1)).await.seq, 1);
}

#[tokio::test(start_paused = true)]
async fn a_sweep_leaves_running_calls_alone() {
    let beat = Duration::from_secs(1);
    let setup = Setup::default().config(|it| {
        it.sweep_interval = beat;
        it.limits.deadline = beat * 1000;
    });
    let world = setup.start().await;
    let token = token("cap-1", &[grant("*")]);
    let caller = Arc::new(world.caller());
    let call = world.call(&token, "gate", json!({}));
    let request_id = call.request_id.clone();
    let running = world.spawn(call, &caller);
    world.until("run gate").await;
    // Another call is orphaned in the meantime, so that the sweep has something to look for.
    world.ledger.appending.fail(true);
    assert!(evaluate(&world, world.call(&token, "effect", json!(1))).await.is_err());
    world.ledger.appending.fail(false);
    tokio::time::sleep(beat * 5).await;
    assert_eq!((world.logged().await.len(), world.open_intents().await), (1, 1));
    world.gate.add_permits(1);
    let ended = running.await.unwrap().unwrap();
    assert!(matches!(ended.outcome, Outcome::Value(_)));
    world.check(&request_id, &ended).await;
}

/// A call is cancelled while the store keeps the answer about its intent to itself.
async fn cancel_during_the_first_write(setup: Setup, cancels: bool) {
    let world = setup.start().await;
    world.ledger.reserving.answer_late_once();
    let caller = Arc::new(world.caller());
    let call = world.call(&token("cap-1", &[grant("*")]), "stream", json!({"chunks": [1]}));
    let request_id = call.request_id.clone();
    let running = world.spawn(call, &caller);
    world.until("reserve").await;
    if cancels {
        caller.cancel();
    }
    let ended = running.await.unwrap().unwrap();
    world.check(&request_id, &ended).await;
    match ended.outcome {
        Outcome::Cancelled { .. } if cancels => {}
        Outcome::Incomplete { .. } if !cancels => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(world.open_intents().await, 0, "the receipt closes the intent of its call");
    // The kernel that starts next finds nothing to recover.
    let next = world.shut_down().await.start().await;
    assert_eq!(next.receipts_of(&request_id).await.len(), 1, "one call, one receipt");
    assert!(next.audit().await.is_clean());
}

// The intent of a read-only stream is written inside the tool's run, which ends with the call.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_cancelled_while_its_intent_is_written_has_one_receipt() {
    cancel_during_the_first_write(Setup::default(), true).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_time_is_up_while_its_intent_is_written_has_one_receipt() {
    let setup = Setup::default().config(|it| it.limits.deadline = Duration::from_secs(1));
    cancel_during_the_first_write(setup, false).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_somebody_else_has_closed_has_no_second_receipt() {
    use chio_kernel::store::{ApprovalState, Closing, Entry, Ledger as _};
    let world = World::new().await;
    let caller = Arc::new(world.caller());
    let call = world.call(&token("cap-1", &[grant("*")]), "gate", json!({}));
    let running = world.spawn(call, &caller);
    world.until("run gate").await;
    let open = world.ledger.open_intents().await.unwrap().remove(0);
    let closes = Some(Closing {
        intent: open.id,
        refunds: Vec::new(),
        receipt_id: String::new(),
        unanswered: ApprovalState::Cancelled,
        task: None,
        closed_at: crate::support::NOW,
    });
    world.ledger.append(Entry { closes, ..Entry::new(b"{}".to_vec()) }).await.unwrap();
    world.gate.add_permits(1);
    assert_eq!(running.await.unwrap(), Err(KernelError::Recovered));
    assert_eq!(world.store.entries(&world.log_id(), 1, 9).await.unwrap().len(), 1);
}
