//! What a token says.

use std::fmt;

use serde_json::{Map, Value};

use super::error::JwtError;

/// The longest name of a subject, in bytes (OpenID Connect Core §2 has 255 characters of ASCII).
const MAX_NAME: usize = 255;

/// Claims that name the tenant, the first that is there counts.
const TENANT: [&str; 4] = ["tenant_id", "tenant", "tid", "org_id"];

/// The end of the year 9999, after which no time is written. What comes later ends here, so that
/// code that reckons with it stays within every type of time.
const LAST: u64 = 253_402_300_799;

/// What a verified token says.
#[derive(Clone, PartialEq, Eq)]
pub struct Claims {
    /// Who issued it.
    pub issuer: String,
    /// The issuer's name for whom it stands for.
    pub subject: Option<String>,
    /// Which of our names it was issued for.
    pub audience: String,
    /// What it allows.
    pub scopes: Vec<String>,
    /// The client that it was issued to.
    pub client_id: Option<String>,
    /// The tenant that it was issued in.
    pub tenant: Option<String>,
    /// Its own name.
    pub token_id: Option<String>,
    /// When it ends, in Unix seconds.
    pub expires_at: u64,
    /// Every claim, as it came.
    pub all: Map<String, Value>,
}

impl fmt::Debug for Claims {
    // Other claims may be anything, also secrets and names of people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claims")
            .field("issuer", &self.issuer)
            .field("subject", &self.subject)
            .field("audience", &self.audience)
            .field("scopes", &self.scopes)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

/// A text claim; an error when it is something else than text.
pub(super) fn text(
    claims: &Map<String, Value>,
    name: &'static str,
) -> Result<Option<String>, JwtError> {
    match claims.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(JwtError::Claim(name)),
    }
}

/// The name of a subject or client, which must be short and on one line; none when it is empty.
pub(super) fn name(
    claims: &Map<String, Value>,
    name: &'static str,
) -> Result<Option<String>, JwtError> {
    let Some(text) = text(claims, name)? else { return Ok(None) };
    if text.len() > MAX_NAME || text.contains(char::is_control) {
        return Err(JwtError::Claim(name));
    }
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// The tenant that a token was issued in.
pub(super) fn tenant(claims: &Map<String, Value>) -> Result<Option<String>, JwtError> {
    TENANT.iter().find_map(|claim| name(claims, claim).transpose()).transpose()
}

/// A list of texts, or a single one.
pub(super) fn texts<'a>(
    claims: &'a Map<String, Value>,
    name: &'static str,
) -> Result<Vec<&'a str>, JwtError> {
    match claims.get(name) {
        None => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![text]),
        Some(Value::Array(list)) => {
            let texts: Option<Vec<_>> = list.iter().map(Value::as_str).collect();
            texts.ok_or(JwtError::Claim(name))
        }
        Some(_) => Err(JwtError::Claim(name)),
    }
}

/// In which direction the fraction of a time goes.
#[derive(Clone, Copy)]
pub(super) enum Round {
    Down,
    Up,
}

/// A time in Unix seconds, which may have a fraction on the wire.
pub(super) fn time(
    claims: &Map<String, Value>,
    name: &'static str,
    round: Round,
) -> Result<Option<u64>, JwtError> {
    let Some(value) = claims.get(name) else { return Ok(None) };
    if let Some(whole) = value.as_u64() {
        return Ok(Some(whole.min(LAST)));
    }
    let number = value.as_f64().filter(|number| number.is_finite() && *number >= 0.0);
    let number = number.ok_or(JwtError::Claim(name))?;
    let rounded = match round {
        Round::Down => number.floor(),
        Round::Up => number.ceil(),
    };
    // Beyond the range of the type it stops at the end of it.
    Ok(Some((rounded as u64).min(LAST)))
}

/// What a token allows: `scope` (RFC 8693), or `scp` as some servers name it.
pub(super) fn scopes(claims: &Map<String, Value>) -> Result<Vec<String>, JwtError> {
    let name = if claims.contains_key("scope") { "scope" } else { "scp" };
    let words = texts(claims, name)?;
    let words = words.iter().flat_map(|text| text.split(' ')).filter(|word| !word.is_empty());
    Ok(words.map(str::to_owned).collect())
}
