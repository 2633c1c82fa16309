//! Messages: their members, their spelling, and what does not go together.

use serde::de::DeserializeOwned;
use serde_json::json;

use super::*;
use crate::canonical;
use crate::capability::{ChioScope, DpopTarget, Validity};
use crate::crypto::{Keypair, Signature};
use crate::governance::{ApprovalDecision, NonceBinding, NonceBody};
use crate::receipt::{Decision, NO_OUTPUT_HASH, ToolCallAction};
use crate::signed::Signed;

fn key(seed: u8) -> Keypair {
    Keypair::from_seed(&[seed; 32])
}

fn token() -> CapabilityToken {
    let (issuer, subject) = (key(1), key(2).public_key().clone());
    let validity = Validity { issued_at: 100, expires_at: 200 };
    let scope = ChioScope::default();
    CapabilityToken::draft("cap-1", issuer.public_key().clone(), subject, scope, validity)
        .signed(&issuer)
        .unwrap()
}

fn receipt() -> ChioReceipt {
    let action = ToolCallAction::new(json!({"path": "/a"})).unwrap();
    let (kernel, content) = (key(7), NO_OUTPUT_HASH.to_owned());
    let public = kernel.public_key().clone();
    ChioReceipt::mediated(150, action, Decision::Allow, content, public).signed(&kernel).unwrap()
}

fn approval() -> ApprovalToken {
    let approver = key(3);
    let approval = ApprovalToken {
        id: "approval-1".to_owned(),
        approver: approver.public_key().clone(),
        subject: key(2).public_key().clone(),
        governed_intent_hash: "0".repeat(64),
        request_id: "req-1".to_owned(),
        threshold_proposal_hash: None,
        issued_at: 100,
        expires_at: 200,
        decision: ApprovalDecision::Approved,
        algorithm: None,
        signature: Signature::blank(),
    };
    approval.signed(&approver).unwrap()
}

fn nonce() -> ExecutionNonce {
    let nonce = NonceBody {
        schema: ExecutionNonce::SCHEMA.to_owned(),
        nonce_id: "nonce-1".to_owned(),
        issued_at: 100,
        expires_at: 130,
        bound_to: NonceBinding {
            subject_id: "s".to_owned(),
            request_id: "req-1".to_owned(),
            capability_id: "cap-1".to_owned(),
            tool_server: "srv".to_owned(),
            tool_name: "read".to_owned(),
            parameter_hash: "0".repeat(64),
        },
        reserved_hold_id: None,
        reserving_request_id: None,
    };
    ExecutionNonce::sign(nonce, &key(7)).unwrap()
}

fn request() -> ToolCallRequest {
    ToolCallRequest {
        id: "req-1".to_owned(),
        capability_token: token(),
        server_id: "srv".to_owned(),
        tool: "read".to_owned(),
        params: json!({"path": "/a"}),
        governed_intent: None,
        approval_token: None,
        approval_tokens: Vec::new(),
        threshold_approval_proposal: None,
        supplemental_authorization: None,
        execution_nonce: None,
        dpop_proof: None,
    }
}

fn response(result: ToolCallResult) -> KernelMessage {
    let (id, receipt) = ("req-1".to_owned(), receipt());
    let response = ToolCallResponse { id, result, receipt, execution_nonce: None };
    KernelMessage::ToolCallResponse(Box::new(response))
}

fn agent(value: &Value) -> Result<AgentMessage, StrictError> {
    AgentMessage::decode(value.to_string().as_bytes())
}

fn kernel(value: &Value) -> Result<KernelMessage, StrictError> {
    KernelMessage::decode(value.to_string().as_bytes())
}

/// The message is written with these members, and read back as itself.
#[track_caller]
fn check<T>(message: &T, expected: &Value)
where
    T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let payload = canonical::to_vec(message).unwrap();
    assert_eq!(
        String::from_utf8(payload.clone()).unwrap(),
        canonical::to_string(expected).unwrap()
    );
    assert_eq!(&strict::from_slice::<T>(&payload).unwrap(), message);
}

fn request_value() -> Value {
    json!({
        "type": "tool_call_request", "id": "req-1", "capability_token": token(),
        "server_id": "srv", "tool": "read", "params": {"path": "/a"},
    })
}

