//! Authentication of HTTP requests: where they come from, the principal, the capability and the proof
//! of possession that they bring.

use std::fmt;

use axum::http::header::AUTHORIZATION;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, Uri};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chio_core::capability::{CapabilityToken, DpopProof, PresentedToken};
use chio_core::principal::Principal;
use chio_core::strict;
use chio_net::auth::{AuthError, Authenticator, OriginError, OriginRules};

/// The header that carries a capability.
pub const CAPABILITY: HeaderName = HeaderName::from_static("x-chio-capability");
/// The header that carries a proof of possession.
pub const PROOF: HeaderName = HeaderName::from_static("dpop");
/// The largest capability or proof that is read, in bytes.
const MAX_HEADER: usize = 64 << 10;

/// How the requests of one HTTP listener authenticate.
pub struct HttpAuth {
    /// Bearer tokens and authorization servers.
    pub authenticator: Authenticator,
    /// Hosts and web origins that a request may name.
    pub origins: OriginRules,
    /// Whether clients may present a capability of their own.
    pub capabilities: bool,
}

impl fmt::Debug for HttpAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpAuth")
            .field("authenticator", &self.authenticator)
            .finish_non_exhaustive()
    }
}

/// Why a header is not accepted. Nothing of it is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The listener accepts no capabilities.
    #[error("no capabilities are taken in headers here")]
    NotAccepted,
    /// Several capabilities, or one that is too large.
    #[error("expected one `X-Chio-Capability` header of at most 64 KiB")]
    Several,
    /// Not a capability.
    #[error("expected a capability as JSON in the header")]
    Capability,
    /// Not a proof.
    #[error("expected a proof of possession as base64url of JSON")]
    Proof,
}

impl HttpAuth {
    /// Checks `Host` and `Origin`, so that no web page reaches the listener by a name of its own.
    ///
    /// # Errors
    /// When they name another server, or a page that may not call this one.
    pub fn check_origin(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), OriginError> {
        self.origins.check(headers, uri.authority().map(Authority::as_str))
    }

    /// The capability in `X-Chio-Capability`. Its signature is not checked here.
    ///
    /// # Errors
    /// When there is one that cannot be read, or none is accepted.
    pub fn capability(&self, headers: &HeaderMap) -> Result<Option<PresentedToken>, HeaderError> {
        let mut values = headers.get_all(CAPABILITY).iter();
        let Some(value) = values.next() else { return Ok(None) };
        if !self.capabilities {
            return Err(HeaderError::NotAccepted);
        }
        if values.next().is_some() || value.len() > MAX_HEADER {
            return Err(HeaderError::Several);
        }
        parse_capability(value.as_bytes()).map(Some).ok_or(HeaderError::Capability)
    }

    /// The principal of a request. One that presents a capability needs no bearer token.
    ///
    /// # Errors
    /// When the request has neither, or an unknown token.
    pub async fn authenticate(
        &self,
        headers: &HeaderMap,
        capability: Option<PresentedToken>,
        now: u64,
    ) -> Result<Principal, AuthError> {
        let principal = match self.authenticator.authenticate(headers, now).await {
            // A capability says by itself what its holder may do.
            Err(AuthError::Missing) if capability.is_some() => Principal::anonymous(),
            authenticated => authenticated?,
        };
        Ok(principal.with_capability(capability))
    }
}

/// Parses a capability from its JSON; none for any other text.
#[must_use]
pub fn parse_capability(text: &[u8]) -> Option<PresentedToken> {
    let value = strict::from_slice(text).ok()?;
    let token: CapabilityToken = serde_json::from_value(value).ok()?;
    Some(token.into())
}

/// The capability in `Authorization: Bearer`, as JSON or base64url of JSON. None when the header
/// holds anything else, which an authenticator may know.
#[must_use]
pub fn bearer_capability(headers: &HeaderMap) -> Option<PresentedToken> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (value, None) = (values.next()?, values.next()) else { return None };
    if value.len() > MAX_HEADER {
        return None;
    }
    let (scheme, text) = value.to_str().ok()?.split_once(' ')?;
    let text = text.trim_matches(' ');
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    if text.starts_with('{') {
        return parse_capability(text.as_bytes());
    }
    let json = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()?;
    if json.first() == Some(&b'{') { parse_capability(&json) } else { None }
}

/// The proof of possession of a request.
///
/// # Errors
/// When there is one that cannot be read.
pub fn proof(headers: &HeaderMap) -> Result<Option<Box<DpopProof>>, HeaderError> {
    let Some(value) = headers.get(PROOF) else { return Ok(None) };
    if value.len() > MAX_HEADER {
        return Err(HeaderError::Proof);
    }
    let text = URL_SAFE_NO_PAD.decode(value.as_bytes()).map_err(|_| HeaderError::Proof)?;
    let value = strict::from_slice(&text).map_err(|_| HeaderError::Proof)?;
    let proof = serde_json::from_value(value);
    proof.map(|proof| Some(Box::new(proof))).map_err(|_| HeaderError::Proof)
}

