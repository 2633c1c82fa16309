//! Receipts: which are coherent, how they are named and signed, and what each check notices.

use serde_json::json;

use super::*;
use crate::crypto::{Keypair, SignatureError};
use crate::hash::sha256_hex;
use crate::signed::{ArtifactError, Signed};
use crate::strict;

const KERNEL: u8 = 7;

fn key(seed: u8) -> Keypair {
    Keypair::from_seed(&[seed; 32])
}

fn draft() -> ChioReceipt {
    let action = ToolCallAction::new(json!({"path": "/a", "n": 1.0})).unwrap();
    let content = NO_OUTPUT_HASH.to_owned();
    let public = key(KERNEL).public_key().clone();
    let receipt = ChioReceipt::mediated(1_700_000_100, action, Decision::Allow, content, public);
    ChioReceipt {
        capability_id: "cap-1".to_owned(),
        tool_server: "srv".to_owned(),
        tool_name: "read".to_owned(),
        policy_hash: "policy".to_owned(),
        ..receipt
    }
}

fn receipt() -> ChioReceipt {
    draft().signed(&key(KERNEL)).unwrap()
}

/// The content that an id is the hash of.
fn content(receipt: &ChioReceipt) -> Value {
    let mut value = serde_json::to_value(receipt).unwrap();
    for name in ["id", "algorithm", "signature", "bbs_signature"] {
        value.as_object_mut().unwrap().remove(name);
    }
    value
}

/// Names and signs whatever the receipt says.
fn force(receipt: ChioReceipt) -> ChioReceipt {
    let content = content(&receipt);
    let id = canonical::hash(&content).unwrap();
    let wrapped = canonical::to_vec(&json!({"id": id, "body": content})).unwrap();
    ChioReceipt { id, signature: key(KERNEL).sign(&wrapped), ..receipt }
}

const KINDS: [ReceiptKind; 3] =
    [ReceiptKind::MediatedDecision, ReceiptKind::TraceObservation, ReceiptKind::AdvisoryEvaluation];
const BOUNDARIES: [BoundaryClass; 4] = [
    BoundaryClass::Prevent,
    BoundaryClass::DetectOnly,
    BoundaryClass::AdvisoryOnly,
    BoundaryClass::CannotSee,
];
const TRUST: [TrustLevel; 3] = [TrustLevel::Mediated, TrustLevel::Verified, TrustLevel::Advisory];

/// Every combination of the members that must go together.
fn combinations() -> Vec<ChioReceipt> {
    let mut found = Vec::new();
    for receipt_kind in KINDS {
        for boundary_class in BOUNDARIES {
            for trust_level in TRUST {
                for decision in [None, Some(Decision::Allow)] {
                    for observation_outcome in [None, Some(ObservationOutcome::Observed)] {
                        found.push(ChioReceipt {
                            receipt_kind,
                            boundary_class,
                            trust_level,
                            decision: decision.clone(),
                            observation_outcome,
                            ..draft()
                        });
                    }
                }
            }
        }
    }
    found
}

fn is_coherent(receipt: &ChioReceipt) -> bool {
    let row = (receipt.receipt_kind, receipt.boundary_class, receipt.trust_level);
    let decided = (receipt.decision.is_some(), receipt.observation_outcome.is_some());
    match row {
        (ReceiptKind::MediatedDecision, BoundaryClass::Prevent, TrustLevel::Mediated) => {
            decided == (true, false)
        }
        (ReceiptKind::TraceObservation, BoundaryClass::DetectOnly, TrustLevel::Verified)
        | (ReceiptKind::AdvisoryEvaluation, BoundaryClass::AdvisoryOnly, TrustLevel::Advisory) => {
            decided == (false, true)
        }
        _ => false,
    }
}

