//! Judging is bounded: in steps, whatever is asked.
#![cfg(test)]

mod hostile;

use std::path::Path;
use std::sync::Arc;

use chio_kernel::{GuardMemo, Review, Verdict, Work, ask, ask_about_output};
use chio_policy::Policy;
use chio_policy::document;
use chio_policy::example::ExampleCall;
use chio_policy::state::State;
use serde_json::json;

/// Every guard that looks at arguments or output.
const POLICY: &str = r#"
hushspec: "0.1.0"
extends: default
rules:
  path_allowlist: {enabled: true, read: ["**"], write: ["**"]}
  forbidden_paths: {}
  shell_commands: {}
  patch_integrity: {}
  secret_patterns: {}
  egress: {default: allow}
  browser_automation: {enabled: true}
  code_execution: {enabled: true, network_access: true}
chio:
  output:
    redact: [{name: ticket, pattern: "TICKET-[0-9]+"}]
    block: ["(?i)top secret"]
    pii: [email, phone, credit_card, ssn, iban]
extensions:
  detection:
    prompt_injection: {enabled: true}
"#;

/// Rules that look at each path, host and command along with all others.
const RULES: &str = r#"
hushspec: "0.1.0"
chio:
  rules:
    cedar: |
      forbid (principal, action, resource) when { context has path && context.path like "*x*y*z*" };
      forbid (principal, action, resource) when { context has folders && context.folders.contains("/never") };
      forbid (principal, action, resource) when { context has commands && context.commands.contains("never") };
"#;

fn policy(text: &str) -> Policy {
    let document = document::of_text(text, "bounded.yaml", Path::new("."));
    let document = document.unwrap_or_else(|problems| panic!("{problems:#?}"));
    let policy = Policy::of_document(document, &Arc::new(State::default()));
    policy.unwrap_or_else(|problems| panic!("{problems:#?}"))
}

/// What it takes to judge a call by all guards, up to one that denies; and why it is denied.
async fn judged(policy: &Policy, call: &ExampleCall) -> (u64, Option<String>) {
    let (memo, work) = (GuardMemo::default(), Work::default());
    let input = call.input(&memo, &work);
    for guard in policy.guards() {
        let said = ask(&**guard, &input).await;
        if let Verdict::Deny(why) = said.verdict {
            return (work.steps(), Some(why));
        }
        assert!(!work.is_spent(), "{} allows what it could not judge", guard.name());
    }
    (work.steps(), None)
}

/// Whether a call was denied since it would take too long to judge.
fn is_too_long(why: Option<&String>) -> bool {
    why.is_some_and(|why| why.contains("steps"))
}

/// Calls that take more than in proportion: what they take is charged, and when it is too much
/// they are denied. A wild path is held against all that is forbidden, and the file system is asked
/// about each name of a path.
const CHARGED: [&str; 10] = [
    "eval",
    "sudo",
    "sh with a text",
    "many sources",
    "braces",
    "open braces",
    "execs",
    "appends",
    "wild",
    "folders",
];

#[tokio::test]
async fn a_call_takes_steps_in_proportion_to_its_length_or_is_denied() {
    let policy = policy(POLICY);
    let (small, large) = (8000, 48_000);
    let calls = hostile::calls(small).into_iter().zip(hostile::calls(large));
    for ((name, small), (_, large)) in calls {
        let (few, _) = judged(&policy, &small).await;
        let (many, why) = judged(&policy, &large).await;
        let is_linear = many <= 8 * few + 500_000 && !is_too_long(why.as_ref());
        assert!(is_linear || CHARGED.contains(&name), "{name}: {few}, then {many}: {why:?}");
    }
}

#[tokio::test]
async fn rules_take_no_more_steps_than_a_call_may_cause() {
    let policy = policy(RULES);
    for (name, call) in hostile::calls(48_000) {
        let (steps, why) = judged(&policy, &call).await;
        assert!(steps < 140_000_000, "{name}: {steps} steps: {why:?}");
    }
}

#[tokio::test]
async fn output_is_judged_in_steps_in_proportion_to_its_length() {
    let policy = policy(POLICY);
    let call = ExampleCall::new("echo", json!({}));
    let (memo, work) = (GuardMemo::default(), Work::default());
    let input = call.input(&memo, &work);
    for (name, output) in hostile::outputs(24_000) {
        for guard in policy.guards() {
            let said = ask_about_output(&**guard, &input, &output).await;
            let is_too_long = matches!(&said, Review::Block(why) if why.contains("steps"));
            assert!(!is_too_long, "{name}: {}", guard.name());
        }
    }
}
