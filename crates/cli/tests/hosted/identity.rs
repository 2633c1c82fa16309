//! Whose a session is: only the client that opened it may use it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::http::Request;
use crate::session::{Door, Session, receipt_of, text_of};
use crate::support::{Served, World};

const ALICE: &str = "Bearer alice-0123456789abcdef";
const BOB: &str = "Bearer bob-0123456789abcdef";

/// The demo tools for two who show tokens.
fn for_two() -> (World, Served) {
    let world = World::new();
    world.folder.write("alice.token", ALICE.trim_start_matches("Bearer "));
    world.folder.write("bob.token", BOB.trim_start_matches("Bearer "));
    let config = "store: s\nservers: [{id: demo}]\nlisteners:\n  http:\n    listen: 127.0.0.1:0\n    \
                  tokens:\n      - {name: alice, file: alice.token}\n      \
                  - {name: bob, file: bob.token}\nedges: {mcp: {}}\n";
    world.folder.write("chio.yaml", config);
    let served = world.start(&["serve"]);
    (world, served)
}

/// Checks that a client cannot use another client's session.
#[track_caller]
fn check_foreign(session: &Session, thief: &Door) {
    let echo = json!({"name": "echo", "arguments": {"text": "stolen"}});
    for request in [
        session.asks("tools/call", &echo).1,
        session.asks("ping", &json!({})).1,
        Request::post(&json!({"jsonrpc": "2.0", "id": "chio-1", "result": {}})),
        Request::post(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": 1}})),
        Request::get(),
        Request::get().with("Last-Event-ID", &format!("{}-1", session.id)),
        Request::delete(),
    ] {
        let what = format!("{request:?}");
        let message = thief.send(session.of(request)).check_for(403, &what).json();
        let known = &message["error"]["data"]["chioError"];
        assert_eq!(known["name"], "auth_missing_or_invalid", "{what}: {message}");
        assert!(message.get("result").is_none(), "{what}: {message}");
    }
}

#[test]
fn whoever_shows_no_token_or_another_is_told_what_is_missing() {
    let world = World::new();
    let served = world.wrap("--policy permissive --auth-token right-0123456789abcdef");
    let session = served.door.with("Authorization", "Bearer right-0123456789abcdef").open();
    let hello = crate::session::initialize(&json!({}));
    let echo = json!({"name": "echo", "arguments": {"text": "x"}});
    for (shown, status) in [
        (None, 401),
        (Some("Bearer wrong-0123456789abcdef"), 401),
        (Some("Bearer right-0123456789abcde"), 401),
        (Some("Bearer "), 400),
        (Some("Basic right-0123456789abcdef"), 401),
        (Some("right-0123456789abcdef"), 401),
    ] {
        for request in [
            Request::post(&hello),
            session.of(session.asks("tools/call", &echo).1),
            session.of(Request::get()),
            session.of(Request::delete()),
        ] {
            let request = match shown {
                Some(shown) => request.with("Authorization", shown),
                None => request,
            };
            let mut answer = served.door.send(request).check_for(status, &format!("{shown:?}"));
            let challenge = answer.header("www-authenticate").unwrap().to_owned();
            assert!(challenge.starts_with("Bearer"), "{challenge}");
            assert_eq!(answer.header("mcp-session-id"), None);
            let message = answer.json();
            assert_eq!(message["error"]["data"]["chioError"]["code"], 1100, "{message}");
            assert!(!message.to_string().contains("0123456789abcdef"), "no token is repeated");
        }
    }
    assert!(world.receipts().is_empty());
    session.call("echo", &json!({"text": "still here"}));
    world.check_calls(&[("echo", "allow")]);
}

// covers: WIRE-071
#[test]
fn a_session_is_for_the_token_that_opened_it() {
    let (world, served) = for_two();
    let (alice, bob) =
        (served.door.with("Authorization", ALICE), served.door.with("Authorization", BOB));
    let (hers, his) = (alice.open(), bob.open());
    check_foreign(&hers, &bob);
    check_foreign(&his, &alice);
    served.door.send(hers.of(Request::delete())).is(401);
    let first = hers.call("echo", &json!({"text": "hers"}));
    let second = his.call("echo", &json!({"text": "his"}));
    // Each is another subject to the kernel.
    let subject = |result: &Value| {
        world.receipt(receipt_of(result))["metadata"]["attribution"]["subject_key"].clone()
    };
    assert_ne!(subject(&first), subject(&second));
    // Also when it is over.
    hers.send(Request::delete()).is(204);
    check_foreign(&hers, &bob);
    assert_eq!(text_of(&his.call("echo", &json!({"text": "his"}))), "{\"text\":\"his\"}");
    assert_eq!(world.calls().len(), 3);
}

/// A token of the authorization server whose key is `key(5)`, as an `Authorization` header.
fn jwt(claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(&json!({"alg": "EdDSA", "kid": "k"})), part(claims));
    let signature = bytes_of(&chio_testkit::key(5).sign(signed.as_bytes()).to_hex());
    format!("Bearer {signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    hex.as_bytes().chunks(2).map(byte).collect()
}

// covers: WIRE-071
#[test]
fn a_session_is_for_the_principal_of_an_authorization_server_whichever_token_it_shows() {
    let world = World::new();
    let public = bytes_of(&chio_testkit::key(5).public_key().to_hex());
    let key = json!({"kty": "OKP", "crv": "Ed25519", "kid": "k",
        "x": URL_SAFE_NO_PAD.encode(public)});
    world.folder.write("keys.json", json!({"keys": [key]}).to_string());
    let config = "store: s\nservers: [{id: demo}]\nlisteners:\n  http:\n    listen: 127.0.0.1:0\n    \
                  jwt: {issuer: \"https://login.example\", audience: chio, scopes: [tools], \
                  keys_file: keys.json}\nedges: {mcp: {}}\n";
    world.folder.write("chio.yaml", config);
    let served = world.start(&["serve"]);
    let claims = |changes: Value| {
        let mut claims = json!({"iss": "https://login.example", "aud": "chio", "sub": "alice",
            "scope": "tools", "tid": "tenant-7", "exp": 4_000_000_000_u64, "jti": "1"});
        claims.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        served.door.with("Authorization", &jwt(&claims))
    };
    let mut session = claims(json!({})).open();
    let first = session.call("echo", &json!({"text": "one"}));
    let receipt = world.receipt(receipt_of(&first));
    assert_eq!(receipt["tenant_id"], "tenant-7", "{receipt}");
    // A refreshed token is the same principal; another subject is not.
    session.door = claims(json!({"jti": "2", "exp": 4_000_000_001_u64}));
    session.call("echo", &json!({"text": "two"}));
    check_foreign(&session, &claims(json!({"sub": "bob"})));
    check_foreign(&session, &claims(json!({"tid": "tenant-8"})));
    let hello = crate::session::initialize(&json!({}));
    for (changes, status) in [
        (json!({"aud": "other"}), 401),
        (json!({"iss": "https://other.example"}), 401),
        (json!({"exp": 1_000_000_000}), 401),
        (json!({"scope": "read"}), 403),
    ] {
        let answer = claims(changes.clone()).send(Request::post(&hello));
        let answer = answer.check_for(status, &changes.to_string());
        assert!(answer.header("www-authenticate").unwrap().starts_with("Bearer"), "{changes}");
    }
    world.check_calls(&[("echo", "allow"), ("echo", "allow")]);
}

#[test]
fn a_session_is_for_the_subject_whose_capability_opened_it() {
    let (world, served) = World::up();
    let issue = |id: &str, subject: u8| {
        world.folder.write_key("agent.key", &chio_testkit::key(subject));
        let line = format!(
            "capability issue --data s --subject agent.key --grant demo/echo --id {id} --out {id}"
        );
        world.line(&line).ends(0);
        serde_json::from_str::<Value>(&world.folder.read(id)).unwrap()
    };
    let with = |token: &Value| served.door.with("X-Chio-Capability", &token.to_string());
    let (one, other) = (issue("cap-one", 9), issue("cap-other", 8));
    let (first, second) = (with(&one).open(), served.door.open());
    check_foreign(&first, &with(&other));
    check_foreign(&first, &served.door);
    check_foreign(&second, &with(&one));
    first.call("echo", &json!({"text": "mine"}));
    // A forged capability of the same subject does not get in, and spoils nothing.
    let mut forged = one.clone();
    forged["id"] = json!("cap-forged");
    check_foreign(&first, &with(&forged));
    // A refreshed capability does, and is the one that is used from then on.
    let refreshed = issue("cap-refreshed", 9);
    let mut session = first;
    session.door = with(&refreshed);
    let result = session.call("echo", &json!({"text": "still mine"}));
    assert_eq!(world.receipt(receipt_of(&result))["capability_id"], "cap-refreshed");
    world.check_calls(&[("echo", "allow"), ("echo", "allow")]);
}

#[test]
fn others_than_this_machine_are_never_let_in_without_a_token() {
    let world = World::new();
    for options in ["", "--anonymous default"] {
        let line = format!("mcp serve --http 0.0.0.0:0 --data s {options} -- no-such-program");
        world.line(&line).ends(2).complains("expected authentication or a loopback address");
    }
    world.line("up --listen 0.0.0.0:0 --data s").ends(2).complains("expected authentication");
    assert!(!world.folder.path("s").exists(), "nothing was started");
}

#[test]
fn others_than_this_machine_come_in_with_a_token() {
    let world = World::new();
    let served = world.wrap_on("0.0.0.0:0", "--policy permissive --auth-token 0123456789abcdef");
    let hello = Request::post(&crate::session::initialize(&json!({})));
    served.door.send(hello).is(401);
    let session = served.door.with("Authorization", "Bearer 0123456789abcdef").open();
    assert_eq!(text_of(&session.call("echo", &json!({"text": "x"}))), "x");
    world.check_calls(&[("echo", "allow")]);
}
