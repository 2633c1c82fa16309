//! Where calls come from: references, call chains and continuations in metadata.

use chio_core::crypto::Signature;
use chio_core::governance::{CallChainContext, ContinuationToken, GovernedTransactionIntent};
use chio_core::signed::Signed as _;
use chio_cross_protocol::{CrossProtocolCapabilityRef, DiscoveryProtocol};
use chio_testkit::key;
use serde_json::{Value, json};

use crate::world::{ALICE, Answer, ELSEWHERE, World, message, receipt};

async fn send(world: &World, chio: Value) -> Answer {
    let mut params = message("x");
    params["metadata"] = json!({"chio": chio});
    world.rpc("SendMessage", params).send().await
}

fn context() -> CallChainContext {
    CallChainContext {
        chain_id: "trace-elsewhere".to_owned(),
        parent_request_id: "req-elsewhere".to_owned(),
        parent_receipt_id: None,
        origin_subject: key(4).public_key().to_hex(),
        delegator_subject: key(4).public_key().to_hex(),
    }
}

fn continuation(signer: u8, now: u64) -> ContinuationToken {
    let agent = key(ALICE).public_key().clone();
    let token = ContinuationToken {
        schema: ContinuationToken::SCHEMA.to_owned(),
        token_id: "cont-1".to_owned(),
        signer: key(signer).public_key().clone(),
        subject: agent.clone(),
        context: context(),
        parent_receipt_hash: None,
        parent_session_anchor: None,
        current_subject: agent.to_hex(),
        parent_capability_id: None,
        delegation_link_hash: None,
        governed_intent_hash: None,
        audience: None,
        nonce: None,
        issued_at: now - 1,
        expires_at: now + 60,
        signature: Signature::blank(),
    };
    token.signed(&key(signer)).unwrap()
}

fn chain(task: &Value) -> Value {
    let receipt = receipt(task);
    receipt.metadata.unwrap()["governed_transaction"]["call_chain"].clone()
}

// covers: A2A-072, A2A-073
#[tokio::test]
async fn a_call_continues_the_trace_of_a_kernel_whose_word_counts() {
    let world = World::with(&["echo"]).await;
    let now = world.kernel.clock().unix_seconds();
    let said = json!({"callChain": context(), "continuation": continuation(ELSEWHERE, now)});
    let task = send(&world, said).await.result()["task"].clone();
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(chain(&task)["evidenceClass"], "verified");
    let metadata = receipt(&task).metadata.unwrap();
    assert_eq!(metadata["chio"]["bridge"]["trace"]["traceId"], "trace-elsewhere");
    let id = format!("a2a-{}", task["id"].as_str().unwrap());
    assert_eq!(metadata["governed_transaction"]["intent_id"], id);
    let alone = json!({"continuation": continuation(ELSEWHERE, now)});
    let task = send(&world, alone).await.result()["task"].clone();
    assert_eq!(chain(&task)["evidenceClass"], "verified");
    // An untrusted kernel's word joins nothing and proves nothing.
    let other = json!({"continuation": continuation(9, now)});
    let task = send(&world, other).await.result()["task"].clone();
    assert_eq!(chain(&task)["evidenceClass"], "asserted");
    let metadata = receipt(&task).metadata.unwrap();
    assert_ne!(metadata["chio"]["bridge"]["trace"]["traceId"], "trace-elsewhere");
    // A bare claim runs in a trace of its own and stays a claim.
    let task = send(&world, json!({"callChain": context()})).await.result()["task"].clone();
    assert_eq!(chain(&task)["evidenceClass"], "asserted");
    assert_eq!(world.told.runs(), 4);
}

// covers: CROSS-033
#[tokio::test]
async fn a_reference_has_to_be_the_one_to_the_capability_that_is_used() {
    let world = World::with(&["echo"]).await;
    let own = world.token(ALICE, "cap-own");
    let reference =
        CrossProtocolCapabilityRef::to_token(&own.clone().into(), DiscoveryProtocol::A2a, None);
    let reference = reference.unwrap();
    let said = json!({"capability": own, "capabilityRef": reference});
    let task = send(&world, said).await.result()["task"].clone();
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    let metadata = receipt(&task).metadata.unwrap();
    let signed = &metadata["chio"]["bridge"]["capabilityEnvelope"]["capabilityRef"];
    assert_eq!(signed["chioCapabilityId"], "cap-own");
    assert_eq!(signed["parentCapabilityHash"], reference.parent_capability_hash);
    let mut wrong = reference;
    wrong.parent_capability_hash = "0".repeat(64);
    let said = json!({"capability": own, "capabilityRef": wrong});
    let task = send(&world, said).await.result()["task"].clone();
    assert_eq!(task["status"]["state"], "TASK_STATE_REJECTED");
    assert_eq!(world.told.runs(), 1);
}

#[tokio::test]
async fn an_intent_of_the_callers_own_is_signed_as_it_is() {
    let world = World::with(&["echo"]).await;
    let intent = GovernedTransactionIntent::new("mine", "srv", "echo", "because");
    let task = send(&world, json!({"governedIntent": intent})).await.result()["task"].clone();
    let metadata = receipt(&task).metadata.unwrap();
    assert_eq!(metadata["governed_transaction"]["intent_id"], "mine");
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_and_nothing_runs() {
    let world = World::with(&["echo"]).await;
    let intent = GovernedTransactionIntent::new("mine", "srv", "echo", "because");
    for chio in [
        json!({"capabilityRef": null}),
        json!({"capabilityRef": {"x": 1}}),
        json!({"callChain": 7}),
        json!({"callChain": {"chainId": "x"}}),
        json!({"continuation": {}}),
        json!({"governedIntent": {}}),
        json!({"governedIntent": intent, "callChain": context()}),
        json!({"dpop": {}}),
        json!({"approvalToken": {}}),
        json!({"executionNonce": {}}),
    ] {
        send(&world, chio).await.error(-32602);
    }
    assert_eq!(world.told.runs(), 0);
}
