//! Who is let in, as whom, and what the others are told.

use chio_core::hash::sha256_hex;
use chio_core::principal::{Credential, Principal};
use chio_net::auth::{AuthError, Authenticator, Challenge, OriginError, OriginRules, TokenError};
use chio_net::client::{ClientOptions, HttpClient};
use chio_net::jwt::{IssuerKeys, JwtError, JwtVerifier, KeysError, RefreshRules};
use http::HeaderMap;
use serde_json::json;

use super::tokens::{AUDIENCE, ISSUER, Key, NOW, claims, set};

const TOKEN: &str = "operators-own-token-0123456789";

fn headers(list: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in list {
        let name: http::HeaderName = name.parse().unwrap();
        headers.append(name, http::HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    headers
}

fn authorization(value: &str) -> HeaderMap {
    headers(&[("authorization", value)])
}

fn peers(key: &Key) -> Authenticator {
    let keys = IssuerKeys::fixed(set(&[key]));
    let jwt = JwtVerifier::new([AUDIENCE]).with_issuer(ISSUER, keys).unwrap();
    Authenticator::anonymous().with_token("ops", TOKEN).unwrap().with_jwt(jwt)
}

#[tokio::test]
async fn a_token_of_the_operator_stands_for_its_principal() {
    let peers = Authenticator::anonymous().with_token("ops", TOKEN).unwrap();
    let peers = peers.with_token("ci", "another-token-0123456789").unwrap();
    for (token, principal) in [(TOKEN, "ops"), ("another-token-0123456789", "ci")] {
        for scheme in ["Bearer", "bearer", "BEARER", "Bearer "] {
            let found =
                peers.authenticate(&authorization(&format!("{scheme} {token}")), || NOW).await;
            let found = found.unwrap();
            let fingerprint = sha256_hex(token.as_bytes());
            let expected = Principal::new(principal, Credential::StaticBearer { fingerprint });
            assert_eq!(found, expected);
        }
    }
}

#[tokio::test]
async fn a_token_of_an_authorization_server_says_who_its_holder_is() {
    let key = Key::ed("k");
    let token = key.sign(&claims(&json!({})));
    let found = peers(&key).authenticate(&authorization(&format!("Bearer {token}")), || NOW).await;
    let found = found.unwrap();
    let fingerprint = sha256_hex(token.as_bytes());
    assert_eq!(found.name, "oauth:https://issuer.example#sub:alice");
    let expected = Credential::OauthBearer {
        issuer: ISSUER.to_owned(),
        scopes: vec!["read".to_owned(), "write".to_owned()],
        fingerprint,
        expires_at: NOW + 300,
    };
    assert_eq!(found.credential, expected);
    assert_eq!((&found.claims["sub"], &found.claims["aud"]), (&json!("alice"), &json!(AUDIENCE)));
    assert_eq!((&found.tenant, &found.groups), (&None, &Vec::new()));
    assert!(!format!("{found:?}").contains(AUDIENCE), "claims are not printed");
}

#[tokio::test]
async fn tenant_and_groups_are_those_of_the_claims_and_only_texts() {
    let key = Key::ed("k");
    for (changes, tenant, groups) in [
        (json!({"tenant_id": "t", "groups": ["a", "b"]}), Some("t"), vec!["a", "b"]),
        (json!({"tid": "u", "groups": ["a", 7]}), Some("u"), vec!["a"]),
        (json!({"org_id": "o", "tenant": "first", "groups": "a"}), Some("first"), vec![]),
        (json!({"tenant": ""}), None, vec![]),
    ] {
        let token = key.sign(&claims(&changes));
        let found =
            peers(&key).authenticate(&authorization(&format!("Bearer {token}")), || NOW).await;
        let found = found.unwrap();
        assert_eq!(
            (found.tenant.as_deref(), found.groups),
            (tenant, groups.into_iter().map(str::to_owned).collect())
        );
        // The same subject of another tenant is another principal.
        let is_plain = found.name == "oauth:https://issuer.example#sub:alice";
        assert_eq!(is_plain, tenant.is_none(), "{}", found.name);
    }
    for tenant in [json!(7), json!("two\nlines"), json!("x".repeat(300))] {
        let token = key.sign(&claims(&json!({"tenant": tenant})));
        let found =
            peers(&key).authenticate(&authorization(&format!("Bearer {token}")), || NOW).await;
        assert_eq!(found, Err(AuthError::Token(JwtError::Claim("tenant"))), "{tenant}");
    }
}

#[tokio::test]
async fn principals_of_different_kinds_never_meet() {
    let key = Key::ed("k");
    let peers = peers(&key);
    let mut seen = Vec::new();
    for changes in [
        json!({"sub": "ops"}),
        json!({"sub": null, "client_id": "ops"}),
        json!({"sub": "client:ops"}),
        json!({"sub": "", "azp": "app"}),
        json!({"sub": null}),
        json!({"sub": null, "jti": "1"}),
    ] {
        let token = key.sign(&claims(&changes));
        let found = peers.authenticate(&authorization(&format!("Bearer {token}")), || NOW).await;
        seen.push(found.unwrap().name);
    }
    seen.push("ops".to_owned());
    let all = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), all, "{seen:?}");
}

