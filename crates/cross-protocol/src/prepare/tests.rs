//! What becomes of a request before the kernel sees it.

use serde_json::json;

use super::*;
use crate::request::Parent;
use crate::request::tests::{grant, request};

struct Setting {
    registry: TargetProtocolRegistry,
    availability: BTreeMap<DiscoveryProtocol, RouteAvailabilityStatus>,
}

fn setting() -> Setting {
    Setting { registry: TargetProtocolRegistry::complete(), availability: BTreeMap::new() }
}

impl Setting {
    fn pass(&self, request: OrchestratedRequest, requested: DiscoveryProtocol) -> PreparedCall {
        self.pass_to(request, requested, DiscoveryProtocol::Native)
    }

    /// For a tool whose server speaks this.
    fn pass_to(
        &self,
        request: OrchestratedRequest,
        requested: DiscoveryProtocol,
        spoken: DiscoveryProtocol,
    ) -> PreparedCall {
        let route = RouteContext {
            request_id: "req-1".to_owned(),
            source: DiscoveryProtocol::Native,
            requested,
            spoken,
            now: 150,
            continued: None,
            fidelity: None,
            registry: &self.registry,
            availability: &self.availability,
        };
        PreparedCall::new(request, route).unwrap()
    }
}

fn member(prepared: &PreparedCall, name: &str) -> Value {
    let found = prepared.call.evidence.iter().find(|(member, _)| *member == name);
    found.map(|(_, written)| written.to_value()).unwrap_or_default()
}

// covers: CROSS-015, CROSS-044, CROSS-046
#[test]
fn a_call_is_narrowed_planned_and_traced() {
    let prepared = setting().pass(request(), DiscoveryProtocol::Mcp);
    let call = &prepared.call;
    assert_eq!(call.scope.as_ref().unwrap().grants, [grant("srv", "read")]);
    assert_eq!(
        (call.agent.clone(), call.target),
        (call.token.subject.clone(), prepared.call.target)
    );
    assert_eq!(call.refusal, None);
    assert_eq!(call.origin_request_id.as_deref(), Some("r-1"));
    let chio = member(&prepared, "chio");
    let bridge = &chio["bridge"];
    assert_eq!(bridge["bridgeId"], "chio-bridge-native-mcp-r-1");
    assert_eq!(hops(&chio), [("native", "r-1"), ("native", "req-1")], "nothing spoke MCP");
    assert_eq!(bridge["trace"]["traceId"], json!(call.trace_id));
    let envelope = &bridge["capabilityEnvelope"];
    assert_eq!(envelope["attenuatedScope"], json!(call.scope));
    assert_eq!(envelope["capabilityRef"]["parentCapabilityHash"], call.token.hash().unwrap());
    assert_eq!(envelope["targetProtocol"], "mcp");
    let route = member(&prepared, "route_selection");
    assert_eq!(route["decision"], "select");
    assert_eq!(route["selectedProtocols"], json!(["native", "mcp", "native"]));
    assert_eq!(prepared.executor.unwrap().protocol(), DiscoveryProtocol::Mcp);
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap()
}

/// The steps of a call: what was spoken, and the name of the call in it.
fn hops(chio: &Value) -> Vec<(&str, &str)> {
    let hops = chio["bridge"]["trace"]["hops"].as_array().unwrap();
    let hop = |hop| (text(hop, "protocol"), text(hop, "requestId"));
    hops.iter().map(hop).collect()
}

#[test]
fn the_trace_tells_what_the_tools_server_speaks_whatever_it_is_addressed_as() {
    use DiscoveryProtocol::{Mcp, Native, OpenAi};
    for target in [Native, Mcp, OpenAi] {
        let prepared = setting().pass_to(request(), target, Mcp);
        let chio = member(&prepared, "chio");
        let expected = [("native", "r-1"), ("mcp", "req-1:mcp"), ("native", "req-1")];
        assert_eq!(hops(&chio), expected, "addressed as {target}");
        assert_eq!(chio["bridge"]["targetProtocol"], json!(target));
    }
    // A call that is refused on the way speaks to no tool.
    let too_large = |request: OrchestratedRequest| OrchestratedRequest {
        protocol_context: Some(json!("x".repeat(MAX_EVIDENCE))),
        ..request
    };
    let refused = |request: OrchestratedRequest| OrchestratedRequest {
        refusal: Some(Denial::by_guard("native.request_id", "twice")),
        ..request
    };
    for request in [too_large(request()), refused(request())] {
        let prepared = setting().pass_to(request, Mcp, Mcp);
        assert!(prepared.call.refusal.is_some());
        let chio = member(&prepared, "chio");
        assert_eq!(hops(&chio), [("native", "r-1"), ("native", "req-1")]);
        assert_eq!(chio["bridge"]["trace"]["traceId"], json!(prepared.call.trace_id));
    }
}

