//! A call as an edge hands it over.

use std::sync::Arc;

use chio_core::capability::{ChioScope, DpopProof, PresentedToken};
use chio_core::crypto::PublicKey;
use chio_core::governance::{ApprovalToken, GovernedTransactionIntent, ModelMetadata};
use chio_core::registry::ErrorCode;
use chio_core::text::is_sound;
use chio_kernel::Denial;
use chio_kernel::store::CallTask;
use serde_json::Value;

use crate::DiscoveryProtocol;
use crate::trace::AUTHORITY_PATH;
use chio_core::capability_ref::CrossProtocolCapabilityRef;

/// The longest name of a request that is taken from a caller, in bytes: receipts repeat it.
pub const MAX_ORIGIN_ID: usize = 256;

/// A call that runs, as the calls that are made for it see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    /// The kernel's own name of it.
    pub request_id: String,
    /// Its trace.
    pub trace_id: String,
}

/// A call that an edge has decoded.
#[derive(Debug, Clone)]
pub struct OrchestratedRequest {
    /// The caller's name of the call.
    pub origin_request_id: String,
    /// The authority that is presented.
    pub token: PresentedToken,
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
    /// The call that this one is made for, if that runs here: this one belongs to its trace.
    pub parent: Option<Parent>,
    /// What the protocol calls the thing that is called, for the capability reference.
    pub protocol_context: Option<Value>,
    /// What the client adds to its request for the server, such as `traceparent`.
    pub meta: Option<Value>,
    /// The scope that the caller wants used; what is beyond the token's is denied.
    pub scope: Option<ChioScope>,
    /// The stored task that this call is.
    pub task_id: Option<String>,
    /// The task that this call is, to be stored with what comes of it.
    pub task: Option<Arc<CallTask>>,
    /// A denial that the edge has already decided on: it is signed, and nothing runs.
    pub refusal: Option<Denial>,
}

impl OrchestratedRequest {
    /// A plain call by the token's own subject.
    pub fn new(
        origin_request_id: impl Into<String>,
        token: impl Into<PresentedToken>,
        server_id: impl Into<String>,
        tool_name: impl Into<String>,
        arguments: Value,
    ) -> Self {
        let token = token.into();
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
            parent: None,
            protocol_context: None,
            meta: None,
            scope: None,
            task_id: None,
            task: None,
            refusal: None,
        }
    }

    /// Whether the caller's name of the call can stand in what is signed.
    pub(crate) fn is_named(&self) -> bool {
        is_sound(&self.origin_request_id) && self.origin_request_id.len() <= MAX_ORIGIN_ID
    }

    /// What is wrong with the request's form, if anything.
    pub(crate) fn problem(&self, source: DiscoveryProtocol) -> Option<String> {
        if !self.is_named() {
            return Some(format!(
                "expected a request id of 1 to {MAX_ORIGIN_ID} bytes without blanks around it or \
                 control characters"
            ));
        }
        for (what, name) in [("server", &self.server_id), ("tool", &self.tool_name)] {
            if name.len() > MAX_ORIGIN_ID {
                return Some(format!("expected a {what} name of at most {MAX_ORIGIN_ID} bytes"));
            }
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

/// The denial of a request that is not as it should be.
pub(crate) fn malformed(reason: String) -> Denial {
    // Made as a guard's, which cuts words that are too long for a receipt.
    Denial { code: ErrorCode::InvalidRequestShape, ..Denial::by_guard(AUTHORITY_PATH, reason) }
}

#[cfg(test)]
pub(crate) mod tests {
    use chio_core::capability::{CapabilityToken, Operation, ToolGrant, Validity};
    use chio_core::crypto::Keypair;
    use serde_json::json;

    use super::{
        ChioScope, CrossProtocolCapabilityRef, DiscoveryProtocol, MAX_ORIGIN_ID,
        OrchestratedRequest, PresentedToken,
    };

    pub(crate) fn grant(server_id: &str, tool_name: &str) -> ToolGrant {
        ToolGrant::new(server_id, tool_name, &[Operation::Invoke])
    }

    /// A token whose signature the tests here do not check.
    pub(crate) fn token(grants: &[(&str, &str)]) -> PresentedToken {
        let key = |seed| Keypair::from_seed(&[seed; 32]).public_key().clone();
        let grants = grants.iter().map(|(server, tool)| grant(server, tool)).collect();
        let scope = ChioScope { grants, ..ChioScope::default() };
        let validity = Validity { issued_at: 100, expires_at: 200 };
        CapabilityToken::draft("cap-1", key(1), key(2), scope, validity).into()
    }

    pub(crate) fn request() -> OrchestratedRequest {
        OrchestratedRequest::new("r-1", token(&[("*", "*")]), "srv", "read", json!({"a": 1}))
    }

    /// A change, and what the refusal says about it.
    type Change = (fn(&mut OrchestratedRequest), &'static str);

    #[test]
    fn names_that_are_none_are_problems() {
        assert_eq!(request().problem(DiscoveryProtocol::Native), None);
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
            let problem = request.problem(DiscoveryProtocol::Native).unwrap();
            assert!(problem.contains(named), "{problem}");
            assert_eq!(request.is_named(), named != "request id");
        }
    }
}
