//! Calls that are allowed, and calls whose tool fails.

use chio_core::receipt::{ContentHash, Decision, Execution, NO_OUTPUT_HASH};
use chio_testkit::receipts::{denied_by, written};
use chio_testkit::token::grant;
use serde_json::json;

use crate::world::{World, agent};

// covers: WIRE-002, WIRE-003, WIRE-024..WIRE-026, WIRE-029, WIRE-033, WIRE-034, WIRE-046
#[test]
fn the_first_frame_may_be_a_call_and_its_answer_has_a_receipt() {
    let world = World::new();
    let token = world.token("allow-1", vec![grant("echo")]);
    let response = world.connect().call("my id", &token, "echo", json!({"text": "hi"}));
    assert_eq!(response.id, "my id");
    assert_eq!(written(&response.result), json!({"status": "ok", "value": {"text": "hi"}}));
    let receipt = &response.receipt;
    assert_eq!(receipt.decision, Some(Decision::Allow));
    assert_eq!(receipt.kernel_key.to_hex(), world.embedded.kernel.public_key().to_hex());
    assert_eq!((receipt.tool_server.as_str(), receipt.tool_name.as_str()), ("demo", "echo"));
    assert_eq!(receipt.action.parameters, json!({"text": "hi"}));
    assert_eq!(receipt.content_hash, ContentHash::of_value(&json!({"text": "hi"})).unwrap());
    let metadata = receipt.metadata.as_ref().unwrap();
    assert_eq!(metadata["attribution"]["subject_key"], agent().public_key().to_hex());
    world.check_receipt(&response);
}

/// Members that were not signed change nothing and go nowhere.
// covers: WIRE-021, WIRE-047
#[test]
fn unsigned_extras_in_a_message_and_its_token_are_not_trusted_and_not_kept() {
    let world = World::new();
    let token = world.token("extras-1", vec![grant("echo")]);
    let mut message = json!({
        "type": "tool_call_request", "id": "e", "capability_token": token, "server_id": "demo",
        "tool": "echo", "params": {"text": "x"}, "shoe_size": 44,
    });
    message["capability_token"]["nickname"] = json!("unsigned-marker");
    let mut wire = world.connect();
    // In any order and with any spacing: canonical form is the sender's duty, not the reader's.
    wire.send_payload(serde_json::to_string_pretty(&message).unwrap().as_bytes());
    let response = wire.response();
    assert_eq!(written(&response.result)["status"], "ok");
    let receipt = serde_json::to_string(&response.receipt).unwrap();
    assert!(!receipt.contains("unsigned-marker") && !receipt.contains("shoe_size"), "{receipt}");
    world.check_receipt(&response);
}

#[test]
fn a_call_missing_a_required_member_ends_the_connection_and_leaves_no_receipt() {
    let world = World::new();
    let token = world.token("missing-1", vec![grant("echo")]);
    let whole = json!({
        "type": "tool_call_request", "id": "e", "capability_token": token, "server_id": "demo",
        "tool": "echo", "params": {"text": "x"},
    });
    for member in ["id", "capability_token", "server_id", "tool", "params"] {
        let mut message = whole.clone();
        message.as_object_mut().unwrap().remove(member);
        let mut wire = world.connect();
        wire.send_payload(message.to_string().as_bytes());
        assert_eq!(wire.message(), None, "{member}");
    }
    assert!(world.receipts("missing-1").is_empty());
}

// covers: WIRE-044
#[test]
fn a_tool_that_fails_is_a_denial_with_the_tools_words() {
    let world = World::new();
    let (words, token) = ("there is no note of this name", vec![grant("note_get")]);
    let token = world.token("failing-1", token);
    let params = json!({"name": "nobody"});
    let response = world.connect().call("1", &token, "note_get", params);
    let error = &written(&response.result)["error"];
    assert_eq!(error["code"], "tool_server_error");
    assert!(error["detail"].as_str().unwrap().contains(words), "{error}");
    let (reason, guard) = (words.to_owned(), "tool_server".to_owned());
    assert_eq!(response.receipt.decision, Some(Decision::Deny { reason, guard }));
    assert_eq!(response.receipt.execution(), Some(Execution::Failed));
    assert_eq!(response.receipt.content_hash, NO_OUTPUT_HASH);
    world.check_receipt(&response);
}

#[test]
fn arguments_that_the_tool_does_not_take_do_not_reach_it() {
    let world = World::new();
    let token = world.token("unfit-1", vec![grant("note_get")]);
    let params = json!({"surname": "x"});
    let response = world.connect().call("1", &token, "note_get", params);
    assert_eq!(written(&response.result)["error"]["code"], "policy_denied");
    assert_eq!(denied_by(&response.receipt), "argument-schema");
    world.check_receipt(&response);
}
