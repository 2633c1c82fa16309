//! Who comes in over HTTP, and whether they may.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::http::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chio_core::capability::{CapabilityToken, DpopProof, PresentedToken};
use chio_core::hash::sha256_hex;
use chio_core::registry::ErrorCode;
use chio_core::strict;
use chio_cross_protocol::Door;
use chio_cross_protocol::jsonrpc::RpcError;
use chio_net::peer::{AuthError, Challenge, Method, OriginRules, PeerAuthenticator};
use tokio::time::Instant;

use super::reply::{Reply, SESSION, VERSION, later, refusal};
use crate::error::{invalid, no_session, registered, unauthenticated};
use crate::methods::Client;
use crate::service::Shared;
use crate::session::McpSession;
use crate::sessions::Found;

/// The header that carries a capability.
const CAPABILITY: &str = "x-chio-capability";
/// The header that carries a proof of possession.
const PROOF: &str = "dpop";
/// The largest capability or proof that is read.
const MAX_HEADER: usize = 64 << 10;

/// Who is let in over HTTP.
pub struct HttpDoor {
    /// Who has to show what.
    pub peers: PeerAuthenticator,
    /// Which hosts and pages may be named.
    pub origins: OriginRules,
    /// Whether clients may come with a capability of their own, in `X-Chio-Capability`.
    pub capabilities: bool,
}

impl fmt::Debug for HttpDoor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpDoor").field("peers", &self.peers).finish_non_exhaustive()
    }
}

/// What every request passes.
#[derive(Clone)]
pub(super) struct Entrance {
    pub(super) shared: Arc<Shared>,
    door: Arc<HttpDoor>,
}

impl Entrance {
    pub(super) fn new(shared: Arc<Shared>, door: HttpDoor) -> Self {
        Self { shared, door: Arc::new(door) }
    }

    /// Who this is; or why they are not let in.
    pub(super) async fn admit(
        &self,
        (headers, uri): (&HeaderMap, &Uri),
        from: SocketAddr,
    ) -> Result<Client, Box<Reply>> {
        let authority = uri.authority().map(Authority::as_str);
        self.door.origins.check(headers, authority).map_err(|error| {
            Box::new(refusal(StatusCode::FORBIDDEN, None, unauthenticated(error.to_string())))
        })?;
        let presented = self.presented(headers)?;
        let now = self.shared.orchestrator.now();
        let identity = match self.door.peers.authenticate(headers, now).await {
            Ok(identity) => identity,
            // A capability says by itself what its holder may do.
            Err(AuthError::Missing) if presented.is_some() => chio_net::peer::Identity::anonymous(),
            Err(error) => return Err(Box::new(unknown(&error))),
        };
        let known = identity.method != Method::Anonymous;
        let token = identity.token_fingerprint.unwrap_or_default();
        let capability = presented.as_ref().map(|(_, hash)| hash.as_str()).unwrap_or_default();
        let identity_name = format!("{}|{token}|{capability}", identity.principal);
        if let Some(rate) = self.shared.options.limits.rate {
            let who = if known { identity_name.clone() } else { from.ip().to_string() };
            self.shared.turnstile.pass(&who, rate, Instant::now()).map_err(|seconds| {
                let message = "expected fewer requests, found too many in too short a time";
                let error =
                    registered(RpcError::INVALID_REQUEST, message, ErrorCode::InternalError);
                Box::new(later(StatusCode::TOO_MANY_REQUESTS, seconds, error))
            })?;
        }
        Ok(Client {
            door: Door::Tcp { from },
            principal: known.then_some(identity.principal),
            presented: presented.map(|(token, _)| token),
            identity: identity_name,
        })
    }

    /// The capability that came with a request, and its hash.
    fn presented(
        &self,
        headers: &HeaderMap,
    ) -> Result<Option<(PresentedToken, String)>, Box<Reply>> {
        let mut values = headers.get_all(CAPABILITY).iter();
        let Some(value) = values.next() else { return Ok(None) };
        let wrong = |message: &str| {
            Box::new(refusal(StatusCode::UNAUTHORIZED, None, unauthenticated(message)))
        };
        if !self.door.capabilities {
            return Err(wrong("no capabilities are taken in headers here"));
        }
        if values.next().is_some() || value.len() > MAX_HEADER {
            return Err(wrong("expected one `X-Chio-Capability` header of at most 64 KiB"));
        }
        let token = strict::from_slice(value.as_bytes()).ok();
        let token: Option<CapabilityToken> =
            token.and_then(|value| serde_json::from_value(value).ok());
        let token = token.ok_or_else(|| wrong("expected a capability as JSON in the header"))?;
        let hash = sha256_hex(value.as_bytes());
        Ok(Some((token.into(), hash)))
    }

