//! Guards before a call: their order, their names, their evidence, and what becomes of their
//! failures.

use chio_core::registry::ErrorCode as Code;
use chio_kernel::{GuardOutcome, Outcome, Verdict};
use serde_json::json;

use crate::support::tokens::counted;
use crate::support::world::denial;
use crate::support::{Journal, Setup, grant, guard};

#[tokio::test]
async fn guards_are_asked_in_order_and_all_leave_evidence() {
    let journal = Journal::default();
    let found = |name: &'static str| {
        guard(name).telling(&journal).checks(move |input| {
            assert_eq!((input.tool_name, input.server_id), ("echo", "srv"));
            assert_eq!(input.token.id.get(..4), Some("cap-"));
            assert_eq!(input.session.id, "session-1");
            let evidence = Some(format!("{name} looked at {}", input.arguments));
            Ok(GuardOutcome { verdict: Verdict::Allow, evidence, redacted: None })
        })
    };
    let quiet = guard("third").telling(&journal);
    let world =
        Setup::default().guard(found("first")).guard(found("second")).guard(quiet).start().await;
    let ended = world.run_tool("echo", json!(7)).await;
    assert_eq!(ended.outcome, Outcome::Value(json!(7)));
    assert_eq!(journal.all(), ["check first", "check second", "check third"]);
    let evidence = json!([
        {"guard_name": "first", "verdict": true, "details": "first looked at 7"},
        {"guard_name": "second", "verdict": true, "details": "second looked at 7"},
        {"guard_name": "third", "verdict": true},
    ]);
    assert_eq!(json!(ended.receipt.evidence), evidence);
}

#[tokio::test]
async fn the_first_guard_that_does_not_allow_ends_the_call_in_its_name() {
    let cases = [
        (guard("no").says(Verdict::Deny("not today".to_owned())), "not today"),
        (guard("no").checks(|_| Err("no disk".to_owned())), "the guard failed: no disk"),
        (guard("no").checks(|_| panic!("bug")), "the guard panicked"),
    ];
    for (bad, reason) in cases {
        let journal = Journal::default();
        let world = Setup::default()
            .guard(guard("before").telling(&journal))
            .guard(bad.telling(&journal))
            .guard(guard("after").telling(&journal))
            .start()
            .await;
        let ended = world.run_with(&[counted("effect", 1)], "effect", json!(1)).await;
        let denied = denial(&ended);
        assert_eq!((denied.code, &*denied.guard), (Code::GuardDenied, "no"));
        assert_eq!(denied.reason, reason);
        assert_eq!(journal.all(), ["check before", "check no"]);
        let evidence = json!([
            {"guard_name": "before", "verdict": true},
            {"guard_name": "no", "verdict": false},
        ]);
        assert_eq!(json!(ended.receipt.evidence), evidence);
        assert_eq!(world.runs("effect"), 0);
        assert!(world.ledger.reservations().is_empty(), "nothing is held for it");
        // The kernel is none the worse for a guard's panic.
        assert_eq!(world.logged().await.len(), 1);
    }
}

#[tokio::test]
async fn guards_see_only_calls_that_the_token_allows() {
    let journal = Journal::default();
    let world = Setup::default().guard(guard("a").telling(&journal)).start().await;
    for (grants, tool) in [(vec![grant("echo")], "effect"), (vec![], "echo")] {
        let ended = world.run_with(&grants, tool, json!(1)).await;
        assert!(matches!(ended.outcome, Outcome::Denied(_)));
        assert!(ended.receipt.evidence.is_empty());
    }
    assert!(journal.all().is_empty());
    // Nor a revoked one, though the kernel knows it well.
    let token = crate::support::tokens::token("cap-1", &[grant("echo")]);
    world.run(world.call(&token, "echo", json!(1))).await;
    world.kernel.revoke("cap-1").await.unwrap();
    world.run(world.call(&token, "echo", json!(1))).await;
    assert_eq!(journal.all(), ["check a"]);
}

#[tokio::test]
async fn a_guard_that_denies_leaves_its_evidence() {
    let found = guard("found").checks(|_| {
        let verdict = Verdict::Deny("a bad word".to_owned());
        Ok(GuardOutcome { verdict, evidence: Some("word 3".to_owned()), redacted: None })
    });
    let world = Setup::default().guard(found).start().await;
    let ended = world.run_tool("echo", json!(1)).await;
    let evidence = json!([{"guard_name": "found", "verdict": false, "details": "word 3"}]);
    assert_eq!(json!(ended.receipt.evidence), evidence);
}
