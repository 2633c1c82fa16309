//! Asking slices is asking everything.

use std::collections::HashSet;

use cedar_policy::{Authorizer, Decision, Entities, Policy, PolicySet, Request};
use chio_core::crypto::Keypair;
use chio_core::protocol::DiscoveryProtocol;
use chio_kernel::{GuardMemo, Verdict, Work};
use proptest::prelude::{Just, Strategy, any, prop, prop_assert_eq, prop_oneof, proptest};
use serde_json::json;

use super::{Otherwise, read, verdict};
use crate::example::ExampleCall;
use crate::rules::context;
use crate::rules::known::Known;
use crate::rules::needs::Needs;
use crate::rules::slice::Slices;

fn key(number: u8) -> String {
    Keypair::from_seed(&[number; 32]).public_key().to_string()
}

fn principal() -> impl Strategy<Value = String> {
    let named = (0_u8..3, 0_usize..3).prop_map(|(number, form)| {
        let head = ["principal ==", "principal in", "principal is Agent in"][form];
        format!("{head} Agent::\"{}\"", key(number))
    });
    prop_oneof![Just("principal".to_owned()), Just("principal is Agent".to_owned()), named]
}

fn resource() -> impl Strategy<Value = String> {
    let tool = (0_u8..2, 0_u8..2, 0_usize..2).prop_map(|(server, tool, form)| {
        let head = ["resource ==", "resource in"][form];
        format!("{head} Tool::\"s{server}/t{tool}\"")
    });
    let server = (0_u8..2, 0_usize..2).prop_map(|(server, form)| {
        let head = ["resource in", "resource is Tool in"][form];
        format!("{head} Server::\"s{server}\"")
    });
    prop_oneof![
        Just("resource".to_owned()),
        Just("resource is Tool".to_owned()),
        tool.clone(),
        tool,
        server
    ]
}

const ACTIONS: &[&str] = &["action", "action == Action::\"call\"", "action in [Action::\"call\"]"];

const CONDITIONS: &[&str] = &[
    "context.writes",
    "context.capability.root",
    "context.capability.depth > 1",
    "context.chio.bridge.crosses",
    "context.time.hour < 12",
    "context.argumentBytes > 20",
    "context has path && context.path like \"/a/*\"",
    "context.folders.contains(\"/a\") && context.writes",
    "context has cost && context.cost.units > 10",
    "resource in Server::\"s1\"",
    "principal == Agent::\"AGENT\"",
    "context.tool.name == \"t1\" && context.tool.server == \"s0\"",
    // These fail on some calls.
    "context.argumentBytes + 9223372036854775790 > 0",
    "context.capability.root && context.time.unix * context.time.unix > context.time.unix * 9999999999",
    "context == context && context.time.hour > 3",
];

/// A rule, as text.
fn rule(otherwise: Otherwise) -> impl Strategy<Value = String> {
    let effects = match otherwise {
        Otherwise::Allow => vec!["forbid", "forbid", "@approval forbid"],
        Otherwise::Deny => vec!["permit", "permit", "forbid", "@approval forbid"],
    };
    let condition =
        (0..CONDITIONS.len(), any::<bool>(), 0_u8..3).prop_map(|(place, when, agent)| {
            let word = if when { "when" } else { "unless" };
            format!("{word} {{ {} }}", CONDITIONS[place].replace("AGENT", &key(agent)))
        });
    let conditions = prop::collection::vec(condition, 0..3);
    let action = prop::sample::select(ACTIONS);
    (prop::sample::select(effects), principal(), action, resource(), conditions).prop_map(
        |(effect, principal, action, resource, conditions)| {
            format!("{effect}({principal}, {action}, {resource}) {};\n", conditions.join(" "))
        },
    )
}

fn call() -> impl Strategy<Value = ExampleCall> {
    let arguments = prop::sample::select(vec![
        json!({"path": "/b", "content": ""}),
        json!({"path": "/a/b", "content": ""}),
        json!({"path": "/etc/passwd", "content": "some text of a certain length"}),
    ]);
    let names = (0_u8..3, 0_u8..3, 0_u8..4);
    (names, arguments, 0_usize..3, 0_u64..48, any::<bool>(), 0_u64..20).prop_map(
        |((server, tool, agent), arguments, depth, hour, crosses, cost)| {
            let tool = if tool == 2 { "write_file".to_owned() } else { format!("t{tool}") };
            let mut call = ExampleCall::new(&tool, arguments);
            call.server_id = format!("s{server}");
            call.token.subject = Keypair::from_seed(&[agent; 32]).public_key().clone();
            call.now = 1_790_208_000 + hour * 3600;
            if crosses {
                call.target = DiscoveryProtocol::Mcp;
            }
            call.cost = (cost > 5).then(|| chio_core::money::MonetaryAmount::new(cost, "EUR"));
            call.at_depth(depth)
        },
    )
}

