//! Credentials: those that the card asks for, and no others.

use chio_a2a_adapter::A2aAdapterConfig;
use serde_json::{Value, json};

use crate::agent::{ALL, RPC, card, model, stream, whole, with};
use crate::server::{Reply, Seen, Server};
use crate::support::{World, config, with_card};

/// A card with one scheme that every call needs.
fn needs(base: &str, scheme: &Value) -> Value {
    let card = with(card(base, RPC), "/securitySchemes", json!({"it": scheme}));
    with(card, "/securityRequirements", json!([{"schemes": {"it": {"list": []}}}]))
}

/// A configuration with a credential of every kind.
fn everything(config: A2aAdapterConfig) -> A2aAdapterConfig {
    config
        .with_bearer_token("bearer-secret")
        .with_http_basic("user", "basic-secret")
        .with_api_key_header("X-Key", "header-secret")
        .with_api_key_query("key", "query-secret")
        .with_api_key_cookie("ck", "cookie-secret")
}

/// Everything in a request that is a credential.
fn credentials(seen: &Seen) -> Vec<String> {
    let named = ["authorization", "x-key", "cookie"];
    let mut found: Vec<String> =
        named.iter().filter_map(|name| Some(format!("{name}: {}", seen.header(name)?))).collect();
    found.extend(seen.query.clone());
    found
}

// covers: A2A-018, A2A-020, A2A-021, A2A-025
#[tokio::test]
async fn only_what_the_card_asks_for_is_sent() {
    let api_key = |location: &str, name: &str| json!({"apiKeySecurityScheme": {"location": location, "name": name}});
    for (scheme, expected) in [
        (
            json!({"httpAuthSecurityScheme": {"scheme": "bearer"}}),
            "authorization: Bearer bearer-secret",
        ),
        (json!({"oauth2SecurityScheme": {"flows": {}}}), "authorization: Bearer bearer-secret"),
        (
            json!({"openIdConnectSecurityScheme": {"openIdConnectUrl": "https://i.example"}}),
            "authorization: Bearer bearer-secret",
        ),
        (
            json!({"httpAuthSecurityScheme": {"scheme": "Basic"}}),
            "authorization: Basic dXNlcjpiYXNpYy1zZWNyZXQ=",
        ),
        (json!({"type": "http", "scheme": "bearer"}), "authorization: Bearer bearer-secret"),
        (api_key("header", "x-KEY"), "x-key: header-secret"),
        (api_key("query", "key"), "key=query-secret"),
        (api_key("cookie", "ck"), "cookie: ck=cookie-secret"),
    ] {
        let own = scheme.clone();
        let server = with_card(move |base| needs(base, &own)).await;
        let world = World::new(everything(config(&server))).await;
        world.value(json!({"message": "x"})).await;
        assert_eq!(credentials(&server.last()), [expected], "{scheme}");
    }
}

#[tokio::test]
async fn without_requirements_nothing_is_sent() {
    for requirements in [json!(null), json!([]), json!([{}]), json!([{"schemes": {}}])] {
        let own = requirements.clone();
        let server = with_card(move |base| {
            let scheme = json!({"it": {"httpAuthSecurityScheme": {"scheme": "bearer"}}});
            let card = with(card(base, RPC), "/securitySchemes", scheme);
            with(card, "/securityRequirements", own.clone())
        })
        .await;
        let world = World::new(everything(config(&server))).await;
        world.value(json!({"message": "x"})).await;
        assert!(credentials(&server.last()).is_empty(), "{requirements}");
    }
}

// covers: A2A-013, A2A-037
#[tokio::test]
async fn extra_headers_parameters_and_cookies_always_go_along() {
    for speaks in ALL {
        let server = Server::start(move |seen| {
            if !seen.is_card() {
                return model(seen, speaks);
            }
            let card = card(&seen.base, speaks);
            let card =
                with(card, "/securitySchemes", json!({"it": {"type": "http", "scheme": "bearer"}}));
            Reply::json(&with(card, "/security", json!([{"it": []}])))
        })
        .await;
        let config = everything(config(&server))
            .with_request_header("X-Partner", "design-partner-a")
            .with_request_query("partner", "a b")
            .with_request_cookie("seat", "7");
        let world = World::new(config).await;
        world.value(json!({"message": "x"})).await;
        let seen = server.last();
        assert_eq!(seen.header("x-partner"), Some("design-partner-a"));
        assert_eq!(seen.query.as_deref(), Some("partner=a+b"));
        assert_eq!(seen.header("cookie"), Some("seat=7"));
        assert_eq!(seen.header("authorization"), Some("Bearer bearer-secret"));
        assert_eq!(seen.header("x-key"), None);
        world.value(json!({"get_task": {"id": "task-1", "history_length": 1}})).await;
        let query = server.last().query.unwrap();
        assert!(query.ends_with("partner=a+b"), "{query}");
    }
}