#[tokio::test]
async fn a_client_without_a_good_credential_is_not_let_in() {
    let key = Key::ed("k");
    let peers = peers(&key);
    let expired = format!("Bearer {}", key.sign(&claims(&json!({"exp": 1}))));
    let long = format!("Bearer {}", "x".repeat(21 * 1024));
    let no_token = AuthError::Malformed("what is no bearer token");
    let too_long = AuthError::Malformed("an `Authorization` header that is too long");
    let no_jwt = JwtError::Malformed("something else than three parts");
    for (value, expected) in [
        ("Basic eDp5", AuthError::Scheme),
        ("DPoP x", AuthError::Scheme),
        (TOKEN, AuthError::Scheme),
        ("", AuthError::Scheme),
        ("Bearer", no_token.clone()),
        ("Bearer ", no_token.clone()),
        ("Bearer a b", no_token.clone()),
        ("Bearer a,b", no_token.clone()),
        ("Bearer =", no_token),
        ("Bearer é", AuthError::Malformed("bytes that are no text")),
        (&long, too_long),
        ("Bearer wrong", AuthError::Token(no_jwt)),
        (&expired, AuthError::Token(JwtError::Expired)),
    ] {
        assert_eq!(
            peers.authenticate(&authorization(value), || NOW).await,
            Err(expected),
            "{value}"
        );
    }
    let elsewhere = headers(&[("x", "Bearer x"), ("cookie", "Bearer x")]);
    for headers in [HeaderMap::new(), elsewhere] {
        assert_eq!(peers.authenticate(&headers, || NOW).await, Err(AuthError::Missing));
    }
    let good = format!("Bearer {TOKEN}");
    let twice = headers(&[("authorization", &good), ("Authorization", &good)]);
    let several = AuthError::Malformed("several `Authorization` headers");
    assert_eq!(peers.authenticate(&twice, || NOW).await, Err(several));
}

#[tokio::test]
async fn a_token_that_is_bound_to_a_key_is_no_bearer_token() {
    let key = Key::ed("k");
    for cnf in [
        json!({"jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"}),
        json!({"x5t#S256": "bwcK0esc3ACC3DB2Y5_lESsXE8o9ltc05O89jdN-dg2"}),
        json!({}),
        json!(7),
    ] {
        let token = key.sign(&claims(&json!({"cnf": cnf})));
        let shown = authorization(&format!("Bearer {token}"));
        let outcome = peers(&key).authenticate(&shown, || NOW).await;
        assert_eq!(outcome, Err(AuthError::Bound), "{cnf}");
    }
}

#[tokio::test]
async fn a_token_that_is_nearly_right_is_unknown() {
    let only = Authenticator::anonymous().with_token("ops", TOKEN).unwrap();
    let (shorter, cut) = (TOKEN.get(1..).unwrap(), TOKEN.get(..TOKEN.len() - 1).unwrap());
    for near in [shorter, cut, &TOKEN.to_uppercase(), &format!("{TOKEN}=")] {
        let outcome = only.authenticate(&authorization(&format!("Bearer {near}")), || NOW).await;
        assert_eq!(outcome, Err(AuthError::Unknown), "{near}");
    }
}