#[test]
fn kind_boundary_trust_decision_and_outcome_go_together() {
    let all = combinations();
    assert_eq!(all.len(), 3 * 4 * 3 * 2 * 2);
    let mut coherent = 0;
    for receipt in all {
        let expected = is_coherent(&receipt);
        coherent += usize::from(expected);
        assert_eq!(receipt.check_coherence().is_ok(), expected, "{receipt:?}");
        let signed = receipt.clone().signed(&key(KERNEL));
        assert_eq!(signed.is_ok(), expected, "the signer looks, too");
        let forced = force(receipt);
        assert_eq!(forced.verify().is_ok(), expected, "a sound signature is not enough");
        let report = forced.examine();
        assert_eq!(report.coherence.is_ok(), expected);
        assert!(report.id.is_ok() && report.signature.is_ok() && report.parameter_hash.is_ok());
        assert_eq!(report.is_valid(), expected);
    }
    assert_eq!(coherent, 3);
}

#[test]
fn every_decision_and_every_outcome_is_signed() {
    let reason = || "why".to_owned();
    for (decision, expected) in [
        (Decision::Allow, json!({"verdict": "allow"})),
        (
            Decision::Deny { reason: reason(), guard: "kernel".to_owned() },
            json!({"verdict": "deny", "reason": "why", "guard": "kernel"}),
        ),
        (
            Decision::Cancelled { reason: reason() },
            json!({"verdict": "cancelled", "reason": "why"}),
        ),
        (
            Decision::Incomplete { reason: reason() },
            json!({"verdict": "incomplete", "reason": "why"}),
        ),
    ] {
        let receipt = ChioReceipt { decision: Some(decision), ..draft() };
        let receipt = receipt.signed(&key(KERNEL)).unwrap();
        let value = serde_json::to_value(&receipt).unwrap();
        assert_eq!(value["decision"], expected);
        assert_eq!(receipt.verify(), Ok(()));
        for name in expected.as_object().unwrap().keys() {
            let mut value = value.clone();
            value["decision"].as_object_mut().unwrap().remove(name);
            assert!(strict::from_slice::<ChioReceipt>(value.to_string().as_bytes()).is_err());
        }
    }
    for outcome in
        [ObservationOutcome::Observed, ObservationOutcome::Evaluated, ObservationOutcome::Dropped]
    {
        let trace = ChioReceipt {
            receipt_kind: ReceiptKind::TraceObservation,
            boundary_class: BoundaryClass::DetectOnly,
            trust_level: TrustLevel::Verified,
            decision: None,
            observation_outcome: Some(outcome),
            tool_origin: ToolOrigin::HostExecutedUnmediated,
            redaction_mode: RedactionMode::Summary,
            ..draft()
        };
        assert_eq!(trace.signed(&key(KERNEL)).unwrap().verify(), Ok(()), "{outcome:?}");
    }
}

