//! Authentication and admission of requests over HTTP.

use std::sync::Arc;

use axum::http::request::Parts;
use chio_core::capability::PresentedToken;
use chio_cross_protocol::Principal;
use chio_edge::Refusal;
use chio_edge::auth::{Bearer, HttpAuth, RequestHead, same_capability};
use chio_net::auth::AuthError;

use super::cards::Cards;
use crate::principals::AdmittedPrincipal;
use crate::service::EdgeState;
use chio_edge::call_metadata::CallMetadata;

/// What every request is answered with.
#[derive(Clone)]
pub(super) struct Endpoint {
    pub(super) shared: Arc<EdgeState>,
    pub(super) auth: Arc<HttpAuth>,
    pub(super) cards: Arc<Cards>,
}

impl Endpoint {
    pub(super) fn new(shared: Arc<EdgeState>, auth: Arc<HttpAuth>) -> Self {
        Self { shared, auth, cards: Arc::default() }
    }

    /// Authenticates a request by its head, and counts it against the rate limit.
    pub(super) async fn authenticate(&self, head: &Parts) -> Result<RequestHead, Refusal> {
        let (limiter, now) = (&self.shared.rate_limiter, || self.shared.orchestrator.now());
        let head = self.auth.authenticate(head, Bearer::TokenOrCapability, limiter, now).await?;
        match &head.principal {
            Err(AuthError::Missing) if self.auth.capabilities => {}
            principal => drop(authenticated(principal)?),
        }
        head.proof.as_ref().map_err(|error| Refusal::from(*error))?;
        Ok(head)
    }

    /// Admits the principal of a request, with what the body says about it. Calls with a capability
    /// that does not hold are denied with a receipt each; with tasks (`about_tasks`), nothing is
    /// done for them.
    pub(super) async fn admit(
        &self,
        head: RequestHead,
        metadata: &mut CallMetadata,
        about_tasks: bool,
    ) -> Result<Arc<AdmittedPrincipal>, Refusal> {
        let in_body = metadata.presented.take();
        if in_body.is_some() && !self.auth.capabilities {
            return Err(refuse("no capabilities are taken here"));
        }
        let mut principal = match head.principal {
            Ok(principal) => principal,
            Err(AuthError::Missing) if in_body.is_some() => Principal::anonymous(),
            Err(error) => return Err(error.into()),
        };
        principal.capability = same_capability(principal.capability, in_body)?;
        match (head.proof?, &metadata.proof) {
            (Some(one), Some(other)) if one != *other => {
                return Err(refuse("expected one proof of possession, found two that differ"));
            }
            (Some(proof), _) => metadata.proof = Some(proof),
            (None, _) => {}
        }
        let shared = &self.shared;
        let (limits, orchestrator) = (&shared.options.limits, &*shared.orchestrator);
        let address = head.from.map(|from| from.to_string()).unwrap_or_default();
        let admission = &*shared.admission;
        let admitted =
            shared.principals.admit(admission, principal, &address, limits, orchestrator).await;
        let admitted = admitted.map_err(|refused| refuse(&refused.to_string()))?;
        if admitted.tokens.is_empty() {
            return Err(refuse("there is no capability for this caller"));
        }
        let now = orchestrator.now();
        // Not by whether a call would run: while everything is stopped, tasks can be cancelled.
        let holds = |token: &PresentedToken| {
            token.validity().check(now).is_ok() && !orchestrator.is_revoked(token)
        };
        if about_tasks && !admitted.tokens.iter().any(holds) {
            let why = "expected a capability that holds, found one that has expired, was revoked \
                       or begins later";
            return Err(refuse(why));
        }
        Ok(admitted)
    }
}

/// The principal of a request; a refusal where its head does not authenticate it.
pub(super) fn authenticated(
    principal: &Result<Principal, AuthError>,
) -> Result<&Principal, Refusal> {
    principal.as_ref().map_err(|error| error.clone().into())
}

/// Refuses a credential, and asks for another.
fn refuse(message: &str) -> Refusal {
    Refusal::unauthenticated(message).challenged()
}
