//! Bodies of requests, within bounds of size and time.

use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use http_body_util::LengthLimitError;

use super::reply::Refusal;

/// How long a body may take to arrive.
const ARRIVAL: Duration = Duration::from_secs(30);

/// The body of a request.
pub(super) async fn collect(body: Body, most: usize) -> Result<Bytes, Refusal> {
    let collected = tokio::time::timeout(ARRIVAL, to_bytes(body, most)).await;
    let Ok(collected) = collected else {
        let message = "expected the whole body within 30 seconds";
        return Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, message));
    };
    collected.map_err(|error| {
        let is_large = error.into_inner().is::<LengthLimitError>();
        let status = if is_large { StatusCode::PAYLOAD_TOO_LARGE } else { StatusCode::BAD_REQUEST };
        Refusal::new(status, format!("expected a whole body of at most {most} bytes"))
    })
}

/// Whether a request's body is JSON, under either of its names.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.and_then(|value| value.split(';').next()).unwrap_or_default().trim();
    ["application/json", "application/a2a+json"].iter().any(|it| kind.eq_ignore_ascii_case(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_says_that_it_is_json() {
        for (value, expected) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/a2a+json", true),
            ("application/jsonp", false),
            ("text/plain", false),
        ] {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, value.parse().unwrap())]);
            assert_eq!(is_json(&headers), expected, "{value}");
        }
        assert!(!is_json(&HeaderMap::new()));
    }
}
