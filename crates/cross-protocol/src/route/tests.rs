//! Every route there can be against a table, the published hashes, and what is written.

use std::collections::BTreeMap;

use chio_core::canonical;
use chio_core::governance::GovernedTransactionIntent;
use serde_json::{Value, json};

use super::{
    RouteAvailabilityStatus, RoutePlanningOutcome, RouteSelectionEvidence,
    plan_authoritative_route, route_selection_metadata,
};
use crate::executors::{
    A2aTargetExecutor, AcpTargetExecutor, HttpTargetExecutor, McpTargetExecutor,
    OpenAiTargetExecutor,
};
use crate::{DiscoveryProtocol, TargetProtocolRegistry};

/// What is known of a protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Unlisted,
    Up,
    Down,
    Unregistered,
}

impl State {
    const ALL: [Self; 4] = [Self::Unlisted, Self::Up, Self::Down, Self::Unregistered];
}

/// One route to plan.
#[derive(Debug, Clone)]
struct Case {
    requested: DiscoveryProtocol,
    preferred: Option<DiscoveryProtocol>,
    fallback: bool,
    native_only: bool,
    states: BTreeMap<DiscoveryProtocol, State>,
}

impl Case {
    fn state(&self, protocol: DiscoveryProtocol) -> State {
        self.states.get(&protocol).copied().unwrap_or(State::Unregistered)
    }

    fn is_open(&self, protocol: DiscoveryProtocol) -> bool {
        match self.state(protocol) {
            State::Unlisted | State::Up => true,
            State::Down => false,
            State::Unregistered => protocol == DiscoveryProtocol::Native,
        }
    }

    fn plan(&self) -> RoutePlanningOutcome {
        let mut registry = TargetProtocolRegistry::new(DiscoveryProtocol::Native);
        let mut availability = BTreeMap::new();
        for (protocol, state) in &self.states {
            if *state != State::Unregistered {
                registry = with(registry, *protocol);
            }
            match state {
                State::Unlisted => None,
                // What the map says of a protocol without an executor does not count.
                State::Up | State::Unregistered => {
                    availability.insert(*protocol, RouteAvailabilityStatus::available())
                }
                State::Down => {
                    availability.insert(*protocol, RouteAvailabilityStatus::unavailable("down"))
                }
            };
        }
        let intent = intent(&json!({
            "preferredTargetProtocol": self.preferred,
            "allowNativeFallback": self.fallback,
            "disallowProjectedProtocols": self.native_only,
        }));
        let source = DiscoveryProtocol::A2a;
        plan_authoritative_route(
            "req-1",
            source,
            self.requested,
            Some(&intent),
            &registry,
            &availability,
        )
        .unwrap()
    }
}

fn with(registry: TargetProtocolRegistry, protocol: DiscoveryProtocol) -> TargetProtocolRegistry {
    match protocol {
        DiscoveryProtocol::Native => registry,
        DiscoveryProtocol::Http => registry.with_executor(&HttpTargetExecutor),
        DiscoveryProtocol::Mcp => registry.with_executor(&McpTargetExecutor),
        DiscoveryProtocol::A2a => registry.with_executor(&A2aTargetExecutor),
        DiscoveryProtocol::Acp => registry.with_executor(&AcpTargetExecutor),
        DiscoveryProtocol::OpenAi => registry.with_executor(&OpenAiTargetExecutor),
    }
}

fn intent(hints: &Value) -> GovernedTransactionIntent {
    let intent = GovernedTransactionIntent::new("intent-1", "srv", "tool", "because");
    GovernedTransactionIntent { context: Some(json!({"chioControlPlane": hints})), ..intent }
}

/// Every combination of what is asked and what is known of the protocols it is about.
fn every_case() -> Vec<Case> {
    let mut cases = Vec::new();
    let preferences = || DiscoveryProtocol::ALL.into_iter().map(Some).chain([None]);
    for requested in DiscoveryProtocol::ALL {
        for preferred in preferences() {
            let mut about = vec![requested, DiscoveryProtocol::Native];
            about.extend(preferred);
            about.sort();
            about.dedup();
            for bits in 0..4_usize << (2 * about.len()) {
                let state = |place: usize| State::ALL[(bits >> (2 + 2 * place)) & 3];
                let states = (0..).zip(&about).map(|(place, protocol)| (*protocol, state(place)));
                cases.push(Case {
                    requested,
                    preferred,
                    fallback: bits & 1 != 0,
                    native_only: bits & 2 != 0,
                    states: states.collect(),
                });
            }
        }
    }
    cases
}