// covers: WIRE-013, WIRE-020, WIRE-022, WIRE-023
#[test]
fn messages_of_agents_are_told_apart_by_their_type() {
    check(&AgentMessage::ListCapabilities, &json!({"type": "list_capabilities"}));
    check(&AgentMessage::Heartbeat, &json!({"type": "heartbeat"}));
    check(&AgentMessage::ToolCallRequest(Box::new(request())), &request_value());
}

// covers: WIRE-013, WIRE-029
#[test]
fn messages_of_kernels_are_told_apart_by_their_type() {
    check(
        &KernelMessage::ToolCallChunk {
            id: "req-1".to_owned(),
            chunk_index: u64::MAX,
            data: json!({"delta": "a"}),
        },
        &json!({
            "type": "tool_call_chunk", "id": "req-1", "chunk_index": u64::MAX,
            "data": {"delta": "a"},
        }),
    );
    check(
        &response(ToolCallResult::Ok { value: Value::Null }),
        &json!({
            "type": "tool_call_response", "id": "req-1", "receipt": receipt(),
            "result": {"status": "ok", "value": null},
        }),
    );
    check(
        &KernelMessage::CapabilityList { capabilities: vec![token(), token()] },
        &json!({"type": "capability_list", "capabilities": [token(), token()]}),
    );
    check(
        &KernelMessage::CapabilityList { capabilities: Vec::new() },
        &json!({"type": "capability_list", "capabilities": []}),
    );
    check(
        &KernelMessage::CapabilityRevoked { id: "cap-1".to_owned() },
        &json!({"type": "capability_revoked", "id": "cap-1"}),
    );
    check(&KernelMessage::Heartbeat, &json!({"type": "heartbeat"}));
}

// covers: WIRE-033..WIRE-038
#[test]
fn results_are_told_apart_by_their_status() {
    let reason = || "because".to_owned();
    for (result, expected) in [
        (ToolCallResult::Ok { value: json!([1]) }, json!({"status": "ok", "value": [1]})),
        (ToolCallResult::Ok { value: Value::Null }, json!({"status": "ok", "value": null})),
        (
            ToolCallResult::StreamComplete { total_chunks: 3 },
            json!({"status": "stream_complete", "total_chunks": 3}),
        ),
        (
            ToolCallResult::Cancelled { reason: reason(), chunks_received: 2 },
            json!({"status": "cancelled", "reason": "because", "chunks_received": 2}),
        ),
        (
            ToolCallResult::Incomplete { reason: reason(), chunks_received: 0 },
            json!({"status": "incomplete", "reason": "because", "chunks_received": 0}),
        ),
        (
            ToolCallResult::Err { error: ToolCallError::CapabilityExpired },
            json!({"status": "err", "error": {"code": "capability_expired"}}),
        ),
    ] {
        check(&result, &expected);
        for name in expected.as_object().unwrap().keys() {
            let mut missing = expected.clone();
            missing.as_object_mut().unwrap().remove(name);
            let read = strict::from_slice::<ToolCallResult>(missing.to_string().as_bytes());
            assert!(read.is_err(), "{expected} without {name}");
        }
    }
}