    /// The open session that a request names; or why it has none.
    pub(super) fn session(
        &self,
        headers: &HeaderMap,
        client: &Client,
    ) -> Result<Arc<McpSession>, Box<Reply>> {
        let mut ids = headers.get_all(SESSION).iter();
        let (Some(id), None) = (ids.next(), ids.next()) else {
            let error = invalid("expected one `MCP-Session-Id` header, found none or several");
            return Err(Box::new(refusal(StatusCode::BAD_REQUEST, None, error)));
        };
        let id = id.to_str().unwrap_or_default();
        let over = |state| Box::new(refusal(StatusCode::NOT_FOUND, None, no_session(state)));
        let session = match self.shared.sessions.find(id, &client.identity) {
            Found::Open(session) => session,
            Found::Over(stage) => return Err(over(stage.name())),
            Found::Unknown => return Err(over("unknown")),
            Found::Foreign => {
                let error = unauthenticated("the session belongs to somebody else");
                return Err(Box::new(refusal(StatusCode::FORBIDDEN, None, error)));
            }
        };
        if !session.stage().is_open() {
            return Err(over(session.stage().name()));
        }
        let mut versions = headers.get_all(VERSION).iter();
        if versions.any(|version| version.as_bytes() != session.version.as_bytes()) {
            let message = format!("expected `MCP-Protocol-Version: {}`", session.version);
            let error = registered(
                RpcError::INVALID_REQUEST,
                message,
                ErrorCode::ProtocolVersionUnsupported,
            );
            return Err(Box::new(refusal(StatusCode::BAD_REQUEST, None, error)));
        }
        session.touch();
        Ok(session)
    }
}

fn unknown(error: &AuthError) -> Reply {
    let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::UNAUTHORIZED);
    let mut reply = refusal(status, None, unauthenticated(error.to_string()));
    let challenge = error.challenge(&Challenge::default());
    if let Some(challenge) = challenge {
        reply.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    reply
}

/// The proof of possession that came with a request.
pub(super) fn proof(headers: &HeaderMap) -> Result<Option<Box<DpopProof>>, Box<Reply>> {
    let Some(value) = headers.get(PROOF) else { return Ok(None) };
    let wrong = || {
        let error = unauthenticated("expected a proof of possession as base64url of JSON");
        Box::new(refusal(StatusCode::UNAUTHORIZED, None, error))
    };
    if value.len() > MAX_HEADER {
        return Err(wrong());
    }
    let text = URL_SAFE_NO_PAD.decode(value.as_bytes()).map_err(|_| wrong())?;
    let value = strict::from_slice(&text).map_err(|_| wrong())?;
    serde_json::from_value(value).map(|proof| Some(Box::new(proof))).map_err(|_| wrong())
}

/// Whether a request's `Accept` lists all of these types, in whatever order.
pub(super) fn accepts(headers: &HeaderMap, wanted: &[&str]) -> bool {
    let accepted: Vec<&str> = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|range| range.split(';').next().unwrap_or_default().trim())
        .collect();
    let matches = |wanted: &str| {
        let family = wanted.split('/').next().unwrap_or_default();
        accepted.iter().any(|range| {
            *range == "*/*"
                || range.eq_ignore_ascii_case(wanted)
                || range.strip_suffix("/*").is_some_and(|it| it.eq_ignore_ascii_case(family))
        })
    };
    wanted.iter().all(|wanted| matches(wanted))
}

/// Whether a request's body is JSON.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value: &HeaderValue| value.to_str().ok());
    let kind = kind.and_then(|value| value.split(';').next()).unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderMap;

    use super::{accepts, is_json};

    fn headers(name: &'static str, values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn both_types_have_to_be_accepted_in_whatever_order() {
        let both = ["application/json", "text/event-stream"];
        for (values, expected) in [
            (&["application/json, text/event-stream"][..], true),
            (&["text/event-stream, application/json"], true),
            (&["text/event-stream", "application/json; q=0.5"], true),
            (&["*/*"], true),
            (&["application/*, text/*"], true),
            (&["application/json"], false),
            (&["text/event-stream"], false),
            (&["text/html"], false),
            (&[], false),
        ] {
            assert_eq!(accepts(&headers("accept", values), &both), expected, "{values:?}");
        }
    }

    #[test]
    fn a_body_says_that_it_is_json() {
        for (value, expected) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/jsonp", false),
            ("text/plain", false),
        ] {
            assert_eq!(is_json(&headers("content-type", &[value])), expected, "{value}");
        }
        assert!(!is_json(&HeaderMap::new()));
    }
}
