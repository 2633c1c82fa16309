//! How a kernel ends, well or not.

use std::time::Duration;

use chio_core::capability::ToolGrant;
use chio_core::message::KernelMessage;
use chio_core::receipt::Decision;
use chio_testkit::process::until;
use chio_testkit::token::grant;
use serde_json::json;

use crate::support::{World, written};

#[test]
fn told_to_end_a_kernel_finishes_what_runs_and_signs_the_last_checkpoint() {
    let (world, mut server) = World::served();
    let token = world.token("drain-1", vec![grant("sleep"), grant("echo")]);
    let mut wire = server.connect();
    wire.send_call("1", &token, "sleep", json!({"ms": 600}));
    assert!(wire.is_alive());
    // A call that has only just arrived may still be turned away.
    std::thread::sleep(Duration::from_millis(100));
    server.signal("TERM");
    let response = wire.response();
    assert_eq!(written(&response.result), json!({"status": "ok", "value": {"slept_ms": 600}}));
    assert_eq!(wire.message(), None);
    assert!(server.wait().success(), "{}", server.stderr());
    world.check_receipt(&response);
    let audit = world.audit();
    assert_eq!(audit["logs"][0]["pending"], 0);
    assert_eq!(audit["logs"][0]["open_intents"], 0);
    assert_eq!(audit["checkpoints"], 1);
    world.line("log audit --data s").ends(0).says("result      clean");
}

#[test]
fn while_it_ends_nobody_new_comes_in() {
    let (world, mut server) = World::served();
    let token = world.token("drain-2", vec![grant("sleep")]);
    let mut wire = server.connect();
    wire.send_call("1", &token, "sleep", json!({"ms": 800}));
    assert!(wire.is_alive());
    // A call that has only just arrived may still be turned away.
    std::thread::sleep(Duration::from_millis(100));
    let mut idle = server.connect();
    assert!(idle.is_alive());
    server.signal("INT");
    // A client that waits for nothing is let go at once.
    assert_eq!(idle.message(), None);
    let socket = world.folder.path("a.sock");
    until("the door to close", || {
        std::os::unix::net::UnixStream::connect(&socket).is_err().then_some(())
    });
    assert_eq!(written(&wire.response().result)["status"], "ok");
    assert!(server.wait().success());
}

#[test]
fn a_second_signal_ends_it_at_once_and_the_next_start_makes_up_for_it() {
    let (world, mut server) = World::served();
    let grants = vec![ToolGrant { max_invocations: Some(5), ..grant("sleep") }];
    let token = world.token("hurry-1", grants);
    let mut wire = server.connect();
    wire.send_call("1", &token, "sleep", json!({"ms": 60_000}));
    // Before that, there is nothing to make up for.
    until("the intent to be durable", || {
        let listed = world.line("kernel list --data s --json").ends(0).json();
        (listed["kernels"][0]["open_intents"] == 1).then_some(())
    });
    server.signal("TERM");
    let mut idle_ended = false;
    until("the first signal to be seen", || {
        idle_ended |= !world.folder.path("a.sock").exists();
        idle_ended.then_some(())
    });
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(130));
    assert!(world.receipts("hurry-1").is_empty());
    let _server = world.serve("");
    let receipts = world.receipts("hurry-1");
    assert_eq!(receipts.len(), 1);
    assert!(matches!(receipts[0].decision, Some(Decision::Incomplete { .. })));
}

#[test]
fn a_call_that_a_crash_cut_short_gets_its_receipt_at_the_next_start() {
    let (world, mut server) = World::served();
    let grants = vec![ToolGrant { max_invocations: Some(1), ..grant("sleep") }];
    let token = world.token("crash-1", [grants, vec![grant("echo")]].concat());
    let mut wire = server.connect();
    wire.call("0", &token, "echo", json!({"text": "hi"}));
    wire.send_call("1", &token, "sleep", json!({"ms": 60_000}));
    until("the intent to be durable", || {
        let listed = world.line("kernel list --data s --json").ends(0).json();
        (listed["kernels"][0]["open_intents"] == 1).then_some(())
    });
    server.kill();
    while let Some(message) = wire.message() {
        assert!(!matches!(message, KernelMessage::ToolCallResponse(_)), "{message:?}");
    }
    assert_eq!(world.receipts("crash-1").len(), 1);

    let mut server = world.serve("");
    let receipts = world.receipts("crash-1");
    assert_eq!(receipts.len(), 2);
    assert_eq!(receipts[0].tool_name, "sleep");
    assert!(matches!(receipts[0].decision, Some(Decision::Incomplete { .. })), "{receipts:?}");
    assert_eq!(receipts[0].action.parameters, json!({"ms": 60_000}));
    // What it had reserved is spent: it may have run.
    let response = server.connect().call("2", &token, "sleep", json!({"ms": 1}));
    let detail = &written(&response.result)["error"]["detail"];
    assert!(detail.to_string().contains("budget exhausted"), "{detail}");
    server.end();
    let audit = world.audit();
    assert_eq!(audit["logs"][0]["open_intents"], 0);
}

#[test]
fn the_calls_of_a_crashed_process_are_ended_by_another_that_runs() {
    let world = World::new();
    let mut first = world.serve("");
    let grants = vec![ToolGrant { max_invocations: Some(5), ..grant("sleep") }];
    let token = world.token("swept-1", grants);
    let _second = world.serve_at("b.sock", "");
    let mut wire = first.connect();
    wire.send_call("1", &token, "sleep", json!({"ms": 60_000}));
    until("the intent to be durable", || {
        let listed = world.line("kernel list --data s --json").ends(0).json();
        let kernels = listed["kernels"].as_array().unwrap();
        kernels.iter().any(|kernel| kernel["open_intents"] == 1).then_some(())
    });
    first.kill();
    let receipts = until("somebody to sign for it", || {
        Some(world.receipts("swept-1")).filter(|receipts| !receipts.is_empty())
    });
    assert_eq!(receipts.len(), 1);
    assert!(matches!(receipts[0].decision, Some(Decision::Incomplete { .. })));
    world.audit();
}