// covers: A2A-019, A2A-077
#[tokio::test]
async fn what_cannot_be_met_is_denied_here_and_nothing_goes_out() {
    let api_key = |location: &str, name: &str| json!({"apiKeySecurityScheme": {"location": location, "name": name}});
    let flows = json!({"clientCredentials": {"tokenUrl": "https://i.example/token"}});
    for (scheme, expected) in [
        (json!({"httpAuthSecurityScheme": {"scheme": "bearer"}}), "expected a bearer token"),
        (json!({"httpAuthSecurityScheme": {"scheme": "basic"}}), "expected a user name"),
        (json!({"httpAuthSecurityScheme": {"scheme": "digest"}}), "HTTP authentication `digest`"),
        (json!({"oauth2SecurityScheme": {"flows": flows}}), "client credentials"),
        (
            json!({"openIdConnectSecurityScheme": {"openIdConnectUrl": "https://i.example"}}),
            "client credentials",
        ),
        (json!({"mtlsSecurityScheme": {}}), "expected a client certificate"),
        (api_key("header", "x-other"), "expected an API key for header `x-other`"),
        (api_key("query", "other"), "expected an API key for query `other`"),
        (api_key("cookie", "other"), "expected an API key for cookie `other`"),
        (api_key("body", "x"), "expected a scheme that is spoken here"),
        (json!({"acmeSecurityScheme": {}}), "`acmeSecurityScheme`"),
        (json!({"type": "hawk"}), "`hawk`"),
    ] {
        let own = scheme.clone();
        let server = with_card(move |base| needs(base, &own)).await;
        let config = config(&server)
            .with_api_key_header("X-Key", "header-secret")
            .with_api_key_query("key", "query-secret")
            .with_api_key_cookie("ck", "cookie-secret");
        let world = World::new(config).await;
        for arguments in [json!({"message": "x"}), json!({"message": "x", "stream": true})] {
            let failure = world.failure(arguments).await;
            assert!(failure.contains("auth negotiation failed"), "{failure}");
            for words in
                [expected, "skill `research`", "scheme `it`", "/a2a`", "partner `127.0.0.1`"]
            {
                assert!(failure.contains(words), "{failure}");
            }
            assert!(!failure.contains("secret"), "{failure}");
        }
        assert!(server.calls().is_empty(), "{scheme}");
    }
}

/// Two schemes that can be met, and one that cannot.
fn schemes() -> Value {
    json!({
        "bearer": {"httpAuthSecurityScheme": {"scheme": "bearer"}},
        "key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}},
        "basic": {"httpAuthSecurityScheme": {"scheme": "basic"}},
        "acme": {"acmeSecurityScheme": {}},
    })
}

#[tokio::test]
async fn the_first_alternative_that_can_be_met_is_used() {
    for (requirements, expected) in [
        (json!([{"bearer": []}, {"key": []}]), Ok(vec!["authorization: Bearer bearer-secret"])),
        (json!([{"acme": []}, {"key": []}]), Ok(vec!["x-key: header-secret"])),
        (json!([{"acme": [], "bearer": []}, {"key": []}]), Ok(vec!["x-key: header-secret"])),
        (
            json!([{"bearer": [], "key": []}]),
            Ok(vec!["authorization: Bearer bearer-secret", "x-key: header-secret"]),
        ),
        (json!([{"acme": []}, {}]), Ok(vec![])),
        (json!([{"acme": []}, {"acme": [], "key": []}]), Err("scheme `acme`")),
        (json!([{"bearer": [], "basic": []}]), Err("found two")),
        // A name that is nowhere declared denies whatever else would do.
        (json!([{"key": []}, {"ghost": []}]), Err("`ghost` is asked for and nowhere declared")),
    ] {
        let own = requirements.clone();
        let server = with_card(move |base| {
            let card = with(card(base, RPC), "/securitySchemes", schemes());
            with(card, "/security", own.clone())
        })
        .await;
        let world = World::new(everything(config(&server))).await;
        match expected {
            Ok(expected) => {
                world.value(json!({"message": "x"})).await;
                assert_eq!(credentials(&server.last()), expected, "{requirements}");
            }
            Err(expected) => {
                let failure = world.failure(json!({"message": "x"})).await;
                assert!(failure.contains(expected), "{failure}");
                assert!(server.calls().is_empty());
            }
        }
    }
}

