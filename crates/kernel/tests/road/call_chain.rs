//! Call chains: where a governed call says it comes from, and how well that is known.

use chio_core::capability::{CapabilityToken, DelegationLink};
use chio_core::crypto::{Keypair, Signature};
use chio_core::governance::{
    Audience, CallChainContext, ContinuationToken, GovernedTransactionIntent as Intent,
    UpstreamProof,
};
use chio_core::registry::ErrorCode as Code;
use chio_core::signed::Signed as _;
use chio_kernel::Verdict;
use chio_kernel::store::ApprovalState;
use chio_testkit::key;
use serde_json::{Value, json};

use crate::support::authority::intent;
use crate::support::tokens::{agent, child, token};
use crate::support::world::{Ended, assert_denied_by, metadata, value};
use crate::support::{NOW, SERVER, Setup, World, grant, guard};

/// A kernel elsewhere whose word counts.
fn kernel() -> Keypair {
    key(6)
}

/// The agent's own token, and what it has handed on to key 3.
fn family() -> [CapabilityToken; 2] {
    let parent = token("parent", &[grant("*")]);
    let handed_on = child("child", &parent, &agent(), &key(3), &[grant("effect")]);
    [parent, handed_on]
}

/// A parent elsewhere, of the agent's.
fn context() -> CallChainContext {
    let agent = agent().public_key().to_hex();
    CallChainContext {
        chain_id: "chain-1".to_owned(),
        parent_request_id: "req-elsewhere".to_owned(),
        parent_receipt_id: None,
        origin_subject: agent.clone(),
        delegator_subject: agent,
    }
}

async fn world() -> World {
    let trusted = vec![kernel().public_key().clone()];
    let world = Setup::default().approved().config(|it| it.trusted_kernels = trusted).start().await;
    world.store.remember(&family()[0]).await.unwrap();
    world
}

/// An intent with this parent and with these members of its context.
fn continues(context: CallChainContext, members: &[(&str, Value)]) -> Intent {
    let members = members.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    let members: serde_json::Map<String, Value> = members.collect();
    let members = (!members.is_empty()).then_some(Value::Object(members));
    Intent { call_chain: Some(context), context: members, ..intent("effect") }
}

async fn run(world: &World, token: &CapabilityToken, intent: Intent) -> Ended {
    let mut call = world.call(token, "effect", json!(1));
    call.governed_intent = Some(Box::new(intent));
    world.run(call).await
}

/// What the receipt says of where the call comes from: the class and the sources.
fn known(ended: &Ended) -> (Value, Value) {
    assert_eq!(value(ended), &json!(1));
    let chain = &metadata(ended, "governed_transaction")["call_chain"];
    assert_eq!(chain["chainId"], json!("chain-1"));
    (chain["evidenceClass"].clone(), chain["evidenceSources"].clone())
}

fn assert_refused(ended: &Ended, words: &str) {
    assert_denied_by(ended, "governed_intent", Code::CapabilityDenied, words);
}

#[tokio::test]
async fn a_callers_word_alone_is_an_assertion() {
    let (world, [parent, _]) = (world().await, family());
    let ended = run(&world, &parent, continues(context(), &[])).await;
    assert_eq!(known(&ended), (json!("asserted"), json!(null)));
    // A receipt that is not in this store changes nothing.
    let unknown = CallChainContext { parent_receipt_id: Some("rcpt-x".to_owned()), ..context() };
    let ended = run(&world, &parent, continues(unknown, &[])).await;
    assert_eq!(known(&ended), (json!("asserted"), json!(null)));
    let blank = CallChainContext { chain_id: " ".to_owned(), ..context() };
    assert_refused(&run(&world, &parent, continues(blank, &[])).await, "`chainId`");
}

#[tokio::test]
async fn a_delegated_token_bears_out_who_handed_the_call_on() {
    let (world, [_, handed_on]) = (world().await, family());
    let ended = run(&world, &handed_on, continues(context(), &[])).await;
    let sources = json!(["capability_delegator_subject", "capability_origin_subject"]);
    assert_eq!(known(&ended), (json!("observed"), sources));
    let other = key(9).public_key().to_hex();
    let by_other = CallChainContext { delegator_subject: other.clone(), ..context() };
    assert_refused(&run(&world, &handed_on, continues(by_other, &[])).await, "`delegatorSubject`");
    let from_other = CallChainContext { origin_subject: other, ..context() };
    assert_refused(&run(&world, &handed_on, continues(from_other, &[])).await, "`originSubject`");
}

