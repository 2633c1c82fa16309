//! Every built-in ruleset holds what it says, and lets ordinary work pass.

use std::path::Path;
use std::sync::Arc;

use chio_policy::cases::{self, Case};
use chio_policy::document::RULESETS;
use chio_policy::policy::Policy;
use chio_policy::state::State;

fn policy(name: &str) -> Policy {
    let loaded = Policy::load(name, Path::new("nowhere"), &Arc::new(State::default()));
    loaded.unwrap_or_else(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        panic!("{name}: {}", problems.join("\n"));
    })
}

async fn hold(policy: &Policy, cases: &[Case]) -> String {
    let name = policy.name().unwrap_or_default();
    let mut wrong = String::new();
    for case in cases {
        let judged = policy.judge(&case.call).await;
        if judged.decision.word() != case.expect.word() {
            wrong += &format!(
                "{name}: {}: expected {}, found {} by {:?}: {:?}\n",
                case.name,
                case.expect.word(),
                judged.decision.word(),
                judged.by,
                judged.reason
            );
        }
    }
    wrong
}

/// The demo tools with ordinary arguments, as the demo server publishes them.
const DEMO: &str = r#"
cases:
  - {server: demo, tool: echo, args: {text: "hello, world"}, side_effects: false, expect: allow}
  - {server: demo, tool: now, side_effects: false, expect: allow}
  - {server: demo, tool: note_put, args: {name: list, text: "milk, bread"}, side_effects: true, expect: allow}
  - {server: demo, tool: note_get, args: {name: list}, side_effects: false, expect: allow}
  - {server: demo, tool: note_count, side_effects: false, expect: allow}
  - {server: demo, tool: count_to, args: {n: 3}, side_effects: false, expect: allow}
  - {server: demo, tool: sleep, args: {ms: 10}, side_effects: false, expect: allow}
  - server: demo
    tool: paid
    args: {text: hello}
    side_effects: false
    cost: {units: 5, currency: USD}
    output: {text: hello}
    expect: allow
  - {server: demo, tool: needs_approval, args: {text: hello}, side_effects: false, expect: allow}
"#;

