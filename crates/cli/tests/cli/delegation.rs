//! `chio capability delegate`, and `issue` at the end of a delegation.

use serde_json::{Value, json};

use crate::support::{Folder, NOW, public};

const TO_3: &str =
    r#"{"type":"reduce_budget","server_id":"files","tool_name":"read_file","max_invocations":3}"#;
const DELEGATE: [&str; 10] = [
    "capability",
    "delegate",
    "--parent",
    "parent.json",
    "--key",
    "02.key",
    "--to",
    "03.key",
    "--at",
    "1700000110",
];
const ISSUE: [&str; 10] = [
    "capability",
    "issue",
    "--key",
    "01.key",
    "--delegation",
    "link.json",
    "--parent",
    "parent.json",
    "--at",
    "1700000120",
];

/// A folder with a parent token: ten calls of one tool, to be handed on, from `NOW` for an hour.
fn folder() -> Folder {
    folder_with("files/read_file:invoke,delegate")
}

fn folder_with(grant: &str) -> Folder {
    let folder = Folder::with_keys();
    let line = format!(
        "capability issue --key 01.key --subject 02.key --grant {grant} \
         --max-invocations 10 --id cap-parent --at {NOW} --out parent.json"
    );
    folder.line(&line).ends(0);
    folder
}

fn and<'a>(words: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [words, more].concat()
}

#[track_caller]
fn verify(folder: &Folder, token: &Value) -> Value {
    let words =
        ["capability", "verify", "-", "--trusted-issuer", "01.key", "--at", "1700000130", "--json"];
    folder.run_with(token.to_string().as_bytes(), &words).json()
}

#[test]
fn a_link_leads_to_a_child_token_that_verifies() {
    let folder = folder();
    let run = folder.run(&and(&DELEGATE, &["--step", TO_3, "--ttl", "10m", "--out", "link.json"]));
    run.ends(0).says("written to  link.json");
    let link: Value = serde_json::from_str(&folder.read("link.json")).unwrap();
    assert_eq!(link["attenuation"]["childExpiresAt"], 1_700_000_710);
    assert_eq!(link["nonce"].as_str().unwrap().len(), 32);
    let kinds: Vec<_> =
        link["link"]["attenuations"].as_array().unwrap().iter().map(|s| &s["type"]).collect();
    assert_eq!(kinds, ["reduce_budget", "remove_operation", "shorten_expiry"]);

    let child = folder.run(&and(&ISSUE, &["--id", "cap-child"])).ends(0).json();
    assert_eq!(child["id"], "cap-child");
    assert_eq!(child["subject"], public(3));
    assert_eq!(child["issuer"], public(1));
    assert_eq!(child["expires_at"], 1_700_000_710);
    assert_eq!(child["delegation_chain"], json!([link["link"]]));
    let grant = json!({"server_id": "files", "tool_name": "read_file", "operations": ["invoke"],
        "max_invocations": 3});
    assert_eq!(child["scope"], json!({"grants": [grant]}));
    assert_eq!(verify(&folder, &child)["valid"], true);

    folder.write("child.json", &child.to_string());
    let run = folder.line("capability inspect child.json").ends(0);
    run.says("handed on 1 time")
        .says(&format!("└─ {}", public(3)))
        .says("from cap-parent, 2023-11-14T22:15:10Z")
        .says("- reduce_budget of files/read_file to 3 calls");
    let report = folder.line("capability verify child.json --max-depth 0 --at 1700000130 --json");
    assert_eq!(report.ends(1).json()["chain_valid"], false);
}

#[test]
fn both_halves_can_be_done_at_once() {
    let folder = folder();
    let child = folder.run(&and(&DELEGATE, &["--step", TO_3, "--issuer-key", "01.key"]));
    let child = child.ends(0).json();
    assert_eq!(child["issued_at"], 1_700_000_110);
    assert_eq!(child["expires_at"], 1_700_003_700, "as long as the parent");
    assert_eq!(verify(&folder, &child)["valid"], true);
}

#[test]
fn leave_to_hand_on_is_kept_only_when_asked_for() {
    let folder = folder();
    let operations = |token: &Value| token["scope"]["grants"][0]["operations"].clone();
    let issuer = ["--issuer-key", "01.key"];
    let child = folder.run(&and(&DELEGATE, &issuer)).ends(0).json();
    assert_eq!(operations(&child), json!(["invoke"]));
    let keep = ["--issuer-key", "01.key", "--keep-delegate", "--out", "child.json"];
    folder.run(&and(&DELEGATE, &keep)).ends(0);

    let again = [
        "capability",
        "delegate",
        "--parent",
        "child.json",
        "--key",
        "03.key",
        "--to",
        "04.key",
        "--at",
        "1700000120",
        "--issuer-key",
        "01.key",
    ];
    let grandchild = folder.run(&again).ends(0).json();
    assert_eq!(operations(&grandchild), json!(["invoke"]));
    assert_eq!(grandchild["delegation_chain"].as_array().unwrap().len(), 2);
    assert_eq!(verify(&folder, &grandchild)["valid"], true);

    folder.write("child.json", &child.to_string());
    folder.run(&again).ends(1).complains("expected a `delegate` operation");
}

