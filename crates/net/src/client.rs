//! The one way out over HTTP: bounded in time, size and place.
//!
//! HTTP/1.1 over rustls. There are no cookies, no proxies and no decompression. Of the environment
//! only `SSL_CERT_FILE` and `SSL_CERT_DIR` count, which say where the system's root certificates
//! are, and what the system's own resolver reads.

mod connect;
mod deadline;
mod error;
mod redirect;
mod request;
mod response;
mod tls;
mod transport;

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chio_core::with_defaults;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Extensions, Method};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::timeout_at;

pub use connect::{Resolver, SystemResolver};
pub use error::{ClientError, Phase};
pub use request::Request;
pub use response::{EventStream, Response, ResponseStream};
pub use tls::{Certificates, ClientIdentity, Roots};

use crate::address::{AddressClass, AddressRules, classify};
use connect::Connector;
use deadline::deadline;
use redirect::{Hop, Terms};
use response::Bounds;
use transport::Peer;

/// The least that hyper can read a head into.
const MIN_HEAD: usize = 8 * 1024;

with_defaults! {
    /// Bounds of every request.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Limits {
        /// Time for a name's addresses, a connection and a TLS handshake.
        pub connect: Duration = Duration::from_secs(10),
        /// Time for the whole request, redirects included; of a stream, until its head is there. A
        /// server that takes nothing of a request for as long loses the connection.
        pub total: Duration = Duration::from_secs(30),
        /// Time for the next piece of a stream.
        pub idle: Duration = Duration::from_secs(300),
        /// Bytes of a body that is read whole.
        pub max_body: usize = 8 * 1024 * 1024,
        /// Bytes of an answer's head, at least 8 KiB.
        pub max_head: usize = 64 * 1024,
        /// Headers of an answer.
        pub max_headers: usize = 100,
        /// Redirects of a request.
        pub max_redirects: usize = 4,
    }
}

with_defaults! {
    /// How a client behaves.
    #[derive(Debug, Clone)]
    pub struct ClientOptions {
        /// Where it may go.
        pub rules: AddressRules = AddressRules::public_only(),
        /// Its bounds.
        pub limits: Limits = Limits::default(),
        /// Whom it trusts.
        pub roots: Roots = Roots::System,
        /// What it shows to servers that ask for a certificate.
        pub identity: Option<ClientIdentity> = None,
        /// How it looks up names.
        pub resolver: Arc<dyn Resolver> = Arc::new(SystemResolver),
    }
}

/// An HTTP client. Clones are handles on the same one, with the same connections.
#[derive(Clone)]
pub struct HttpClient {
    /// Wherever the rules allow.
    any: Pool,
    /// Where redirects of public servers may lead: to public addresses alone.
    public: Pool,
    limits: Limits,
    has_identity: bool,
}

/// Pooled connections that were opened under the same rules.
#[derive(Clone)]
struct Pool {
    rules: Arc<AddressRules>,
    connections: Client<Connector, Full<Bytes>>,
}

impl HttpClient {
    /// A client. Connections are kept for later requests.
    ///
    /// # Errors
    /// When certificates or keys cannot be used.
    pub fn new(options: ClientOptions) -> Result<Self, ClientError> {
        let ClientOptions { rules, limits, roots, identity, resolver } = options;
        let tls = tls::config(&roots, identity.as_ref())?;
        let pool = |rules: AddressRules| {
            let rules = Arc::new(rules);
            let (resolver, tls) = (Arc::clone(&resolver), tls.clone());
            let connections = Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(Duration::from_secs(60))
                .pool_max_idle_per_host(16)
                .http1_max_buf_size(limits.max_head.max(MIN_HEAD))
                .http1_max_headers(limits.max_headers)
                .build(Connector { rules: Arc::clone(&rules), resolver, tls, limits });
            Pool { rules, connections }
        };
        let public = pool(rules.without_grants());
        Ok(Self { any: pool(rules), public, limits, has_identity: identity.is_some() })
    }

    /// Where it may go.
    pub fn rules(&self) -> &AddressRules {
        &self.any.rules
    }

    /// Sends a request and reads the whole answer, whatever its status.
    ///
    /// # Errors
    /// When there is none within the bounds, or the address rules do not allow it.
    pub async fn send(&self, request: Request) -> Result<Response, ClientError> {
        self.open(request).await?.collect().await
    }

    /// Sends a request and reads the head of the answer, whatever its status.
    ///
    /// # Errors
    /// As [`HttpClient::send`].
    pub async fn open(&self, request: Request) -> Result<ResponseStream, ClientError> {
        let total = request.deadline.unwrap_or(self.limits.total).min(self.limits.total);
        let max_body = request.max_body.unwrap_or(self.limits.max_body).min(self.limits.max_body);
        let bounds = Bounds { deadline: deadline(total), idle: self.limits.idle, max_body };
        let answer = timeout_at(bounds.deadline, self.follow(request, bounds)).await;
        answer.map_err(|_| ClientError::TimedOut(Phase::Response))?
    }

