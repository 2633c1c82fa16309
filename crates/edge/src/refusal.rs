//! Why a request is refused before it is read, whatever its protocol makes of that.

use axum::http::header::{HeaderName, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use chio_core::registry::ErrorCode;
use chio_net::auth::{AuthError, Challenge, OriginError};
use chio_net::jwt::JwtError;
use chio_net::places::TooMany;

use crate::body::BodyError;

/// After how many seconds a client may come again for which there was no room.
const BUSY: u64 = 2;

/// A request that is refused before it is read.
#[derive(Debug, Clone)]
pub struct Refusal {
    /// The status of the answer.
    pub status: StatusCode,
    /// The registered code.
    pub code: ErrorCode,
    /// The reason, for people.
    pub message: String,
    /// A header that says how to be accepted: a challenge, or when to come back.
    pub header: Option<(HeaderName, HeaderValue)>,
}

impl Refusal {
    /// A request whose form is wrong.
    pub fn malformed(status: StatusCode, message: impl Into<String>) -> Self {
        let code = ErrorCode::InvalidRequestShape;
        Self { status, code, message: message.into(), header: None }
    }

    /// A credential that is not accepted.
    pub fn unauthenticated(message: impl Into<String>) -> Self {
        let code = ErrorCode::AuthMissingOrInvalid;
        Self { status: StatusCode::UNAUTHORIZED, code, message: message.into(), header: None }
    }

    /// The same, asking for another credential.
    #[must_use]
    pub fn challenged(self) -> Self {
        let challenge = AuthError::Missing.challenge(&Challenge::default());
        Self { header: challenge.map(|challenge| (WWW_AUTHENTICATE, challenge)), ..self }
    }

    /// There is no room for the request now; it may come again in a moment.
    pub fn busy(message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::SERVICE_UNAVAILABLE,
            code: ErrorCode::InternalError,
            message: message.into(),
            header: Some((RETRY_AFTER, HeaderValue::from(BUSY))),
        }
    }

    /// Too many requests; the next one may come after this time.
    pub fn rate_limited(seconds: u64) -> Self {
        Self {
            status: StatusCode::TOO_MANY_REQUESTS,
            code: ErrorCode::InternalError,
            message: "expected fewer requests, found too many in too short a time".to_owned(),
            header: Some((RETRY_AFTER, HeaderValue::from(seconds))),
        }
    }
}

impl From<AuthError> for Refusal {
    fn from(error: AuthError) -> Self {
        let challenge = error.challenge(&Challenge::default());
        // SECURITY: where the issuer's keys are, and why they cannot be had, is the operator's to know.
        let message = match &error {
            AuthError::Token(JwtError::Keys(_)) => {
                "the token cannot be checked now: the keys of its issuer are unavailable".to_owned()
            }
            error => error.to_string(),
        };
        Self {
            status: StatusCode::from_u16(error.status()).unwrap_or(StatusCode::UNAUTHORIZED),
            header: challenge.map(|challenge| (WWW_AUTHENTICATE, challenge)),
            ..Self::unauthenticated(message)
        }
    }
}

impl From<BodyError> for Refusal {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::Crowded(_) => Self::busy(error.to_string()),
            error => Self::malformed(error.status(), error.to_string()),
        }
    }
}

impl From<TooMany> for Refusal {
    fn from(error: TooMany) -> Self {
        Self::busy(error.to_string())
    }
}

impl From<OriginError> for Refusal {
    fn from(error: OriginError) -> Self {
        Self::malformed(StatusCode::FORBIDDEN, error.to_string())
    }
}
