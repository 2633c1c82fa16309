//! Tokens of authorization servers: got, kept, used, and got again.

use std::sync::Arc;

use chio_a2a_adapter::{A2aAdapterConfig, A2aPartnerPolicy};
use serde_json::{Value, json};

use crate::agent::{RPC, card, model, with};
use crate::provider::{Gives, Provider};
use crate::server::{Reply, Server};
use crate::support::{TestClock, World, config};

/// An agent that takes the provider's tokens, declared in this way.
async fn agent(provider: &Provider, scheme: Value, scopes: Value) -> Server {
    let judge = provider.judge();
    Server::start(move |seen| {
        if seen.is_card() {
            let card =
                with(card(&seen.base, RPC), "/securitySchemes", json!({"oauthAuth": scheme}));
            return Reply::json(&with(card, "/security", json!([{"oauthAuth": scopes}])));
        }
        if judge(seen) { model(seen, RPC) } else { Reply::text(401, "no good token") }
    })
    .await
}

fn oauth(provider: &Provider) -> Value {
    let url = provider.server.url("/token");
    json!({"oauth2SecurityScheme": {"flows": {"clientCredentials": {"tokenUrl": url, "scopes": {}}}}})
}

fn openid(provider: &Provider) -> Value {
    let url = provider.server.url("/.well-known/openid-configuration");
    json!({"openIdConnectSecurityScheme": {"openIdConnectUrl": url}})
}

fn credentials(server: &Server) -> A2aAdapterConfig {
    config(server).with_oauth_client_credentials("client-id", "client secret")
}

/// A client that gets its tokens at another origin than the agent's, which is allowed.
fn client(server: &Server, tokens: &Server) -> A2aAdapterConfig {
    let policy = A2aPartnerPolicy::new("p").allow_interface_origin(server.url(""));
    credentials(server).with_partner_policy(policy.allow_interface_origin(tokens.url("")))
}

fn send() -> Value {
    json!({"message": "x"})
}

// covers: A2A-020, A2A-022, A2A-023, A2A-037
#[tokio::test]
async fn a_token_is_got_where_the_card_says_and_used_again() {
    for declare in [oauth, openid] {
        let provider = Provider::start(Gives::default()).await;
        let scheme = declare(&provider);
        let server = agent(&provider, scheme, json!(["read", "a2a.invoke"])).await;
        let config = client(&server, &provider.server)
            .with_oauth_scope("a2a.invoke")
            .with_oauth_scope("extra")
            .with_request_header("X-Partner", "p")
            .with_request_query("q", "1");
        let world = World::new(config).await;
        assert_eq!(provider.given(), 0, "nobody called yet");
        for _ in 0..3 {
            world.value(send()).await;
        }
        assert_eq!(provider.given(), 1);
        assert_eq!(server.last().header("authorization"), Some("Bearer token-1"));
        let asked = provider.asked().pop().unwrap();
        assert_eq!(asked.text(), "grant_type=client_credentials&scope=a2a.invoke+extra+read");
        assert_eq!(
            (asked.header("x-partner"), asked.query.as_deref()),
            (None, None),
            "those are the agent's"
        );
        assert_eq!(asked.headers.get("a2a-version"), None);
    }
}

