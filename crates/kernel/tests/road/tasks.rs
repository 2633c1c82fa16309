//! Deferred tasks as the kernel sees them: claimed before anything else, once, and over with the
//! receipt of the call.

use std::sync::Arc;
use std::time::Duration;

use chio_core::capability::CapabilityToken;
use chio_core::protocol::DiscoveryProtocol;
use chio_core::receipt::{ChioReceipt, Decision};
use chio_kernel::store::{
    ApprovalState, CallTask, NewTask, StoreError, Task, TaskQuota, TaskRefused, TaskState,
};
use chio_kernel::{KernelError, Outcome, ToolCall};
use chio_testkit::key;
use serde_json::{Value, json};

use crate::support::tokens::{agent, token};
use crate::support::world::{denial, runtime, value};
use crate::support::{NOW, SERVER, Setup, World, grant};

fn cap() -> CapabilityToken {
    token("cap-1", &[grant("*")])
}

fn new_task(id: &str) -> NewTask {
    NewTask::new(id, agent().public_key().clone(), DiscoveryProtocol::Native, SERVER)
}

/// Takes a task of the agent's on.
async fn defer(world: &World, id: &str) {
    let task = NewTask {
        request: b"what was asked for".to_vec(),
        created_at: NOW,
        expires_at: NOW + 60,
        ..new_task(id)
    };
    world.store.create_task(task, TaskQuota::of_open(100)).await.unwrap().unwrap();
}

async fn task(world: &World, id: &str) -> Task {
    world.store.task(id, agent().public_key(), NOW).await.unwrap().unwrap()
}

/// The call that a task is.
fn call(world: &World, id: &str, tool: &str, arguments: Value) -> ToolCall {
    ToolCall { task_id: Some(id.to_owned()), ..world.call(&cap(), tool, arguments) }
}

/// Checks that the task ended with this call.
async fn check(
    world: &World,
    id: &str,
    state: TaskState,
    outcome: &Outcome,
    receipt: &ChioReceipt,
) {
    let task = task(world, id).await;
    let receipt_id = task.receipt.as_ref().map(|receipt| &receipt.id);
    assert_eq!((task.state, receipt_id), (state, Some(&receipt.id)));
    let result: Outcome = serde_json::from_slice(task.result.as_ref().unwrap()).unwrap();
    assert_eq!(&result, outcome);
    assert!(task.new.request.is_empty(), "what was kept to run it is gone");
    assert_eq!(world.open_intents().await, 0);
}

#[tokio::test]
async fn a_task_ends_with_the_receipt_of_its_call_however_that_ends() {
    let world = World::new().await;
    for (tool, state) in [
        ("echo", TaskState::Completed),
        ("effect", TaskState::Completed),
        ("fail", TaskState::Failed),
        ("panic", TaskState::Failed),
        ("nothing", TaskState::Failed),
    ] {
        defer(&world, tool).await;
        let ended = world.run(call(&world, tool, tool, json!({}))).await;
        assert_eq!(matches!(ended.outcome, Outcome::Value(_)), state == TaskState::Completed);
        check(&world, tool, state, &ended.outcome, &ended.receipt).await;
    }
}

#[tokio::test]
async fn a_task_that_is_cancelled_while_it_runs_is_cancelled() {
    let world = World::new().await;
    defer(&world, "t").await;
    let caller = Arc::new(world.caller());
    let running = world.spawn(call(&world, "t", "hang", json!({})), &caller);
    world.until("run hang").await;
    assert_eq!(task(&world, "t").await.state, TaskState::Running);
    caller.cancel();
    let ended = running.await.unwrap().unwrap();
    check(&world, "t", TaskState::Cancelled, &ended.outcome, &ended.receipt).await;
}

