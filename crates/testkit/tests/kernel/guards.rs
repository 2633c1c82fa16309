//! Guards that look at calls: what they say stands in the answer and in the receipt.

use chio_core::receipt::{Decision, NO_OUTPUT_HASH};
use serde_json::json;

use crate::support::{World, written};

/// Checks that a guard denied, here and there, and that nothing ran.
#[track_caller]
fn check(world: &World, id: &str, tool: &str, guard: &str, reason: &str) {
    let response = world.call(id, tool, json!({"text": "hi", "name": "n"}));
    let detail = json!({"guard": guard, "reason": reason});
    let expected = json!({"status": "err", "error": {"code": "policy_denied", "detail": detail}});
    assert_eq!(written(&response.result), expected);
    let receipt = &response.receipt;
    let (reason, guard) = (reason.to_owned(), guard.to_owned());
    assert_eq!(receipt.decision, Some(Decision::Deny { reason, guard: guard.clone() }));
    assert_eq!(receipt.content_hash, NO_OUTPUT_HASH);
    let last = receipt.evidence.last().unwrap();
    assert_eq!((last.guard_name.as_str(), last.verdict), (guard.as_str(), false));
}

// covers: WIRE-043, BRIDGE-161
#[test]
fn a_guard_that_denies_panics_errs_or_waits_denies_in_its_own_name() {
    let world = World::new(
        "--guard allow --guard deny-tool=echo --guard panic-on-tool=now --guard \
         error-on-tool=note_put --guard await-on-tool=note_get",
    );
    check(&world, "deny-1", "echo", "deny-tool", "not this tool");
    check(&world, "panic-1", "now", "panic-on-tool", "the guard panicked");
    let reason = "the guard failed: the oracle is silent";
    check(&world, "error-1", "note_put", "error-on-tool", reason);
    let reason = "an approval is needed (ask a grown-up), and nobody is trusted to give it";
    check(&world, "await-1", "note_get", "await-on-tool", reason);
    // A guard that panicked does no lasting harm, and neither do the others.
    let response = world.call("fine-1", "note_count", json!({}));
    assert_eq!(written(&response.result)["value"], json!({"notes": 0, "puts": 0}));
    let evidence: Vec<_> = response
        .receipt
        .evidence
        .iter()
        .map(|it| (it.guard_name.as_str(), it.verdict, it.details.as_deref()))
        .collect();
    let expected = [
        ("allow", true, Some("looked at")),
        ("deny-tool", true, None),
        ("panic-on-tool", true, None),
        ("error-on-tool", true, None),
        ("await-on-tool", true, None),
    ];
    assert_eq!(evidence, expected);
    assert_eq!(world.end().logs[0].entries, 5);
}

#[test]
fn guards_after_the_one_that_denies_are_not_asked() {
    let world = World::new("--guard allow --guard deny-tool=echo --guard panic-on-tool=echo");
    let response = world.call("first-1", "echo", json!({"text": "hi"}));
    let names: Vec<_> = response.receipt.evidence.iter().map(|it| it.guard_name.as_str()).collect();
    assert_eq!(names, ["allow", "deny-tool"]);
}

#[test]
fn a_secret_in_the_arguments_reaches_the_tool_and_not_the_receipt() {
    let world = World::new("--guard redact-secrets");
    let params = json!({"keys": ["sk-12345", "plain"], "text": "hi"});
    let response = world.call("secret-1", "test/give", params.clone());
    assert_eq!(written(&response.result), json!({"status": "ok", "value": params}));
    let receipt = &response.receipt;
    let kept = json!({"keys": ["[redacted]", "plain"], "text": "hi"});
    assert_eq!(receipt.action.parameters, kept);
    let text = serde_json::to_value(receipt).unwrap();
    assert_eq!(text["redaction_mode"], "redacted");
    assert!(!text.to_string().contains("sk-12345"));
    assert_eq!(receipt.evidence[0].details.as_deref(), Some("1 secrets"));
    let response = world.call("secret-2", "test/give", json!({"text": "hi"}));
    assert_eq!(serde_json::to_value(&response.receipt).unwrap()["redaction_mode"], "none");
    assert_no_secret(&world);
}

/// No file of the store has the secret, in whatever table.
fn assert_no_secret(world: &World) {
    for entry in std::fs::read_dir(world.folder.path("s")).unwrap() {
        let path = entry.unwrap().path();
        let content = if path.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
        let found = content.windows(8).any(|part| part == b"sk-12345");
        assert!(!found, "{}", path.display());
    }
}

#[test]
fn a_secret_that_is_denied_is_not_kept_either() {
    let world = World::new("--guard deny-secrets --guard panic-on-tool=give");
    let response = world.call("secret-1", "test/give", json!({"text": "sk-12345"}));
    assert_eq!(written(&response.result)["error"]["detail"]["guard"], "deny-secrets");
    assert_eq!(response.receipt.action.parameters, json!({"text": "[redacted]"}));
    // Also where a later guard is the one that denies, and where the tool has effects.
    let world = World::new("--guard redact-secrets --guard panic-on-tool=give");
    let response = world.call("secret-2", "test/give", json!({"text": "sk-12345"}));
    assert_eq!(written(&response.result)["error"]["detail"]["guard"], "panic-on-tool");
    assert_eq!(response.receipt.action.parameters, json!({"text": "[redacted]"}));
    assert_no_secret(&world);
}

#[test]
fn what_the_token_denies_no_guard_is_asked_about() {
    let world = World::new("--guard panic-on-tool=echo");
    let mut token = world.token("wrong-1");
    token.expires_at += 1;
    let response = world.connect().call("1", &token, "echo", json!({"text": "hi"}));
    assert_eq!(written(&response.result)["error"]["code"], "capability_denied");
    assert!(response.receipt.evidence.is_empty());
}
