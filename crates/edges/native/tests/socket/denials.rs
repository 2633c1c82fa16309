//! Every way in which the kernel itself says no. Each leaves one receipt.

use chio_core::capability::{CapabilityToken, ToolGrant, Validity};
use chio_core::message::{KernelMessage, ToolCallResponse};
use chio_core::money::MonetaryAmount;
use chio_core::receipt::Execution::NotBegun;
use chio_core::receipt::NO_OUTPUT_HASH;
use chio_testkit::key;
use chio_testkit::receipts::{reason, written};
use chio_testkit::token::{grant, token_at};
use serde_json::{Value, json};

use crate::world::{World, agent, authority, now};

/// Calls a tool of the shared server, and checks the receipt that it leaves.
#[track_caller]
fn call(world: &World, token: &CapabilityToken, tool: &str, params: Value) -> ToolCallResponse {
    let response = world.connect().call("1", token, tool, params);
    assert_eq!(response.receipt.content_hash, NO_OUTPUT_HASH);
    world.check_receipt(&response);
    response
}

/// Checks a denial with a reason of its own.
#[track_caller]
fn check(response: &ToolCallResponse, code: &str, words: &str) {
    let error = &written(&response.result)["error"];
    assert_eq!(error["code"], code, "{error}");
    let reason = reason(&response.receipt);
    assert!(reason.contains(words), "expected {words:?} in {reason:?}");
    match code {
        "capability_expired" | "capability_revoked" => assert_eq!(*error, json!({"code": code})),
        "policy_denied" => {
            assert_eq!(error["detail"], json!({"guard": "kernel", "reason": reason}));
        }
        _ => assert_eq!(error["detail"], *reason),
    }
}

fn at(id: &str, issued_at: u64, expires_at: u64) -> CapabilityToken {
    let validity = Validity { issued_at, expires_at };
    let (authority, agent) = (authority(), agent());
    token_at(&authority, agent.public_key(), id, vec![grant("echo")], validity)
}

// covers: WIRE-038, WIRE-039, WIRE-041
#[test]
fn a_token_outside_its_window_is_expired() {
    let world = World::new();
    let now = now();
    let hi = || json!({"text": "hi"});
    let response = call(&world, &at("expired-1", now - 100, now - 1), "echo", hi());
    check(&response, "capability_expired", "the token does not hold now");
    let response = call(&world, &at("early-1", now + 100, now + 200), "echo", hi());
    check(&response, "capability_expired", "the token does not hold now");
}

// covers: WIRE-040
#[test]
fn a_capability_that_cannot_be_read_denies_its_request_and_no_other() {
    let world = World::new();
    let token = world.token("readable-1", vec![grant("sleep"), grant("echo")]);
    let mut wire = world.connect();
    wire.send_call("slow", &token, "sleep", json!({"ms": 200}));
    let malformed = [
        (json!({"id": "malformed-1", "scope": "s3cret"}), "malformed-1"),
        (json!("malformed-2"), ""),
        (json!(null), ""),
        (json!([]), ""),
    ];
    for (capability, claimed) in malformed {
        let request = json!({"type": "tool_call_request", "id": "bad", "capability_token": capability,
            "server_id": "demo", "tool": "echo", "params": {"text": "hi"}});
        wire.send_payload(request.to_string().as_bytes());
        let Some(KernelMessage::ToolCallResponse(response)) = wire.message() else {
            panic!("expected an answer to the request");
        };
        assert_eq!(response.id, "bad");
        let error = &written(&response.result)["error"];
        assert_eq!(error["code"], "capability_denied", "{error}");
        let receipt = &response.receipt;
        assert_eq!((&*receipt.capability_id, receipt.execution()), (claimed, Some(NotBegun)));
        let metadata = receipt.metadata.as_ref().unwrap();
        // Nobody's keys are named, since none could be read.
        assert_eq!(metadata.get("attribution"), None);
        assert!(!json!(receipt).to_string().contains("s3cret"), "{receipt:?}");
        receipt.verify().unwrap();
        let logged = world.receipts(claimed);
        assert_eq!(logged.iter().filter(|it| it.id == receipt.id).count(), 1);
    }
    let Some(KernelMessage::ToolCallResponse(slow)) = wire.message() else {
        panic!("expected the answer to the call that ran meanwhile");
    };
    assert_eq!((&*slow.id, &written(&slow.result)["status"]), ("slow", &json!("ok")));
    let after = wire.call("after", &token, "echo", json!({"text": "hi"}));
    assert_eq!(written(&after.result)["status"], "ok");
}

