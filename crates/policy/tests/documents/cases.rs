//! Files of cases: what they may have, and the messages for mistakes in them.

use chio_core::fidelity::BridgeFidelity;
use chio_core::governance::ProvenanceClass;
use chio_core::protocol::DiscoveryProtocol;
use chio_core::tier::SafetyTier;
use chio_policy::cases::{Cases, read};
use chio_policy::judge::Decision;
use serde_json::json;

fn cases(text: &str) -> Cases {
    read(text, "c.yaml").unwrap()
}

#[track_caller]
fn refused(text: &str, expected: &[&str]) {
    let problems = read(text, "c.yaml").expect_err("mistakes");
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems, expected);
}

#[test]
fn a_case_says_everything_that_a_guard_may_ask_about() {
    let text = r#"
policy: {hushspec: "0.1.0"}
cases:
  - name: everything
    tool: read_file
    server: files
    args: {path: /etc/passwd, deep: [1, {a: null}]}
    expect: deny
    by: forbidden-path
    says: patterns
    output: {text: x}
    protocol: a2a
    target: mcp
    fidelity: adapted
    depth: 2
    model: {model_id: m, provider: p, safety_tier: high, provenance_class: verified}
    cost: {units: 100, currency: USD}
    schema: {type: object}
    side_effects: true
    at: 2026-09-24T12:30:00Z
    agent: alice
    session: s1
    repeat: 3
"#;
    let read = cases(text);
    assert!(read.policy.is_some());
    let case = &read.cases[0];
    assert_eq!((&*case.name, case.expect, case.repeat), ("everything", Decision::Deny, 3));
    assert_eq!(case.by.as_deref(), Some("forbidden-path"));
    assert_eq!(case.says.as_deref(), Some("patterns"));
    assert_eq!(case.place.to_string(), "c.yaml:4:5");
    let call = &case.call;
    assert_eq!((&*call.tool_name, &*call.server_id), ("read_file", "files"));
    assert_eq!(call.arguments, json!({"path": "/etc/passwd", "deep": [1, {"a": null}]}));
    assert_eq!(call.output, Some(json!({"text": "x"})));
    assert_eq!(call.session.protocol, DiscoveryProtocol::A2a);
    assert_eq!(call.target, DiscoveryProtocol::Mcp);
    assert!(matches!(call.fidelity, Some(BridgeFidelity::Adapted { .. })));
    assert_eq!(call.token.delegation_chain.len(), 2);
    let model = call.model.as_ref().unwrap();
    assert_eq!((&*model.model_id, model.provider.as_deref()), ("m", Some("p")));
    assert_eq!(model.safety_tier, Some(SafetyTier::High));
    assert_eq!(model.provenance_class, ProvenanceClass::Verified);
    let cost = call.cost.as_ref().unwrap();
    assert_eq!((cost.units, &*cost.currency), (100, "USD"));
    let tool = call.tool.as_ref().unwrap();
    assert!(tool.has_side_effects && tool.input_schema.contains_key("type"));
    assert_eq!(call.now, 1_790_253_000);
    assert_eq!(call.session.id, "s1");
}

#[test]
fn what_a_case_leaves_out_is_ordinary() {
    let read = cases("cases:\n  - {tool: echo, expect: allow}\n  - {tool: now, expect: ask}\n");
    assert!(read.policy.is_none());
    let case = &read.cases[1];
    assert_eq!((&*case.name, case.expect, case.repeat), ("case 2: now", Decision::Ask, 1));
    let call = &case.call;
    assert_eq!(call.arguments, json!({}));
    assert_eq!((&*call.server_id, &*call.session.id), ("example", "session-example"));
    assert_eq!(call.session.protocol, DiscoveryProtocol::Native);
    assert!(call.token.delegation_chain.is_empty());
    assert!(call.tool.is_none() && call.model.is_none() && call.cost.is_none());
    assert_eq!(call.now, 1_790_251_200);
}

