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
fn the_end_of_a_tool_that_takes_too_long_is_not_known() {
    let world = World::new();
    let server = world.serve("--deadline 1s");
    let token = world.token("slow-1", vec![grant("sleep")]);
    let response = server.connect().call("1", &token, "sleep", json!({"ms": 60_000}));
    let expected = json!({
        "status": "incomplete", "reason": "the call took longer than its deadline",
        "chunks_received": 0,
    });
    assert_eq!(written(&response.result), expected);
    let reason = "the call took longer than its deadline".to_owned();
    assert_eq!(response.receipt.decision, Some(Decision::Incomplete { reason }));
    world.check_receipt(&response);
}

#[test]
fn the_endings_of_calls_have_their_own_words_and_exit_codes() {
    let world = World::new();
    let server = world.serve("--deadline 1s");
    let endpoint = server.endpoint();
    let socket = endpoint.strip_prefix("unix:").unwrap();
    let tools = ["echo", "note_get", "sleep"].map(grant);
    let token = world.token("endings-1", tools.to_vec());
    world.write_token("endings.json", &token);
    let call = ["native", "call", "--unix", socket, "--token", "endings.json", "demo"];
    let call = |tool, arguments| world.run(&[&call[..], &[tool, arguments]].concat());
    call("echo", r#"{"text":"x"}"#).ends(0);
    call("now", "{}").ends(1).complains("denied: ");
    call("note_get", r#"{"name":"none"}"#).ends(3).complains("failed: tool_server: ");
    call("sleep", r#"{"ms":60000}"#).ends(4).complains("incomplete: ");
    let mut wire = server.connect();
    wire.send_call("1", &token, "sleep", json!({"ms": 60_000}));
    assert!(wire.is_alive());
    drop(wire);
    let mut receipts = chio_testkit::process::until("five receipts", || {
        Some(world.receipts("endings-1")).filter(|receipts| receipts.len() == 5)
    });
    // As they were signed, the newest last.
    receipts.reverse();
    let executions: Vec<_> = receipts.iter().map(|it| it.execution().unwrap().name()).collect();
    assert_eq!(executions, ["completed", "not_begun", "failed", "begun", "begun"]);
    assert_eq!(receipts[0].metadata.as_ref().unwrap().get("execution"), None);

    let list = |outcome: &str| {
        let run = world.line(&format!("receipt list --data s --outcome {outcome}")).ends(0);
        let lines: Vec<&str> = run.stdout.lines().collect();
        assert!(lines[0].starts_with("TIME "), "{lines:?}");
        let more = lines[2..].iter().all(|line| line.starts_with("    "));
        assert!(more, "one call, and below it why: {lines:?}");
        lines[1..].join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for (outcome, words) in [
        ("deny", "kernel: "),
        ("failed", "tool_server: there is no note of this name"),
        ("incomplete", "its deadline (it had begun)"),
        ("cancelled", "(it had begun)"),
    ] {
        let line = list(outcome);
        assert!(line.contains(&format!(" {outcome} ")) && line.contains(words), "{line}");
    }
    let show = |at: usize| world.line(&format!("receipt show {} --data s", receipts[at].id));
    show(1).ends(0).says("denied by kernel: ").says("tool ran    no");
    show(2).ends(0).says("denied, tool_server failed: ").says("tool ran    yes, and failed");
    show(3).ends(0).says("incomplete: ").says("tool ran    begun, its end is not known");
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
