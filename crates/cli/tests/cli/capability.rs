//! `chio capability issue`, `inspect` and `verify`, on tokens of our own.

use chio_core::capability::{CapabilityToken, SignatureForm};
use serde_json::{Value, json};

use crate::support::{Folder, NOW, Run, public};

const ISSUE: &str = "capability issue --key 01.key --subject 02.key --grant files/read_file";

fn token(run: &Run) -> CapabilityToken {
    serde_json::from_value(run.json()).unwrap()
}

#[test]
fn an_issued_token_says_what_was_asked_and_verifies() {
    let folder = Folder::with_keys();
    let words = [
        "capability",
        "issue",
        "--key",
        "01.key",
        "--subject",
        &public(2),
        "--id",
        "cap-1",
        "--grant",
        "files/read_file:invoke,delegate",
        "--grant",
        "*/*",
        "--max-invocations",
        "10",
        "--constraint",
        r#"{"type": "path_prefix", "value": "/workspace"}"#,
        "--constraint",
        r#"{"type": "max_length", "value": 99}"#,
        "--dpop",
        "--at",
        NOW,
        "--ttl",
        "15m",
    ];
    let run = folder.run(&words).ends(0);
    assert_eq!(run.stderr, "");
    let expected = json!({
        "constraints": [
            {"type": "path_prefix", "value": "/workspace"},
            {"type": "max_length", "value": 99},
        ],
        "dpop_required": true,
        "max_invocations": 10,
        "operations": ["invoke", "delegate"],
        "server_id": "files",
        "tool_name": "read_file",
    });
    assert_eq!(run.json()["scope"]["grants"][0], expected);
    assert_eq!(run.json()["scope"]["grants"][1]["operations"], json!(["invoke"]));
    let token = token(&run);
    assert_eq!(token.id, "cap-1");
    assert_eq!((token.issued_at, token.expires_at), (1_700_000_100, 1_700_001_000));
    assert_eq!((token.issuer.to_hex(), token.subject.to_hex()), (public(1), public(2)));
    assert_eq!(token.check_token_signature(), Ok(SignatureForm::Current));
}

#[test]
fn a_token_holds_for_an_hour_from_now_when_nobody_says() {
    let folder = Folder::with_keys();
    folder.line(&format!("{ISSUE} --out token.json")).ends(0).says("written to  token.json");
    let run = folder.line("capability verify token.json --trusted-issuer 01.key").ends(0);
    let run = run.says("result      valid").says(" left");
    assert_eq!(run.stderr, "");
    let (first, second) = (token(&folder.line(ISSUE)), token(&folder.line(ISSUE)));
    assert!(first.id.starts_with("cap-"));
    assert_ne!(first.id, second.id);
    assert_eq!(first.expires_at - first.issued_at, 3600);
}

#[test]
fn inspect_shows_every_part_of_a_token_that_was_issued() {
    let folder = Folder::with_keys();
    folder.line(&format!("{ISSUE} --max-invocations 3 --at {NOW} --out t.json")).ends(0);
    let run = folder.line("capability inspect t.json").ends(0);
    run.says(&format!("issuer      {}", public(1)))
        .says(&format!("subject     {}", public(2)))
        .says("valid from  2023-11-14T22:15:00Z")
        .says("until       2023-11-14T23:15:00Z")
        .says("now         expired ")
        .says("tool        files/read_file")
        .says("may         invoke")
        .says("limit       3 calls")
        .says("history     never handed on")
        .says("signature   is the issuer's");
}

#[test]
fn inspect_as_json_is_the_token_and_what_follows_from_it() {
    let folder = Folder::with_keys();
    folder.line(&format!("{ISSUE} --out t.json")).ends(0);
    let token: CapabilityToken = serde_json::from_str(&folder.read("t.json")).unwrap();
    let mut expected = serde_json::to_value(&token).unwrap();
    expected["hash"] = json!(token.hash().unwrap());
    expected["scope_hash"] = json!(token.scope.hash().unwrap());
    expected["delegation_depth"] = json!(0);
    expected["unsupported_profile"] = Value::Null;
    assert_eq!(folder.line("capability inspect t.json --json").ends(0).json(), expected);
}