#[test]
fn every_agent_is_another_subject_and_always_the_same() {
    let text = "cases:\n  - {tool: t, expect: allow}\n  - {tool: t, expect: allow, agent: agent}\n  \
                - {tool: t, expect: allow, agent: bob}\n  - {tool: t, expect: allow, agent: bob}\n";
    let read = cases(text);
    let subjects: Vec<_> = read.cases.iter().map(|case| &case.call.token.subject).collect();
    assert_eq!(subjects[0], subjects[1]);
    assert_eq!(subjects[2], subjects[3]);
    assert_ne!(subjects[0], subjects[2]);
}

#[test]
fn a_policy_may_be_named() {
    let read = cases("policy: default\ncases: [{tool: t, expect: redact}]\n");
    assert_eq!(read.policy.unwrap().to_value(), json!("default"));
    assert_eq!(read.cases[0].expect.word(), "redact");
}

#[test]
fn times_are_written_either_way() {
    let text = "cases:\n  - {tool: t, expect: allow, at: 5}\n  - {tool: t, expect: allow, at: '1970-01-01T00:00:05Z'}\n";
    assert!(cases(text).cases.iter().all(|case| case.call.now == 5));
}

#[test]
fn mistakes_are_told_with_their_places() {
    refused("", &["c.yaml:1:1: `cases`: expected at least one case, each after `- `, found none"]);
    refused(
        "cases: []\n",
        &["c.yaml:1:8: `cases`: expected at least one case, each after `- `, found none"],
    );
    refused(
        "case:\n  - {}\n",
        &["c.yaml:1:1: the document: there is no `case`; did you mean `cases`?"],
    );
    refused(
        "cases:\n  - {}\n",
        &[
            "c.yaml:2:5: `cases[0]`: `tool` is missing",
            "c.yaml:2:5: `cases[0]`: `expect` is missing",
        ],
    );
    refused(
        "cases:\n  - {tool: t, expect: denied}\n",
        &["c.yaml:2:23: `cases[0].expect`: expected `allow`, `deny`, `ask` or `redact`, found \
           `denied`"],
    );
    refused(
        "cases:\n  - {tool: t, expect: deny, arguments: {}}\n",
        &["c.yaml:2:29: `cases[0]`: there is no `arguments`; there is `name`, `tool`, `server`, \
           `args`, `expect`, `by`, `says`, `output`, `protocol`, `target`, `fidelity`, `depth`, \
           `model`, `cost`, `schema`, `side_effects`, `at`, `agent`, `session` and `repeat`"],
    );
    refused(
        "cases:\n  - {tool: t, expect: deny, at: tomorrow}\n",
        &["c.yaml:2:33: `cases[0].at`: expected a time such as `2026-09-24T12:00:00Z`, or Unix \
           seconds, found text"],
    );
    refused(
        "cases:\n  - {tool: t, expect: deny, repeat: 0}\n",
        &["c.yaml:2:37: `cases[0].repeat`: expected a whole number from 1 to 100000, found 0"],
    );
    refused(
        "cases:\n  - {tool: t, expect: deny, cost: {units: 5}}\n",
        &["c.yaml:2:35: `cases[0].cost`: `currency` is missing"],
    );
    refused(
        "cases:\n  - {tool: t, expect: deny, model: {model_id: m, safety_tier: medium}}\n",
        &["c.yaml:2:63: `cases[0].model.safety_tier`: expected `low`, `standard`, `high` or \
           `restricted`, found `medium`"],
    );
    refused(
        "cases:\n  - {tool: t, expect: deny, schema: []}\n",
        &["c.yaml:2:37: `cases[0].schema`: expected a JSON Schema (a map), found a list"],
    );
    refused(
        "policy: 5\ncases: [{tool: t, expect: deny}]\n",
        &["c.yaml:1:9: `policy`: expected a policy, or the name of one, found a whole number"],
    );
    refused(
        "cases:\n  - {tool: t, expect: deny, protocol: openai}\n",
        &["c.yaml:2:39: `cases[0].protocol`: expected `native`, `http`, `mcp`, `a2a`, `acp` or \
           `open_ai`, found `openai`; did you mean `open_ai`?"],
    );
}