// covers: WIRE-039, WIRE-040, WIRE-044, WIRE-045, WIRE-118
#[test]
fn errors_are_told_apart_by_their_code_and_each_has_its_place_in_the_registry() {
    let text = || "why".to_owned();
    for (error, expected, code, number) in [
        (
            ToolCallError::CapabilityDenied(text()),
            json!({"code": "capability_denied", "detail": "why"}),
            ErrorCode::CapabilityDenied,
            2100,
        ),
        (
            ToolCallError::CapabilityExpired,
            json!({"code": "capability_expired"}),
            ErrorCode::CapabilityExpired,
            2101,
        ),
        (
            ToolCallError::CapabilityRevoked,
            json!({"code": "capability_revoked"}),
            ErrorCode::CapabilityRevoked,
            2102,
        ),
        (
            ToolCallError::PolicyDenied { guard: "g".to_owned(), reason: text() },
            json!({"code": "policy_denied", "detail": {"guard": "g", "reason": "why"}}),
            ErrorCode::GuardDenied,
            3100,
        ),
        (
            ToolCallError::ToolServerError(text()),
            json!({"code": "tool_server_error", "detail": "why"}),
            ErrorCode::ToolServerError,
            5100,
        ),
        (
            ToolCallError::InternalError(text()),
            json!({"code": "internal_error", "detail": "why"}),
            ErrorCode::InternalError,
            6100,
        ),
    ] {
        check(&error, &expected);
        assert_eq!(error.code(), code);
        assert_eq!(code.number(), number);
        assert_eq!(code.native_name(), expected["code"].as_str(), "as the registry names it");
        for name in expected.as_object().unwrap().keys() {
            let mut missing = expected.clone();
            missing.as_object_mut().unwrap().remove(name);
            let read = strict::from_slice::<ToolCallError>(missing.to_string().as_bytes());
            assert!(read.is_err(), "{expected} without {name}");
        }
    }
    for detail in [json!("why"), json!({"guard": "g"}), json!({"reason": "r"}), json!(1)] {
        let wrong = json!({"code": "policy_denied", "detail": detail});
        assert!(strict::from_slice::<ToolCallError>(wrong.to_string().as_bytes()).is_err());
    }
}

// covers: WIRE-021, WIRE-025, WIRE-026
#[test]
fn a_request_has_five_members_that_must_be_there() {
    for name in ["type", "id", "capability_token", "server_id", "tool", "params"] {
        let mut value = request_value();
        value.as_object_mut().unwrap().remove(name);
        assert!(agent(&value).is_err(), "without {name}");
    }
    for name in ["id", "server_id", "tool", "type"] {
        for wrong in [json!(1), json!(null), json!(["read"]), json!({})] {
            let mut value = request_value();
            value[name] = wrong;
            assert!(agent(&value).is_err(), "{value}");
        }
    }
    for wrong in [json!("cap-1"), json!(null), json!({}), json!({"id": "cap-1"})] {
        let mut value = request_value();
        value["capability_token"] = wrong;
        assert!(agent(&value).is_err(), "{value}");
    }
    let mut unsigned = request_value();
    unsigned["capability_token"].as_object_mut().unwrap().remove("signature");
    assert!(agent(&unsigned).is_err());
}

// covers: WIRE-027
#[test]
fn parameters_are_any_json_value() {
    for params in [
        json!(null),
        json!(true),
        json!(0),
        json!(-1.5),
        json!("text"),
        json!([]),
        json!([null, {"a": [1]}]),
        json!({}),
        json!({"type": "heartbeat", "id": 1, "": {"params": null}}),
        json!(u64::MAX),
        json!(i64::MIN),
    ] {
        let message =
            AgentMessage::ToolCallRequest(Box::new(ToolCallRequest { params, ..request() }));
        let payload = canonical::to_vec(&message).unwrap();
        assert_eq!(AgentMessage::decode(&payload).unwrap(), message);
    }
}

#[test]
fn required_members_of_kernel_messages_are_required() {
    for message in [
        json!({"type": "tool_call_chunk", "id": "req-1", "chunk_index": 0, "data": null}),
        serde_json::to_value(response(ToolCallResult::StreamComplete { total_chunks: 1 })).unwrap(),
        json!({"type": "capability_list", "capabilities": []}),
        json!({"type": "capability_revoked", "id": "cap-1"}),
        json!({"type": "heartbeat"}),
    ] {
        assert!(kernel(&message).is_ok(), "{message}");
        for name in message.as_object().unwrap().keys() {
            let mut missing = message.clone();
            missing.as_object_mut().unwrap().remove(name);
            assert!(kernel(&missing).is_err(), "{message} without {name}");
        }
    }
    for (name, wrong) in [("chunk_index", json!(-1)), ("chunk_index", json!(1.0)), ("id", json!(1))]
    {
        let mut chunk =
            json!({"type": "tool_call_chunk", "id": "req-1", "chunk_index": 0, "data": null});
        chunk[name] = wrong;
        assert!(kernel(&chunk).is_err(), "{chunk}");
    }
}