/// What must come of a route.
///
/// | column | | |
/// |---|---|---|
/// | 1 | only native will do | `0` `1` |
/// | 2 | native will do where the requested one is unavailable | `0` `1` |
/// | 3 | requested | `n`ative, a `p`rojected protocol |
/// | 4 | preferred | `-` nothing, `=` the requested one, `n`ative, `o`ther |
/// | 5–7 | requested, preferred, native are open | `0` `1` |
///
/// `.` is either. Then the decision, the target (`r`equested, `p`referred, `n`ative, `-` none),
/// and whether a reason is given.
const ROUTES: &str = "
    1.n.1..  select     r  silent
    1.n.0..  deny       -  reason
    1.p...1  attenuate  n  reason
    1.p...0  deny       -  reason

    0..-1..  select     r  silent
    0.n-0..  deny       -  reason
    00p-0..  deny       -  reason
    01p-0.0  deny       -  reason
    01p-0.1  attenuate  n  reason

    0..=1..  select     r  silent
    0.n=0..  deny       -  reason
    00p=0..  deny       -  reason
    01p=0.0  deny       -  reason
    01p=0.1  attenuate  n  reason

    0.pn.1.  attenuate  p  reason
    0.pn10.  select     r  reason
    0.pn00.  deny       -  reason

    0..o.1.  attenuate  p  reason
    0..o10.  select     r  reason
    0.no00.  deny       -  reason
    00po00.  deny       -  reason
    01po000  deny       -  reason
    01po001  attenuate  n  reason
";

/// Which candidates are listed: the first four columns of [`ROUTES`], and the targets.
const CANDIDATES: &str = "
    ..n-  r
    ..n=  r
    ..no  rp
    00p-  r
    01p-  rn
    1.p-  rn
    00p=  r
    01p=  rn
    1.p=  rn
    ..pn  rp
    00po  rp
    01po  rpn
    1.po  rpn
";

/// The one row of a table whose pattern fits, without the pattern.
fn row<'t>(table: &'t str, key: &str) -> Vec<&'t str> {
    let fits = |pattern: &str| {
        pattern.len() == key.len()
            && pattern.chars().zip(key.chars()).all(|(want, have)| want == '.' || want == have)
    };
    let lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut rows: Vec<_> = lines.filter(|row| row.first().is_some_and(|it| fits(it))).collect();
    assert_eq!(rows.len(), 1, "rows for {key}: {rows:?}");
    rows.remove(0).split_off(1)
}

/// The columns of [`ROUTES`] for a case.
fn key(case: &Case) -> String {
    use DiscoveryProtocol::Native;
    let bit = |flag| if flag { '1' } else { '0' };
    let preferred = match case.preferred {
        None => '-',
        Some(preferred) if preferred == case.requested => '=',
        Some(Native) => 'n',
        Some(_) => 'o',
    };
    [
        bit(case.native_only),
        bit(case.fallback),
        if case.requested == Native { 'n' } else { 'p' },
        preferred,
        bit(case.is_open(case.requested)),
        bit(case.preferred.is_some_and(|preferred| case.is_open(preferred))),
        bit(case.is_open(Native)),
    ]
    .iter()
    .collect()
}

/// The protocol that a letter of the tables stands for.
fn named(case: &Case, letter: char) -> Option<DiscoveryProtocol> {
    match letter {
        'r' => Some(case.requested),
        'p' => case.preferred,
        'n' => Some(DiscoveryProtocol::Native),
        _ => None,
    }
}

/// The chain from A2A, as it is published.
fn chain(target: DiscoveryProtocol) -> Value {
    match target.name() {
        name @ ("mcp" | "open_ai") => json!(["a2a", name, "native"]),
        name => json!(["a2a", name]),
    }
}

