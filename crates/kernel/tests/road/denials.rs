//! Every way to be denied before a tool runs: the code, the name of who says so, one receipt.

use std::time::Duration;

use chio_core::capability::{
    CapabilityToken, CapabilityToken as Token, Constraint, ContentReviewTier, Operation,
    OperationClass, PresentedToken, ToolGrant, Validity,
};
use chio_core::hash::sha256_hex;
use chio_core::receipt::RedactionMode;
use chio_core::registry::ErrorCode as Code;
use chio_core::signed::Signed;
use chio_kernel::{Denial, Outcome, ToolCall};
use chio_testkit::key;
use chio_testkit::process::Folder;
use serde_json::json;

use crate::support::tokens::{HOUR, constrained, draft, issuer, scope, token};
use crate::support::world::{Ended, assert_denied, denial};
use crate::support::{NOW, SERVER, Setup, World, grant};

/// Signs what no lawful signer would.
fn forced(token: Token) -> Token {
    let signature = issuer().sign(&token.signing_input().unwrap());
    Token { signature, ..token }
}

fn valid(issued_at: u64, expires_at: u64) -> Token {
    let validity = Validity { issued_at, expires_at };
    let draft = draft("cap-time", &[grant("echo")]);
    let draft = Token::draft(draft.id, draft.issuer, draft.subject, draft.scope, validity);
    draft.signed(&issuer()).unwrap()
}

/// Tokens that do not hold, and how their calls are denied.
fn bad_tokens() -> Vec<(&'static str, Token, Code, &'static str)> {
    let base = draft("cap-1", &[grant("echo")]);
    let good = token("cap-1", &[grant("echo")]);
    let foreign = Token { issuer: key(9).public_key().clone(), ..base.clone() };
    let other_scope = Token { scope: scope(&[grant("*")]), ..good.clone() };
    let denied = Code::CapabilityDenied;
    vec![
        ("untrusted", foreign.signed(&key(9)).unwrap(), denied, "trusted issuer"),
        ("unsigned", base.clone(), denied, "capability verification failed"),
        ("changed", other_scope, denied, "capability verification failed"),
        ("over", valid(NOW - 10, NOW), Code::CapabilityExpired, "expected a time before"),
        ("to come", valid(NOW + 1, NOW + 9), Code::CapabilityExpired, "from"),
        (
            "share",
            forced(Token { budget_share_bps: Some(5000), ..base.clone() }),
            denied,
            "profile that is not supported",
        ),
        ("caveat", forced(Token { caveats: vec![json!({})], ..base.clone() }), denied, "caveat"),
        ("schema", forced(Token { schema: "other".to_owned(), ..base }), denied, "schema"),
    ]
}

// covers: WIRE-041
#[tokio::test]
async fn a_token_that_does_not_hold_is_denied() {
    let world = World::new().await;
    for (name, token, code, words) in bad_tokens() {
        let ended = world.run(world.call(&token, "echo", json!({"case": name}))).await;
        assert_denied(&ended, code, words);
    }
    assert_eq!(world.runs("echo"), 0);
    assert!(world.ledger.reservations().is_empty());
}

#[tokio::test]
async fn a_window_holds_from_its_first_second_up_to_its_last() {
    let world = World::new().await;
    let token = token("cap-1", &[grant("echo")]);
    for (now, holds) in [
        (HOUR.issued_at - 1, false),
        (HOUR.issued_at, true),
        (HOUR.expires_at - 1, true),
        (HOUR.expires_at, false),
    ] {
        world.clock.set(now);
        let ended = world.run(world.call(&token, "echo", json!(now))).await;
        assert_eq!(matches!(ended.outcome, Outcome::Value(_)), holds, "at {now}");
    }
}

#[tokio::test]
async fn only_the_subject_may_present_a_token() {
    let world = World::new().await;
    let mut call = world.call(&token("cap-1", &[grant("echo")]), "echo", json!(1));
    call.agent = key(3).public_key().clone();
    assert_denied(&world.run(call).await, Code::CapabilityDenied, "subject");
}

