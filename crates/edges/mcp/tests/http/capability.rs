//! Clients that come with a capability of their own: what it grants, and nothing else.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chio_core::capability::{CapabilityToken, ChioScope, DpopProof, DpopTarget};
use chio_core::signed::Signed;
use chio_cross_protocol::{CrossProtocolCapabilityRef, DiscoveryProtocol};
use chio_testkit::key;
use chio_testkit::mcp::{Door, Request, Session, initialize, receipt_of, text_of};
use serde_json::{Value, json};

use crate::world::{Beginning, World, capability, now, scope};

/// The seed of the agent whose capabilities these are.
const AGENT: u8 = 9;

/// The fixture behind a token that no client here has.
fn closed() -> World {
    Beginning { token: Some("0123456789abcdef"), ..Beginning::default() }.start()
}

/// A capability of this name for these tools, as a header has it.
fn issue(id: &str, tools: &[&str]) -> String {
    issue_for(id, scope(tools, &[]), now())
}

fn issue_for(id: &str, scope: ChioScope, issued_at: u64) -> String {
    let token = capability(id, key(AGENT).public_key(), scope, issued_at);
    serde_json::to_string(&token).unwrap()
}

fn showing(world: &World, token: &str) -> Door {
    world.door.with("X-Chio-Capability", token)
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

// covers: BRIDGE-002, CROSS-022
#[test]
fn a_capability_lists_what_it_grants_and_calls_beyond_it_are_denied_with_a_receipt() {
    let world = closed();
    let token = issue("cap-two", &["fixture/echo", "fixture/add"]);
    let session = showing(&world, &token).open();
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

// covers: BRIDGE-002
#[test]
fn reads_beyond_a_capability_are_denied_with_a_receipt() {
    let world = closed();
    let scope = json!({"resource_grants": [
        {"uri_pattern": "test://static-text", "operations": ["read"]},
    ]});
    let scope = serde_json::from_value(scope).unwrap();
    let session = showing(&world, &issue_for("cap-read", scope, now())).open();
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

// covers: CROSS-033, CROSS-034
#[test]
fn a_reference_has_to_be_the_one_to_the_capability_that_is_used() {
    let world = closed();
    let token = issue("cap-ref", &["fixture/echo"]);
    let session = showing(&world, &token).open();
    let token: CapabilityToken = serde_json::from_str(&token).unwrap();
    let own = CrossProtocolCapabilityRef::to_token(&token.into(), DiscoveryProtocol::Mcp, None);
    let own = serde_json::to_value(own.unwrap()).unwrap();
    let call = |reference: &Value| {
        let params = json!({"name": "echo", "arguments": {"text": "x"},
            "_meta": {"chio": {"capabilityRef": reference}}});
        session.request("tools/call", &params)
    };
    let receipt = world.receipt(receipt_of(&call(&own)["result"]));
    assert_eq!(receipt["decision"]["verdict"], "allow");
    let signed = &receipt["metadata"]["chio"]["bridge"]["capabilityEnvelope"]["capabilityRef"];
    let mut expected = own.clone();
    expected["protocolContext"] = json!({"toolName": "echo"});
    assert_eq!(*signed, expected);
    for (member, value) in [
        ("parentCapabilityHash", json!("0".repeat(64))),
        ("chioCapabilityId", json!("cap-other")),
        ("originProtocol", json!("a2a")),
    ] {
        let mut wrong = own.clone();
        wrong[member] = value;
        let (name, _) = denied(&world, &call(&wrong)["result"]);
        assert_eq!(name, "invalid_request_shape", "{member}");
    }
    for malformed in [json!(7), json!(null), json!({"x": 1})] {
        assert_eq!(call(&malformed)["error"]["code"], -32602, "{malformed}");
    }
    let denied = ("echo", "deny");
    world.check_calls(&[("echo", "allow"), denied, denied, denied]);
}

// covers: BRIDGE-160
#[test]
fn a_capability_that_was_revoked_is_denied_also_in_a_session_that_is_open() {
    let world = closed();
    let token = issue("cap-gone", &["fixture/echo"]);
    let session = showing(&world, &token).open();
    session.call("echo", &json!({"text": "before"}));
    world.revoke("cap-gone");
    let (name, _) = denied(&world, &session.call("echo", &json!({"text": "after"})));
    assert_eq!(name, "capability_revoked");
    // There is no new session with it either.
    refused(&world, &token);
    world.check_calls(&[("echo", "allow"), ("echo", "deny")]);
}

/// Checks that a capability opens no session.
#[track_caller]
fn refused(world: &World, token: &str) {
    let hello = Request::post(&initialize(&json!({})));
    let mut answer = showing(world, token).send(hello).is(401);
    assert_eq!(answer.header("mcp-session-id"), None);
    let message = answer.json();
    assert_eq!(message["error"]["data"]["chioError"]["code"], 1100, "{message}");
}

// covers: BRIDGE-160
#[test]
fn a_capability_that_does_not_hold_opens_no_session() {
    let world = closed();
    let token = issue("cap-changed", &["fixture/echo"]);
    let mut wider: Value = serde_json::from_str(&token).unwrap();
    wider["scope"]["grants"][0]["tool_name"] = json!("*");
    refused(&world, &wider.to_string());
    let old = issue_for("cap-old", scope(&["fixture/echo"], &[]), 1_000_000_000);
    refused(&world, &old);
    // Signed, but by an issuer that is not trusted.
    let token: CapabilityToken = serde_json::from_str(&token).unwrap();
    let forged = CapabilityToken { issuer: key(7).public_key().clone(), ..token };
    let forged = forged.signed(&key(7)).unwrap();
    refused(&world, &serde_json::to_string(&forged).unwrap());
    assert!(world.receipts().is_empty());
}

#[test]
fn what_is_no_capability_is_not_let_in() {
    let world = closed();
    let token = issue("cap-fine", &["fixture/echo"]);
    let hello = initialize(&json!({}));
    let twice = Request::post(&hello).and("X-Chio-Capability", &token);
    for request in [
        Request::post(&hello).with("X-Chio-Capability", ""),
        Request::post(&hello).with("X-Chio-Capability", "{}"),
        Request::post(&hello).with("X-Chio-Capability", "cap-fine"),
        Request::post(&hello).with("X-Chio-Capability", &token.replace('}', "")),
        twice.and("X-Chio-Capability", &token),
    ] {
        let mut answer = world.door.send(request).is(401);
        assert_eq!(answer.header("mcp-session-id"), None);
        let message = answer.json();
        assert_eq!(message["error"]["data"]["chioError"]["code"], 1100, "{message}");
        assert!(!message.to_string().contains("cap-fine"), "{message}");
    }
    assert!(world.receipts().is_empty());
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
    let proof = DpopProof::new(&target, nonce.to_owned(), now(), &key(AGENT)).unwrap();
    let proof = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&proof).unwrap());
    let params = json!({"name": "echo", "arguments": {"text": sent}});
    let (id, request) = session.asks("tools/call", &params);
    session.stream(session.send(request.with("DPoP", &proof)).is(200), id).result()
}

#[test]
fn a_capability_that_asks_for_a_proof_is_nothing_without_one() {
    let world = closed();
    let mut granted = scope(&["fixture/echo"], &[]);
    granted.grants[0].dpop_required = Some(true);
    let token = issue_for("cap-proof", granted, now());
    let session = showing(&world, &token).open();
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
