//! Golden tokens and receipts through the commands: each verifies, each changed copy does not.

use chio_core::capability::CapabilityToken;
use chio_core::receipt::{ChildReceipt, ChioReceipt};
use chio_testkit::golden;
use chio_testkit::tamper::changes;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::support::{Folder, NOW, public};

fn tokens() -> Vec<(String, Value)> {
    members("capability", "token")
}

fn receipts() -> Vec<(String, Value)> {
    members("receipt", "receipt")
}

fn members(file: &str, member: &str) -> Vec<(String, Value)> {
    let golden = golden::load(file);
    let golden = golden.as_object().unwrap();
    let found: Vec<_> = golden
        .iter()
        .filter_map(|(name, case)| Some((name.clone(), case.get(member)?.clone())))
        .collect();
    assert!(found.len() >= 6);
    found
}

fn child_receipt() -> Value {
    let text = golden::load("receipt")["child"]["wire_canonical"].as_str().unwrap().to_owned();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn every_golden_token_verifies_with_the_right_flags() {
    let folder = Folder::new();
    for (name, token) in tokens() {
        let issuer = public(1);
        let words =
            ["capability", "verify", "-", "--trusted-issuer", &issuer, "--at", NOW, "--json"];
        let report = folder.run_with(token.to_string().as_bytes(), &words).ends(0).json();
        let profile = match name.as_str() {
            "aggregate_capability_scope" => json!("aggregate invocation budgets are unsupported"),
            "attenuated" => json!("attenuation proofs and budget shares are unsupported"),
            _ => Value::Null,
        };
        let expected = json!({
            "signature_valid": true, "time_valid": true, "chain_valid": true,
            "issuer_trusted": true, "valid": true, "signature_form": "current",
            "unsupported_profile": profile, "errors": [],
        });
        assert_eq!(report, expected, "{name}");
        let run = folder.run_with(token.to_string().as_bytes(), &words[..7]).ends(0);
        let noted = run.stdout.contains("verifies, but a kernel would deny: ");
        assert_eq!(noted, !profile.is_null(), "{name}");
        assert_eq!(run.stderr, "", "{name}");
    }
}

#[test]
fn a_token_signed_in_the_legacy_form_is_said_to_be() {
    let (mut token, key) = (tokens().pop().unwrap().1, chio_testkit::key(1));
    let members = token.as_object_mut().unwrap();
    members.remove("schema");
    members.remove("signature");
    let bytes = chio_core::canonical::to_vec(&token).unwrap();
    token["signature"] = json!(key.sign(&bytes));
    let folder = Folder::with_keys();
    let words = ["capability", "verify", "-", "--trusted-issuer", "01.key", "--at", NOW, "--json"];
    let text = token.to_string();
    let report = folder.run_with(text.as_bytes(), &words).ends(0).json();
    assert_eq!(report["signature_form"], "legacy");
    folder.run_with(text.as_bytes(), &words[..7]).ends(0).says("in the legacy form");
}

/// Every changed copy that is another object: what was done, and the copy.
fn tampered<T: DeserializeOwned + PartialEq>(value: &Value) -> Vec<(String, Value)> {
    let original: T = serde_json::from_value(value.clone()).unwrap();
    changes(value)
        .into_iter()
        // A member that is defaulted when it is missing may be dropped.
        .filter(|change| {
            serde_json::from_value::<T>(change.value.clone()).ok().is_none_or(|t| t != original)
        })
        .map(|change| (change.what, change.value))
        .collect()
}

#[test]
fn every_tampered_golden_token_is_refused_and_the_failing_check_is_named() {
    let folder = Folder::with_keys();
    let words = ["capability", "verify", "-", "--trusted-issuer", "01.key", "--at", NOW, "--json"];
    for (name, token) in tokens() {
        for (what, copy) in tampered::<CapabilityToken>(&token) {
            let report = folder.run_with(copy.to_string().as_bytes(), &words).ends(1).json();
            let errors = report["errors"].to_string();
            assert_eq!(report["valid"], false, "{name}: {what}");
            assert_eq!(report["signature_valid"], false, "{name}: {what}");
            let named = errors.contains("signature: ") || errors.contains("not a capability token");
            assert!(named, "{name}: {what}: {errors}");
            if what == "changed /issuer" {
                assert_eq!(report["issuer_trusted"], false, "{name}");
                assert!(errors.contains("issuer: "), "{errors}");
            }
            if what.starts_with("changed /delegation_chain/") && !errors.contains("not a cap") {
                assert_eq!(report["chain_valid"], false, "{name}: {what}");
                assert!(errors.contains("chain: "), "{errors}");
            }
        }
    }
}

#[test]
fn every_golden_receipt_verifies() {
    let folder = Folder::new();
    for (name, receipt) in receipts() {
        let signer = public(7);
        let words = ["receipt", "verify", "-", "--json", "--trusted-key", &signer];
        let text = receipt.to_string();
        let report = folder.run_with(text.as_bytes(), &words).ends(0).json();
        let mut expected = json!({
            "kind": "receipt", "signature_valid": true, "receipt_id_valid": true,
            "parameter_hash_valid": true, "coherent": true, "signer_trusted": true, "valid": true,
            "errors": [],
        });
        assert_eq!(report, expected, "{name}");
        let report = folder.run_with(text.as_bytes(), &words[..4]).ends(0).json();
        expected["signer_trusted"] = json!(false);
        assert_eq!(report, expected, "{name}: trust is not asked for");
    }
}

#[test]
fn every_tampered_golden_receipt_is_refused_and_the_failing_check_is_named() {
    let folder = Folder::new();
    for (name, receipt) in receipts() {
        for (what, copy) in tampered::<ChioReceipt>(&receipt) {
            let words = ["receipt", "verify", "-", "--json"];
            let report = folder.run_with(copy.to_string().as_bytes(), &words).ends(1).json();
            let errors = report["errors"].to_string();
            assert_eq!(report["valid"], false, "{name}: {what}");
            let readable = !errors.contains("this is not a ");
            let expected = match what.as_str() {
                _ if !readable => "not a receipt",
                "changed /signature" => "signature: ",
                _ => "receipt id: ",
            };
            assert!(errors.contains(expected), "{name}: {what}: {errors}");
            if readable && what.starts_with("changed /action/") {
                assert_eq!(report["parameter_hash_valid"], false, "{name}: {what}");
                assert!(errors.contains("parameters: "), "{errors}");
            }
        }
    }
}

#[test]
fn the_golden_child_receipt_verifies_and_its_tampered_copies_do_not() {
    let folder = Folder::new();
    let signer = public(7);
    let words = ["receipt", "verify", "-", "--json", "--trusted-key", &signer];
    let receipt = child_receipt();
    let report = folder.run_with(receipt.to_string().as_bytes(), &words).ends(0).json();
    let expected = json!({"kind": "child_receipt", "signature_valid": true, "signer_trusted": true,
        "receipt_id_valid": null, "parameter_hash_valid": null, "coherent": null,
        "valid": true, "errors": []});
    assert_eq!(report, expected);
    for (what, copy) in tampered::<ChildReceipt>(&receipt) {
        let report = folder.run_with(copy.to_string().as_bytes(), &words).ends(1).json();
        assert_eq!(report["valid"], false, "{what}");
        assert_eq!(report["signature_valid"], false, "{what}");
    }
}

#[test]
fn regression_an_extra_member_does_not_make_a_receipt_a_child_receipt() {
    let folder = Folder::new();
    let mut receipt = golden::load("receipt")["allow"]["receipt"].clone();
    receipt["session_id"] = json!("nobody signed this");
    receipt["terminal_state"] = json!({"state": "completed"});
    let run =
        folder.run_with(receipt.to_string().as_bytes(), &["receipt", "verify", "-", "--json"]);
    assert_eq!(run.ends(0).json()["kind"], "receipt");
}

#[test]
fn every_golden_object_can_be_shown() {
    let folder = Folder::new();
    for (name, token) in tokens() {
        let text = token.to_string();
        let run = folder.run_with(text.as_bytes(), &["capability", "inspect", "-"]).ends(0);
        let run = run.says(token["id"].as_str().unwrap());
        assert_eq!(run.stderr, "", "{name}");
        let words = ["capability", "inspect", "-", "--json"];
        let shown = folder.run_with(text.as_bytes(), &words).ends(0).json();
        assert_eq!(shown["scope_hash"], golden::load("capability")[&name]["scope_hash"]);
        assert_eq!(shown["id"], token["id"]);
    }
    for (_, receipt) in receipts() {
        let text = receipt.to_string();
        let run = folder.run_with(text.as_bytes(), &["receipt", "show", "-"]).ends(0);
        let run = run.says("2023-11-14T22:15:00Z").says("srv-files/file_read");
        assert!(!run.stdout.contains("/workspace/a.txt"), "arguments are not repeated: {run:#?}");
    }
}