// covers: WIRE-042
#[tokio::test]
async fn a_revoked_token_is_denied_whoever_revoked_it() {
    let world = World::new().await;
    let token = token("cap-1", &[grant("*")]);
    world.run(world.call(&token, "echo", json!(1))).await;
    assert!(world.kernel.revoke("cap-1").await.unwrap());
    assert!(!world.kernel.revoke("cap-1").await.unwrap());
    for tool in ["echo", "effect"] {
        let ended = world.run(world.call(&token, tool, json!(1))).await;
        assert_denied(&ended, Code::CapabilityRevoked, "capability `cap-1` has been revoked");
    }
    // Another process revokes; this one has not polled since.
    let other = crate::support::tokens::token("cap-2", &[grant("*")]);
    world.run(world.call(&other, "echo", json!(1))).await;
    world.store.revoke("cap-2", NOW).await.unwrap();
    for tool in ["echo", "effect"] {
        let ended = world.run(world.call(&other, tool, json!(1))).await;
        assert_denied(&ended, Code::CapabilityRevoked, "capability `cap-2` has been revoked");
    }
    assert_eq!((world.runs("echo"), world.runs("effect")), (2, 0));
}

#[tokio::test]
async fn a_call_outside_the_scope_is_denied() {
    let world = World::new().await;
    let read_only = ToolGrant { operations: vec![Operation::ReadResult], ..grant("echo") };
    let elsewhere = ToolGrant { server_id: "other".to_owned(), ..grant("echo") };
    let cases: [&[ToolGrant]; 4] = [&[], &[grant("effect")], &[read_only], &[elsewhere]];
    for grants in cases {
        let ended = world.run_with(grants, "echo", json!(1)).await;
        assert_denied(&ended, Code::CapabilityDenied, "is not in the token's scope");
    }
    assert_eq!(world.runs("echo"), 0);
}

#[tokio::test]
async fn a_constraint_that_does_not_hold_or_that_nobody_enforces_denies() {
    let world = World::new().await;
    let cases = [
        (Constraint::MaxLength(2), "does not hold"),
        (Constraint::RegexMatch("^z".to_owned()), "does not hold"),
        (Constraint::RegexMatch("(".to_owned()), "cannot be evaluated"),
        (Constraint::Custom("text".to_owned(), "other".to_owned()), "does not hold"),
        (Constraint::ContentReviewTier(ContentReviewTier::None), "does not hold"),
        (Constraint::RequireDualApproval(false), "does not hold"),
        (Constraint::GovernedIntentRequired, "does not hold"),
        (Constraint::SellerExact("shop".to_owned()), "does not hold"),
        (Constraint::TableAllowlist(vec!["t".to_owned()]), "cannot be enforced here"),
        (Constraint::OperationClass(OperationClass::ReadOnly), "cannot be enforced here"),
        (Constraint::MaxRowsReturned(1), "cannot be enforced here"),
    ];
    for (constraint, words) in cases {
        let kind = constraint.kind();
        let grants = [constrained("echo", constraint)];
        let ended = world.run_with(&grants, "echo", json!({"text": "secret words"})).await;
        assert_denied(&ended, Code::CapabilityDenied, words);
        assert!(denial(&ended).reason.contains(kind), "{}", denial(&ended));
        assert!(!denial(&ended).reason.contains("secret"), "a reason holds no argument");
    }
    // A grant whose constraint holds makes up for one whose does not.
    let grants = [constrained("echo", Constraint::MaxLength(2)), grant("echo")];
    let ended = world.run_with(&grants, "echo", json!({"text": "secret words"})).await;
    assert!(matches!(ended.outcome, Outcome::Value(_)));
    assert_eq!(world.runs("echo"), 1);
}

#[tokio::test]
async fn a_grant_that_asks_for_a_proof_of_possession_denies() {
    let world = World::new().await;
    let asks = ToolGrant { dpop_required: Some(true), ..grant("echo") };
    let ended = world.run_with(std::slice::from_ref(&asks), "echo", json!(1)).await;
    let denied = denial(&ended);
    assert_eq!((denied.code, &*denied.guard), (Code::CapabilityDenied, "proof_of_possession"));
    // One matching grant that asks is enough.
    let ended = world.run_with(&[grant("echo"), asks], "echo", json!(1)).await;
    assert_eq!(denial(&ended).guard, "proof_of_possession");
    let not = ToolGrant { dpop_required: Some(false), ..grant("echo") };
    let ended = world.run_with(&[not], "echo", json!(1)).await;
    assert!(matches!(ended.outcome, Outcome::Value(_)));
}

