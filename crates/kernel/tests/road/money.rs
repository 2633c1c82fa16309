//! Priced calls: what is held, what is charged, what comes back.

use std::sync::Arc;

use chio_core::capability::{CapabilityToken as Token, ToolGrant};
use chio_core::money::MonetaryAmount;
use chio_core::registry::ErrorCode as Code;
use chio_kernel::Outcome;
use serde_json::{Value, json};

use crate::support::tokens::{priced, token, usd};
use crate::support::world::{Ended, assert_denied, assert_failed, metadata};
use crate::support::{World, grant};

fn ran(ended: &Ended) -> bool {
    matches!(ended.outcome, Outcome::Value(_))
}

/// How many cents are left of a budget: what a metered call can still hold.
async fn left(world: &World, token: &Token) -> u64 {
    let (mut low, mut high) = (0_u64, 1000_u64);
    while low < high {
        let most = (low + high).div_ceil(2);
        // The same grant, kept by the route with a ceiling of its own for one call.
        let kept = ToolGrant {
            max_cost_per_invocation: Some(usd(most)),
            ..token.scope.grants.last().unwrap().clone()
        };
        let mut call = world.call(token, "metered", json!({"cost": usd(0)}));
        call.scope = Some(crate::support::tokens::scope(&[kept]));
        if ran(&world.run(call).await) { low = most } else { high = most - 1 }
    }
    low
}

#[tokio::test]
async fn a_flat_price_is_charged_until_the_budget_is_gone() {
    let world = World::new().await;
    let token = token("cap-1", &[priced("paid", 25)]);
    for _ in 0..2 {
        let ended = world.run(world.call(&token, "paid", json!({}))).await;
        assert_eq!(ended.cost, Some(usd(10)));
        let financial =
            json!({"cost_charged": 10, "currency": "USD", "settlement_status": "settled"});
        assert_eq!(*metadata(&ended, "financial"), financial);
    }
    let ended = world.run(world.call(&token, "paid", json!({}))).await;
    assert_denied(&ended, Code::BudgetExhausted, "cost budget exhausted for grant 0 of `cap-1`");
    assert_eq!((ended.cost, world.runs("paid")), (None, 2));
}

#[tokio::test]
async fn a_price_for_each_call_is_a_price() {
    let world = World::new().await;
    let token = token("cap-1", &[priced("per_call", 8)]);
    for expected in [true, true, false] {
        assert_eq!(ran(&world.run(world.call(&token, "per_call", json!({}))).await), expected);
    }
}

#[tokio::test]
async fn what_a_tool_does_not_use_comes_back() {
    let world = World::new().await;
    let token = token("cap-1", &[priced("*", 20)]);
    for cost in [3, 0, 3] {
        let ended = world.run(world.call(&token, "paid", json!({"cost": usd(cost)}))).await;
        assert_eq!(ended.cost, Some(usd(cost)));
        assert_eq!(metadata(&ended, "financial")["cost_charged"], json!(cost));
    }
    assert_eq!(left(&world, &token).await, 14);
}

#[tokio::test]
async fn no_call_pays_more_than_was_held() {
    let world = World::new().await;
    let token = token("cap-1", &[priced("*", 100)]);
    let claims: [Value; 3] =
        [json!(usd(11)), json!(usd(u64::MAX)), json!(MonetaryAmount::new(1, "EUR"))];
    for claim in claims {
        let ended = world.run(world.call(&token, "paid", json!({"cost": claim}))).await;
        assert!(ran(&ended));
        assert_eq!(ended.cost, Some(usd(10)));
        let financial = metadata(&ended, "financial");
        assert_eq!(financial["cost_charged"], json!(10));
        assert_eq!(financial["settlement_status"], json!("failed"));
        assert_eq!(financial["cost_reported"], claim);
    }
    assert_eq!(left(&world, &token).await, 70);
}

#[tokio::test]
async fn a_free_tool_cannot_send_a_bill() {
    let world = World::new().await;
    let token = token("cap-1", &[priced("*", 50)]);
    let ended = world.run(world.call(&token, "echo", json!({"cost": usd(5)}))).await;
    assert_eq!(ended.cost, Some(usd(0)));
    assert_eq!(metadata(&ended, "financial")["settlement_status"], json!("failed"));
    assert_eq!(left(&world, &token).await, 50);
}

#[tokio::test]
async fn a_price_above_what_one_call_may_cost_is_denied() {
    let world = World::new().await;
    for (most, expected) in [(10, true), (9, false), (0, false)] {
        let bounded = ToolGrant { max_cost_per_invocation: Some(usd(most)), ..grant("paid") };
        let ended = world.run_with(&[bounded], "paid", json!({})).await;
        if expected {
            assert!(ran(&ended), "{most}");
        } else {
            assert_denied(&ended, Code::BudgetExhausted, "this one costs 10 USD");
        }
    }
    assert_eq!(world.runs("paid"), 1);
}

