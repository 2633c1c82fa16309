//! Authentication of requests over HTTP, and the session that each belongs to.

use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use chio_core::capability::DpopProof;
use chio_core::registry::ErrorCode;
use chio_cross_protocol::{CapabilityBridge, Principal};
use chio_edge::Refusal;
use chio_edge::auth::{Bearer, HeaderError, HttpAuth, RequestHead};
use chio_net::jsonrpc::RpcError;
use tokio::time::Instant;

use super::body::Sending;
use super::reply::{Reply, SESSION, VERSION, refusal, refused};
use crate::bridge::McpBridge;
use crate::error::{invalid, no_session, registered, unauthenticated};
use crate::events::Priming;
use crate::service::EdgeState;
use crate::session::McpSession;
use crate::sessions::Found;

/// The proof of possession of a request, or why it is not one.
pub(super) type Proof = Result<Option<Box<DpopProof>>, HeaderError>;

/// The client of a request.
pub(super) struct Authenticated {
    pub(super) principal: Principal,
    pub(super) proof: Proof,
    /// The name by which its requests are counted.
    pub(super) client: String,
}

/// What every request is answered with.
#[derive(Clone)]
pub(super) struct Endpoint {
    pub(super) shared: Arc<EdgeState>,
    auth: Arc<HttpAuth>,
}

impl Endpoint {
    pub(super) const fn new(shared: Arc<EdgeState>, auth: Arc<HttpAuth>) -> Self {
        Self { shared, auth }
    }

    /// Authenticates a request, and counts it against the rate limit.
    pub(super) async fn authenticate(&self, head: &Parts) -> Result<Authenticated, Box<Reply>> {
        let (limiter, now) = (&self.shared.rate_limiter, || self.shared.orchestrator.now());
        let head = self.auth.authenticate(head, Bearer::Token, limiter, now).await;
        let RequestHead { principal, proof, client, .. } = head.map_err(refused)?;
        let principal = principal.map_err(|error| refused(error.into()))?;
        Ok(Authenticated { principal, proof, client })
    }

    /// Counts the requests of a batch against the rate limit; one of them was counted with its head.
    pub(super) fn count(&self, client: &str, requests: usize) -> Result<(), Box<Reply>> {
        for _ in 1..requests {
            let passed = self.shared.rate_limiter.pass(client, Instant::now());
            passed.map_err(|seconds| refused(Refusal::rate_limited(seconds)))?;
        }
        Ok(())
    }

    /// How the stream of a request is sent.
    pub(super) fn sending(&self, session: &McpSession) -> Sending {
        Sending {
            rotate: self.shared.options.rotate_streams,
            form: session.form(Priming::Event),
            until: self.shared.closing.clone(),
        }
    }

    /// The open session that a request names; or why it has none.
    pub(super) async fn session(
        &self,
        headers: &HeaderMap,
        principal: Principal,
    ) -> Result<Arc<McpSession>, Box<Reply>> {
        let mut ids = headers.get_all(SESSION).iter();
        let (Some(id), None) = (ids.next(), ids.next()) else {
            let error = invalid("expected one `MCP-Session-Id` header, found none or several");
            return Err(Box::new(refusal(StatusCode::BAD_REQUEST, None, error)));
        };
        let id = id.to_str().unwrap_or_default();
        let over = |state| Box::new(refusal(StatusCode::NOT_FOUND, None, no_session(state)));
        let foreign = || {
            let error = unauthenticated("the session belongs to another principal");
            Box::new(refusal(StatusCode::FORBIDDEN, None, error))
        };
        let session = match self.shared.sessions.find(id, &principal.owner_id()) {
            Found::Open(session) => session,
            Found::Over(stage) => return Err(over(stage.into_str())),
            Found::Unknown => return Err(over("unknown")),
            Found::Foreign => return Err(foreign()),
        };
        if !session.stage().is_open() {
            return Err(over(session.stage().into_str()));
        }
        let mut versions = headers.get_all(VERSION).iter();
        if versions.any(|version| version.as_bytes() != session.version.name().as_bytes()) {
            let message = format!("expected `MCP-Protocol-Version: {}`", session.version.name());
            let error = registered(
                RpcError::INVALID_REQUEST,
                message,
                ErrorCode::ProtocolVersionUnsupported,
            );
            return Err(Box::new(refusal(StatusCode::BAD_REQUEST, None, error)));
        }
        // SECURITY: a capability names its subject itself. One that differs from the verified one
        // may be refreshed or forged; admission tells which.
        if let Some(capability) = principal.capability.clone()
            && !session.has_verified(&capability)
        {
            let admitted = self.shared.admission.admit(McpBridge.protocol(), principal).await;
            admitted.map_err(|_| foreign())?;
            session.refresh(capability);
        }
        session.touch();
        Ok(session)
    }
}
