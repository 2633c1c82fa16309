//! Clients that come with a capability of their own: what it grants, and nothing else.

use chio_core::capability::{CapabilityToken, DpopProof, DpopTarget};
use chio_core::signed::Signed;
use chio_kernel::{Clock, SystemClock};
use chio_testkit::key;
use serde_json::{Value, json};

use crate::http::Request;
use crate::session::{Door, Session, receipt_of, text_of};
use crate::support::{Served, World};

/// The fixture behind a token that no client here has.
fn wrapped() -> (World, Served) {
    let world = World::new();
    world.folder.write_key("agent.key", &key(9));
    let served = world.wrap("--policy permissive --auth-token 0123456789abcdef");
    (world, served)
}

/// A capability of this name, issued with these options.
#[track_caller]
fn issue(world: &World, id: &str, options: &[&str]) -> String {
    let words = ["capability", "issue", "--data", "s", "--subject", "agent.key", "--id", id];
    let issued = world.run(&[&words, options].concat()).ends(0);
    // Headers have one line.
    issued.json().to_string()
}

fn showing(served: &Served, token: &str) -> Door {
    served.door.with("X-Chio-Capability", token)
}

/// Checks that a call was denied with a receipt, and gives the reason.
#[track_caller]
fn denied(world: &World, result: &Value) -> (String, Value) {
    assert_eq!(result["isError"], true, "{result}");
    let receipt = world.receipt(receipt_of(result));
    assert_eq!(receipt["decision"]["verdict"], "deny", "{receipt}");
    let account = &result["_meta"]["chio"];
    assert!(account["retry"]["strategy"].is_string() && account["retry"]["guidance"].is_string());
    (account["name"].as_str().unwrap().to_owned(), receipt)
}

// covers: BRIDGE-001, BRIDGE-002, CROSS-022
#[test]
fn a_capability_lists_what_it_grants_and_calls_beyond_it_are_denied_with_a_receipt() {
    let (world, served) = wrapped();
    let options = ["--grant", "fixture/echo", "--grant", "fixture/add"];
    let session = showing(&served, &issue(&world, "cap-two", &options)).open();
    assert_eq!(session.tools(), ["echo", "add"]);
    for list in ["resources/list", "resources/templates/list", "prompts/list"] {
        let listed = session.request(list, &json!({}))["result"].clone();
        let entries = listed.as_object().unwrap().values().next().unwrap();
        assert_eq!(entries, &json!([]), "{list}");
    }
    assert_eq!(text_of(&session.call("echo", &json!({"text": "mine"}))), "mine");
    let (name, receipt) = denied(&world, &session.call("secret", &json!({})));
    assert_eq!(
        (name.as_str(), &receipt["capability_id"]),
        ("capability_denied", &json!("cap-two"))
    );
    world.check_calls(&[("echo", "allow"), ("secret", "deny")]);
}

// covers: BRIDGE-001, BRIDGE-002
#[test]
fn reads_beyond_a_capability_are_denied_with_a_receipt() {
    let (world, served) = wrapped();
    let scope = json!({"resource_grants": [
        {"uri_pattern": "test://static-text", "operations": ["read"]},
    ]});
    world.folder.write("scope.json", scope.to_string());
    let session = showing(&served, &issue(&world, "cap-read", &["--scope", "scope.json"])).open();
    assert!(session.tools().is_empty());
    let listed = session.request("resources/list", &json!({}))["result"]["resources"].clone();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    let read = |method: &str, params: Value| session.request(method, &params);
    let answer = read("resources/read", json!({"uri": "test://static-text"}));
    assert!(answer["result"]["contents"][0]["text"].is_string(), "{answer}");
    assert!(answer["result"]["_meta"]["chio"]["receiptId"].is_string(), "{answer}");
    for (method, params, code) in [
        ("resources/read", json!({"uri": "test://watched-resource"}), -32002),
        ("resources/read", json!({"uri": "test://template/1/data"}), -32002),
        ("resources/subscribe", json!({"uri": "test://static-text"}), -32002),
        ("prompts/get", json!({"name": "test_simple_prompt"}), -32002),
    ] {
        let answer = read(method, params.clone());
        assert_eq!(answer["error"]["code"], code, "{method} {params}: {answer}");
        let receipt = &answer["error"]["data"]["chio"]["receiptId"];
        assert!(receipt.is_string(), "{method} {params}: {answer}");
    }
    // One for each that was allowed, and one for each that was not.
    let receipts = world.receipts();
    let states: Vec<_> = receipts.iter().map(|it| &it["terminal_state"]["state"]).collect();
    assert_eq!(receipts.len(), 5, "{states:?}");
    world.audit();
}

#[test]
fn a_capability_that_was_revoked_is_denied_also_in_a_session_that_is_open() {
    let (world, served) = wrapped();
    let token = issue(&world, "cap-gone", &["--grant", "fixture/echo"]);
    let session = showing(&served, &token).open();
    session.call("echo", &json!({"text": "before"}));
    world.line("capability revoke cap-gone --data s").ends(0);
    let (name, _) = denied(&world, &session.call("echo", &json!({"text": "after"})));
    assert_eq!(name, "capability_revoked");
    // There is no new session with it either.
    refused(&served, &token);
    world.check_calls(&[("echo", "allow"), ("echo", "deny")]);
}