#[tokio::test]
async fn our_secret_goes_to_nobody_while_something_else_is_missing() {
    let key = json!({"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}});
    for other in [json!({"zebraSecurityScheme": {}}), key] {
        let provider = Provider::start(Gives::default()).await;
        let scheme = oauth(&provider);
        let server = Server::start(move |seen| {
            if !seen.is_card() {
                return model(seen, RPC);
            }
            let schemes = json!({"a": scheme, "b": other});
            let card = with(card(&seen.base, RPC), "/securitySchemes", schemes);
            Reply::json(&with(card, "/security", json!([{"a": [], "b": []}])))
        })
        .await;
        let world = World::new(client(&server, &provider.server)).await;
        assert!(world.failure(send()).await.contains("auth negotiation failed"));
        assert_eq!(provider.asked().len(), 0, "nobody was shown our secret");
        assert_eq!(server.calls().len(), 0, "nothing went to the agent");
    }
}

#[tokio::test]
async fn the_operators_token_endpoint_counts_before_the_cards() {
    let (theirs, ours) =
        (Provider::start(Gives::default()).await, Provider::start(Gives::default()).await);
    for declare in [oauth, openid, |_: &Provider| json!({"oauth2SecurityScheme": {"flows": {}}})] {
        let server = agent(&ours, declare(&theirs), json!([])).await;
        let config = credentials(&server).with_oauth_token_endpoint(ours.server.url("/token"));
        World::new(config).await.value(send()).await;
    }
    assert!(theirs.server.seen().is_empty());
    assert_eq!(ours.given(), 3);
}

#[tokio::test]
async fn metadata_of_the_authorization_server_will_do() {
    let provider = Provider::start(Gives::default()).await;
    let url = provider.server.url("/.well-known/openid-configuration");
    let scheme = json!({"oauth2SecurityScheme": {"oauth2MetadataUrl": url, "flows": {}}});
    let server = agent(&provider, scheme, json!([])).await;
    World::new(client(&server, &provider.server)).await.value(send()).await;
    assert_eq!(provider.given(), 1);
}

#[tokio::test]
async fn credentials_go_into_the_body_where_the_header_is_not_taken() {
    let provider = Provider::start(Gives { body_only: true, ..Gives::default() }).await;
    let server = agent(&provider, oauth(&provider), json!([])).await;
    World::new(client(&server, &provider.server)).await.value(send()).await;
    let asked = provider.asked();
    assert_eq!(asked.len(), 2);
    assert!(asked[0].header("authorization").is_some());
    assert!(asked[1].header("authorization").is_none());
}

#[tokio::test]
async fn a_token_is_kept_for_as_long_as_it_says() {
    // How long it lives; then after how many seconds each call comes, and how many were given.
    for (expires_in, calls) in [
        (Some(100), [(0, 1), (69, 1), (1, 2)]),
        (Some(30), [(0, 1), (0, 2), (0, 3)]),
        (Some(0), [(0, 1), (0, 2), (0, 3)]),
        (Some(-1), [(0, 1), (0, 2), (0, 3)]),
        (None, [(0, 1), (59, 1), (1, 2)]),
    ] {
        let provider = Provider::start(Gives { expires_in, ..Gives::default() }).await;
        let server = agent(&provider, oauth(&provider), json!([])).await;
        let clock = Arc::new(TestClock::default());
        let world =
            World::new(client(&server, &provider.server).with_clock(Arc::clone(&clock) as _)).await;
        for (seconds, given) in calls {
            clock.advance(seconds);
            world.value(send()).await;
            assert_eq!(provider.given(), given, "{expires_in:?}");
        }
    }
}

#[tokio::test]
async fn a_token_that_is_not_taken_any_more_is_got_again_once() {
    let provider = Provider::start(Gives::default()).await;
    let server = agent(&provider, oauth(&provider), json!([])).await;
    let world = World::new(client(&server, &provider.server)).await;
    world.value(send()).await;
    provider.revoke();
    world.value(send()).await;
    assert_eq!((provider.given(), server.calls().len()), (2, 3));
    provider.revoke();
    let done = world.run("research", json!({"message": "x", "stream": true})).await;
    assert_eq!(done.chunks.len(), 2, "streams too");
    assert_eq!((provider.given(), server.calls().len()), (3, 5));
}

#[tokio::test]
async fn an_agent_that_takes_no_token_is_asked_twice_and_no_more() {
    let (provider, other) =
        (Provider::start(Gives::default()).await, Provider::start(Gives::default()).await);
    // It takes tokens of another provider.
    let server = agent(&other, oauth(&provider), json!([])).await;
    let world = World::new(client(&server, &provider.server)).await;
    let failure = world.failure(send()).await;
    assert!(failure.contains("HTTP 401: no good token"), "{failure}");
    assert_eq!((provider.given(), server.calls().len()), (2, 2));
}

/// How a provider is declared.
type Declare = fn(&Provider) -> Value;

fn flow(url: &str) -> Value {
    json!({"oauth2SecurityScheme": {"flows": {"clientCredentials": {"tokenUrl": url}}}})
}

/// Providers that give nothing that could be used, and what is said of each.
fn useless() -> Vec<(Gives, Declare, &'static str)> {
    let of = Gives::default;
    let elsewhere = |url: &str| Gives { endpoint: Some(url.to_owned()), ..of() };
    vec![
        (Gives { token_type: "mac", ..of() }, oauth, "expected `token_type` bearer"),
        (Gives { issuer: Some("https://evil.example"), ..of() }, openid, "another issuer"),
        (elsewhere("http://evil.example/token"), openid, "expected `https` to `evil.example`"),
        (elsewhere("/token"), openid, "invalid URL"),
        (of(), |_| flow("http://evil.example/t"), "expected `https` to `evil.example`"),
        (
            of(),
            |provider| {
                let url = provider.server.url("/nowhere");
                json!({"openIdConnectSecurityScheme": {"openIdConnectUrl": url}})
            },
            "the provider's metadata: HTTP 404",
        ),
        (
            of(),
            |_| json!({"oauth2SecurityScheme": {"flows": {"implicit": {}}}}),
            "it names no place where tokens are given",
        ),
    ]
}

// covers: A2A-015, A2A-019
#[tokio::test]
async fn without_a_token_nothing_goes_to_the_agent() {
    for (gives, declare, expected) in useless() {
        let provider = Provider::start(gives).await;
        let server = agent(&provider, declare(&provider), json!([])).await;
        let failure = World::new(client(&server, &provider.server)).await.failure(send()).await;
        assert!(failure.contains(expected), "{failure}");
        assert!(failure.contains("scheme `oauthAuth`"), "{failure}");
        assert!(!failure.contains("secret"), "{failure}");
        assert!(server.calls().is_empty());
    }
}

#[tokio::test]
async fn a_wrong_secret_gets_no_token_and_is_not_repeated() {
    for declare in [oauth, openid] {
        let provider = Provider::start(Gives::default()).await;
        let server = agent(&provider, declare(&provider), json!([])).await;
        let config = client(&server, &provider.server)
            .with_oauth_client_credentials("client-id", "wrong secret");
        let failure = World::new(config).await.failure(send()).await;
        assert!(failure.ends_with("no token: HTTP 401: invalid_client"), "{failure}");
        assert_eq!((provider.asked().len(), provider.given()), (2, 0));
        assert!(server.calls().is_empty());
    }
}

#[tokio::test]
async fn a_token_endpoint_cannot_send_our_credentials_elsewhere() {
    let other = Provider::start(Gives::default()).await;
    let place = other.server.url("/token");
    let provider =
        Server::start(move |_| Reply::text(307, "").with("location", place.clone())).await;
    let url = provider.url("/token");
    let scheme =
        json!({"oauth2SecurityScheme": {"flows": {"clientCredentials": {"tokenUrl": url}}}});
    let server = agent(&other, scheme, json!([])).await;
    let world = World::new(client(&server, &provider)).await;
    let failure = world.failure(send()).await;
    assert!(failure.contains("no token: HTTP 307"), "{failure}");
    assert!(other.server.seen().is_empty());
    assert!(server.calls().is_empty());
}

#[tokio::test]
async fn our_secret_goes_to_another_origin_than_the_cards_only_where_that_is_allowed() {
    for declare in [oauth, openid] {
        let provider = Provider::start(Gives::default()).await;
        let server = agent(&provider, declare(&provider), json!([])).await;
        let failure = World::new(credentials(&server)).await.failure(send()).await;
        assert!(failure.contains("of the card's own origin or an allowed one"), "{failure}");
        let origin = provider.server.url("");
        assert!(failure.contains(&format!("found `{origin}`")), "{failure}");
        assert_eq!((provider.asked().len(), server.calls().len()), (0, 0), "nothing went out");
    }
}

#[tokio::test]
async fn calls_side_by_side_share_one_token() {
    let provider = Provider::start(Gives::default()).await;
    let server = agent(&provider, oauth(&provider), json!([])).await;
    let world = Arc::new(World::new(client(&server, &provider.server)).await);
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let world = Arc::clone(&world);
        calls.spawn(async move { world.value(send()).await });
    }
    calls.join_all().await;
    assert_eq!((provider.given(), server.calls().len()), (1, 20));
}

#[tokio::test]
async fn an_agent_that_echoes_our_token_has_it_taken_out_of_the_error() {
    let provider = Provider::start(Gives::default()).await;
    let scheme = oauth(&provider);
    let server = Server::start(move |seen| {
        if seen.is_card() {
            let card = with(card(&seen.base, RPC), "/securitySchemes", json!({"o": scheme}));
            return Reply::json(&with(card, "/security", json!([{"o": []}])));
        }
        let came = seen.header("authorization").unwrap().to_owned();
        let error = json!({"code": -32000, "message": format!("bad {came}")});
        Reply::json(&json!({"jsonrpc": "2.0", "id": seen.json()["id"], "error": error}))
    })
    .await;
    let world = World::new(client(&server, &provider.server)).await;
    let failure = world.failure(send()).await;
    assert!(failure.contains("-32000: bad") && !failure.contains("token-1"), "{failure}");
}