// What stands for it has the keys of nobody, and no kernel may come to trust them.
#[tokio::test]
async fn what_could_not_be_read_as_a_token_is_denied_whatever_else_is_true_of_it() {
    let unreadable = || PresentedToken::unreadable("cap-1", "no object".to_owned());
    let nobody = unreadable().issuer.clone();
    let world = Setup::default().config(|it| it.trusted_issuers.push(nobody)).start().await;
    let request_id = world.kernel.new_request_id();
    let call = ToolCall::new(request_id, unreadable(), SERVER, "effect", json!(1));
    let ended = world.run(call).await;
    assert_denied(&ended, Code::CapabilityDenied, "found something else: no object");
    let metadata = ended.receipt.metadata.as_ref().unwrap();
    assert_eq!((metadata.get("attribution"), world.runs("effect")), (None, 0));
}

#[tokio::test]
async fn an_unknown_server_or_tool_is_denied() {
    let world = World::new().await;
    let anything = ToolGrant { server_id: "*".to_owned(), ..grant("*") };
    let token = token("cap-1", &[anything]);
    let ended = world.run(world.call(&token, "nothing", json!(1))).await;
    assert_denied(&ended, Code::ToolServerError, "has no tool `nothing`");
    let elsewhere = ToolCall::new("req-1".to_owned(), token, "nowhere", "echo", json!(1));
    let ended = world.run(elsewhere).await;
    assert_denied(&ended, Code::ToolServerError, "no tool server `nowhere` is registered");
    let named = (&*ended.receipt.tool_server, &*ended.receipt.tool_name);
    assert_eq!(named, ("nowhere", "echo"));
}

// covers: CROSS-049, CROSS-051
#[tokio::test]
async fn a_route_that_widens_the_scope_is_denied() {
    let world = World::new().await;
    let token = token("cap-1", &[crate::support::tokens::counted("echo", 3)]);
    for wider in [
        grant("echo"),
        crate::support::tokens::counted("echo", 4),
        crate::support::tokens::counted("*", 3),
        crate::support::tokens::counted("effect", 3),
    ] {
        let mut call = world.call(&token, "echo", json!(1));
        call.scope = Some(scope(&[wider]));
        assert_denied(&world.run(call).await, Code::CapabilityDenied, "not within the token's");
    }
    assert_eq!(world.runs("echo"), 0);
}

#[tokio::test]
async fn a_refusal_that_was_handed_in_is_signed_as_it_is() {
    let world = World::new().await;
    let refusal = Denial {
        code: Code::GuardDenied,
        guard: "route-planner".to_owned(),
        reason: "no such route".to_owned(),
    };
    // Nothing else is looked at, not even the token.
    for token in [token("cap-1", &[grant("effect")]), draft("cap-2", &[])] {
        let mut call = world.call(&token, "effect", json!(1));
        call.refusal = Some(refusal.clone());
        assert_eq!(*denial(&world.run(call).await), refusal);
    }
    assert_eq!(world.runs("effect"), 0);
}

#[tokio::test]
async fn arguments_that_are_too_large_leave_only_their_hash() {
    let world = Setup::default().config(|it| it.limits.max_argument_bytes = 20).start().await;
    let fits = json!("x".repeat(18));
    assert_eq!(world.run_tool("echo", fits.clone()).await.outcome, Outcome::Value(fits));
    let large = json!("x".repeat(19));
    let ended = world.run_tool("echo", large.clone()).await;
    assert_denied(&ended, Code::InvalidRequestShape, "arguments");
    let text = large.to_string();
    let kept = json!({"omitted_bytes": 21, "sha256": sha256_hex(text.as_bytes())});
    assert_eq!(ended.receipt.action.parameters, kept);
    assert_eq!(ended.receipt.redaction_mode, RedactionMode::Summary);
    assert_eq!(world.runs("echo"), 1);
}

#[tokio::test]
async fn names_that_are_too_long_leave_only_their_hash() {
    let world = World::new().await;
    let long = "n".repeat(100_000);
    let hash = format!("sha256:{}", sha256_hex(long.as_bytes()));
    let anything = [ToolGrant { server_id: "*".to_owned(), ..grant("*") }];
    let (plain, named) = (token("cap-1", &anything), token(&long, &anything));
    let call = |token: &Token, server: &str, tool: &str| {
        let request_id = world.kernel.new_request_id();
        ToolCall::new(request_id, token.clone(), server, tool, json!(1))
    };
    for (call, words) in [
        (call(&plain, &long, "echo"), "server name"),
        (call(&plain, "srv", &long), "tool name"),
        (call(&named, "srv", "echo"), "token id"),
    ] {
        let ended = world.run(call).await;
        assert_denied(&ended, Code::InvalidRequestShape, words);
        let text = serde_json::to_string(&ended.receipt).unwrap();
        assert!(text.contains(&hash) && !text.contains(&long), "{words}");
    }
}

