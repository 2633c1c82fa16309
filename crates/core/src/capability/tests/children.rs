//! An issuer signs the token that a link leads to.

use super::*;

#[test]
fn an_issuer_signs_the_child_that_a_link_leads_to() {
    let child = ask(|_, _, _| {}).unwrap();
    assert_eq!(verify(&child, START + 10), Ok(SignatureForm::Current));
    assert_eq!(child.id, "cap-2");
    assert_eq!((&child.issuer, &child.subject), (&public(ISSUER), &public(DELEGATEE)));
    assert_eq!((child.issued_at, child.expires_at), (START + 10, END));
    assert_eq!(child.scope, delegation().scope);
    assert_eq!(child.delegation_chain, handed_on().chain());
    // Another issuer's child, for those who trust it.
    let (parent, receipt) = (parent(), handed_on());
    let child = || Child {
        parent: &parent,
        receipt: &receipt,
        scope: delegation().scope,
        id: "cap-3".to_owned(),
        issued_at: START + 10,
    };
    let signed = child().signed(&key(STRANGER), &[public(ISSUER)]).unwrap();
    assert_eq!(signed.issuer, public(STRANGER));
    let untrusted = TokenError::UntrustedIssuer(public(ISSUER));
    assert_eq!(child().signed(&key(STRANGER), &[]), Err(untrusted.into()));
}

#[test]
fn an_issuer_checks_everything_before_it_signs_a_child() {
    type Case = (fn(&mut CapabilityToken, &mut DelegationReceipt, &mut ChioScope), DelegationError);
    let invalid = SignatureError::Invalid;
    let broken_link = TokenError::LinkSignature { index: 0, error: invalid.into() };
    let cases: [Case; 13] = [
        (|parent, _, _| parent.id.push('x'), TokenError::Signature(invalid).into()),
        (
            |parent, _, _| {
                parent.budget_share_bps = Some(10_000);
                *parent = force(parent.clone());
            },
            DelegationError::Unsupported("attenuation proofs and budget shares are unsupported"),
        ),
        (|_, receipt, _| receipt.parent_capability_id.push('x'), DelegationError::Disagrees),
        (|_, receipt, _| receipt.signed_at += 1, DelegationError::Disagrees),
        (|_, receipt, _| receipt.attenuation.steps.clear(), DelegationError::Disagrees),
        (
            |_, receipt, _| receipt.parent_chain.push(receipt.link.clone()),
            DelegationError::Disagrees,
        ),
        (|_, receipt, _| receipt.link.timestamp += 1, DelegationError::Disagrees),
        (
            |_, receipt, _| {
                receipt.link.timestamp += 1;
                receipt.signed_at += 1;
            },
            DelegationError::BeforeLink { earliest: START + 11, found: START + 10 },
        ),
        (|_, receipt, _| receipt.link.signature = Signature::blank(), {
            DelegationError::Chain(broken_link)
        }),
        (|_, _, scope| scope.grants[0].max_invocations = None, DelegationError::ExceedsScope),
        (
            |_, _, scope| scope.grants[0].max_invocations = Some(6),
            AttenuationError::NotReflected("reduce_budget").into(),
        ),
        (
            |_, receipt, _| receipt.attenuation.child_expires_at = Some(END + 1),
            DelegationError::ExceedsExpiry { most: END, found: END + 1 },
        ),
        (
            |_, receipt, _| receipt.attenuation.child_expires_at = Some(START + 10),
            DelegationError::EmptyWindow { begin: START + 10, end: START + 10 },
        ),
    ];
    for (index, (change, expected)) in cases.into_iter().enumerate() {
        assert_eq!(ask(change), Err(expected), "case {index}");
    }
}

#[test]
fn an_issuer_signs_no_child_of_a_rare_profile() {
    let rare: [fn(&mut DelegationReceipt); 3] = [
        |receipt| receipt.attenuation.budget_share_bps = Some(1),
        |receipt| {
            let root_binding_digest = "0".repeat(64);
            receipt.aggregate_budget =
                Some(AggregateBudgetMarker { root_binding_digest, max_invocations: 1 });
        },
        |receipt| receipt.cumulative_approval = Some(serde_json::Map::new()),
    ];
    for make_rare in rare {
        let outcome = ask(|_, receipt, _| make_rare(receipt));
        assert!(matches!(outcome, Err(DelegationError::Unsupported(_))), "{outcome:?}");
    }
}

