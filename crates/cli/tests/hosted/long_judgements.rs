//! Calls that take long to judge: each ends as a denial with a receipt, and holds nothing up.

use chio_testkit::mcp::{receipt_of, text_of};
use chio_testkit::process::mcp_fixture;
use serde_json::{Value, json};

use crate::support::{Served, World};

/// The fixture with its tool whose schema takes 2^60 looks, under the default policy.
fn deep() -> (World, Served) {
    let world = World::new();
    let options = "--policy default --anonymous default";
    let command = [mcp_fixture().to_str().unwrap(), "--also", "deep"];
    let served = world.wrap_at("127.0.0.1:0", options, &command);
    (world, served)
}

/// Three calls at once, while another session works; then all are denied by `guard`.
#[track_caller]
fn check_denied(tool: &str, arguments: &Value, guard: &str) {
    let (world, mut served) = deep();
    let (hostile, honest) = (served.door.open(), served.door.open());
    let mut calls: Vec<_> = (0..3).map(|_| hostile.start_call(tool, arguments)).collect();
    for _ in 0..3 {
        let answer = honest.call("echo", &json!({"text": "still here"}));
        assert_eq!(text_of(&answer), "still here");
    }
    for call in &mut calls {
        let result = call.result();
        let receipt = world.receipt(receipt_of(&result));
        assert_eq!(receipt["decision"]["verdict"], "deny", "{receipt}");
        assert_eq!(receipt["decision"]["guard"], guard, "{receipt}");
        let reason = receipt["decision"]["reason"].as_str().unwrap_or_default();
        assert!(reason.contains("steps"), "{reason}");
    }
    served.server.end();
    world.audit();
}

#[test]
fn a_schema_of_nested_pairs_is_denied_and_holds_nobody_up() {
    check_denied("deep", &json!({"text": "x", "more": {"a": 1}}), "argument-schema");
}

#[test]
fn a_command_that_evaluates_itself_over_and_over_is_denied_and_holds_nobody_up() {
    let command = "eval ".repeat(60_000);
    let arguments = json!({"text": "x", "command": command});
    check_denied("echo", &arguments, "forbidden-path");
}

#[test]
fn what_is_judged_long_does_not_keep_the_server_from_ending() {
    let (world, mut served) = deep();
    let session = served.door.open();
    let arguments = json!({"text": "x", "command": "eval ".repeat(60_000)});
    for _ in 0..6 {
        session.vanish_from("echo", &arguments);
        session.vanish_from("deep", &json!({"text": "x"}));
    }
    session.request("tools/list", &json!({}));
    served.server.end();
    let calls = world.calls();
    assert!(!calls.is_empty() && calls.iter().all(|(_, end)| end != "allow"), "{calls:?}");
    world.audit();
}
