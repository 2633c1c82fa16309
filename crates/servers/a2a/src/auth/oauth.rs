//! Tokens that authorization servers give for client credentials.

use std::collections::HashMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chio_core::strict;
use chio_net::client::{ClientError, Request, Response};
use serde::Deserialize;
use tokio::sync::Mutex;
use url::form_urlencoded::{Serializer, byte_serialize};

use crate::card::security::Scheme;
use crate::interface::untrusted;
use crate::place::origin;
use crate::secret::Secret;
use crate::transport::Transport;

/// A token is not used any more so long before it expires.
const MARGIN: Duration = Duration::from_secs(30);
/// How long a token is kept that does not say when it expires.
const UNSAID: Duration = Duration::from_secs(60);
/// How long the place is remembered where tokens are given.
const METADATA: Duration = Duration::from_secs(600);
/// How many tokens and places are remembered.
const MAX_KEPT: usize = 256;
/// What stands behind the name of a provider to find what it has.
const WELL_KNOWN: &str = "/.well-known/openid-configuration";

/// Where tokens are given, as a card says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// Here.
    Endpoint(String),
    /// Where the document here says.
    Metadata(String),
    /// Where the operator says, for a card that says nothing.
    Unsaid,
}

impl Source {
    /// Where the tokens of a scheme are given.
    pub(crate) fn from_scheme(scheme: &Scheme) -> Option<Self> {
        match scheme {
            Scheme::OAuth2 { token_url: Some(url), .. } => Some(Self::Endpoint(url.clone())),
            Scheme::OAuth2 { metadata_url: Some(url), .. } => Some(Self::Metadata(url.clone())),
            Scheme::OAuth2 { .. } => Some(Self::Unsaid),
            Scheme::OpenId { url } => Some(Self::Metadata(url.clone())),
            _ => None,
        }
    }
}

/// Which token: from where, and good for what.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TokenKey {
    endpoint: String,
    scopes: Vec<String>,
}

/// Tokens that are still good. While one call gets a token, others that need one wait.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    kept: Mutex<HashMap<TokenKey, Kept>>,
    endpoints: Mutex<HashMap<String, (String, Duration)>>,
}

#[derive(Debug)]
struct Kept {
    token: Secret,
    /// On the monotonic clock.
    until: Duration,
}

#[derive(Deserialize)]
struct Granted {
    access_token: String,
    token_type: String,
    expires_in: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Metadata {
    issuer: Option<String>,
    token_endpoint: Option<String>,
}

impl Tokens {
    /// A token for these scopes and those that are configured.
    ///
    /// # Errors
    /// When there is none, in words that hold no secret.
    pub(crate) async fn token(
        &self,
        transport: &Transport,
        source: &Source,
        scopes: &[String],
    ) -> Result<(TokenKey, Secret), String> {
        let config = transport.config();
        if config.oauth.credentials.is_none() {
            return Err(
                "expected a bearer token or client credentials, found none configured".to_owned()
            );
        }
        let endpoint = self.endpoint(transport, source).await?;
        let mut scopes: Vec<String> = scopes.iter().chain(&config.oauth.scopes).cloned().collect();
        scopes.sort();
        scopes.dedup();
        let key = TokenKey { endpoint, scopes };
        let mut kept = self.kept.lock().await;
        let now = config.clock.monotonic();
        kept.retain(|_, it| it.until > now);
        if let Some(it) = kept.get(&key) {
            return Ok((key, it.token.clone()));
        }
        let (token, lives) = granted(transport, &key).await?;
        let until = config.clock.monotonic().saturating_add(lives);
        if !lives.is_zero() && kept.len() < MAX_KEPT {
            kept.insert(key.clone(), Kept { token: token.clone(), until });
        }
        Ok((key, token))
    }

    /// Forgets a token that was not taken, unless there is already another.
    pub(crate) async fn forget(&self, key: &TokenKey, token: &Secret) {
        let mut kept = self.kept.lock().await;
        if kept.get(key).is_some_and(|it| it.token == *token) {
            kept.remove(key);
        }
    }