#[tokio::test]
async fn a_task_that_cannot_be_claimed_does_not_run_and_leaves_no_receipt() {
    let world = World::new().await;
    for id in ["over", "running", "off", "theirs", "late"] {
        defer(&world, id).await;
    }
    world.run(call(&world, "over", "echo", json!(1))).await;
    let caller = Arc::new(world.caller());
    let running = world.spawn(call(&world, "running", "hang", json!({})), &caller);
    world.until("run hang").await;
    world.store.cancel_task("off", agent().public_key(), NOW).await.unwrap().unwrap();
    let stranger = |mut call: ToolCall| {
        call.agent = key(9).public_key().clone();
        call
    };
    let before = world.logged().await.len();
    let cases = [
        (call(&world, "unknown", "effect", json!(1)), TaskRefused::Unknown),
        (call(&world, "over", "effect", json!(1)), TaskRefused::Over(TaskState::Completed)),
        (call(&world, "running", "effect", json!(1)), TaskRefused::Running),
        (call(&world, "off", "effect", json!(1)), TaskRefused::Over(TaskState::Cancelled)),
        (stranger(call(&world, "theirs", "effect", json!(1))), TaskRefused::NotOwner),
    ];
    for (call, refused) in cases {
        let ended = world.kernel.evaluate(call, Arc::new(world.caller())).await;
        assert_eq!(ended.unwrap_err(), KernelError::NotClaimed(refused));
    }
    world.clock.set(NOW + 60);
    let late = call(&world, "late", "effect", json!(1));
    let ended = world.kernel.evaluate(late, Arc::new(world.caller())).await;
    assert_eq!(ended.unwrap_err(), KernelError::NotClaimed(TaskRefused::Unknown));
    assert_eq!((world.runs("effect"), world.logged().await.len()), (0, before));
    caller.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_claim_that_is_not_durable_runs_nothing() {
    let world = World::new().await;
    defer(&world, "t").await;
    world.ledger.opening.fail(true);
    let failing = call(&world, "t", "effect", json!(1));
    let ended = world.kernel.evaluate(failing, Arc::new(world.caller())).await;
    assert!(matches!(ended, Err(KernelError::Store(StoreError::Unavailable(_)))), "{ended:?}");
    world.ledger.opening.fail(false);
    assert_eq!((task(&world, "t").await.state, world.runs("effect")), (TaskState::Waiting, 0));
    let ended = world.run(call(&world, "t", "effect", json!(1))).await;
    assert_eq!(value(&ended), &json!(1));
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_tool_needs_approval_waits_for_it_claimed() {
    let world = Setup::default().approved().start().await;
    defer(&world, "yes").await;
    let parked = world.park(call(&world, "yes", "approved", json!(1))).await;
    assert_eq!(
        (task(&world, "yes").await.state, world.open_intents().await),
        (TaskState::Running, 1)
    );
    world.approve(&parked).await;
    let (ended, row) = world.ended(parked).await;
    assert_eq!(row.state, ApprovalState::Used);
    check(&world, "yes", TaskState::Completed, &ended.outcome, &ended.receipt).await;
    defer(&world, "none").await;
    let parked = world.park(call(&world, "none", "approved", json!(1))).await;
    let (ended, row) = world.ended(parked).await;
    assert!(denial(&ended).reason.contains("nobody gave it in time"));
    assert_eq!(row.state, ApprovalState::Expired);
    check(&world, "none", TaskState::Failed, &ended.outcome, &ended.receipt).await;
    assert_eq!(world.runs("approved"), 1);
}

/// The one receipt of a task's call that a crash cut off. The task is failed and stays so.
async fn after_crash(world: &World, id: &str, request_id: &str) -> ChioReceipt {
    let mut receipts = world.receipts_of(request_id).await;
    assert_eq!((receipts.len(), world.open_intents().await), (1, 0));
    let (receipt, task) = (receipts.remove(0), task(world, id).await);
    receipt.verify().unwrap();
    assert_eq!((task.state, &task.result), (TaskState::Failed, &None));
    assert_eq!(task.receipt.as_ref().map(|it| &it.id), Some(&receipt.id));
    assert!(task.new.request.is_empty());
    let again = call(world, id, "effect", json!(1));
    let again = world.kernel.evaluate(again, Arc::new(world.caller())).await;
    let over = TaskRefused::Over(TaskState::Failed);
    assert_eq!(again.unwrap_err(), KernelError::NotClaimed(over));
    receipt
}

#[test]
fn a_kernel_that_dies_while_a_task_runs_leaves_it_failed_with_an_incomplete_receipt() {
    // One with side effects, and one without.
    for tool in ["gate", "hang"] {
        let runtime_one = runtime();
        let (world, request_id) = runtime_one.block_on(async {
            let world = World::new().await;
            defer(&world, "t").await;
            let call = call(&world, "t", tool, json!({}));
            let request_id = call.request_id.clone();
            drop(world.spawn(call, &Arc::new(world.caller())));
            while world.runs(tool) == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            (world, request_id)
        });
        let next = world.crash(runtime_one);
        runtime().block_on(async {
            let world = next.start().await;
            let receipt = after_crash(&world, "t", &request_id).await;
            assert!(matches!(receipt.decision, Some(Decision::Incomplete { .. })));
            let attribution = &receipt.metadata.as_ref().unwrap()["attribution"];
            assert_eq!(attribution.get("verified"), None, "its token was found to hold");
            assert_eq!(world.runs(tool), 1);
        });
    }
}

#[test]
fn a_kernel_that_dies_right_after_the_claim_leaves_the_task_failed() {
    let runtime_one = runtime();
    let (world, request_id) = runtime_one.block_on(async {
        let world = World::new().await;
        defer(&world, "t").await;
        // The claim is durable, and the kernel never gets to know.
        world.ledger.opening.answer_late_once();
        let call = call(&world, "t", "effect", json!({}));
        let request_id = call.request_id.clone();
        drop(world.spawn(call, &Arc::new(world.caller())));
        while world.journal.count("open") == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        (world, request_id)
    });
    let next = world.crash(runtime_one);
    runtime().block_on(async {
        let world = next.start().await;
        let receipt = after_crash(&world, "t", &request_id).await;
        assert!(matches!(receipt.decision, Some(Decision::Incomplete { .. })));
        let attribution = &receipt.metadata.as_ref().unwrap()["attribution"];
        assert_eq!(attribution["verified"], json!(false), "nobody has looked at the token");
        assert_eq!(world.runs("effect"), 0);
    });
}

#[test]
fn a_kernel_that_dies_while_a_task_waits_for_approval_leaves_it_failed_and_never_run() {
    let runtime_one = runtime();
    let (world, parked) = runtime_one.block_on(async {
        let world = Setup::default().approved().start().await;
        defer(&world, "t").await;
        let parked = world.park(call(&world, "t", "approved", json!(1))).await;
        (world, parked)
    });
    let next = world.crash(runtime_one);
    runtime().block_on(async {
        let world = next.start().await;
        let receipt = after_crash(&world, "t", &parked.request_id).await;
        assert!(matches!(receipt.decision, Some(Decision::Cancelled { .. })));
        let row = world.row(&parked.approval.request.id).await;
        assert_eq!(row.state, ApprovalState::Cancelled);
        assert_eq!(world.runs("approved"), 0);
    });
}

#[tokio::test]
async fn a_task_of_a_call_is_stored_with_its_intent_or_with_its_receipt() {
    let world = World::new().await;
    let keeping = |id: &str, tool: &str| {
        let quota = TaskQuota::of_open(1);
        let task = CallTask { new: new_task(id), quota };
        ToolCall { task: Some(Arc::new(task)), ..world.call(&cap(), tool, json!({})) }
    };
    for (tool, state) in [
        ("echo", TaskState::Completed),
        ("effect", TaskState::Completed),
        ("fail", TaskState::Failed),
        ("nothing", TaskState::Failed),
    ] {
        let ended = world.run(keeping(tool, tool)).await;
        check(&world, tool, state, &ended.outcome, &ended.receipt).await;
        let body = task(&world, tool).await.receipt.unwrap().body.unwrap();
        let stored: ChioReceipt = serde_json::from_slice(&body).unwrap();
        assert_eq!(stored.id, ended.receipt.id, "{tool}");
    }
    // From the intent on it is there: what a crash leaves open ends with it.
    let caller = Arc::new(world.caller());
    let running = world.spawn(keeping("effect hangs", "hang"), &caller);
    world.until("run hang").await;
    let stored = world.store.task("effect hangs", agent().public_key(), NOW).await.unwrap();
    let has_intent = world.open_intents().await == 1;
    assert_eq!(stored.is_ok_and(|task| task.state == TaskState::Running), has_intent);
    caller.cancel();
    let ended = running.await.unwrap().unwrap();
    let state = TaskState::Cancelled;
    check(&world, "effect hangs", state, &ended.outcome, &ended.receipt).await;
}

#[tokio::test]
async fn a_task_that_is_cancelled_before_it_runs_leaves_a_receipt_that_says_so() {
    let world = World::new().await;
    defer(&world, "t").await;
    let caller = Arc::new(world.caller());
    caller.cancel();
    let called = call(&world, "t", "effect", json!(1));
    let ended = world.kernel.evaluate(called, caller).await.unwrap();
    assert!(matches!(ended.outcome, Outcome::Cancelled { .. }), "{:?}", ended.outcome);
    let receipt: ChioReceipt = serde_json::from_slice(&ended.receipt.bytes).unwrap();
    assert!(matches!(receipt.decision, Some(Decision::Cancelled { .. })));
    let metadata = serde_json::to_value(&receipt.metadata).unwrap();
    assert_eq!(metadata["execution"], "not_begun");
    assert_eq!((task(&world, "t").await.state, world.runs("effect")), (TaskState::Cancelled, 0));
}
