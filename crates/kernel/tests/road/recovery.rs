//! Kernels that stop in the middle of things: what the next one, or a neighbour, makes of it.

use std::sync::Arc;

use chio_core::capability::ToolGrant;
use chio_core::receipt::{Decision, Execution};
use chio_core::registry::ErrorCode as Code;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

use crate::support::tokens::{agent, child, counted, priced, token};
use crate::support::world::assert_denied;
use crate::support::{Setup, World, grant};

/// A runtime of its own, so that a crash is the end of all its tasks.
fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// Starts a kernel, has it run a call of a tool that waits, and lets it die.
fn crash(grants: &[ToolGrant], tool: &'static str) -> (Setup, String) {
    let runtime = runtime();
    let (world, request_id) = runtime.block_on(async {
        let world = World::new().await;
        let token = token("cap-1", grants);
        world.run(world.call(&token, "echo", json!("before"))).await;
        let call = world.call(&token, tool, json!({"n": 1}));
        let request_id = call.request_id.clone();
        let caller = Arc::new(world.caller());
        drop(world.spawn(call, &caller));
        while world.runs(tool) == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        (world, request_id)
    });
    let next = Setup::beside(&world);
    drop(runtime);
    drop(world);
    (next, request_id)
}

#[test]
fn the_next_start_signs_for_calls_that_a_crash_cut_off() {
    let (next, request_id) = crash(&[grant("*")], "gate");
    runtime().block_on(async {
        let world = next.start().await;
        let receipts = world.receipts_of(&request_id).await;
        assert_eq!((receipts.len(), world.open_intents().await), (1, 0));
        receipts[0].verify().unwrap();
        assert!(matches!(&receipts[0].decision, Some(Decision::Incomplete { reason })
            if reason.contains("the kernel stopped before the call ended")));
        assert_eq!(receipts[0].execution(), Some(Execution::Unknown));
        assert_eq!(receipts[0].action.parameters, json!({"n": 1}));
        assert_eq!(world.logged().await.len(), 2, "the same log goes on");
        // The start signs a checkpoint over what it found and what it made.
        assert_eq!(world.checkpoints().await.last().unwrap().body.batch_end_seq, 2);
        assert!(world.audit().await.is_clean());
        assert_eq!(world.runs("gate"), 1, "nothing runs again");
        let again = world.shut_down().await.start().await;
        assert_eq!(again.receipts_of(&request_id).await.len(), 1);
    });
}

#[test]
fn recovery_charges_all_that_was_held() {
    let grants = [grant("echo"), priced("paid_gate", 15)];
    let (next, request_id) = crash(&grants, "paid_gate");
    runtime().block_on(async {
        let world = next.start().await;
        let receipt = world.receipts_of(&request_id).await.remove(0);
        let metadata = receipt.metadata.unwrap();
        assert_eq!(metadata["attribution"]["grant_index"], json!(1));
        let financial =
            json!({"cost_charged": 10, "currency": "USD", "settlement_status": "settled"});
        assert_eq!(metadata["financial"], financial);
        let call = world.call(&token("cap-1", &grants), "paid_gate", json!({}));
        assert_denied(&world.run(call).await, Code::BudgetExhausted, "cost budget exhausted");
    });
}

#[test]
fn recovery_keeps_the_count() {
    let grants = [grant("echo"), counted("gate", 1)];
    let (next, _) = crash(&grants, "gate");
    runtime().block_on(async {
        let world = next.start().await;
        let call = world.call(&token("cap-1", &grants), "gate", json!({}));
        assert_denied(&world.run(call).await, Code::BudgetExhausted, "invocation budget");
    });
}

#[test]
fn a_neighbour_signs_for_a_kernel_that_is_gone() {
    let (next, request_id) = crash(&[grant("*")], "gate");
    runtime().block_on(async {
        // The neighbour has a log of its own: the crashed kernel's place is taken meanwhile.
        let crashed = next;
        let slot = crashed.hold_slot().await;
        let beat = std::time::Duration::from_millis(5);
        let neighbour = crashed.config(|it| it.sweep_interval = beat).start().await;
        let intents = slot.ledger.open_intents().await.unwrap();
        assert_eq!(intents.len(), 1);
        assert!(neighbour.receipts_of(&request_id).await.is_empty(), "its place is held");
        let ledger = Arc::downgrade(&slot.ledger);
        drop(slot);
        assert_eq!(ledger.strong_count(), 0);
        for _ in 0..1000 {
            if !neighbour.receipts_of(&request_id).await.is_empty() {
                break;
            }
            tokio::time::sleep(beat).await;
        }
        let receipts = neighbour.receipts_of(&request_id).await;
        assert_eq!(receipts.len(), 1);
        receipts[0].verify().unwrap();
        assert_eq!(receipts[0].kernel_key, *neighbour.kernel.public_key());
        neighbour.kernel.drain(beat).await.unwrap();
        assert!(neighbour.audit().await.is_clean());
    });
}

#[test]
fn an_ancestor_pays_for_a_call_that_was_cut_off() {
    let runtime_one = runtime();
    let parent = token("parent", &[counted("gate", 1)]);
    let handed_on = child("child", &parent, &agent(), &chio_testkit::key(3), &[counted("gate", 1)]);
    let world = runtime_one.block_on(async {
        let world = World::new().await;
        world.store.remember(&parent).await.unwrap();
        let call = world.call(&handed_on, "gate", json!({}));
        drop(world.spawn(call, &Arc::new(world.caller())));
        while world.runs("gate") == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        world
    });
    let next = Setup::beside(&world);
    drop(runtime_one);
    drop(world);
    runtime().block_on(async {
        let world = next.start().await;
        let ended = world.run(world.call(&parent, "gate", json!({}))).await;
        assert_denied(&ended, Code::BudgetExhausted, "grant 0 of `parent`");
    });
}

// The kernel that starts next, in this process or in another, waits for this lock.
#[tokio::test(start_paused = true)]
async fn a_kernel_that_is_dropped_lets_go_of_its_log() {
    let world = World::new().await;
    world.run_tool("effect", json!(1)).await;
    let log_id = world.log_id();
    let next = world.let_go().await.start().await;
    assert_eq!(next.log_id(), log_id);
    assert_eq!(next.run_tool("effect", json!(1)).await.seq, 2);
}
