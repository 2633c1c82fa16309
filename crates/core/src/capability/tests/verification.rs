//! When a token holds: signature, window, issuer and chain.

use super::*;

#[test]
fn checks_run_in_order_and_stop_at_the_first_that_fails() {
    let mut broken = token();
    broken.issuer = public(STRANGER);
    broken.schema = "chio.capability.v2".to_owned();
    broken.algorithm = Some(Algorithm::P256);
    broken.caveats = vec![json!({})];
    broken.budget_share_bps = Some(10_001);
    broken.delegation_chain =
        vec![link(SUBJECT, DELEGATEE, START), link(5, 6, START - 1), link(5, 7, START)];
    broken.delegation_chain[0].timestamp += 1;
    let repairs: [(Edit, TokenError); 10] = [
        (|_| {}, TokenError::UntrustedIssuer(public(STRANGER))),
        (
            |token| token.issuer = public(ISSUER),
            TokenError::Schema("chio.capability.v2".to_owned()),
        ),
        (
            |token| token.schema = CAPABILITY_SCHEMA.to_owned(),
            TokenError::AlgorithmHint { hint: Algorithm::P256, signature: Algorithm::Ed25519 },
        ),
        (
            |token| token.algorithm = Some(Algorithm::Ed25519),
            TokenError::Structure("caveats make a token invalid, found one"),
        ),
        (
            |token| token.caveats.clear(),
            TokenError::Structure("expected a budget share of at most 10000"),
        ),
        (|token| token.budget_share_bps = None, TokenError::Signature(SignatureError::Invalid)),
        (
            |token| *token = force(token.clone()),
            TokenError::Window(WindowError::Expired { expires_at: END, now: END }),
        ),
        (
            |token| {
                token.expires_at = END + 1;
                *token = force(token.clone());
            },
            TokenError::ChainDepth { most: 2, found: 3 },
        ),
        (
            |token| {
                token.delegation_chain.pop();
                *token = force(token.clone());
            },
            TokenError::LinkSignature { index: 0, error: SignatureError::Invalid.into() },
        ),
        (
            |token| {
                token.delegation_chain = vec![link(SUBJECT, DELEGATEE, START)];
                *token = force(token.clone());
            },
            TokenError::BrokenChain { index: 0 },
        ),
    ];
    for (repair, expected) in repairs {
        repair(&mut broken);
        assert_eq!(verify(&broken, END), Err(expected));
    }
    broken.subject = public(DELEGATEE);
    assert_eq!(verify(&force(broken), END), Ok(SignatureForm::Current));
}

#[test]
fn a_report_names_every_check_that_fails() {
    let delegation_chain = vec![link(ISSUER, SUBJECT, START)];
    let broken = CapabilityToken { subject: public(DELEGATEE), delegation_chain, ..token() };
    let options = VerifyOptions { now: START - 1, trusted_issuers: &[], max_chain_depth: None };
    let report = broken.examine(&options);
    assert!(!report.is_valid());
    let expected = [
        TokenError::UntrustedIssuer(public(ISSUER)),
        TokenError::Signature(SignatureError::Invalid),
        TokenError::Window(WindowError::NotYetValid { issued_at: START, now: START - 1 }),
        TokenError::BrokenChain { index: 0 },
    ];
    assert!(report.failures().eq(&expected), "{report:?}");

    let trusted_issuers = [public(STRANGER), public(ISSUER)];
    let options =
        VerifyOptions { now: START, trusted_issuers: &trusted_issuers, max_chain_depth: Some(0) };
    let report = token().examine(&options);
    assert!(report.is_valid());
    assert_eq!(report.signature, Ok(SignatureForm::Current));
    assert_eq!(report.failures().count(), 0);
}

