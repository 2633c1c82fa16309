//! A request, as a caller puts it together.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use super::error::ClientError;

/// Headers that say how the message travels. They are the client's own business; a caller that
/// could set them could smuggle a second request.
const OWN: [HeaderName; 11] = [
    header::ACCEPT_ENCODING,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::COOKIE,
    header::EXPECT,
    header::HOST,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// A request to send.
#[derive(Clone)]
pub struct Request {
    pub(super) method: Method,
    pub(super) url: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) deadline: Option<Duration>,
    pub(super) max_body: Option<usize>,
    pub(super) follow: bool,
}

impl Request {
    /// A request without headers and body.
    pub fn new(method: Method, url: impl Into<String>) -> Self {
        Self {
            method,
            url: url.into(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            deadline: None,
            max_body: None,
            follow: true,
        }
    }

    /// A GET request.
    pub fn get(url: impl Into<String>) -> Self {
        Self::new(Method::GET, url)
    }

    /// A POST request with JSON.
    pub fn post_json(url: impl Into<String>, json: impl Into<Bytes>) -> Self {
        let mut request = Self::new(Method::POST, url).with_body(json);
        let json = HeaderValue::from_static("application/json");
        request.headers.insert(header::CONTENT_TYPE, json);
        request
    }

    /// As this, with a header instead of any of the same name.
    ///
    /// # Errors
    /// When a caller may not set the header, or it is none.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, ClientError> {
        let wrong = || ClientError::Header(name.chars().take(40).collect());
        let header = HeaderName::try_from(name).map_err(|_| wrong())?;
        let mut value = HeaderValue::try_from(value).map_err(|_| wrong())?;
        if OWN.contains(&header) {
            return Err(wrong());
        }
        // Whatever a caller sends may be a secret; sensitive values are not printed.
        value.set_sensitive(true);
        self.headers.insert(header, value);
        Ok(self)
    }

    /// As this, with a bearer token.
    ///
    /// # Errors
    /// When the token cannot stand in a header.
    pub fn with_bearer(self, token: &str) -> Result<Self, ClientError> {
        self.with_header("authorization", &format!("Bearer {token}"))
    }

    /// As this, with these cookies, by name and value, instead of any. The client keeps none itself.
    ///
    /// # Errors
    /// When a name or a value cannot stand in the header.
    pub fn with_cookies<'a>(
        mut self,
        cookies: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, ClientError> {
        let wrong = || ClientError::Header(header::COOKIE.as_str().to_owned());
        let mut text = String::new();
        for (name, value) in cookies {
            // SECURITY: a value with a separator in it would be a second cookie.
            let is_one =
                |it: &str| !it.contains([';', ',', '"', '\\']) && !it.contains(char::is_whitespace);
            if name.is_empty() || name.contains('=') || !is_one(name) || !is_one(value) {
                return Err(wrong());
            }
            let separator = if text.is_empty() { "" } else { "; " };
            text.extend([separator, name, "=", value]);
        }
        self.headers.remove(header::COOKIE);
        if !text.is_empty() {
            let mut value = HeaderValue::try_from(text).map_err(|_| wrong())?;
            value.set_sensitive(true);
            self.headers.insert(header::COOKIE, value);
        }
        Ok(self)
    }

    /// As this, with a body.
    #[must_use]
    pub fn with_body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// As this, in at most this time, which the client's own bound may shorten.
    #[must_use]
    pub fn within(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// As this, with an answer of at most this size, which the client's own bound may lessen.
    #[must_use]
    pub fn with_max_body(mut self, bytes: usize) -> Self {
        self.max_body = Some(bytes);
        self
    }

    /// As this, and a redirect is the answer.
    #[must_use]
    pub fn without_redirects(mut self) -> Self {
        self.follow = false;
        self
    }
}

impl fmt::Debug for Request {
    // Paths, queries and headers may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("body", &self.body.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::Request;

    #[test]
    fn headers_of_the_connection_are_not_a_callers_to_set() {
        for (name, value) in [
            ("Host", "other.example"),
            ("content-length", "0"),
            ("Transfer-Encoding", "chunked"),
            ("connection", "x"),
            ("a b", "x"),
            ("", "x"),
            ("x", "a\r\nb: c"),
        ] {
            let outcome = Request::get("https://a.example").with_header(name, value);
            let message = outcome.unwrap_err().to_string();
            assert!(message.contains(&format!("`{name}`")), "{message}");
        }
    }

    #[test]
    fn cookies_are_one_header_and_each_is_one() {
        let request = Request::get("https://a.example");
        let request = request.with_cookies([("a", "1"), ("b", "x=y"), ("c", "")]).unwrap();
        assert_eq!(request.headers["cookie"], "a=1; b=x=y; c=");
        let none = request.with_cookies([]).unwrap();
        assert!(none.headers.is_empty());
        for (name, value) in [
            ("", "1"),
            ("a b", "1"),
            ("a=b", "1"),
            ("a;b", "1"),
            ("a", "1; b=2"),
            ("a", "\r\nx: y"),
        ] {
            let outcome = none.clone().with_cookies([(name, value)]).map(drop);
            let message = outcome.unwrap_err().to_string();
            assert!(message.contains("`cookie`"), "{message}");
        }
    }

    #[test]
    fn a_request_is_printed_without_its_secrets() {
        let request = Request::post_json("https://a.example/secret?secret", "secret");
        let request =
            request.with_bearer("secret").unwrap().with_header("x-key", "secret").unwrap();
        let text = format!("{request:?} {:?}", request.headers);
        assert!(!text.contains("secret"), "{text}");
    }
}