#[test]
fn widening_is_refused_in_every_direction() {
    let folder = folder();
    let grant = |rest: &str| {
        format!(
            r#"{{"grants":[{{"server_id":"files","tool_name":"read_file","operations":["invoke"]{rest}}}]}}"#
        )
    };
    for (name, scope) in [
        ("calls.json", grant(r#","max_invocations":11"#)),
        ("unlimited.json", grant("")),
        ("any.json", grant(r#","max_invocations":1"#).replace("read_file", "*")),
        ("other.json", grant(r#","max_invocations":1"#).replace("read_file", "write_file")),
        ("more.json", grant(r#","max_invocations":1"#).replace("\"invoke\"", "\"read_result\"")),
    ] {
        folder.write(name, &scope);
        let run = folder.run(&and(&DELEGATE, &["--scope", name])).ends(1);
        let run = run.complains("exceeds").complains("capability_denied (2100)");
        assert_eq!(run.stdout, "");
    }
    for (more, problem) in [
        (["--step", &TO_3.replace('3', "11")], "expected a step that narrows"),
        (["--step", &TO_3.replace("read_file", "write_file")], "expected a grant for tool"),
        (["--ttl", "2h"], "expected an end at or before the parent's"),
        (["--expires-at", "1700003701"], "expected an end at or before the parent's"),
    ] {
        folder.run(&and(&DELEGATE, &more)).ends(1).complains(problem);
    }
}

#[test]
fn only_the_holder_hands_on_and_only_in_time() {
    let folder = folder();
    let swap = |from: &str, to: &'static str| -> Vec<&'static str> {
        DELEGATE.iter().map(|word| if *word == from { to } else { word }).collect()
    };
    folder.run(&swap("02.key", "03.key")).ends(1).complains("parent's subject as delegator");
    folder.run(&swap("1700000110", "1700000099")).ends(1).complains("within the parent's window");
    folder.run(&swap("1700000110", "1700003700")).ends(1).complains("within the parent's window");
    folder.run(&and(&DELEGATE, &["--expires-at", "1700000110"])).ends(2);
    folder.write(
        "parent.json",
        &folder.read("parent.json").replace("\"max_invocations\": 10", "\"max_invocations\": 99"),
    );
    folder.run(&DELEGATE).ends(1).complains("the parent token does not hold");
}

#[test]
fn a_delegation_without_steps_needs_its_scope_from_the_issuer() {
    let folder = folder_with("files/*:invoke,delegate");
    let scope = r#"{"grants":[{"server_id":"files","tool_name":"read_file",
        "operations":["invoke"],"max_invocations":2}]}"#;
    folder.write("scope.json", scope);
    let more = ["--scope", "scope.json", "--ttl", "10m", "--out", "link.json"];
    folder.run(&and(&DELEGATE, &more)).ends(0);
    folder.run(&ISSUE).ends(1).complains("pass what was handed on with --scope");
    let child = folder.run(&and(&ISSUE, &["--scope", "scope.json"])).ends(0).json();
    assert_eq!(child["scope"], serde_json::from_str::<Value>(scope).unwrap());
    assert_eq!(verify(&folder, &child)["valid"], true);
    let wide = ["--grant", "files/*", "--max-invocations", "11"];
    folder.run(&and(&ISSUE, &wide)).ends(1).complains("exceeds");
}

#[test]
fn a_child_is_signed_only_for_a_parent_that_the_issuer_vouches_for() {
    let folder = folder();
    folder.run(&and(&DELEGATE, &["--step", TO_3, "--out", "link.json"])).ends(0);
    let other: Vec<_> = ISSUE.iter().map(|w| if *w == "01.key" { "04.key" } else { w }).collect();
    folder.run(&other).ends(1).complains("expected a parent from this issuer");
    folder.run(&and(&other, &["--trusted-issuer", "01.key"])).ends(0);
    let more = ["--step", TO_3, "--issuer-key", "04.key"];
    folder.run(&and(&DELEGATE, &more)).ends(1).complains("expected a parent from this issuer");
    let more = ["--step", TO_3, "--issuer-key", "04.key", "--trusted-issuer", "01.key"];
    folder.run(&and(&DELEGATE, &more)).ends(0);
}

#[test]
fn a_delegation_receipt_that_was_changed_is_refused() {
    let folder = folder();
    let more = ["--step", TO_3, "--ttl", "10m", "--out", "link.json"];
    folder.run(&and(&DELEGATE, &more)).ends(0);
    let receipt: Value = serde_json::from_str(&folder.read("link.json")).unwrap();
    for change in chio_testkit::tamper::changes(&receipt) {
        // The nonce is for a reader that remembers receipts.
        if change.what == "changed /nonce" {
            continue;
        }
        folder.write("link.json", &change.value.to_string());
        let run = folder.run(&ISSUE);
        assert_eq!(run.code, 1, "{}: {run:#?}", change.what);
    }
}

#[test]
fn a_delegation_that_has_ended_is_not_signed() {
    let folder = folder();
    let more = ["--step", TO_3, "--ttl", "5s", "--out", "link.json"];
    folder.run(&and(&DELEGATE, &more)).ends(0);
    folder.run(&ISSUE).ends(1).complains("expected an end after 1700000120");
}
