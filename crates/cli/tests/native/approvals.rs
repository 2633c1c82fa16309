//! Calls that wait until an approver approves, and the commands that answer them.

use chio_core::capability::{CapabilityToken, ToolGrant};
use chio_core::receipt::{ChioReceipt, Decision};
use chio_testkit::process::{Running, Wire, until};
use chio_testkit::token::grant;
use serde_json::{Value, json};

use crate::support::{World, written};

const CALL: [&str; 3] = ["demo", "needs_approval", r#"{"text": "please"}"#];

/// How many calls of one connection may run at once.
const AT_ONCE: usize = 64;

fn token(world: &World, id: &str) -> CapabilityToken {
    world.token(id, vec![ToolGrant { max_invocations: Some(5), ..grant("needs_approval") }])
}

/// A call that waits, and the id of its request.
fn parked(world: &World, id: &str) -> (Running, String) {
    let call = world.start_call("a.sock", &token(world, id), &CALL);
    let request = world.waiting(id);
    (call, request)
}

fn governed(receipt: &ChioReceipt) -> &Value {
    &receipt.metadata.as_ref().unwrap()["governed_transaction"]
}

#[test]
fn an_approved_call_goes_on_and_its_receipt_names_who_approved() {
    let (world, server) = World::served();
    let (mut call, id) = parked(&world, "yes-1");
    assert!(call.is_running());
    let listed = world.line("approvals list --data s").ends(0);
    let listed = listed
        .says("  pending  ")
        .says("demo/needs_approval")
        .says(id.get(..18).unwrap())
        .says("    ends in ");
    assert_eq!(listed.stdout.matches("demo/needs_approval").count(), 1, "{listed:#?}");
    let shown = world.line(&format!("approvals show {id} --data s")).ends(0);
    for text in [
        "state       pending, ends in ",
        "why         kernel: the tool is published as one that needs approval",
        "tool        demo/needs_approval",
        "\"text\": \"please\"",
        "capability  yes-1",
        &format!("caller      {}", crate::support::agent().public_key()),
    ] {
        assert!(shown.stdout.contains(text), "expected {text:?} in {shown:#?}");
    }
    let approver = world.folder.read_key("s/approver.key").public_key().to_hex();
    let run = world.line(&format!("approvals approve {id} --data s")).ends(0);
    run.says(&format!("approved    {id}")).says(&format!("approver    {approver}"));

    let run = call.end().ends(0);
    assert_eq!(run.stdout, "{\"text\":\"please\"}\n");
    world.check_request("yes-1", "used");
    let receipts = world.receipts("yes-1");
    assert_eq!(receipts[0].decision, Some(Decision::Allow));
    assert_eq!(governed(&receipts[0])["approval"]["approver_key"], approver);
    let shown = world.line(&format!("approvals show {id} --data s --json")).ends(0).json();
    assert_eq!(shown["request"]["intent_hash"], governed(&receipts[0])["intent_hash"]);
    assert_eq!(shown["receipt_id"], receipts[0].id);
    let shown = world.line(&format!("approvals show {id} --data s")).ends(0);
    shown.says("state       used").says("answer      approved").says(&receipts[0].id);
    world.line("approvals list --data s").ends(0).says("none");
    drop(server);
    world.audit();
}

#[test]
fn a_denied_call_ends_with_a_receipt_that_says_by_whom() {
    let (world, _server) = World::served();
    let (call, id) = parked(&world, "no-1");
    world.line(&format!("approvals deny {id} --data s")).ends(0).says(&format!("denied      {id}"));
    call.end().ends(1).complains("denied: approval: ");
    world.check_request("no-1", "denied");
    let receipts = world.receipts("no-1");
    assert!(
        matches!(&receipts[0].decision, Some(Decision::Deny { guard, .. }) if guard == "approval")
    );
    let approver = world.folder.read_key("s/approver.key").public_key().to_hex();
    let answer = &governed(&receipts[0])["approval"];
    assert_eq!((&answer["approver_key"], &answer["approved"]), (&json!(approver), &json!(false)));
    world.audit();
}

#[test]
fn no_answer_in_time_is_a_no() {
    let world = World::new();
    let _server = world.serve("--approval-timeout 1s");
    let call = world.start_call("a.sock", &token(&world, "late-1"), &CALL);
    call.end().ends(1).complains("nobody gave it in time");
    world.check_request("late-1", "expired");
    let id = &world.requests("late-1")[0]["request"]["id"];
    let line = format!("approvals approve {} --data s", id.as_str().unwrap());
    world.line(&line).ends(1).complains("expired");
    world.check_request("late-1", "expired");
    world.audit();
}

#[test]
fn a_caller_that_goes_away_cancels_and_gives_back_its_budget() {
    let (world, server) = World::served();
    let one = vec![ToolGrant { max_invocations: Some(1), ..grant("needs_approval") }];
    let token = world.token("gone-1", one);
    let mut wire = server.connect();
    wire.send_call("1", &token, "needs_approval", json!({"text": "please"}));
    let id = world.waiting("gone-1");
    drop(wire);
    let receipts = until("a receipt of the call", || {
        Some(world.receipts("gone-1")).filter(|receipts| !receipts.is_empty())
    });
    assert!(matches!(receipts[0].decision, Some(Decision::Cancelled { .. })), "{receipts:?}");
    world.check_request("gone-1", "cancelled");
    let late = world.line(&format!("approvals approve {id} --data s"));
    late.ends(1).complains("was cancelled");
    let approvals = world.line("approvals list --data s --state cancelled").ends(0);
    approvals.says(id.get(..18).unwrap());

    // Nothing ran, so nothing is spent.
    let call = world.start_call("a.sock", &token, &CALL);
    let id = world.waiting("gone-1");
    world.line(&format!("approvals approve {id} --data s")).ends(0);
    call.end().ends(0);
    assert_eq!(world.receipts("gone-1").len(), 2);
    world.audit();
}

#[test]
fn a_call_that_waited_when_its_kernel_was_killed_is_cancelled_at_the_next_start() {
    let (world, mut server) = World::served();
    let (call, id) = parked(&world, "killed-1");
    server.kill();
    assert_ne!(call.end().code, 0);
    assert!(world.receipts("killed-1").is_empty());
    // No kernel is there to see it, and none will be.
    world.line(&format!("approvals approve {id} --data s")).ends(0);

    let mut server = world.serve("");
    world.check_request("killed-1", "cancelled");
    let receipts = world.receipts("killed-1");
    let Some(Decision::Cancelled { reason }) = &receipts[0].decision else {
        panic!("expected a cancelled call, found {receipts:?}");
    };
    assert!(reason.contains("it waited for an approval, and never ran"), "{reason}");
    let listed = world.line("approvals list --data s --state cancelled --json").ends(0).json();
    assert_eq!(listed["approvals"][0]["request"]["id"], id);
    server.end();
    assert_eq!(world.audit()["logs"][0]["open_intents"], 0);
}

#[test]
fn a_call_that_waits_in_a_killed_process_is_cancelled_by_another_that_runs() {
    let world = World::new();
    let mut first = world.serve("");
    let _second = world.serve_at("b.sock", "");
    let (call, _) = parked(&world, "swept-1");
    first.kill();
    assert_ne!(call.end().code, 0);
    until("somebody to sign for it", || (!world.receipts("swept-1").is_empty()).then_some(()));
    world.check_request("swept-1", "cancelled");
    world.audit();
}

#[test]
fn the_calls_of_two_processes_are_answered_from_a_third() {
    let world = World::new();
    let (mut first, mut second) = (world.serve(""), world.serve_at("b.sock", ""));
    let names = ["both-1", "both-2"];
    let tokens = names.map(|name| token(&world, name));
    let calls = [
        world.start_call("a.sock", &tokens[0], &CALL),
        world.start_call("b.sock", &tokens[1], &CALL),
    ];
    let [one, other] = names.map(|name| world.waiting(name));
    let listed = world
        .line("approvals list --data s")
        .ends(0)
        .says(one.get(..18).unwrap())
        .says(other.get(..18).unwrap());
    assert_eq!(listed.stdout.matches("  pending  ").count(), 2, "{listed:#?}");
    world.line(&format!("approvals approve {other} --data s")).ends(0);
    world.line(&format!("approvals deny {one} --data s")).ends(0);
    let [denied, approved] = calls;
    denied.end().ends(1).complains("denied: approval");
    approved.end().ends(0).says("please");
    world.check_request("both-1", "denied");
    world.check_request("both-2", "used");
    first.end();
    second.end();
    let audit = world.audit();
    let receipts: Vec<_> =
        audit["logs"].as_array().unwrap().iter().map(|log| &log["entries"]).collect();
    assert_eq!(audit["receipts"], 2, "{receipts:?}");
}

#[test]
fn a_kernel_that_is_told_to_end_lets_nobody_wait() {
    let (world, mut server) = World::served();
    let (call, _) = parked(&world, "drain-1");
    server.end();
    call.end().ends(5).complains("cancelled: the kernel is shutting down");
    world.check_request("drain-1", "cancelled");
    assert_eq!(world.audit()["logs"][0]["open_intents"], 0);
}

#[test]
fn a_call_whose_token_is_revoked_while_it_waits_does_not_run() {
    let (world, _server) = World::served();
    let (call, id) = parked(&world, "revoked-1");
    world.line("capability revoke revoked-1 --data s").ends(0);
    world.line(&format!("approvals approve {id} --data s")).ends(0);
    call.end().ends(1).complains("[capability_revoked");
    assert_eq!(world.receipts("revoked-1").len(), 1);
    world.audit();
}

#[test]
fn whoever_does_not_wait_is_not_held_up_by_those_who_do() {
    let (world, server) = World::served();
    let token = world.token("beside-1", vec![grant("needs_approval"), grant("echo")]);
    let mut wire = server.connect();
    wire.send_call("1", &token, "needs_approval", json!({"text": "please"}));
    world.waiting("beside-1");
    let response = wire.call("2", &token, "echo", json!({"text": "hi"}));
    assert_eq!(
        (response.id.as_str(), written(&response.result)["status"].as_str()),
        ("2", Some("ok"))
    );
}

/// Sends as many calls that need approval as may run at once; they are named 0, 1 and so on.
fn send_many(wire: &mut Wire, token: &CapabilityToken) {
    for number in 0..AT_ONCE {
        wire.send_call(&number.to_string(), token, "needs_approval", json!({"text": "please"}));
    }
}

#[test]
fn as_many_calls_as_may_run_at_once_wait_and_their_connection_goes_on() {
    let (world, server) = World::served();
    let token = world.token("crowd-1", vec![grant("needs_approval"), grant("echo")]);
    let mut wire = server.connect();
    send_many(&mut wire, &token);
    until("all calls to wait", || (world.requests("crowd-1").len() == AT_ONCE).then_some(()));
    assert!(wire.is_alive());
    let response = wire.call("run", &token, "echo", json!({"text": "hi"}));
    assert_eq!(
        (response.id.as_str(), written(&response.result)["status"].as_str()),
        ("run", Some("ok"))
    );
    // They wait as before.
    let id = world.requests("crowd-1")[0]["request"]["id"].as_str().unwrap().to_owned();
    world.line(&format!("approvals approve {id} --data s")).ends(0);
    assert_eq!(written(&wire.response().result)["value"]["text"], "please");
    drop(wire);
    let receipts = until("a receipt of each call", || {
        Some(world.receipts("crowd-1")).filter(|receipts| receipts.len() == AT_ONCE + 1)
    });
    let is_cancelled = |it: &&ChioReceipt| matches!(it.decision, Some(Decision::Cancelled { .. }));
    assert_eq!(receipts.iter().filter(is_cancelled).count(), AT_ONCE - 1);
    world.audit();
}

#[test]
fn calls_that_waited_in_vain_leave_no_places_behind() {
    let world = World::new();
    let server = world.serve("--approval-timeout 1s");
    let grants = vec![grant("needs_approval"), grant("sleep"), grant("echo")];
    let token = world.token("vain-1", grants);
    let mut wire = server.connect();
    send_many(&mut wire, &token);
    for _ in 0..AT_ONCE {
        assert_eq!(written(&wire.response().result)["error"]["code"], "policy_denied");
    }
    // There is room for as many as before, and for no more.
    for number in 0..AT_ONCE {
        wire.send_call(&format!("sleep-{number}"), &token, "sleep", json!({"ms": 500}));
    }
    wire.send_call("last", &token, "echo", json!({"text": "hi"}));
    assert_ne!(wire.response().id, "last", "it had to wait for a place");
}
