//! Tokens of authorization servers (RFC 7519): who signed them, for whom, and until when.
//!
//! The signature is checked by the audited library that the kernel signs with; what is read around
//! it goes through the same strict door as everything from outside. Time is an argument.

mod claims;
mod discovery;
mod error;
mod jwk;
mod keys;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chio_core::strict::{self, StrictError};
use serde_json::{Map, Value};

pub use claims::Claims;
pub use discovery::{AuthorizationServer, discover};
pub use error::{IssuerError, JwtError, KeysError};
pub use jwk::{Algorithm, JwkSet};
pub use keys::{IssuerKeys, RefreshRules};

use claims::Round;
use jwk::KeyQuery;

/// The longest token that is read, in bytes.
const MAX_TOKEN: usize = 16 * 1024;

/// How far clocks may differ, in seconds.
const LEEWAY: u64 = 60;

/// Types of tokens that are access tokens, or do not say (RFC 9068, RFC 8725 §3.11). Tokens for
/// other purposes are signed by the same keys.
const TYPES: [&str; 3] = ["jwt", "at+jwt", "application/at+jwt"];

/// Verifies tokens. Without issuers or audiences it believes none.
#[derive(Debug)]
pub struct JwtVerifier {
    issuers: Vec<(String, IssuerKeys)>,
    audiences: Vec<String>,
}

impl JwtVerifier {
    /// A verifier for tokens that were issued for one of these names of ours.
    pub fn new(audiences: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let audiences = audiences.into_iter().map(Into::into).collect();
        Self { issuers: Vec::new(), audiences }
    }

    /// As this, and believes this issuer, which signs with these keys.
    ///
    /// # Errors
    /// When it is no issuer's name, is known already, or the keys are discovered for another one.
    pub fn with_issuer(
        mut self,
        issuer: impl Into<String>,
        keys: IssuerKeys,
    ) -> Result<Self, IssuerError> {
        let issuer = issuer.into();
        // SECURITY: principals put `#` behind the issuer; a name with one could be two principals.
        if !is_issuer(&issuer) {
            return Err(IssuerError::Form);
        }
        if keys.issuer().is_some_and(|other| other != issuer) {
            return Err(IssuerError::OtherKeys);
        }
        if self.issuers.iter().any(|(own, _)| *own == issuer) {
            return Err(IssuerError::Repeated);
        }
        self.issuers.push((issuer, keys));
        Ok(self)
    }

    /// Verifies a token at a time, in Unix seconds. Keys that are not at hand are fetched.
    ///
    /// # Errors
    /// When anything about the token is not as it must be, or its issuer's keys cannot be had.
    pub async fn verify(&self, token: &str, now: u64) -> Result<Claims, JwtError> {
        if token.len() > MAX_TOKEN {
            return Err(JwtError::TooLong { limit: MAX_TOKEN });
        }
        let token = Parts::read(token)?;
        let wanted = check_header(&token.header)?;
        // Whose key to take is read before the signature is checked; it is believed only after.
        let issuer = claims::text(&token.payload, "iss")?.ok_or(JwtError::Claim("iss"))?;
        let own = self.issuers.iter().find(|(name, _)| *name == issuer);
        let (_, keys) = own.ok_or(JwtError::Issuer)?;
        let keys = keys.get(wanted, now).await?;
        let key = keys.find(wanted)?;
        if !key.has_signed(wanted.algorithm, token.signed.as_bytes(), &token.signature) {
            return Err(JwtError::Signature);
        }
        self.check_claims(issuer, token.payload, now)
    }

    fn check_claims(
        &self,
        issuer: String,
        all: Map<String, Value>,
        now: u64,
    ) -> Result<Claims, JwtError> {
        let expires_at = claims::time(&all, "exp", Round::Down)?.ok_or(JwtError::Claim("exp"))?;
        if now >= expires_at.saturating_add(LEEWAY) {
            return Err(JwtError::Expired);
        }
        let latest = now.saturating_add(LEEWAY);
        for name in ["nbf", "iat"] {
            if claims::time(&all, name, Round::Up)?.is_some_and(|time| time > latest) {
                return Err(JwtError::NotYetValid);
            }
        }
        let theirs = claims::texts(&all, "aud")?;
        if theirs.is_empty() {
            return Err(JwtError::Claim("aud"));
        }
        let audience = self.audiences.iter().find(|own| theirs.contains(&own.as_str()));
        let audience = audience.ok_or(JwtError::Audience)?.clone();
        let client_id = match claims::name(&all, "client_id")? {
            Some(id) => Some(id),
            None => claims::name(&all, "azp")?,
        };
        Ok(Claims {
            issuer,
            subject: claims::name(&all, "sub")?,
            audience,
            scopes: claims::scopes(&all)?,
            client_id,
            tenant: claims::tenant(&all)?,
            token_id: claims::text(&all, "jti")?,
            expires_at,
            all,
        })
    }
}

/// Checks a header and returns the key that it names.
fn check_header(header: &Map<String, Value>) -> Result<KeyQuery<'_>, JwtError> {
    // SECURITY: what is critical and not understood may change what the signature means.
    if header.contains_key("crit") {
        return Err(JwtError::Critical);
    }
    let text = |name, wrong| match header.get(name) {
        None => Ok(None),
        Some(value) => value.as_str().map(Some).ok_or(JwtError::Malformed(wrong)),
    };
    let name = text("alg", "an `alg` that is no text")?;
    // SECURITY: `none` and the symmetric algorithms have no name here.
    let algorithm = Algorithm::ALL.into_iter().find(|own| Some(own.name()) == name);
    let algorithm = algorithm.ok_or(JwtError::Algorithm)?;
    let kind = text("typ", "a `typ` that is no text")?;
    if kind.is_some_and(|kind| !TYPES.contains(&kind.to_ascii_lowercase().as_str())) {
        return Err(JwtError::Type);
    }
    let id = text("kid", "a `kid` that is no text")?;
    Ok(KeyQuery { id, algorithm })
}

/// A token, taken apart and not yet believed.
struct Parts<'a> {
    signed: &'a str,
    header: Map<String, Value>,
    payload: Map<String, Value>,
    signature: Vec<u8>,
}

impl<'a> Parts<'a> {
    fn read(token: &'a str) -> Result<Self, JwtError> {
        let form = JwtError::Malformed("something else than three parts");
        let (signed, signature) = token.rsplit_once('.').ok_or_else(|| form.clone())?;
        let (header, payload) = signed.split_once('.').ok_or_else(|| form.clone())?;
        if payload.contains('.') {
            return Err(form);
        }
        let wrong = |_| JwtError::Malformed("parts that are no base64url");
        Ok(Self {
            signed,
            header: object("header", header)?,
            payload: object("payload", payload)?,
            signature: URL_SAFE_NO_PAD.decode(signature).map_err(wrong)?,
        })
    }
}

fn object(part: &'static str, text: &str) -> Result<Map<String, Value>, JwtError> {
    let wrong = |_| JwtError::Malformed("parts that are no base64url");
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(wrong)?;
    strict::object_from_slice(&bytes).map_err(|error| {
        // Not the error itself: it repeats names that stand in the token.
        let found = match error {
            StrictError::DuplicateMember { .. } => "a member twice",
            StrictError::TooDeep { .. } => "too many levels",
            _ => "something else",
        };
        JwtError::Json { part, found }
    })
}

/// Whether a text can be an issuer's name.
fn is_issuer(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c: char| matches!(c, '?' | '#') || c.is_control())
}