#[test]
fn each_refusal_has_its_status_and_code() {
    for (error, status, code) in [
        (AuthError::Missing, 401, None),
        (AuthError::Scheme, 401, None),
        (AuthError::Malformed("x"), 400, Some("invalid_request")),
        (AuthError::Unknown, 401, Some("invalid_token")),
        (AuthError::Token(JwtError::Expired), 401, Some("invalid_token")),
        (AuthError::Token(JwtError::Signature), 401, Some("invalid_token")),
        (AuthError::Token(JwtError::Keys(KeysError::NoKeys)), 503, None),
        (AuthError::Bound, 401, Some("invalid_token")),
        (AuthError::Scope(vec![]), 403, Some("insufficient_scope")),
    ] {
        assert_eq!((error.status(), error.code()), (status, code), "{error}");
    }
}

#[tokio::test]
async fn a_token_must_allow_what_the_server_asks_for() {
    let key = Key::ed("k");
    let token = key.sign(&claims(&json!({})));
    let shown = authorization(&format!("Bearer {token}"));
    assert!(peers(&key).with_scopes(["read"]).authenticate(&shown, || NOW).await.is_ok());
    let strict = peers(&key).with_scopes(["read", "admin"]);
    let error = strict.authenticate(&shown, || NOW).await.unwrap_err();
    assert_eq!((error.status(), error.code()), (403, Some("insufficient_scope")));
    let challenge = error.challenge(&Challenge::default()).unwrap();
    assert!(challenge.to_str().unwrap().contains(r#"scope="read admin""#), "{challenge:?}");
    // Scopes are an authorization server's; the operator's own tokens have none.
    let own = authorization(&format!("Bearer {TOKEN}"));
    assert!(strict.authenticate(&own, || NOW).await.is_ok());
}

#[tokio::test]
async fn keys_that_cannot_be_had_let_nobody_in_and_blame_nobody() {
    let key = Key::ed("k");
    let client = HttpClient::new(ClientOptions::default()).unwrap();
    let issuer = "https://127.0.0.1";
    let keys = IssuerKeys::discovered(client, issuer, RefreshRules::default());
    let jwt = JwtVerifier::new([AUDIENCE]).with_issuer(issuer, keys).unwrap();
    let peers = Authenticator::anonymous().with_jwt(jwt);
    let token = key.sign(&claims(&json!({"iss": issuer})));
    let shown = authorization(&format!("Bearer {token}"));
    let error = peers.authenticate(&shown, || NOW).await.unwrap_err();
    assert_eq!((error.status(), error.code()), (503, None), "{error}");
    assert_eq!(error.challenge(&Challenge::default()), None);
}

#[test]
fn a_challenge_says_where_to_get_a_token() {
    let full = Challenge {
        realm: Some("chio".to_owned()),
        resource_metadata: Some(
            "https://a.example/.well-known/oauth-protected-resource".to_owned(),
        ),
        scopes: vec!["read".to_owned(), "write".to_owned()],
    };
    let odd = Challenge { realm: Some("a\"b\\c\r\nd é".to_owned()), ..Challenge::default() };
    for (error, challenge, expected) in [
        (AuthError::Missing, Challenge::default(), "Bearer"),
        (
            AuthError::Missing,
            full.clone(),
            "Bearer realm=\"chio\", scope=\"read write\", \
             resource_metadata=\"https://a.example/.well-known/oauth-protected-resource\"",
        ),
        (
            AuthError::Token(JwtError::Expired),
            Challenge { scopes: Vec::new(), ..full },
            "Bearer realm=\"chio\", error=\"invalid_token\", \
             error_description=\"expected a token that is still valid, found an expired one\", \
             resource_metadata=\"https://a.example/.well-known/oauth-protected-resource\"",
        ),
        (AuthError::Missing, odd, "Bearer realm=\"a'b'c''d '\""),
    ] {
        assert_eq!(error.challenge(&challenge).unwrap(), expected);
    }
}

#[tokio::test]
async fn without_any_method_everybody_is_nobody_in_particular() {
    let peers = Authenticator::anonymous();
    assert!(!peers.is_required());
    for shown in [HeaderMap::new(), authorization("Bearer x"), authorization("???")] {
        let found = peers.authenticate(&shown, || NOW).await.unwrap();
        assert_eq!(found, Principal::anonymous());
    }
}

#[test]
fn tokens_that_are_easy_to_guess_or_mistake_are_not_set() {
    let set = |principal: &str, token: &str| {
        Authenticator::anonymous().with_token(principal, token).map(drop)
    };
    assert_eq!(set("a", "short"), Err(TokenError::Short(5)));
    assert_eq!(set("a", ""), Err(TokenError::Short(0)));
    assert_eq!(set("a", "with spaces in between"), Err(TokenError::Characters));
    assert_eq!(set("a", "0123456789abcdef\n"), Err(TokenError::Characters));
    assert_eq!(set("", TOKEN), Err(TokenError::Principal));
    assert_eq!(set("oauth:x#sub:y", TOKEN), Err(TokenError::Principal));
    assert_eq!(set("anonymous", TOKEN), Err(TokenError::Principal));
    let twice = Authenticator::anonymous().with_token("a", TOKEN).unwrap();
    assert_eq!(twice.with_token("b", TOKEN).map(drop), Err(TokenError::Repeated));
    let default = Authenticator::default_principal(TOKEN);
    let digest = sha256_hex(TOKEN.as_bytes());
    assert_eq!(default, format!("static-bearer:{}", digest.get(..16).unwrap()));
}

#[tokio::test]
async fn no_token_is_printed() {
    let key = Key::ed("k");
    let token = key.sign(&claims(&json!({"private": "SECRET"})));
    let peers = peers(&key);
    let shown = authorization(&format!("Bearer {token}"));
    let found = peers.authenticate(&shown, || NOW).await.unwrap();
    let wrong = peers.authenticate(&authorization("Bearer SECRET"), || NOW).await.unwrap_err();
    let text = format!("{peers:?} {found:?} {wrong:?} {wrong}");
    for secret in [TOKEN, token.as_str(), "SECRET"] {
        assert!(!text.contains(secret), "{text}");
    }
}

#[test]
fn what_a_browser_sends_for_another_site_needs_an_origin_that_is_allowed() {
    let rules = OriginRules::loopback(9090);
    let site = |values: &[&str], origin: Option<&str>| {
        let sites = values.iter().map(|value| ("sec-fetch-site", *value));
        let origin = origin.map(|origin| ("origin", origin));
        let all = sites.chain(origin).chain([("host", "localhost:9090")]);
        let all = all.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        rules.check(&all.collect::<HeaderMap>(), None)
    };
    for (values, expected) in [
        (&[][..], Ok(())),
        (&["none"], Ok(())),
        (&["same-origin"], Ok(())),
        (&["cross-site"], Err(OriginError::Site)),
        (&["same-site"], Err(OriginError::Site)),
        (&["none", "cross-site"], Err(OriginError::Site)),
        (&["x"], Err(OriginError::Site)),
    ] {
        assert_eq!(site(values, None), expected, "{values:?}");
        // An allowed page may be of another site; one that is not allowed stays so.
        assert_eq!(site(values, Some("http://localhost:9090")), Ok(()), "{values:?}");
        assert_eq!(site(values, Some("http://localhost:3000")), Err(OriginError::Origin));
    }
}

#[test]
fn a_local_server_is_called_by_its_own_names_alone() {
    let rules = OriginRules::loopback(9090);
    let host = "127.0.0.1:9090";
    let hosts = [
        ("127.0.0.1:9090", Ok(())),
        ("localhost:9090", Ok(())),
        ("LOCALHOST:9090", Ok(())),
        ("[::1]:9090", Ok(())),
        ("evil.example:9090", Err(OriginError::Host)),
        ("127.0.0.1.evil.example:9090", Err(OriginError::Host)),
        ("127.0.0.1", Err(OriginError::Host)),
        ("127.0.0.1:80", Err(OriginError::Host)),
        ("localhost.:9090", Err(OriginError::Host)),
        ("", Err(OriginError::HostForm)),
        ("evil@127.0.0.1:9090", Err(OriginError::HostForm)),
        ("127.0.0.1:9090/", Err(OriginError::HostForm)),
        ("127.0.0.1:x", Err(OriginError::HostForm)),
        ("127.0.0.1:", Err(OriginError::HostForm)),
    ];
    for (host, expected) in hosts {
        assert_eq!(rules.check(&headers(&[("host", host)]), None), expected, "{host}");
        // HTTP/2 names the host elsewhere.
        assert_eq!(rules.check(&HeaderMap::new(), Some(host)), expected, "{host}");
    }
    assert_eq!(rules.check(&HeaderMap::new(), None), Err(OriginError::HostForm));
    let twice = headers(&[("host", host), ("host", host)]);
    assert_eq!(rules.check(&twice, None), Err(OriginError::HostForm));
    let other = rules.check(&headers(&[("host", host)]), Some("evil.example:9090"));
    assert_eq!(other, Err(OriginError::Host));
    for (origin, expected) in [
        ("http://127.0.0.1:9090", Ok(())),
        ("http://localhost:9090", Ok(())),
        ("http://[::1]:9090", Ok(())),
        ("https://127.0.0.1:9090", Ok(())),
        ("https://app.example", Err(OriginError::Origin)),
        ("https://app.example:443", Err(OriginError::Origin)),
        ("http://app.example", Err(OriginError::Origin)),
        ("https://app.example:8443", Err(OriginError::Origin)),
        ("https://evil.example", Err(OriginError::Origin)),
        ("http://localhost:3000", Err(OriginError::Origin)),
        ("https://app.example.evil.example", Err(OriginError::Origin)),
        ("null", Err(OriginError::Origin)),
        ("", Err(OriginError::OriginForm)),
        ("app.example", Err(OriginError::OriginForm)),
        ("file://", Err(OriginError::OriginForm)),
        ("https://app.example/", Err(OriginError::OriginForm)),
        ("https://app.example https://b.example", Err(OriginError::OriginForm)),
    ] {
        let headers = headers(&[("host", host), ("origin", origin)]);
        assert_eq!(rules.check(&headers, None), expected, "{origin}");
    }
    let twice = [("host", host), ("origin", "https://app.example"), ("origin", "null")];
    assert_eq!(rules.check(&headers(&twice), None), Err(OriginError::OriginForm));
}

#[test]
fn a_server_with_a_name_takes_it_with_or_without_the_usual_port() {
    let rules = OriginRules::any_host().with_host("api.example").unwrap();
    for (host, accepted) in [
        ("api.example", true),
        ("api.example:443", true),
        ("api.example:8443", false),
        ("b.example", false),
    ] {
        assert_eq!(rules.check(&headers(&[("host", host)]), None).is_ok(), accepted, "{host}");
    }
    let any = OriginRules::any_host();
    assert_eq!(any.check(&headers(&[("host", "whatever")]), None), Ok(()));
    let twice = headers(&[("host", "whatever"), ("host", "whatever")]);
    assert_eq!(any.check(&twice, None), Err(OriginError::HostForm));
    let page = headers(&[("host", "whatever"), ("origin", "https://page.example")]);
    assert_eq!(any.check(&page, None), Err(OriginError::Origin));
    assert!(OriginRules::any_host().with_host("a/b").is_none());
}

#[test]
fn pages_that_are_named_may_call_and_only_they_are_named() {
    let rules = OriginRules::loopback(9090).with_pages_of("https://app.example").unwrap();
    assert!(rules.names_pages() && !OriginRules::loopback(9090).names_pages());
    let host = ("host", "127.0.0.1:9090");
    for (origin, accepted, named) in [
        ("https://app.example", true, true),
        ("https://app.example:443", true, true),
        ("https://app.example:8443", false, false),
        ("http://app.example", false, false),
        ("https://x.app.example", false, false),
        ("null", false, false),
        // Its own page is of the same origin, and asks for nothing.
        ("http://127.0.0.1:9090", true, false),
    ] {
        let headers = headers(&[host, ("origin", origin)]);
        assert_eq!(rules.check(&headers, None).is_ok(), accepted, "{origin}");
        let found = rules.named_page(&headers).map(|page| page.to_str().unwrap());
        assert_eq!(found, named.then_some(origin), "{origin}");
    }
    let twice = [host, ("origin", "https://app.example"), ("origin", "https://app.example")];
    assert_eq!(rules.named_page(&headers(&twice)), None);
    for wrong in ["*", "https://*", "https://*.example", "app.example", "null", "https://a/", ""] {
        assert!(OriginRules::any_host().with_pages_of(wrong).is_none(), "{wrong}");
    }
}