#[test]
fn a_refused_delegation_has_the_code_of_its_reason() {
    let expired = WindowError::Expired { expires_at: END, now: END };
    for (error, code) in [
        (DelegationError::NotHolder, ErrorCode::CapabilityDenied),
        (DelegationError::ExceedsScope, ErrorCode::CapabilityDenied),
        (TokenError::BrokenChain { index: 0 }.into(), ErrorCode::CapabilityDenied),
        (TokenError::Window(expired).into(), ErrorCode::CapabilityExpired),
        (DelegationError::Chain(TokenError::Window(expired)), ErrorCode::CapabilityExpired),
    ] {
        assert_eq!(error.code(), code, "{error}");
    }
}

#[test]
fn a_hop_keeps_every_rule_that_a_chain_cannot_show() {
    let child_validity = Validity { issued_at: START + 10, expires_at: END };
    let cases = [
        HopCase { change: |_, _, _| {}, expected: Ok(()) },
        HopCase { change: |link, _, _| link.scope_hash = None, expected: Ok(()) },
        HopCase {
            change: |link, _, _| link.capability_id = "cap-9".to_owned(),
            expected: Err(DelegationError::WrongParent {
                expected: "cap-1".to_owned(),
                found: "cap-9".to_owned(),
            }),
        },
        HopCase {
            change: |link, _, _| link.delegator = public(STRANGER),
            expected: Err(DelegationError::NotHolder),
        },
        HopCase {
            change: |link, _, _| link.timestamp = END,
            expected: Err(DelegationError::OutsideWindow(END)),
        },
        HopCase {
            change: |link, _, _| link.scope_hash = Some("0".repeat(64)),
            expected: Err(DelegationError::WrongScopeHash),
        },
        HopCase {
            change: |link, parent, _| {
                link.scope_hash = None;
                parent.scope.grants[0].operations.pop();
            },
            expected: Err(DelegationError::NotDelegable),
        },
        HopCase {
            change: |link, parent, _| {
                link.scope_hash = None;
                parent.scope.grants[0].max_invocations = Some(4);
            },
            expected: Err(DelegationError::ExceedsScope),
        },
        HopCase {
            change: |_, _, child| child.issued_at = START + 9,
            expected: Err(DelegationError::BeforeLink { earliest: START + 10, found: START + 9 }),
        },
        HopCase { change: |_, _, child| child.issued_at = END - 1, expected: Ok(()) },
        HopCase {
            change: |_, _, child| child.expires_at = END + 1,
            expected: Err(DelegationError::ExceedsExpiry { most: END, found: END + 1 }),
        },
        HopCase {
            change: |link, _, _| link.attenuations.push(remove_tool()),
            expected: Err(AttenuationError::NotReflected("remove_tool").into()),
        },
    ];
    for (index, HopCase { change, expected }) in cases.into_iter().enumerate() {
        let mut parent = parent();
        let mut link = delegate(&parent, delegation(), &key(SUBJECT)).unwrap().link;
        let mut validity = child_validity;
        change(&mut link, &mut parent, &mut validity);
        let scope = delegation().scope;
        assert_eq!(check_hop(&link, &parent.hop_to(&scope, validity)), expected, "case {index}");
    }
}

#[test]
fn a_hop_from_a_scope_without_canonical_form_is_refused() {
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    let mut parent = parent();
    let mut threshold = cumulative(1);
    if let Constraint::RequireCumulativeApprovalAbove(cumulative) = &mut threshold {
        let binding = json!({ "deep": deep }).as_object().cloned();
        cumulative.cumulative_approval_root_binding = binding;
    }
    let link = delegate(&parent, delegation(), &key(SUBJECT)).unwrap().link;
    parent.scope.grants[0].constraints.push(threshold);
    let validity = Validity { issued_at: START + 10, expires_at: END };
    let scope = delegation().scope;
    let outcome = check_hop(&link, &parent.hop_to(&scope, validity));
    let expected = DelegationError::Signing(CanonicalError::TooDeep.into());
    assert_eq!(outcome, Err(expected));
    assert_eq!(parent.check_token_signature(), Err(CanonicalError::TooDeep.into()));
}
