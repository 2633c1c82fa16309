//! Who comes in over HTTP, and whether they may.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode};
use chio_core::capability::{DpopProof, PresentedToken};
use chio_cross_protocol::{ConnectionInfo, DiscoveryProtocol, Door};
use chio_net::door::{self, HttpDoor, Presented, Visitor};
use chio_net::peer::{AuthError, Challenge, Identity};
use tokio::time::Instant;

use super::cards::Cards;
use super::reply::Refusal;
use crate::about::About;
use crate::guests::Guest;
use crate::service::Shared;

/// What every request passes.
#[derive(Clone)]
pub(super) struct Entrance {
    pub(super) shared: Arc<Shared>,
    pub(super) door: Arc<HttpDoor>,
    pub(super) cards: Arc<Cards>,
}

/// Somebody at the door. Whether they may come in can depend on the body.
pub(super) struct Arrival {
    from: SocketAddr,
    /// Who they have shown to be, or why that is nobody.
    identity: Result<Identity, AuthError>,
    /// A capability that came in a header.
    presented: Option<Presented>,
    proof: Option<Box<DpopProof>>,
}

impl Entrance {
    pub(super) fn new(shared: Arc<Shared>, door: Arc<HttpDoor>) -> Self {
        Self { shared, door, cards: Arc::default() }
    }

    /// Looks at the head of a request.
    pub(super) async fn arrive(&self, head: &Parts, from: SocketAddr) -> Result<Arrival, Refusal> {
        let headers = &head.headers;
        let authority = head.uri.authority().map(Authority::as_str);
        let origins = &self.door.origins;
        origins
            .check(headers, authority)
            .map_err(|error| Refusal::new(StatusCode::FORBIDDEN, error.to_string()))?;
        let bearer = door::bearer_capability(headers).filter(|_| self.door.capabilities);
        let is_bearer = bearer.is_some();
        let own = self.door.presented(headers);
        let presented = same(own.map_err(|error| refuse(&error.to_string()))?, bearer)?;
        let proof = door::proof(headers).map_err(|error| refuse(&error.to_string()))?;
        let identity = if is_bearer {
            // What stands in `Authorization` is a capability and nobody's token.
            Ok(Identity::anonymous())
        } else if headers.contains_key(AUTHORIZATION) && !self.door.peers.is_required() {
            // SECURITY: a damaged capability must not be taken for none, which may do more.
            let expected = "expected no `Authorization`, or a capability as `Bearer`, found \
                            something else";
            return Err(refuse(expected));
        } else {
            self.identity(headers, presented.is_some()).await
        };
        let arrival = Arrival { from, identity, presented, proof };
        self.count(&arrival)?;
        let may_follow = self.door.capabilities && arrival.identity == Err(AuthError::Missing);
        match &arrival.identity {
            // A capability may come with the body.
            Err(error) if !may_follow => Err(unknown(error)),
            _ => Ok(arrival),
        }
    }

    async fn identity(&self, headers: &HeaderMap, presented: bool) -> Result<Identity, AuthError> {
        let now = self.shared.orchestrator.now();
        match self.door.peers.authenticate(headers, now).await {
            // A capability says by itself what its holder may do.
            Err(AuthError::Missing) if presented => Ok(Identity::anonymous()),
            identity => identity,
        }
    }

    /// Counts one more request of whoever this is.
    fn count(&self, arrival: &Arrival) -> Result<(), Refusal> {
        let Some(rate) = self.shared.options.limits.rate else { return Ok(()) };
        let visitor = arrival.identity.clone().map(|identity| Visitor::new(identity, None));
        let who = match visitor {
            Ok(visitor) if visitor.principal.is_some() => visitor.name,
            _ => arrival.from.ip().to_string(),
        };
        self.shared.turnstile.pass(&who, rate, Instant::now()).map_err(|seconds| {
            let message = "expected fewer requests, found too many in too short a time";
            Refusal::new(StatusCode::TOO_MANY_REQUESTS, message).later(seconds)
        })
    }

    /// Refuses somebody who has shown nothing, where the body can say nothing about them.
    pub(super) fn require(&self, arrival: &Arrival) -> Result<(), Refusal> {
        match &arrival.identity {
            Ok(_) => Ok(()),
            Err(error) => Err(unknown(error)),
        }
    }

    /// Lets somebody in, with what the body says about them. Calls with a capability that does not
    /// hold are denied with a receipt each; with tasks (`about_tasks`), nothing is done for them.
    pub(super) async fn admit(
        &self,
        arrival: Arrival,
        about: &mut About,
        about_tasks: bool,
    ) -> Result<Arc<Guest>, Refusal> {
        let said = about.presented.take();
        if said.is_some() && !self.door.capabilities {
            return Err(refuse("no capabilities are taken here"));
        }
        let presented = same(arrival.presented, said)?;
        let identity = match arrival.identity {
            Ok(identity) => identity,
            Err(AuthError::Missing) if presented.is_some() => Identity::anonymous(),
            Err(error) => return Err(unknown(&error)),
        };
        match (arrival.proof, &about.proof) {
            (Some(one), Some(other)) if one != *other => {
                return Err(refuse("expected one proof of possession, found two that differ"));
            }
            (Some(proof), _) => about.proof = Some(proof),
            (None, _) => {}
        }
        let visitor = Visitor::new(identity, presented.as_ref());
        let info = ConnectionInfo {
            protocol: DiscoveryProtocol::A2a,
            door: Door::Tcp { from: arrival.from },
            principal: visitor.principal,
            presented: presented.map(|presented| presented.token),
        };
        let name = format!("{}|{}", arrival.from.ip(), visitor.name);
        let shared = &self.shared;
        let at = (&shared.options.limits, &*shared.orchestrator);
        let admitted = shared.guests.admit(&*shared.admission, name, &info, at).await;
        let guest = admitted.map_err(|refused| refuse(&refused.to_string()))?;
        if guest.tokens.is_empty() {
            return Err(refuse("there is no capability for this caller"));
        }
        let (orchestrator, now) = (&shared.orchestrator, shared.orchestrator.now());
        // Not by whether a call would run: while everything is stopped, tasks can be called off.
        let holds = |token: &PresentedToken| {
            token.validity().check(now).is_ok() && !orchestrator.is_revoked(token)
        };
        if about_tasks && !guest.tokens.iter().any(holds) {
            let why = "expected a capability that holds, found one that has expired, was revoked \
                       or begins later";
            return Err(refuse(why));
        }
        Ok(guest)
    }
}

/// What came in two places, if it is the same.
fn same(one: Option<Presented>, other: Option<Presented>) -> Result<Option<Presented>, Refusal> {
    match (one, other) {
        (Some(one), Some(other)) if one.token != other.token => {
            let message = "expected one capability, found two that differ";
            Err(Refusal::new(StatusCode::UNAUTHORIZED, message))
        }
        (one, other) => Ok(one.or(other)),
    }
}

/// Refuses what somebody has shown, and says how to show something else.
fn refuse(message: &str) -> Refusal {
    let challenge = AuthError::Missing.challenge(&Challenge::default());
    Refusal::new(StatusCode::UNAUTHORIZED, message).challenged(challenge)
}

fn unknown(error: &AuthError) -> Refusal {
    let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::UNAUTHORIZED);
    let challenge = error.challenge(&Challenge::default());
    Refusal::new(status, error.to_string()).challenged(challenge)
}