/// A wish about the route.
type Wish = fn(&mut Setting, &mut OrchestratedRequest);

#[test]
fn a_native_call_of_a_native_tool_crosses_no_bridge_unless_it_has_a_wish_about_its_way() {
    let prepared = setting().pass(request(), DiscoveryProtocol::Native);
    let trace_id = prepared.call.trace_id.clone().unwrap();
    let expected = json!({
        "authoritative": true,
        "authorityPath": "cross_protocol_orchestrator",
        "trace": {"originRequestId": "r-1", "protocol": "native", "traceId": trace_id},
    });
    assert_eq!(member(&prepared, "chio"), expected);
    assert_eq!((prepared.call.evidence.len(), prepared.call.scope), (1, None));
    let wishes: [Wish; 5] = [
        |setting, _| {
            let down = RouteAvailabilityStatus::unavailable("maintenance");
            setting.availability.insert(DiscoveryProtocol::Native, down);
        },
        |_, request| {
            let intent =
                chio_core::governance::GovernedTransactionIntent::new("i", "srv", "read", "why");
            request.governed_intent = Some(Box::new(intent));
        },
        |_, request| {
            let source = DiscoveryProtocol::Native;
            let reference = CrossProtocolCapabilityRef::to_token(&request.token, source, None);
            request.capability_ref = Some(reference.unwrap());
        },
        |_, request| request.protocol_context = Some(json!({"session": "s"})),
        |_, request| request.scope = Some(request.token.scope.clone()),
    ];
    for (number, wish) in wishes.into_iter().enumerate() {
        let (mut setting, mut request) = (setting(), request());
        wish(&mut setting, &mut request);
        let prepared = setting.pass(request, DiscoveryProtocol::Native);
        assert_eq!(prepared.call.evidence.len(), 2, "{number}");
        let bridge = &member(&prepared, "chio")["bridge"];
        assert_eq!(bridge["bridgeId"], "chio-bridge-native-native-r-1", "{number}");
    }
}

#[test]
fn calls_made_for_another_stay_in_its_trace() {
    let parent = Parent { request_id: "req-0".to_owned(), trace_id: "t".to_owned() };
    let request = OrchestratedRequest { parent: Some(parent), ..request() };
    let prepared = setting().pass(request, DiscoveryProtocol::Native);
    let chio = member(&prepared, "chio");
    assert_eq!(chio["trace"]["traceId"], "t");
    assert_eq!(chio["trace"]["parentRequestId"], "req-0");
    assert_eq!(prepared.call.parent_request_id.as_deref(), Some("req-0"));
    assert_eq!(prepared.call.trace_id.as_deref(), Some("t"));
    assert!(prepared.executor.is_none());
}

// covers: CROSS-016, CROSS-047
#[test]
fn a_route_that_is_not_there_is_refused_with_its_candidates_and_never_projected() {
    let mut setting = setting();
    let down = RouteAvailabilityStatus::unavailable("maintenance");
    setting.availability.insert(DiscoveryProtocol::OpenAi, down);
    let prepared = setting.pass(request(), DiscoveryProtocol::OpenAi);
    let refusal = prepared.call.refusal.as_ref().unwrap();
    assert_eq!((refusal.guard.as_str(), refusal.code), ("kernel", ErrorCode::GuardDenied));
    assert!(prepared.executor.is_none());
    let route = member(&prepared, "route_selection");
    assert_eq!(route["decision"], "deny");
    assert_eq!(route["candidates"][0]["availabilityReason"], "maintenance");
    let bridge = &member(&prepared, "chio")["bridge"];
    assert_eq!(bridge["capabilityEnvelope"]["targetProtocol"], "open_ai");
    assert_eq!(hops(&member(&prepared, "chio")).last(), Some(&("native", "req-1")));
}

#[test]
fn a_name_that_is_refused_is_not_signed_and_what_the_edge_refused_stays_refused() {
    let unnamed = OrchestratedRequest { origin_request_id: " ".to_owned(), ..request() };
    let prepared = setting().pass(unnamed, DiscoveryProtocol::Native);
    let refusal = prepared.call.refusal.as_ref().unwrap();
    assert_eq!(refusal.code, ErrorCode::InvalidRequestShape);
    assert_eq!(refusal.guard, "cross_protocol_orchestrator");
    let chio = member(&prepared, "chio");
    assert_eq!(chio["bridge"]["trace"]["hops"][0]["requestId"], "req-1");
    assert_eq!(prepared.call.origin_request_id, None);
    let refusal = Some(Denial::by_guard("native.request_id", "twice"));
    let request =
        OrchestratedRequest { refusal: refusal.clone(), tool_name: String::new(), ..request() };
    assert_eq!(setting().pass(request, DiscoveryProtocol::Native).call.refusal, refusal);
}

