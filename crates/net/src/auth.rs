//! Authentication over HTTP: bearer tokens that the operator has set, and tokens of authorization
//! servers (RFC 6750).
//!
//! Tokens are never stored, printed or put into errors; their SHA-256 represents them.

mod bind;
mod challenge;
mod origin;
mod principal;

use std::fmt;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use chio_core::hash::{DIGEST_LEN, sha256, sha256_hex};
use chio_core::principal::{ANONYMOUS, Principal};
use http::HeaderMap;
use http::header::AUTHORIZATION;

pub use bind::{BindError, check_bind};
pub use challenge::{AuthError, Challenge};
pub use origin::{OriginError, OriginRules};

use crate::jwt::JwtVerifier;

/// The longest `Authorization` header that is read.
const MAX_AUTHORIZATION: usize = 20 * 1024;

/// The shortest token that an operator may set: 128 bits in hex, or 96 in base64.
const MIN_TOKEN: usize = 16;

/// Begins the principal of every token of an authorization server.
const OAUTH: &str = "oauth:";

/// Authenticates requests. Without any method every request is anonymous.
#[derive(Default)]
pub struct Authenticator {
    tokens: Vec<StaticToken>,
    jwt: Option<JwtVerifier>,
    scopes: Vec<String>,
}

struct StaticToken {
    digest: [u8; DIGEST_LEN],
    principal: String,
}

/// Why a token cannot be set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// Too short to be hard to guess.
    #[error("expected a token of at least {MIN_TOKEN} characters, found {0}")]
    Short(usize),
    /// Cannot stand in a header.
    #[error("expected a token of letters, digits and `-._~+/=`, found other characters")]
    Characters,
    /// A principal that could be taken for another one.
    #[error(
        "expected a principal that is not empty, not `{ANONYMOUS}` and not begun with `{OAUTH}`"
    )]
    Principal,
    /// A token that already stands for a principal.
    #[error("expected a new token, found one that already stands for a principal")]
    Repeated,
}

impl Authenticator {
    /// Every request is anonymous.
    pub fn anonymous() -> Self {
        Self::default()
    }

    /// As this, and a token that stands for a principal.
    ///
    /// # Errors
    /// When the token is too short, cannot stand in a header or is taken, or the principal is
    /// empty or looks like the anonymous one or one of an authorization server.
    pub fn with_token(mut self, principal: &str, token: &str) -> Result<Self, TokenError> {
        if token.len() < MIN_TOKEN {
            return Err(TokenError::Short(token.len()));
        }
        if !is_token(token) {
            return Err(TokenError::Characters);
        }
        if ["", ANONYMOUS].contains(&principal) || principal.starts_with(OAUTH) {
            return Err(TokenError::Principal);
        }
        let digest = sha256(token.as_bytes());
        if self.tokens.iter().any(|own| own.digest == digest) {
            return Err(TokenError::Repeated);
        }
        self.tokens.push(StaticToken { digest, principal: principal.to_owned() });
        Ok(self)
    }

    /// As this, and tokens of authorization servers.
    #[must_use]
    pub fn with_jwt(mut self, verifier: JwtVerifier) -> Self {
        self.jwt = Some(verifier);
        self
    }

    /// As this, and tokens of authorization servers must allow all of this.
    #[must_use]
    pub fn with_scopes(mut self, scopes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Whether requests have to authenticate.
    #[must_use]
    pub fn is_required(&self) -> bool {
        !self.tokens.is_empty() || self.jwt.is_some()
    }

    /// The principal that a token has when the operator names none.
    pub fn default_principal(token: &str) -> String {
        let digits: String = sha256_hex(token.as_bytes()).chars().take(16).collect();
        format!("static-bearer:{digits}")
    }

    /// Authenticates a request by its headers. `now` gives the time in Unix seconds, which only
    /// tokens of authorization servers need.
    ///
    /// # Errors
    /// When no token came, or none that is known.
    pub async fn authenticate(
        &self,
        headers: &HeaderMap,
        now: impl FnOnce() -> u64 + Send,
    ) -> Result<Principal, AuthError> {
        if !self.is_required() {
            return Ok(Principal::anonymous());
        }
        let token = bearer(headers)?;
        if let Some(name) = self.principal_name(token) {
            return Ok(principal::from_static_token(name, token));
        }
        let jwt = self.jwt.as_ref().ok_or(AuthError::Unknown)?;
        let claims = jwt.verify(token, now()).await?;
        // SECURITY: such a token is worth something only with a proof of its key (RFC 7800), and
        // none is checked here: a thief must not get in with it.
        if claims.all.contains_key("cnf") {
            return Err(AuthError::Bound);
        }
        let missing = self.scopes.iter().any(|scope| !claims.scopes.contains(scope));
        if missing {
            return Err(AuthError::Scope(self.scopes.clone()));
        }
        Ok(principal::from_claims(claims, token))
    }

    /// Whom a static token stands for. Every digest is compared, in constant time.
    fn principal_name(&self, token: &str) -> Option<&str> {
        let digest = sha256(token.as_bytes());
        let mut found = None;
        for own in &self.tokens {
            if verify_slices_are_equal(&own.digest, &digest).is_ok() {
                found = Some(own.principal.as_str());
            }
        }
        found
    }
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let principals: Vec<_> = self.tokens.iter().map(|token| &token.principal).collect();
        f.debug_struct("Authenticator")
            .field("principals", &principals)
            .field("jwt", &self.jwt)
            .field("scopes", &self.scopes)
            .finish()
    }
}

/// The bearer token of a request: of its one `Authorization` header, never of its URL.
fn bearer(headers: &HeaderMap) -> Result<&str, AuthError> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().ok_or(AuthError::Missing)?;
    // SECURITY: with two, this server and a proxy before it could believe different ones.
    if values.next().is_some() {
        return Err(AuthError::Malformed("several `Authorization` headers"));
    }
    if value.len() > MAX_AUTHORIZATION {
        return Err(AuthError::Malformed("an `Authorization` header that is too long"));
    }
    let text = value.to_str().map_err(|_| AuthError::Malformed("bytes that are no text"))?;
    let (scheme, token) = text.split_once(' ').unwrap_or((text, ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(AuthError::Scheme);
    }
    let token = token.trim_matches(' ');
    if is_token(token) { Ok(token) } else { Err(AuthError::Malformed("what is no bearer token")) }
}

/// Whether a text has the form of a bearer token (RFC 6750 §2.1).
fn is_token(text: &str) -> bool {
    let plain = text.trim_end_matches('=');
    let allowed = |byte: u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/')
    };
    !plain.is_empty() && plain.bytes().all(allowed)
}
