//! A holder hands a part of its token on.

use super::*;

#[test]
fn a_holder_hands_on_a_part_of_its_token() {
    let parent = parent();
    let receipt = delegate(&parent, delegation(), &key(SUBJECT)).unwrap();
    let link = &receipt.link;
    assert_eq!(link.check_signature(), Ok(()));
    assert_eq!((&link.delegator, &link.delegatee), (&public(SUBJECT), &public(DELEGATEE)));
    assert_eq!(link.capability_id, parent.id);
    assert_eq!(link.scope_hash, Some(parent.scope.hash().unwrap()));
    assert_eq!((link.timestamp, receipt.signed_at), (START + 10, START + 10));
    assert_eq!(receipt.nonce, "ab".repeat(16));
    assert_eq!(receipt.parent_capability_id, parent.id);
    assert_eq!(receipt.attenuation.steps, link.attenuations);
    assert_eq!(receipt.attenuation.child_expires_at, Some(END));
    assert_eq!(receipt.chain(), std::slice::from_ref(link));

    // The issuer makes the child, and its holder hands on in turn.
    let validity = Validity { issued_at: START + 10, expires_at: END };
    let mut scope = delegation().scope;
    scope.grants[0].operations.push(Operation::Delegate);
    let child = CapabilityToken::draft("cap-2", public(ISSUER), public(DELEGATEE), scope, validity);
    let child = CapabilityToken { delegation_chain: receipt.chain(), ..child };
    let child = child.signed(&key(ISSUER)).unwrap();
    assert_eq!(verify(&child, START + 10), Ok(SignatureForm::Current));
    let again = Delegation { delegatee: public(STRANGER), steps: Vec::new(), ..delegation() };
    let receipt = delegate(&child, again, &key(DELEGATEE)).unwrap();
    assert_eq!(receipt.parent_chain, child.delegation_chain);
    assert_eq!(receipt.chain().len(), 2);
    let grandchild =
        CapabilityToken { delegation_chain: receipt.chain(), subject: public(STRANGER), ..child };
    assert_eq!(grandchild.check_chain(Some(2)), Ok(()));
}

#[test]
fn a_delegation_receipt_is_strict_and_in_camel_case() {
    let mut receipt = delegate(&parent(), delegation(), &key(SUBJECT)).unwrap();
    // We never state a share; others may.
    receipt.attenuation.budget_share_bps = Some(9_000);
    let value = serde_json::to_value(&receipt).unwrap();
    assert_eq!(value["attenuation"]["budgetShareBps"], json!(9_000));
    assert_eq!(value["attenuation"]["childExpiresAt"], json!(END));
    assert_eq!(value["parentCapabilityId"], json!("cap-1"));
    assert!(value.get("parentChain").is_none() && value.get("aggregateBudget").is_none());
    assert_eq!(read::<DelegationReceipt>(&value), receipt);
    for pointer in ["", "/attenuation"] {
        let mut value = value.clone();
        value.pointer_mut(pointer).unwrap()["never_heard_of"] = json!(1);
        assert!(!reads::<DelegationReceipt>(&value), "{pointer}");
    }
    let mut lenient = value;
    lenient["link"]["never_heard_of"] = json!(1);
    assert_eq!(read::<DelegationReceipt>(&lenient), receipt);
}

#[test]
fn only_a_parent_that_holds_is_handed_on() {
    let unsigned = CapabilityToken { signature: Signature::blank(), ..parent() };
    check_delegate(&unsigned, |_| {}, TokenError::Signature(SignatureError::Invalid).into());
    let caveats = force(CapabilityToken { caveats: vec![json!(1)], ..parent() });
    let invalid = TokenError::Structure("caveats make a token invalid, found one");
    check_delegate(&caveats, |_| {}, invalid.into());
    let broken =
        CapabilityToken { delegation_chain: vec![link(ISSUER, STRANGER, START)], ..parent() };
    check_delegate(&force(broken), |_| {}, TokenError::BrokenChain { index: 0 }.into());
    let legacy = force_legacy(parent());
    assert!(delegate(&legacy, delegation(), &key(SUBJECT)).is_ok());
}