/// The candidate that must be listed for a target.
fn candidate(case: &Case, target: DiscoveryProtocol) -> Value {
    let mut expected = json!({
        "routeId": format!("{target}-route"), "targetProtocol": target,
        "selectedProtocols": chain(target), "available": case.is_open(target),
    });
    if !case.is_open(target) {
        expected["availabilityReason"] = match case.state(target) {
            State::Down => json!("down"),
            _ => json!(format!("no executor is registered for {target}")),
        };
    }
    expected
}

/// The evidence that the tables ask for; its reason, which is in our own words, and its id are
/// taken from what was found.
fn expected(case: &Case, found: &Value) -> Value {
    let key = key(case);
    let row = row(ROUTES, &key);
    let target = row[1].chars().next().and_then(|letter| named(case, letter));
    let asked: String = key.chars().take(4).collect();
    let listed = self::row(CANDIDATES, &asked)[0];
    let listed = listed.chars().filter_map(|letter| named(case, letter));
    let mut evidence = json!({
        "decision": row[0], "sourceProtocol": "a2a", "requestedTargetProtocol": case.requested,
        "selectedProtocols": chain(target.unwrap_or(case.requested)),
        "governedIntentId": "intent-1",
        "candidates": listed.map(|target| candidate(case, target)).collect::<Vec<_>>(),
    });
    if let Some(target) = target {
        evidence["selectedTargetProtocol"] = json!(target);
        evidence["selectedRouteId"] = json!(format!("{target}-route"));
    }
    let mut seed = json!({"requestId": "req-1"});
    for name in [
        "sourceProtocol",
        "requestedTargetProtocol",
        "selectedRouteId",
        "selectedTargetProtocol",
        "selectedProtocols",
        "decision",
        "governedIntentId",
    ] {
        seed[name] = evidence[name].clone();
    }
    evidence["routeSelectionId"] = json!(canonical::hash(&seed).unwrap());
    if row[2] == "reason" {
        assert!(found["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{case:?}");
        evidence["reason"] = found["reason"].clone();
    }
    evidence
}

// covers: CROSS-008, CROSS-009, CROSS-015, CROSS-029, CROSS-032, CROSS-044, CROSS-045
// covers: CROSS-057, CROSS-058
#[test]
fn every_route_is_the_one_in_the_table() {
    for case in every_case() {
        let plan = case.plan();
        let found = serde_json::to_value(&plan.evidence).unwrap();
        let expected = expected(&case, &found);
        assert_eq!(found, expected, "{case:?}");
        assert_eq!(json!(plan.target), found["selectedTargetProtocol"], "{case:?}");
    }
}

// covers: CROSS-028
#[test]
fn no_route_takes_an_unavailable_target() {
    for case in every_case() {
        let plan = case.plan();
        assert!(plan.target.is_none_or(|target| case.is_open(target)), "{case:?}");
        let native = plan.target.is_none_or(|target| target == DiscoveryProtocol::Native);
        assert!(!case.native_only || native, "{case:?}");
    }
}

#[test]
fn each_outcome_has_its_own_words() {
    let mut reasons: Vec<_> =
        every_case().iter().filter_map(|it| it.plan().evidence.reason).collect();
    reasons.sort();
    reasons.dedup();
    assert_eq!(reasons.len(), 7, "{reasons:?}");
}

fn plan(
    source: DiscoveryProtocol,
    requested: DiscoveryProtocol,
    intent: Option<&GovernedTransactionIntent>,
    availability: &BTreeMap<DiscoveryProtocol, RouteAvailabilityStatus>,
) -> RoutePlanningOutcome {
    let registry = TargetProtocolRegistry::complete();
    plan_authoritative_route("req-1", source, requested, intent, &registry, availability).unwrap()
}

// covers: CROSS-044
#[test]
fn selection_ids_are_the_published_ones() {
    use DiscoveryProtocol::{A2a, Acp, Mcp, Native, OpenAi};
    let down = |protocol| BTreeMap::from([(protocol, RouteAvailabilityStatus::unavailable("x"))]);
    let fallback = intent(&json!({"allow_native_fallback": true}));
    for (plan, id) in [
        (
            plan(A2a, Native, None, &BTreeMap::new()),
            "62f4b6e81b37c344942914ab28e17f691da3d0c01c25d8c7338795b5c18fa3a1",
        ),
        (
            plan(A2a, Mcp, None, &down(Mcp)),
            "130308e677d482d2b04d8c8feca04ea9ff13edc0bd9730ef6ca705933373cca2",
        ),
        (
            plan(Acp, OpenAi, Some(&fallback), &down(OpenAi)),
            "88ef9ffc89eb18887864c858c4b168d1d35bfef1f93c7b51a7ea690768519e23",
        ),
    ] {
        assert_eq!(plan.evidence.route_selection_id, id);
    }
}

// covers: CROSS-015, CROSS-032, CROSS-044, CROSS-045
#[test]
fn evidence_has_the_published_members_and_leaves_out_what_is_absent() {
    use DiscoveryProtocol::{A2a, Acp, Mcp, OpenAi};
    let maintenance = || RouteAvailabilityStatus::unavailable("maintenance");
    let fallback = intent(&json!({"allowNativeFallback": true}));
    let down = BTreeMap::from([(OpenAi, maintenance()), (Mcp, maintenance())]);
    let found = json!(plan(Acp, OpenAi, Some(&fallback), &down).evidence);
    let expected = json!({
        "routeSelectionId": "88ef9ffc89eb18887864c858c4b168d1d35bfef1f93c7b51a7ea690768519e23",
        "decision": "attenuate",
        "sourceProtocol": "acp",
        "requestedTargetProtocol": "open_ai",
        "selectedRouteId": "native-route",
        "selectedTargetProtocol": "native",
        "selectedProtocols": ["acp", "native"],
        "reason": "the requested target is unavailable, native is taken",
        "governedIntentId": "intent-1",
        "candidates": [
            {"routeId": "open_ai-route", "targetProtocol": "open_ai", "available": false,
             "selectedProtocols": ["acp", "open_ai", "native"],
             "availabilityReason": "maintenance"},
            {"routeId": "native-route", "targetProtocol": "native", "available": true,
             "selectedProtocols": ["acp", "native"]},
        ],
    });
    assert_eq!(found, expected);

    let found = json!(plan(A2a, Mcp, None, &down).evidence);
    let expected = json!({
        "routeSelectionId": "130308e677d482d2b04d8c8feca04ea9ff13edc0bd9730ef6ca705933373cca2",
        "decision": "deny",
        "sourceProtocol": "a2a",
        "requestedTargetProtocol": "mcp",
        "selectedProtocols": ["a2a", "mcp", "native"],
        "reason": "the requested target is unavailable and no native fallback is allowed",
        "candidates": [
            {"routeId": "mcp-route", "targetProtocol": "mcp", "available": false,
             "selectedProtocols": ["a2a", "mcp", "native"], "availabilityReason": "maintenance"},
        ],
    });
    assert_eq!(found, expected);
}

// covers: CROSS-031
#[test]
fn evidence_is_written_in_canonical_order_and_is_metadata_of_the_receipt() {
    for case in every_case().into_iter().step_by(7) {
        let evidence = case.plan().evidence;
        let written = serde_json::to_string(&evidence).unwrap();
        assert_eq!(written, canonical::to_string(&evidence).unwrap());
        let read = serde_json::from_str::<RouteSelectionEvidence>(&written).unwrap();
        assert_eq!(read, evidence);
        let metadata = route_selection_metadata(&evidence).unwrap();
        assert_eq!(Value::Object(metadata), json!({"route_selection": evidence}));
    }
}

#[test]
fn hints_that_cannot_be_read_give_no_plan() {
    let error = |context: Value| {
        let mut intent = intent(&json!({}));
        intent.context = Some(context);
        let registry = TargetProtocolRegistry::complete();
        let (source, requested) = (DiscoveryProtocol::A2a, DiscoveryProtocol::Native);
        let none = BTreeMap::new();
        plan_authoritative_route("req-1", source, requested, Some(&intent), &registry, &none)
            .unwrap_err()
            .to_string()
    };
    let unknown = error(json!({"chioControlPlane": {"preferredTargetProtocol": "grpc"}}));
    assert!(unknown.contains("preferred target") && unknown.contains("`grpc`"), "{unknown}");
    let shapeless = error(json!({"chioControlPlane": 1}));
    assert!(shapeless.contains("chioControlPlane") && shapeless.contains("an object"));
}
