//! Calls that are allowed, and calls whose tool fails.

use chio_core::canonical;
use chio_core::message::KernelMessage;
use chio_core::receipt::{ContentHash, Decision, NO_OUTPUT_HASH};
use chio_testkit::token::grant;
use serde_json::{Value, json};

use crate::policy::denied_by;
use crate::support::{Shared, World, agent, reason, written};

// covers: WIRE-002, WIRE-003, WIRE-024..WIRE-026, WIRE-029, WIRE-033, WIRE-034, WIRE-046
#[test]
fn the_first_frame_may_be_a_call_and_its_answer_has_a_receipt() {
    let shared = Shared::get();
    let token = shared.world.token("allow-1", vec![grant("echo")]);
    let response = shared.server.connect().call("my id", &token, "echo", json!({"text": "hi"}));
    assert_eq!(response.id, "my id");
    assert_eq!(written(&response.result), json!({"status": "ok", "value": {"text": "hi"}}));
    let receipt = &response.receipt;
    assert_eq!(receipt.decision, Some(Decision::Allow));
    assert_eq!(receipt.kernel_key.to_hex(), shared.server.kernel_key());
    assert_eq!((receipt.tool_server.as_str(), receipt.tool_name.as_str()), ("demo", "echo"));
    assert_eq!(receipt.action.parameters, json!({"text": "hi"}));
    assert_eq!(receipt.content_hash, ContentHash::of_value(&json!({"text": "hi"})).unwrap());
    let metadata = receipt.metadata.as_ref().unwrap();
    assert_eq!(metadata["attribution"]["subject_key"], agent().public_key().to_hex());
    shared.world.check_receipt(&response);
}

// covers: WIRE-006, WIRE-011..WIRE-013
#[test]
fn what_the_kernel_sends_is_canonical_and_its_receipt_verifies_elsewhere() {
    let shared = Shared::get();
    let token = shared.world.token("canonical-1", vec![grant("echo")]);
    let mut wire = shared.server.connect();
    wire.send_call("z\u{7f}é", &token, "echo", json!({"text": "\u{80}\n\"😀"}));
    let payload = wire.payload().unwrap();
    let message = KernelMessage::decode(&payload).unwrap();
    assert_eq!(payload, canonical::to_vec(&message).unwrap());
    let value: Value = serde_json::from_slice(&payload).unwrap();
    assert_eq!(payload, canonical::to_vec(&value).unwrap());
    assert_eq!(value["type"], "tool_call_response");

    let kernel = shared.server.kernel_key();
    let name = "canonical-receipt.json";
    shared.world.folder.write(name, value["receipt"].to_string());
    shared.world.run(&["receipt", "verify", name, "--trusted-key", &kernel]).ends(0);
}

/// Members that were not signed change nothing and go nowhere.
// covers: WIRE-021, WIRE-047
#[test]
fn unsigned_extras_in_a_message_and_its_token_are_not_trusted_and_not_kept() {
    let shared = Shared::get();
    let token = shared.world.token("extras-1", vec![grant("echo")]);
    let mut message = json!({
        "type": "tool_call_request", "id": "e", "capability_token": token, "server_id": "demo",
        "tool": "echo", "params": {"text": "x"}, "shoe_size": 44,
    });
    message["capability_token"]["nickname"] = json!("unsigned-marker");
    let mut wire = shared.server.connect();
    // In any order and with any spacing: canonical form is the sender's duty, not the reader's.
    wire.send_payload(serde_json::to_string_pretty(&message).unwrap().as_bytes());
    let response = wire.response();
    assert_eq!(written(&response.result)["status"], "ok");
    let receipt = serde_json::to_string(&response.receipt).unwrap();
    assert!(!receipt.contains("unsigned-marker") && !receipt.contains("shoe_size"), "{receipt}");
    shared.world.check_receipt(&response);
}

#[test]
fn a_call_missing_a_required_member_ends_the_connection_and_leaves_no_receipt() {
    let shared = Shared::get();
    let token = shared.world.token("missing-1", vec![grant("echo")]);
    let whole = json!({
        "type": "tool_call_request", "id": "e", "capability_token": token, "server_id": "demo",
        "tool": "echo", "params": {"text": "x"},
    });
    for member in ["id", "capability_token", "server_id", "tool", "params"] {
        let mut message = whole.clone();
        message.as_object_mut().unwrap().remove(member);
        let mut wire = shared.server.connect();
        wire.send_payload(message.to_string().as_bytes());
        assert_eq!(wire.message(), None, "{member}");
    }
    assert!(shared.world.receipts("missing-1").is_empty());
}