    /// Where tokens are given: where the operator says, else where the card does.
    async fn endpoint(&self, transport: &Transport, source: &Source) -> Result<String, String> {
        let places = transport.places();
        if let Some(own) = &transport.config().oauth.token_endpoint {
            let judged = places.judge("the token endpoint", own);
            return judged.map(|it| it.url().to_string()).map_err(|error| error.to_string());
        }
        let (named, what) = match source {
            Source::Endpoint(url) => (url.clone(), "the token endpoint"),
            Source::Metadata(url) => {
                (self.named_endpoint(transport, url).await?, "the token endpoint of the metadata")
            }
            Source::Unsaid => return Err("it names no place where tokens are given".to_owned()),
        };
        let judged = places.judge_named(what, &named).map_err(|error| error.to_string())?;
        let origin = origin(judged.url());
        if !transport.config().trusts(&origin) {
            return Err(untrusted(what, &origin));
        }
        Ok(judged.url().to_string())
    }

    async fn named_endpoint(&self, transport: &Transport, url: &str) -> Result<String, String> {
        let mut endpoints = self.endpoints.lock().await;
        let now = transport.config().clock.monotonic();
        endpoints.retain(|_, (_, until)| *until > now);
        if let Some((endpoint, _)) = endpoints.get(url) {
            return Ok(endpoint.clone());
        }
        let endpoint = discovered(transport, url).await?;
        if endpoints.len() < MAX_KEPT {
            endpoints.insert(url.to_owned(), (endpoint.clone(), now.saturating_add(METADATA)));
        }
        Ok(endpoint)
    }
}

/// What a provider says about where it gives tokens.
async fn discovered(transport: &Transport, url: &str) -> Result<String, String> {
    let judged = transport.places().judge_named("the provider's metadata", url);
    let judged = judged.map_err(|error| error.to_string())?;
    let failed = |problem: String| format!("the provider's metadata: {problem}");
    let request = Request::get(judged.url().as_str()).with_header("accept", "application/json");
    let request = request.map_err(|error| failed(error.to_string()))?;
    let answer = transport.ask(request).await.map_err(|error| failed(error.to_string()))?;
    if !answer.status.is_success() {
        return Err(failed(format!("HTTP {}", answer.status.as_u16())));
    }
    let metadata: Metadata =
        strict::object_from_slice(&answer.body).map_err(|error| failed(error.to_string()))?;
    // SECURITY: without this one provider could speak for another.
    let expected = judged.url().as_str().strip_suffix(WELL_KNOWN);
    if let (Some(expected), Some(issuer)) = (expected, &metadata.issuer)
        && issuer.trim_end_matches('/') != expected.trim_end_matches('/')
    {
        return Err(failed("expected the provider's own, found another issuer's".to_owned()));
    }
    metadata
        .token_endpoint
        .ok_or_else(|| failed("expected `token_endpoint`, found none".to_owned()))
}

/// Asks for a token: first as RFC 6749 prefers, then with the credentials in the body.
async fn granted(transport: &Transport, key: &TokenKey) -> Result<(Secret, Duration), String> {
    let failed = |problem: String| format!("no token: {problem}");
    let missing = || failed("expected client credentials, found none configured".to_owned());
    let config = transport.config();
    let (id, secret) = config.oauth.credentials.as_ref().ok_or_else(missing)?;
    let mut answer = ask(transport, key, (id, secret), false).await?;
    if matches!(answer.status.as_u16(), 400 | 401) {
        answer = ask(transport, key, (id, secret), true).await?;
    }
    if !answer.status.is_success() {
        return Err(failed(format!("HTTP {}{}", answer.status.as_u16(), error_code(&answer.body))));
    }
    read(&answer.body).map_err(failed)
}

/// The code of an error, as RFC 6749 writes it. Nothing else is repeated: what was sent there is
/// nothing but secrets.
fn error_code(body: &[u8]) -> String {
    let value = strict::from_slice::<serde_json::Value>(body).unwrap_or_default();
    let code = value.get("error").and_then(serde_json::Value::as_str).unwrap_or_default();
    let known = [
        "invalid_request",
        "invalid_client",
        "invalid_grant",
        "unauthorized_client",
        "unsupported_grant_type",
        "invalid_scope",
    ];
    known.iter().find(|known| **known == code).map(|code| format!(": {code}")).unwrap_or_default()
}

async fn ask(
    transport: &Transport,
    key: &TokenKey,
    client: (&Secret, &Secret),
    in_body: bool,
) -> Result<Response, String> {
    let failed = |error: ClientError| format!("no token: {error}");
    let request = token_request(key, client, in_body).map_err(failed)?;
    transport.ask(request).await.map_err(failed)
}

fn token_request(
    key: &TokenKey,
    (id, secret): (&Secret, &Secret),
    in_body: bool,
) -> Result<Request, ClientError> {
    let mut form = Serializer::new(String::new());
    form.append_pair("grant_type", "client_credentials");
    if !key.scopes.is_empty() {
        form.append_pair("scope", &key.scopes.join(" "));
    }
    if in_body {
        form.append_pair("client_id", id.expose());
        form.append_pair("client_secret", secret.expose());
    }
    let mut request = Request::post_json(&*key.endpoint, form.finish())
        .without_redirects()
        .with_header("content-type", "application/x-www-form-urlencoded")
        .and_then(|request| request.with_header("accept", "application/json"))?;
    if !in_body {
        let encoded = |text: &Secret| byte_serialize(text.expose().as_bytes()).collect::<String>();
        let pair = Secret::new(format!("{}:{}", encoded(id), encoded(secret)));
        let pair = Secret::new(format!("Basic {}", STANDARD.encode(pair.expose())));
        request = request.with_header("authorization", pair.expose())?;
    }
    Ok(request)
}

/// Reads what was given, and for how long it is kept.
fn read(body: &[u8]) -> Result<(Secret, Duration), String> {
    let granted: Granted =
        strict::object_from_slice(body).map_err(|error| format!("the answer: {error}"))?;
    let token = Secret::new(granted.access_token);
    let is_sound = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic());
    if !is_sound(token.expose()) {
        return Err("expected `access_token` of visible ASCII, found something else".to_owned());
    }
    if !granted.token_type.eq_ignore_ascii_case("bearer") {
        return Err("expected `token_type` bearer, found another".to_owned());
    }
    let lives = match granted.expires_in {
        None | Some(serde_json::Value::Null) => UNSAID,
        Some(value) => {
            let text = value.as_str().and_then(|text| text.trim().parse().ok());
            let seconds = value.as_f64().or(text).ok_or("expected a number as `expires_in`")?;
            let seconds = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
            seconds.saturating_sub(MARGIN)
        }
    };
    Ok((token, lives))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::read;