// covers: WIRE-040
#[test]
fn a_token_of_an_issuer_that_is_not_trusted_is_denied() {
    let world = World::new();
    let validity = Validity { issued_at: now(), expires_at: now() + 60 };
    let subject = agent();
    let token =
        token_at(&key(66), subject.public_key(), "stranger-1", vec![grant("echo")], validity);
    let response = call(&world, &token, "echo", json!({"text": "hi"}));
    check(&response, "capability_denied", "issuer");
}

#[test]
fn a_token_that_was_changed_after_it_was_signed_is_denied() {
    let world = World::new();
    let original = world.token("tampered-1", vec![grant("echo")]);
    // Also when the kernel has met the original before.
    world.connect().call("0", &original, "echo", json!({"text": "hi"}));
    let changes: [fn(&mut CapabilityToken); 4] = [
        |token| token.scope.grants[0].tool_name = "*".to_owned(),
        |token| token.expires_at += 1,
        |token| token.subject = key(8).public_key().clone(),
        |token| token.id = "tampered-2".to_owned(),
    ];
    for change in changes {
        let mut token = original.clone();
        change(&mut token);
        let response = world.connect().call("1", &token, "echo", json!({"text": "hi"}));
        check(&response, "capability_denied", "signature");
    }
    assert_eq!(world.receipts("tampered-1").len(), 4);
    assert_eq!(world.receipts("tampered-2").len(), 1);
}

#[test]
fn two_tokens_with_one_id_are_not_both_accepted() {
    let world = World::new();
    let first = world.token("twin-1", vec![grant("echo")]);
    let second = world.token("twin-1", vec![grant("*")]);
    let mut wire = world.connect();
    let response = wire.call("1", &first, "echo", json!({"text": "hi"}));
    assert_eq!(written(&response.result)["status"], "ok");
    let response = wire.call("2", &second, "echo", json!({"text": "hi"}));
    check(&response, "capability_denied", "another token with the id");
}

#[test]
fn what_the_token_does_not_speak_of_is_denied() {
    let world = World::new();
    let token = world.token("scope-1", vec![grant("echo")]);
    check(&call(&world, &token, "now", json!({})), "capability_denied", "not in the token's scope");
    let mut only_read = grant("echo");
    only_read.operations = serde_json::from_value(json!(["read_result"])).unwrap();
    let token = world.token("scope-2", vec![only_read]);
    let response = call(&world, &token, "echo", json!({"text": "hi"}));
    check(&response, "capability_denied", "not in the token's scope");
    let token = world.token("scope-3", Vec::new());
    let response = call(&world, &token, "echo", json!({"text": "hi"}));
    check(&response, "capability_denied", "not in the token's scope");
}

fn constrained(tool: &str, constraint: Value) -> ToolGrant {
    let constraints = vec![serde_json::from_value(constraint).unwrap()];
    ToolGrant { constraints, ..grant(tool) }
}

#[test]
fn arguments_that_break_a_constraint_are_denied_and_others_are_not() {
    let world = World::new();
    let grants = || vec![constrained("echo", json!({"type": "max_length", "value": 5}))];
    let token = world.token("length-1", grants());
    let response = call(&world, &token, "echo", json!({"text": "much too long"}));
    check(&response, "capability_denied", "constraint `max_length` does not hold");
    let token = world.token("length-2", grants());
    let response = world.connect().call("1", &token, "echo", json!({"text": "short"}));
    assert_eq!(written(&response.result)["status"], "ok");
}

#[test]
fn a_constraint_that_nobody_enforces_and_a_broken_one_deny() {
    let world = World::new();
    for (id, constraint) in [
        ("unknown-constraint-1", json!({"type": "governed_intent_required"})),
        ("unknown-constraint-2", json!({"type": "regex_match", "value": "("})),
    ] {
        let token = world.token(id, vec![constrained("echo", constraint)]);
        let response = call(&world, &token, "echo", json!({"text": "hi"}));
        check(&response, "capability_denied", "");
    }
}