async fn try_both(world: &World, token: &CapabilityToken) -> [Ended; 2] {
    let echo = world.run(world.call(token, "echo", json!(1))).await;
    [echo, world.run(world.call(token, "effect", json!(1))).await]
}

#[tokio::test]
async fn a_stop_denies_everything_until_it_ends() {
    let world = World::new().await;
    let token = token("cap-1", &[grant("*")]);
    world.kernel.emergency_stop("fire").await.unwrap();
    for ended in try_both(&world, &token).await {
        assert_denied(&ended, Code::GuardDenied, "everything is stopped: fire");
    }
    world.kernel.resume().await.unwrap();
    for ended in try_both(&world, &token).await {
        assert!(matches!(ended.outcome, Outcome::Value(_)));
    }
    // Another process stops; this one has not polled since.
    world.store.stop(Some("water".to_owned())).await.unwrap();
    for ended in try_both(&world, &token).await {
        assert_denied(&ended, Code::GuardDenied, "everything is stopped: water");
    }
    assert_eq!((world.runs("echo"), world.runs("effect")), (1, 1));
}

#[tokio::test]
async fn a_kernel_that_shuts_down_denies_new_calls() {
    let world = World::new().await;
    world.kernel.drain(Duration::ZERO).await.unwrap();
    let ended = world.run_tool("effect", json!(1)).await;
    assert_denied(&ended, Code::InternalError, "shutting down");
    assert_eq!(world.runs("effect"), 0);
}

/// Changes the database of a store in a folder behind its back.
fn in_database(folder: &Folder, sql: &str) {
    let database = rusqlite::Connection::open(folder.path("store/store.db")).unwrap();
    database.execute_batch(sql).unwrap();
}

#[tokio::test]
async fn a_stale_view_of_revocations_denies() {
    let folder = Folder::new();
    let world = Setup::in_folder(&folder, 1).start().await;
    let token = token("cap-1", &[grant("*")]);
    // What the store reads first, and what it reads when it cannot.
    std::fs::write(folder.path("store/store.epoch"), "").unwrap();
    in_database(&folder, "ALTER TABLE meta RENAME TO lost");
    world.clock.wait(Duration::from_secs(2));
    // As old as allowed, but the store does not say whether it is current.
    let ended = world.run(world.call(&token, "echo", json!(1))).await;
    assert_denied(&ended, Code::InternalError, "no such table: meta");
    world.clock.wait(Duration::from_millis(1));
    for ended in try_both(&world, &token).await {
        assert_denied(&ended, Code::InternalError, "too old to decide on");
    }
    assert_eq!((world.runs("echo"), world.runs("effect")), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_view_that_is_polled_stays_fresh() {
    let poll = Duration::from_millis(100);
    let world = Setup::default().config(|it| it.revocation_poll = poll).start().await;
    let token = token("cap-1", &[grant("echo")]);
    let mut news = world.kernel.revocations();
    for _ in 0..50 {
        world.clock.wait(poll);
        tokio::time::sleep(poll).await;
    }
    let ended = world.run(world.call(&token, "echo", json!(1))).await;
    assert!(matches!(ended.outcome, Outcome::Value(_)));
    world.store.revoke("cap-1", NOW).await.unwrap();
    assert_eq!(news.recv().await.unwrap(), "cap-1");
    assert!(world.kernel.is_revoked(&token));
}

#[tokio::test]
async fn a_store_that_does_not_know_tokens_now_denies() {
    let folder = Folder::new();
    let world = Setup::in_folder(&folder, 1).start().await;
    let token = token("cap-1", &[grant("effect")]);
    in_database(&folder, "ALTER TABLE tokens RENAME TO lost");
    let ended = world.run(world.call(&token, "effect", json!(1))).await;
    assert_denied(&ended, Code::InternalError, "no such table: tokens");
    in_database(&folder, "ALTER TABLE lost RENAME TO tokens");
    let ended = world.run(world.call(&token, "effect", json!(1))).await;
    assert!(matches!(ended.outcome, Outcome::Value(_)));
}