// covers: WIRE-044
#[test]
fn a_tool_that_fails_is_a_denial_with_the_tools_words() {
    let shared = Shared::get();
    let (words, token) = ("there is no note of this name", vec![grant("note_get")]);
    let token = shared.world.token("failing-1", token);
    let params = json!({"name": "nobody"});
    let response = shared.server.connect().call("1", &token, "note_get", params);
    let error = &written(&response.result)["error"];
    assert_eq!(error["code"], "tool_server_error");
    assert!(error["detail"].as_str().unwrap().contains(words), "{error}");
    assert!(reason(&response.receipt).contains(words));
    assert_eq!(response.receipt.content_hash, NO_OUTPUT_HASH);
    shared.world.check_receipt(&response);
}

#[test]
fn arguments_that_the_tool_does_not_take_do_not_reach_it() {
    let shared = Shared::get();
    let token = shared.world.token("unfit-1", vec![grant("note_get")]);
    let params = json!({"surname": "x"});
    let response = shared.server.connect().call("1", &token, "note_get", params);
    assert_eq!(written(&response.result)["error"]["code"], "policy_denied");
    assert_eq!(denied_by(&response.receipt), "argument-schema");
    shared.world.check_receipt(&response);
}

#[test]
fn a_tool_that_takes_too_long_is_cancelled() {
    let world = World::new();
    let server = world.serve("--deadline 1s");
    let token = world.token("slow-1", vec![grant("sleep")]);
    let response = server.connect().call("1", &token, "sleep", json!({"ms": 60_000}));
    let expected = json!({
        "status": "cancelled", "reason": "the call took longer than its deadline",
        "chunks_received": 0,
    });
    assert_eq!(written(&response.result), expected);
    let reason = "the call took longer than its deadline".to_owned();
    assert_eq!(response.receipt.decision, Some(Decision::Cancelled { reason }));
    world.check_receipt(&response);
}

#[test]
fn the_call_command_prints_the_value_and_names_the_receipt() {
    let shared = Shared::get();
    let (world, endpoint) = (&shared.world, shared.server.endpoint());
    let socket = endpoint.strip_prefix("unix:").unwrap();
    let token = world.token("command-1", vec![grant("echo"), grant("count_to")]);
    world.write_token("command.json", &token);
    let call = ["native", "call", "--unix", socket, "--token", "command.json", "demo"];
    let words = |rest: &[&'static str]| [call.as_slice(), rest].concat();

    let run = world.run(&words(&["echo", r#"{"text":"hello"}"#])).ends(0);
    assert_eq!(run.stdout, "{\"text\":\"hello\"}\n");
    let id = run.stderr.strip_prefix("receipt: ").unwrap().trim();
    let shown = world.line(&format!("receipt show {id} --data s --json")).ends(0).json();
    assert_eq!(shown["capability_id"], "command-1");
    assert_eq!(shown["kind"], "receipt");
    world.line(&format!("receipt show {id} --data s")).ends(0).says("demo/echo").says("allowed");

    let run = world.run(&words(&["echo", r#"{"text":"x"}"#, "--json", "--id", "i"])).ends(0);
    assert_eq!(run.json()["id"], "i");
    assert_eq!(run.json()["result"]["value"]["text"], "x");
    let run = world.run(&words(&["count_to", r#"{"n":2}"#])).ends(0);
    assert_eq!(run.stdout, "{\"n\":1}\n{\"n\":2}\n");
    assert!(run.stderr.starts_with("stream: complete, 2 chunks\nreceipt: "), "{run:#?}");
    let run = world.run(&words(&["now", "--receipt-out", "denied.json"])).ends(1);
    assert!(run.stderr.starts_with("denied: kernel: "), "{run:#?}");
    run.complains("[capability_denied (2100)]");
    world.line("receipt verify denied.json").ends(0);
    world.run(&words(&["echo", "{"])).ends(1).complains("this is not JSON arguments");
    assert_eq!(world.receipts("command-1").len(), 4);
}

#[test]
fn somebody_who_waits_is_told_why_that_may_be() {
    let (world, _server) = World::served();
    let token = world.token("patient-1", vec![grant("sleep")]);
    let call = world.start_call("a.sock", &token, &["demo", "sleep", r#"{"ms": 2500}"#]);
    let run = call.end().ends(0).complains("waiting: no answer yet");
    assert!(run.stderr.contains("`chio approvals list`"), "{run:#?}");
}