#[tokio::test]
async fn requirements_without_schemes_deny() {
    let server = with_card(|base| with(card(base, RPC), "/security", json!([{"x": []}]))).await;
    let world = World::new(everything(config(&server))).await;
    let failure = world.failure(json!({"message": "x"})).await;
    assert!(failure.contains("`x` is asked for and nowhere declared"), "{failure}");
    assert!(server.calls().is_empty());
}

#[tokio::test]
async fn a_skills_own_requirements_count_instead_of_the_cards() {
    let server = with_card(|base| {
        let card = with(card(base, RPC), "/securitySchemes", schemes());
        let card = with(card, "/securityRequirements", json!([{"acme": []}]));
        let card = with(card, "/skills/0/securityRequirements", json!([{"key": []}]));
        with(card, "/skills/1/securityRequirements", json!([]))
    })
    .await;
    let world = World::new(everything(config(&server))).await;
    world.value(json!({"message": "x"})).await;
    assert_eq!(credentials(&server.last()), ["x-key: header-secret"]);
    let other = world.run("other", json!({"message": "x"})).await;
    drop(other);
    assert!(credentials(&server.last()).is_empty());
}

#[tokio::test]
async fn a_wrong_credential_is_the_agents_word_and_no_secret_comes_back() {
    let server = Server::start(|seen| {
        if seen.is_card() {
            let scheme = json!({"httpAuthSecurityScheme": {"scheme": "bearer"}});
            return Reply::json(&needs(&seen.base, &scheme));
        }
        let came = seen.header("authorization").unwrap_or("nothing").to_owned();
        Reply::text(401, format!("who is {came}? {}", "x".repeat(1000)))
    })
    .await;
    let world = World::new(config(&server).with_bearer_token("bearer-secret")).await;
    let failure = world.failure(json!({"message": "x"})).await;
    assert!(failure.contains("HTTP 401: who is"), "{failure}");
    assert!(!failure.contains("bearer-secret"), "{failure}");
    assert!(failure.chars().count() < 300, "{failure}");
    assert_eq!(server.calls().len(), 1, "a token of our own is not tried again");
}

#[tokio::test]
async fn an_agent_that_echoes_our_token_has_it_taken_out_of_results_and_events() {
    let server = Server::start(|seen| {
        if seen.is_card() {
            let scheme = json!({"httpAuthSecurityScheme": {"scheme": "bearer"}});
            return Reply::json(&needs(&seen.base, &scheme));
        }
        let came = seen.header("authorization").unwrap_or("nothing").to_owned();
        let parts = json!([{"text": format!("you are {came}")}]);
        let message = json!({"messageId": "m", "role": "ROLE_AGENT", "parts": parts});
        if seen.json()["method"] == "SendMessage" {
            return whole(seen, RPC, &json!({"message": message}));
        }
        let status = json!({"state": "TASK_STATE_COMPLETED", "message": message});
        stream(seen, RPC, &[json!({"statusUpdate": {"taskId": "task-1", "status": status}})])
    })
    .await;
    let world = World::new(config(&server).with_bearer_token("bearer-secret")).await;
    let value = world.value(json!({"message": "x"})).await.to_string();
    assert!(value.contains("you are [secret]"), "{value}");
    let done = world.run("research", json!({"message": "x", "stream": true})).await;
    let chunks = Value::from(done.chunks).to_string();
    assert!(chunks.contains("you are [secret]"), "{chunks}");
    for text in [value, chunks, serde_json::to_string(&done.receipt).unwrap()] {
        assert!(!text.contains("bearer-secret"), "{text}");
    }
}
