//! Where an authorization server has its keys (RFC 8414, OpenID Connect Discovery).

use std::time::Duration;

use chio_core::strict;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::error::KeysError;
use super::is_issuer;
use crate::client::{HttpClient, Request};

/// Bytes of metadata or of a set of keys.
const MAX_DOCUMENT: usize = 256 * 1024;

/// Time for each of them.
const DEADLINE: Duration = Duration::from_secs(10);

const METADATA: &str = "metadata";

/// What an authorization server says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AuthorizationServer {
    /// Its name, exactly as tokens carry it.
    pub issuer: String,
    /// Where its keys are.
    pub jwks_uri: Option<String>,
    /// Where it gives tokens.
    pub token_endpoint: Option<String>,
}

impl AuthorizationServer {
    // SECURITY: an https name is worth nothing when its keys come over a line that others change.
    fn checked(self) -> Result<Self, KeysError> {
        if !is_https(&self.issuer) {
            return Ok(self);
        }
        let urls = [("jwks_uri", &self.jwks_uri), ("token_endpoint", &self.token_endpoint)];
        for (member, url) in urls {
            if url.as_deref().is_some_and(|url| !is_https(url)) {
                return Err(KeysError::Downgrade { member });
            }
        }
        Ok(self)
    }
}

fn is_https(url: &str) -> bool {
    url.split_once("://").is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("https"))
}

/// Asks an issuer for its metadata, at each place where they may be.
///
/// # Errors
/// When there are none, or they are another issuer's.
pub async fn discover(client: &HttpClient, issuer: &str) -> Result<AuthorizationServer, KeysError> {
    let mut missing = KeysError::NoIssuer;
    for url in metadata_urls(client, issuer)? {
        match fetch::<AuthorizationServer>(client, &url, METADATA).await {
            // SECURITY: without this, one issuer could speak for another (RFC 8414 §3.3).
            Ok(server) if server.issuer != issuer => return Err(KeysError::OtherIssuer),
            Ok(server) => return server.checked(),
            // Some servers answer every path with a page of theirs.
            Err(error @ (KeysError::Status { .. } | KeysError::Json { .. })) => missing = error,
            Err(error) => return Err(error),
        }
    }
    Err(missing)
}

/// Where metadata may be: RFC 8414 puts the well-known path before the issuer's own, OpenID
/// Connect behind it.
fn metadata_urls(client: &HttpClient, issuer: &str) -> Result<Vec<String>, KeysError> {
    if !is_issuer(issuer) {
        return Err(KeysError::NoIssuer);
    }
    let judged = client.rules().judge(issuer);
    let judged =
        judged.map_err(|error| KeysError::Fetch { document: METADATA, error: error.into() })?;
    let origin = judged.url().origin().ascii_serialization();
    let path = judged.url().path().trim_end_matches('/');
    let mut urls = vec![
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        urls.push(format!("{origin}{path}/.well-known/openid-configuration"));
    }
    Ok(urls)
}

/// Fetches a JSON object.
pub(super) async fn fetch<T: DeserializeOwned>(
    client: &HttpClient,
    url: &str,
    document: &'static str,
) -> Result<T, KeysError> {
    let failed = |error| KeysError::Fetch { document, error };
    let request = Request::get(url).with_max_body(MAX_DOCUMENT).within(DEADLINE);
    let request = request.with_header("accept", "application/json").map_err(failed)?;
    let response = client.send(request).await.map_err(failed)?;
    match response.status.as_u16() {
        200 => strict::object_from_slice(&response.body)
            .map_err(|error| KeysError::Json { document, error }),
        status => Err(KeysError::Status { document, status }),
    }
}