    #[test]
    fn a_token_is_kept_until_shortly_before_it_expires() {
        for (expires, lives) in [
            ("", 60),
            (r#", "expires_in": null"#, 60),
            (r#", "expires_in": 3600"#, 3570),
            (r#", "expires_in": "3600""#, 3570),
            (r#", "expires_in": 30"#, 0),
            (r#", "expires_in": 0"#, 0),
            (r#", "expires_in": -5"#, 0),
        ] {
            let body = format!(r#"{{"access_token": "t", "token_type": "Bearer"{expires}}}"#);
            let (token, found) = read(body.as_bytes()).unwrap();
            assert_eq!((token.expose(), found), ("t", Duration::from_secs(lives)), "{expires}");
        }
    }

    #[test]
    fn what_is_no_bearer_token_is_refused_without_repeating_it() {
        for body in [
            r#"{"access_token": "hunter2"}"#,
            r#"{"access_token": "hunter2", "token_type": "mac"}"#,
            r#"{"access_token": "hunter2 x", "token_type": "bearer"}"#,
            r#"{"access_token": "hunter2\n", "token_type": "bearer"}"#,
            r#"{"access_token": "", "token_type": "bearer"}"#,
            r#"{"access_token": "hunter2", "token_type": "bearer", "expires_in": "soon"}"#,
            r#"["hunter2"]"#,
            "hunter2",
        ] {
            let message = read(body.as_bytes()).unwrap_err();
            assert!(!message.contains("hunter2"), "{message}");
        }
    }
}
