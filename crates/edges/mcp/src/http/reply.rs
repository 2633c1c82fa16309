//! Answers over HTTP.

use axum::body::Body;
use axum::http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName, RETRY_AFTER};
use axum::http::{HeaderValue, Response, StatusCode};
use chio_cross_protocol::jsonrpc::{RequestId, Response as Answer, RpcError};

/// The header that names a session.
pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// The header that names the version.
pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The header that tells what kind of answer this is.
pub(super) const MODE: HeaderName = HeaderName::from_static("x-chio-mcp-response-mode");

pub(super) type Reply = Response<Body>;

fn reply(status: StatusCode, body: Body) -> Reply {
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    reply
}

/// A JSON-RPC message as JSON.
pub(super) fn json(status: StatusCode, answer: &Answer) -> Reply {
    let mut reply = reply(status, Body::from(answer.to_text()));
    let json = HeaderValue::from_static("application/json");
    reply.headers_mut().insert(CONTENT_TYPE, json);
    reply
}

/// A refusal of a request whose id is known, or not.
pub(super) fn refusal(status: StatusCode, id: Option<RequestId>, error: RpcError) -> Reply {
    json(status, &Answer::err(id.unwrap_or(RequestId::NULL), error))
}

/// A refusal to come back from later.
pub(super) fn later(status: StatusCode, seconds: u64, error: RpcError) -> Reply {
    let mut reply = refusal(status, None, error);
    reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    reply
}

/// Nothing to say.
pub(super) fn empty(status: StatusCode) -> Reply {
    reply(status, Body::empty())
}

/// There is no stream to be had.
pub(super) fn no_stream() -> Reply {
    let mut reply = empty(StatusCode::METHOD_NOT_ALLOWED);
    reply.headers_mut().insert(ALLOW, HeaderValue::from_static("POST, DELETE"));
    reply
}

/// Events.
pub(super) fn events(mode: &'static str, body: Body) -> Reply {
    let mut reply = reply(StatusCode::OK, body);
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(MODE, HeaderValue::from_static(mode));
    reply
}