#[test]
fn a_parent_of_a_rare_profile_is_not_handed_on() {
    for (name, add) in LATER_FEATURES {
        let mut token = draft();
        add(&mut token);
        let token = force(token);
        let mut delegation = delegation();
        delegation.budget_share_bps = Some(10_000);
        let expected = DelegationError::Unsupported(token.unsupported_profile().unwrap());
        assert_eq!(delegate(&token, delegation, &key(SUBJECT)), Err(expected), "{name}");
    }
}

#[test]
fn only_the_holder_hands_on_and_only_while_the_token_holds() {
    let outcome = delegate(&parent(), delegation(), &key(STRANGER));
    assert_eq!(outcome, Err(DelegationError::NotHolder));
    let outcome = delegate(&parent(), delegation(), &key(ISSUER));
    assert_eq!(outcome, Err(DelegationError::NotHolder));
    for at in [0, START - 1, END, END + 1, u64::MAX] {
        let expected = DelegationError::OutsideWindow(at);
        check_delegate(&parent(), |delegation| delegation.signed_at = at, expected);
    }
    for at in [START, END - 1] {
        let delegation = Delegation { signed_at: at, ..delegation() };
        assert!(delegate(&parent(), delegation, &key(SUBJECT)).is_ok(), "at {at}");
    }
}

#[test]
fn only_delegable_grants_are_handed_on() {
    let nothing = CapabilityToken { scope: scope(&[limited()]), ..draft() };
    let nothing = nothing.signed(&key(ISSUER)).unwrap();
    check_delegate(&nothing, |_| {}, DelegationError::NotDelegable);
    let wider: [fn(&mut ChioScope); 9] = [
        |scope| scope.grants.push(grant("kept", &[Operation::Invoke])),
        |scope| scope.grants.push(grant("unknown", &[])),
        |scope| scope.grants[0].tool_name = "*".to_owned(),
        |scope| scope.grants[0].operations.push(Operation::Subscribe),
        |scope| scope.grants[0].max_invocations = None,
        |scope| scope.grants[0].max_total_cost = Some(usd(1001)),
        |scope| scope.grants[0].constraints.clear(),
        |scope| scope.grants[0].constraints.push(cumulative(1)),
        |scope| {
            let uri_pattern = "*".to_owned();
            scope.resource_grants.push(ResourceGrant { uri_pattern, operations: Vec::new() });
        },
    ];
    for widen in wider {
        let expected = DelegationError::ExceedsScope;
        check_delegate(&parent(), |delegation| widen(&mut delegation.scope), expected);
    }
    // Nothing at all is within everything.
    let empty = Delegation { scope: ChioScope::default(), steps: Vec::new(), ..delegation() };
    assert!(delegate(&parent(), empty, &key(SUBJECT)).is_ok());
}

#[test]
fn a_child_does_not_outlive_its_parent() {
    for found in [END + 1, u64::MAX] {
        let expected = DelegationError::ExceedsExpiry { most: END, found };
        check_delegate(&parent(), |delegation| delegation.expires_at = found, expected);
    }
    for expires_at in [END, END - 1, START + 11] {
        let delegation = Delegation { expires_at, ..delegation() };
        assert!(delegate(&parent(), delegation, &key(SUBJECT)).is_ok(), "{expires_at}");
    }
}

#[test]
fn a_child_has_a_window() {
    for end in [0, START + 9, START + 10] {
        let expected = DelegationError::EmptyWindow { begin: START + 10, end };
        check_delegate(&parent(), |delegation| delegation.expires_at = end, expected);
    }
    for (issued_at, expires_at) in [(END, END), (END, START), (u64::MAX, 0)] {
        let empty = CapabilityToken { issued_at, expires_at, ..draft() };
        assert!(empty.clone().signed(&key(ISSUER)).is_err(), "none is made");
        assert_eq!(force(empty).check_token_signature(), Ok(SignatureForm::Current), "but read");
    }
}

