//! Every case of the golden vectors: we verify what they signed, and make the same bytes.
#![cfg(test)]

use chio_core::canonical;
use chio_core::capability::{
    Attenuation, CapabilityToken, ChioScope, Constraint, Delegation, SignatureForm, ToolGrant,
    Validity, VerifyOptions, delegate,
};
use chio_core::checkpoint::{Batch, KernelCheckpoint, log_id};
use chio_core::crypto::{Keypair, PublicKey};
use chio_core::frame;
use chio_core::hash::{Hash, sha256_hex};
use chio_core::merkle::{ConsistencyProof, Frontier, InclusionProof, leaf_hash, root};
use chio_core::message::{AgentMessage, KernelMessage, ToolCallError, ToolCallResult};
use chio_core::receipt::{ChildReceipt, ChioReceipt, ContentHash, NO_OUTPUT_HASH};
use chio_core::signed::Signed;
use chio_core::{lineage, strict};
use chio_testkit::{golden, key};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads a `T` from text, and checks that it is written back to exactly that text.
#[track_caller]
fn round_trip<T: DeserializeOwned + Serialize>(text: &str) -> T {
    let value: T = strict::from_slice(text.as_bytes()).unwrap();
    assert_eq!(canonical::to_string(&value).unwrap(), text);
    value
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap()
}

fn parse<T: DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap()
}

// covers: WIRE-006
#[test]
fn canonical_json_is_byte_for_byte_the_same() {
    for case in golden::load("canonical")["cases"].as_array().unwrap() {
        let input = text(case, "input_json");
        let value: Value = serde_json::from_str(input).unwrap();
        assert_eq!(canonical::to_string(&value).unwrap(), text(case, "typed_canonical"), "{input}");
        let strict = strict::canonicalize(input.as_bytes()).map(|b| String::from_utf8(b).unwrap());
        assert_eq!(strict.is_err(), case["strict_error"].as_bool().unwrap(), "{input}");
        assert_eq!(strict.ok().as_deref(), case["strict_canonical"].as_str(), "{input}");
    }
}

#[test]
fn keys_sign_and_verify_the_same() {
    for case in golden::load("keys").as_array().unwrap() {
        let key = Keypair::from_seed_hex(text(case, "seed_hex")).unwrap();
        assert_eq!(key.public_key().to_hex(), text(case, "public_key"));
        let signature = key.sign(b"chio");
        assert_eq!(signature.to_hex(), text(case, "signature_of_ascii_chio"));
        assert!(
            PublicKey::from_hex(text(case, "public_key"))
                .unwrap()
                .check(b"chio", &signature)
                .is_ok()
        );
    }
}

#[test]
fn every_constraint_is_written_the_same() {
    for case in golden::load("constraints").as_array().unwrap() {
        let constraint: Constraint = round_trip(text(case, "canonical"));
        let value: Value = serde_json::from_str(text(case, "canonical")).unwrap();
        assert_eq!(constraint.kind(), text(&value, "type"));
    }
}

#[test]
fn every_capability_round_trips_verifies_and_is_signed_the_same() {
    let golden = golden::load("capability");
    let issuer = key(1);
    let names = [
        "minimal",
        "empty_scope",
        "full",
        "delegated_plain",
        "attenuated",
        "aggregate_capability_scope",
    ];
    for name in names {
        let case = &golden[name];
        let token: CapabilityToken = round_trip(text(case, "wire_canonical"));
        assert_eq!(parse::<CapabilityToken>(&case["token"]), token);
        let input = String::from_utf8(token.signing_input().unwrap()).unwrap();
        assert_eq!(input, text(case, "signing_input_canonical"), "{name}");
        assert_eq!(token.scope.hash().unwrap(), text(case, "scope_hash"), "{name}");
        assert_eq!(token.hash().unwrap(), text(case, "authorizing_capability_digest"), "{name}");
        let options = VerifyOptions {
            now: token.issued_at,
            trusted_issuers: &[issuer.public_key().clone()],
            max_chain_depth: None,
        };
        let report = token.examine(&options);
        assert!(report.is_valid() == case["verifies"].as_bool().unwrap(), "{name}: {report:?}");
        assert_eq!(report.signature, Ok(SignatureForm::Current));
        assert_eq!(issuer.sign(input.as_bytes()), token.signature, "{name}");

        let rare = ["attenuated", "aggregate_capability_scope"].contains(&name);
        assert_eq!(token.unsupported_profile().is_some(), rare, "{name}");
        let signed = token.clone().signed(&issuer);
        assert_eq!(signed.is_err(), rare, "rare profiles are never made");
        if let Ok(signed) = signed {
            assert_eq!(signed, token);
        }
    }
}