#[cfg(test)]
mod tests {
    use chio_core::capability::{ChioScope, Validity};
    use chio_core::crypto::Keypair;
    use chio_core::signed::Signed;

    use super::*;

    fn token() -> CapabilityToken {
        let key = |seed| Keypair::from_seed(&[seed; 32]);
        let (issuer, subject) = (key(1), key(2).public_key().clone());
        let validity = Validity { issued_at: 1, expires_at: 2 };
        let scope = ChioScope::default();
        let draft =
            CapabilityToken::draft("cap-1", issuer.public_key().clone(), subject, scope, validity);
        draft.signed(&issuer).unwrap()
    }

    fn headers(name: &HeaderName, values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (name.clone(), value.parse().unwrap())).collect()
    }

    fn auth(capabilities: bool) -> HttpAuth {
        let authenticator = Authenticator::anonymous();
        HttpAuth { authenticator, origins: OriginRules::any_host(), capabilities }
    }

    #[test]
    fn a_capability_comes_in_its_header_where_the_listener_accepts_one() {
        let json = serde_json::to_string(&token()).unwrap();
        let found = |auth: &HttpAuth, values: &[&str]| {
            let capability = auth.capability(&headers(&CAPABILITY, values));
            capability.map(|found| found.map(|found| found.id.clone()))
        };
        assert_eq!(found(&auth(true), &[]), Ok(None));
        assert_eq!(found(&auth(false), &[]), Ok(None));
        assert_eq!(found(&auth(true), &[&json]), Ok(Some("cap-1".to_owned())));
        assert_eq!(found(&auth(false), &[&json]), Err(HeaderError::NotAccepted));
        assert_eq!(found(&auth(true), &[&json, &json]), Err(HeaderError::Several));
        assert_eq!(found(&auth(true), &["{}"]), Err(HeaderError::Capability));
    }

    #[test]
    fn a_bearer_value_is_a_capability_as_json_or_as_base64url_of_it_and_nothing_else() {
        let json = serde_json::to_string(&token()).unwrap();
        let encoded = URL_SAFE_NO_PAD.encode(&json);
        for (values, is_one) in [
            (vec![format!("Bearer {json}")], true),
            (vec![format!("bearer {encoded}")], true),
            (vec![format!("Bearer {encoded}==")], true),
            (vec![format!("Basic {encoded}")], false),
            (vec![format!("Bearer {encoded}.{encoded}.x")], false),
            (vec!["Bearer {}".to_owned()], false),
            (vec!["Bearer static-token-of-somebody".to_owned()], false),
            (vec![format!("Bearer {json}"), format!("Bearer {json}")], false),
            (vec![], false),
        ] {
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            let found = bearer_capability(&headers(&AUTHORIZATION, &values));
            assert_eq!(found.is_some(), is_one, "{}", values.len());
            assert!(found.is_none_or(|found| *found == token()));
        }
    }

    #[tokio::test]
    async fn a_request_with_a_capability_needs_no_token_and_belongs_to_its_subject() {
        let authenticator = Authenticator::anonymous();
        let authenticator = authenticator.with_token("alice", "0123456789abcdef").unwrap();
        let auth = HttpAuth { authenticator, ..auth(true) };
        let capability = || Some(PresentedToken::from(token()));
        let nothing = HeaderMap::new();
        let by_capability = auth.authenticate(&nothing, capability(), 0).await.unwrap();
        assert!(!by_capability.is_authenticated());
        assert_eq!(by_capability.owner_id(), format!("anonymous|{}", token().subject));
        assert_eq!(auth.authenticate(&nothing, None, 0).await, Err(AuthError::Missing));
        let alice = headers(&AUTHORIZATION, &["Bearer 0123456789abcdef"]);
        let known = auth.authenticate(&alice, None, 0).await.unwrap();
        assert_eq!((known.is_authenticated(), &*known.name), (true, "alice"));
        let other = headers(&AUTHORIZATION, &["Bearer 0123456789abcdeX"]);
        assert_eq!(auth.authenticate(&other, capability(), 0).await, Err(AuthError::Unknown));
    }

    #[test]
    fn a_proof_is_base64url_of_json_and_anything_else_is_refused() {
        assert_eq!(proof(&HeaderMap::new()).unwrap(), None);
        let wrong = URL_SAFE_NO_PAD.encode("{}");
        for value in ["not a proof", &wrong, &"A".repeat(MAX_HEADER + 1)] {
            assert_eq!(proof(&headers(&PROOF, &[value])), Err(HeaderError::Proof));
        }
    }
}
