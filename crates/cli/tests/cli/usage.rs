//! What every command has in common: help, exit codes, standard input and output.

use std::io::Write;

use crate::support::Folder;

/// Command lines that are not understood, of commands that need no store.
const OFFLINE: [&str; 61] = [
    "",
    "nonsense",
    "key",
    "key new extra",
    "key show",
    "capability issue --key 01.key --subject 02.key",
    "capability issue --key 01.key --grant s/t",
    "capability issue --key 01.key --subject 02.key --grant st",
    "capability issue --key 01.key --subject 02.key --grant s/t:fly",
    "capability issue --key 01.key --subject 02.key --grant s/t --ttl 0",
    "capability issue --key 01.key --subject 02.key --grant s/t --ttl 1w",
    "capability issue --key 01.key --subject 02.key --grant s/t --scope 01.key",
    "capability issue --key 01.key --subject 02.key --grant s/t --constraint {",
    "capability issue --key 01.key --subject 02.key --grant s/t --force",
    "capability issue --key 01.key --subject 02.key --scope x.json --dpop",
    "capability issue --key 01.key --subject abc --grant s/t",
    "capability issue --key missing.key --subject 02.key --grant s/t",
    "capability issue --key 01.key --delegation x.json",
    "capability delegate --parent missing.json --key 01.key --to 02.key",
    "capability delegate --parent a --key 01.key --to 02.key --ttl 1h --expires-at 5",
    "capability verify",
    "capability verify missing.json",
    "capability verify missing.json --json",
    "capability verify - --trusted-issuer abc",
    "capability verify - --at yesterday",
    "capability verify - --max-depth -1",
    "capability inspect .",
    "receipt show missing.json",
    "receipt verify missing.json --json",
    "receipt verify - --trusted-key 00",
    "manifest sign missing.json --key 01.key",
    "manifest sign -",
    "manifest verify missing.json",
    "canonicalize missing.json",
    "up --unknown",
    "policy",
    "policy nonsense",
    "policy init a b",
    "policy check",
    "policy check missing.yaml",
    "policy check default strict",
    "policy explain",
    "policy explain default",
    "policy explain --tool t",
    "policy explain default --tool t --protocol smoke",
    "policy explain default --tool t --target smoke",
    "policy explain default --tool t --fidelity good",
    "policy explain default --tool t --depth -1",
    "policy explain default --tool t --depth 65",
    "policy explain default --tool t --cost 5",
    "policy explain default --tool t --cost 5USD",
    "policy explain default --tool t --at yesterday",
    "policy test",
    "policy test default",
    "policy test default missing.yaml",
    "policy list all",
    "policy show",
    "policy show nothing",
    "up --policy",
    "up --policy missing.yaml",
    "up --shadow-policy missing.yaml",
];

/// And of those that serve, call or read one.
const ON_A_STORE: &[&str] = &[
    "tour --unknown",
    "native",
    "native serve",
    "native serve --stdio --unix a.sock",
    "native serve --tcp localhost",
    "native serve --unix a.sock --store s --data s",
    "native serve --unix a.sock --store mysql:x",
    "native serve --unix a.sock --deadline 0",
    "native serve --unix a.sock --peer abc",
    "native serve --unix a.sock --kernel-key missing.key",
    "native call demo echo",
    "native call --token missing.json demo echo",
    "native call --unix a --tcp 127.0.0.1:1 --token 01.key demo echo",
    "native list",
    "native list --unix missing.sock",
    "native list --tcp 127.0.0.1:1",
    "receipt list --outcome maybe",
    "receipt list --limit 0",
    "receipt list --limit 1001",
    "receipt list --since yesterday",
    "receipt list --data missing",
    "receipt tail --data missing",
    "receipt export --data missing",
    "receipt verify",
    "receipt verify --bundle missing.json",
    "receipt verify x --authority 01.key",
    "log",
    "log audit --data missing",
    "log consistency --from x",
    "log consistency --data missing --from 1",
    "kernel",
    "kernel list --data missing",
    "kernel stop",
    "kernel stop --reason x --data missing",
    "kernel certify --kernel 01.key",
    "kernel admit missing.json",
    "capability revoke",
    "capability revoke x --data missing",
    "capability import",
    "capability import missing.json --data missing",
    "up --approval-timeout 0",
    "up --trusted-approver abc",
    "up --trusted-kernel abc",
    "native serve --unix a.sock --approval-timeout soon",
    "native serve --unix a.sock --trusted-approver missing.key",
    "native call --token 01.key --dpop-key demo echo",
    "approvals",
    "approvals list --state maybe",
    "approvals list --limit 0",
    "approvals list --data missing",
    "approvals show",
    "approvals show x --data missing",
    "approvals approve x --data missing",
    "approvals approve x --valid-for 2h",
    "approvals deny x --valid-for 5m",
    "receipt trace x --data missing",
    "native serve --unix a.sock --policy nothing",
    "native serve --unix a.sock --shadow-policy nothing",
    "policy shadowed --data missing",
    "policy shadowed --since yesterday",
    "up --listen here",
    "up --listen 0.0.0.0:0",
    "mcp",
    "mcp serve",
    "mcp serve ls",
    "mcp serve --auth-token-file 01.key -- ls",
    "mcp serve --http 0.0.0.0:0 -- ls",
    "mcp serve --http --auth-token 0123456789abcdef -- ls",
    "mcp serve --http --auth-token-file missing -- ls",
    "mcp serve --http --anonymous missing -- ls",
    "mcp serve --http --anonymous default --auth-token-file 01.key -- ls",
    "mcp serve --server-id a__b -- ls",
    "mcp serve --env NAME=VALUE -- ls",
    "mcp serve --max-sessions 0 -- ls",
    "mcp serve --rotate-streams soon -- ls",
    "a2a serve --target http://127.0.0.1:9 --header X-Key=0123456789abcdef",
    "a2a serve --target http://127.0.0.1:9 --url agent.example.com",
    "a2a serve --target http://127.0.0.1:9 --url https://agent.example.com/?a=b",
    "up --protocol-version 2025-06-17",
    "serve --protocol-version latest",
    "mcp serve --protocol-version 2025-11-25,2025-11-26 -- ls",
    "mcp config --client cursor --protocol-version 2025 -- ls",
    "mcp serve --http --cors-origin * -- ls",
    "mcp serve --http --cors-origin app.example.com -- ls",
    "mcp serve --cors-origin https://app.example.com -- ls",
    "mcp config -- ls",
    "mcp config --client emacs -- ls",
    "mcp config --client cursor",
    "serve",
    "serve --config missing.yaml",
    "tools",
    "tools list",
    "tools list --url nowhere",
    "tools list --bearer-file 01.key",
    "call demo",
    "call demo echo",
    "call --data missing demo echo",
    "call --url http://127.0.0.1:1/mcp demo echo",
];