// covers: WIRE-041
#[test]
fn a_token_holds_from_its_first_second_up_to_its_last() {
    let (early, late) = (
        |now| Err(TokenError::Window(WindowError::NotYetValid { issued_at: START, now })),
        |now| Err(TokenError::Window(WindowError::Expired { expires_at: END, now })),
    );
    for (now, expected) in [
        (0, early(0)),
        (START - 1, early(START - 1)),
        (START, Ok(SignatureForm::Current)),
        (START + 1, Ok(SignatureForm::Current)),
        (END - 1, Ok(SignatureForm::Current)),
        (END, late(END)),
        (END + 1, late(END + 1)),
        (u64::MAX, late(u64::MAX)),
    ] {
        let outcome = verify(&token(), now);
        assert_eq!(outcome, expected, "at {now}");
        assert_eq!(token().validity().contains(now), expected.is_ok(), "at {now}");
        assert_eq!(token().validity().check(now).is_ok(), expected.is_ok(), "at {now}");
        if let Err(error) = outcome {
            assert_eq!(error.code(), ErrorCode::CapabilityExpired, "on both sides");
        }
    }
    for (issued_at, expires_at) in [(5, 5), (5, 4), (u64::MAX, u64::MAX), (0, 0)] {
        let empty = Validity { issued_at, expires_at };
        for now in [0, 4, 5, 6, u64::MAX] {
            assert!(!empty.contains(now) && empty.check(now).is_err(), "{empty:?} at {now}");
        }
    }
}

#[test]
fn every_fault_but_the_time_is_a_denial() {
    for error in [
        TokenError::UntrustedIssuer(public(ISSUER)),
        TokenError::Schema(String::new()),
        TokenError::Structure(""),
        TokenError::AlgorithmHint { hint: Algorithm::P256, signature: Algorithm::Ed25519 },
        TokenError::Signature(SignatureError::Invalid),
        TokenError::LinkSignature { index: 0, error: SignatureError::Invalid.into() },
        TokenError::BrokenChain { index: 0 },
        TokenError::ChainOrder { index: 0 },
        TokenError::ChainDepth { most: 0, found: 1 },
        TokenError::Canonical(CanonicalError::TooDeep),
    ] {
        assert_eq!(error.code(), ErrorCode::CapabilityDenied, "{error}");
    }
}

#[test]
fn the_oldest_form_of_signature_is_accepted_on_plain_tokens() {
    let legacy = force_legacy(draft());
    assert_eq!(verify(&legacy, START), Ok(SignatureForm::Legacy));
    assert_eq!(legacy.check_signature(), Ok(()));

    // As it stood on the wire: without a schema, and with one.
    let mut value = serde_json::to_value(&legacy).unwrap();
    assert_eq!(verify(&read(&value), START), Ok(SignatureForm::Legacy));
    value.as_object_mut().unwrap().remove("schema");
    let parsed: CapabilityToken = read(&value);
    assert_eq!(parsed, legacy, "the schema is filled in");
    assert_eq!(verify(&parsed, START), Ok(SignatureForm::Legacy));

    // Neither a chain nor an empty list of steps is a later feature.
    let delegated =
        CapabilityToken { delegation_chain: vec![link(ISSUER, SUBJECT, START)], ..draft() };
    assert_eq!(verify(&force_legacy(delegated), START), Ok(SignatureForm::Legacy));
    let empty = CapabilityToken { scope_attenuations: Some(Vec::new()), ..draft() };
    assert_eq!(verify(&force_legacy(empty), START), Ok(SignatureForm::Legacy));
}

#[test]
fn the_oldest_form_of_signature_is_refused_with_any_later_feature() {
    let invalid = Err(TokenError::Signature(SignatureError::Invalid));
    for (name, add) in LATER_FEATURES {
        let mut token = draft();
        add(&mut token);
        assert_eq!(verify(&force(token.clone()), START), Ok(SignatureForm::Current), "{name}");
        assert_eq!(verify(&force_legacy(token), START), invalid, "{name}");
    }
    let mut other = draft();
    other.schema = "other".to_owned();
    assert_eq!(verify(&force_legacy(other), START), Err(TokenError::Schema("other".to_owned())));
}