#[tokio::test]
async fn a_parents_receipt_in_this_store_bears_the_parent_out() {
    let (world, [parent, _]) = (world().await, family());
    let first = world.run(world.call(&parent, "effect", json!(0))).await;
    let first_id = metadata(&first, "receipt_context")["request_id"].as_str().unwrap().to_owned();
    let known_parent = CallChainContext {
        parent_request_id: first_id,
        parent_receipt_id: Some(first.receipt.id.clone()),
        ..context()
    };
    let ended = run(&world, &parent, continues(known_parent.clone(), &[])).await;
    assert_eq!(known(&ended), (json!("observed"), json!(["local_parent_receipt_linkage"])));
    let other = CallChainContext { parent_request_id: "req-other".to_owned(), ..known_parent };
    let ended = run(&world, &parent, continues(other, &[])).await;
    assert_refused(&ended, "expected the parent's receipt to be of the parent's request");
}

#[tokio::test]
async fn a_call_that_is_made_for_another_names_that_one() {
    let (world, [parent, _]) = (world().await, family());
    for (live, holds) in [("req-elsewhere", true), ("req-other", false)] {
        let mut call = world.call(&parent, "effect", json!(1));
        call.parent_request_id = Some(live.to_owned());
        call.governed_intent = Some(Box::new(continues(context(), &[])));
        let ended = world.run(call).await;
        if holds {
            let sources = json!(["session_parent_request_lineage"]);
            assert_eq!(known(&ended), (json!("observed"), sources));
        } else {
            assert_refused(&ended, "expected `parentRequestId` to be `req-other`");
        }
    }
}

fn upstream(by: &Keypair, change: impl FnOnce(&mut UpstreamProof)) -> Value {
    let mut proof = UpstreamProof {
        signer: by.public_key().clone(),
        subject: key(3).public_key().clone(),
        context: context(),
        issued_at: NOW,
        expires_at: NOW + 60,
        signature: Signature::blank(),
    };
    change(&mut proof);
    json!(proof.signed(by).unwrap())
}

#[tokio::test]
async fn the_delegators_proof_verifies_the_chain() {
    let (world, [parent, handed_on]) = (world().await, family());
    let proven = |proof| continues(context(), &[("callChainUpstreamProof", proof)]);
    let ended = run(&world, &handed_on, proven(upstream(&agent(), |_| {}))).await;
    let (class, sources) = known(&ended);
    assert_eq!(class, json!("verified"));
    assert!(sources.as_array().unwrap().contains(&json!("upstream_delegator_proof")));
    let cases = [
        (upstream(&key(9), |_| {}), "a signer who is the capability's last delegator"),
        (upstream(&agent(), |it| it.expires_at = NOW), "does not hold now"),
        (upstream(&agent(), |it| it.subject = key(4).public_key().clone()), "`subject`"),
        (upstream(&agent(), |it| it.context.chain_id.push('x')), "`chainId`"),
        (json!({"signer": "x"}), "the call chain:"),
    ];
    for (proof, words) in cases {
        assert_refused(&run(&world, &handed_on, proven(proof)).await, words);
    }
    let ended = run(&world, &parent, proven(upstream(&agent(), |_| {}))).await;
    assert_refused(&ended, "expected a delegated capability with an upstream proof");
    assert_eq!(world.runs("effect"), 1);
}

/// Leave for the agent to go on with the call elsewhere, in this kernel's name.
fn continuation(by: &Keypair, change: impl FnOnce(&mut ContinuationToken)) -> Value {
    let mut token = ContinuationToken {
        schema: ContinuationToken::SCHEMA.to_owned(),
        token_id: "cont-1".to_owned(),
        signer: by.public_key().clone(),
        subject: agent().public_key().clone(),
        context: context(),
        parent_receipt_hash: None,
        parent_session_anchor: None,
        current_subject: agent().public_key().to_hex(),
        parent_capability_id: None,
        delegation_link_hash: None,
        governed_intent_hash: None,
        audience: None,
        nonce: None,
        issued_at: NOW,
        expires_at: NOW + 3600,
        signature: Signature::blank(),
    };
    change(&mut token);
    json!(token.signed(by).unwrap())
}

fn continued(token: Value) -> Intent {
    continues(context(), &[("callChainContinuation", token)])
}

fn tool(name: &str) -> Option<Audience> {
    Some(Audience { server_id: SERVER.to_owned(), tool_name: name.to_owned() })
}