/// What the engine says of a call with all rules at once: whether it permits, whether a rule failed.
fn whole(rules: &[Policy], otherwise: Otherwise, call: &ExampleCall) -> (bool, bool) {
    let mut set = PolicySet::from_policies(rules.iter().cloned()).unwrap();
    if otherwise == Otherwise::Allow {
        set.add(Policy::parse(None, "permit(principal, action, resource);").unwrap()).unwrap();
    }
    let memo = GuardMemo::default();
    let context =
        context::of(&call.input(&memo, &Work::default()), Needs::ALL, context::Turn::default())
            .unwrap();
    let known = Known::new().unwrap();
    let tool = known.tool(&call.server_id, &call.tool_name, &Slices::default()).unwrap();
    let agent = known.agent(&call.token.subject.to_string());
    let request = Request::new(agent, known.action(), tool.uid.clone(), context, None).unwrap();
    let entities: &Entities = &tool.entities;
    let response = Authorizer::new().is_authorized(&request, &set, entities);
    let failed = response.diagnostics().errors().next().is_some();
    (response.decision() == Decision::Allow, failed)
}

/// What has to come of a call: anything that fails denies, and a call that only rules with
/// `@approval` forbid is asked about.
fn expected(text: &str, otherwise: Otherwise, call: &ExampleCall) -> &'static str {
    let set: PolicySet = text.parse().unwrap();
    let rules: Vec<Policy> = set.policies().cloned().enumerate().map(renamed).collect();
    let hard: Vec<Policy> =
        rules.iter().filter(|rule| rule.annotation("approval").is_none()).cloned().collect();
    match (whole(&rules, otherwise, call), whole(&hard, otherwise, call)) {
        ((_, true), _) => "deny",
        ((true, false), _) => "allow",
        ((false, false), (true, _)) => "ask",
        ((false, false), (false, _)) => "deny",
    }
}

fn renamed((number, policy): (usize, Policy)) -> Policy {
    policy.new_id(cedar_policy::PolicyId::new(format!("rule-{number}")))
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "allow",
        Verdict::Deny(_) | Verdict::WrongArguments(_) => "deny",
        Verdict::AwaitApproval(_) => "ask",
    }
}

fn policy() -> impl Strategy<Value = (Otherwise, String)> {
    prop_oneof![Just(Otherwise::Allow), Just(Otherwise::Deny)].prop_flat_map(|otherwise| {
        let rules = prop::collection::vec(rule(otherwise), 1..12);
        rules.prop_map(move |rules| (otherwise, rules.concat()))
    })
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(400))]

    #[test]
    fn slices_say_together_what_all_rules_say_at_once(
        (otherwise, text) in policy(),
        calls in prop::collection::vec(call(), 1..6),
    ) {
        let rules = read(&text, otherwise).unwrap();
        for call in &calls {
            let found = verdict(&rules, call);
            prop_assert_eq!(word(&found), expected(&text, otherwise, call), "{}\n{:?}", text, found);
        }
    }
}

#[test]
fn the_generated_calls_come_out_in_every_way() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut seen = HashSet::new();
    for _ in 0..300 {
        let (otherwise, text) = policy().new_tree(&mut runner).unwrap().current();
        let call = call().new_tree(&mut runner).unwrap().current();
        let rules = read(&text, otherwise).unwrap();
        let said = verdict(&rules, &call);
        let failed = matches!(&said, Verdict::Deny(why) if why.contains("failed"));
        seen.insert((otherwise == Otherwise::Deny, word(&said), failed));
    }
    for expected in [
        (false, "allow", false),
        (false, "deny", false),
        (false, "deny", true),
        (false, "ask", false),
        (true, "allow", false),
        (true, "deny", false),
        (true, "deny", true),
        (true, "ask", false),
    ] {
        assert!(seen.contains(&expected), "{expected:?} is not in {seen:?}");
    }
}
