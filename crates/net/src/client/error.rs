//! Why a request has no answer.

use std::io;

use crate::address::AddressError;
use crate::memory::Crowded;
use crate::sse::SseError;

/// What was waited for when the time ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// A name's addresses, a connection, a TLS handshake.
    Connect,
    /// The head of the answer.
    Response,
    /// The whole body.
    Body,
    /// The next piece of a stream.
    Idle,
}

impl Phase {
    const fn name(self) -> &'static str {
        match self {
            Self::Connect => "a connection",
            Self::Response => "a response",
            Self::Body => "the whole body",
            Self::Idle => "the next piece of the stream",
        }
    }
}

impl ClientError {
    /// Whether anything of a request without redirects may have reached the server.
    pub const fn was_sent(&self) -> bool {
        !matches!(
            self,
            Self::Address(_)
                | Self::Method
                | Self::Header(_)
                | Self::Credentials { .. }
                | Self::Resolve { .. }
                | Self::Connect { .. }
                | Self::Tls { .. }
                | Self::NoRoots
                | Self::TimedOut(Phase::Connect)
        )
    }
}

/// Why a request has no answer. Headers, bodies, paths and queries never appear in it; hosts do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The address rules do not allow it.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A method that is not for requests to servers.
    #[error("expected another method than CONNECT and TRACE, found one of them")]
    Method,
    /// A header that a caller may not set, or that is no header.
    #[error("expected a header that a request may carry, found `{0}`, or a value with other bytes")]
    Header(String),
    /// What was given for TLS cannot be used.
    #[error("expected {expected}, found something else")]
    Credentials {
        /// What was expected.
        expected: &'static str,
    },
    /// The name is not known, or no name server answers.
    #[error("cannot look up `{host}`: {kind}")]
    Resolve {
        /// The host.
        host: String,
        /// What the system says.
        kind: io::ErrorKind,
    },
    /// No address of the host takes the connection.
    #[error("cannot connect to `{host}`: {kind}")]
    Connect {
        /// The host.
        host: String,
        /// What the system says of the last address.
        kind: io::ErrorKind,
    },
    /// The other end is not who it should be, or speaks no TLS.
    #[error("no TLS with `{host}`: {reason}")]
    Tls {
        /// The host.
        host: String,
        /// What is wrong.
        reason: String,
    },
    /// No root certificate to trust.
    #[error("expected root certificates for https, found none on this system")]
    NoRoots,
    /// Time ran out.
    #[error("expected {} in time, found nothing", .0.name())]
    TimedOut(Phase),
    /// A head that does not end.
    #[error("expected at most {limit} bytes of headers, found more or too many of them")]
    HeadTooLarge {
        /// The bound.
        limit: usize,
    },
    /// A body that does not end.
    #[error("expected a body of at most {limit} bytes, found a larger one")]
    BodyTooLarge {
        /// The bound.
        limit: usize,
    },
    /// There is no memory for the answer.
    #[error(transparent)]
    Crowded(#[from] Crowded),
    /// A coding that was not asked for.
    #[error("expected no coding of the body but `chunked`, found another")]
    Encoded,
    /// The answer leads on and on.
    #[error("expected at most {limit} redirects, found more")]
    TooManyRedirects {
        /// The bound.
        limit: usize,
    },
    /// The answer leads from an encrypted connection to one that is not.
    #[error("expected a redirect to https, found one to http")]
    Downgrade,
    /// The answer leads to another origin, where something of the request must not go.
    #[error(
        "expected a redirect within the origin, since the request has {carried}, found another"
    )]
    OtherOrigin {
        /// What must not go there.
        carried: &'static str,
    },
    /// The answer leads to no place.
    #[error("expected one `location` that is text, found something else")]
    Location,
    /// The other end hung up, or what it sent is no HTTP.
    #[error("expected an HTTP response from `{host}`, found {found}")]
    Protocol {
        /// The host.
        host: String,
        /// What came instead.
        found: &'static str,
    },
    /// The stream is no stream of events.
    #[error(transparent)]
    Events(#[from] SseError),
    /// The answer is something else than a stream of events.
    #[error("expected `text/event-stream`, found another content type")]
    NotEvents,
    /// The answer is no success.
    #[error("expected a stream of events with status 200, found {status}")]
    EventStatus {
        /// The status.
        status: u16,
    },
}