#[test]
fn tokens_are_issued_from_their_parts_with_the_same_bytes() {
    let golden = golden::load("capability");
    for name in ["minimal", "empty_scope", "full"] {
        let expected = &golden[name]["token"];
        let scope: ChioScope = parse(&expected["scope"]);
        let validity = Validity { issued_at: 1_700_000_000, expires_at: 1_700_003_600 };
        let (issuer, subject) = (key(1), key(2).public_key().clone());
        let id = text(expected, "id");
        let draft =
            CapabilityToken::draft(id, issuer.public_key().clone(), subject, scope, validity);
        let token = draft.signed(&issuer).unwrap();
        assert_eq!(canonical::to_string(&token).unwrap(), text(&golden[name], "wire_canonical"));
    }
}

#[test]
fn a_delegation_is_minted_with_the_same_bytes() {
    let golden = golden::load("capability");
    let parent: CapabilityToken = parse(&golden["full"]["token"]);
    let child: CapabilityToken = parse(&golden["delegated_plain"]["token"]);
    let link = child.delegation_chain[0].clone();
    let steps: Vec<Attenuation> = link.attenuations.clone();
    let delegation = Delegation {
        delegatee: key(3).public_key().clone(),
        scope: child.scope.clone(),
        expires_at: child.expires_at,
        steps,
        budget_share_bps: None,
        signed_at: link.timestamp,
        nonce: [0xab; 16],
    };
    let receipt = delegate(&parent, delegation, &key(2)).unwrap();
    let expected = text(&golden, "delegation_receipt_canonical");
    assert_eq!(canonical::to_string(&receipt).unwrap(), expected);
    round_trip::<chio_core::capability::DelegationReceipt>(expected);
    let body = String::from_utf8(receipt.link.signing_input().unwrap()).unwrap();
    assert_eq!(body, text(&golden, "delegation_link_body_canonical"));
    assert_eq!(receipt.link.hash().unwrap(), text(&golden, "delegation_link_hash"));

    let issuer = key(1);
    let mut draft = CapabilityToken::draft(
        child.id.clone(),
        issuer.public_key().clone(),
        receipt.link.delegatee.clone(),
        child.scope.clone(),
        child.validity(),
    );
    draft.delegation_chain = receipt.chain();
    assert_eq!(draft.signed(&issuer).unwrap(), child);
}

#[test]
fn the_subset_truth_table_holds() {
    let golden = golden::load("subset");
    let parent: ToolGrant = parse(&golden["parent"]);
    for case in golden["children"].as_array().unwrap() {
        let child: ToolGrant = parse(&case["child"]);
        let expected = case["is_subset_of_parent"].as_bool().unwrap();
        assert_eq!(child.is_subset_of(&parent), expected, "{}", case["name"]);
    }
}

#[test]
fn every_receipt_round_trips_verifies_and_is_signed_the_same() {
    let golden = golden::load("receipt");
    let kernel = key(7);
    let mut seen = 0;
    for (name, case) in golden.as_object().unwrap() {
        let Some(wire) = case["receipt"].as_object().map(|_| text(case, "wire_canonical")) else {
            continue;
        };
        seen += 1;
        let receipt: ChioReceipt = round_trip(wire);
        assert_eq!(parse::<ChioReceipt>(&case["receipt"]), receipt);
        assert!(receipt.examine().is_valid(), "{name}: {:?}", receipt.examine());
        assert!(receipt.verify().is_ok() == case["verifies"].as_bool().unwrap());
        let content = text(case, "id_input_canonical");
        assert_eq!(receipt.id, sha256_hex(content.as_bytes()), "{name}");
        let wrapped = text(case, "signing_input_canonical");
        assert_eq!(kernel.sign(wrapped.as_bytes()), receipt.signature, "{name}");

        // From the members that a signer is given: nonce as provisional id, metadata without it.
        let mut draft = receipt.clone();
        draft.id = String::new();
        if let Some(Value::Object(metadata)) = &mut draft.metadata {
            if let Some(Value::String(nonce)) = metadata.remove("chio_receipt_signing_nonce") {
                draft.id = format!(" {nonce}\t");
            }
            if let Some(original) = metadata.remove("original_metadata") {
                draft.metadata = Some(original);
            } else if metadata.is_empty() {
                draft.metadata = None;
            }
        }
        assert_eq!(draft.signed(&kernel).unwrap(), receipt, "{name}");
    }
    assert_eq!(seen, 6, "allow twice, deny, cancelled, incomplete and trace");
}

#[test]
fn child_receipts_and_content_hashes_are_the_same() {
    let golden = golden::load("receipt");
    let child: ChildReceipt = round_trip(text(&golden["child"], "wire_canonical"));
    assert!(child.check_signature().is_ok());
    let input = String::from_utf8(child.signing_input().unwrap()).unwrap();
    assert_eq!(input, text(&golden["child"], "signing_input_canonical"));
    assert_eq!(child.clone().signed(&key(7)).unwrap(), child);

    let content = &golden["content_hash"];
    assert_eq!(NO_OUTPUT_HASH, text(content, "none"));
    assert_eq!(ContentHash::of_value(&Value::Null).unwrap(), NO_OUTPUT_HASH);
    let hello = serde_json::json!({"text": "hello"});
    assert_eq!(ContentHash::of_value(&hello).unwrap(), text(content, "value_text_hello"));
    let mut stream = ContentHash::stream();
    for chunk in content["stream_chunks"].as_array().unwrap() {
        stream.push(chunk).unwrap();
    }
    assert_eq!(serde_json::json!(stream.chunk_hashes()), content["stream_chunk_hashes"]);
    assert_eq!(stream.finish(), text(content, "stream"));

    let ids: Vec<String> = parse(&golden["parent_set_hash"]["ids"]);
    let expected = text(&golden["parent_set_hash"], "hash");
    assert_eq!(lineage::parent_set_hash(&ids).unwrap(), expected);
}