#[tokio::test]
async fn two_currencies_do_not_compare() {
    let world = World::new().await;
    let euros = || Some(MonetaryAmount::new(1000, "EUR"));
    let total = ToolGrant { max_total_cost: euros(), ..grant("paid") };
    let each = ToolGrant { max_cost_per_invocation: euros(), ..grant("paid") };
    let ended = world.run_with(&[total], "paid", json!({})).await;
    assert_denied(&ended, Code::BudgetExhausted, "the budget is in EUR, the call costs USD");
    let ended = world.run_with(&[each], "paid", json!({})).await;
    assert_denied(&ended, Code::BudgetExhausted, "a call may cost 1000 EUR");
    let both = ToolGrant {
        max_cost_per_invocation: Some(usd(5)),
        max_total_cost: euros(),
        ..grant("metered")
    };
    let ended = world.run_with(&[both], "metered", json!({})).await;
    assert_denied(&ended, Code::BudgetExhausted, "the budget is in EUR, the call costs USD");
    assert_eq!((world.runs("paid"), world.runs("metered")), (0, 0));
}

#[tokio::test]
async fn an_open_price_needs_a_ceiling_where_there_is_a_budget() {
    let world = World::new().await;
    let ended = world.run_with(&[priced("metered", 50)], "metered", json!({})).await;
    assert_denied(&ended, Code::BudgetExhausted, "price is not known in advance");
    assert_eq!(world.runs("metered"), 0);
    let bounded = ToolGrant { max_cost_per_invocation: Some(usd(20)), ..priced("metered", 50) };
    let token = token("cap-1", &[bounded]);
    // 20 are held for each; what was not used comes back.
    for (cost, charged) in [(json!(usd(7)), 7), (json!(null), 20), (json!(usd(3)), 3)] {
        let arguments = if cost.is_null() { json!({}) } else { json!({"cost": cost}) };
        let ended = world.run(world.call(&token, "metered", arguments)).await;
        assert_eq!(ended.cost, Some(usd(charged)));
    }
    let ended = world.run(world.call(&token, "metered", json!({"cost": usd(7)}))).await;
    assert_eq!(ended.cost, Some(usd(7)), "20 of 20 are held");
    let ended = world.run(world.call(&token, "metered", json!({"cost": usd(7)}))).await;
    assert_denied(&ended, Code::BudgetExhausted, "cost budget exhausted");
}

#[tokio::test]
async fn a_failure_and_a_cancellation_cost_what_was_held() {
    let world = World::new().await;
    let token = token("cap-1", &[priced("*", 100)]);
    let ended = world.run(world.call(&token, "paid_fail", json!({}))).await;
    assert_failed(&ended, "no such row");
    assert_eq!(ended.cost, Some(usd(10)));
    let caller = Arc::new(world.caller());
    let call = world.call(&token, "paid_gate", json!({}));
    let running = world.spawn(call, &caller);
    world.until("run paid_gate").await;
    caller.cancel();
    let ended = running.await.unwrap().unwrap();
    assert!(matches!(ended.outcome, Outcome::Cancelled { .. }));
    assert_eq!(ended.cost, Some(usd(10)));
    assert_eq!(left(&world, &token).await, 80);
}

#[tokio::test]
async fn a_call_that_was_not_sent_costs_nothing_and_does_not_count() {
    let world = World::new().await;
    let once = ToolGrant { max_invocations: Some(1), ..priced("*", 100) };
    let token = token("cap-1", &[once]);
    for _ in 0..2 {
        let ended = world.run(world.call(&token, "paid_refuse", json!({}))).await;
        assert_failed(&ended, "no connection");
        assert_eq!(metadata(&ended, "execution"), "not_begun");
        let spent = world.store.spent("cap-1", 0).await.unwrap();
        assert_eq!((ended.cost, spent.invocations, spent.units), (None, 0, 0));
    }
    assert!(ran(&world.run(world.call(&token, "paid", json!({}))).await));
    let ended = world.run(world.call(&token, "paid", json!({}))).await;
    assert_denied(&ended, Code::BudgetExhausted, "invocation budget exhausted");
}

#[tokio::test]
async fn a_call_that_never_began_costs_nothing() {
    let world = World::new().await;
    let token = token("cap-1", &[priced("*", 100)]);
    let caller = Arc::new(world.caller());
    caller.cancel();
    let ended = world.run_for(world.call(&token, "paid", json!({})), caller).await;
    assert_eq!((ended.cost, world.runs("paid")), (None, 0));
    assert_eq!(left(&world, &token).await, 100);
}

#[tokio::test]
async fn a_call_falls_through_to_a_grant_that_can_pay() {
    let world = World::new().await;
    let euros = ToolGrant { max_total_cost: Some(MonetaryAmount::new(99, "EUR")), ..grant("paid") };
    let token = token("cap-1", &[euros, priced("paid", 10), priced("*", 10)]);
    let mut used = Vec::new();
    for _ in 0..2 {
        let ended = world.run(world.call(&token, "paid", json!({}))).await;
        used.push(metadata(&ended, "attribution")["grant_index"].clone());
    }
    assert_eq!(used, [json!(1), json!(2)]);
    let ended = world.run(world.call(&token, "paid", json!({}))).await;
    assert_denied(&ended, Code::BudgetExhausted, "cost budget exhausted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_callers_at_once_do_not_overdraw() {
    let world = Arc::new(World::new().await);
    let token = token("cap-1", &[priced("paid", 95)]);
    let tasks: Vec<_> = (0..64)
        .map(|_| {
            let (world, token) = (Arc::clone(&world), token.clone());
            tokio::spawn(
                async move { ran(&world.run(world.call(&token, "paid", json!({}))).await) },
            )
        })
        .collect();
    let mut paid = 0;
    for task in tasks {
        paid += usize::from(task.await.unwrap());
    }
    assert_eq!(paid, 9);
}
