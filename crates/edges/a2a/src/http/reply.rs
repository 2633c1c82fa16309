//! HTTP responses of both bindings.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, LAST_MODIFIED};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use chio_edge::Refusal;
use chio_edge::body::has_content_type;
pub(super) use chio_edge::reply::{Reply, empty, json};
use chio_net::jsonrpc::{Body, RequestId, Response, RpcError};

use crate::card::Card;
use crate::error::http_error;

/// The media type that A2A has for its JSON.
pub(super) const A2A_JSON: &str = "application/a2a+json";
/// How long a client may cache a card.
const CARD_AGE: &str = "public, max-age=60";

/// Whether the body of a request is JSON, under either of its media types.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    has_content_type(headers, &["application/json", A2A_JSON])
}

/// A refusal as JSON-RPC writes it.
pub(super) fn refused_rpc(refusal: &Refusal, id: Option<RequestId>) -> Reply {
    let error = RpcError::invalid_request(refusal.message.clone());
    let response = Response::err(id.unwrap_or(RequestId::NULL), error);
    with_header(refusal, json(refusal.status, response.to_text()))
}

/// A refusal as HTTP+JSON writes it.
pub(super) fn refused_rest(refusal: &Refusal) -> Reply {
    let name = match refusal.status {
        StatusCode::UNAUTHORIZED => "UNAUTHENTICATED",
        StatusCode::FORBIDDEN => "PERMISSION_DENIED",
        StatusCode::TOO_MANY_REQUESTS => "RESOURCE_EXHAUSTED",
        StatusCode::SERVICE_UNAVAILABLE => "UNAVAILABLE",
        _ => "INVALID_ARGUMENT",
    };
    let error = http_error(refusal.status, name, &refusal.message, None);
    with_header(refusal, json(refusal.status, error.to_string()))
}

fn with_header(refusal: &Refusal, mut reply: Reply) -> Reply {
    reply.headers_mut().extend(refusal.header.clone());
    reply
}

/// A response of HTTP+JSON, under the media type that the client uses.
pub(super) fn rest(status: StatusCode, value: Body, as_a2a: bool) -> Reply {
    let mut reply = json(status, value.into_text());
    if as_a2a {
        reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(A2A_JSON));
    }
    reply
}

/// A card, or 304 when the client has it.
pub(super) fn card(card: &Card, is_known: bool) -> Reply {
    let mut reply = if is_known {
        empty(StatusCode::NOT_MODIFIED)
    } else {
        json(StatusCode::OK, card.text.to_string())
    };
    let headers = reply.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(CARD_AGE));
    for (name, value) in [(ETAG, &card.tag), (LAST_MODIFIED, &card.since)] {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
    reply
}
