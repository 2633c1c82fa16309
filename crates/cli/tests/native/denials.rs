//! What the kernel denies because of how it was started, or what another process says.

use chio_core::message::ToolCallResponse;
use chio_testkit::key;
use chio_testkit::token::grant;
use serde_json::json;

use crate::support::{World, reason, written};

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

#[test]
fn another_subject_than_the_one_who_is_connected_is_denied() {
    let world = World::new();
    let server = world.serve("--peer agent.key");
    let theirs = world.token_for(key(8).public_key(), "theirs-1", vec![grant("echo")]);
    let mut wire = server.connect();
    let response = wire.call("1", &theirs, "echo", json!({"text": "hi"}));
    check(&response, "capability_denied", "expected the token's subject as caller");
    world.check_receipt(&response);
    let own = world.token("own-1", vec![grant("echo")]);
    let response = wire.call("2", &own, "echo", json!({"text": "hi"}));
    assert_eq!(written(&response.result)["status"], "ok");
}

#[test]
fn an_emergency_stop_denies_everything_until_it_ends() {
    let (world, server) = World::served();
    let token = world.token("stopped-1", vec![grant("echo"), grant("note_put")]);
    let mut wire = server.connect();
    let hi = || json!({"text": "hi"});
    assert_eq!(written(&wire.call("1", &token, "echo", hi()).result)["status"], "ok");
    world.run(&["kernel", "stop", "--reason", "a fire drill", "--data", "s"]).ends(0);
    let response = wire.call("2", &token, "echo", hi());
    check(&response, "policy_denied", "everything is stopped: a fire drill");
    let response = wire.call("3", &token, "note_put", json!({"name": "n", "text": "x"}));
    check(&response, "policy_denied", "a fire drill");
    assert!(wire.is_alive());
    world.line("kernel list --data s").ends(0).says("STOPPED     a fire drill");
    let listed = world.line("kernel list --data s --json").ends(0).json();
    assert_eq!(listed["stopped"], "a fire drill");
    world.run(&["kernel", "stop", "--reason", " ", "--data", "s"]).ends(1);

    world.line("kernel resume --data s").ends(0);
    let response = wire.call("4", &token, "echo", hi());
    assert_eq!(written(&response.result)["status"], "ok", "resumed, for the very next call");
    assert_eq!(world.receipts("stopped-1").len(), 4);
    assert!(!world.folder.path("s/notes/notes.jsonl").metadata().is_ok_and(|it| it.len() > 0));
    world.audit();
}
