//! One act as a tree of receipts.

use chio_core::canonical;
use chio_core::crypto::Signature;
use chio_core::governance::{CallChainContext, GovernedTransactionIntent};
use chio_core::message::ToolCallResponse;
use chio_core::receipt::{ChildOutcome, ChildReceipt, OperationKind, TerminalState};
use chio_core::signed::Signed;
use chio_kernel::SystemClock;
use chio_kernel::store::Entry;
use chio_store::{OpenStore, StoreUrl};
use chio_testkit::key;
use chio_testkit::process::{Server, request};
use chio_testkit::token::grant;
use serde_json::{Value, json};

use crate::governed::continuation;
use crate::support::{World, block_on, now, written};

/// The trace and the request of a call.
fn names(response: &ToolCallResponse) -> (String, String) {
    let metadata = response.receipt.metadata.as_ref().unwrap();
    let text = |path: &str| metadata.pointer(path).unwrap().as_str().unwrap().to_owned();
    let place = if metadata["chio"].get("bridge").is_some() { "/chio/bridge" } else { "/chio" };
    (text(&format!("{place}/trace/traceId")), text("/receipt_context/request_id"))
}

fn trace(world: &World, id: &str) -> Value {
    world.line(&format!("receipt trace {id} --data s --json")).ends(0).json()
}

/// The requests of a trace, with their depth.
fn shape(trace: &Value) -> Vec<(u64, &str)> {
    let lines = trace["receipts"].as_array().unwrap().iter();
    lines.map(|it| (it["depth"].as_u64().unwrap(), it["requestId"].as_str().unwrap())).collect()
}

/// A call that names another as the one that it is made for.
fn made_for(
    world: &World,
    server: &Server,
    token: &str,
    (chain, parent): (&str, &str),
    signer: Option<u8>,
) -> ToolCallResponse {
    let token = world.token(token, vec![grant("echo")]);
    let context = CallChainContext {
        chain_id: chain.to_owned(),
        parent_request_id: parent.to_owned(),
        parent_receipt_id: None,
        origin_subject: "somebody".to_owned(),
        delegator_subject: "somebody".to_owned(),
    };
    let mut intent = GovernedTransactionIntent::new("intent-1", "demo", "echo", "to go on");
    let mut continues = signer.map(|seed| continuation(&key(seed), context.clone()));
    if let (Some(continues), Some(seed)) = (&mut continues, signer) {
        continues.nonce = Some(token.id.clone());
        *continues = continues.clone().signed(&key(seed)).unwrap();
        intent.context = Some(json!({"callChainContinuation": continues}));
    }
    intent.call_chain = Some(context);
    let mut request = request("1", &token, "echo", json!({"text": "hi"}));
    request.governed_intent = Some(intent);
    let mut wire = server.connect();
    wire.send_request(request);
    let response = wire.response();
    assert_eq!(written(&response.result)["status"], "ok");
    response
}

// covers: CROSS-048
#[test]
fn a_trace_is_found_by_its_name_a_receipt_or_a_request() {
    let (world, server) = World::served();
    let token = world.token("root-1", vec![grant("echo")]);
    let mut wire = server.connect();
    let response = wire.call("1", &token, "echo", json!({"text": "hi"}));
    wire.call("2", &token, "echo", json!({"text": "ho"}));
    let (trace_id, request_id) = names(&response);
    let found = trace(&world, &trace_id);
    assert_eq!(found["traceId"], trace_id);
    assert_eq!(shape(&found), [(0, &*request_id)]);
    assert_eq!(found["receipts"][0]["receipt"]["id"], response.receipt.id);
    assert_eq!(found["receipts"][0]["hops"], json!(["native"]));
    for id in [&response.receipt.id, &request_id] {
        assert_eq!(trace(&world, id), found, "{id}");
    }
    let drawn = world.line(&format!("receipt trace {request_id} --data s")).ends(0);
    let drawn = drawn.says(&format!("trace       {trace_id}\n")).says("  demo/echo");
    let drawn = drawn.says("native").says(response.receipt.id.get(..12).unwrap());
    assert_eq!(drawn.stdout.lines().count(), 3);
    for unknown in ["nothing", "req-019ace00-7d1c-7b2e-9f0a-3b1f6f3a2c11", &"ab".repeat(32)] {
        let run = world.line(&format!("receipt trace {unknown} --data s")).ends(1);
        run.complains("there is no trace, receipt or request");
    }
}