#[test]
fn the_id_is_the_hash_of_the_content_and_is_signed_with_it() {
    let receipt = receipt();
    let content = content(&receipt);
    let text = canonical::to_string(&content).unwrap();
    assert_eq!(receipt.id, sha256_hex(text.as_bytes()));
    let wrapped = format!(r#"{{"body":{text},"id":"{}"}}"#, receipt.id);
    assert_eq!(receipt.signature, key(KERNEL).sign(wrapped.as_bytes()));
    assert_eq!(force(draft()), receipt);
    assert_eq!(receipt.hash().unwrap(), canonical::hash(&receipt).unwrap());
}

/// Signs a draft with this provisional id and this metadata, and gives its metadata back.
#[track_caller]
fn metadata(id: &str, metadata: Option<Value>) -> Option<Value> {
    let signed =
        ChioReceipt { id: id.to_owned(), metadata, ..draft() }.signed(&key(KERNEL)).unwrap();
    assert_eq!(signed.verify(), Ok(()));
    assert_eq!(signed.id.len(), 64, "the provisional id is gone");
    signed.metadata
}

#[test]
fn a_provisional_id_becomes_the_signing_nonce() {
    let nonce = |nonce: &str| json!({"chio_receipt_signing_nonce": nonce});
    assert_eq!(metadata("rcpt-1", None), Some(nonce("rcpt-1")));
    for id in [" rcpt-1", "rcpt-1\n", "\t rcpt-1 \r\n", "\u{3000}rcpt-1\u{a0}"] {
        assert_eq!(metadata(id, None), Some(nonce("rcpt-1")), "{id:?}");
    }
    assert_eq!(metadata("a b", None), Some(nonce("a b")));
    assert_eq!(metadata("\"{}\\", None), Some(nonce("\"{}\\")));
    assert_eq!(NONCE_MEMBER, "chio_receipt_signing_nonce");
    assert_eq!(ORIGINAL_METADATA_MEMBER, "original_metadata");
}

#[test]
fn a_blank_provisional_id_adds_nothing() {
    for id in ["", " ", "\t\r\n", "\u{2003}"] {
        for given in
            [None, Some(json!({})), Some(json!({"a": 1})), Some(json!([1])), Some(json!(7))]
        {
            assert_eq!(metadata(id, given.clone()), given, "{id:?}");
        }
        let own = json!({"chio_receipt_signing_nonce": "own"});
        assert_eq!(metadata(id, Some(own.clone())), Some(own));
    }
}

#[test]
fn metadata_that_is_no_object_is_moved_aside() {
    for original in [json!("text"), json!(7), json!(true), json!([1, {"a": 2}]), json!(null)] {
        let expected = json!({"original_metadata": original, "chio_receipt_signing_nonce": "n"});
        assert_eq!(metadata("n", Some(original)), Some(expected));
    }
    let object = json!({"a": 1, "original_metadata": 2});
    let expected = json!({"a": 1, "original_metadata": 2, "chio_receipt_signing_nonce": "n"});
    assert_eq!(metadata("n", Some(object)), Some(expected));
}

#[test]
fn a_nonce_that_is_there_already_is_overwritten() {
    for old in [json!("old"), json!(null), json!({"a": 1})] {
        let given = json!({"a": 1, "chio_receipt_signing_nonce": old});
        let expected = json!({"a": 1, "chio_receipt_signing_nonce": "new"});
        assert_eq!(metadata("new", Some(given)), Some(expected));
    }
}

#[test]
fn two_receipts_of_equal_content_differ_by_their_nonce() {
    let signed =
        |id: &str| ChioReceipt { id: id.to_owned(), ..draft() }.signed(&key(KERNEL)).unwrap();
    assert_ne!(signed("rcpt-1").id, signed("rcpt-2").id);
    assert_eq!(signed("rcpt-1"), signed(" rcpt-1 "));
    assert_eq!(signed(""), signed("  "));
}

#[test]
fn a_kernel_signs_for_itself_only() {
    let outcome = draft().signed(&key(1));
    let expected = ArtifactError::WrongKey {
        named: key(KERNEL).public_key().clone(),
        given: key(1).public_key().clone(),
    };
    assert_eq!(outcome, Err(expected));
    assert_eq!(receipt().kernel_key, *key(KERNEL).public_key());
}

/// Which checks of a report fail, in order.
fn failing(receipt: &ChioReceipt) -> Vec<&'static str> {
    let report = receipt.examine();
    let checks = [
        ("coherence", report.coherence.is_err()),
        ("id", report.id.is_err()),
        ("signature", report.signature.is_err()),
        ("parameter_hash", report.parameter_hash.is_err()),
    ];
    let failing: Vec<_> =
        checks.into_iter().filter(|(_, failed)| *failed).map(|(name, _)| name).collect();
    assert_eq!(report.failures().count(), failing.len());
    assert_eq!(report.is_valid(), failing.is_empty());
    assert_eq!(receipt.verify().is_ok(), failing.is_empty());
    failing
}

