//! `chio manifest`.

use chio_testkit::tamper::changes;
use serde_json::{Value, json};

use crate::support::{Folder, public};

fn manifest() -> Value {
    json!({
        "server_id": "files", "name": "Files", "version": "1.0.0",
        "tools": [{"name": "read_file", "description": "Reads a file",
            "input_schema": {"type": "object", "maximum": 1.0}, "has_side_effects": false}],
    })
}

fn sign(folder: &Folder, manifest: &Value) -> crate::support::Run {
    let words = ["manifest", "sign", "-", "--key", "01.key"];
    folder.run_with(manifest.to_string().as_bytes(), &words)
}

#[test]
fn a_signed_manifest_is_filled_in_and_verifies() {
    let folder = Folder::with_keys();
    folder.write("manifest.json", &manifest().to_string());
    let run = folder.line("manifest sign manifest.json --key 01.key --out signed.json").ends(0);
    run.says("signed.json");
    let signed: Value = serde_json::from_str(&folder.read("signed.json")).unwrap();
    assert_eq!(signed["signer_key"], public(1));
    assert_eq!(signed["manifest"]["public_key"], public(1));
    assert_eq!(signed["manifest"]["schema"], "chio.manifest.v1");
    assert_eq!(signed["manifest"]["description"], Value::Null);

    let report = folder.line("manifest verify signed.json --json").ends(0).json();
    let mut expected = json!({"structure_valid": true, "signature_valid": true,
        "signer_trusted": null, "valid": true, "errors": []});
    assert_eq!(report, expected);
    let report = folder.line("manifest verify signed.json --expected-key 01.key --json");
    expected["signer_trusted"] = json!(true);
    assert_eq!(report.ends(0).json(), expected);
    let run = folder.line("manifest verify signed.json").ends(0);
    run.says("files (Files 1.0.0)").says("1 tool").says("no --expected-key is given");
}

#[test]
fn another_signer_than_expected_is_refused() {
    let folder = Folder::with_keys();
    folder.write("signed.json", &sign(&folder, &manifest()).ends(0).stdout);
    let line = "manifest verify signed.json --expected-key 02.key";
    folder.line(line).ends(1).complains("error: signer: signed by ");
    let report = folder.line(&format!("{line} --json")).ends(1).json();
    assert_eq!(report["signature_valid"], true);
    assert_eq!(report["signer_trusted"], false);
}

#[test]
fn every_tampered_manifest_is_refused() {
    let folder = Folder::with_keys();
    let signed = sign(&folder, &manifest()).ends(0).json();
    for change in changes(&signed) {
        // Members that are `null` say the same when they are missing.
        let says_nothing =
            ["/description", "/required_permissions", "/latency_hint"].iter().any(|member| {
                change.what.starts_with("dropped ")
                    && change.what.ends_with(member)
                    && !change.what.ends_with("0/description")
            });
        if says_nothing {
            continue;
        }
        let words = ["manifest", "verify", "-", "--json"];
        let run = folder.run_with(change.value.to_string().as_bytes(), &words);
        assert_eq!(run.code, 1, "{}: {run:#?}", change.what);
        let report = run.json();
        assert_eq!(report["valid"], false, "{}", change.what);
        assert!(!report["errors"].as_array().unwrap().is_empty(), "{}", change.what);
    }
}

#[test]
fn a_manifest_that_breaks_a_rule_is_not_signed() {
    let folder = Folder::with_keys();
    let with = |member: &str, value: Value| {
        let mut manifest = manifest();
        manifest[member] = value;
        manifest
    };
    for (manifest, problem) in [
        (with("tools", json!([])), "at least one tool"),
        (with("server_id", json!(" files")), "server_id"),
        (with("public_key", json!(public(2))), "public key as signer"),
        (with("schema", json!("chio.manifest.v2")), "expected schema"),
        (with("tolls", json!([])), "unknown field `tolls`"),
        (json!([]), "this is not a tool manifest"),
        (json!({}), "missing field"),
    ] {
        let run = sign(&folder, &manifest).ends(1).complains(problem);
        assert_eq!(run.stdout, "");
    }
}

#[test]
fn a_text_that_is_no_signed_manifest_has_no_check_that_holds() {
    let folder = Folder::with_keys();
    let words = ["manifest", "verify", "-", "--json", "--expected-key", "01.key"];
    let unsigned = manifest().to_string();
    let report = folder.run_with(unsigned.as_bytes(), &words).ends(1).json();
    for member in ["structure_valid", "signature_valid", "signer_trusted", "valid"] {
        assert_eq!(report[member], false);
    }
    assert!(report["errors"][0].as_str().unwrap().contains("(1002)"));
}
