//! Governed calls: what the caller intends, what is asked for, and what the receipt keeps of it.

use chio_core::canonical;
use chio_core::capability::{CapabilityToken, ToolGrant};
use chio_core::crypto::{Keypair, Signature};
use chio_core::governance::{
    ApprovalDecision, ApprovalToken, CallChainContext, ContinuationToken, GovernedTransactionIntent,
};
use chio_core::signed::Signed;
use chio_testkit::key;
use chio_testkit::process::Run;
use chio_testkit::token::grant;
use serde_json::{Value, json};

use crate::support::{World, agent, now};

fn intent(tool: &str) -> GovernedTransactionIntent {
    GovernedTransactionIntent::new("intent-1", "demo", tool, "to see what it says")
}

fn write(world: &World, name: &str, document: &impl serde::Serialize) {
    world.folder.write(name, serde_json::to_vec(document).unwrap());
}

fn call(world: &World, token: &CapabilityToken, options: &[&str]) -> Run {
    world.start_call("a.sock", token, options).end()
}

/// What the only receipt of a token's calls says of the intent.
#[track_caller]
fn recorded(world: &World, token: &str) -> Value {
    let receipts = world.receipts(token);
    assert_eq!(receipts.len(), 1, "{receipts:?}");
    receipts[0].metadata.as_ref().unwrap()["governed_transaction"].clone()
}