#[test]
fn a_scope_can_come_from_a_file_or_from_standard_input() {
    let folder = Folder::with_keys();
    let scope = json!({
        "grants": [{"server_id": "s", "tool_name": "t", "operations": ["invoke"],
            "max_total_cost": {"units": 5, "currency": "USD"}}],
        "resource_grants": [{"uri_pattern": "file:///a/*", "operations": ["read"]}],
        "prompt_grants": [{"prompt_name": "p", "operations": ["get"]}],
    });
    folder.write("scope.json", &scope.to_string());
    let run = folder.line("capability issue --key 01.key --subject 02.key --scope scope.json");
    assert_eq!(run.ends(0).json()["scope"], scope);
    let words = ["capability", "issue", "--key", "01.key", "--subject", "02.key", "--scope", "-"];
    let run = folder.run_with(scope.to_string().as_bytes(), &words).ends(0);
    assert_eq!(run.json()["scope"], scope);
}

#[test]
fn a_scope_with_a_misspelt_limit_is_not_signed() {
    let folder = Folder::with_keys();
    let grant = r#"{"server_id": "s", "tool_name": "t", "operations": ["invoke"]"#;
    for (scope, problem) in [
        (format!(r#"{{"grants": [{grant}, "max_invocation": 3}}]}}"#), "grants[0].max_invocation"),
        (r#"{"grant": [{}]}"#.to_owned(), "`grant`"),
        (format!(r#"{{"grants": [{grant}, "constraints": [{{"type": "new"}}]}}]}}"#), "new"),
        (
            format!(
                r#"{{"grants": [{grant},
                    "constraints": [{{"type": "regex_match", "value": "("}}]}}]}}"#
            ),
            "cannot be evaluated",
        ),
        (r#"{"grants": [], "grants": []}"#.to_owned(), "twice"),
    ] {
        folder.write("scope.json", &scope);
        let run = folder.line("capability issue --key 01.key --subject 02.key --scope scope.json");
        let run = run.ends(1).complains(problem);
        assert_eq!(run.stdout, "");
    }
}

#[test]
fn rare_profiles_are_not_signed() {
    let folder = Folder::with_keys();
    let constraint = r#"{"type": "require_cumulative_approval_above", "value": {"threshold":
        {"units": 1, "currency": "USD"}, "approval_budget_id": "b", "approval_budget_epoch": 1}}"#;
    let mut words: Vec<_> = ISSUE.split_whitespace().collect();
    words.extend(["--constraint", constraint]);
    folder.run(&words).ends(1).complains("cumulative approval budgets are unsupported");
}

#[test]
fn an_existing_file_is_kept_unless_force_is_given() {
    let folder = Folder::with_keys();
    let run = folder.line(&format!("{ISSUE} --out 02.key")).ends(2);
    run.complains("`02.key` exists already");
    folder.line("key show 02.key").ends(0);
    folder.line(&format!("{ISSUE} --out t.json")).ends(0);
    folder.line(&format!("{ISSUE} --out t.json --force")).ends(0);
}

/// What verify says of a token that is valid from 22:15:00 to 23:15:00 of some day.
fn verify(options: &str) -> (Run, Value) {
    let folder = Folder::with_keys();
    folder.line(&format!("{ISSUE} --at {NOW} --out t.json")).ends(0);
    let people = folder.line(&format!("capability verify t.json {options}"));
    let scripts = folder.line(&format!("capability verify t.json {options} --json"));
    assert_eq!(people.code, scripts.code);
    assert_eq!(scripts.stderr, "");
    let report = scripts.json();
    assert_eq!(report["valid"], scripts.code == 0);
    assert_eq!(report["errors"].as_array().unwrap().is_empty(), scripts.code == 0);
    for error in report["errors"].as_array().unwrap() {
        let line = format!("error: {}", error.as_str().unwrap());
        assert!(people.stderr.contains(&line), "{people:#?}");
    }
    (people, report)
}

