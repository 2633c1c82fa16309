//! Nested questions: what a tool asks back, and the child receipts that tell of it.

use std::sync::Arc;
use std::time::Duration;

use chio_core::receipt::{ChildOutcome, ChildReceipt, LoggedReceipt, OperationKind, TerminalState};
use chio_core::signed::Signed;
use chio_kernel::{AskError, Outcome};
use serde_json::{Value, json};

use crate::support::tokens::token;
use crate::support::world::Ended;
use crate::support::world::value;
use crate::support::{NOW, Setup, TestCaller, World, grant};

/// Runs the tool that asks.
async fn ask(world: &World, caller: TestCaller, arguments: Value) -> (Ended, Arc<TestCaller>) {
    let caller = Arc::new(caller);
    let token = token(&format!("cap-{}", world.kernel.new_request_id()), &[grant("ask")]);
    let call = world.call(&token, "ask", arguments);
    (world.run_for(call, Arc::<TestCaller>::clone(&caller)).await, caller)
}

async fn children(world: &World) -> Vec<ChildReceipt> {
    let child = |logged| match logged {
        LoggedReceipt::Child(child) => Some(*child),
        LoggedReceipt::Call(_) => None,
    };
    world.logged().await.into_iter().filter_map(child).collect()
}

/// The only child receipt of the only call.
async fn only_child(world: &World, parent: &Ended) -> ChildReceipt {
    let mut children = children(world).await;
    assert_eq!(children.len(), 1);
    let child = children.remove(0);
    child.check_signature().unwrap();
    assert_eq!(child.kernel_key, *world.kernel.public_key());
    let context = &parent.receipt.metadata.as_ref().unwrap()["receipt_context"];
    assert_eq!(json!(child.parent_request_id), context["request_id"]);
    assert_ne!(child.request_id, child.parent_request_id);
    assert_eq!((&*child.session_id, &*child.policy_hash), ("session-1", "policy-1"));
    assert!(child.id.starts_with("child-rcpt-"));
    assert_eq!(child.timestamp, NOW);
    child
}

#[tokio::test]
async fn the_receipt_of_a_question_is_durable_before_the_tool_has_the_answer() {
    let world = World::new().await;
    let caller = world.caller().answering(Ok(json!({"text": "blue"})));
    let (ended, caller) = ask(&world, caller, json!({"prompt": "colour?"})).await;
    assert_eq!(*value(&ended), json!({"answer": {"text": "blue"}}));
    let events = ["run ask", "reserve", "ask", "append", "answered", "append"];
    assert_eq!(world.journal.all(), events);
    let question = caller.questions().remove(0);
    assert_eq!(question.kind, OperationKind::CreateMessage);
    assert_eq!(question.params, json!({"prompt": "colour?"}));
    let child = only_child(&world, &ended).await;
    assert_eq!(child.operation_kind, OperationKind::CreateMessage);
    assert_eq!(child.terminal_state, TerminalState::Completed);
    let outcome = ChildOutcome::Result(json!({"text": "blue"}));
    assert_eq!(child.outcome_hash, outcome.hash().unwrap());
    assert_eq!(child.metadata, Some(json!({"outcome": "result"})), "not the answer itself");
    assert_eq!(ended.seq, 2);
}

#[tokio::test]
async fn every_kind_of_question_is_named() {
    let world = World::new().await;
    for kind in ["create_message", "create_elicitation", "list_roots"] {
        let caller = world.caller().answering(Ok(json!(1)));
        ask(&world, caller, json!({"kind": kind})).await;
        let child = children(&world).await.pop().unwrap();
        assert_eq!(json!(child.operation_kind), json!(kind));
    }
}

#[tokio::test]
async fn a_question_that_has_no_answer_leaves_a_receipt_too() {
    for error in [AskError::Unsupported, AskError::Failed("busy".to_owned())] {
        let world = World::new().await;
        let caller = world.caller().answering(Err(error.clone()));
        let (ended, _) = ask(&world, caller, json!({})).await;
        assert_eq!(*value(&ended), json!({"no_answer": error.to_string()}));
        let child = only_child(&world, &ended).await;
        assert_eq!(child.terminal_state, TerminalState::Completed);
        let outcome = ChildOutcome::Error(error.to_string());
        assert_eq!(child.outcome_hash, outcome.hash().unwrap());
        let metadata = json!({"outcome": "error", "message": error.to_string()});
        assert_eq!(child.metadata, Some(metadata));
    }
}

