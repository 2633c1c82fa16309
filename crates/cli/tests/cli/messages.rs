//! What a person at a terminal is told when something does not go as expected: the cause, and what
//! to do next.

use std::os::unix::fs::PermissionsExt as _;

use chio_testkit::golden;

use crate::support::{Folder, NOW, public};

#[test]
fn a_public_key_has_a_file_of_its_own_wherever_a_key_is_taken() {
    let folder = Folder::with_keys();
    folder.line("key public 01.key --out one.pub").ends(0).says(&public(1)).says("one.pub");
    assert_eq!(folder.read("one.pub"), format!("chio-public-key {}\n", public(1)));
    assert_eq!(folder.line("key public 01.key").ends(0).stdout, folder.read("one.pub"));
    let found = folder.line("key public 01.key --json").ends(0).json();
    assert_eq!(found["public_key"], public(1));
    // Bare digits in a file that is named so are a public key as well.
    folder.write("bare.pub", &format!("{}\n", public(1)));
    for key in ["one.pub", "bare.pub", "01.key", &public(1)] {
        let line = format!("capability issue --key 02.key --subject {key} --grant s/t");
        assert_eq!(folder.line(&line).ends(0).json()["subject"], public(1), "{key}");
    }
    // It is not a secret, and signs nothing.
    std::fs::set_permissions(folder.path("one.pub"), std::fs::Permissions::from_mode(0o644))
        .unwrap();
    let line = "capability issue --key one.pub --subject 02.key --grant s/t";
    folder.line(line).ends(2).complains("the secret one is needed to sign");
}

#[test]
fn an_authority_is_used_or_refused_and_never_ignored() {
    let folder = Folder::with_keys();
    folder.write("receipt.json", &golden::load("receipt")["allow"]["receipt"].to_string());
    folder.line("receipt verify receipt.json").ends(0);
    for option in ["--authority 01.key", "--allow-pending"] {
        let run = folder.line(&format!("receipt verify receipt.json {option}")).ends(2);
        run.complains("are for bundles").complains("chio receipt export");
    }
}

#[test]
fn a_bundle_in_place_of_a_receipt_is_told_what_reads_it() {
    let folder = Folder::new();
    folder.write("day.json", r#"{"schema": "chio.receipt_bundle.v1", "entries": []}"#);
    for command in ["verify", "show"] {
        let run = folder.line(&format!("receipt {command} day.json")).ends(1);
        run.complains("chio receipt verify --bundle day.json").complains("receipt list --bundle");
    }
}

#[test]
fn an_unknown_id_is_unknown_and_a_missing_file_is_missing() {
    let folder = Folder::new();
    folder.line("receipt show nope.json").ends(2).complains("cannot read `nope.json`");
    folder.line("receipt show a/nope").ends(2).complains("cannot read `a/nope`");
    // Where there is no store, that is what is wrong.
    folder.line("receipt show nope").ends(2).complains("expected a store in");
}

#[test]
fn times_are_read_as_iso_8601_has_them() {
    let folder = Folder::with_keys();
    let issue = "capability issue --key 01.key --subject 02.key --grant s/t --ttl 1h --at";
    for at in ["1700000100", "2023-11-14T22:15:00Z", "2023-11-14T23:15+01:00"] {
        let token = folder.line(&format!("{issue} {at}")).ends(0).json();
        assert_eq!(token["issued_at"].to_string(), NOW, "{at}");
    }
    let token = folder.line(&format!("{issue} 2023-11-14")).ends(0).stdout;
    folder.write("token.json", &token);
    let shown = folder.line("capability inspect token.json").ends(0);
    shown.says("valid from  2023-11-14T00:00:00Z");
    let mut local = folder.command(&["capability", "inspect", "token.json", "--local-time"]);
    let shown = crate::support::Run::of(local.env("TZ", "UTC-2"), b"").ends(0);
    shown.says("valid from  2023-11-14T02:00:00+02:00");
    let run = folder.line(&format!("{issue} yesterday")).ends(2);
    run.complains("expected a time such as 2026-09-24T12:00:00Z");
}

#[test]
fn a_command_without_dashes_before_it_is_told_where_they_belong() {
    let folder = Folder::new();
    let run = folder.line("mcp serve npx -y server").ends(2);
    run.complains("chio mcp serve -- npx -y server");
    let run = folder.line("mcp config --client cursor uvx server").ends(2);
    run.complains("chio mcp config --client cursor -- uvx server");
    // A slip in an option of ours is one.
    folder.line("mcp serve --htpp").ends(2).complains("'--http'");
}

#[test]
fn every_shell_gets_completions_that_name_our_commands() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let run = folder.line(&format!("completions {shell}")).ends(0);
        assert!(run.stdout.contains("capability") && run.stdout.contains("bundle"), "{shell}");
    }
    folder.line("completions tcsh").ends(2).complains("bash");
}

#[test]
fn what_is_written_to_a_file_is_told_to_scripts_too() {
    let folder = Folder::with_keys();
    let line = "capability issue --key 01.key --subject 02.key --grant s/t --id c --out t.json";
    let told = folder.line(&format!("{line} --json")).ends(0).json();
    assert_eq!(told["capability"], "c");
    assert_eq!(told["written_to"], "t.json");
    let told = folder.line("policy init --json").ends(0).json();
    assert_eq!(told["written_to"], "policy.yaml");
    assert_eq!(folder.line("policy show strict --json").ends(0).json()["name"], "strict");
    assert_eq!(folder.line("init --json").ends(0).json()["written_to"], "chio.yaml");
}