#[test]
fn each_check_can_fail_alone() {
    assert_eq!(failing(&receipt()), [""; 0]);
    // Signed by the right key, but not what coherent receipts say.
    let incoherent = force(ChioReceipt { trust_level: TrustLevel::Advisory, ..draft() });
    assert_eq!(failing(&incoherent), ["coherence"]);
    // Another id, and a signature over it.
    let mut renamed = receipt();
    renamed.id = "0".repeat(64);
    let wrapped = json!({"id": renamed.id, "body": content(&renamed)});
    renamed.signature = key(KERNEL).sign(&canonical::to_vec(&wrapped).unwrap());
    assert_eq!(failing(&renamed), ["id"]);
    // The right id, with no signature or another one.
    for signature in [Signature::blank(), key(1).sign(b""), draft().signature] {
        assert_eq!(failing(&ChioReceipt { signature, ..receipt() }), ["signature"]);
    }
    let other_key = ChioReceipt { kernel_key: key(1).public_key().clone(), ..receipt() };
    assert_eq!(failing(&other_key), ["id", "signature"]);
    // Signed parameters of another hash.
    let mut action = draft().action;
    action.parameter_hash = "0".repeat(64);
    let unhashed = ChioReceipt { action, ..draft() }.signed(&key(KERNEL)).unwrap();
    assert_eq!(failing(&unhashed), ["parameter_hash"]);
    // Everything at once.
    let mut broken = receipt();
    broken.receipt_kind = ReceiptKind::TraceObservation;
    broken.action.parameters = json!(null);
    assert_eq!(failing(&broken), ["coherence", "id", "signature", "parameter_hash"]);
}

#[test]
fn a_signature_over_the_flat_receipt_or_the_content_alone_does_not_hold() {
    let receipt = receipt();
    let mut flat = serde_json::to_value(&receipt).unwrap();
    flat.as_object_mut().unwrap().remove("signature");
    for signed in [flat, content(&receipt), json!(receipt.id)] {
        let signature = key(KERNEL).sign(&canonical::to_vec(&signed).unwrap());
        assert_eq!(failing(&ChioReceipt { signature, ..receipt.clone() }), ["signature"]);
    }
}