#[test]
fn what_a_trusted_kernel_speaks_for_stands_below_its_parent_and_a_claim_stands_alone() {
    let world = World::new();
    let server = world.serve(&format!("--trusted-kernel {}", key(8).public_key()));
    let token = world.token("parent-1", vec![grant("echo")]);
    let root = server.connect().call("1", &token, "echo", json!({"text": "hi"}));
    let (trace_id, parent) = names(&root);
    let first = made_for(&world, &server, "child-1", (&trace_id, &parent), Some(8));
    let (_, first) = names(&first);
    let second = made_for(&world, &server, "child-2", (&trace_id, &first), Some(8));
    let (trace_of_second, second) = names(&second);
    assert_eq!(trace_of_second, trace_id);
    let claim = made_for(&world, &server, "claim-1", (&trace_id, &parent), None);
    let (other_trace, claim) = names(&claim);
    assert_ne!(other_trace, trace_id);

    let found = trace(&world, &second);
    assert_eq!(shape(&found), [(0, &*parent), (1, &*first), (2, &*second)]);
    let drawn = world.line(&format!("receipt trace {trace_id} --data s")).ends(0);
    drawn.says("  └─ demo/echo").says("     └─ demo/echo");

    let found = trace(&world, &claim);
    assert_eq!(shape(&found), [(0, &*parent), (1, &*claim)]);
    assert_eq!(
        (&found["receipts"][0]["receipt"], &found["receipts"][1]["parentIsClaim"]),
        (&Value::Null, &json!(true))
    );
    let drawn = world.line(&format!("receipt trace {claim} --data s")).ends(0);
    drawn.says("  not here\n").says(&format!("    {parent}\n")).says("as the caller says");
    world.audit();
}

// covers: CROSS-048
#[test]
fn a_parent_of_another_organisation_is_a_line_without_a_receipt() {
    let world = World::new();
    let server = world.serve(&format!("--trusted-kernel {}", key(8).public_key()));
    let elsewhere = ("trace-elsewhere", "req-elsewhere");
    let children = ["foreign-1", "foreign-2"]
        .map(|token| names(&made_for(&world, &server, token, elsewhere, Some(8))).1);
    let found = trace(&world, "trace-elsewhere");
    assert_eq!(shape(&found), [(0, "req-elsewhere"), (1, &*children[0]), (1, &*children[1])]);
    let drawn = world.line("receipt trace trace-elsewhere --data s").ends(0);
    let drawn = drawn
        .says("  not here  ")
        .says("  req-elsewhere\n")
        .says("├─ demo/echo")
        .says("└─ demo/echo");
    assert_eq!(drawn.stdout.lines().count(), 5, "{drawn:#?}");
    world.audit();
}

/// The native transport takes no questions; another edge's are put into the log as it would.
#[test]
fn questions_stand_below_the_call_that_they_were_asked_in_whichever_kernel_signed() {
    let (world, server) = World::served();
    let token = world.token("asks-1", vec![grant("echo")]);
    let response = server.connect().call("1", &token, "echo", json!({"text": "hi"}));
    let (trace_id, parent) = names(&response);
    let url = StoreUrl::Sqlite(world.folder.path("s"));
    let clock = std::sync::Arc::new(SystemClock::default());
    let store = block_on(OpenStore::open(&url, clock)).unwrap();
    let slot = block_on(store.take_slot(None)).unwrap();
    let outcome = ChildOutcome::Result(json!("yes"));
    let child = ChildReceipt {
        id: "child-rcpt-1".to_owned(),
        timestamp: now(),
        session_id: "sess-1".to_owned(),
        parent_request_id: parent.clone(),
        request_id: "req-question".to_owned(),
        operation_kind: OperationKind::CreateElicitation,
        terminal_state: TerminalState::Completed,
        outcome_hash: outcome.hash().unwrap(),
        policy_hash: "none".to_owned(),
        metadata: Some(json!({"outcome": "result", "traceId": trace_id})),
        kernel_key: slot.key.public_key().clone(),
        algorithm: None,
        signature: Signature::blank(),
    };
    let body = canonical::to_vec(&child.signed(&slot.key).unwrap()).unwrap();
    block_on(slot.ledger.append(Entry::new(body))).unwrap();
    drop(slot);
    store.close();
    assert_eq!(shape(&trace(&world, "child-rcpt-1")), [(0, &*parent), (1, "req-question")]);
    let drawn = world.line(&format!("receipt trace {parent} --data s")).ends(0);
    drawn.says("  completed  ").says("└─ create elicitation");
}
