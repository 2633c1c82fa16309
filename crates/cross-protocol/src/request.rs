//! A call as an edge hands it over.

use chio_core::canonical::CanonicalError;
use chio_core::capability::{CapabilityToken, DpopProof};
use chio_core::crypto::PublicKey;
use chio_core::governance::{ApprovalToken, GovernedTransactionIntent, ModelMetadata};
use chio_core::registry::ErrorCode;
use chio_kernel::{Denial, ToolCall};
use serde_json::Value;

use crate::DiscoveryProtocol;
use crate::attenuation::attenuated;
use crate::capability_ref::CrossProtocolCapabilityRef;
use crate::trace::{AUTHORITY_PATH, Crossing};

/// The longest name of a request that is taken from a caller, in bytes: receipts repeat it.
pub const MAX_ORIGIN_ID: usize = 256;

/// A call that an edge has decoded.
#[derive(Debug, Clone)]
pub struct OrchestratedRequest {
    /// The caller's name of the call.
    pub origin_request_id: String,
    /// The authority that is presented.
    pub token: CapabilityToken,
    /// Who calls; the token's own subject unless the edge knows better.
    pub agent: PublicKey,
    /// The server called.
    pub server_id: String,
    /// The tool called.
    pub tool_name: String,
    /// The arguments.
    pub arguments: Value,
    /// The capability reference that the caller sent, if the protocol carries one.
    pub capability_ref: Option<CrossProtocolCapabilityRef>,
    /// Proof that the caller holds the subject's key.
    pub dpop_proof: Option<Box<DpopProof>>,
    /// Why, for how much, on whose behalf.
    pub governed_intent: Option<Box<GovernedTransactionIntent>>,
    /// An approval.
    pub approval: Option<Box<ApprovalToken>>,
    /// The model that asks.
    pub model: Option<Box<ModelMetadata>>,
    /// The trace of the call that this one is made for; a new one when absent.
    pub trace_id: Option<String>,
    /// A denial that the edge has already decided on: it is signed, and nothing runs.
    pub refusal: Option<Denial>,
}

/// What the orchestrator adds to a request.
pub(crate) struct Way {
    /// The kernel's own name of the call.
    pub(crate) request_id: String,
    /// What the caller speaks.
    pub(crate) source: DiscoveryProtocol,
    /// What the tool speaks.
    pub(crate) target: DiscoveryProtocol,
    /// In Unix seconds.
    pub(crate) now: u64,
}

impl OrchestratedRequest {
    /// A plain call by the token's own subject.
    #[must_use]
    pub fn new(
        origin_request_id: impl Into<String>,
        token: CapabilityToken,
        server_id: impl Into<String>,
        tool_name: impl Into<String>,
        arguments: Value,
    ) -> Self {
        Self {
            origin_request_id: origin_request_id.into(),
            agent: token.subject.clone(),
            token,
            server_id: server_id.into(),
            tool_name: tool_name.into(),
            arguments,
            capability_ref: None,
            dpop_proof: None,
            governed_intent: None,
            approval: None,
            model: None,
            trace_id: None,
            refusal: None,
        }
    }

    /// The call for the kernel: narrowed to its target and with its trace.
    pub(crate) fn into_call(self, way: Way) -> Result<ToolCall, CanonicalError> {
        let named =
            is_sound(&self.origin_request_id) && self.origin_request_id.len() <= MAX_ORIGIN_ID;
        let crossing = Crossing {
            // A name that is refused stays out of what is signed.
            origin_request_id: if named { &self.origin_request_id } else { &way.request_id },
            kernel_request_id: &way.request_id,
            source: way.source,
            target: way.target,
            capability_id: &self.token.id,
            agent: &self.agent,
            now: way.now,
        };
        let evidence = crossing.evidence(self.trace_id.clone())?;
        let problem = self.problem(named, way.source);
        let refusal = self.refusal.or_else(|| problem.map(refused));
        Ok(ToolCall {
            request_id: way.request_id,
            scope: attenuated(&self.token.scope, &self.server_id, &self.tool_name),
            token: self.token,
            agent: self.agent,
            server_id: self.server_id,
            tool_name: self.tool_name,
            arguments: self.arguments,
            dpop_proof: self.dpop_proof,
            governed_intent: self.governed_intent,
            approval: self.approval,
            model: self.model,
            evidence,
            refusal,
        })
    }

    /// What is wrong with the request's form, if anything.
    fn problem(&self, named: bool, source: DiscoveryProtocol) -> Option<String> {
        if !named {
            return Some(format!(
                "expected a request id of 1 to {MAX_ORIGIN_ID} bytes without blanks around it or \
                 control characters"
            ));
        }
        for (what, name) in [("server", &self.server_id), ("tool", &self.tool_name)] {
            if !is_sound(name) {
                return Some(format!(
                    "expected a {what} name without blanks around it or control characters"
                ));
            }
        }
        let reference = self.capability_ref.as_ref()?;
        reference.check(&self.token, source).err().map(|error| error.to_string())
    }
}