#[test]
fn merkle_roots_and_proofs_are_the_same() {
    let golden = golden::load("merkle");
    let contents: Vec<String> = parse(&golden["leaves_utf8"]);
    let leaves: Vec<Hash> = contents.iter().map(|leaf| leaf_hash(leaf.as_bytes())).collect();
    assert_eq!(leaves[0].to_string(), text(&golden, "leaf_hash_0"));
    for tree in golden["trees"].as_array().unwrap() {
        let n = usize::try_from(tree["n"].as_u64().unwrap()).unwrap();
        let leaves = &leaves[..n];
        let expected: Hash = parse(&tree["root"]);
        assert_eq!(root(leaves), Some(expected));
        let inclusion: Vec<InclusionProof> = parse(&tree["inclusion"]);
        for (index, proof) in inclusion.iter().enumerate() {
            assert_eq!(InclusionProof::build(leaves, index).as_ref(), Some(proof));
            assert!(proof.verify(&leaves[index], &expected));
        }
        let consistency: Vec<Vec<Hash>> = parse(&tree["consistency_from"]);
        for (index, path) in consistency.into_iter().enumerate() {
            let proof = ConsistencyProof::build(leaves, index + 1).unwrap();
            assert_eq!(proof.path, path);
            assert!(proof.verify(&root(&leaves[..=index]).unwrap(), &expected));
        }
    }
}

#[test]
fn checkpoints_are_issued_with_the_same_bytes() {
    let golden = golden::load("checkpoint");
    let receipts = golden::load("receipt");
    let names: Vec<String> = parse(&golden["receipts_in_log_order"]);
    let leaves: Vec<Hash> = names
        .iter()
        .map(|name| {
            let name = name.split('#').nth(1).unwrap();
            let receipt: ChioReceipt = parse(&receipts[name]["receipt"]);
            leaf_hash(&canonical::to_vec(&receipt).unwrap())
        })
        .collect();
    let kernel = key(7);
    assert_eq!(log_id(kernel.public_key()), text(&golden, "log_id"));

    let mut chain = Frontier::default();
    let mut audit = Frontier::default();
    let mut previous: Option<KernelCheckpoint> = None;
    for (name, start, end) in [("checkpoint_1", 1, 2), ("checkpoint_2", 3, 3)] {
        let case = &golden[name];
        let span = &leaves[start - 1..end];
        let batch = Batch {
            start_seq: u64::try_from(start).unwrap(),
            end_seq: u64::try_from(end).unwrap(),
            merkle_root: root(span).unwrap(),
        };
        let issued =
            KernelCheckpoint::issue(previous.as_ref(), &mut chain, batch, 1_700_000_300, &kernel)
                .unwrap();
        assert_eq!(serde_json::to_value(&issued).unwrap(), case["checkpoint"]);
        assert_eq!(canonical::to_string(&issued.body).unwrap(), text(case, "body_canonical"));
        assert_eq!(issued.body.digest().unwrap(), text(case, "body_sha256"));
        let leaf = text(case, "chain_leaf_canonical");
        assert_eq!(issued.body.chain_leaf().unwrap(), leaf_hash(leaf.as_bytes()));
        let parsed: KernelCheckpoint = parse(&case["checkpoint"]);
        parsed.check_signature().unwrap();
        parsed.check_chain_root(&mut audit).unwrap();
        if let Some(previous) = &previous {
            parsed.check_follows(previous).unwrap();
        }
        previous = Some(issued);
    }
}

// covers: WIRE-004, WIRE-005, WIRE-006, WIRE-011, WIRE-013
#[test]
fn every_message_and_frame_is_written_the_same() {
    for case in golden::load("messages").as_array().unwrap() {
        let canonical_text = text(case, "canonical");
        let name = text(case, "name");
        let frame = match name.split('/').next().unwrap() {
            "agent" => frame::encode(&round_trip::<AgentMessage>(canonical_text)),
            "kernel" => frame::encode(&round_trip::<KernelMessage>(canonical_text)),
            "result" => frame::encode(&round_trip::<ToolCallResult>(canonical_text)),
            "error" => frame::encode(&round_trip::<ToolCallError>(canonical_text)),
            other => panic!("unknown family {other}"),
        }
        .unwrap();
        let (prefix, payload) = frame.split_at(frame::PREFIX_LEN);
        let hex: String = prefix.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, text(case, "frame_prefix_hex"), "{name}");
        assert_eq!(payload, canonical_text.as_bytes(), "{name}");
    }
}
