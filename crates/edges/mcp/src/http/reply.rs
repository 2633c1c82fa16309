//! HTTP responses that carry JSON-RPC messages and streams of events.

use axum::body::Body;
use axum::http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName};
use axum::http::{HeaderValue, StatusCode};
use chio_edge::Refusal;
pub(super) use chio_edge::reply::{Reply, empty};
use chio_edge::reply::{json, with_retry_after};
use chio_net::jsonrpc::{RequestId, Response, RpcError};

use crate::error::registered;

/// The header that names a session.
pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// The header that names the version.
pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The header that names the kind of a stream.
pub(super) const MODE: HeaderName = HeaderName::from_static("x-chio-mcp-response-mode");

/// A JSON-RPC response.
pub(super) fn json_rpc(status: StatusCode, response: &Response) -> Reply {
    json(status, response.to_text())
}

/// A refusal of a request, whose id may be unknown.
pub(super) fn refusal(status: StatusCode, id: Option<RequestId>, error: RpcError) -> Reply {
    json_rpc(status, &Response::err(id.unwrap_or(RequestId::NULL), error))
}

/// A refusal of a request that was not read.
pub(super) fn refused(refused: Refusal) -> Box<Reply> {
    let Refusal { status, code, message, header } = refused;
    let error = registered(RpcError::INVALID_REQUEST, message, code);
    let mut reply = refusal(status, None, error);
    reply.headers_mut().extend(header);
    Box::new(reply)
}

/// A refusal of a request that may be repeated after some seconds.
pub(super) fn later(status: StatusCode, seconds: u64, error: RpcError) -> Reply {
    with_retry_after(refusal(status, None, error), seconds)
}

/// The refusal of a stream.
pub(super) fn no_stream() -> Reply {
    let mut reply = empty(StatusCode::METHOD_NOT_ALLOWED);
    reply.headers_mut().insert(ALLOW, HeaderValue::from_static("POST, DELETE"));
    reply
}

/// A stream of events.
pub(super) fn events(mode: &'static str, body: Body) -> Reply {
    let mut reply = Reply::new(body);
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(MODE, HeaderValue::from_static(mode));
    reply
}