// covers: WIRE-017
#[test]
fn a_payload_that_is_no_message_of_the_family_is_refused() {
    for payload in [
        &b""[..],
        b"null",
        b"1",
        b"\"heartbeat\"",
        b"[]",
        b"[\"heartbeat\"]",
        b"[{\"type\":\"heartbeat\"}]",
        b"{}",
        b"{\"type\":\"heartbeat\"",
        b"{\"type\":\"heartbeat\"}{}",
        b"{\"type\":\"heartbeat\"} x",
        b"{\"type\":\"heartbeat\",\"type\":\"heartbeat\"}",
        b"{\"type\":\"heartbeat\",\"a\":{\"b\":1,\"b\":2}}",
        b"{\"type\":null}",
        b"{\"type\":0}",
        b"{\"type\":\"\"}",
        b"{\"type\":\"Heartbeat\"}",
        b"{\"type\":\"heart_beat\"}",
        b"{\"Type\":\"heartbeat\"}",
        b"{\"type\":\"hello\"}",
        b"{\"type\":\"heartbeat\xff\"}",
        b"\x00",
    ] {
        let text = String::from_utf8_lossy(payload);
        assert!(AgentMessage::decode(payload).is_err(), "{text}");
        assert!(KernelMessage::decode(payload).is_err(), "{text}");
    }
    // A message of the other family is none of this one.
    for name in ["tool_call_chunk", "tool_call_response", "capability_list", "capability_revoked"] {
        assert!(agent(&json!({"type": name, "id": "x", "capabilities": []})).is_err(), "{name}");
    }
    for name in ["list_capabilities", "tool_call_request"] {
        let mut value = request_value();
        value["type"] = json!(name);
        assert!(kernel(&value).is_err(), "{name}");
    }
}

// covers: WIRE-012
#[test]
fn every_message_is_one_object() {
    let reason = || "because".to_owned();
    let kernel = [
        KernelMessage::ToolCallChunk { id: String::new(), chunk_index: 0, data: json!([1]) },
        response(ToolCallResult::Ok { value: json!("x") }),
        response(ToolCallResult::Cancelled { reason: reason(), chunks_received: 0 }),
        KernelMessage::CapabilityList { capabilities: vec![token()] },
        KernelMessage::CapabilityRevoked { id: String::new() },
        KernelMessage::Heartbeat,
    ]
    .map(|message| canonical::to_vec(&message).unwrap());
    let agent = [
        AgentMessage::ToolCallRequest(Box::new(request())),
        AgentMessage::ListCapabilities,
        AgentMessage::Heartbeat,
    ]
    .map(|message| canonical::to_vec(&message).unwrap());
    for payload in kernel.iter().chain(&agent) {
        assert_eq!((payload.first(), payload.last()), (Some(&b'{'), Some(&b'}')));
        assert!(serde_json::from_slice::<Value>(payload).unwrap().is_object());
        let twice = payload.repeat(2);
        assert!(AgentMessage::decode(&twice).is_err() && KernelMessage::decode(&twice).is_err());
    }
}

#[test]
fn unknown_members_are_dropped() {
    let pointers = ["", "/capability_token", "/capability_token/scope"];
    for pointer in pointers {
        let mut value = request_value();
        value.pointer_mut(pointer).unwrap()["never_heard_of"] = json!({"x": 1});
        let message = agent(&value).unwrap();
        assert_eq!(message, AgentMessage::ToolCallRequest(Box::new(request())), "{pointer}");
    }
    let expected = response(ToolCallResult::Err {
        error: ToolCallError::PolicyDenied { guard: "g".to_owned(), reason: "r".to_owned() },
    });
    for pointer in ["", "/result", "/result/error", "/result/error/detail", "/receipt"] {
        let mut value = serde_json::to_value(&expected).unwrap();
        value.pointer_mut(pointer).unwrap()["never_heard_of"] = json!({"x": 1});
        assert_eq!(kernel(&value).unwrap(), expected, "{pointer}");
    }
    for name in ["heartbeat", "list_capabilities"] {
        assert!(agent(&json!({"type": name, "never_heard_of": 1})).is_ok());
    }
    assert!(kernel(&json!({"type": "heartbeat", "never_heard_of": 1})).is_ok());
}