// covers: WIRE-043
#[test]
fn a_spent_budget_of_calls_denies_and_other_tokens_go_on() {
    let world = World::new();
    let grants = vec![ToolGrant { max_invocations: Some(2), ..grant("echo") }];
    let token = world.token("calls-1", grants);
    let mut wire = world.connect();
    for id in ["1", "2"] {
        let response = wire.call(id, &token, "echo", json!({"text": "hi"}));
        assert_eq!(written(&response.result)["status"], "ok");
    }
    let response = wire.call("3", &token, "echo", json!({"text": "hi"}));
    check(&response, "policy_denied", "invocation budget exhausted for grant 0 of `calls-1`");
    assert_eq!(world.receipts("calls-1").len(), 3);
}

#[test]
fn a_call_that_is_denied_before_it_runs_spends_nothing_and_one_that_fails_does() {
    let world = World::new();
    let limited = |tool: &str| ToolGrant { max_invocations: Some(1), ..grant(tool) };
    let constraint = serde_json::from_value(json!({"type": "max_length", "value": 5})).unwrap();
    let short = ToolGrant { constraints: vec![constraint], ..limited("echo") };
    let token = world.token("spent-1", vec![short, limited("note_get")]);
    let mut wire = world.connect();
    let mut call = |tool, params| written(&wire.call("1", &token, tool, params).result);
    assert_eq!(call("echo", json!({"text": "much too long"}))["status"], "err");
    assert_eq!(call("echo", json!({"text": "short"}))["status"], "ok");
    assert_eq!(call("echo", json!({"text": "short"}))["error"]["code"], "policy_denied");
    let failed = call("note_get", json!({"name": "none"}));
    assert_eq!(failed["error"]["code"], "tool_server_error");
    assert_eq!(call("note_get", json!({"name": "none"}))["error"]["code"], "policy_denied");
}

#[test]
fn a_token_that_was_met_before_still_expires() {
    let world = World::new();
    let token = at("brief-1", now() - 10, now() + 2);
    let mut wire = world.connect();
    let mut call = || written(&wire.call("1", &token, "echo", json!({"text": "hi"})).result);
    assert_eq!(call()["status"], "ok");
    chio_testkit::process::until("the token to expire", || {
        let result = call();
        let expired = result == json!({"status": "err", "error": {"code": "capability_expired"}});
        assert!(expired || result["status"] == "ok", "{result}");
        expired.then_some(())
    });
}

#[test]
fn a_spent_budget_of_money_denies() {
    let world = World::new();
    let budget = Some(MonetaryAmount::new(60, "USD"));
    let token = world.token("money-1", vec![ToolGrant { max_total_cost: budget, ..grant("paid") }]);
    let mut wire = world.connect();
    for id in ["1", "2"] {
        let response = wire.call(id, &token, "paid", json!({"text": "hi"}));
        assert_eq!(written(&response.result)["status"], "ok");
    }
    let response = wire.call("3", &token, "paid", json!({"text": "hi"}));
    check(&response, "policy_denied", "cost budget exhausted");

    let too_little = Some(MonetaryAmount::new(10, "USD"));
    let grants = vec![ToolGrant { max_cost_per_invocation: too_little, ..grant("paid") }];
    let token = world.token("money-2", grants);
    let response = call(&world, &token, "paid", json!({"text": "hi"}));
    check(&response, "policy_denied", "a call may cost 10 USD, this one costs 25 USD");
    let euros = Some(MonetaryAmount::new(100, "EUR"));
    let grants = vec![ToolGrant { max_total_cost: euros, ..grant("paid") }];
    let token = world.token("money-3", grants);
    let response = call(&world, &token, "paid", json!({"text": "hi"}));
    check(&response, "policy_denied", "the budget is in EUR, the call costs USD");
}

#[test]
fn an_unknown_server_and_an_unknown_tool_are_named() {
    let world = World::new();
    let token = world.token("nowhere-1", vec![grant("*/*")]);
    let response = call(&world, &token, "moon/land", json!({}));
    check(&response, "tool_server_error", "no tool server `moon` is registered");
    let token = world.token("nowhere-2", vec![grant("*")]);
    let response = call(&world, &token, "land", json!({}));
    check(&response, "tool_server_error", "tool server `demo` has no tool `land`");
}