#[test]
fn an_id_cannot_break_out_of_what_is_signed() {
    for id in ["", "x\"", "\",\"body\":{}", "é", "0x00"] {
        let mut renamed = ChioReceipt { id: id.to_owned(), ..receipt() };
        let text = canonical::to_string(&content(&renamed)).unwrap();
        let wrapped = format!(r#"{{"body":{text},"id":"{id}"}}"#);
        renamed.signature = key(KERNEL).sign(wrapped.as_bytes());
        assert!(failing(&renamed).contains(&"id"), "{id:?}");
    }
    let upper = ChioReceipt { id: receipt().id.to_uppercase(), ..receipt() };
    assert_eq!(failing(&upper), ["id", "signature"]);
}

#[test]
fn the_algorithm_hint_is_unsigned_but_may_not_lie() {
    for (hint, expected) in [
        (None, &[][..]),
        (Some(Algorithm::Ed25519), &[]),
        (Some(Algorithm::P256), &["signature"]),
        (Some(Algorithm::Hybrid), &["signature"]),
    ] {
        let hinted = ChioReceipt { algorithm: hint, ..receipt() };
        assert_eq!(failing(&hinted), expected, "{hint:?}");
        let written = serde_json::to_value(&hinted).unwrap();
        assert_eq!(written.get("algorithm").is_some(), !expected.is_empty());
    }
}

#[test]
fn members_outside_of_the_signature_do_not_break_it() {
    let bbs_signature = json!({"any": [1]}).as_object().cloned();
    let with = ChioReceipt { bbs_signature, ..receipt() };
    assert_eq!(failing(&with), [""; 0]);
    let mut value = serde_json::to_value(&with).unwrap();
    value["never_heard_of"] = json!(1);
    value["action"]["never_heard_of"] = json!(1);
    let read: ChioReceipt = strict::from_slice(value.to_string().as_bytes()).unwrap();
    assert_eq!(read, with);
    assert_eq!(failing(&read), [""; 0]);
    // But this one is signed.
    let bbs_projection_version = Some("1".to_owned());
    let with = ChioReceipt { bbs_projection_version, ..receipt() };
    assert_eq!(failing(&with), ["id", "signature"]);
}

/// A receipt with every optional member.
fn full() -> ChioReceipt {
    ChioReceipt {
        actor_chain: vec![
            Actor { actor_id: "a".to_owned(), actor_kind: None },
            Actor { actor_id: "b".to_owned(), actor_kind: Some("agent".to_owned()) },
        ],
        evidence: vec![
            GuardEvidence { guard_name: "g".to_owned(), verdict: true, details: None },
            GuardEvidence {
                guard_name: "h".to_owned(),
                verdict: false,
                details: Some("d".to_owned()),
            },
        ],
        metadata: Some(json!({"a": 1})),
        tenant_id: Some("tenant".to_owned()),
        bbs_projection_version: Some("1".to_owned()),
        ..draft()
    }
    .signed(&key(KERNEL))
    .unwrap()
}

#[test]
fn optional_members_are_left_out_and_null_stands_for_absence() {
    let bare = serde_json::to_value(receipt()).unwrap();
    for name in [
        "observation_outcome",
        "actor_chain",
        "evidence",
        "metadata",
        "tenant_id",
        "bbs_projection_version",
        "bbs_signature",
        "algorithm",
    ] {
        assert!(bare.get(name).is_none(), "{name}");
        if !["actor_chain", "evidence"].contains(&name) {
            let mut value = bare.clone();
            value[name] = Value::Null;
            let read: ChioReceipt = strict::from_slice(value.to_string().as_bytes()).unwrap();
            assert_eq!(read, receipt(), "{name}");
        }
    }
    assert!(bare.get("schema").is_none() && bare.get("version").is_none());
    let full = full();
    assert_eq!(full.verify(), Ok(()));
    let value = serde_json::to_value(&full).unwrap();
    assert_eq!(strict::from_slice::<ChioReceipt>(value.to_string().as_bytes()).unwrap(), full);
    assert!(value["actor_chain"][0].get("actor_kind").is_none());
    assert!(value["evidence"][0].get("details").is_none());
}

#[test]
fn required_members_are_required() {
    let value = serde_json::to_value(receipt()).unwrap();
    for pointer in [
        "/id",
        "/timestamp",
        "/capability_id",
        "/tool_server",
        "/tool_name",
        "/action",
        "/action/parameters",
        "/action/parameter_hash",
        "/receipt_kind",
        "/boundary_class",
        "/tool_origin",
        "/redaction_mode",
        "/content_hash",
        "/policy_hash",
        "/trust_level",
        "/kernel_key",
        "/signature",
    ] {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let mut value = value.clone();
        value.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name);
        let read = strict::from_slice::<ChioReceipt>(value.to_string().as_bytes());
        assert!(read.is_err(), "without {pointer}");
    }
}

