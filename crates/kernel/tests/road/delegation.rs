//! Authority that was handed on: where it comes from, how far it reaches, who pays.

use chio_core::capability::{CapabilityToken as Token, DelegationLink};
use chio_core::registry::ErrorCode as Code;
use chio_core::signed::Signed;
use chio_kernel::Outcome;
use chio_testkit::key;
use serde_json::json;

use crate::support::tokens::{HOUR, agent, child, counted, draft, issuer, scope, token};
use crate::support::world::{assert_denied, denial};
use crate::support::{NOW, Setup, World, grant};

/// Parent of key 2, child of key 3, grandchild of key 4.
fn family() -> [Token; 3] {
    let parent = token("parent", &[grant("*")]);
    let middle = child("middle", &parent, &agent(), &key(3), &[grant("echo")]);
    let last = child("last", &middle, &key(3), &key(4), &[grant("echo")]);
    [parent, middle, last]
}

/// A child that no lawful issuer signs, with this chain.
fn forced_child(id: &str, holder: u8, chain: Vec<DelegationLink>, base: &Token) -> Token {
    let subject = key(holder).public_key().clone();
    let token = Token { id: id.to_owned(), subject, delegation_chain: chain, ..base.clone() };
    token.signed(&issuer()).unwrap()
}

fn link(parent: &Token, from: u8, to: u8, timestamp: u64) -> DelegationLink {
    let link = DelegationLink {
        capability_id: parent.id.clone(),
        delegator: key(from).public_key().clone(),
        delegatee: key(to).public_key().clone(),
        attenuations: Vec::new(),
        timestamp,
        scope_hash: Some(parent.scope.hash().unwrap()),
        aggregate_budget: None,
        cumulative_approval: None,
        signature: chio_core::crypto::Signature::blank(),
    };
    link.signed(&key(from)).unwrap()
}

#[tokio::test]
async fn a_child_of_an_unknown_parent_is_told_what_to_do() {
    let world = World::new().await;
    let [_, middle, _] = family();
    let ended = world.run(world.call(&middle, "echo", json!(1))).await;
    assert_denied(&ended, Code::CapabilityDenied, "comes from `parent`, which is not known here");
    assert!(denial(&ended).reason.contains("present that token once, or import it"));
}

#[tokio::test]
async fn a_child_runs_once_its_parent_was_presented() {
    let world = World::new().await;
    let [parent, middle, last] = family();
    world.run(world.call(&parent, "effect", json!(1))).await;
    let ended = world.run(world.call(&middle, "echo", json!(1))).await;
    assert!(matches!(ended.outcome, Outcome::Value(_)));
    let ended = world.run(world.call(&last, "echo", json!(1))).await;
    assert!(matches!(ended.outcome, Outcome::Value(_)));
    // What the parent may, but did not hand on, the child may not.
    let ended = world.run(world.call(&middle, "effect", json!(1))).await;
    assert_denied(&ended, Code::CapabilityDenied, "not in the token's scope");
}

#[tokio::test]
async fn a_grandchild_needs_every_ancestor() {
    let world = World::new().await;
    let [parent, middle, last] = family();
    world.store.remember(&parent).await.unwrap();
    let ended = world.run(world.call(&last, "echo", json!(1))).await;
    assert_denied(&ended, Code::CapabilityDenied, "comes from `middle`");
    world.store.remember(&middle).await.unwrap();
    let ended = world.run(world.call(&last, "echo", json!(1))).await;
    assert!(matches!(ended.outcome, Outcome::Value(_)));
}

