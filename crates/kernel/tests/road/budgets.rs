//! Counted calls: exactly as many as granted, however many callers ask at once.

use std::sync::Arc;

use chio_core::capability::CapabilityToken as Token;
use chio_core::registry::ErrorCode as Code;
use chio_kernel::Outcome;
use chio_testkit::key;
use serde_json::json;

use crate::support::tokens::{agent, child, counted, token};
use crate::support::world::{Ended, assert_denied, assert_failed, metadata};
use crate::support::{Setup, World, grant};

/// Runs this many calls of the tokens in turn, all at once.
async fn storm(world: &Arc<World>, tokens: &[Token], tool: &'static str, calls: usize) -> usize {
    let tasks: Vec<_> = (0..calls)
        .map(|n| {
            let (world, token) = (Arc::clone(world), tokens[n % tokens.len()].clone());
            tokio::spawn(async move { world.run(world.call(&token, tool, json!(n))).await })
        })
        .collect();
    let mut ran = 0;
    for task in tasks {
        let ended = task.await.unwrap();
        match ended.outcome {
            Outcome::Value(_) => ran += 1,
            _ => assert_denied(&ended, Code::BudgetExhausted, "invocation budget exhausted"),
        }
    }
    ran
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixty_four_callers_at_once_get_exactly_what_is_granted() {
    let world = Arc::new(World::new().await);
    let token = token("cap-1", &[counted("echo", 20)]);
    assert_eq!(storm(&world, &[token], "echo", 64).await, 20);
    assert_eq!(world.runs("echo"), 20);
    assert_eq!((world.logged().await.len(), world.open_intents().await), (64, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_siblings_share_what_their_parent_has() {
    let world = Arc::new(World::new().await);
    let parent = token("parent", &[counted("effect", 20)]);
    world.store.remember(&parent).await.unwrap();
    let one = child("one", &parent, &agent(), &key(3), &[counted("effect", 15)]);
    let two = child("two", &parent, &agent(), &key(4), &[counted("effect", 15)]);
    assert_eq!(storm(&world, &[one, two], "effect", 64).await, 20);
    assert_eq!(world.runs("effect"), 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_kernels_on_one_store_share_what_is_granted() {
    let one = Arc::new(World::new().await);
    let two = Arc::new(Setup::beside(&one).start().await);
    assert_ne!(one.log_id(), two.log_id());
    let tokens = [token("cap-1", &[counted("echo", 20)])];
    let (first, second) =
        tokio::join!(storm(&one, &tokens, "echo", 32), storm(&two, &tokens, "echo", 32));
    assert_eq!(first + second, 20);
}

fn index(ended: &Ended) -> u64 {
    metadata(ended, "attribution")["grant_index"].as_u64().unwrap()
}

#[tokio::test]
async fn a_call_falls_through_to_the_next_grant_that_has_some_left() {
    let world = World::new().await;
    let token = token("cap-1", &[counted("*", 1), counted("echo", 2), counted("fail", 9)]);
    let mut used = Vec::new();
    for _ in 0..3 {
        used.push(index(&world.run(world.call(&token, "echo", json!(1))).await));
    }
    assert_eq!(used, [1, 1, 0], "the exact one first");
    let ended = world.run(world.call(&token, "echo", json!(1))).await;
    assert_denied(&ended, Code::BudgetExhausted, "invocation budget exhausted for grant 0");
    assert_eq!(world.runs("echo"), 3);
    // A grant without a bound is never used up.
    let token = crate::support::tokens::token("cap-2", &[counted("echo", 1), grant("*")]);
    let mut used = Vec::new();
    for _ in 0..3 {
        used.push(index(&world.run(world.call(&token, "echo", json!(1))).await));
    }
    assert_eq!(used, [0, 1, 1]);
}

#[tokio::test]
async fn none_granted_is_none() {
    let world = World::new().await;
    let ended = world.run_with(&[counted("effect", 0)], "effect", json!(1)).await;
    assert_denied(&ended, Code::BudgetExhausted, "invocation budget exhausted");
    assert_eq!(world.runs("effect"), 0);
}

#[tokio::test]
async fn a_call_that_fails_counts_and_one_that_is_denied_does_not() {
    let guarded = crate::support::guard("no").checks(|input| {
        let denied = input.arguments["deny"] == json!(true);
        let reason = "told to".to_owned();
        Ok(if denied {
            chio_kernel::Verdict::Deny(reason).into()
        } else {
            chio_kernel::Verdict::Allow.into()
        })
    });
    let world = Setup::default().guard(guarded).start().await;
    for tool in ["fail", "panic"] {
        let token = token(&format!("cap-{tool}"), &[counted(tool, 2)]);
        for _ in 0..3 {
            let ended = world.run(world.call(&token, tool, json!({"deny": true}))).await;
            assert!(matches!(ended.outcome, Outcome::Denied(_)));
        }
        for _ in 0..2 {
            let ended = world.run(world.call(&token, tool, json!({}))).await;
            match tool {
                "fail" => assert_failed(&ended, ""),
                _ => assert!(matches!(ended.outcome, Outcome::Incomplete { .. })),
            }
        }
        let ended = world.run(world.call(&token, tool, json!({}))).await;
        assert_denied(&ended, Code::BudgetExhausted, "invocation budget exhausted");
        assert_eq!(world.runs(tool), 2);
    }
}

#[tokio::test]
async fn a_call_that_was_cancelled_before_it_began_gives_everything_back() {
    let world = World::new().await;
    let token = token("cap-1", &[counted("effect", 1)]);
    for _ in 0..3 {
        let caller = Arc::new(world.caller());
        caller.cancel();
        let ended = world.run_for(world.call(&token, "effect", json!(1)), caller).await;
        let reason = "called off before it began".to_owned();
        assert_eq!(ended.outcome, Outcome::Cancelled { reason, chunks: 0 });
    }
    assert_eq!((world.runs("effect"), world.open_intents().await), (0, 0));
    let ended = world.run(world.call(&token, "effect", json!(1))).await;
    assert!(matches!(ended.outcome, Outcome::Value(_)));
}

#[tokio::test]
async fn a_bounded_call_that_streams_is_counted_once() {
    let world = World::new().await;
    let token = token("cap-1", &[counted("stream", 2)]);
    for expected in [true, true, false] {
        let ended = world.run(world.call(&token, "stream", json!({"chunks": [1, 2]}))).await;
        assert_eq!(matches!(ended.outcome, Outcome::Stream { chunks: 2 }), expected);
    }
    assert_eq!(world.journal.count("reserve"), 3);
}
