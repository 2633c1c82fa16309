//! Tokens that are accepted, and every reason to refuse one.

use chio_net::client::Limits;
use chio_net::jwt::{
    Algorithm, Claims, IssuerError, IssuerKeys, JwtError, JwtVerifier, RefreshRules,
};
use serde_json::{Value, json};

use super::server::client;
use super::tokens::{AUDIENCE, ISSUER, Key, NOW, claims, set};

fn verifier(keys: &[&Key]) -> JwtVerifier {
    JwtVerifier::new([AUDIENCE, "chio"]).with_issuer(ISSUER, IssuerKeys::fixed(set(keys))).unwrap()
}

async fn verify(key: &Key, changes: Value) -> Result<Claims, JwtError> {
    verifier(&[key]).verify(&key.sign(&claims(&changes)), NOW).await
}

#[tokio::test]
async fn a_good_token_is_believed_with_every_algorithm_that_is_allowed() {
    for algorithm in Algorithm::ALL {
        let key = Key::new("k", algorithm);
        let token = key.sign(&claims(&json!({"jti": "j", "azp": "app", "other": 1})));
        let believed = verifier(&[&key]).verify(&token, NOW).await.unwrap();
        assert_eq!(believed.issuer, ISSUER);
        assert_eq!(believed.audience, AUDIENCE);
        assert_eq!(believed.subject.as_deref(), Some("alice"));
        assert_eq!(believed.client_id.as_deref(), Some("app"));
        assert_eq!(believed.token_id.as_deref(), Some("j"));
        assert_eq!(believed.scopes, ["read", "write"]);
        assert_eq!(believed.expires_at, NOW + 300);
        assert_eq!(believed.all["other"], 1);
    }
}

#[tokio::test]
async fn claims_decide() {
    let key = Key::ed("k");
    let claim = |name| Err(JwtError::Claim(name));
    let cases: Vec<(Value, Result<(), JwtError>)> = vec![
        (json!({}), Ok(())),
        (json!({"sub": null, "iat": null, "nbf": null, "scope": null}), Ok(())),
        (json!({"iss": null}), claim("iss")),
        (json!({"iss": 7}), claim("iss")),
        (json!({"iss": [ISSUER]}), claim("iss")),
        (json!({"iss": "https://issuer.example/"}), Err(JwtError::Issuer)),
        (json!({"iss": "https://other.example"}), Err(JwtError::Issuer)),
        (json!({"iss": ""}), Err(JwtError::Issuer)),
        (json!({"aud": null}), claim("aud")),
        (json!({"aud": []}), claim("aud")),
        (json!({"aud": 7}), claim("aud")),
        (json!({"aud": [AUDIENCE, 7]}), claim("aud")),
        (json!({"aud": "https://chio.example"}), Err(JwtError::Audience)),
        (json!({"aud": ["a", "b"]}), Err(JwtError::Audience)),
        (json!({"aud": ["a", AUDIENCE]}), Ok(())),
        (json!({"aud": "chio"}), Ok(())),
        (json!({"exp": null}), claim("exp")),
        (json!({"exp": "1"}), claim("exp")),
        (json!({"exp": -1}), claim("exp")),
        (json!({"exp": NOW - 60}), Err(JwtError::Expired)),
        (json!({"exp": NOW - 59}), Ok(())),
        (json!({"exp": (NOW - 60) as f64 + 0.9}), Err(JwtError::Expired)),
        (json!({"exp": 0}), Err(JwtError::Expired)),
        (json!({"exp": 1e300}), Ok(())),
        (json!({"exp": u64::MAX}), Ok(())),
        (json!({"nbf": NOW + 60}), Ok(())),
        (json!({"nbf": NOW + 61}), Err(JwtError::NotYetValid)),
        (json!({"nbf": (NOW + 60) as f64 + 0.1}), Err(JwtError::NotYetValid)),
        (json!({"nbf": "x"}), claim("nbf")),
        (json!({"iat": NOW + 61}), Err(JwtError::NotYetValid)),
        (json!({"iat": true}), claim("iat")),
        (json!({"sub": 7}), claim("sub")),
        (json!({"sub": "x".repeat(255)}), Ok(())),
        (json!({"sub": "x".repeat(256)}), claim("sub")),
        (json!({"sub": "a\nb"}), claim("sub")),
        (json!({"client_id": "a\0"}), claim("client_id")),
        (json!({"azp": "x".repeat(256)}), claim("azp")),
        (json!({"jti": 7}), claim("jti")),
        (json!({"client_id": 7}), claim("client_id")),
        (json!({"scope": 7}), claim("scope")),
    ];
    for (changes, expected) in cases {
        assert_eq!(verify(&key, changes.clone()).await.map(drop), expected, "{changes}");
    }
}