/// Checks that a capability opens no session.
#[track_caller]
fn refused(served: &Served, token: &str) {
    let hello = Request::post(&crate::session::initialize(&json!({})));
    let mut answer = showing(served, token).send(hello).is(401);
    assert_eq!(answer.header("mcp-session-id"), None);
    let message = answer.json();
    assert_eq!(message["error"]["data"]["chioError"]["code"], 1100, "{message}");
}

#[test]
fn a_capability_that_does_not_hold_opens_no_session() {
    let (world, served) = wrapped();
    let token = issue(&world, "cap-changed", &["--grant", "fixture/echo"]);
    let mut wider: Value = serde_json::from_str(&token).unwrap();
    wider["scope"]["grants"][0]["tool_name"] = json!("*");
    refused(&served, &wider.to_string());
    let options = ["--grant", "fixture/echo", "--at", "1000000000", "--ttl", "60s"];
    refused(&served, &issue(&world, "cap-old", &options));
    // Signed, but by an issuer that is not trusted.
    let token: CapabilityToken = serde_json::from_str(&token).unwrap();
    let forged = CapabilityToken { issuer: key(7).public_key().clone(), ..token };
    let forged = forged.signed(&key(7)).unwrap();
    refused(&served, &serde_json::to_string(&forged).unwrap());
    assert!(world.receipts().is_empty());
}

#[test]
fn what_is_no_capability_is_not_let_in() {
    let (world, served) = wrapped();
    let token = issue(&world, "cap-fine", &["--grant", "fixture/echo"]);
    let hello = crate::session::initialize(&json!({}));
    let twice = Request::post(&hello).and("X-Chio-Capability", &token);
    for request in [
        Request::post(&hello).with("X-Chio-Capability", ""),
        Request::post(&hello).with("X-Chio-Capability", "{}"),
        Request::post(&hello).with("X-Chio-Capability", "cap-fine"),
        Request::post(&hello).with("X-Chio-Capability", &token.replace('}', "")),
        twice.and("X-Chio-Capability", &token),
    ] {
        let mut answer = served.door.send(request).is(401);
        assert_eq!(answer.header("mcp-session-id"), None);
        let message = answer.json();
        assert_eq!(message["error"]["data"]["chioError"]["code"], 1100, "{message}");
        assert!(!message.to_string().contains("cap-fine"), "{message}");
    }
    assert!(world.receipts().is_empty());
}

/// Bytes as base64url writes them.
fn base64url(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or_default());
        let number = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..=three.len() {
            let at = usize::try_from(number >> (18 - 6 * place) & 63).unwrap();
            text.push(char::from(LETTERS[at]));
        }
    }
    text
}

/// A call with a proof for these arguments.
#[track_caller]
fn proved(session: &Session, token: &str, nonce: &str, (shown, sent): (&str, &str)) -> Value {
    let token: CapabilityToken = serde_json::from_str(token).unwrap();
    let arguments = json!({"text": shown});
    let target = DpopTarget {
        token: &token,
        tool_server: "fixture",
        tool_name: "echo",
        arguments: &arguments,
    };
    let now = SystemClock::default().unix_seconds();
    let proof = DpopProof::new(&target, nonce.to_owned(), now, &key(9)).unwrap();
    let proof = base64url(&serde_json::to_vec(&proof).unwrap());
    let params = json!({"name": "echo", "arguments": {"text": sent}});
    let (id, request) = session.asks("tools/call", &params);
    session.stream(session.send(request.with("DPoP", &proof)).is(200), id).result()
}

#[test]
fn a_capability_that_asks_for_a_proof_is_nothing_without_one() {
    let (world, served) = wrapped();
    let token = issue(&world, "cap-proof", &["--grant", "fixture/echo", "--dpop"]);
    let session = showing(&served, &token).open();
    let (name, receipt) = denied(&world, &session.call("echo", &json!({"text": "a"})));
    assert_eq!(name, "capability_denied");
    assert_eq!(receipt["decision"]["guard"], "proof_of_possession");
    assert_eq!(text_of(&proved(&session, &token, "one", ("a", "a"))), "a");
    // A proof is for one call, and for its arguments.
    assert_eq!(denied(&world, &proved(&session, &token, "one", ("a", "a"))).0, "capability_denied");
    assert_eq!(denied(&world, &proved(&session, &token, "two", ("a", "b"))).0, "capability_denied");
    let (_, request) = session.asks("tools/call", &json!({"name": "echo", "arguments": {}}));
    session.send(request.with("DPoP", "not a proof")).is(401);
    world.check_calls(&[("echo", "deny"), ("echo", "allow"), ("echo", "deny"), ("echo", "deny")]);
}
