//! A token that was verified before is not trusted for anything but its bytes.

use chio_core::capability::CapabilityToken as Token;
use chio_core::registry::ErrorCode as Code;
use chio_core::signed::Signed;
use chio_kernel::Outcome;
use chio_testkit::key;
use serde_json::json;

use crate::support::tokens::{HOUR, agent, child, counted, draft, issuer, token};
use crate::support::world::assert_denied;
use crate::support::{NOW, Setup, World, grant};

#[tokio::test]
async fn a_remembered_token_still_expires() {
    let world = World::new().await;
    let token = token("cap-1", &[grant("echo")]);
    world.run(world.call(&token, "echo", json!(1))).await;
    world.clock.set(HOUR.expires_at);
    let ended = world.run(world.call(&token, "echo", json!(1))).await;
    assert_denied(&ended, Code::CapabilityExpired, "expected a time before");
}

#[tokio::test]
async fn a_remembered_token_still_gets_revoked() {
    let world = World::new().await;
    let token = token("cap-1", &[grant("echo")]);
    world.run(world.call(&token, "echo", json!(1))).await;
    world.kernel.revoke("cap-1").await.unwrap();
    let ended = world.run(world.call(&token, "echo", json!(1))).await;
    assert_denied(&ended, Code::CapabilityRevoked, "cap-1");
}

#[tokio::test]
async fn a_remembered_token_is_still_its_subjects() {
    let world = World::new().await;
    let token = token("cap-1", &[grant("echo")]);
    world.run(world.call(&token, "echo", json!(1))).await;
    let mut call = world.call(&token, "echo", json!(1));
    call.agent = key(3).public_key().clone();
    assert_denied(&world.run(call).await, Code::CapabilityDenied, "subject");
}

#[tokio::test]
async fn a_remembered_token_loses_with_its_issuers_trust() {
    let world = World::new().await;
    let parent = token("parent", &[grant("echo")]);
    world.run(world.call(&parent, "echo", json!(1))).await;
    let handed_on = child("child", &parent, &agent(), &key(3), &[grant("echo")]);
    // The child is re-issued by another issuer, which stays trusted.
    let other = Token { issuer: key(9).public_key().clone(), ..handed_on }.signed(&key(9)).unwrap();
    let trusts = |keys: Vec<u8>| {
        let keys = keys.into_iter().map(|seed| key(seed).public_key().clone()).collect();
        Setup::beside(&world).config(|it| it.trusted_issuers = keys)
    };
    let both = trusts(vec![1, 9]).start().await;
    let ended = both.run(both.call(&other, "echo", json!(1))).await;
    assert!(matches!(ended.outcome, Outcome::Value(_)));
    // The store remembers parent and child, but who may issue is not remembered.
    for (trusted, denied) in [(vec![1], &other), (vec![9], &other), (vec![9], &parent)] {
        let later = trusts(trusted).start().await;
        let ended = later.run(later.call(denied, "echo", json!(1))).await;
        assert_denied(&ended, Code::CapabilityDenied, "trusted issuer");
    }
}

#[tokio::test]
async fn another_token_of_a_known_id_is_denied() {
    let world = World::new().await;
    let first = token("cap-1", &[counted("echo", 1)]);
    world.run(world.call(&first, "echo", json!(1))).await;
    let longer = Token { expires_at: first.expires_at + 1, ..draft("cap-1", &[grant("echo")]) };
    for second in [longer.signed(&issuer()).unwrap(), token("cap-1", &[counted("echo", 2)])] {
        let ended = world.run(world.call(&second, "echo", json!(1))).await;
        assert_denied(&ended, Code::CapabilityDenied, "another token with the id `cap-1`");
    }
    // The first one is none the worse for it.
    let ended = world.run(world.call(&first, "echo", json!(1))).await;
    assert_denied(&ended, Code::BudgetExhausted, "invocation budget exhausted");
}

#[tokio::test]
async fn changed_bytes_under_a_remembered_id_are_verified_anew() {
    let world = World::new().await;
    let known = token("cap-1", &[grant("echo")]);
    world.run(world.call(&known, "echo", json!(1))).await;
    let forged = Token { scope: crate::support::tokens::scope(&[grant("*")]), ..known.clone() };
    let ended = world.run(world.call(&forged, "effect", json!(1))).await;
    assert_denied(&ended, Code::CapabilityDenied, "capability verification failed");
    let blank = Token { signature: draft("cap-1", &[]).signature, ..known };
    let ended = world.run(world.call(&blank, "echo", json!(1))).await;
    assert_denied(&ended, Code::CapabilityDenied, "capability verification failed");
}

#[tokio::test]
async fn a_small_cache_forgets_and_nothing_changes() {
    let world = Setup::default().config(|it| it.token_cache = 2).start().await;
    let tokens: Vec<Token> =
        (0..8).map(|n| token(&format!("cap-{n}"), &[counted("echo", 3)])).collect();
    for round in 0..4 {
        for token in &tokens {
            let ended = world.run(world.call(token, "echo", json!(round))).await;
            assert_eq!(matches!(ended.outcome, Outcome::Value(_)), round < 3);
        }
    }
}

#[tokio::test]
async fn what_is_remembered_is_listed_until_it_ends() {
    let world = World::new().await;
    let (one, two) = (token("cap-1", &[grant("echo")]), token("cap-2", &[grant("echo")]));
    for token in [&one, &two] {
        world.run(world.call(token, "echo", json!(1))).await;
    }
    let ids = || async {
        let tokens = world.kernel.capabilities_of(agent().public_key()).await.unwrap();
        tokens.into_iter().map(|token| token.id).collect::<Vec<_>>()
    };
    assert_eq!(ids().await, ["cap-2", "cap-1"]);
    world.store.revoke("cap-2", NOW).await.unwrap();
    assert_eq!(ids().await, ["cap-1"]);
    world.clock.set(HOUR.expires_at);
    assert!(ids().await.is_empty());
}
