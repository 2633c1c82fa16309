//! What receipts and requests for approval say about who calls.

use std::sync::Arc;

use chio_core::canonical::Written;
use chio_core::capability::CapabilityToken;
use chio_core::principal::{Credential, Principal};
use chio_core::receipt::LoggedReceipt;
use chio_kernel::Verdict;
use chio_kernel::store::ReceiptQuery;
use serde_json::{Value, json};

use crate::support::tokens::token;
use crate::support::world::runtime;
use crate::support::{Setup, World, grant, guard};

/// A principal of whom much is known.
fn alice() -> Principal {
    let credential = Credential::StaticBearer { fingerprint: "f1n6er".to_owned() };
    let mut alice = Principal::new("alice", credential);
    alice.tenant = Some("acme".to_owned());
    alice.groups = vec!["dev".to_owned(), "ops".to_owned()];
    alice.claims.insert("email".to_owned(), json!("alice@example.com"));
    alice
}

fn known() -> Value {
    json!({"groups": ["dev", "ops"], "name": "alice", "tenant": "acme"})
}

fn cap() -> CapabilityToken {
    token("cap-1", &[grant("*")])
}

async fn run_as(world: &World, principal: Principal, call: chio_kernel::ToolCall) -> Value {
    let caller = Arc::new(world.caller().by(principal));
    json!(world.run_for(call, caller).await.receipt)
}

#[tokio::test]
async fn every_receipt_of_a_named_principal_says_its_name_tenant_and_groups_and_nothing_else() {
    let world = World::new().await;
    let mut forged = cap();
    forged.id = "cap-2".to_owned();
    let mut padded = world.call(&forged, "echo", json!({}));
    // A caller that is not believed cannot push its own name out of the receipt.
    padded.evidence = vec![("chio", Written::of(&json!({"pad": "x".repeat(20_000)})).unwrap())];
    for call in [
        world.call(&cap(), "echo", json!({"n": 1})),
        world.call(&cap(), "fail", json!({})),
        world.call(&cap(), "no_such_tool", json!({})),
        padded,
    ] {
        let receipt = run_as(&world, alice(), call).await;
        assert_eq!(receipt["metadata"]["principal"], known(), "{receipt}");
        let text = receipt.to_string();
        assert!(!text.contains("example.com") && !text.contains("f1n6er"), "{text}");
    }
    let call = world.call(&cap(), "echo", json!({"n": 2}));
    let receipt = run_as(&world, Principal::anonymous(), call).await;
    assert_eq!(receipt["metadata"].get("principal"), None, "{receipt}");
    let principal = Some("alice".to_owned());
    let query = ReceiptQuery { principal, limit: 100, ..ReceiptQuery::default() };
    let found = world.store.query(&query).await.unwrap();
    assert_eq!(found.len(), 4);
    let read = LoggedReceipt::from_slice(&found[0].body).unwrap();
    assert_eq!(json!(read.principal()), known());
}

#[test]
fn an_approver_is_told_who_calls_and_so_is_the_receipt_of_a_call_whose_kernel_died() {
    let careful = guard("careful").says(Verdict::AwaitApproval("it is large".to_owned()));
    let (first, setup) = (runtime(), Setup::default().approved().guard(careful));
    let world = first.block_on(setup.start());
    let request = first.block_on(async {
        let caller = Arc::new(world.caller().by(alice()));
        drop(world.spawn(world.call(&cap(), "effect", json!({})), &caller));
        loop {
            if let Some(row) = world.inbox().await.pop() {
                return row.request;
            }
            tokio::task::yield_now().await;
        }
    });
    assert_eq!(json!(request)["principal"], known());
    let next = world.crash(first);
    let second = runtime();
    second.block_on(async {
        let world = next.start().await;
        let receipts = world.receipts_of(&request.request_id).await;
        assert_eq!(json!(receipts[0])["metadata"]["principal"], known());
    });
}
