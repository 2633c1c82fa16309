//! `chio receipt`.

use chio_testkit::golden;
use serde_json::json;

use crate::support::{Folder, public};

fn golden_receipt(name: &str) -> String {
    golden::load("receipt")[name]["receipt"].to_string()
}

#[track_caller]
fn shows(name: &str, lines: &[&str]) {
    let folder = Folder::new();
    let run = folder.run_with(golden_receipt(name).as_bytes(), &["receipt", "show", "-"]).ends(0);
    lines.iter().fold(run, |run, line| run.says(line));
}

#[test]
fn decisions_are_shown_in_words() {
    shows("allow", &["decision    allowed", "capability  cap-golden-1", &public(7)]);
    shows("deny", &["decision    denied by kernel: capability has expired"]);
    shows("cancelled_scalar_metadata", &["decision    cancelled: "]);
    shows(
        "incomplete_full_fields",
        &[
            "decision    incomplete: stream cut",
            "tenant      tenant-a",
            "actors      a\n            b (agent)",
            "evidence    allowed g1\n            denied  g2  why",
            "\"chio_receipt_signing_nonce\": \"rcpt-golden-0004\"",
        ],
    );
    shows("trace", &["decision    none, only dropped", "kind        trace observation"]);
}

#[test]
fn a_receipt_as_json_is_whole() {
    let folder = Folder::new();
    let text = golden_receipt("allow");
    let words = ["receipt", "show", "-", "--json"];
    let mut shown = folder.run_with(text.as_bytes(), &words).ends(0).json();
    let members = shown.as_object_mut().unwrap();
    assert_eq!(members.remove("kind"), Some(json!("receipt")));
    assert_eq!(members.remove("hash").unwrap().as_str().unwrap().len(), 64);
    assert_eq!(shown, serde_json::from_str::<serde_json::Value>(&text).unwrap());
}

#[test]
fn a_child_receipt_is_known_by_its_members() {
    let folder = Folder::new();
    let text = golden::load("receipt")["child"]["wire_canonical"].as_str().unwrap().to_owned();
    let run = folder.run_with(text.as_bytes(), &["receipt", "show", "-"]).ends(0);
    run.says("child-rcpt-golden (child)").says("operation   create message").says("cancelled: x");
    let words = ["receipt", "show", "-", "--json"];
    assert_eq!(folder.run_with(text.as_bytes(), &words).ends(0).json()["kind"], "child_receipt");
}

#[test]
fn a_signer_is_trusted_only_when_named() {
    let folder = Folder::new();
    folder.write("receipt.json", &golden_receipt("deny"));
    folder.line("receipt verify receipt.json").ends(0).says("no --trusted-key is given");
    let known = format!("receipt verify receipt.json --trusted-key {}", public(7));
    folder.line(&known).ends(0).says("signer      trusted");
    let other = format!("receipt verify receipt.json --trusted-key {}", public(1));
    let run = folder.line(&other).ends(1).complains("error: signer: signed by ");
    assert!(run.stdout.contains("result      NOT VALID"));
    let report = folder.line(&format!("{other} --json")).ends(1).json();
    assert_eq!(report["signer_trusted"], false);
    assert_eq!(report["signature_valid"], true);
}

#[test]
fn an_incoherent_receipt_is_named_so_however_well_it_is_signed() {
    let key = chio_testkit::key(7);
    let mut receipt = golden::load("receipt")["allow"]["receipt"].clone();
    let members = receipt.as_object_mut().unwrap();
    members.insert("trust_level".to_owned(), json!("advisory"));
    members.remove("id");
    members.remove("signature");
    let body = chio_core::canonical::to_vec(&receipt).unwrap();
    let id = chio_core::hash::sha256_hex(&body);
    let wrapped = chio_core::canonical::to_vec(&json!({"body": receipt, "id": id})).unwrap();
    receipt["id"] = json!(id);
    receipt["signature"] = json!(key.sign(&wrapped));
    let words = ["receipt", "verify", "-", "--json"];
    let report = Folder::new().run_with(receipt.to_string().as_bytes(), &words).ends(1).json();
    assert_eq!(report["signature_valid"], true);
    assert_eq!(report["receipt_id_valid"], true);
    assert_eq!(report["coherent"], false);
    assert!(report["errors"][0].as_str().unwrap().starts_with("coherence: "), "{report}");
}

#[test]
fn a_text_that_is_no_receipt_has_no_check_that_holds() {
    let folder = Folder::new();
    for text in ["", "[]", "{}", "7"] {
        let words = ["receipt", "verify", "-", "--json"];
        let report = folder.run_with(text.as_bytes(), &words).ends(1).json();
        for member in [
            "signature_valid",
            "receipt_id_valid",
            "parameter_hash_valid",
            "coherent",
            "signer_trusted",
            "valid",
        ] {
            assert_eq!(report[member], false, "{text}");
        }
        let run = folder.run_with(text.as_bytes(), &words[..3]).ends(1);
        run.complains("error: this is not a receipt").complains("invalid_request_shape (1002)");
        folder.run_with(text.as_bytes(), &["receipt", "show", "-"]).ends(1);
    }
}
