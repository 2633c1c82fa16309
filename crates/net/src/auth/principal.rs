//! Principals as tokens name them.

use chio_core::hash::sha256_hex;
use chio_core::principal::{Credential, Principal};
use serde_json::Value;

use super::OAUTH;
use crate::jwt::Claims;

pub(super) fn from_static_token(name: &str, token: &str) -> Principal {
    let fingerprint = sha256_hex(token.as_bytes());
    Principal::new(name, Credential::StaticBearer { fingerprint })
}

pub(super) fn from_claims(claims: Claims, token: &str) -> Principal {
    let fingerprint = sha256_hex(token.as_bytes());
    // A token that names no subject stands for itself alone. SECURITY: without its signature, of which
    // ECDSA lets a holder make others.
    let signed = || sha256_hex(token.rsplit_once('.').map_or(token, |(it, _)| it).as_bytes());
    let subject = match (&claims.subject, &claims.client_id) {
        (Some(subject), _) => format!("sub:{subject}"),
        (None, Some(client)) => format!("client:{client}"),
        (None, None) => format!("token:{}", signed()),
    };
    // SECURITY: one issuer may give several tenants the same subjects. An issuer has no `#`.
    let tenant = claims
        .tenant
        .as_ref()
        .map(|tenant| format!("#tenant:{}", tenant.replace('%', "%25").replace('#', "%23")));
    let name = format!("{OAUTH}{}{}#{subject}", claims.issuer, tenant.unwrap_or_default());
    let groups = claims.all.get("groups").and_then(Value::as_array).into_iter().flatten();
    let groups = groups.filter_map(Value::as_str).map(str::to_owned).collect();
    let Claims { issuer, scopes, expires_at, tenant, all, .. } = claims;
    let credential = Credential::OauthBearer { issuer, scopes, fingerprint, expires_at };
    Principal { tenant, groups, claims: all, ..Principal::new(name, credential) }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::{Claims, from_claims};

    fn claims(subject: Option<&str>) -> Claims {
        Claims {
            issuer: "https://issuer.example".to_owned(),
            subject: subject.map(str::to_owned),
            audience: "chio".to_owned(),
            scopes: Vec::new(),
            client_id: None,
            tenant: None,
            token_id: None,
            expires_at: 1,
            all: Map::new(),
        }
    }

    #[test]
    fn a_token_without_a_subject_is_one_principal_by_what_was_signed() {
        let name = |token: &str| from_claims(claims(None), token).name;
        assert_eq!(name("head.body.one"), name("head.body.other"));
        assert_ne!(name("head.body.one"), name("head.boby.one"));
        let named = |token: &str| from_claims(claims(Some("alice")), token).name;
        assert_eq!(named("head.body.one"), named("another.token.of-hers"));
    }
}
