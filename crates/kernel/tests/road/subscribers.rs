//! Subscribers of receipts: what they are handed, and that no call waits for them.

use std::sync::Arc;

use chio_core::canonical;
use chio_core::receipt::{LoggedReceipt, OperationKind};
use chio_kernel::DurableReceipt;
use serde_json::json;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::TryRecvError;

use crate::support::tokens::token;
use crate::support::{NOW, Setup, World, grant, guard};

/// What a subscriber has been handed so far.
fn handed(receipts: &mut Receiver<DurableReceipt>) -> Vec<DurableReceipt> {
    std::iter::from_fn(|| receipts.try_recv().ok()).collect()
}

/// Checks that a subscriber was handed the whole log, entry by entry.
async fn assert_whole_log(world: &World, handed: &[DurableReceipt]) {
    let logged = world.logged().await;
    assert_eq!(handed.len(), logged.len());
    for ((seq, logged), receipt) in (1..).zip(&logged).zip(handed) {
        assert_eq!((receipt.seq, receipt.at), (seq, NOW * 1000));
        let body = match logged {
            LoggedReceipt::Call(call) => canonical::to_vec(call),
            LoggedReceipt::Child(child) => canonical::to_vec(child),
        };
        assert_eq!(world.kernel.logged(seq).await.unwrap(), body.unwrap());
    }
}

#[tokio::test]
async fn a_subscriber_is_handed_every_receipt_of_calls_and_questions() {
    let world = Setup::default().guard(guard("calm")).start().await;
    let mut receipts = world.kernel.receipts();
    world.run_tool("echo", json!("hello")).await;
    world.run_tool("no such tool", json!({})).await;
    let caller = Arc::new(world.caller().answering(Ok(json!("yes"))));
    let token = token("cap-ask", &[grant("ask")]);
    let kind = serde_json::to_value(OperationKind::CreateMessage).unwrap();
    world.run_for(world.call(&token, "ask", json!({"kind": kind})), caller).await;
    let handed = handed(&mut receipts);
    assert_eq!(handed.len(), 4, "two calls, a question, and the call that asked it");
    assert_whole_log(&world, &handed).await;
}

#[tokio::test]
async fn what_is_not_durable_is_not_handed_on() {
    let world = World::new().await;
    let mut receipts = world.kernel.receipts();
    world.ledger.appending.fail(true);
    let caller = Arc::new(world.caller());
    let token = token("cap-1", &[grant("echo")]);
    let call = world.call(&token, "echo", json!({}));
    world.kernel.evaluate(call, caller).await.unwrap_err();
    assert!(handed(&mut receipts).is_empty());
}

#[tokio::test]
async fn a_subscriber_that_never_reads_keeps_no_call_waiting() {
    let world = World::new().await;
    let mut receipts = world.kernel.receipts();
    let token = token("cap-1", &[grant("echo")]);
    for n in 0..70 {
        let call = world.call(&token, "echo", json!(n));
        world.kernel.evaluate(call, Arc::new(world.caller())).await.unwrap();
    }
    assert!(matches!(receipts.try_recv(), Err(TryRecvError::Lagged(6))));
    assert_eq!(receipts.try_recv().unwrap().seq, 7, "then it goes on with the oldest that is kept");
}
