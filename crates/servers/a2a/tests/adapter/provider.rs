//! A real authorization server that gives tokens for client credentials.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::server::{Reply, Seen, Server};

/// What a provider says besides the token.
#[derive(Debug, Clone)]
pub(crate) struct Gives {
    pub(crate) expires_in: Option<i64>,
    pub(crate) token_type: &'static str,
    /// Whether credentials are taken from the body alone.
    pub(crate) body_only: bool,
    /// What its metadata name as its issuer; its own URL when none.
    pub(crate) issuer: Option<&'static str>,
    /// What its metadata name as its token endpoint; its own when none.
    pub(crate) endpoint: Option<String>,
}

impl Default for Gives {
    fn default() -> Self {
        let expires_in = Some(3600);
        Self { expires_in, token_type: "Bearer", body_only: false, issuer: None, endpoint: None }
    }
}

/// A provider for the client `client-id` with the secret `client secret`.
pub(crate) struct Provider {
    pub(crate) server: Server,
    given: Arc<AtomicUsize>,
    /// The tokens that are still good.
    good: Arc<Mutex<Vec<String>>>,
}

impl Provider {
    pub(crate) async fn start(gives: Gives) -> Self {
        let (given, good) = (Arc::new(AtomicUsize::new(0)), Arc::<Mutex<Vec<String>>>::default());
        let (counter, list) = (Arc::clone(&given), Arc::clone(&good));
        let server = Server::start(move |seen| match seen.path.as_str() {
            "/.well-known/openid-configuration" => Reply::json(&metadata(seen, &gives)),
            "/token" if knows(seen, gives.body_only) => {
                let number = counter.fetch_add(1, Ordering::SeqCst) + 1;
                let token = format!("token-{number}");
                list.lock().unwrap().push(token.clone());
                let mut answer = json!({"access_token": token, "token_type": gives.token_type});
                if let Some(expires_in) = gives.expires_in {
                    answer["expires_in"] = json!(expires_in);
                }
                Reply::json(&answer)
            }
            "/token" => {
                Reply::json(&json!({"error": "invalid_client", "came": seen.text()})).status(401)
            }
            _ => Reply::text(404, "no"),
        })
        .await;
        Self { server, given, good }
    }

    /// How many tokens were given.
    pub(crate) fn given(&self) -> usize {
        self.given.load(Ordering::SeqCst)
    }

    /// Takes back every token.
    pub(crate) fn revoke(&self) {
        self.good.lock().unwrap().clear();
    }

    /// A check whether a request came with a good token.
    pub(crate) fn judge(&self) -> impl Fn(&Seen) -> bool + Send + Sync + 'static {
        let good = Arc::clone(&self.good);
        move |seen| {
            let came = seen.header("authorization").and_then(|it| it.strip_prefix("Bearer "));
            came.is_some_and(|came| good.lock().unwrap().iter().any(|good| good == came))
        }
    }

    /// What was asked of the token endpoint.
    pub(crate) fn asked(&self) -> Vec<Seen> {
        self.server.seen().into_iter().filter(|seen| seen.path == "/token").collect()
    }
}

fn metadata(seen: &Seen, gives: &Gives) -> Value {
    let issuer = gives.issuer.map_or_else(|| seen.base.clone(), str::to_owned);
    let endpoint = gives.endpoint.clone().unwrap_or_else(|| format!("{}/token", seen.base));
    json!({"issuer": issuer, "token_endpoint": endpoint, "jwks_uri": format!("{issuer}/keys")})
}

/// Whether a request shows that it is the client.
fn knows(seen: &Seen, body_only: bool) -> bool {
    let body = seen.text();
    assert!(body.starts_with("grant_type=client_credentials"), "{body}");
    assert_eq!(seen.header("content-type"), Some("application/x-www-form-urlencoded"));
    // `client-id:client+secret`, since both are form-encoded first.
    let basic = seen.header("authorization") == Some("Basic Y2xpZW50LWlkOmNsaWVudCtzZWNyZXQ=");
    let in_body = body.ends_with("client_id=client-id&client_secret=client+secret");
    assert!(!(basic && in_body), "once is enough");
    in_body || (basic && !body_only)
}
