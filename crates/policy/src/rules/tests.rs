//! Tests of rules as a whole.

mod equality;
mod problems;
mod recipes;

use std::sync::Arc;

use cedar_policy::{Request, Schema};
use chio_core::canonical;
use chio_core::governance::{Autonomy, GovernedTransactionIntent, ModelMetadata, ProvenanceClass};
use chio_core::money::MonetaryAmount;
use chio_core::principal::Principal;
use chio_core::protocol::DiscoveryProtocol;
use chio_core::tier::{AutonomyTier, SafetyTier};
use chio_kernel::{GuardMemo, GuardOutcome, Verdict, Work};
use chio_yaml::{Place, Problems};
use serde_json::json;

use super::known::Known;
use super::needs::Needs;
use super::slice::Slices;
use super::{Otherwise, Rules, SCHEMA, Source, context};
use crate::example::ExampleCall;

fn read(text: &str, otherwise: Otherwise) -> Result<Rules, Vec<String>> {
    let start = Place { file: "rules.cedar".into(), line: 1, column: 1 };
    let source = Source { text, start, file: Some("rules.cedar") };
    let problems = Problems::default();
    let rules = Rules::read(&[source], otherwise, &problems);
    let problems = problems.into_sorted();
    assert_eq!(rules.is_none(), !problems.is_empty(), "{problems:?}");
    rules.ok_or_else(|| problems.iter().map(ToString::to_string).collect())
}

fn ask(rules: &Rules, call: &ExampleCall) -> GuardOutcome {
    rules.ask(&call.input(&GuardMemo::default(), &Work::default()))
}

fn verdict(rules: &Rules, call: &ExampleCall) -> Verdict {
    ask(rules, call).verdict
}

fn call(server: &str, tool: &str) -> ExampleCall {
    let mut call = ExampleCall::new(tool, json!({}));
    server.clone_into(&mut call.server_id);
    call
}

#[test]
fn names_never_say_more_than_themselves() {
    let text = r#"forbid(principal, action, resource == Tool::"files/read");
        forbid(principal, action, resource in Server::"secret");
        forbid(principal, action, resource == Tool::"a%2Fb/c");"#;
    let rules = read(text, Otherwise::Allow).unwrap();
    for (server, tool) in [("files", "read"), ("secret", "x"), ("secret", "\"); //"), ("a/b", "c")]
    {
        assert_ne!(verdict(&rules, &call(server, tool)), Verdict::Allow, "{server} {tool}");
    }
    for (server, tool) in [
        ("files", "read\""),
        ("files/read", ""),
        ("files", "READ"),
        ("files ", "read"),
        ("", "files/read"),
        ("Server::\"secret\"", "x"),
        ("x\" || true || \"", "x"),
        ("a", "b/c"),
        ("a%2Fb", "c"),
        ("secret\0", "x"),
    ] {
        assert_eq!(verdict(&rules, &call(server, tool)), Verdict::Allow, "{server} {tool}");
    }
}

#[test]
fn the_first_rule_in_the_text_gives_the_reason() {
    let text = r#"@reason("first") forbid(principal, action, resource);
        @id("second") forbid(principal, action, resource);
        @id("third") @approval forbid(principal, action, resource);"#;
    let rules = read(text, Otherwise::Allow).unwrap();
    for _ in 0..20 {
        let expected = "rule `rule 1 (rules.cedar line 1)`: first";
        assert_eq!(verdict(&rules, &call("s", "t")), Verdict::Deny(expected.to_owned()));
    }
}

#[test]
fn an_approval_needs_a_permit_where_permits_are_needed() {
    let text = r#"@id("ask") @approval @reason("look") forbid(principal, action, resource);
        @id("yes") permit(principal, action, resource == Tool::"s/t");"#;
    let rules = read(text, Otherwise::Deny).unwrap();
    let asked = ask(&rules, &call("s", "t"));
    assert_eq!(asked.verdict, Verdict::AwaitApproval("rule `ask`: look".to_owned()));
    assert_eq!(asked.evidence.as_deref(), Some("rule `yes` permits it"));
    let denied = Verdict::Deny("no rule permits it, and `default` is `deny`".to_owned());
    assert_eq!(verdict(&rules, &call("s", "other")), denied);
}

