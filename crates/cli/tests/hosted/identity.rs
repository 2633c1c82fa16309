//! Whose a session is: only the client that opened it may use it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chio_testkit::mcp::{Request, initialize, receipt_of, text_of};
use serde_json::{Value, json};

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

/// How lines for people say who called.
fn by(name: &str) -> String {
    format!("by {name}")
}

// covers: WIRE-071
#[test]
fn a_session_is_for_the_token_that_opened_it() {
    let (world, served) = for_two();
    let (alice, bob) =
        (served.door.with("Authorization", ALICE), served.door.with("Authorization", BOB));
    let (hers, his) = (alice.open(), bob.open());
    hers.check_refused_to(&bob);
    his.check_refused_to(&alice);
    served.door.send(hers.of(Request::delete())).is(401);
    let first = hers.call("echo", &json!({"text": "hers"}));
    let second = his.call("echo", &json!({"text": "his"}));
    // Each is another subject to the kernel.
    let subject = |result: &Value| {
        world.receipt(receipt_of(result))["metadata"]["attribution"]["subject_key"].clone()
    };
    assert_ne!(subject(&first), subject(&second));
    // And a principal whom receipts, and searches, name.
    for (name, text) in [("alice", "hers"), ("bob", "his")] {
        let found = world.line(&format!("receipt list --data s --subject {name} --json")).ends(0);
        let found = found.json()["receipts"].clone();
        assert_eq!(found.as_array().map(Vec::len), Some(1), "{found}");
        let receipt = &found[0]["receipt"];
        assert_eq!(receipt["action"]["parameters"], json!({"text": text}));
        assert_eq!(receipt["metadata"]["principal"], json!({"name": name}));
        world.line(&format!("receipt list --data s --subject {name}")).ends(0).says(&by(name));
        let line = format!("receipt tail --data s --subject {name} --count 1");
        world.line(&line).ends(0).says(&by(name));
        let id = receipt["id"].as_str().unwrap();
        let shown = world.line(&format!("receipt show {id} --data s")).ends(0);
        assert!(shown.stdout.contains(&format!("principal   {name}")), "{}", shown.stdout);
    }
    world.line("receipt list --data s --subject carol").ends(0).says("none");
    // Also when it is over.
    hers.send(Request::delete()).is(204);
    hers.check_refused_to(&bob);
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
            "scope": "tools", "tid": "tenant-7", "groups": ["dev", "ops"],
            "email": "alice@mail.example", "exp": 4_000_000_000_u64, "jti": "1"});
        claims.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        served.door.with("Authorization", &jwt(&claims))
    };
    let mut session = claims(json!({})).open();
    let first = session.call("echo", &json!({"text": "one"}));
    let receipt = world.receipt(receipt_of(&first));
    assert_eq!(receipt["tenant_id"], "tenant-7", "{receipt}");
    let name = "oauth:https://login.example#tenant:tenant-7#sub:alice";
    let principal = json!({"groups": ["dev", "ops"], "name": name, "tenant": "tenant-7"});
    assert_eq!(receipt["metadata"]["principal"], principal);
    assert!(!receipt.to_string().contains("alice@"), "no other claim is signed: {receipt}");
    // A refreshed token is the same principal; another subject is not.
    session.door = claims(json!({"jti": "2", "exp": 4_000_000_001_u64}));
    session.call("echo", &json!({"text": "two"}));
    session.check_refused_to(&claims(json!({"sub": "bob"})));
    session.check_refused_to(&claims(json!({"tid": "tenant-8"})));
    let hello = initialize(&json!({}));
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
    world.folder.write("t", "0123456789abcdef\n");
    let served = world.wrap_on("0.0.0.0:0", "--policy permissive --auth-token-file t");
    let hello = Request::post(&initialize(&json!({})));
    served.door.send(hello).is(401);
    let session = served.door.with("Authorization", "Bearer 0123456789abcdef").open();
    assert_eq!(text_of(&session.call("echo", &json!({"text": "x"}))), "x");
    world.check_calls(&[("echo", "allow")]);
}