#[test]
fn parameters_are_hashed_in_canonical_form() {
    let hash = |text: &str| {
        let parameters: Value = serde_json::from_str(text).unwrap();
        ToolCallAction::new(parameters).unwrap().parameter_hash
    };
    assert_eq!(hash(r#"{"b":1.0,"a":2}"#), sha256_hex(br#"{"a":2,"b":1}"#));
    assert_eq!(hash("null"), NO_OUTPUT_HASH);
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    assert_eq!(ToolCallAction::new(deep.clone()), Err(CanonicalError::TooDeep));
    let mut broken = receipt();
    broken.action.parameters = deep;
    assert_eq!(failing(&broken), ["id", "signature", "parameter_hash"]);
    assert_eq!(broken.signed(&key(KERNEL)), Err(CanonicalError::TooDeep.into()));
}

#[test]
fn content_is_hashed_as_a_value_as_nothing_or_as_a_stream() {
    let value = json!({"b": 1.0, "a": "x"});
    let expected = sha256_hex(br#"{"a":"x","b":1}"#);
    assert_eq!(ContentHash::of_value(&value), Ok(expected.clone()));
    assert_eq!(ContentHash::of_value(&Value::Null).as_deref(), Ok(NO_OUTPUT_HASH));
    assert_eq!(NO_OUTPUT_HASH, sha256_hex(b"null"));

    let mut stream = ContentHash::stream();
    assert_eq!(stream.finish(), sha256_hex(b""), "no chunk so far");
    assert_eq!((stream.total_bytes(), stream.chunk_hashes().len()), (0, 0));
    assert_eq!(stream.push(&value), Ok(expected.as_str()));
    assert_eq!(stream.finish(), sha256_hex(expected.as_bytes()), "one chunk is no value");
    let second = sha256_hex(b"\"two\"");
    assert_eq!(stream.push("two"), Ok(second.as_str()));
    assert_eq!(stream.total_bytes(), 15 + 5);
    assert_eq!(stream.chunk_hashes(), [expected.clone(), second.clone()]);
    assert_eq!(stream.finish(), sha256_hex(format!("{expected}{second}").as_bytes()));

    let mut other = ContentHash::stream();
    other.push("two").unwrap();
    other.push(&value).unwrap();
    assert_ne!(other.finish(), stream.finish(), "the order counts");
    assert_eq!(other.push(&f64::NAN), Err(CanonicalError::NotFinite("NaN")));
    assert_eq!(other.chunk_hashes().len(), 2, "a chunk without form leaves no trace");
    assert_eq!(other.total_bytes(), 20);
}

// Child receipts.

fn child() -> ChildReceipt {
    let outcome = ChildOutcome::Result(json!({"text": "hi"}));
    ChildReceipt {
        id: "child-rcpt-1".to_owned(),
        timestamp: 1_700_000_100,
        session_id: "sess-1".to_owned(),
        parent_request_id: "req-1".to_owned(),
        request_id: "req-1.1".to_owned(),
        operation_kind: OperationKind::CreateMessage,
        terminal_state: TerminalState::Completed,
        outcome_hash: outcome.hash().unwrap(),
        policy_hash: "policy".to_owned(),
        metadata: Some(outcome.metadata()),
        kernel_key: key(KERNEL).public_key().clone(),
        algorithm: None,
        signature: Signature::blank(),
    }
    .signed(&key(KERNEL))
    .unwrap()
}

#[test]
fn the_outcome_of_a_child_is_hashed_with_its_kind() {
    for (outcome, text, metadata) in [
        (
            ChildOutcome::Result(json!({"b": 1, "a": 2})),
            r#"{"outcome":"result","result":{"a":2,"b":1}}"#,
            json!({"outcome": "result"}),
        ),
        (
            ChildOutcome::Result(Value::Null),
            r#"{"outcome":"result","result":null}"#,
            json!({"outcome": "result"}),
        ),
        (
            ChildOutcome::Error("no".to_owned()),
            r#"{"message":"no","outcome":"error"}"#,
            json!({"outcome": "error", "message": "no"}),
        ),
        (
            ChildOutcome::Result(json!("no")),
            r#"{"outcome":"result","result":"no"}"#,
            json!({"outcome": "result"}),
        ),
    ] {
        assert_eq!(outcome.hash().unwrap(), sha256_hex(text.as_bytes()));
        assert_eq!(outcome.metadata(), metadata);
    }
}

#[test]
fn a_child_receipt_is_signed_flat_with_its_id() {
    let child = child();
    assert_eq!(child.check_signature(), Ok(()));
    let mut value = serde_json::to_value(&child).unwrap();
    value.as_object_mut().unwrap().remove("signature");
    assert_eq!(child.signing_input(), canonical::to_vec(&value));
    let changes: [fn(&mut ChildReceipt); 5] = [
        |child| child.id.push('x'),
        |child| child.operation_kind = OperationKind::ListRoots,
        |child| child.terminal_state = TerminalState::Cancelled { reason: String::new() },
        |child| child.metadata = None,
        |child| child.outcome_hash = NO_OUTPUT_HASH.to_owned(),
    ];
    for change in changes {
        let mut changed = child.clone();
        change(&mut changed);
        assert_eq!(changed.check_signature(), Err(SignatureError::Invalid.into()));
    }
    assert!(matches!(child.signed(&key(1)), Err(ArtifactError::WrongKey { .. })));
}

#[test]
fn children_have_the_names_of_the_wire() {
    for (kind, name) in [
        (OperationKind::ToolCall, "tool_call"),
        (OperationKind::CreateMessage, "create_message"),
        (OperationKind::CreateElicitation, "create_elicitation"),
        (OperationKind::ListRoots, "list_roots"),
        (OperationKind::ListResources, "list_resources"),
        (OperationKind::ReadResource, "read_resource"),
        (OperationKind::ListResourceTemplates, "list_resource_templates"),
        (OperationKind::ListPrompts, "list_prompts"),
        (OperationKind::GetPrompt, "get_prompt"),
        (OperationKind::Complete, "complete"),
        (OperationKind::ListCapabilities, "list_capabilities"),
        (OperationKind::Heartbeat, "heartbeat"),
    ] {
        assert_eq!(serde_json::to_value(kind).unwrap(), json!(name));
    }
    let reason = || "why".to_owned();
    for (state, expected) in [
        (TerminalState::Completed, json!({"state": "completed"})),
        (
            TerminalState::Cancelled { reason: reason() },
            json!({"state": "cancelled", "reason": "why"}),
        ),
        (
            TerminalState::Incomplete { reason: reason() },
            json!({"state": "incomplete", "reason": "why"}),
        ),
    ] {
        assert_eq!(serde_json::to_value(&state).unwrap(), expected);
        let mut value = serde_json::to_value(child()).unwrap();
        value["terminal_state"] = expected;
        let read: ChildReceipt = strict::from_slice(value.to_string().as_bytes()).unwrap();
        assert_eq!(read.terminal_state, state);
    }
}

#[test]
fn regression_metadata_of_null_survives_its_own_text() {
    let signed = ChioReceipt { metadata: Some(Value::Null), ..draft() }.signed(&key(7)).unwrap();
    let text = canonical::to_vec(&signed).unwrap();
    let read: ChioReceipt = strict::from_slice(&text).unwrap();
    assert_eq!(read.verify(), Ok(()));
}

#[test]
fn regression_a_hint_of_another_algorithm_is_refused_for_child_receipts_too() {
    let golden = include_str!("../../../../spec/vectors/golden/receipt.json");
    let golden: Value = serde_json::from_str(golden).unwrap();
    let text = golden.pointer("/child/wire_canonical").and_then(Value::as_str).unwrap();
    let mut child: ChildReceipt = strict::from_slice(text.as_bytes()).unwrap();
    assert!(child.check_signature().is_ok());
    child.algorithm = Some(Algorithm::Hybrid);
    assert!(child.check_signature().is_err());
}

#[test]
fn a_sealed_receipt_is_the_signed_one_in_canonical_form() {
    for metadata in [json!({}), json!({"a": 1, "b": {"c": [null, "\u{e9}\n"]}})] {
        for tenant_id in [None, Some("t".to_owned())] {
            let draft = ChioReceipt { tenant_id, ..draft() };
            let signed = ChioReceipt { metadata: Some(metadata.clone()), ..draft.clone() };
            let signed = signed.signed(&key(KERNEL)).unwrap();
            let written = canonical::Written::of(&metadata).unwrap();
            let sealed = draft.sealed(&written, &key(KERNEL)).unwrap();
            assert_eq!(sealed.bytes, canonical::to_vec(&signed).unwrap());
            assert_eq!(sealed.id, signed.id);
            assert_eq!(sealed.open().unwrap().verify(), Ok(()));
        }
    }
}

#[test]
fn a_receipt_that_is_incoherent_or_names_another_key_is_not_sealed() {
    let incoherent = ChioReceipt { decision: None, ..draft() };
    assert!(incoherent.sealed(&json!({}), &key(KERNEL)).is_err());
    assert!(draft().sealed(&json!({}), &key(KERNEL + 1)).is_err());
    let hinted = ChioReceipt { bbs_signature: Some(Map::new()), ..draft() };
    assert!(hinted.sealed(&json!({}), &key(KERNEL)).is_err());
}
