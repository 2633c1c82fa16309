//! Authentication of HTTP requests: where they come from, the principal, the capability and the proof
//! of possession that they bring, and the rate at which they come.

use std::net::{IpAddr, Ipv6Addr};

use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chio_core::capability::{CapabilityToken, DpopProof, PresentedToken};
use chio_core::principal::Principal;
use chio_core::strict;
use chio_net::auth::{AuthError, Authenticator, OriginError, OriginRules};
use chio_net::serve::{ClientAddress, ClientConnection};
use tokio::time::Instant;

use crate::limits::RateLimiter;
use crate::refusal::Refusal;

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

/// What a protocol reads from `Authorization: Bearer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bearer {
    /// A bearer token.
    Token,
    /// A bearer token, or a capability where the listener accepts capabilities.
    TokenOrCapability,
}

/// What the head of a request shows. A capability may follow in its body.
pub struct RequestHead {
    /// The address that the request comes from; none where the server does not say.
    pub from: Option<IpAddr>,
    /// The name by which the client's requests are counted.
    pub client: String,
    /// The principal, or why the request is not authenticated so far.
    pub principal: Result<Principal, AuthError>,
    /// The proof of possession, or why it is not one.
    pub proof: Result<Option<Box<DpopProof>>, HeaderError>,
}

impl From<HeaderError> for Refusal {
    fn from(error: HeaderError) -> Self {
        Self::unauthenticated(error.to_string()).challenged()
    }
}

impl HttpAuth {
    /// Checks `Host` and `Origin`, so that no web page reaches the listener by a name of its own.
    ///
    /// # Errors
    /// When they name another server, or a page that may not call this one.
    pub fn check_origin(&self, head: &Parts) -> Result<(), OriginError> {
        self.origins.check(&head.headers, head.uri.authority().map(Authority::as_str))
    }

    /// Authenticates a request by its head, and counts it against the rate limit: for its
    /// principal, or for its address where it names none. One that presents a capability needs no
    /// bearer token. `now` gives the time in Unix seconds, where it is needed.
    ///
    /// # Errors
    /// When the request names another server, presents a damaged capability, or is one too many.
    pub async fn authenticate(
        &self,
        head: &Parts,
        bearer: Bearer,
        limiter: &RateLimiter,
        now: impl FnOnce() -> u64 + Send,
    ) -> Result<RequestHead, Refusal> {
        self.check_origin(head)?;
        let headers = &head.headers;
        let may_be_capability = bearer == Bearer::TokenOrCapability;
        let as_bearer = bearer_capability(headers);
        let as_bearer = as_bearer.filter(|_| may_be_capability && self.capabilities);
        let is_bearer = as_bearer.is_some();
        let capability = same_capability(self.capability(headers)?, as_bearer)?;
        let principal = if is_bearer {
            Ok(Principal::anonymous())
        } else if may_be_capability
            && headers.contains_key(AUTHORIZATION)
            && !self.authenticator.is_required()
        {
            // SECURITY: a damaged capability must not be taken for none, which may do more.
            let expected = "expected no `Authorization`, or a capability as `Bearer`, found \
                            something else";
            return Err(Refusal::unauthenticated(expected).challenged());
        } else {
            match self.authenticator.authenticate(headers, now).await {
                // A capability says by itself what its holder may do.
                Err(AuthError::Missing) if capability.is_some() => Ok(Principal::anonymous()),
                authenticated => authenticated,
            }
        };
        // Without a capability in the body to come, a bad token is not counted: behind a proxy, those
        // who guess would use up the rate of everyone at the proxy's address.
        let principal = match principal {
            Err(error) if !may_be_capability => return Err(error.into()),
            principal => principal.map(|principal| principal.with_capability(capability)),
        };
        let from = head.extensions.get::<ClientAddress>().map(|address| address.0.ip());
        let client = match &principal {
            Ok(principal) if principal.is_authenticated() => principal.name.clone(),
            _ => from.map(|from| network_of(from).to_string()).unwrap_or_default(),
        };
        limiter.pass(&client, Instant::now()).map_err(Refusal::rate_limited)?;
        // Without authentication, all clients are one principal.
        if let (Ok(principal), Some(ClientConnection(place))) =
            (&principal, head.extensions.get::<ClientConnection>())
            && principal.is_authenticated()
        {
            place.belongs_to(&principal.name)?;
        }
        Ok(RequestHead { from, client, principal, proof: proof(headers) })
    }

    /// The capability in `X-Chio-Capability`. Its signature is not checked here.
    fn capability(&self, headers: &HeaderMap) -> Result<Option<PresentedToken>, HeaderError> {
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
}

/// The part of an address that a client does not choose: one host has a whole network of IPv6.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

/// The capability that a request presents in one of two places, or the same in both.
///
/// # Errors
/// When there are two that differ.
pub fn same_capability(
    one: Option<PresentedToken>,
    other: Option<PresentedToken>,
) -> Result<Option<PresentedToken>, Refusal> {
    match (one, other) {
        (Some(one), Some(other)) if one != other => {
            Err(Refusal::unauthenticated("expected one capability, found two that differ"))
        }
        (one, other) => Ok(one.or(other)),
    }
}

/// Parses a capability from its JSON; none for any other text.
pub fn parse_capability(text: &[u8]) -> Option<PresentedToken> {
    let value = strict::from_slice(text).ok()?;
    let token: CapabilityToken = serde_json::from_value(value).ok()?;
    Some(token.into())
}

/// The capability in `Authorization: Bearer`, as JSON or base64url of JSON. None when the header
/// holds anything else, which an authenticator may know.
fn bearer_capability(headers: &HeaderMap) -> Option<PresentedToken> {
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
fn proof(headers: &HeaderMap) -> Result<Option<Box<DpopProof>>, HeaderError> {
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
        let json = serde_json::to_string(&token()).unwrap();
        let limiter = RateLimiter::default();
        let of = async |authorization: Option<&str>, capability: bool| {
            let mut request = axum::http::Request::builder();
            if let Some(authorization) = authorization {
                request = request.header(AUTHORIZATION, authorization);
            }
            if capability {
                request = request.header(CAPABILITY, &json);
            }
            let (head, ()) = request.body(()).unwrap().into_parts();
            let head = auth.authenticate(&head, Bearer::Token, &limiter, || 0).await;
            head.map(|head| head.principal.unwrap()).map_err(|refusal| refusal.message)
        };
        let by_capability = of(None, true).await.unwrap();
        assert!(!by_capability.is_authenticated());
        assert_eq!(by_capability.owner_id(), format!("{}|anonymous", token().subject));
        assert_eq!(of(None, false).await, Err(AuthError::Missing.to_string()));
        let known = of(Some("Bearer 0123456789abcdef"), false).await.unwrap();
        assert_eq!((known.is_authenticated(), &*known.name), (true, "alice"));
        let other = of(Some("Bearer 0123456789abcdeX"), true).await;
        assert_eq!(other, Err(AuthError::Unknown.to_string()));
    }

    #[test]
    fn one_host_is_one_address() {
        for (address, network) in [
            ("192.0.2.7", "192.0.2.7"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("2001:db8:1:2::", "2001:db8:1:2::"),
        ] {
            assert_eq!(network_of(address.parse().unwrap()).to_string(), network);
        }
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