#[test]
fn a_command_line_that_is_not_understood_ends_with_2() {
    let folder = Folder::with_keys();
    for line in OFFLINE.into_iter().chain(ON_A_STORE.iter().copied()) {
        let run = folder.line(line).ends(2);
        assert_eq!(run.stdout, "", "{line}");
        assert!(!run.stderr.is_empty(), "{line}");
        assert!(!run.stderr.contains("panicked"), "{run:#?}");
    }
    assert_eq!(folder.files().len(), 4, "nothing was written");
}

/// Every page of help.
const PAGES: [&str; 57] = [
    "",
    "up",
    "mcp",
    "mcp serve",
    "mcp config",
    "init",
    "serve",
    "doctor",
    "tools",
    "tools list",
    "call",
    "tour",
    "native",
    "native serve",
    "native call",
    "native list",
    "key",
    "key new",
    "key show",
    "canonicalize",
    "capability",
    "capability issue",
    "capability delegate",
    "capability inspect",
    "capability verify",
    "capability revoke",
    "capability list",
    "capability import",
    "key public",
    "completions",
    "kernel certify",
    "kernel admit",
    "approvals",
    "approvals list",
    "approvals show",
    "approvals approve",
    "approvals deny",
    "log audit",
    "log consistency",
    "receipt",
    "receipt list",
    "receipt tail",
    "receipt export",
    "receipt show",
    "receipt trace",
    "receipt verify",
    "manifest",
    "manifest sign",
    "manifest verify",
    "policy",
    "policy init",
    "policy check",
    "policy explain",
    "policy test",
    "policy list",
    "policy show",
    "policy shadowed",
];

#[test]
fn every_help_page_ends_with_0_and_has_an_example() {
    let folder = Folder::new();
    for page in PAGES {
        let run =
            folder.line(&format!("{page} --help")).ends(0).says("Usage: chio").says("Example");
        assert!(!run.stdout.contains('\u{1b}'), "no colours without a terminal: {page}");
        // The parser writes the line of usage as it likes.
        let fits = |line: &str| line.chars().count() <= 80 || line.starts_with("Usage: ");
        assert!(run.stdout.lines().all(fits), "{page}: {}", run.stdout);
    }
}

#[test]
fn the_version_is_told() {
    Folder::new().line("--version").ends(0).says(concat!("chio ", env!("CARGO_PKG_VERSION")));
}

#[test]
fn standard_input_is_read_once() {
    let folder = Folder::with_keys();
    let words = ["capability", "issue", "--key", "-", "--subject", "02.key", "--scope", "-"];
    folder.run_with(b"{}", &words).ends(2).complains("only one argument can be `-`");
}

#[test]
fn a_reader_that_has_gone_away_is_no_error() {
    let folder = Folder::new();
    let mut child = folder.command(&["canonicalize"]).spawn().unwrap();
    drop(child.stdout.take());
    child.stdin.take().unwrap().write_all(b"[1]").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stderr, b"");
}

#[test]
fn the_exit_code_counts_even_when_nobody_reads() {
    let folder = Folder::new();
    let mut child = folder.command(&["receipt", "verify", "-"]).spawn().unwrap();
    drop((child.stdout.take(), child.stderr.take()));
    child.stdin.take().unwrap().write_all(b"{}").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn a_key_typed_in_place_of_another_argument_is_not_repeated() {
    let folder = Folder::with_keys();
    let seed = chio_testkit::key(1).seed_hex();
    let slip = format!("{}0", *seed);
    for words in [
        ["capability", "issue", "--grant", "s/t", "--subject", "02.key", "--key", &*seed],
        ["capability", "issue", "--grant", "s/t", "--key", "01.key", "--subject", &slip],
    ] {
        let run = folder.run(&words).ends(2);
        assert!(!run.stderr.contains(&*seed), "{run:#?}");
    }
}