#[test]
fn new_tokens_are_signed_with_their_schema() {
    let token = token();
    let input = String::from_utf8(token.signing_input().unwrap()).unwrap();
    assert!(input.contains(r#""schema":"chio.capability.v1""#), "{input}");
    assert!(!input.contains(r#""signature""#) && !input.contains(r#""algorithm""#), "{input}");
    assert_eq!(token.check_token_signature(), Ok(SignatureForm::Current));
}

#[test]
fn the_algorithm_hint_is_unsigned_but_may_not_lie() {
    let token = token();
    for (hint, holds) in [
        (None, true),
        (Some(Algorithm::Ed25519), true),
        (Some(Algorithm::P256), false),
        (Some(Algorithm::P384), false),
        (Some(Algorithm::Hybrid), false),
    ] {
        let hinted = CapabilityToken { algorithm: hint, ..token.clone() };
        let outcome = verify(&hinted, START);
        assert_eq!(outcome.is_ok(), holds, "{hint:?}");
        if let Some(hint) = hint.filter(|_| !holds) {
            let signature = Algorithm::Ed25519;
            assert_eq!(outcome, Err(TokenError::AlgorithmHint { hint, signature }));
        }
        let value = serde_json::to_value(&hinted).unwrap();
        let expected = hint.filter(|hint| *hint != Algorithm::Ed25519).map(|hint| hint.name());
        assert_eq!(value.get("algorithm").and_then(Value::as_str), expected);
    }
}

#[test]
fn signatures_of_other_algorithms_do_not_hold() {
    let other = PublicKey::from_hex(&format!("p256:04{}", "5a".repeat(64))).unwrap();
    let signature = Signature::from_hex(&format!("p256:30{}", "5a".repeat(70))).unwrap();
    let both = CapabilityToken {
        issuer: other.clone(),
        signature: signature.clone(),
        algorithm: Some(Algorithm::P256),
        ..draft()
    };
    let unsupported = SignatureError::Unsupported(Algorithm::P256);
    assert_eq!(both.check_token_signature(), Err(unsupported.into()));
    let mixed = CapabilityToken { signature, ..token() };
    let mismatch = SignatureError::Mismatch { key: Algorithm::Ed25519, signature: Algorithm::P256 };
    assert_eq!(mixed.check_token_signature(), Err(mismatch.into()));
    assert_eq!(mixed.check_signature(), Err(ArtifactError::Signature(mismatch)));
    let foreign = CapabilityToken { issuer: other, ..token() };
    assert!(matches!(
        foreign.check_token_signature(),
        Err(TokenError::Signature(SignatureError::Mismatch { .. }))
    ));
}

#[test]
fn the_issuer_signs_only_for_itself_and_only_sound_tokens() {
    let outcome = draft().signed(&key(STRANGER));
    let wrong = ArtifactError::WrongKey { named: public(ISSUER), given: public(STRANGER) };
    assert_eq!(outcome, Err(wrong));
    let faults: [(Edit, &str); 4] = [
        (|token| token.caveats.push(json!(1)), "caveats make a token invalid, found one"),
        (|token| token.schema = "x".to_owned(), "expected schema `chio.capability.v1`, found `x`"),
        (|token| token.budget_share_bps = Some(10_001), "expected a budget share of at most 10000"),
        (
            |token| token.algorithm = Some(Algorithm::Hybrid),
            "the algorithm member says hybrid, the signature is ed25519",
        ),
    ];
    for (fault, expected) in faults {
        let mut token = draft();
        fault(&mut token);
        let error = token.signed(&key(ISSUER)).unwrap_err();
        assert_eq!(error, ArtifactError::Malformed(expected.to_owned()));
    }
    for (name, add) in LATER_FEATURES {
        let mut token = draft();
        add(&mut token);
        assert!(token.signed(&key(ISSUER)).is_err(), "{name} is read, never made");
    }
}

#[test]
fn links_of_a_chain_are_signed_joined_and_in_order() {
    #[track_caller]
    fn check(links: &[DelegationLink], most: Option<usize>, expected: &Result<(), TokenError>) {
        let delegation_chain = links.to_vec();
        assert_eq!(&CapabilityToken { delegation_chain, ..draft() }.check_chain(most), expected);
    }
    let (a, b, c) = (link(5, 6, 100), link(6, 7, 100), link(7, SUBJECT, 101));
    let chain = [a.clone(), b.clone(), c.clone()];
    check(&[], None, &Ok(()));
    check(&[], Some(0), &Ok(()));
    check(&chain, None, &Ok(()));
    check(&chain, Some(3), &Ok(()));
    check(&chain, Some(2), &Err(TokenError::ChainDepth { most: 2, found: 3 }));
    check(&chain, Some(0), &Err(TokenError::ChainDepth { most: 0, found: 3 }));
    check(&chain[1..], None, &Ok(()));
    // The last link leads to the subject, each other one to the next.
    check(&chain[..2], None, &Err(TokenError::BrokenChain { index: 1 }));
    check(&[a.clone(), c.clone()], None, &Err(TokenError::BrokenChain { index: 0 }));
    check(&[b.clone(), a.clone(), c.clone()], None, &Err(TokenError::BrokenChain { index: 0 }));
    check(&[c.clone(), c.clone()], None, &Err(TokenError::BrokenChain { index: 0 }));
    let older = link(6, 7, 99);
    check(&[a.clone(), older, c.clone()], None, &Err(TokenError::ChainOrder { index: 1 }));
    let oldest = link(7, SUBJECT, 0);
    check(&[a.clone(), b.clone(), oldest], None, &Err(TokenError::ChainOrder { index: 2 }));
    // Every member of a link is signed, by its delegator.
    let changes: [fn(&mut DelegationLink); 7] = [
        |link| link.capability_id.push('x'),
        |link| link.timestamp += 1,
        |link| link.attenuations.push(Attenuation::ShortenExpiry { new_expires_at: 1 }),
        |link| link.scope_hash = Some("0".repeat(64)),
        |link| link.cumulative_approval = Some(serde_json::Map::new()),
        |link| link.signature = Signature::blank(),
        |link| link.signature = key(STRANGER).sign(&link.signing_input().unwrap()),
    ];
    for change in changes {
        let mut changed = b.clone();
        change(&mut changed);
        let error = SignatureError::Invalid.into();
        let expected = Err(TokenError::LinkSignature { index: 1, error });
        check(&[a.clone(), changed, c.clone()], None, &expected);
    }
}

#[test]
fn links_are_signed_with_the_token_signatures_and_all() {
    let mut delegated =
        CapabilityToken { delegation_chain: vec![link(ISSUER, SUBJECT, START)], ..draft() };
    delegated = delegated.signed(&key(ISSUER)).unwrap();
    assert_eq!(verify(&delegated, START), Ok(SignatureForm::Current));
    let mut changed = delegated.clone();
    changed.delegation_chain[0] = link(ISSUER, SUBJECT, START + 1);
    assert_eq!(changed.check_chain(None), Ok(()));
    assert_eq!(verify(&changed, START), Err(TokenError::Signature(SignatureError::Invalid)));
    let input = String::from_utf8(delegated.signing_input().unwrap()).unwrap();
    assert!(input.contains(&delegated.delegation_chain[0].signature.to_hex()));
}

#[test]
fn hashes_are_over_canonical_bytes() {
    let token = token();
    let sha256 = |value: &Value| canonical::hash(value).unwrap();
    let value = serde_json::to_value(&token).unwrap();
    assert_eq!(token.hash().unwrap(), sha256(&value));
    assert_eq!(token.scope.hash().unwrap(), sha256(&value["scope"]));
    let link = link(5, 6, 7);
    let mut value = serde_json::to_value(&link).unwrap();
    value.as_object_mut().unwrap().remove("signature");
    assert_eq!(link.hash().unwrap(), sha256(&value));
}