#[tokio::test]
async fn a_token_ends_at_the_latest_where_times_do() {
    let key = Key::ed("k");
    for (exp, expected) in [
        (json!(u64::MAX), 253_402_300_799),
        (json!(1e300), 253_402_300_799),
        (json!(253_402_300_800_u64), 253_402_300_799),
        (json!(NOW + 1), NOW + 1),
    ] {
        let found = verify(&key, json!({"exp": exp})).await.unwrap();
        assert_eq!(found.expires_at, expected, "{exp}");
    }
}

#[test]
fn an_issuer_is_a_name_without_extras_once_and_with_its_own_keys() {
    let fixed = || IssuerKeys::fixed(set(&[]));
    for name in ["", "https://a.example#sub:b", "https://a.example?x", "https://a.example/\n"] {
        let outcome = JwtVerifier::new([AUDIENCE]).with_issuer(name, fixed());
        assert_eq!(outcome.map(drop), Err(IssuerError::Form), "{name}");
    }
    let one = || JwtVerifier::new([AUDIENCE]).with_issuer(ISSUER, fixed()).unwrap();
    let twice = one().with_issuer(ISSUER, fixed()).map(drop);
    assert_eq!(twice, Err(IssuerError::Repeated));
    let discovered = || {
        let client = client(Limits::default());
        IssuerKeys::discovered(client, "https://other.example", RefreshRules::default())
    };
    assert!(one().with_issuer("https://other.example", discovered()).is_ok());
    let mixed = JwtVerifier::new([AUDIENCE]).with_issuer(ISSUER, discovered()).map(drop);
    assert_eq!(mixed, Err(IssuerError::OtherKeys));
}

