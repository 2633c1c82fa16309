//! Who comes in over HTTP, and whether they may.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::http::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use chio_core::capability::DpopProof;
use chio_core::registry::ErrorCode;
use chio_cross_protocol::Door;
use chio_cross_protocol::jsonrpc::RpcError;
use chio_net::door::{self, HeaderError, HttpDoor};
use chio_net::peer::{AuthError, Challenge};
use tokio::time::Instant;

use super::reply::{Reply, SESSION, VERSION, later, refusal};
use crate::error::{invalid, no_session, registered, unauthenticated};
use crate::methods::Client;
use crate::service::Shared;
use crate::session::McpSession;
use crate::sessions::Found;

/// What every request passes.
#[derive(Clone)]
pub(super) struct Entrance {
    pub(super) shared: Arc<Shared>,
    door: Arc<HttpDoor>,
}

impl Entrance {
    pub(super) const fn new(shared: Arc<Shared>, door: Arc<HttpDoor>) -> Self {
        Self { shared, door }
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
        let presented = self.door.presented(headers).map_err(wrong_header)?;
        let now = self.shared.orchestrator.now();
        let visitor = self.door.identify(headers, presented.as_ref(), now).await;
        let visitor = visitor.map_err(|error| Box::new(unknown(&error)))?;
        if let Some(rate) = self.shared.options.limits.rate {
            let address = from.ip().to_string();
            let who = if visitor.principal.is_some() { &visitor.name } else { &address };
            self.shared.turnstile.pass(who, rate, Instant::now()).map_err(|seconds| {
                let message = "expected fewer requests, found too many in too short a time";
                let error =
                    registered(RpcError::INVALID_REQUEST, message, ErrorCode::InternalError);
                Box::new(later(StatusCode::TOO_MANY_REQUESTS, seconds, error))
            })?;
        }
        Ok(Client {
            door: Door::Tcp { from },
            principal: visitor.principal,
            presented: presented.map(|presented| presented.token),
            identity: visitor.name,
        })
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

/// What came in a header is not taken.
fn wrong_header(error: HeaderError) -> Box<Reply> {
    Box::new(refusal(StatusCode::UNAUTHORIZED, None, unauthenticated(error.to_string())))
}

/// The proof of possession that came with a request.
pub(super) fn proof(headers: &HeaderMap) -> Result<Option<Box<DpopProof>>, Box<Reply>> {
    door::proof(headers).map_err(wrong_header)
}

/// Whether a request's `Accept` lists all of these types, in whatever order.
pub(super) fn accepts(headers: &HeaderMap, wanted: &[&str]) -> bool {
    let ranges = || {
        let texts = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        texts
            .flat_map(|value| value.split(','))
            .map(|range| range.split(';').next().unwrap_or_default().trim())
    };
    let matches = |wanted: &str| {
        let family = wanted.split('/').next().unwrap_or_default();
        ranges().any(|range| {
            range == "*/*"
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
