//! Answers over HTTP.

use axum::body::Body;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE,
};
use axum::http::{HeaderValue, Response, StatusCode};
use chio_cross_protocol::jsonrpc::{Body as Told, RequestId, Response as Answer, RpcError};

use crate::card::Card;
use crate::error::http_error;

/// How long a card may be used without asking again.
const CARD_AGE: &str = "public, max-age=60";

pub(super) type Reply = Response<Body>;

/// Somebody who is not let in, however that is told.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) message: String,
    /// What else they are told.
    pub(super) header: Option<(HeaderName, HeaderValue)>,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), header: None }
    }

    /// With a challenge, where another token would help.
    pub(super) fn challenged(mut self, challenge: Option<HeaderValue>) -> Self {
        self.header = challenge.map(|challenge| (WWW_AUTHENTICATE, challenge));
        self
    }

    /// With a time to come back at.
    pub(super) fn later(mut self, seconds: u64) -> Self {
        self.header = Some((RETRY_AFTER, HeaderValue::from(seconds)));
        self
    }

    /// As JSON-RPC tells it.
    pub(super) fn to_rpc(&self, id: Option<RequestId>) -> Reply {
        let error = RpcError::invalid_request(self.message.clone());
        let answer = Answer::err(id.unwrap_or(RequestId::NULL), error);
        self.with(json(self.status, answer.to_text()))
    }

    /// As HTTP+JSON tells it.
    pub(super) fn to_rest(&self) -> Reply {
        let name = match self.status {
            StatusCode::UNAUTHORIZED => "UNAUTHENTICATED",
            StatusCode::FORBIDDEN => "PERMISSION_DENIED",
            StatusCode::TOO_MANY_REQUESTS => "RESOURCE_EXHAUSTED",
            StatusCode::SERVICE_UNAVAILABLE => "UNAVAILABLE",
            _ => "INVALID_ARGUMENT",
        };
        let error = http_error(self.status, name, &self.message, None);
        self.with(json(self.status, error.to_string()))
    }

    fn with(&self, mut reply: Reply) -> Reply {
        if let Some((name, value)) = &self.header {
            reply.headers_mut().insert(name, value.clone());
        }
        reply
    }
}

fn plain(status: StatusCode, body: Body) -> Reply {
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    reply
}

/// JSON.
pub(super) fn json(status: StatusCode, text: String) -> Reply {
    let mut reply = plain(status, Body::from(text));
    let json = HeaderValue::from_static("application/json");
    reply.headers_mut().insert(CONTENT_TYPE, json);
    reply
}

/// JSON of HTTP+JSON, under the name that the client knows it by.
pub(super) fn rest(status: StatusCode, value: Told, as_a2a: bool) -> Reply {
    let mut reply = json(status, value.into_text());
    if as_a2a {
        let kind = HeaderValue::from_static("application/a2a+json");
        reply.headers_mut().insert(CONTENT_TYPE, kind);
    }
    reply
}

/// Nothing to say.
pub(super) fn empty(status: StatusCode) -> Reply {
    plain(status, Body::empty())
}

/// A card, or word that the client has it.
pub(super) fn card(card: &Card, is_known: bool) -> Reply {
    let mut reply = if is_known {
        empty(StatusCode::NOT_MODIFIED)
    } else {
        json(StatusCode::OK, card.text.to_string())
    };
    let headers = reply.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(CARD_AGE));
    if let Ok(tag) = HeaderValue::from_str(&card.tag) {
        headers.insert(ETAG, tag);
    }
    reply
}
