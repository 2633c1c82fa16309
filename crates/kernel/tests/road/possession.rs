//! Proofs of possession: each is for one call of one token, made by its subject, and used once.

use std::time::Duration;

use chio_core::capability::{CapabilityToken, DpopProof, ToolGrant};
use chio_core::registry::ErrorCode as Code;
use chio_core::signed::Signed as _;
use chio_kernel::store::ApprovalState;
use chio_kernel::{Outcome, ToolCall, Verdict};
use chio_testkit::key;
use chio_testkit::process::Folder;
use serde_json::{Value, json};

use crate::support::authority::{approver, changed, proof, yes};
use crate::support::tokens::token;
use crate::support::world::{Ended, assert_denied_by, value};
use crate::support::{NOW, Setup, World, grant, guard};

/// Leave to call a tool for an agent that proves to be the subject.
fn proven(tool: &str) -> ToolGrant {
    ToolGrant { dpop_required: Some(true), ..grant(tool) }
}

fn cap() -> CapabilityToken {
    token("cap-1", &[proven("*")])
}

/// A call with the agent's proof, made now with this nonce.
fn call(world: &World, tool: &str, arguments: Value, nonce: &str) -> ToolCall {
    let proof = proof(&cap(), tool, &arguments, nonce, NOW);
    ToolCall { dpop_proof: Some(proof), ..world.call(&cap(), tool, arguments) }
}

fn assert_refused(ended: &Ended, words: &str) {
    assert_denied_by(ended, "proof_of_possession", Code::CapabilityDenied, words);
}

#[tokio::test]
async fn a_grant_that_asks_for_a_proof_denies_without_one() {
    let world = World::new().await;
    for tool in ["echo", "effect"] {
        let ended = world.run(world.call(&cap(), tool, json!(1))).await;
        assert_refused(&ended, "the grant asks for a proof of possession, found none");
        // One grant that asks is enough.
        let mixed = token(&format!("mixed-{tool}"), &[grant(tool), proven("*")]);
        let ended = world.run(world.call(&mixed, tool, json!(1))).await;
        assert_refused(&ended, "found none");
        assert_eq!(world.runs(tool), 0);
    }
}

#[tokio::test]
async fn a_proof_is_used_once_whatever_the_tool_does() {
    let world = World::new().await;
    for tool in ["echo", "effect"] {
        let first = world.run(call(&world, tool, json!(1), tool)).await;
        assert_eq!(value(&first), &json!(1), "{tool}");
        let again = world.run(call(&world, tool, json!(1), tool)).await;
        assert_refused(&again, "the proof was used before");
        // The nonce is used up, not only this proof.
        let other = world.run(call(&world, tool, json!(2), tool)).await;
        assert_refused(&other, "the proof was used before");
        let fresh = world.run(call(&world, tool, json!(1), &format!("{tool}-2"))).await;
        assert_eq!(value(&fresh), &json!(1), "{tool}");
        assert_eq!(world.runs(tool), 2);
    }
}

#[tokio::test]
async fn a_nonce_is_its_tokens_own() {
    let world = World::new().await;
    world.run(call(&world, "echo", json!(1), "n")).await;
    let other = token("cap-2", &[proven("*")]);
    let same = proof(&other, "echo", &json!(1), "n", NOW);
    let ended =
        world.run(ToolCall { dpop_proof: Some(same), ..world.call(&other, "echo", json!(1)) });
    assert_eq!(value(&ended.await), &json!(1));
}

