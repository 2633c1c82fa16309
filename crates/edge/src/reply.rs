//! HTTP responses that every edge sends.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, Response, StatusCode};

/// A response over HTTP.
pub type Reply = Response<Body>;

/// A response without a content type.
pub fn with_body(status: StatusCode, body: impl Into<Body>) -> Reply {
    let mut reply = Response::new(body.into());
    *reply.status_mut() = status;
    reply
}

/// A response without a body.
pub fn empty(status: StatusCode) -> Reply {
    with_body(status, Body::empty())
}

/// A response whose body is JSON.
pub fn json(status: StatusCode, text: String) -> Reply {
    let mut reply = with_body(status, text);
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    reply
}

/// Tells the client in how many seconds to try again.
pub fn with_retry_after(mut reply: Reply, seconds: u64) -> Reply {
    reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    reply
}