#[tokio::test]
async fn nothing_of_a_token_is_in_the_error() {
    let key = Key::ed("k");
    let good = claims(&json!({})).to_string();
    for (header, payload) in [
        (r#"{"alg":"EdDSA","SECRET-abc":1,"SECRET-abc":2}"#, good.as_str()),
        (r#"{"alg":"EdDSA","kid":"k"}"#, r#"{"SECRET-abc":1,"SECRET-abc":2}"#),
        (r#"{"alg":"EdDSA","kid":"k"}"#, r#"{"SECRET-abc""#),
        (r#"{"alg":"SECRET-abc"}"#, &good),
        (r#"{"alg":"EdDSA","kid":"SECRET-abc"}"#, &good),
    ] {
        let token = key.sign_text(header, payload);
        let error = verifier(&[&key]).verify(&token, NOW).await.unwrap_err();
        assert!(!format!("{error} {error:?}").contains("SECRET"), "{error:?}");
    }
}

#[tokio::test]
async fn scopes_are_read_however_servers_write_them() {
    let key = Key::ed("k");
    for (changes, expected) in [
        (json!({"scope": "a  b "}), vec!["a", "b"]),
        (json!({"scope": ["a", "b c"]}), vec!["a", "b", "c"]),
        (json!({"scope": null, "scp": ["a", "b"]}), vec!["a", "b"]),
        (json!({"scope": null, "scp": "a b"}), vec!["a", "b"]),
        (json!({"scope": "", "scp": "a b"}), vec![]),
        (json!({"scope": null}), vec![]),
    ] {
        assert_eq!(verify(&key, changes.clone()).await.unwrap().scopes, expected, "{changes}");
    }
}

#[tokio::test]
async fn the_header_decides() {
    let key = Key::ed("k");
    let payload = claims(&json!({})).to_string();
    let malformed = |what| Err(JwtError::Malformed(what));
    for (header, expected) in [
        (r#"{"alg":"EdDSA","kid":"k"}"#, Ok(())),
        (r#"{"alg":"EdDSA"}"#, Ok(())),
        (
            r#"{"alg":"EdDSA","typ":"at+JWT","jku":"https://evil.example","jwk":{},"x5u":"x"}"#,
            Ok(()),
        ),
        (r#"{"alg":"EdDSA","typ":"application/at+jwt"}"#, Ok(())),
        (r#"{"alg":"EdDSA","typ":"dpop+jwt"}"#, Err(JwtError::Type)),
        (r#"{"alg":"EdDSA","typ":"logout+jwt"}"#, Err(JwtError::Type)),
        (r#"{"alg":"EdDSA","typ":7}"#, malformed("a `typ` that is no text")),
        (r#"{"alg":"none"}"#, Err(JwtError::Algorithm)),
        (r#"{"alg":"None"}"#, Err(JwtError::Algorithm)),
        (r#"{"alg":""}"#, Err(JwtError::Algorithm)),
        (r#"{}"#, Err(JwtError::Algorithm)),
        (r#"{"alg":"HS256"}"#, Err(JwtError::Algorithm)),
        (r#"{"alg":"HS512","kid":"k"}"#, Err(JwtError::Algorithm)),
        (r#"{"alg":"RS512"}"#, Err(JwtError::Algorithm)),
        (r#"{"alg":"eddsa"}"#, Err(JwtError::Algorithm)),
        (r#"{"alg":7}"#, malformed("an `alg` that is no text")),
        (r#"{"alg":"EdDSA","crit":["exp"]}"#, Err(JwtError::Critical)),
        (r#"{"alg":"EdDSA","crit":[]}"#, Err(JwtError::Critical)),
        (r#"{"alg":"EdDSA","b64":false,"crit":["b64"]}"#, Err(JwtError::Critical)),
        (r#"{"alg":"EdDSA","kid":"x"}"#, Err(JwtError::UnknownKey)),
        (r#"{"alg":"EdDSA","kid":""}"#, Err(JwtError::UnknownKey)),
        (r#"{"alg":"EdDSA","kid":7}"#, malformed("a `kid` that is no text")),
        // The key has the right name and is of another kind.
        (r#"{"alg":"RS256","kid":"k"}"#, Err(JwtError::UnknownKey)),
        (r#"{"alg":"ES256","kid":"k"}"#, Err(JwtError::UnknownKey)),
    ] {
        let outcome = verifier(&[&key]).verify(&key.sign_text(header, &payload), NOW).await;
        assert_eq!(outcome.map(drop), expected, "{header}");
    }
}

#[tokio::test]
async fn one_text_is_one_token() {
    let key = Key::ed("k");
    let good = claims(&json!({})).to_string();
    let header = r#"{"alg":"EdDSA","kid":"k"}"#;
    let twice = good.replace("{", r#"{"sub":"mallory","#);
    for (header, payload, part) in
        [(r#"{"alg":"EdDSA","alg":"EdDSA"}"#, good.as_str(), "header"), (header, &twice, "payload")]
    {
        let outcome = verifier(&[&key]).verify(&key.sign_text(header, payload), NOW).await;
        let expected = Err(JwtError::Json { part, found: "a member twice" });
        assert_eq!(outcome.map(drop), expected);
    }
    for (header, payload) in [("[]", good.as_str()), ("x", &good), (header, "[]"), (header, "7")] {
        let outcome = verifier(&[&key]).verify(&key.sign_text(header, payload), NOW).await;
        assert!(matches!(outcome, Err(JwtError::Json { .. })), "{outcome:?}");
    }
}

#[tokio::test]
async fn what_is_changed_or_signed_by_another_is_not_believed() {
    let (key, other) = (Key::ed("k"), Key::ed("k"));
    let token = key.sign(&claims(&json!({})));
    let verifier = verifier(&[&key]);
    assert!(verifier.verify(&token, NOW).await.is_ok());
    let forged = other.sign(&claims(&json!({})));
    assert_eq!(verifier.verify(&forged, NOW).await.map(drop), Err(JwtError::Signature));
    // Every character counts, also those whose last bits say nothing.
    for (at, old) in token.char_indices() {
        for new in ['A', 'B', 'w', '.', '=', '!'] {
            let mut changed = token.clone();
            changed.replace_range(at..=at, &new.to_string());
            let outcome = verifier.verify(&changed, NOW).await;
            assert_eq!(outcome.is_ok(), old == new, "{at} {new}");
        }
    }
    let parts: Vec<&str> = token.split('.').collect();
    for text in [
        String::new(),
        "..".to_owned(),
        format!("{}.{}", parts[0], parts[1]),
        format!("{}.{}.", parts[0], parts[1]),
        format!("{token}."),
        format!("{token}.{}", parts[2]),
        format!(" {token}"),
        format!("{token}=="),
    ] {
        assert!(verifier.verify(&text, NOW).await.is_err(), "{text}");
    }
}

#[tokio::test]
async fn a_key_of_one_issuer_does_not_sign_for_another() {
    let (key, other) = (Key::ed("a"), Key::ed("b"));
    let verifier = verifier(&[&key])
        .with_issuer("https://other.example", IssuerKeys::fixed(set(&[&other])))
        .unwrap();
    let as_other = claims(&json!({"iss": "https://other.example"}));
    assert!(verifier.verify(&other.sign(&as_other), NOW).await.is_ok());
    let outcome = verifier.verify(&key.sign(&as_other), NOW).await.map(drop);
    assert_eq!(outcome, Err(JwtError::UnknownKey));
    let outcome = verifier.verify(&other.sign(&claims(&json!({}))), NOW).await.map(drop);
    assert_eq!(outcome, Err(JwtError::UnknownKey));
}

#[tokio::test]
async fn without_a_name_the_key_must_be_the_only_one_that_fits() {
    let (a, b, c) = (Key::ed("a"), Key::ed("b"), Key::new("c", Algorithm::Es256));
    let text = claims(&json!({})).to_string();
    let nameless = a.sign_text(r#"{"alg":"EdDSA"}"#, &text);
    assert!(verifier(&[&a, &c]).verify(&nameless, NOW).await.is_ok());
    let outcome = verifier(&[&a, &b, &c]).verify(&nameless, NOW).await.map(drop);
    assert_eq!(outcome, Err(JwtError::AmbiguousKey));
}

#[tokio::test]
async fn a_token_has_a_bound() {
    const LIMIT: usize = 16 * 1024;
    let key = Key::ed("k");
    let padded = |bytes: usize| key.sign(&claims(&json!({"pad": "x".repeat(bytes)})));
    let verifier = verifier(&[&key]);
    let (mut shorter, mut longer) = (0, 0);
    // Three bytes of a payload are four of a token.
    for bytes in 11_900..12_100 {
        let token = padded(bytes);
        let outcome = verifier.verify(&token, NOW).await.map(drop);
        if token.len() <= LIMIT {
            assert_eq!(outcome, Ok(()), "{}", token.len());
            shorter += 1;
        } else {
            assert_eq!(outcome, Err(JwtError::TooLong { limit: LIMIT }), "{}", token.len());
            longer += 1;
        }
    }
    assert!(shorter > 0 && longer > 0, "{shorter} {longer}");
}

#[tokio::test]
async fn without_issuers_or_audiences_nobody_is_believed() {
    let key = Key::ed("k");
    let token = key.sign(&claims(&json!({})));
    let nobody = JwtVerifier::new([AUDIENCE]).verify(&token, NOW).await.map(drop);
    assert_eq!(nobody, Err(JwtError::Issuer));
    let none: [&str; 0] = [];
    let keys = IssuerKeys::fixed(set(&[&key]));
    let nowhere =
        JwtVerifier::new(none).with_issuer(ISSUER, keys).unwrap().verify(&token, NOW).await;
    assert_eq!(nowhere.map(drop), Err(JwtError::Audience));
}