// covers: CROSS-050
#[test]
fn a_scope_that_the_caller_sent_is_what_the_kernel_gets_to_judge() {
    let wide = ChioScope { grants: vec![grant("other", "*")], ..ChioScope::default() };
    let request = OrchestratedRequest { scope: Some(wide.clone()), ..request() };
    let prepared = setting().pass(request, DiscoveryProtocol::Native);
    assert_eq!(prepared.call.scope, Some(wide.clone()));
    let chio = member(&prepared, "chio");
    assert_eq!(chio["bridge"]["capabilityEnvelope"]["attenuatedScope"], json!(wide));
}

#[test]
fn wishes_that_cannot_be_read_are_refused() {
    let mut request = request();
    let mut intent =
        chio_core::governance::GovernedTransactionIntent::new("i", "srv", "read", "why");
    intent.context = Some(json!({"chioControlPlane": 7}));
    request.governed_intent = Some(Box::new(intent));
    let prepared = setting().pass(request, DiscoveryProtocol::Native);
    assert_eq!(prepared.call.refusal.unwrap().code, ErrorCode::InvalidRequestShape);
}

/// A change that makes a request too large.
type Swell = fn(&mut OrchestratedRequest);

#[test]
fn what_is_too_large_for_a_receipt_is_refused_and_not_signed() {
    let long = "x".repeat(MAX_EVIDENCE);
    let swells: [Swell; 7] = [
        |request| {
            // Deep, though it is short.
            let deep = (0..60).fold(json!(1), |inner, _| json!([inner]));
            request.protocol_context = Some(deep);
        },
        |request| {
            let mut intent =
                chio_core::governance::GovernedTransactionIntent::new("i", "srv", "read", "w");
            intent.context = Some((0..60).fold(json!(1), |inner, _| json!([inner])));
            request.governed_intent = Some(Box::new(intent));
        },
        |request| {
            let mut token = (*request.token).clone();
            token.scope.grants = vec![grant("*", "*"); MAX_GRANTS + 1];
            request.token = token.into();
        },
        |request| {
            request.scope =
                Some(ChioScope { grants: vec![grant("srv", "read"); 4000], ..ChioScope::default() })
        },
        |request| request.protocol_context = Some(json!("x".repeat(MAX_EVIDENCE))),
        |request| {
            let intent = chio_core::governance::GovernedTransactionIntent::new(
                "i",
                "srv",
                "read",
                "x".repeat(MAX_STATED),
            );
            request.governed_intent = Some(Box::new(intent));
        },
        |request| request.tool_name = "x".repeat(MAX_EVIDENCE),
    ];
    for (number, swell) in swells.into_iter().enumerate() {
        let mut request = request();
        swell(&mut request);
        let prepared = setting().pass(request, DiscoveryProtocol::Native);
        let refusal = prepared.call.refusal.as_ref().unwrap();
        assert_eq!(refusal.code, ErrorCode::InvalidRequestShape, "{number}");
        let signed: usize = prepared.call.evidence.iter().map(|(_, it)| it.as_str().len()).sum();
        assert!(signed < 8192, "{number}: {signed}");
        assert!(prepared.call.governed_intent.is_none());
    }
    // A name that is too long is the kernel's to refuse, and is signed by its hash.
    let mut request = request();
    let mut token = (*request.token).clone();
    token.id = long;
    request.token = token.into();
    let prepared = setting().pass(request, DiscoveryProtocol::Mcp);
    let chio = member(&prepared, "chio");
    let id = &chio["bridge"]["capabilityEnvelope"]["capabilityRef"]["chioCapabilityId"];
    assert!(id.as_str().unwrap().starts_with("sha256:"));
}

#[test]
fn many_grants_and_a_long_name_do_not_multiply() {
    let mut request = request();
    let mut token = (*request.token).clone();
    token.scope.grants = vec![grant("*", "*"); MAX_GRANTS];
    request.token = token.into();
    request.server_id = "s".repeat(100_000);
    let prepared = setting().pass(request, DiscoveryProtocol::Native);
    assert!(prepared.call.refusal.is_some());
    let signed: usize = prepared.call.evidence.iter().map(|(_, it)| it.as_str().len()).sum();
    assert!(signed < 4096, "{signed}");
}