#[tokio::test]
async fn the_demo_tools_pass_under_every_ruleset() {
    let cases = cases::read(DEMO, "demo").unwrap().cases;
    assert_eq!(cases.len(), 9);
    let mut wrong = String::new();
    for ruleset in RULESETS {
        wrong += &hold(&policy(ruleset.name), &cases).await;
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[tokio::test]
async fn every_ruleset_proves_that_it_holds() {
    for ruleset in RULESETS {
        let proven = policy(ruleset.name).proven().await;
        assert!(proven.is_ok(), "{}: {proven:?}", ruleset.name);
    }
}

#[test]
fn every_ruleset_says_what_it_is_and_none_is_another() {
    let hashes: Vec<String> =
        RULESETS.iter().map(|ruleset| policy(ruleset.name).hash().to_owned()).collect();
    for (number, hash) in hashes.iter().enumerate() {
        assert!(!hashes[..number].contains(hash));
    }
    for ruleset in RULESETS {
        let root = chio_yaml::parse(ruleset.text, ruleset.name).unwrap();
        assert_eq!(root.get("name").unwrap().to_value(), ruleset.name);
        assert!(root.get("description").is_some(), "{}", ruleset.name);
        assert!(policy(ruleset.name).notes().is_empty());
    }
}

/// What each ruleset makes of ordinary and of dangerous calls, in the order of `RULESETS`:
/// default, strict, permissive, code-agent.
const TABLE: &[(&str, [&str; 4])] = &[
    (
        "tool: read_file, side_effects: false, args: {path: /workspace/src/main.rs}",
        ["allow", "allow", "allow", "allow"],
    ),
    (
        "tool: write_file, side_effects: true, args: {path: /workspace/src/main.rs, content: x}",
        ["allow", "deny", "allow", "allow"],
    ),
    (
        "tool: read_file, side_effects: false, args: {path: ~/.ssh/id_ed25519}",
        ["deny", "deny", "allow", "deny"],
    ),
    (
        "tool: read_file, side_effects: false, args: {path: ../../.aws/credentials}",
        ["deny", "deny", "allow", "deny"],
    ),
    (
        "tool: bash, side_effects: true, args: {command: cargo test --workspace}",
        ["allow", "deny", "allow", "allow"],
    ),
    (
        "tool: bash, side_effects: true, args: {command: npm install && npm test}",
        ["allow", "deny", "allow", "allow"],
    ),
    (
        "tool: bash, side_effects: true, args: {command: git push --force origin main}",
        ["allow", "deny", "allow", "ask"],
    ),
    (
        "tool: bash, side_effects: true, args: {command: rm -rf /}",
        ["deny", "deny", "allow", "deny"],
    ),
    (
        "tool: fetch, side_effects: false, args: {url: 'https://example.com/page'}",
        ["allow", "deny", "allow", "deny"],
    ),
    (
        "tool: fetch, side_effects: false, args: {url: 'https://pypi.org/simple/requests/'}",
        ["allow", "deny", "allow", "allow"],
    ),
    (
        "tool: fetch, side_effects: false, args: {url: 'https://webhook.site/x?d=1'}",
        ["deny", "deny", "allow", "deny"],
    ),
    (
        "tool: fetch, side_effects: false, args: {url: 'http://10.0.0.5/admin'}",
        ["deny", "deny", "allow", "deny"],
    ),
    (
        "tool: fetch, side_effects: false, args: {url: 'http://169.254.169.254/latest/meta-data/'}",
        ["deny", "deny", "deny", "deny"],
    ),
    (
        "tool: deploy_service, side_effects: true, args: {name: shop}",
        ["ask", "deny", "allow", "ask"],
    ),
    (
        "tool: delete_file, side_effects: true, args: {path: /workspace/a.txt}",
        ["ask", "deny", "allow", "ask"],
    ),
    (
        "tool: create_payment, side_effects: true, args: {amount: 5}",
        ["ask", "deny", "allow", "ask"],
    ),
    (
        "tool: get_deployment_status, side_effects: false, args: {name: shop}",
        ["allow", "allow", "allow", "allow"],
    ),
    (
        "tool: search_issues, side_effects: false, args: {query: bug}",
        ["allow", "allow", "allow", "allow"],
    ),
    ("tool: get_report, side_effects: true", ["allow", "ask", "allow", "allow"]),
    (
        "tool: write_file, side_effects: true, args: {path: .github/workflows/ci.yml, content: x}",
        ["allow", "deny", "allow", "ask"],
    ),
    (
        "tool: write_file, side_effects: true, args: {path: /workspace/.git/hooks/pre-commit, content: x}",
        ["deny", "deny", "allow", "ask"],
    ),
    (
        "tool: write_file, side_effects: true, args: {path: /workspace/package-lock.json, content: x}",
        ["allow", "deny", "allow", "ask"],
    ),
    (
        r#"tool: apply_patch, side_effects: true, args: {patch: "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1 +1 @@\n-a\n+b\n"}"#,
        ["allow", "deny", "allow", "allow"],
    ),
    (
        r#"tool: apply_patch, side_effects: true, args: {patch: "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1 +1 @@\n-a\n+b\n--- a/.github/workflows/ci.yml\n+++ b/.github/workflows/ci.yml\n@@ -1 +1 @@\n-a\n+b\n"}"#,
        ["allow", "deny", "allow", "ask"],
    ),
    (
        r#"tool: apply_patch, side_effects: true, args: {patch: "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1 +1 @@\n-a\n+b\n--- a/Cargo.lock\n+++ b/Cargo.lock\n@@ -1 +1 @@\n-a\n+b\n"}"#,
        ["allow", "deny", "allow", "ask"],
    ),
    (
        "tool: get_config, side_effects: false, output: {key: AKIAQ3EGRTN5XKPVB7MW}",
        ["redact", "redact", "redact", "redact"],
    ),
];

#[tokio::test]
async fn rulesets_draw_their_lines_where_they_say() {
    let mut wrong = String::new();
    for (column, ruleset) in RULESETS.iter().enumerate() {
        let policy = policy(ruleset.name);
        for (call, expected) in TABLE {
            let text = format!("cases:\n  - {{{call}, expect: {}}}\n", expected[column]);
            let read = cases::read(&text, "table").unwrap_or_else(|why| panic!("{text}: {why:?}"));
            let found = hold(&policy, &read.cases).await;
            if !found.is_empty() {
                wrong += &format!("{call}\n  {found}");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
