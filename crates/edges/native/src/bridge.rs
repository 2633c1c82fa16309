//! What the native protocol says about itself, and its calls as the orchestrator takes them.

use chio_core::capability::PresentedToken;
use chio_core::crypto::PublicKey;
use chio_core::message::ToolCallRequest;
use chio_core::registry::ErrorCode;
use chio_cross_protocol::{CapabilityBridge, Denial, DiscoveryProtocol, OrchestratedRequest};

/// The native protocol as a bridge. Its messages carry the token itself, so they never refer to
/// one, and they name servers and tools as they are.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NativeBridge;

impl CapabilityBridge for NativeBridge {
    type Envelope<'a> = ToolCallRequest<PresentedToken>;

    fn protocol(&self) -> DiscoveryProtocol {
        DiscoveryProtocol::Native
    }
}

impl NativeBridge {
    /// The call of a message, by `peer` or else by the token's own subject. `has_own_id` is false
    /// when another call of the connection has the id.
    ///
    /// Threshold approvals, execution nonces and extensions are refused: nothing counts them.
    pub(crate) fn call(
        self,
        request: ToolCallRequest<PresentedToken>,
        peer: Option<&PublicKey>,
        has_own_id: bool,
    ) -> OrchestratedRequest {
        let refusal = refusal(&request, has_own_id);
        let (server, tool) = (request.server_id, request.tool);
        let (id, token) = (request.id, request.capability_token);
        let mut call = OrchestratedRequest::new(id, token, server, tool, request.params);
        if let Some(peer) = peer {
            call.agent = peer.clone();
        }
        call.dpop_proof = request.dpop_proof.map(Box::new);
        call.governed_intent = request.governed_intent.map(Box::new);
        call.approval = request.approval_token.map(Box::new);
        call.refusal = refusal;
        call
    }
}

/// Why a request cannot be run as it is, if so.
fn refusal(request: &ToolCallRequest<PresentedToken>, has_own_id: bool) -> Option<Denial> {
    if !has_own_id {
        let reason = "expected an id that no running call of this connection has";
        return Some(denial("native.request_id", reason.to_owned()));
    }
    if let Err(conflict) = request.check_approvals() {
        return Some(denial("session_authorization", conflict.to_string()));
    }
    // A client that sends one of these relies on its being looked at.
    let unsupported = [
        (!request.approval_tokens.is_empty(), "approval_tokens"),
        (request.execution_nonce.is_some(), "execution_nonce"),
        (request.supplemental_authorization.is_some(), "supplemental_authorization"),
    ];
    let (_, member) = unsupported.into_iter().find(|(is_there, _)| *is_there)?;
    Some(denial("session_authorization", format!("`{member}` is not supported yet")))
}

fn denial(guard: &str, reason: String) -> Denial {
    Denial { code: ErrorCode::InvalidRequestShape, guard: guard.to_owned(), reason }
}
