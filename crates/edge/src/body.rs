//! Request bodies: which types a client sends and accepts, and reading one within limits of size,
//! time and the memory of the process.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use chio_net::memory::{Crowded, HeldMemory};
use http_body_util::BodyExt;

/// How many bytes of a body, and of what it is read into, are not counted.
const FREE: usize = 32 << 10;
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
    /// There is no memory for it now.
    #[error(transparent)]
    Crowded(#[from] Crowded),
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
            Self::Crowded(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Incomplete(_) => StatusCode::BAD_REQUEST,
        }
    }
}

/// A body that has arrived, and the memory that it takes.
#[derive(Debug)]
pub struct Collected {
    text: Vec<u8>,
    held: HeldMemory,
}

impl Collected {
    /// Its bytes.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Reads it. The memory that is given along is for what was read, and is kept as long as that.
    ///
    /// # Errors
    /// When there is no memory for that.
    pub async fn read<T: Send + 'static>(
        mut self,
        read: impl FnOnce(&[u8]) -> T + Send + 'static,
    ) -> Result<(T, HeldMemory), BodyError> {
        let value = self.held.read(self.text, read).await?;
        Ok((value, self.held))
    }
}

/// Reads a body of at most `limit` bytes.
///
/// # Errors
/// When it is larger, incomplete or too slow, or there is no memory for it.
pub async fn collect(mut body: Body, limit: usize) -> Result<Collected, BodyError> {
    let mut collected = Collected { text: Vec::new(), held: HeldMemory::of_process(FREE) };
    let Collected { text, held } = &mut collected;
    let reading = async {
        while let Some(frame) = held.unless_cut_off(body.frame()).await? {
            let Ok(piece) = frame.map_err(|_| BodyError::Incomplete(limit))?.into_data() else {
                continue;
            };
            if text.len() + piece.len() > limit {
                return Err(BodyError::TooLarge(limit));
            }
            held.grow(piece.len()).await?;
            text.extend_from_slice(&piece);
        }
        Ok(())
    };
    tokio::time::timeout(TIMEOUT, reading).await.map_err(|_| BodyError::Timeout)??;
    Ok(collected)
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
) -> Result<Collected, BodyError> {
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
    // Most clients send the very list.
    let sends_list = headers.get(ACCEPT).is_some_and(|value| value.as_bytes() == types.as_bytes());
    let accepts = sends_list || accepts(headers, types.split(", "));
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
        assert_eq!(collect(Body::from("12345"), 5).await.unwrap().text(), b"12345");
        let error = collect(Body::from("123456"), 5).await.unwrap_err();
        assert_eq!((error, error.status().as_u16()), (BodyError::TooLarge(5), 413));
        assert_eq!(error.to_string(), "expected a whole body of at most 5 bytes");
    }

    #[tokio::test]
    async fn a_body_is_kept_as_long_as_what_it_is_read_into() {
        let text = format!("[{}0]", "[0],".repeat(1 << 16));
        let body = collect(Body::from(text.clone()), 1 << 20).await.unwrap();
        let length = body.read(|text| text.len()).await.map(|(length, _)| length);
        assert_eq!(length, Ok(text.len()));
    }

    #[test]
    fn a_client_for_which_there_is_no_memory_is_told_when_to_come_again() {
        let refusal = crate::Refusal::from(BodyError::from(Crowded));
        assert_eq!(refusal.status, StatusCode::SERVICE_UNAVAILABLE);
        let header = refusal.header.map(|(name, value)| (name, value.to_str().unwrap().to_owned()));
        assert_eq!(header, Some((axum::http::header::RETRY_AFTER, "2".to_owned())));
    }
}