fn refused(reason: String) -> Denial {
    Denial { code: ErrorCode::InvalidRequestShape, guard: AUTHORITY_PATH.to_owned(), reason }
}

/// Whether a name is as it should be: not blank, no blanks around it, no control characters.
fn is_sound(name: &str) -> bool {
    !name.is_empty() && name.trim() == name && !name.chars().any(char::is_control)
}

#[cfg(test)]
pub(crate) mod tests {
    use chio_core::capability::{ChioScope, Operation, ToolGrant, Validity};
    use chio_core::crypto::Keypair;
    use serde_json::json;

    use super::{
        CapabilityToken, CrossProtocolCapabilityRef, Denial, DiscoveryProtocol, ErrorCode,
        MAX_ORIGIN_ID, OrchestratedRequest, ToolCall, Way,
    };

    pub(crate) fn grant(server_id: &str, tool_name: &str) -> ToolGrant {
        ToolGrant::new(server_id, tool_name, &[Operation::Invoke])
    }

    /// A token whose signature nobody looks at here.
    pub(crate) fn token(grants: &[(&str, &str)]) -> CapabilityToken {
        let key = |seed| Keypair::from_seed(&[seed; 32]).public_key().clone();
        let grants = grants.iter().map(|(server, tool)| grant(server, tool)).collect();
        let scope = ChioScope { grants, ..ChioScope::default() };
        let validity = Validity { issued_at: 100, expires_at: 200 };
        CapabilityToken::draft("cap-1", key(1), key(2), scope, validity)
    }

    fn request() -> OrchestratedRequest {
        OrchestratedRequest::new("r-1", token(&[("*", "*")]), "srv", "read", json!({"a": 1}))
    }

    fn call(request: OrchestratedRequest) -> ToolCall {
        let (source, target) = (DiscoveryProtocol::Native, DiscoveryProtocol::Mcp);
        let request_id = "req-1".to_owned();
        request.into_call(Way { request_id, source, target, now: 150 }).unwrap()
    }

    #[test]
    fn a_call_is_narrowed_and_carries_its_trace() {
        let call = call(request());
        assert_eq!(call.scope.unwrap().grants, [grant("srv", "read")]);
        assert_eq!(call.agent, call.token.subject);
        assert_eq!(call.refusal, None);
        let bridge = &call.evidence["chio"]["bridge"];
        assert_eq!(bridge["bridgeId"], "chio-bridge-native-mcp-r-1");
        assert_eq!(bridge["trace"]["hops"][2]["requestId"], "req-1");
    }

    #[test]
    fn nested_calls_stay_in_the_trace() {
        let call = call(OrchestratedRequest { trace_id: Some("t".to_owned()), ..request() });
        assert_eq!(call.evidence["chio"]["bridge"]["trace"]["traceId"], "t");
    }

    /// A change, and what the refusal says about it.
    type Change = (fn(&mut OrchestratedRequest), &'static str);

    #[test]
    fn names_that_are_none_are_refused_and_not_signed() {
        let changes: [Change; 6] = [
            (|request| request.origin_request_id.clear(), "request id"),
            (|request| request.origin_request_id = " r".to_owned(), "request id"),
            (|request| request.origin_request_id = "x".repeat(MAX_ORIGIN_ID + 1), "request id"),
            (|request| request.server_id = "srv\n".to_owned(), "server name"),
            (|request| request.tool_name = "re\0ad".to_owned(), "tool name"),
            (
                |request| {
                    let source = DiscoveryProtocol::A2a;
                    let reference =
                        CrossProtocolCapabilityRef::to_token(&request.token, source, None);
                    request.capability_ref = Some(reference.unwrap());
                },
                "origin protocol native, found a2a",
            ),
        ];
        for (change, named) in changes {
            let mut request = request();
            change(&mut request);
            let expected = match named {
                "request id" => "req-1",
                _ => "r-1",
            };
            let call = call(request);
            let refusal = call.refusal.unwrap();
            assert_eq!(refusal.code, ErrorCode::InvalidRequestShape);
            assert_eq!(refusal.guard, "cross_protocol_orchestrator");
            assert!(refusal.reason.contains(named), "{}", refusal.reason);
            let hop = &call.evidence["chio"]["bridge"]["trace"]["hops"][0];
            assert_eq!(hop["requestId"], expected);
        }
    }

    #[test]
    fn what_the_edge_refused_stays_refused() {
        let refusal = Some(Denial::by_guard("native.request_id", "twice"));
        let request =
            OrchestratedRequest { refusal: refusal.clone(), tool_name: String::new(), ..request() };
        assert_eq!(call(request).refusal, refusal);
    }
}