/// A request with every optional member.
fn full_request() -> ToolCallRequest {
    let token = token();
    let params = json!({"path": "/a"});
    let target =
        DpopTarget { token: &token, tool_server: "srv", tool_name: "read", arguments: &params };
    let proposal = json!({"any": 1}).as_object().cloned();
    ToolCallRequest {
        governed_intent: Some(GovernedTransactionIntent::new("intent-1", "srv", "read", "why")),
        approval_token: Some(approval()),
        approval_tokens: vec![approval()],
        threshold_approval_proposal: proposal,
        supplemental_authorization: Some(SupplementalAuthorization {
            signed_extension: json!({"any": [1]}),
        }),
        execution_nonce: Some(nonce()),
        dpop_proof: Some(DpopProof::new(&target, "n", 150, &key(2)).unwrap()),
        ..request()
    }
}

const OPTIONAL: [&str; 7] = [
    "governed_intent",
    "approval_token",
    "approval_tokens",
    "threshold_approval_proposal",
    "supplemental_authorization",
    "execution_nonce",
    "dpop_proof",
];

// covers: WIRE-021
#[test]
fn optional_members_are_left_out_when_absent_and_kept_when_present() {
    let full = AgentMessage::ToolCallRequest(Box::new(full_request()));
    let value = serde_json::to_value(&full).unwrap();
    assert_eq!(value.as_object().unwrap().len(), 6 + OPTIONAL.len());
    assert_eq!(agent(&value).unwrap(), full);
    for name in OPTIONAL {
        let mut one = request_value();
        one[name] = value[name].clone();
        let message = agent(&one).unwrap();
        assert_eq!(serde_json::to_value(&message).unwrap(), one, "{name} alone");
        if name != "approval_tokens" {
            one[name] = Value::Null;
            let expected = AgentMessage::ToolCallRequest(Box::new(request()));
            assert_eq!(agent(&one).unwrap(), expected, "null as {name}");
        }
        one[name] = json!("text");
        assert!(agent(&one).is_err(), "text as {name}");
    }
    let mut empty = request_value();
    empty["approval_tokens"] = json!([]);
    assert_eq!(serde_json::to_value(agent(&empty).unwrap()).unwrap(), request_value());
    // The extension is opaque, what it stands in is not.
    for wrong in [json!({}), json!({"signed_extension": 1, "never_heard_of": 1})] {
        let mut value = request_value();
        value["supplemental_authorization"] = wrong;
        assert!(agent(&value).is_err(), "{value}");
    }
}

#[test]
fn a_response_carries_a_nonce_when_there_is_one() {
    let ok = || ToolCallResult::Ok { value: Value::Null };
    let bare = serde_json::to_value(response(ok())).unwrap();
    assert!(bare.get("execution_nonce").is_none());
    let mut with = bare.clone();
    with["execution_nonce"] = serde_json::to_value(nonce()).unwrap();
    let message = kernel(&with).unwrap();
    assert_eq!(serde_json::to_value(&message).unwrap(), with);
    let KernelMessage::ToolCallResponse(read) = message else { panic!("a response") };
    assert_eq!(read.execution_nonce, Some(nonce()));
    with["execution_nonce"] = Value::Null;
    assert_eq!(kernel(&with).unwrap(), response(ok()));
}

// covers: WIRE-046, WIRE-047
#[test]
fn signed_objects_pass_through_unchanged() {
    let mut value = request_value();
    for pointer in ["/capability_token", "/capability_token/scope"] {
        value.pointer_mut(pointer).unwrap()["unsigned_extra"] = json!(1);
    }
    let AgentMessage::ToolCallRequest(request) = agent(&value).unwrap() else {
        panic!("a request");
    };
    assert!(request.capability_token.check_signature().is_ok());
    let forwarded = canonical::to_string(&request).unwrap();
    assert!(forwarded.contains(&canonical::to_string(&token()).unwrap()));
    assert!(!forwarded.contains("unsigned_extra"));

    let message = response(ToolCallResult::Ok { value: json!(1) });
    let mut value = serde_json::to_value(&message).unwrap();
    value["receipt"]["unsigned_extra"] = json!(1);
    let KernelMessage::ToolCallResponse(response) = kernel(&value).unwrap() else {
        panic!("a response");
    };
    assert!(response.receipt.verify().is_ok());
    let forwarded = canonical::to_string(&response).unwrap();
    assert!(forwarded.contains(&canonical::to_string(&receipt()).unwrap()));
    assert!(!forwarded.contains("unsigned_extra"));
}

