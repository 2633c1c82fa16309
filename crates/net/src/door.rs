//! A door over HTTP: who may come in, and what capability and proof they bring along.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chio_core::capability::{CapabilityToken, DpopProof, PresentedToken};
use chio_core::hash::sha256_hex;
use chio_core::strict;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName};

use crate::peer::{AuthError, Identity, Method, OriginRules, PeerAuthenticator};

/// The header that carries a capability.
pub const CAPABILITY: HeaderName = HeaderName::from_static("x-chio-capability");
/// The header that carries a proof of possession.
pub const PROOF: HeaderName = HeaderName::from_static("dpop");
/// The largest capability or proof that is read.
const MAX_HEADER: usize = 64 << 10;

/// Who is let in over HTTP.
pub struct HttpDoor {
    /// Who has to show what.
    pub peers: PeerAuthenticator,
    /// Which hosts and pages may be named.
    pub origins: OriginRules,
    /// Whether clients may come with a capability of their own.
    pub capabilities: bool,
}

impl fmt::Debug for HttpDoor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpDoor").field("peers", &self.peers).finish_non_exhaustive()
    }
}

/// A capability that came with a request.
#[derive(Debug, Clone)]
pub struct Presented {
    /// The token.
    pub token: PresentedToken,
    /// SHA-256 of the text that it came as, in hex.
    pub hash: String,
}

impl Presented {
    /// Reads a capability from the text of its JSON; none when the text is something else.
    #[must_use]
    pub fn read(text: &[u8]) -> Option<Self> {
        let value = strict::from_slice(text).ok()?;
        let token: CapabilityToken = serde_json::from_value(value).ok()?;
        Some(Self { token: token.into(), hash: sha256_hex(text) })
    }
}

/// Why what came in a header is not taken. Nothing of it is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The door takes no capabilities.
    #[error("no capabilities are taken in headers here")]
    NotTaken,
    /// Several capabilities, or a huge one.
    #[error("expected one `X-Chio-Capability` header of at most 64 KiB")]
    Several,
    /// No capability.
    #[error("expected a capability as JSON in the header")]
    Capability,
    /// No proof.
    #[error("expected a proof of possession as base64url of JSON")]
    Proof,
}

impl HttpDoor {
    /// The capability in `X-Chio-Capability`.
    ///
    /// # Errors
    /// When there is one and it cannot be read or is not taken here.
    pub fn presented(&self, headers: &HeaderMap) -> Result<Option<Presented>, HeaderError> {
        let mut values = headers.get_all(CAPABILITY).iter();
        let Some(value) = values.next() else { return Ok(None) };
        if !self.capabilities {
            return Err(HeaderError::NotTaken);
        }
        if values.next().is_some() || value.len() > MAX_HEADER {
            return Err(HeaderError::Several);
        }
        Presented::read(value.as_bytes()).map(Some).ok_or(HeaderError::Capability)
    }

    /// Who sent a request with these headers. Whoever came with a capability need not show more.
    ///
    /// # Errors
    /// When nobody did whom the door knows.
    pub async fn identify(
        &self,
        headers: &HeaderMap,
        presented: Option<&Presented>,
        now: u64,
    ) -> Result<Visitor, AuthError> {
        let identity = match self.peers.authenticate(headers, now).await {
            Ok(identity) => identity,
            // A capability says by itself what its holder may do.
            Err(AuthError::Missing) if presented.is_some() => Identity::anonymous(),
            Err(error) => return Err(error),
        };
        Ok(Visitor::new(identity, presented))
    }
}

/// Somebody who came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visitor {
    /// Who they have shown to be; none for nobody in particular.
    pub principal: Option<String>,
    /// Everything that tells them from others.
    pub name: String,
}

impl Visitor {
    /// Somebody with this identity, and the capability that they came with.
    #[must_use]
    pub fn new(identity: Identity, presented: Option<&Presented>) -> Self {
        let known = identity.method != Method::Anonymous;
        let token = identity.token_fingerprint.unwrap_or_default();
        let capability = presented.map(|presented| presented.hash.as_str()).unwrap_or_default();
        let name = format!("{}|{token}|{capability}", identity.principal);
        Self { principal: known.then_some(identity.principal), name }
    }
}

/// The capability in `Authorization: Bearer`, as JSON or base64url of it. None when what is there
/// is something else, which others may know.
#[must_use]
pub fn bearer_capability(headers: &HeaderMap) -> Option<Presented> {
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
        return Presented::read(text.as_bytes());
    }
    let json = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()?;
    if json.first() == Some(&b'{') { Presented::read(&json) } else { None }
}

/// The proof of possession that came with a request.
///
/// # Errors
/// When there is one and it cannot be read.
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

    fn door(capabilities: bool) -> HttpDoor {
        let peers = PeerAuthenticator::anonymous();
        HttpDoor { peers, origins: OriginRules::any_host(), capabilities }
    }

    #[test]
    fn a_capability_comes_in_its_header_where_the_door_takes_one() {
        let json = serde_json::to_string(&token()).unwrap();
        let found = |door: &HttpDoor, values: &[&str]| {
            let presented = door.presented(&headers(&CAPABILITY, values));
            presented.map(|found| found.map(|found| found.token.id.clone()))
        };
        assert_eq!(found(&door(true), &[]), Ok(None));
        assert_eq!(found(&door(false), &[]), Ok(None));
        assert_eq!(found(&door(true), &[&json]), Ok(Some("cap-1".to_owned())));
        assert_eq!(found(&door(false), &[&json]), Err(HeaderError::NotTaken));
        assert_eq!(found(&door(true), &[&json, &json]), Err(HeaderError::Several));
        assert_eq!(found(&door(true), &["{}"]), Err(HeaderError::Capability));
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
            if let Some(found) = found {
                assert_eq!(
                    (&*found.token.id, &found.hash),
                    ("cap-1", &sha256_hex(json.as_bytes()))
                );
            }
        }
    }

    #[tokio::test]
    async fn whoever_brings_a_capability_need_not_show_more_and_is_told_from_others_by_it() {
        let peers = PeerAuthenticator::anonymous();
        let peers = peers.with_token("alice", "0123456789abcdef").unwrap();
        let door = HttpDoor { peers, ..door(true) };
        let json = serde_json::to_string(&token()).unwrap();
        let presented = Presented::read(json.as_bytes()).unwrap();
        let nothing = HeaderMap::new();
        let by_capability = door.identify(&nothing, Some(&presented), 0).await.unwrap();
        assert_eq!(by_capability.principal, None);
        assert_eq!(by_capability.name, format!("anonymous||{}", presented.hash));
        assert_eq!(door.identify(&nothing, None, 0).await, Err(AuthError::Missing));
        let alice = headers(&AUTHORIZATION, &["Bearer 0123456789abcdef"]);
        let known = door.identify(&alice, None, 0).await.unwrap();
        assert_eq!(known.principal.as_deref(), Some("alice"));
        let other = headers(&AUTHORIZATION, &["Bearer 0123456789abcdeX"]);
        assert_eq!(door.identify(&other, Some(&presented), 0).await, Err(AuthError::Unknown));
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
