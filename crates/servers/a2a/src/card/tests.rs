//! Cards of every kind, as text.

use serde_json::{Value, json};

use super::Card;
use super::security::{KeyPlace, Scheme, SchemeRequirement, requirements};
use crate::error::AgentError;

fn read(card: &Value) -> Result<Card, AgentError> {
    Card::read(card.to_string().as_bytes())
}

fn with(member: &str, value: Value) -> Value {
    let skill = json!({"id": "s", "name": "S", "description": "d", "tags": ["t"]});
    let mut card = json!({"name": "A", "skills": [skill]});
    card[member] = value;
    card
}

#[test]
fn interfaces_of_both_versions_are_found_where_each_lists_them() {
    let mut card = with(
        "supportedInterfaces",
        json!([
            {"url": "https://a.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0", "tenant": ""},
            {"url": "https://a.example/rest", "protocolBinding": "HTTP+JSON", "tenant": "t"},
            {"url": "a.example:443", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
        ]),
    );
    card["url"] = json!("https://a.example/old");
    card["protocolVersion"] = json!("0.3.0");
    card["additionalInterfaces"] =
        json!([{"url": "https://a.example/v03", "transport": "HTTP+JSON"}]);
    let found: Vec<_> = read(&card)
        .unwrap()
        .interfaces
        .into_iter()
        .map(|it| format!("{} {} {} {:?}", it.url, it.binding, it.version, it.tenant))
        .collect();
    assert_eq!(
        found,
        [
            "https://a.example/rpc JSONRPC 1.0 None",
            "https://a.example/rest HTTP+JSON 1.0 Some(\"t\")",
            "a.example:443 GRPC 1.0 None",
            "https://a.example/old JSONRPC 0.3.0 None",
            "https://a.example/v03 HTTP+JSON 0.3.0 None",
        ]
    );
}

#[test]
fn unknown_and_null_members_are_left_out() {
    let mut card =
        with("capabilities", json!({"streaming": null, "pushNotifications": true, "x": 1}));
    card["description"] = Value::Null;
    card["securitySchemes"] = Value::Null;
    card["bridgeFidelity"] = json!({"kind": "lossless"});
    let card = read(&card).unwrap();
    assert!(!card.capabilities.streaming && card.capabilities.push_notifications);
    assert!(card.schemes.is_empty() && card.requirements.is_none());
}

#[test]
fn what_is_no_card_is_refused() {
    for (text, expected) in [
        ("", "cannot be read"),
        ("[]", "cannot be read"),
        ("{}", "cannot be read"),
        (r#"{"name": "", "skills": [{"id": "s"}]}"#, "expected `name`"),
        (r#"{"name": "A", "name": "B", "skills": [{"id": "s"}]}"#, "`name` twice"),
        (r#"{"name": "A", "skills": [{"id": "s"}], "security": {}}"#, "expected a list"),
        (r#"{"name": "A", "skills": [{"id": "s", "security": [[]]}]}"#, "of skill `s`"),
        (
            r#"{"name": "A", "skills": [{"id": "s"}, {"id": "t", "name": 7}]}"#,
            "skill 2 of the card, `t`: expected a string",
        ),
        (r#"{"name": "A", "skills": [{"name": "S"}]}"#, "skill 1 of the card, ``: "),
        (r#"{"name": "A", "skills": [7]}"#, "skill 1 of the card, ``: "),
        (
            r#"{"name": "A", "skills": [{"id": " s"}]}"#,
            "skill 1 of the card, ` s`: expected an `id`",
        ),
        (r#"{"name": "A", "skills": []}"#, "no skills"),
        (r#"{"name": "A"}"#, "no skills"),
    ] {
        let message = Card::read(text.as_bytes()).unwrap_err().to_string();
        assert!(message.contains(expected), "{text}: {message}");
    }
}

#[test]
fn modes_say_what_a_skill_takes() {
    for (own, default, text, accepted) in [
        (json!([]), json!([]), true, true),
        (json!(["text"]), json!([]), true, false),
        (json!(["text/plain; charset=utf-8"]), json!(["application/json"]), true, false),
        (json!([]), json!(["Application/JSON"]), false, true),
        (json!(["json", "text"]), json!([]), true, true),
        (json!(["image/png"]), json!(["text"]), false, false),
    ] {
        let mut card = with("defaultInputModes", default.clone());
        card["skills"][0]["inputModes"] = own.clone();
        let card = read(&card).unwrap();
        let accepts = card.skills[0].accepts(&card);
        assert_eq!((accepts.text, accepts.json), (text, accepted), "{own} {default}");
    }
}

#[test]
fn schemes_of_both_versions_are_understood() {
    let url = || "https://i.example/t".to_owned();
    let flows = json!({"clientCredentials": {"tokenUrl": url(), "scopes": {}}});
    for (scheme, expected) in [
        (json!({"httpAuthSecurityScheme": {"scheme": "Bearer"}}), Scheme::Bearer),
        (json!({"http_auth_security_scheme": {"scheme": "basic"}}), Scheme::Basic),
        (json!({"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}), Scheme::Bearer),
        (json!({"mtlsSecurityScheme": {}}), Scheme::MutualTls),
        (json!({"type": "mutualTLS"}), Scheme::MutualTls),
        (
            json!({"oauth2SecurityScheme": {"flows": flows}}),
            Scheme::OAuth2 { token_url: Some(url()), metadata_url: None },
        ),
        (
            json!({"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": url()}}}),
            Scheme::OAuth2 { token_url: Some(url()), metadata_url: None },
        ),
        (
            json!({"oauth2SecurityScheme": {"flows": {"implicit": {"tokenUrl": url()}}, "oauth2MetadataUrl": url()}}),
            Scheme::OAuth2 { token_url: None, metadata_url: Some(url()) },
        ),
        (
            json!({"openIdConnectSecurityScheme": {"openIdConnectUrl": url()}}),
            Scheme::OpenId { url: url() },
        ),
        (
            json!({"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}}),
            Scheme::ApiKey { place: KeyPlace::Header, name: "X-Key".to_owned() },
        ),
        (
            json!({"type": "apiKey", "in": "cookie", "name": "k"}),
            Scheme::ApiKey { place: KeyPlace::Cookie, name: "k".to_owned() },
        ),
    ] {
        assert_eq!(Scheme::read(&scheme), expected, "{scheme}");
    }
}

#[test]
fn what_is_not_understood_is_an_unknown_scheme_and_never_none() {
    for scheme in [
        json!(null),
        json!({}),
        json!({"acmeSecurityScheme": {}}),
        json!({"type": "hawk"}),
        json!({"httpAuthSecurityScheme": {"scheme": "digest"}}),
        json!({"httpAuthSecurityScheme": {}}),
        json!({"httpAuthSecurityScheme": null}),
        json!({"apiKeySecurityScheme": {"location": "body", "name": "k"}}),
        json!({"openIdConnectSecurityScheme": {"openIdConnectUrl": ""}}),
        json!({"mtlsSecurityScheme": {}, "httpAuthSecurityScheme": {"scheme": "basic"}}),
    ] {
        assert!(matches!(Scheme::read(&scheme), Scheme::Unknown(_)), "{scheme}");
    }
}

#[test]
fn requirements_of_both_spellings_are_understood() {
    let asked = |scheme: &str, scopes: &[&str]| SchemeRequirement {
        scheme: scheme.to_owned(),
        scopes: scopes.iter().map(|&scope| scope.to_owned()).collect(),
    };
    for (value, expected) in [
        (json!(null), None),
        (json!([]), Some(vec![])),
        (json!([{}]), Some(vec![vec![]])),
        (json!([{"schemes": {}}]), Some(vec![vec![]])),
        (
            json!([{"schemes": {"g": {"list": ["a"]}}}, {"k": []}]),
            Some(vec![vec![asked("g", &["a"])], vec![asked("k", &[])]]),
        ),
        (
            json!([{"g": ["a", "b"], "m": []}]),
            Some(vec![vec![asked("g", &["a", "b"]), asked("m", &[])]]),
        ),
        (json!([{"schemes": {"g": {}}}]), Some(vec![vec![asked("g", &[])]])),
        // A scheme that is called so.
        (json!([{"schemes": []}]), Some(vec![vec![asked("schemes", &[])]])),
    ] {
        assert_eq!(requirements("x", Some(value.clone())).unwrap(), expected, "{value}");
    }
    for value in [json!({}), json!("x"), json!([1]), json!([{"g": "a"}]), json!([{"g": [1]}])] {
        assert!(requirements("x", Some(value.clone())).is_err(), "{value}");
    }
}

#[test]
fn a_card_that_requires_an_extension_is_refused() {
    for (extensions, is_read) in [
        (json!(null), true),
        (json!([]), true),
        (json!([{"uri": "urn:x"}, {"uri": "urn:y", "required": false}]), true),
        (json!([{"uri": "urn:x"}, {"uri": "urn:y", "required": true}]), false),
        (json!([{"required": true}]), false),
    ] {
        let capabilities = json!({"streaming": true, "extensions": extensions});
        match read(&with("capabilities", capabilities.clone())) {
            Ok(card) => assert!(is_read && card.capabilities.streaming, "{capabilities}"),
            Err(error) => {
                assert!(!is_read && error.to_string().contains("no extension"), "{error}");
            }
        }
    }
}