#[test]
fn approval_members_go_together_or_are_refused() {
    let proposal = || json!({"any": 1}).as_object().cloned();
    for (single, several, proposed, expected) in [
        (false, 0, false, Ok(())),
        (true, 0, false, Ok(())),
        (false, 1, true, Ok(())),
        (false, 32, true, Ok(())),
        (true, 1, true, Err(ApprovalConflict::Both)),
        (true, 1, false, Err(ApprovalConflict::Both)),
        (false, 0, true, Err(ApprovalConflict::ProposalAlone)),
        (true, 0, true, Err(ApprovalConflict::ProposalAlone)),
        (false, 1, false, Err(ApprovalConflict::TokensAlone)),
        (false, 33, true, Err(ApprovalConflict::TooMany(33))),
        (false, 33, false, Err(ApprovalConflict::TooMany(33))),
        (true, 33, true, Err(ApprovalConflict::TooMany(33))),
    ] {
        let request = ToolCallRequest {
            approval_token: single.then(approval),
            approval_tokens: vec![approval(); several],
            threshold_approval_proposal: proposal().filter(|_| proposed),
            ..request()
        };
        assert_eq!(request.check_approvals(), expected, "{single} {several} {proposed}");
    }
    assert_eq!(MAX_APPROVAL_TOKENS, 32);
}

#[test]
fn errors_inside_a_request_keep_their_place() {
    let message = AgentMessage::decode(br#"{"type":"tool_call_request","id":7}"#).unwrap_err();
    assert!(message.to_string().ends_with("at line 1 column 34"), "{message}");
}

#[test]
fn a_response_around_canonical_bytes_is_the_canonical_response() {
    let results = [
        ToolCallResult::Ok { value: json!({"z": 1, "a": "\u{7f}é"}) },
        ToolCallResult::StreamComplete { total_chunks: 3 },
        ToolCallResult::Err { error: ToolCallError::CapabilityExpired },
    ];
    for result in results {
        let KernelMessage::ToolCallResponse(expected) = response(result.clone()) else {
            panic!("a response")
        };
        let receipt = canonical::to_vec(&expected.receipt).unwrap();
        let payload = encode_response(&expected.id, &result, &receipt).unwrap();
        assert_eq!(payload, canonical::to_vec(&response(result)).unwrap());
    }
}

#[test]
fn what_arrives_is_what_was_sent() {
    let mut tokens = TokenCache::default();
    for _ in 0..2 {
        let request = request();
        let message = AgentMessage::ToolCallRequest(Box::new(request.clone()));
        let payload = canonical::to_vec(&message).unwrap();
        let ReceivedMessage::Call(arrived) =
            ReceivedMessage::decode(&payload, &mut tokens).unwrap()
        else {
            panic!("expected a call");
        };
        let token = request.capability_token.clone().into();
        assert_eq!(*arrived, request.with_token(token));
    }
    for message in [AgentMessage::ListCapabilities, AgentMessage::Heartbeat] {
        let payload = canonical::to_vec(&message).unwrap();
        let arrived = ReceivedMessage::decode(&payload, &mut tokens).unwrap();
        assert_eq!(arrived == ReceivedMessage::Heartbeat, message == AgentMessage::Heartbeat);
    }
    for payload in [&b"{}"[..], b"[]", br#"{"type":"x"}"#, br#"{"type":"tool_call_request"}"#] {
        assert!(ReceivedMessage::decode(payload, &mut tokens).is_err());
    }
}

#[test]
fn a_call_arrives_also_when_its_token_cannot_be_read() {
    let mut tokens = TokenCache::default();
    for wrong in [json!("cap-1"), json!(null), json!([]), json!({}), json!({"id": "cap-1"})] {
        let mut value = request_value();
        value["capability_token"] = wrong;
        let arrived = ReceivedMessage::decode(value.to_string().as_bytes(), &mut tokens).unwrap();
        let ReceivedMessage::Call(arrived) = arrived else { panic!("expected a call") };
        assert_eq!(json!(arrived.id), value["id"]);
        assert!(arrived.capability_token.problem().is_some(), "{value}");
    }
}