#[tokio::test]
async fn a_trusted_kernels_continuation_verifies_the_chain() {
    let (world, [parent, _]) = (world().await, family());
    let token = continuation(&kernel(), |it| it.audience = tool("effect"));
    let ended = run(&world, &parent, continued(token.clone())).await;
    assert_eq!(known(&ended).0, json!("verified"));
    let chain = &metadata(&ended, "governed_transaction")["call_chain"];
    assert_eq!(chain["continuationTokenId"], json!("cont-1"));
    // Without a nonce it is not for one use only.
    assert_eq!(known(&run(&world, &parent, continued(token)).await).0, json!("verified"));
    let cases = [
        (continuation(&key(9), |_| {}), "the capability's last delegator or a trusted kernel"),
        (continuation(&kernel(), |it| it.expires_at = NOW), "does not hold now"),
        (continuation(&kernel(), |it| it.audience = tool("echo")), "`audience.toolName`"),
        (continuation(&kernel(), |it| it.subject = key(4).public_key().clone()), "`subject`"),
        (continuation(&kernel(), |it| it.context.parent_request_id.push('x')), "`parentRequest"),
        (json!("no token"), "the call chain:"),
    ];
    let runs = world.runs("effect");
    for (token, words) in cases {
        assert_refused(&run(&world, &parent, continued(token)).await, words);
    }
    assert_eq!(world.runs("effect"), runs);
}

#[tokio::test]
async fn a_continuation_with_a_nonce_is_used_once() {
    let (world, [parent, handed_on]) = (world().await, family());
    let token = continuation(&kernel(), |it| it.nonce = Some("n".to_owned()));
    let ended = run(&world, &parent, continued(token.clone())).await;
    assert_eq!(known(&ended).0, json!("verified"));
    let again = run(&world, &parent, continued(token)).await;
    let words = "was used before";
    assert_denied_by(&again, "proof_of_possession", Code::CapabilityDenied, words);
    // Another token does not bring the nonce back; another signer has nonces of its own.
    let other = continuation(&kernel(), |it| {
        (it.nonce, it.token_id) = (Some("n".to_owned()), "cont-2".to_owned());
    });
    let again = run(&world, &parent, continued(other)).await;
    assert_denied_by(&again, "proof_of_possession", Code::CapabilityDenied, words);
    let delegators = continuation(&agent(), |it| {
        it.subject = key(3).public_key().clone();
        it.current_subject = key(3).public_key().to_hex();
        it.nonce = Some("n".to_owned());
    });
    let ended = run(&world, &handed_on, continued(delegators)).await;
    assert_eq!(known(&ended).0, json!("verified"));
    let fresh = continuation(&kernel(), |it| it.nonce = Some("n2".to_owned()));
    assert_eq!(known(&run(&world, &parent, continued(fresh)).await).0, json!("verified"));
}

#[tokio::test]
async fn evidence_of_a_chain_that_the_intent_does_not_name_is_denied() {
    let (world, [parent, handed_on]) = (world().await, family());
    let loose = |name: &str, value| {
        let context = json!({name: value});
        Intent { context: Some(context), ..intent("effect") }
    };
    let token = continuation(&kernel(), |_| {});
    let ended = run(&world, &parent, loose("callChainContinuation", token)).await;
    assert_refused(&ended, "expected `call_chain`");
    let proof = upstream(&agent(), |_| {});
    let ended = run(&world, &handed_on, loose("callChainUpstreamProof", proof)).await;
    assert_refused(&ended, "expected `call_chain`");
    assert_eq!(world.runs("effect"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_keeps_where_it_comes_from() {
    let careful = guard("careful").says(Verdict::AwaitApproval("it is large".to_owned()));
    let trusted = vec![kernel().public_key().clone()];
    let setup = Setup::default().approved().config(|it| it.trusted_kernels = trusted);
    let world = setup.guard(careful).start().await;
    let token = continuation(&kernel(), |it| it.nonce = Some("n".to_owned()));
    let mut call = world.call(&family()[0], "effect", json!(1));
    call.governed_intent = Some(Box::new(continued(token)));
    let parked = world.park(call).await;
    let answer = world.approve(&parked).await;
    let (ended, row) = world.ended(parked).await;
    assert_eq!(known(&ended).0, json!("verified"));
    let governed = metadata(&ended, "governed_transaction");
    assert_eq!(governed["approval"]["token_id"], json!(answer.id));
    assert_eq!(row.state, ApprovalState::Used);
}

#[tokio::test]
async fn a_delegator_may_continue_what_it_handed_on() {
    let (world, [_, handed_on]) = (world().await, family());
    let link = handed_on.delegation_chain.last().map(DelegationLink::hash).unwrap().unwrap();
    let of = |link: &str| {
        continuation(&agent(), |it| {
            it.subject = key(3).public_key().clone();
            it.current_subject = key(3).public_key().to_hex();
            it.parent_capability_id = Some("parent".to_owned());
            it.delegation_link_hash = Some(link.to_owned());
        })
    };
    let ended = run(&world, &handed_on, continued(of(&link))).await;
    assert_eq!(known(&ended).0, json!("verified"));
    let ended = run(&world, &handed_on, continued(of("00"))).await;
    assert_refused(&ended, "`delegationLinkHash`");
}
