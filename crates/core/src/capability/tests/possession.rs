//! Proofs of possession.

use super::*;

#[test]
fn a_proof_of_possession_is_good_for_five_minutes_and_a_little_ahead() {
    let early = |now: u64| DpopError::TooEarly { latest: now + DPOP_SKEW, found: START };
    let late = |now: u64| DpopError::TooLate { earliest: now - DPOP_LIFETIME, found: START };
    for (now, expected) in [
        (START, Ok(())),
        (START - 30, Ok(())),
        (START - 31, Err(early(START - 31))),
        (0, Err(early(0))),
        (START + 300, Ok(())),
        (START + 301, Err(late(START + 301))),
        (u64::MAX, Err(late(u64::MAX))),
    ] {
        check_dpop(|_| {}, now, &expected);
    }
    assert_eq!((DPOP_SKEW, DPOP_LIFETIME), (30, 300));
}

/// A member of a proof.
type BodyMember = fn(&mut DpopBody) -> &mut String;

#[test]
fn a_proof_of_possession_is_good_for_one_call() {
    let signed = |proof: &mut DpopProof| {
        proof.signature = key(SUBJECT).sign(&proof.signing_input().unwrap());
    };
    check_dpop(
        |proof| proof.body.schema = "chio.dpop_proof.v2".to_owned(),
        START,
        &Err(DpopError::Schema("chio.dpop_proof.v2".to_owned())),
    );
    check_dpop(|proof| proof.body.agent_key = public(STRANGER), START, &Err(DpopError::NotSubject));
    let members: [(&'static str, BodyMember); 4] = [
        ("capability_id", |body| &mut body.capability_id),
        ("tool_server", |body| &mut body.tool_server),
        ("tool_name", |body| &mut body.tool_name),
        ("action_hash", |body| &mut body.action_hash),
    ];
    for (name, member) in members {
        let change = |proof: &mut DpopProof| {
            member(&mut proof.body).push('x');
            signed(proof);
        };
        check_dpop(change, START, &Err(DpopError::NotBound(name)));
    }
    let invalid = || Err(DpopError::Signature(SignatureError::Invalid));
    check_dpop(|proof| proof.body.nonce.push('x'), START, &invalid());
    check_dpop(|proof| proof.body.issued_at += 1, START, &invalid());
    check_dpop(|proof| proof.signature = Signature::blank(), START, &invalid());
    let stranger = |proof: &mut DpopProof| {
        proof.signature = key(STRANGER).sign(&proof.signing_input().unwrap());
    };
    check_dpop(stranger, START, &invalid());
    // Any nonce will do, and another time within the window.
    check_dpop(
        |proof| {
            proof.body.nonce.clear();
            proof.body.issued_at = START - 300;
            signed(proof);
        },
        START,
        &Ok(()),
    );
}

/// Breaks a proof.
type ProofFault = fn(&mut DpopProof);

#[test]
fn a_proof_of_possession_is_checked_in_order() {
    let mut faults: Vec<(ProofFault, DpopError)> = vec![
        (|proof| proof.body.schema.clear(), DpopError::Schema(String::new())),
        (|proof| proof.body.agent_key = public(STRANGER), DpopError::NotSubject),
        (|proof| proof.body.capability_id.clear(), DpopError::NotBound("capability_id")),
        (|proof| proof.body.tool_server.clear(), DpopError::NotBound("tool_server")),
        (|proof| proof.body.tool_name.clear(), DpopError::NotBound("tool_name")),
        (|proof| proof.body.action_hash.clear(), DpopError::NotBound("action_hash")),
        (
            |proof| proof.body.issued_at = START + 31,
            DpopError::TooEarly { latest: START + 30, found: START + 31 },
        ),
        (
            |proof| proof.signature = Signature::blank(),
            DpopError::Signature(SignatureError::Invalid),
        ),
    ];
    while let Some((_, expected)) = faults.first().cloned() {
        let apply = |proof: &mut DpopProof| faults.iter().for_each(|(fault, _)| fault(proof));
        check_dpop(apply, START, &Err(expected));
        faults.remove(0);
    }
    check_dpop(|_| {}, START, &Ok(()));
}

#[test]
fn only_the_subject_proves_possession() {
    let token = token();
    let target = DpopTarget {
        token: &token,
        tool_server: "srv",
        tool_name: "read",
        arguments: &Value::Null,
    };
    let error = DpopProof::new(&target, "nonce", START, &key(ISSUER)).unwrap_err();
    let wrong = ArtifactError::WrongKey { named: public(SUBJECT), given: public(ISSUER) };
    assert_eq!(error, wrong);
    let proof = DpopProof::new(&target, "nonce", START, &key(SUBJECT)).unwrap();
    assert_eq!(proof.body.action_hash, canonical::hash(&Value::Null).unwrap());
    assert_eq!(proof.body.agent_key, public(SUBJECT));
    assert_eq!(proof.check_signature(), Ok(()));
    let other = DpopTarget { arguments: &json!({}), ..target };
    assert_eq!(proof.verify(&other, START), Err(DpopError::NotBound("action_hash")));
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    let other = DpopTarget { arguments: &deep, ..target };
    assert_eq!(proof.verify(&other, START), Err(CanonicalError::TooDeep.into()));
}

#[test]
fn arguments_are_bound_by_their_canonical_form() {
    let token = token();
    let bind = |text: &str| -> String {
        let arguments: Value = serde_json::from_str(text).unwrap();
        let target = DpopTarget {
            token: &token,
            tool_server: "srv",
            tool_name: "read",
            arguments: &arguments,
        };
        DpopProof::new(&target, "n", START, &key(SUBJECT)).unwrap().body.action_hash
    };
    assert_eq!(bind(r#"{"b":1.0,"a":2}"#), bind(r#"{ "a": 2, "b": 1 }"#));
    assert_ne!(bind(r#"{"b":1,"a":2}"#), bind(r#"{"b":2,"a":1}"#));
}
