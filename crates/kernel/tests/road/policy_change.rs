//! Another policy while calls run: each call is judged by one of them, from its first guard to its
//! receipt.

use std::sync::Arc;
use std::time::Duration;

use chio_core::canonical::Written;
use chio_core::receipt::RedactionMode;
use chio_kernel::{Caller as _, Guard, Outcome, Pipeline, Review, ReviewMode, Verdict};
use serde_json::json;

use crate::support::tokens::token;
use crate::support::{NOW, Setup, World, grant, guard};

/// A policy whose guards all carry its name, and which signs what leaves.
fn policy(name: &'static str) -> Pipeline {
    let named = |part: &str| -> Arc<dyn Guard> {
        // Long enough for the policy to change between two guards.
        Arc::new(guard(&format!("{name}-{part}")).checks(|_| {
            std::thread::sleep(Duration::from_micros(50));
            Ok(Verdict::Allow.into())
        }))
    };
    let last = guard(&format!("{name}-last")).reviews(ReviewMode::EachChunk, move |output| {
        Ok(Review::Replace(json!({"was": output, "by": name})))
    });
    Pipeline::new(name, vec![named("first"), named("second"), Arc::new(last)])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_is_judged_by_half_of_one_policy_and_half_of_another() {
    let world = World::new().await;
    world.kernel.set_pipeline(policy("a"));
    let caller = Arc::new(world.caller());
    let mut running = Vec::new();
    for number in 0..400 {
        let cap = token(&format!("cap-{number}"), &[grant("echo")]);
        running.push(world.spawn(world.call(&cap, "echo", json!(number)), &caller));
        world.kernel.set_pipeline(policy(if number % 2 == 0 { "b" } else { "a" }));
        tokio::time::sleep(Duration::from_micros(30)).await;
    }
    let mut seen = [0, 0];
    for (number, call) in running.into_iter().enumerate() {
        let ended = call.await.unwrap().unwrap();
        let name = ended.receipt.policy_hash.clone();
        let guards: Vec<&str> = ended.receipt.evidence.iter().map(|it| &*it.guard_name).collect();
        let parts = ["first", "second", "last"].map(|part| format!("{name}-{part}"));
        assert_eq!(guards, parts.each_ref().map(String::as_str));
        assert_eq!(ended.outcome, Outcome::Value(json!({"was": number, "by": name})));
        seen[usize::from(name == "b")] += 1;
    }
    assert!(seen.iter().all(|count| *count > 50), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_goes_on_under_the_policy_that_is_then_in_force() {
    let ask = || guard("careful").says(Verdict::AwaitApproval("why not".to_owned()));
    let world = Setup::default().approved().guard(ask()).start().await;
    let cap = token("cap-1", &[grant("*")]);
    for (stays, denies) in [("two", false), ("three", true)] {
        let parked = world.park(world.call(&cap, "effect", json!({"n": 1}))).await;
        let said = if denies { Verdict::Deny("no more".to_owned()) } else { Verdict::Allow };
        let next: Arc<dyn Guard> = Arc::new(guard("next").says(said));
        world.kernel.set_pipeline(Pipeline::new(stays, vec![next]));
        world.approve(&parked).await;
        let (ended, _) = world.ended(parked).await;
        assert_eq!(ended.receipt.policy_hash, stays);
        let guards: Vec<&str> = ended.receipt.evidence.iter().map(|it| &*it.guard_name).collect();
        assert_eq!(guards, ["next"]);
        assert_eq!(matches!(ended.outcome, Outcome::Denied(_)), denies);
        world.kernel.set_pipeline(Pipeline::new("one", vec![Arc::new(ask())]));
    }
    assert_eq!(world.runs("effect"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_policy_says_how_long_its_calls_wait() {
    let ask = guard("careful").says(Verdict::AwaitApproval("why not".to_owned()));
    let world = Setup::default().approved().start().await;
    let timeout = Some(Duration::from_secs(7));
    let pipeline = Pipeline::new("policy-1", vec![Arc::new(ask)]).with_approval_timeout(timeout);
    world.kernel.set_pipeline(pipeline);
    let cap = token("cap-1", &[grant("*")]);
    let parked = world.park(world.call(&cap, "effect", json!({"n": 1}))).await;
    assert_eq!(parked.approval.request.expires_at, NOW + 7);
}

#[tokio::test]
async fn a_call_that_is_denied_before_any_guard_still_keeps_no_secret() {
    let strikes = guard("secrets").strikes("password");
    let world = Setup::default().guard(strikes).start().await;
    let arguments = json!({"password": "hunter2", "user": "me"});
    let ended = world.run_with(&[grant("other")], "echo", arguments.clone()).await;
    assert!(matches!(ended.outcome, Outcome::Denied(_)));
    assert!(ended.receipt.evidence.is_empty(), "no guard was asked");
    assert_eq!(ended.receipt.redaction_mode, RedactionMode::Redacted);
    let kept = json!({"password": "[redacted]", "user": "me"});
    assert_eq!(ended.receipt.action.parameters, kept);
    let hash = chio_core::hash::sha256_hex(Written::of(&kept).unwrap().as_str().as_bytes());
    assert_eq!(ended.receipt.action.parameter_hash, hash);
    // Where there is none, nothing is changed.
    let ended = world.run_with(&[grant("other")], "echo", json!({"user": "me"})).await;
    assert_eq!(ended.receipt.redaction_mode, RedactionMode::None);
}

#[tokio::test]
async fn a_call_that_is_cancelled_among_its_guards_keeps_no_secret() {
    let slow = guard("slow").hangs();
    let world =
        Setup::default().guard(slow).guard(guard("secrets").strikes("password")).start().await;
    let caller = Arc::new(world.caller());
    let cap = token("cap-1", &[grant("echo")]);
    let call = world.spawn(world.call(&cap, "echo", json!({"password": "hunter2"})), &caller);
    tokio::time::sleep(Duration::from_millis(20)).await;
    caller.cancellation().cancel();
    let ended = call.await.unwrap().unwrap();
    assert!(matches!(ended.outcome, Outcome::Cancelled { .. }));
    assert_eq!(ended.receipt.action.parameters, json!({"password": "[redacted]"}));
}