#[tokio::test]
async fn a_caller_that_is_gone_leaves_a_question_cancelled() {
    let world = World::new().await;
    let caller = world.caller().answering(Err(AskError::Gone));
    let (ended, _) = ask(&world, caller, json!({})).await;
    let child = only_child(&world, &ended).await;
    assert!(matches!(child.terminal_state, TerminalState::Cancelled { .. }));
}

/// A call whose question is never answered, up to the question.
async fn unanswered(world: &World) -> (Arc<TestCaller>, tokio::task::JoinHandle<Ended>) {
    let caller = Arc::new(world.caller().silent());
    let call = world.call(&token("cap-1", &[grant("ask")]), "ask", json!({}));
    let running = world.spawn(call, &caller);
    world.until("ask").await;
    (caller, tokio::spawn(async move { running.await.unwrap().unwrap() }))
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_cancelled_is_cancelled_in_its_receipt() {
    let world = World::new().await;
    let (caller, running) = unanswered(&world).await;
    caller.cancel();
    let ended = running.await.unwrap();
    let child = only_child(&world, &ended).await;
    assert!(matches!(child.terminal_state, TerminalState::Cancelled { .. }));
    assert_eq!(world.open_intents().await, 0);
}

// A question that left is known to the caller: whatever ends the call, it needs its receipt.
#[tokio::test(start_paused = true)]
async fn a_question_that_is_cancelled_has_its_receipt_also_on_a_slow_store() {
    let world = World::new().await;
    let (caller, running) = unanswered(&world).await;
    world.ledger.appending.write_late_once();
    caller.cancel();
    let ended = running.await.unwrap();
    assert!(matches!(ended.outcome, Outcome::Cancelled { .. } | Outcome::Value(_)));
    only_child(&world, &ended).await;
}

#[tokio::test(start_paused = true)]
async fn a_question_that_outlasts_the_deadline_has_its_receipt() {
    let setup = Setup::default().config(|it| it.limits.deadline = Duration::from_secs(5));
    let world = setup.start().await;
    let (_caller, running) = unanswered(&world).await;
    let ended = running.await.unwrap();
    assert!(matches!(ended.outcome, Outcome::Incomplete { .. }));
    let child = only_child(&world, &ended).await;
    assert!(!matches!(child.terminal_state, TerminalState::Completed));
}

#[tokio::test]
async fn an_answer_whose_receipt_is_not_durable_does_not_reach_the_tool() {
    let world = World::new().await;
    let caller = Arc::new(world.caller().answering(Ok(json!("a secret answer"))));
    let call = world.call(&token("cap-1", &[grant("ask")]), "ask", json!({}));
    world.ledger.appending.fail(true);
    let failed = world.kernel.evaluate(call, caller).await;
    assert!(failed.is_err(), "and the call's own receipt is not durable either");
    assert_eq!(world.journal.all(), ["run ask", "reserve", "ask", "answered"]);
    assert!(world.logged().await.is_empty());
    assert_eq!(world.open_intents().await, 1, "the intent tells of the question");
}

#[tokio::test]
async fn a_question_does_not_leave_without_an_intent() {
    let world = World::new().await;
    world.ledger.reserving.fail(true);
    let caller = world.caller().answering(Ok(json!(1)));
    let (ended, caller) = ask(&world, caller, json!({})).await;
    assert!(matches!(ended.outcome, Outcome::Denied(_)));
    assert!(caller.questions().is_empty());
    assert!(children(&world).await.is_empty());
}

#[tokio::test]
async fn a_question_belongs_to_its_calls_trace() {
    let world = World::new().await;
    let token = token("cap-1", &[grant("ask")]);
    let mut call = world.call(&token, "ask", json!({}));
    call.trace_id = Some("trace-7".to_owned());
    let ended = world.run_for(call, Arc::new(world.caller().answering(Ok(json!(1))))).await;
    let child = only_child(&world, &ended).await;
    assert_eq!(child.metadata.unwrap()["traceId"], json!("trace-7"));
}
