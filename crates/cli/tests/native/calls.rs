//! Calls by the command, and what the commands and options say of them.

use chio_core::canonical;
use chio_core::message::KernelMessage;
use chio_core::receipt::Decision;
use chio_testkit::token::grant;
use serde_json::{Value, json};

use crate::support::{Shared, World, written};

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
