//! Who connected, and how that is told to the kernel.

use chio_core::hash::sha256_hex;
use chio_core::session::{AuthContext, AuthMethod, OauthBearer, Transport};

use super::{ANONYMOUS, OAUTH};
use crate::jwt::Claims;

/// How somebody showed who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// Not at all.
    Anonymous,
    /// With a token that the operator has set.
    StaticBearer,
    /// With a token of an authorization server.
    OauthBearer,
}

/// Who connected. No token is in it, only its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Who, unmistakably: names that the operator has given, and those of each authorization
    /// server, never meet.
    pub principal: String,
    /// How they showed it.
    pub method: Method,
    /// The authorization server.
    pub issuer: Option<String>,
    /// Its name for the principal.
    pub subject: Option<String>,
    /// Which of our names the token was issued for.
    pub audience: Option<String>,
    /// The client that the token was issued to.
    pub client_id: Option<String>,
    /// What the token allows.
    pub scopes: Vec<String>,
    /// The SHA-256 of the token, in hex.
    pub token_fingerprint: Option<String>,
    /// When the token ends, in Unix seconds.
    pub expires_at: Option<u64>,
}

impl Identity {
    /// Nobody in particular.
    #[must_use]
    pub fn anonymous() -> Self {
        Self {
            principal: ANONYMOUS.to_owned(),
            method: Method::Anonymous,
            issuer: None,
            subject: None,
            audience: None,
            client_id: None,
            scopes: Vec::new(),
            token_fingerprint: None,
            expires_at: None,
        }
    }

    pub(super) fn of_static_token(principal: &str, token: &str) -> Self {
        Self {
            principal: principal.to_owned(),
            method: Method::StaticBearer,
            token_fingerprint: Some(sha256_hex(token.as_bytes())),
            ..Self::anonymous()
        }
    }

    pub(super) fn of_claims(claims: Claims, token: &str) -> Self {
        let fingerprint = sha256_hex(token.as_bytes());
        let Claims { issuer, subject, audience, scopes, client_id, expires_at, .. } = claims;
        // A token that names nobody stands for itself alone.
        let who = match (&subject, &client_id) {
            (Some(subject), _) => format!("sub:{subject}"),
            (None, Some(client)) => format!("client:{client}"),
            (None, None) => format!("token:{fingerprint}"),
        };
        Self {
            principal: format!("{OAUTH}{issuer}#{who}"),
            method: Method::OauthBearer,
            issuer: Some(issuer),
            subject,
            audience: Some(audience),
            client_id,
            scopes,
            token_fingerprint: Some(fingerprint),
            expires_at: Some(expires_at),
        }
    }

    /// The method as session anchors carry it.
    #[must_use]
    pub fn auth_method(&self) -> AuthMethod {
        match self.method {
            Method::Anonymous => AuthMethod::Anonymous,
            Method::StaticBearer => AuthMethod::StaticBearer {
                principal: self.principal.clone(),
                token_fingerprint: self.token_fingerprint.clone().unwrap_or_default(),
            },
            Method::OauthBearer => AuthMethod::OauthBearer(Box::new(OauthBearer {
                principal: Some(self.principal.clone()),
                issuer: self.issuer.clone(),
                subject: self.subject.clone(),
                audience: self.audience.clone(),
                scopes: self.scopes.clone(),
                token_fingerprint: self.token_fingerprint.clone(),
                ..OauthBearer::default()
            })),
        }
    }

    /// The context as session anchors carry it, for a session over HTTP.
    #[must_use]
    pub fn auth_context(&self, origin: Option<String>) -> AuthContext {
        AuthContext { transport: Transport::StreamableHttp, method: self.auth_method(), origin }
    }
}