#[test]
fn a_child_states_a_share_of_at_most_its_parents() {
    let share = |parent_share: Option<u16>, child_share: Option<u16>| {
        let parent = force(CapabilityToken { budget_share_bps: parent_share, ..parent() });
        let delegation = Delegation { budget_share_bps: child_share, ..delegation() };
        delegate(&parent, delegation, &key(SUBJECT)).map(|receipt| {
            assert_eq!(receipt.attenuation.budget_share_bps, child_share);
        })
    };
    for (most, found) in [
        (None, Some(10_001)),
        (None, Some(u16::MAX)),
        (Some(10_000), Some(10_001)),
        (Some(5_000), Some(5_001)),
        (Some(5_000), None),
        (Some(0), Some(1)),
    ] {
        let expected = DelegationError::ExceedsShare { most: most.unwrap_or(10_000), found };
        assert_eq!(share(most, found), Err(expected), "{most:?} {found:?}");
    }
    assert_eq!(share(None, None), Ok(()));
    let lawful = [(None, Some(0)), (None, Some(1)), (None, Some(10_000)), (Some(10_000), None)];
    for (most, found) in lawful.into_iter().chain([(Some(5_000), Some(5_000)), (Some(0), Some(0))])
    {
        let outcome = share(most, found);
        assert!(matches!(outcome, Err(DelegationError::Unsupported(_))), "{outcome:?}");
    }
}

#[test]
fn a_declared_step_narrows_the_parent() {
    let (server_id, tool_name) = ("srv".to_owned(), "unknown".to_owned());
    let unknown = Attenuation::RemoveTool { server_id, tool_name };
    let (server_id, tool_name) = ("srv".to_owned(), "unknown".to_owned());
    check_delegate(
        &parent(),
        |delegation| delegation.steps = vec![unknown],
        AttenuationError::NoGrant { server_id, tool_name }.into(),
    );
    for step in [
        remove_operation(Operation::Subscribe),
        add_constraint(cumulative(1)),
        reduce_budget(11),
        reduce_cost(usd(101)),
        reduce_total(MonetaryAmount::new(1, "EUR")),
        shorten(END + 1),
    ] {
        let expected = AttenuationError::Widens(step.kind()).into();
        check_delegate(&parent(), |delegation| delegation.steps = vec![step], expected);
    }
}

/// Makes a child show a step.
type Reflect = fn(&mut Delegation);

#[test]
fn a_declared_step_is_shown_by_the_child() {
    for step in [
        remove_tool(),
        remove_operation(Operation::ReadResult),
        add_constraint(Constraint::MaxArgsSize(9)),
        reduce_budget(4),
        reduce_cost(usd(99)),
        reduce_total(usd(999)),
        shorten(END - 1),
    ] {
        let expected = AttenuationError::NotReflected(step.kind()).into();
        check_delegate(&parent(), |delegation| delegation.steps = vec![step], expected);
    }
    let shown: [(Attenuation, Reflect); 9] = [
        (remove_tool(), |d| d.scope.grants.clear()),
        (remove_operation(Operation::ReadResult), |d| d.scope.grants[0].operations.truncate(1)),
        (add_constraint(Constraint::MaxArgsSize(9)), |d| {
            d.scope.grants[0].constraints.push(Constraint::MaxArgsSize(9));
        }),
        (reduce_budget(4), |d| d.scope.grants[0].max_invocations = Some(4)),
        (reduce_budget(4), |d| d.scope.grants[0].max_invocations = Some(3)),
        (reduce_cost(usd(99)), |d| d.scope.grants[0].max_cost_per_invocation = Some(usd(99))),
        (reduce_total(usd(999)), |d| d.scope.grants[0].max_total_cost = Some(usd(1))),
        (shorten(END - 1), |d| d.expires_at = END - 1),
        (shorten(END - 1), |d| d.expires_at = START + 20),
    ];
    for (step, change) in shown {
        let mut delegation = Delegation { steps: vec![step.clone()], ..delegation() };
        change(&mut delegation);
        assert!(delegate(&parent(), delegation, &key(SUBJECT)).is_ok(), "{step:?}");
    }
}
