//! Why a request is not authenticated, and what the answer says (RFC 6750 §3, RFC 9728 §5.1).

use http::HeaderValue;

use crate::jwt::JwtError;

/// Why a request is not authenticated. No token appears in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// No credential came.
    #[error("expected an `Authorization` header with a bearer token, found none")]
    Missing,
    /// Another scheme.
    #[error("expected the `Bearer` scheme in the `Authorization` header, found another")]
    Scheme,
    /// A header that cannot be read.
    #[error("expected one `Authorization` header with a bearer token, found {0}")]
    Malformed(&'static str),
    /// An unknown token.
    #[error("expected a known bearer token, found another")]
    Unknown,
    /// A token of an authorization server that does not verify.
    #[error(transparent)]
    Token(#[from] JwtError),
    /// A token that counts only with a proof of possession.
    #[error("expected a plain bearer token, found one bound to a key, of which no proof is taken")]
    Bound,
    /// A token that allows too little.
    #[error("expected a token with the scopes `{}`, found one without them", .0.join(" "))]
    Scope(Vec<String>),
}

/// What every challenge of a server says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Challenge {
    /// What the server protects, by name.
    pub realm: Option<String>,
    /// The URL of the server's metadata, where clients learn which authorization server to ask.
    pub resource_metadata: Option<String>,
    /// What a token must allow.
    pub scopes: Vec<String>,
}

impl AuthError {
    /// The status of the answer.
    pub const fn status(&self) -> u16 {
        match self {
            Self::Malformed(_) => 400,
            Self::Scope(_) => 403,
            // The token may be good: its keys are unavailable.
            Self::Token(JwtError::Keys(_)) => 503,
            Self::Missing | Self::Scheme | Self::Unknown | Self::Bound | Self::Token(_) => 401,
        }
    }

    /// The code of RFC 6750; none where no credential came that could be wrong.
    pub const fn code(&self) -> Option<&'static str> {
        match self {
            Self::Missing | Self::Scheme | Self::Token(JwtError::Keys(_)) => None,
            Self::Malformed(_) => Some("invalid_request"),
            Self::Unknown | Self::Bound | Self::Token(_) => Some("invalid_token"),
            Self::Scope(_) => Some("insufficient_scope"),
        }
    }

    /// The value of `WWW-Authenticate`; none where no other token would help.
    pub fn challenge(&self, challenge: &Challenge) -> Option<HeaderValue> {
        if self.status() == 503 {
            return None;
        }
        let scopes = match self {
            Self::Scope(scopes) => scopes.join(" "),
            _ => challenge.scopes.join(" "),
        };
        let description = self.code().map(|_| self.to_string());
        let members = [
            ("realm", challenge.realm.as_deref()),
            ("error", self.code()),
            ("error_description", description.as_deref()),
            ("scope", Some(scopes.as_str()).filter(|scopes| !scopes.is_empty())),
            ("resource_metadata", challenge.resource_metadata.as_deref()),
        ];
        let members: Vec<String> = members
            .into_iter()
            .filter_map(|(name, value)| Some(format!("{name}=\"{}\"", quoted(value?))))
            .collect();
        let text = format!("Bearer {}", members.join(", "));
        HeaderValue::try_from(text.trim_end()).ok()
    }
}

/// A text as it may stand between quotes (RFC 6750 §3): nothing that would end or escape them.
fn quoted(text: &str) -> String {
    let plain = |c: char| (c.is_ascii_graphic() || c == ' ') && !matches!(c, '"' | '\\');
    text.chars().map(|c| if plain(c) { c } else { '\'' }).collect()
}