    async fn follow(
        &self,
        request: Request,
        bounds: Bounds,
    ) -> Result<ResponseStream, ClientError> {
        let Request { method, url, headers, body, follow, .. } = request;
        if matches!(method, Method::CONNECT | Method::TRACE) {
            return Err(ClientError::Method);
        }
        let mut pool = &self.any;
        let mut hop = Hop { method, to: pool.rules.judge(&url)?, headers, body };
        for _ in 0..=self.limits.max_redirects {
            let (head, body) = self.exchange(pool, &hop).await?.into_parts();
            // SECURITY: a stranger may run a public server, and must not reach through us what only
            // we may reach.
            if is_public(&head.extensions) {
                pool = &self.public;
            }
            let terms = Terms { rules: &pool.rules, has_identity: self.has_identity };
            let next = if follow { hop.next(terms, head.status, &head.headers)? } else { None };
            match next {
                Some(next) => hop = next,
                None => {
                    check_coding(&head.headers)?;
                    let (status, headers, from) = (head.status, head.headers, hop.to);
                    return Ok(ResponseStream { status, headers, from, body, bounds });
                }
            }
        }
        Err(ClientError::TooManyRedirects { limit: self.limits.max_redirects })
    }

    async fn exchange(
        &self,
        pool: &Pool,
        hop: &Hop,
    ) -> Result<http::Response<Incoming>, ClientError> {
        let wrong = |found| ClientError::Protocol { host: hop.to.host(), found };
        let mut request = http::Request::builder()
            .method(&hop.method)
            .uri(hop.to.url().as_str())
            .body(Full::new(hop.body.clone()))
            .map_err(|_| wrong("a URL that cannot be sent"))?;
        *request.headers_mut() = hop.headers.clone();
        let identity = HeaderValue::from_static("identity");
        request.headers_mut().insert(header::ACCEPT_ENCODING, identity);
        let response = pool.connections.request(request).await;
        let response = response.map_err(|error| self.explain(&error, hop))?;
        if response.status().is_informational() {
            return Err(wrong("a switch to another protocol"));
        }
        Ok(response)
    }

    /// What is behind hyper's error: ours when no connection was made, else what hyper met.
    fn explain(&self, error: &hyper_util::client::legacy::Error, hop: &Hop) -> ClientError {
        let mut cause: Option<&(dyn Error + 'static)> = Some(error);
        let mut found = "nothing";
        while let Some(current) = cause {
            if let Some(own) = current.downcast_ref::<ClientError>() {
                return own.clone();
            }
            if let Some(hyper) = current.downcast_ref::<hyper::Error>() {
                if hyper.is_parse_too_large() {
                    return ClientError::HeadTooLarge { limit: self.limits.max_head.max(MIN_HEAD) };
                }
                found = if hyper.is_parse() { "something else" } else { "a connection that broke" };
            }
            cause = current.source();
        }
        ClientError::Protocol { host: hop.to.host(), found }
    }
}

/// Whether an answer came from a public address, or from an unknown one.
fn is_public(extensions: &Extensions) -> bool {
    let peer = extensions.get::<Peer>();
    peer.is_none_or(|Peer(address)| classify(*address) == AddressClass::Public)
}

/// Refuses a coding: it was not asked for, and what it unpacks to has no bound. Pieces of known
/// length are none; hyper puts them together.
fn check_coding(headers: &HeaderMap) -> Result<(), ClientError> {
    let is = |name, known: &[u8]| {
        let mut values = headers.get_all(name).iter();
        values.all(|value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(known))
    };
    if is(header::CONTENT_ENCODING, b"identity") && is(header::TRANSFER_ENCODING, b"chunked") {
        return Ok(());
    }
    Err(ClientError::Encoded)
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient")
            .field("rules", &self.any.rules)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use http::Extensions;

    use super::{Peer, is_public};

    // No public address can be had in a test, so this and the rules without grants stand for it.
    #[test]
    fn whatever_is_not_known_to_be_near_is_public() {
        assert!(is_public(&Extensions::new()));
        for (address, expected) in
            [("8.8.8.8", true), ("2606:4700::1", true), ("127.0.0.1", false), ("10.0.0.1", false)]
        {
            let mut extensions = Extensions::new();
            extensions.insert(Peer(address.parse().unwrap()));
            assert_eq!(is_public(&extensions), expected, "{address}");
        }
    }
}
