//! Principals as tokens name them.

use chio_core::hash::sha256_hex;
use chio_core::principal::{Credential, Principal};
use serde_json::Value;

use super::OAUTH;
use crate::jwt::Claims;

/// Claims that name the tenant, the first that is there counts.
const TENANT_CLAIMS: [&str; 4] = ["tenant_id", "tenant", "tid", "org_id"];

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
    let name = format!("{OAUTH}{}#{subject}", claims.issuer);
    let tenant = TENANT_CLAIMS.iter().find_map(|name| claims.all.get(*name)?.as_str());
    let groups = claims.all.get("groups").and_then(Value::as_array).into_iter().flatten();
    let groups = groups.filter_map(Value::as_str).map(str::to_owned).collect();
    let tenant = tenant.map(str::to_owned);
    let Claims { issuer, scopes, expires_at, all, .. } = claims;
    let credential = Credential::OauthBearer { issuer, scopes, fingerprint, expires_at };
    Principal { tenant, groups, claims: all, ..Principal::new(name, credential) }
}