#[test]
fn an_intent_is_read_strictly_sent_and_recorded() {
    let (world, _server) = World::served();
    let token = world.token("intent-1", vec![grant("echo")]);
    let stated = intent("echo");
    let echo = ["--intent", "intent.json", "demo", "echo", r#"{"text": "hi"}"#];
    let mut misspelt = serde_json::to_value(&stated).unwrap();
    misspelt["maxAmount"] = json!({"units": 1, "currency": "USD"});
    write(&world, "intent.json", &misspelt);
    call(&world, &token, &echo).ends(1).complains("expected only known members, found `maxAmount`");
    assert!(world.receipts("intent-1").is_empty(), "nothing was sent");

    write(&world, "intent.json", &stated);
    call(&world, &token, &echo).ends(0).says("hi");
    let found = recorded(&world, "intent-1");
    assert_eq!(found["intent_hash"], stated.hash().unwrap());
    assert_eq!(
        (&found["intent_id"], &found["purpose"]),
        (&json!("intent-1"), &json!("to see what it says"))
    );
    world.audit();
}

#[test]
fn an_intent_for_something_else_denies() {
    let (world, _server) = World::served();
    write(&world, "intent.json", &intent("now"));
    let token = world.token("intent-2", vec![grant("echo")]);
    let echo = ["--intent", "intent.json", "demo", "echo", r#"{"text": "hi"}"#];
    call(&world, &token, &echo).ends(1).complains("expected an intent for tool `echo`");
    assert_eq!(world.receipts("intent-2").len(), 1);
    world.audit();
}

/// A token that the command issues with a constraint.
fn issued(world: &World, id: &str, tool: &str, constraint: &str) -> CapabilityToken {
    let file = format!("{id}.issued");
    let words = ["capability", "issue", "--data", "s", "--subject", "agent.key", "--grant", tool];
    let rest = ["--constraint", constraint, "--id", id, "--out", &file];
    world.run(&[&words[..], &rest].concat()).ends(0);
    serde_json::from_str(&world.folder.read(&file)).unwrap()
}

#[test]
fn a_grant_for_governed_calls_only_needs_an_intent() {
    let (world, _server) = World::served();
    let constraint = r#"{"type": "governed_intent_required"}"#;
    let token = issued(&world, "only-1", "demo/now", constraint);
    call(&world, &token, &["demo", "now"])
        .ends(1)
        .complains("expected a governed intent, found none");
    write(&world, "intent.json", &intent("now"));
    call(&world, &token, &["--intent", "intent.json", "demo", "now"]).ends(0);
    assert_eq!(world.receipts("only-1").len(), 2);
    world.audit();
}

#[test]
fn what_costs_as_much_as_the_grant_says_needs_an_approval_of_its_intent() {
    let (world, _server) = World::served();
    let constraint = r#"{"type": "require_approval_above", "value": {"threshold_units": 25}}"#;
    let token = issued(&world, "above-1", "demo/paid", constraint);
    let stated = intent("paid");
    write(&world, "intent.json", &stated);
    let running = world.start_call("a.sock", &token, &["--intent", "intent.json", "demo", "paid"]);
    let id = world.waiting("above-1");
    let shown = world.line(&format!("approvals show {id} --data s")).ends(0);
    let shown = shown.says("to see what it says (intent-1)").says(&stated.hash().unwrap());
    shown.tells("asks for approval from 25 units on, the call may cost 25");
    world.line(&format!("approvals approve {id} --data s")).ends(0);
    running.end().ends(0);
    let found = recorded(&world, "above-1");
    assert_eq!(found["intent_hash"], stated.hash().unwrap());
    let approver = world.folder.read_key("s/approver.key").public_key().to_hex();
    assert_eq!(found["approval"]["approver_key"], approver, "{found}");

    let constraint = r#"{"type": "require_approval_above", "value": {"threshold_units": 26}}"#;
    let cheap = issued(&world, "below-1", "demo/paid", constraint);
    call(&world, &cheap, &["--intent", "intent.json", "demo", "paid"]).ends(0);
    world.audit();
}

/// An approval of a call that has not been made yet, by the caller's own name for it.
fn approval(key: &Keypair, call: &str, intent: &GovernedTransactionIntent) -> ApprovalToken {
    let token = ApprovalToken {
        id: format!("approval-of-{call}"),
        approver: key.public_key().clone(),
        subject: agent().public_key().clone(),
        governed_intent_hash: intent.hash().unwrap(),
        request_id: call.to_owned(),
        threshold_proposal_hash: None,
        issued_at: now(),
        expires_at: now() + 300,
        decision: ApprovalDecision::Approved,
        algorithm: None,
        signature: Signature::blank(),
    };
    token.signed(key).unwrap()
}

#[test]
fn a_call_that_brings_its_approval_does_not_wait_and_no_other_can_use_it() {
    let (world, mut server) = World::served();
    let token = world.token("brings-1", vec![grant("needs_approval")]);
    let params = json!({"text": "please"});
    let mut stated = intent("needs_approval");
    stated.context = Some(json!({"parameterHash": canonical::hash(&params).unwrap()}));
    write(&world, "intent.json", &stated);
    let approver = world.folder.read_key("s/approver.key");
    write(&world, "approval.json", &approval(&approver, "call-1", &stated));
    let options = ["--intent", "intent.json", "--approval", "approval.json", "--id"];
    let words = ["demo", "needs_approval", r#"{"text": "please"}"#];
    let brings = |id: &str| call(&world, &token, &[&options[..], &[id], &words].concat());

    brings("call-2").ends(1).complains("expected an approval of request");
    brings("call-1").ends(0).says("please");
    brings("call-1").ends(1).complains("the approval was used before");
    server.end();
    let _server = world.serve("");
    brings("call-1").ends(1).complains("the approval was used before");
    assert!(world.requests("brings-1").is_empty(), "none of them waited");
    assert_eq!(world.receipts("brings-1").len(), 4);
    world.audit();
}

#[test]
fn a_call_that_continues_another_elsewhere_can_wait_and_its_leave_is_used_once() {
    let world = World::new();
    let elsewhere = key(8);
    let _server = world.serve(&format!("--trusted-kernel {}", elsewhere.public_key()));
    let grants = vec![ToolGrant { max_invocations: Some(9), ..grant("needs_approval") }];
    let token = world.token("continues-1", grants);
    let context = CallChainContext {
        chain_id: "trace-elsewhere".to_owned(),
        parent_request_id: "req-elsewhere".to_owned(),
        parent_receipt_id: None,
        origin_subject: "somebody".to_owned(),
        delegator_subject: "somebody".to_owned(),
    };
    let mut stated = intent("needs_approval");
    stated.call_chain = Some(context.clone());
    stated.context = Some(json!({"callChainContinuation": continuation(&elsewhere, context)}));
    write(&world, "intent.json", &stated);
    let words = ["--intent", "intent.json", "demo", "needs_approval", r#"{"text": "please"}"#];
    let running = world.start_call("a.sock", &token, &words);
    let id = world.waiting("continues-1");
    world.line(&format!("approvals approve {id} --data s")).ends(0);
    running.end().ends(0).says("please");
    let found = recorded(&world, "continues-1");
    assert_eq!(found["call_chain"]["evidenceClass"], "verified");
    assert_eq!(found["approval"]["approved"], true, "{found}");
    call(&world, &token, &words).ends(1).complains("used before");
    assert_eq!(world.receipts("continues-1").len(), 2);
    world.audit();
}

/// A kernel's word that the agent may continue a call of its, once.
pub(crate) fn continuation(kernel: &Keypair, context: CallChainContext) -> ContinuationToken {
    let token = ContinuationToken {
        schema: ContinuationToken::SCHEMA.to_owned(),
        token_id: "continuation-1".to_owned(),
        signer: kernel.public_key().clone(),
        subject: agent().public_key().clone(),
        context,
        parent_receipt_hash: None,
        parent_session_anchor: None,
        current_subject: agent().public_key().to_hex(),
        parent_capability_id: None,
        delegation_link_hash: None,
        governed_intent_hash: None,
        audience: None,
        nonce: Some("once".to_owned()),
        issued_at: now(),
        expires_at: now() + 300,
        signature: Signature::blank(),
    };
    token.signed(kernel).unwrap()
}