// covers: WIRE-042
#[tokio::test]
async fn revoking_an_ancestor_revokes_all_that_come_from_it() {
    let world = World::new().await;
    let [parent, middle, last] = family();
    for token in [&parent, &middle, &last] {
        world.run(world.call(token, "echo", json!(1))).await;
    }
    world.kernel.revoke("middle").await.unwrap();
    let ended = world.run(world.call(&last, "echo", json!(1))).await;
    assert_denied(&ended, Code::CapabilityRevoked, "ancestor capability `middle` has been revoked");
    let ended = world.run(world.call(&middle, "echo", json!(1))).await;
    assert_denied(&ended, Code::CapabilityRevoked, "capability `middle` has been revoked");
    let ended = world.run(world.call(&parent, "echo", json!(1))).await;
    assert!(matches!(ended.outcome, Outcome::Value(_)));
    assert!(world.kernel.is_revoked(&last) && !world.kernel.is_revoked(&parent));
    // A child that was never seen before is denied for the same reason.
    world.kernel.revoke("parent").await.unwrap();
    let unseen = child("unseen", &parent, &agent(), &key(4), &[grant("echo")]);
    let ended = world.run(world.call(&unseen, "echo", json!(1))).await;
    assert_denied(&ended, Code::CapabilityRevoked, "ancestor capability `parent`");
}

#[tokio::test]
async fn a_child_that_exceeds_its_parent_is_denied() {
    let world = World::new().await;
    let parent = token("parent", &[counted("echo", 3), counted("*", 1)]);
    world.run(world.call(&parent, "echo", json!(1))).await;
    let chain = || vec![link(&parent, 2, 3, NOW)];
    let base = draft("child", &[counted("echo", 3)]);
    let cases = [
        Token { scope: scope(&[grant("echo")]), ..base.clone() },
        Token { scope: scope(&[counted("echo", 4)]), ..base.clone() },
        Token { scope: scope(&[counted("fail", 2)]), ..base.clone() },
        Token { expires_at: HOUR.expires_at + 1, ..base.clone() },
        Token { issued_at: NOW - 1, ..base.clone() },
    ];
    for (number, wider) in cases.iter().enumerate() {
        let token = forced_child(&format!("child-{number}"), 3, chain(), wider);
        let ended = world.run(world.call(&token, "echo", json!(1))).await;
        assert_denied(&ended, Code::CapabilityDenied, "the delegation from `parent` does not hold");
    }
    let fitting = forced_child("fitting", 3, chain(), &base);
    let ended = world.run(world.call(&fitting, "echo", json!(1))).await;
    assert!(matches!(ended.outcome, Outcome::Value(_)));
}

#[tokio::test]
async fn a_link_that_its_holder_did_not_sign_like_this_is_denied() {
    let world = World::new().await;
    let parent = token("parent", &[grant("echo")]);
    world.run(world.call(&parent, "echo", json!(1))).await;
    let base = draft("child", &[grant("echo")]);
    let good = link(&parent, 2, 3, NOW);
    let resigned = |change: fn(&mut DelegationLink)| {
        let mut link = good.clone();
        change(&mut link);
        link.signed(&agent()).unwrap()
    };
    let unsigned = DelegationLink { timestamp: NOW + 1, ..good.clone() };
    let cases = [
        ("unsigned", unsigned, "signature of link 0"),
        ("not the holder", link(&parent, 9, 3, NOW), "parent's subject as delegator"),
        ("to another", link(&parent, 2, 4, NOW), "to lead to the next"),
        ("too early", resigned(|it| it.timestamp = NOW - 1), "within the parent's window"),
        ("scope", resigned(|it| it.scope_hash = Some("00".repeat(32))), "scope hash"),
    ];
    for (name, link, words) in cases {
        let token = forced_child(name, 3, vec![link], &base);
        let ended = world.run(world.call(&token, "echo", json!(1))).await;
        assert_denied(&ended, Code::CapabilityDenied, words);
    }
}

