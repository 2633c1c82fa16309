//! Request bodies: which types a client sends and accepts, and reading one within limits of size
//! and time.

use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use http_body_util::LengthLimitError;

/// The time that a client has for sending a body.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Why a body was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// It did not arrive in time.
    #[error("expected the whole body within 30 seconds")]
    Timeout,
    /// It has more bytes than the limit.
    #[error("expected a whole body of at most {0} bytes")]
    TooLarge(usize),
    /// The connection ended before the body did. Carries the limit, which the message repeats.
    #[error("expected a whole body of at most {0} bytes")]
    Incomplete(usize),
}

impl BodyError {
    /// The status of the response.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Timeout => StatusCode::REQUEST_TIMEOUT,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Incomplete(_) => StatusCode::BAD_REQUEST,
        }
    }
}

/// Reads a body of at most `limit` bytes.
///
/// # Errors
/// When it is larger, incomplete or too slow.
pub async fn collect(body: Body, limit: usize) -> Result<Bytes, BodyError> {
    let collected = tokio::time::timeout(TIMEOUT, to_bytes(body, limit)).await;
    collected.map_err(|_| BodyError::Timeout)?.map_err(|error| {
        if error.into_inner().is::<LengthLimitError>() {
            BodyError::TooLarge(limit)
        } else {
            BodyError::Incomplete(limit)
        }
    })
}

/// Whether the `Content-Type` of a request is one of these, parameters aside.
#[must_use]
pub fn has_content_type(headers: &HeaderMap, types: &[&str]) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = value.and_then(|value| value.split(';').next()).unwrap_or_default().trim();
    types.iter().any(|it| media_type.eq_ignore_ascii_case(it))
}

/// Whether the `Accept` of a request lists all of these types, in any order.
#[must_use]
pub fn accepts(headers: &HeaderMap, types: &[&str]) -> bool {
    let ranges = || {
        let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        values
            .flat_map(|value| value.split(','))
            .map(|range| range.split(';').next().unwrap_or_default().trim())
    };
    let is_listed = |wanted: &str| {
        let family = wanted.split('/').next().unwrap_or_default();
        ranges().any(|range| {
            range == "*/*"
                || range.eq_ignore_ascii_case(wanted)
                || range.strip_suffix("/*").is_some_and(|it| it.eq_ignore_ascii_case(family))
        })
    };
    types.iter().all(|wanted| is_listed(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn both_types_have_to_be_accepted_in_any_order() {
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
    fn the_content_type_has_to_be_one_of_the_list() {
        let types = ["application/json", "application/a2a+json"];
        for (value, expected) in [
            ("application/json", [true, true]),
            ("Application/JSON; charset=utf-8", [true, true]),
            ("application/a2a+json", [false, true]),
            ("application/jsonp", [false, false]),
            ("text/plain", [false, false]),
        ] {
            let headers = headers("content-type", &[value]);
            let found = [&types[..1], &types[..]].map(|types| has_content_type(&headers, types));
            assert_eq!(found, expected, "{value}");
        }
        assert!(!has_content_type(&HeaderMap::new(), &types));
    }

    #[tokio::test]
    async fn a_body_is_read_within_its_limit() {
        assert_eq!(collect(Body::from("12345"), 5).await.unwrap(), "12345");
        let error = collect(Body::from("123456"), 5).await.unwrap_err();
        assert_eq!((error, error.status().as_u16()), (BodyError::TooLarge(5), 413));
        assert_eq!(error.to_string(), "expected a whole body of at most 5 bytes");
    }
}
