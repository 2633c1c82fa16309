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
    /// The client does not accept an answer of these types.
    #[error("expected `Accept: {0}`")]
    NotAcceptable(&'static str),
    /// It is of another type.
    #[error("expected `Content-Type: application/json`")]
    MediaType,
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
    pub const fn status(self) -> StatusCode {
        match self {
            Self::NotAcceptable(_) => StatusCode::NOT_ACCEPTABLE,
            Self::MediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
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

/// Reads a JSON body of at most `limit` bytes, whose client accepts answers of all of these types
/// (a list with commas).
///
/// # Errors
/// As [`collect`], and when the client sends or accepts other types.
pub async fn collect_json(
    headers: &HeaderMap,
    body: Body,
    accept: &'static str,
    limit: usize,
) -> Result<Bytes, BodyError> {
    check_accept(headers, accept)?;
    if !has_content_type(headers, &["application/json"]) {
        return Err(BodyError::MediaType);
    }
    collect(body, limit).await
}

/// Checks that a client accepts answers of all of these types (a list with commas).
///
/// # Errors
/// When it does not.
pub fn check_accept(headers: &HeaderMap, types: &'static str) -> Result<(), BodyError> {
    let accepts = accepts(headers, types.split(", "));
    if accepts { Ok(()) } else { Err(BodyError::NotAcceptable(types)) }
}

/// Whether the `Content-Type` of a request is one of these, parameters aside.
#[must_use]
pub fn has_content_type(headers: &HeaderMap, types: &[&str]) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = value.and_then(|value| value.split(';').next()).unwrap_or_default().trim();
    types.iter().any(|it| media_type.eq_ignore_ascii_case(it))
}

/// Whether the `Accept` of a request lists all of these types, in any order.
fn accepts<'a>(headers: &HeaderMap, mut types: impl Iterator<Item = &'a str>) -> bool {
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
    types.all(is_listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn both_types_have_to_be_accepted_in_any_order() {
        let both = "application/json, text/event-stream";
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
            let accepted = check_accept(&headers("accept", values), both);
            assert_eq!(accepted.is_ok(), expected, "{values:?}");
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