#[test]
fn a_valid_token_is_reported_with_every_member() {
    let (_, report) = verify(&format!("--trusted-issuer {} --at {NOW}", public(1)));
    let expected = json!({
        "signature_valid": true, "time_valid": true, "chain_valid": true, "issuer_trusted": true,
        "valid": true, "signature_form": "current", "unsupported_profile": null, "errors": [],
    });
    assert_eq!(report, expected);
}

#[test]
fn the_window_begins_with_its_first_second_and_ends_before_its_last() {
    for (at, valid, word) in [
        (1_700_000_099, false, "begins 2023-11-14T22:15:00Z, in 1s [capability_expired (2101)]"),
        (1_700_000_100, true, "1h left"),
        (1_700_003_699, true, "1s left"),
        (1_700_003_700, false, "expired 2023-11-14T23:15:00Z, just now"),
        (1_700_014_500, false, "expired 2023-11-14T23:15:00Z, 3h ago [capability_expired (2101)]"),
    ] {
        let (run, report) = verify(&format!("--trusted-issuer 01.key --at {at}"));
        assert_eq!(report["time_valid"], valid, "{at}");
        assert_eq!(report["valid"], valid, "{at}");
        assert_eq!(report["signature_valid"], true);
        assert!(format!("{}{}", run.stdout, run.stderr).contains(word), "{run:#?}");
    }
}

#[test]
fn an_issuer_must_be_trusted_by_name() {
    let (run, report) = verify(&format!("--at {NOW}"));
    run.ends(1).complains("--trusted-issuer").says("issuer      NOT TRUSTED");
    assert_eq!(report["issuer_trusted"], false);
    assert_eq!(report["signature_valid"], true);
    let (run, report) = verify(&format!("--at {NOW} --trusted-issuer 02.key"));
    run.ends(1).complains("not among the trusted issuers");
    assert_eq!(report["issuer_trusted"], false);
    let (_, report) =
        verify(&format!("--at {NOW} --trusted-issuer 02.key --trusted-issuer 01.key"));
    assert_eq!(report["valid"], true);
}

#[test]
fn every_failing_check_is_named() {
    let (run, report) = verify("--at 1");
    run.ends(1).complains("error: time: ").complains("error: issuer: ");
    assert_eq!(report["errors"].as_array().unwrap().len(), 2);
}

#[test]
fn a_text_that_is_no_token_has_no_check_that_holds() {
    let folder = Folder::with_keys();
    for text in ["", "{}", "[]", r#"{"id": "a", "id": "b"}"#, "nonsense"] {
        let words = ["capability", "verify", "-", "--trusted-issuer", "01.key"];
        let people = folder.run_with(text.as_bytes(), &words).ends(1);
        people.complains("error: this is not a capability token").complains("(1002)");
        let words = ["capability", "verify", "-", "--json"];
        let report = folder.run_with(text.as_bytes(), &words).ends(1).json();
        for member in ["signature_valid", "time_valid", "chain_valid", "issuer_trusted", "valid"] {
            assert_eq!(report[member], false, "{text}");
        }
        assert_eq!(report["signature_form"], Value::Null);
        assert_eq!(report["errors"].as_array().unwrap().len(), 1);
        folder.run_with(text.as_bytes(), &["capability", "inspect", "-"]).ends(1);
    }
}

#[test]
fn nothing_in_a_token_steers_the_terminal() {
    let folder = Folder::with_keys();
    let id = "cap-\u{1b}[2J\u{202e}\nsignature   valid";
    let mut words: Vec<_> = ISSUE.split_whitespace().collect();
    words.extend(["--id", id, "--out", "t.json"]);
    folder.run(&words).ends(0);
    for line in [
        "capability inspect t.json",
        "capability inspect t.json --json",
        "capability verify t.json --trusted-issuer 01.key",
    ] {
        let run = folder.line(line).ends(0);
        assert!(!run.stdout.contains(['\u{1b}', '\u{202e}']), "{run:?}");
        assert!(!run.stdout.contains("\nsignature   valid\n\n"), "{run:?}");
    }
    assert_eq!(folder.line("capability inspect t.json --json").json()["id"], id);
}