#[tokio::test]
async fn an_ancestor_with_another_history_is_denied() {
    let world = World::new().await;
    let [parent, middle, last] = family();
    for token in [&parent, &middle] {
        world.store.remember(token).await.unwrap();
    }
    let ended = world.run(world.call(&last, "echo", json!(1))).await;
    assert!(matches!(ended.outcome, Outcome::Value(_)), "the true history");
    // The last link is the true one; the first is another that the parent's holder signed.
    let other = DelegationLink { scope_hash: None, ..link(&parent, 2, 3, NOW) };
    let chain = vec![other.signed(&agent()).unwrap(), link(&middle, 3, 4, NOW)];
    let base = draft("x", &[grant("echo")]);
    let token = forced_child("rewritten", 4, chain, &base);
    let ended = world.run(world.call(&token, "echo", json!(1))).await;
    assert_denied(&ended, Code::CapabilityDenied, "`middle` has another history");
    // A chain that leaves the parent out.
    let token = forced_child("shortened", 4, vec![link(&middle, 3, 4, NOW)], &base);
    let ended = world.run(world.call(&token, "echo", json!(1))).await;
    assert_denied(&ended, Code::CapabilityDenied, "`middle` has another history");
}

#[tokio::test]
async fn a_parent_that_may_not_be_handed_on_is_denied() {
    use chio_core::capability::{Operation, ToolGrant};
    let world = World::new().await;
    let kept = ToolGrant { operations: vec![Operation::Invoke], ..grant("echo") };
    let parent = token("parent", std::slice::from_ref(&kept));
    world.run(world.call(&parent, "echo", json!(1))).await;
    let base = draft("child", &[kept]);
    let token = forced_child("child", 3, vec![link(&parent, 2, 3, NOW)], &base);
    let ended = world.run(world.call(&token, "echo", json!(1))).await;
    assert_denied(&ended, Code::CapabilityDenied, "`delegate`");
}

#[tokio::test]
async fn a_chain_has_a_most_length() {
    let world = Setup::default().config(|it| it.limits.max_chain_depth = 1).start().await;
    let [parent, middle, last] = family();
    world.run(world.call(&parent, "echo", json!(1))).await;
    let ended = world.run(world.call(&middle, "echo", json!(1))).await;
    assert!(matches!(ended.outcome, Outcome::Value(_)));
    let ended = world.run(world.call(&last, "echo", json!(1))).await;
    assert_denied(&ended, Code::CapabilityDenied, "expected at most 1 delegations, found 2");
}

#[tokio::test]
async fn a_call_is_counted_on_every_ancestor() {
    let world = World::new().await;
    let parent = token("parent", &[grant("fail"), counted("echo", 4)]);
    let middle = child("middle", &parent, &agent(), &key(3), &[counted("echo", 3)]);
    let last = child("last", &middle, &key(3), &key(4), &[counted("echo", 2)]);
    let ran = async |token: &Token| {
        let ended = world.run(world.call(token, "echo", json!(1))).await;
        matches!(ended.outcome, Outcome::Value(_))
    };
    assert!(ran(&parent).await);
    assert!(ran(&middle).await);
    assert!(ran(&last).await);
    assert!(ran(&last).await);
    // The grandchild has used its own, and with it the rest of the others'.
    for token in [&last, &middle, &parent] {
        assert!(!ran(token).await, "{}", token.id);
    }
    let holds = world.ledger.reservations().last().unwrap().alternatives[0].holds.clone();
    assert_eq!(holds.len(), 1);
    assert_eq!((&*holds[0].capability_id, holds[0].grant_index), ("parent", 1));
}

#[tokio::test]
async fn an_ancestors_cost_budget_pays_too() {
    use crate::support::tokens::priced;
    let world = World::new().await;
    let parent = token("parent", &[priced("paid", 25)]);
    world.store.remember(&parent).await.unwrap();
    let one = child("one", &parent, &agent(), &key(3), &[priced("paid", 20)]);
    let two = child("two", &parent, &agent(), &key(4), &[priced("paid", 20)]);
    let first = world.run(world.call(&one, "paid", json!({}))).await;
    assert!(matches!(first.outcome, Outcome::Value(_)));
    let second = world.run(world.call(&two, "paid", json!({}))).await;
    assert!(matches!(second.outcome, Outcome::Value(_)));
    for token in [&one, &two] {
        let ended = world.run(world.call(token, "paid", json!({}))).await;
        assert_denied(
            &ended,
            Code::BudgetExhausted,
            "cost budget exhausted for grant 0 of `parent`",
        );
    }
}
