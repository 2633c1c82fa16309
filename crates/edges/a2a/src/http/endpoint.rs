//! Authentication and admission of requests over HTTP.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use chio_core::capability::{DpopProof, PresentedToken};
use chio_cross_protocol::Principal;
use chio_edge::Refusal;
use chio_edge::auth::{self, HttpAuth};
use chio_net::auth::AuthError;
use tokio::time::Instant;

use super::cards::Cards;
use crate::principals::AdmittedPrincipal;
use crate::service::Shared;
use chio_edge::call_metadata::CallMetadata;

/// What every request is answered with.
#[derive(Clone)]
pub(super) struct Endpoint {
    pub(super) shared: Arc<Shared>,
    pub(super) auth: Arc<HttpAuth>,
    pub(super) cards: Arc<Cards>,
}

/// What the head of a request shows. A capability may follow in the body.
pub(super) struct RequestHead {
    from: SocketAddr,
    /// The principal, or why the request is not authenticated so far.
    principal: Result<Principal, AuthError>,
    proof: Option<Box<DpopProof>>,
}

impl Endpoint {
    pub(super) fn new(shared: Arc<Shared>, auth: Arc<HttpAuth>) -> Self {
        Self { shared, auth, cards: Arc::default() }
    }

    /// Authenticates a request by its head, and counts it against the rate limit.
    pub(super) async fn authenticate(
        &self,
        head: &Parts,
        from: SocketAddr,
    ) -> Result<RequestHead, Refusal> {
        let headers = &head.headers;
        self.auth.check_origin(headers, &head.uri)?;
        let bearer = auth::bearer_capability(headers).filter(|_| self.auth.capabilities);
        let is_bearer = bearer.is_some();
        let header = self.auth.capability(headers).map_err(|error| refuse(&error.to_string()))?;
        let capability = agreed(header, bearer)?;
        let proof = auth::proof(headers).map_err(|error| refuse(&error.to_string()))?;
        let principal = if is_bearer {
            // `Authorization` holds a capability and no bearer token.
            Ok(Principal::anonymous().with_capability(capability))
        } else if headers.contains_key(AUTHORIZATION) && !self.auth.authenticator.is_required() {
            // SECURITY: a damaged capability must not be taken for none, which may do more.
            let expected = "expected no `Authorization`, or a capability as `Bearer`, found \
                            something else";
            return Err(refuse(expected));
        } else {
            let now = self.shared.orchestrator.now();
            self.auth.authenticate(headers, capability, now).await
        };
        self.count(principal.as_ref().ok(), from)?;
        match principal {
            Err(AuthError::Missing) if self.auth.capabilities => {}
            Err(error) => return Err(error.into()),
            Ok(_) => {}
        }
        Ok(RequestHead { from, principal, proof })
    }

    /// Counts one more request of a principal, or of an address.
    fn count(&self, principal: Option<&Principal>, from: SocketAddr) -> Result<(), Refusal> {
        let Some(rate) = self.shared.options.limits.rate else { return Ok(()) };
        let client = match principal.filter(|principal| principal.is_authenticated()) {
            Some(principal) => principal.name.clone(),
            None => from.ip().to_string(),
        };
        let limiter = &self.shared.rate_limiter;
        limiter.pass(&client, rate, Instant::now()).map_err(Refusal::rate_limited)
    }

    /// Refuses a request that has not authenticated, where its body cannot.
    pub(super) fn require(&self, head: &RequestHead) -> Result<(), Refusal> {
        match &head.principal {
            Ok(_) => Ok(()),
            Err(error) => Err(error.clone().into()),
        }
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
        principal.capability = agreed(principal.capability, in_body)?;
        match (head.proof, &metadata.proof) {
            (Some(one), Some(other)) if one != *other => {
                return Err(refuse("expected one proof of possession, found two that differ"));
            }
            (Some(proof), _) => metadata.proof = Some(proof),
            (None, _) => {}
        }
        let shared = &self.shared;
        let (limits, orchestrator) = (&shared.options.limits, &*shared.orchestrator);
        let address = head.from.ip().to_string();
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

/// The capability that came in two places, if it is the same.
fn agreed(
    one: Option<PresentedToken>,
    other: Option<PresentedToken>,
) -> Result<Option<PresentedToken>, Refusal> {
    match (one, other) {
        (Some(one), Some(other)) if one != other => {
            Err(Refusal::unauthenticated("expected one capability, found two that differ"))
        }
        (one, other) => Ok(one.or(other)),
    }
}

/// Refuses a credential, and asks for another.
fn refuse(message: &str) -> Refusal {
    Refusal::unauthenticated(message).challenged()
}
