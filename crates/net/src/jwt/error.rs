//! Why a token is not accepted.

use chio_core::strict::StrictError;

use crate::client::ClientError;

/// Why a token is not accepted. Nothing of the token appears in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JwtError {
    /// Too long to be read.
    #[error("expected a token of at most {limit} bytes, found a longer one")]
    TooLong {
        /// The bound.
        limit: usize,
    },
    /// Not a signed token.
    #[error("expected a signed token, found {0}")]
    Malformed(&'static str),
    /// A header or a payload that is no JSON object, or names a member twice.
    #[error("expected a JSON object as the token's {part}, found {found}")]
    Json {
        /// `header` or `payload`.
        part: &'static str,
        /// What came instead.
        found: &'static str,
    },
    /// Signed in a way that is not allowed.
    #[error("expected a token signed with an allowed algorithm, found another")]
    Algorithm,
    /// A token for another purpose.
    #[error("expected an access token, found another type of token")]
    Type,
    /// The header demands something that is not understood here.
    #[error("expected a header without `crit`, found one with it")]
    Critical,
    /// A claim that must be there is not, or is of another kind.
    #[error("expected a valid claim `{0}`, found none")]
    Claim(&'static str),
    /// From an issuer that is not trusted.
    #[error("expected a token of a trusted issuer, found another's")]
    Issuer,
    /// For another server.
    #[error("expected a token for this server, found one for another")]
    Audience,
    /// Too late.
    #[error("expected a token that is still valid, found an expired one")]
    Expired,
    /// Too early.
    #[error("expected a token that is already valid, found one from the future")]
    NotYetValid,
    /// A key that the issuer does not have.
    #[error("expected a token signed with a key of its issuer, found an unknown key")]
    UnknownKey,
    /// Several keys that could be meant.
    #[error("expected a token that names its key, found several that fit")]
    AmbiguousKey,
    /// Not signed by that key.
    #[error("expected a token signed by its issuer, found another signature")]
    Signature,
    /// The issuer's keys cannot be had. Unlike the others, this is not the token's fault.
    #[error("cannot check the token: {0}")]
    Keys(#[from] KeysError),
}

/// Why an issuer cannot be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IssuerError {
    /// A name that no issuer has (RFC 8414 §2).
    #[error(
        "expected an issuer without query, fragment and control characters, found one with them"
    )]
    Form,
    /// Keys that are discovered for another one.
    #[error("expected keys that are discovered for this issuer, found those of another")]
    OtherKeys,
    /// A name that is known already.
    #[error("expected each issuer once, found one twice")]
    Repeated,
}

/// Why an issuer's keys cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeysError {
    /// They cannot be reached.
    #[error("cannot fetch the issuer's {document}: {error}")]
    Fetch {
        /// Keys or metadata.
        document: &'static str,
        /// What is wrong.
        error: ClientError,
    },
    /// The server answers with something else.
    #[error("expected the issuer's {document} with status 200, found {status}")]
    Status {
        /// Keys or metadata.
        document: &'static str,
        /// The status.
        status: u16,
    },
    /// What came is something else.
    #[error("expected the issuer's {document} as JSON: {error}")]
    Json {
        /// Keys or metadata.
        document: &'static str,
        /// What is wrong.
        error: StrictError,
    },
    /// The metadata are another issuer's.
    #[error("expected the metadata of the issuer that was asked for, found another's")]
    OtherIssuer,
    /// An issuer that cannot have metadata.
    #[error("expected an issuer without query and fragment, found one with them")]
    NoIssuer,
    /// The metadata of an https issuer lead to a place that others can change on the way.
    #[error("expected `{member}` of an https issuer over https, found another scheme")]
    Downgrade {
        /// Which member of the metadata.
        member: &'static str,
    },
    /// The metadata name no keys.
    #[error("expected `jwks_uri` in the issuer's metadata, found none")]
    NoKeysUri,
    /// No key that can be used here.
    #[error("expected keys that can be used here, found none")]
    NoKeys,
    /// The fetch broke off.
    #[error("expected the issuer's keys, found that the fetch broke off")]
    BrokenOff,
}
