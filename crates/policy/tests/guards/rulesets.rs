//! The built-in rulesets: they hold, and ordinary work passes under them.

use std::path::Path;
use std::sync::Arc;

use chio_policy::document::RULESETS;
use chio_policy::example::ExampleCall;
use chio_policy::judge::Decision;
use chio_policy::state::State;
use chio_policy::{Policy, Unproved};
use serde_json::{Value, json};

fn load(name: &str) -> Policy {
    let policy = Policy::load(name, Path::new("."), &Arc::new(State::default()));
    policy.unwrap_or_else(|problems| panic!("{name}: {problems:#?}"))
}

/// Ordinary calls of the demo tools.
fn demo_calls() -> Vec<(&'static str, Value)> {
    vec![
        ("echo", json!({"text": "hello"})),
        ("now", json!({})),
        ("note_put", json!({"key": "shopping", "text": "milk and bread"})),
        ("note_get", json!({"key": "shopping"})),
        ("note_count", json!({})),
        ("count_to", json!({"n": 3})),
        ("sleep", json!({"ms": 10})),
        ("paid", json!({})),
    ]
}

#[tokio::test]
async fn every_ruleset_proves_itself_and_lets_the_demo_tools_work() {
    for ruleset in RULESETS {
        let policy = load(ruleset.name);
        let pipeline = policy.proven().await.unwrap();
        assert_eq!(pipeline.policy_hash(), policy.hash());
        for (tool, arguments) in demo_calls() {
            let call =
                ExampleCall { server_id: "demo".to_owned(), ..ExampleCall::new(tool, arguments) };
            let judged = policy.judge(&call).await;
            assert_eq!(judged.decision, Decision::Allow, "{} {tool}: {judged:#?}", ruleset.name);
        }
    }
}

#[tokio::test]
async fn no_ruleset_lets_cloud_credentials_be_fetched() {
    for ruleset in RULESETS {
        let url = json!({"url": "http://169.254.169.254/latest/meta-data/iam/"});
        let judged = load(ruleset.name).judge(&ExampleCall::new("fetch", url)).await;
        assert_eq!(judged.decision, Decision::Deny, "{}", ruleset.name);
    }
}

#[test]
fn rulesets_have_hashes_of_their_own() {
    let mut hashes: Vec<String> =
        RULESETS.iter().map(|ruleset| load(ruleset.name).hash().to_owned()).collect();
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), RULESETS.len());
    assert_eq!(load("default").hash(), load("chio:default").hash());
}

#[test]
fn a_policy_that_does_not_hold_says_which_guard_fails() {
    let unproved = Unproved { guard: "tool-access".to_owned(), tool: "t".to_owned() };
    assert!(unproved.to_string().contains("guard `tool-access` allows a call of `t`"));
}
