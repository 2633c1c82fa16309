//! What a receipt must not keep.

use chio_core::canonical;
use chio_core::receipt::RedactionMode;
use chio_kernel::store::Ledger as _;
use chio_kernel::{GuardOutcome, KernelError, Outcome, Verdict};
use serde_json::json;

use crate::support::tokens::token;
use crate::support::{Setup, World, grant, guard};

const SECRET: &str = "hunter2-hunter2";
const OTHER_SECRET: &str = "swordfish";

/// Checks that no entry of the log, and no intent, has this text.
async fn assert_nowhere(world: &World, text: &str) {
    for logged in world.logged().await {
        let body = String::from_utf8(canonical::to_vec(&logged).unwrap()).unwrap();
        assert!(!body.contains(text), "{body}");
    }
    for reservation in world.ledger.reservations() {
        let intent = serde_json::to_string(&reservation).unwrap();
        assert!(!intent.contains(text), "{intent}");
    }
    let open = world.ledger.open_intents().await.unwrap();
    assert!(!format!("{open:?}").contains(text), "{open:?}");
}

#[tokio::test]
async fn a_secret_that_a_guard_finds_is_in_no_receipt_and_in_no_intent() {
    let world = Setup::default().guard(guard("secrets").redacts("password")).start().await;
    let token = token("cap-1", &[grant("*")]);
    for tool in ["echo", "effect", "fail", "stream"] {
        let arguments = json!({"password": SECRET, "user": "me", "chunks": [1]});
        let ended = world.run(world.call(&token, tool, arguments.clone())).await;
        if let Outcome::Value(value) = &ended.outcome {
            assert_eq!(*value, arguments, "the tool gets what was sent");
        }
        let kept = json!({"password": "[redacted]", "user": "me", "chunks": [1]});
        let receipt = &ended.receipt;
        assert_eq!(receipt.action.parameters, kept);
        assert_eq!(receipt.action.parameter_hash, canonical::hash(&kept).unwrap());
        assert_eq!(receipt.redaction_mode, RedactionMode::Redacted);
        assert_eq!(receipt.evidence[0].details.as_deref(), Some("a secret in `password`"));
    }
    assert_nowhere(&world, SECRET).await;
}

#[tokio::test]
async fn a_guard_that_denies_for_a_secret_redacts_too() {
    let denying = guard("secrets").checks(|_| {
        let verdict = Verdict::Deny("a secret".to_owned());
        Ok(GuardOutcome { verdict, evidence: None, redacted: Some(json!({"gone": true})) })
    });
    let world = Setup::default().guard(denying).start().await;
    let ended = world.run_tool("effect", json!({"password": SECRET})).await;
    assert_eq!(ended.receipt.action.parameters, json!({"gone": true}));
    assert_eq!(ended.receipt.redaction_mode, RedactionMode::Redacted);
    assert_nowhere(&world, SECRET).await;
}

#[tokio::test]
async fn an_intent_that_is_recovered_stays_redacted() {
    let world = Setup::default().guard(guard("secrets").redacts("password")).start().await;
    world.ledger.appending.fail(true);
    let token = token("cap-1", &[grant("effect")]);
    let call = world.call(&token, "effect", json!({"password": SECRET}));
    let request_id = call.request_id.clone();
    let caller = std::sync::Arc::new(world.caller());
    let failed: Result<_, KernelError> = world.kernel.evaluate(call, caller).await;
    assert!(failed.is_err());
    assert_nowhere(&world, SECRET).await;
    world.ledger.appending.fail(false);
    world.kernel.drain(std::time::Duration::ZERO).await.unwrap();
    let recovered = &world.receipts_of(&request_id).await[0];
    assert_eq!(recovered.redaction_mode, RedactionMode::Redacted);
    recovered.verify().unwrap();
    assert_nowhere(&world, SECRET).await;
}

// Each guard sees the arguments as they came and redacts what it knows of; the receipt must lose
// what any of them took out.
#[tokio::test]
async fn what_one_guard_redacts_another_does_not_bring_back() {
    let world = Setup::default()
        .guard(guard("passwords").redacts("password"))
        .guard(guard("tokens").redacts("token"))
        .start()
        .await;
    let arguments = json!({"password": SECRET, "token": OTHER_SECRET, "user": "me"});
    let ended = world.run_tool("effect", arguments).await;
    assert_eq!(ended.receipt.redaction_mode, RedactionMode::Redacted);
    assert_nowhere(&world, OTHER_SECRET).await;
    assert_nowhere(&world, SECRET).await;
    assert_eq!(ended.receipt.action.parameters["user"], json!("me"));
}