#[test]
fn a_rule_that_fails_denies_whatever_it_would_say() {
    const FAILS: &str = "context.argumentBytes + 9223372036854775807 > 0";
    for head in ["forbid", "@approval forbid", "permit"] {
        let text = format!(
            "permit(principal, action, resource);
            @id(\"bad\") {head}(principal, action, resource) when {{ {FAILS} }};"
        );
        let rules = read(&text, Otherwise::Deny).unwrap();
        let denied = Verdict::Deny("rule `bad` failed on this call, so it is denied".to_owned());
        assert_eq!(verdict(&rules, &call("s", "t")), denied, "{head}");
    }
}

#[test]
fn a_call_that_no_rule_names_is_not_looked_at() {
    // The arguments cannot be told apart, which only a rule that looks at them minds.
    let mut odd = ExampleCall::new("read_file", json!({"path": 7}));
    odd.server_id = "files".to_owned();
    let looks = r#"forbid(principal, action, resource == Tool::"files/read_file")
        when { context.paths.contains("/etc") };"#;
    let does_not = r#"forbid(principal, action, resource == Tool::"files/read_file")
        when { context.time.hour == 3 };"#;
    assert_ne!(verdict(&read(looks, Otherwise::Allow).unwrap(), &odd), Verdict::Allow);
    assert_eq!(verdict(&read(does_not, Otherwise::Allow).unwrap(), &odd), Verdict::Allow);
    odd.server_id = "other".to_owned();
    assert_eq!(verdict(&read(looks, Otherwise::Allow).unwrap(), &odd), Verdict::Allow);
}

/// Calls with and without everything that a call may have.
fn odd_calls() -> Vec<ExampleCall> {
    let mut full = ExampleCall::new("write_file", json!({"path": "/a/b", "content": "x"}));
    let tenant = Some("tenant".to_owned());
    full.session.principal = Arc::new(Principal { tenant, ..Principal::anonymous() });
    full.session.protocol = DiscoveryProtocol::A2a;
    full.fidelity = None;
    full.cost = Some(MonetaryAmount::new(u64::MAX, "EUR"));
    full.model = Some(ModelMetadata {
        model_id: "m".to_owned(),
        safety_tier: Some(SafetyTier::High),
        provider: Some("p".to_owned()),
        provenance_class: ProvenanceClass::Verified,
    });
    let mut intent = GovernedTransactionIntent::new("i", "s", "t", "why");
    intent.max_amount = Some(MonetaryAmount::new(1, "EUR"));
    let tier = AutonomyTier::Delegated;
    intent.autonomy = Some(Autonomy { tier, delegation_bond_id: None });
    full.intent = Some(intent);
    let fetch = ExampleCall::new("fetch", json!({"url": "https://a.example.com/x"}));
    let shell = ExampleCall::new("bash", json!({"command": "ls -l"}));
    vec![ExampleCall::new("t", json!(null)), full.at_depth(3), fetch, shell]
}

#[test]
fn every_context_fits_the_schema() {
    let (schema, warnings) = Schema::from_cedarschema_str(SCHEMA).unwrap();
    assert_eq!(warnings.count(), 0);
    let known = Known::new().unwrap();
    for call in odd_calls() {
        let memo = GuardMemo::default();
        let context =
            context::of(&call.input(&memo, &Work::default()), Needs::ALL, context::Turn::default())
                .unwrap();
        let tool = known.tool(&call.server_id, &call.tool_name, &Slices::default()).unwrap();
        let (agent, action) = (known.agent("k"), known.action());
        let request = Request::new(agent, action, tool.uid.clone(), context, Some(&schema));
        request.unwrap_or_else(|error| panic!("{}: {error}", call.tool_name));
    }
}

#[test]
fn what_a_call_does_is_in_the_context() {
    let holds = |call: &ExampleCall, condition: &str| {
        let text = format!("forbid(principal, action, resource) when {{ {condition} }};");
        let rules =
            read(&text, Otherwise::Allow).unwrap_or_else(|it| panic!("{condition}: {it:?}"));
        verdict(&rules, call) != Verdict::Allow
    };
    let calls = odd_calls();
    for (number, condition) in [
        (0, r#"context.action == "other" && !context.writes && context.paths.isEmpty()"#),
        (0, "context.argumentBytes == 4 && context.tool.sideEffects"),
        (0, "context.capability.root && context.capability.depth == 0"),
        (0, "!(context has cost) && !(context has model) && !(context has intent)"),
        (0, "!(context has path) && !(context has host) && !(context has command)"),
        (0, r#"context.time.weekday == "thursday" && context.time.hour == 12"#),
        (0, r#"context.now == datetime("2026-09-24T12:00:00Z")"#),
        (0, r#"context.now.toTime() > duration("11h59m")"#),
        (0, r#"context.session.id == "session-example" && !(context has session.tenant)"#),
        (0, "!context.chio.bridge.crosses"),
        (1, r#"context.action == "file_write" && context.writes"#),
        (1, r#"context has path && context.path like "/a/*""#),
        (1, r#"context.paths == ["/a/b"] && context.folders.containsAll(["/", "/a", "/a/b"])"#),
        (1, "context has cost && context.cost.units == 9223372036854775807"),
        (1, r#"context has model.tier && context.model.tier == "high""#),
        (1, r#"context has model && context.model.provenance == "verified""#),
        (1, r#"context has intent.maxAmount && context.intent.maxAmount.currency == "EUR""#),
        (1, r#"context has intent.autonomy && context.intent.autonomy == "delegated""#),
        (1, r#"context.chio.bridge.sourceProtocol == "a2a" && context.chio.bridge.crosses"#),
        (1, r#"context.chio.bridge.targetProtocol == "native""#),
        (1, r#"context.chio.bridge.fidelity == "unknown""#),
        (1, r#"context has session.tenant && context.session.tenant == "tenant""#),
        (1, "!context.capability.root && context.capability.depth == 3"),
        (2, r#"context has host && context.host == "a.example.com""#),
        (
            2,
            r#"context.domains.contains("example.com") && context.hosts.contains("a.example.com")"#,
        ),
        (3, r#"context has command && context.command like "ls*""#),
        (3, r#"context.action == "shell" && context.tool.name == "bash""#),
    ] {
        assert!(holds(&calls[number], condition), "{condition}");
        let opposite = format!("!({condition})");
        assert!(!holds(&calls[number], &opposite), "{opposite}");
    }
}

/// The engine switches `serde_json/preserve_order` on for the whole build.
#[test]
fn canonical_json_is_sorted_whatever_the_order_of_members() {
    let one = json!({"b": 1, "a": {"z": 1, "y": [{"d": 1, "c": 2}]}, "A": null});
    let other = json!({"A": null, "a": {"y": [{"c": 2, "d": 1}], "z": 1}, "b": 1});
    let expected = r#"{"A":null,"a":{"y":[{"c":2,"d":1}],"z":1},"b":1}"#;
    for value in [one, other] {
        assert_eq!(canonical::to_string(&value).unwrap(), expected);
    }
    let mut late = serde_json::Map::new();
    for key in ["zz", "é", "10", "9", "a"] {
        late.insert(key.to_owned(), json!(0));
    }
    let written = canonical::to_string(&late).unwrap();
    assert_eq!(written, r#"{"10":0,"9":0,"a":0,"zz":0,"é":0}"#);
    // Else this test would prove nothing.
    assert_eq!(late.keys().next().map(String::as_str), Some("zz"));
}
