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
    // A token that names no subject stands for itself alone.
    let subject = match (&claims.subject, &claims.client_id) {
        (Some(subject), _) => format!("sub:{subject}"),
        (None, Some(client)) => format!("client:{client}"),
        (None, None) => format!("token:{fingerprint}"),
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