/// A change of a good proof that is signed again, and why it is none then.
type Bad = (&'static str, fn(&mut DpopProof));

const BAD: [Bad; 7] = [
    ("another `action_hash`", |it| it.body.action_hash = "00".repeat(32)),
    ("another `tool_name`", |it| it.body.tool_name = "effect".to_owned()),
    ("another `tool_server`", |it| it.body.tool_server = "other".to_owned()),
    ("another `capability_id`", |it| it.body.capability_id = "cap-2".to_owned()),
    ("expected a proof issued by", |it| it.body.issued_at = NOW + 31),
    ("expected a proof issued at or after", |it| it.body.issued_at = NOW - 301),
    ("expected schema", |it| it.body.schema = "other".to_owned()),
];

fn signed_again(mut proof: DpopProof, change: fn(&mut DpopProof), by: u8) -> DpopProof {
    proof.body.agent_key = key(by).public_key().clone();
    change(&mut proof);
    proof.signed(&key(by)).unwrap()
}

#[tokio::test]
async fn a_proof_for_anything_else_is_refused_even_where_none_is_asked_for() {
    let world = World::new().await;
    for token in [cap(), token("unasked", &[grant("*")])] {
        let good = *proof(&token, "echo", &json!(1), "n", NOW);
        let run = async |proof: DpopProof| {
            let call = world.call(&token, "echo", json!(1));
            world.run(ToolCall { dpop_proof: Some(Box::new(proof)), ..call }).await
        };
        for (words, change) in BAD {
            assert_refused(&run(signed_again(good.clone(), change, 2)).await, words);
        }
        let stranger = signed_again(good.clone(), |_| {}, 9);
        assert_refused(&run(stranger).await, "from the token's subject, found another key");
        let mut forged = good.clone();
        forged.body.nonce.push('x');
        assert_refused(&run(forged).await, "signature");
        let runs = world.runs("echo");
        assert_eq!(value(&run(good.clone()).await), &json!(1), "the good one is still good");
        assert_refused(&run(good).await, "the proof was used before");
        assert_eq!(world.runs("echo"), runs + 1);
    }
}

#[tokio::test]
async fn a_proof_lives_for_five_minutes_and_clocks_may_differ_a_little() {
    for (issued_at, now, lives) in
        [(NOW + 30, NOW, true), (NOW, NOW + 300, true), (NOW, NOW + 301, false)]
    {
        let world = World::new().await;
        world.clock.set(now);
        let proof = proof(&cap(), "echo", &json!(1), "n", issued_at);
        let call = world.call(&cap(), "echo", json!(1));
        let ended = world.run(ToolCall { dpop_proof: Some(proof), ..call }).await;
        if lives {
            assert_eq!(value(&ended), &json!(1), "{issued_at} at {now}");
        } else {
            assert_refused(&ended, "expected a proof issued at or after");
        }
    }
}

#[tokio::test]
async fn a_store_that_forgets_refuses_proofs_from_before_it_began() {
    let world = World::new().await;
    let proof = proof(&cap(), "echo", &json!(1), "n", NOW - 1);
    let call = world.call(&cap(), "echo", json!(1));
    let ended = world.run(ToolCall { dpop_proof: Some(proof), ..call }).await;
    assert_refused(&ended, "the proof was made before this store began to remember proofs");
}

#[tokio::test]
async fn a_used_proof_is_used_after_a_restart_and_for_every_kernel_of_the_store() {
    let folder = Folder::new();
    let world = Setup::in_folder(&folder, 1).start().await;
    let neighbour = Setup::in_folder(&folder, 2).start().await;
    assert_eq!(value(&world.run(call(&world, "echo", json!(1), "n")).await), &json!(1));
    let elsewhere = neighbour.run(call(&neighbour, "echo", json!(1), "n")).await;
    assert_refused(&elsewhere, "the proof was used before");
    world.shut_down().await;
    let next = Setup::in_folder(&folder, 3).start().await;
    let later = next.run(call(&next, "echo", json!(1), "n")).await;
    assert_refused(&later, "the proof was used before");
    assert_eq!((neighbour.runs("echo"), next.runs("echo")), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_kernels_that_race_with_one_proof_run_the_tool_once() {
    let folder = Folder::new();
    let one = Setup::in_folder(&folder, 1).start().await;
    let mut beside = Setup::in_folder(&folder, 2);
    beside.journal = one.journal.clone();
    let two = beside.start().await;
    for round in 0..40 {
        let nonce = format!("round-{round}");
        let (first, second) = tokio::join!(
            one.run(call(&one, "echo", json!(1), &nonce)),
            two.run(call(&two, "echo", json!(1), &nonce)),
        );
        assert_eq!(one.runs("echo"), round + 1);
        let refused = if matches!(first.outcome, Outcome::Value(_)) { second } else { first };
        assert_refused(&refused, "the proof was used before");
    }
}

/// A world where everything has to be approved, within an hour.
async fn slow_world() -> World {
    let careful = guard("careful").says(Verdict::AwaitApproval("it is large".to_owned()));
    let setup = Setup::default().approved().guard(careful);
    setup.config(|it| it.approval_timeout = Duration::from_secs(3600)).start().await
}

#[tokio::test(start_paused = true)]
async fn a_proof_that_was_accepted_holds_until_the_call_is_approved() {
    let world = slow_world().await;
    let parked = world.park(call(&world, "effect", json!(1), "n")).await;
    world.clock.set(NOW + 1000);
    let answer = changed(&yes(&parked.approval.request), &approver(), |it| {
        (it.issued_at, it.expires_at) = (NOW + 900, NOW + 1100);
    });
    world.answer(&parked, &answer).await;
    let (ended, row) = world.ended(parked).await;
    assert_eq!((value(&ended), row.state), (&json!(1), ApprovalState::Used));
}

#[tokio::test(start_paused = true)]
async fn a_proof_is_used_up_by_a_call_that_waits_even_if_that_is_cancelled() {
    let world = slow_world().await;
    let parked = world.park(call(&world, "effect", json!(1), "n")).await;
    let again = world.run(call(&world, "effect", json!(1), "n")).await;
    assert_refused(&again, "the proof was used before");
    parked.caller.cancel();
    world.ended(parked).await;
    let again = world.run(call(&world, "effect", json!(1), "n")).await;
    assert_refused(&again, "the proof was used before");
    assert_eq!((world.runs("effect"), world.inbox().await.len()), (0, 1));
}
