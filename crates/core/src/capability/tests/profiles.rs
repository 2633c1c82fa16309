//! Rare profiles: verified, named, never made.

use super::*;

#[test]
fn an_attenuation_proof_is_checked_again_from_its_scopes() {
    #[track_caller]
    fn check(change: impl Fn(&mut AttenuationProof), expected: Option<&'static str>) {
        let mut proof = proof(&draft().scope);
        change(&mut proof);
        let token = force(CapabilityToken { attenuation_proof: Some(proof), ..draft() });
        let expected = match expected {
            None => Ok(SignatureForm::Current),
            Some(problem) => Err(TokenError::Structure(problem)),
        };
        assert_eq!(token.check_token_signature(), expected);
    }
    let hash = |text: &str| crate::hash::sha256_hex(text.as_bytes());
    check(|_| {}, None);
    check(|proof| proof.normalized_subset_proof.subset_relations.clear(), None);
    check(|proof| proof.normalized_subset_proof.restricted_predicates.clear(), None);
    // Indices are information only.
    check(|proof| proof.normalized_subset_proof.subset_relations[0].parent_index = 99, None);
    let hashes = Some("the attenuation proof's hashes do not match its scopes");
    check(|proof| proof.parent_scope_hash = "0".repeat(64), hashes);
    check(|proof| proof.child_scope_hash = "0".repeat(64), hashes);
    check(|proof| proof.normalized_subset_proof.normalized_parent_scope.push(' '), hashes);
    check(|proof| proof.normalized_subset_proof.normalized_child_scope.push(' '), hashes);
    check(
        |proof| proof.normalized_subset_proof.subset_relations[0].subset = false,
        Some("the attenuation proof names a grant that is not a subset"),
    );
    for text in ["", "no", "[1]", "{\"grants\":1}", "{\"grants\":[],\"grants\":[]}"] {
        check(
            |proof| {
                proof.normalized_subset_proof.normalized_parent_scope = text.to_owned();
                proof.parent_scope_hash = hash(text);
            },
            Some("the attenuation proof holds a text that is no scope"),
        );
    }
    check(
        |proof| {
            proof.normalized_subset_proof.normalized_parent_scope = "{}".to_owned();
            proof.parent_scope_hash = hash("{}");
        },
        Some("the attenuation proof's child exceeds its parent"),
    );
    check(
        |proof| {
            proof.normalized_subset_proof.normalized_child_scope = "{}".to_owned();
            proof.child_scope_hash = hash("{}");
        },
        Some("the attenuation proof is about another scope"),
    );
}

#[test]
fn an_aggregate_budget_fits_its_scope() {
    let unfit = Err(TokenError::Structure("the aggregate budget does not fit its scope"));
    let sound = Ok(SignatureForm::Current);
    for (scope, bound, delegable, expected) in [
        (AggregateScope::Capability, false, false, &sound),
        (AggregateScope::Capability, false, true, &unfit),
        (AggregateScope::Capability, true, false, &unfit),
        (AggregateScope::Capability, true, true, &unfit),
        (AggregateScope::DelegationFamily, true, true, &sound),
        (AggregateScope::DelegationFamily, true, false, &sound),
        (AggregateScope::DelegationFamily, false, true, &unfit),
        (AggregateScope::DelegationFamily, false, false, &unfit),
    ] {
        let mut token = draft();
        if !delegable {
            token.scope.grants[0].operations = vec![Operation::Invoke];
        }
        token.aggregate_invocation_budget = Some(AggregateInvocationBudget {
            scope,
            max_invocations: 3,
            root_binding: bound.then(root_binding),
        });
        let outcome = force(token).check_token_signature();
        assert_eq!(&outcome, expected, "{scope:?} bound: {bound} delegable: {delegable}");
    }
}

#[test]
fn a_budget_share_is_at_most_the_whole() {
    for (share, holds) in [(0, true), (1, true), (10_000, true), (10_001, false), (65_535, false)] {
        let token = force(CapabilityToken { budget_share_bps: Some(share), ..draft() });
        assert_eq!(token.check_token_signature().is_ok(), holds, "{share}");
    }
    let mut value = serde_json::to_value(token()).unwrap();
    for (share, accepted) in [(json!(65_535), true), (json!(65_536), false), (json!(-1), false)] {
        value["budget_share_bps"] = share.clone();
        assert_eq!(reads::<CapabilityToken>(&value), accepted, "{share}");
    }
}

#[test]
fn profiles_that_nobody_enforces_are_named() {
    const AGGREGATE: &str = "aggregate invocation budgets are unsupported";
    const CUMULATIVE: &str = "cumulative approval budgets are unsupported";
    const ATTENUATED: &str = "attenuation proofs and budget shares are unsupported";
    let marked = |mark: fn(&mut DelegationLink)| {
        let mut token = draft();
        let mut link = link(ISSUER, SUBJECT, START);
        mark(&mut link);
        token.delegation_chain.push(link);
        token.unsupported_profile()
    };
    assert_eq!(token().unsupported_profile(), None);
    assert_eq!(marked(|_| {}), None);
    let aggregate = marked(|link| {
        let root_binding_digest = "0".repeat(64);
        link.aggregate_budget =
            Some(AggregateBudgetMarker { root_binding_digest, max_invocations: 1 });
    });
    assert_eq!(aggregate, Some(AGGREGATE));
    let cumulative = marked(|link| link.cumulative_approval = Some(serde_json::Map::new()));
    assert_eq!(cumulative, Some(CUMULATIVE));
    let expected = [ATTENUATED, ATTENUATED, ATTENUATED, AGGREGATE, CUMULATIVE];
    for ((name, add), expected) in LATER_FEATURES.into_iter().zip(expected) {
        let mut token = draft();
        add(&mut token);
        assert_eq!(token.unsupported_profile(), Some(expected), "{name}");
    }
    let empty = CapabilityToken { scope_attenuations: Some(Vec::new()), ..draft() };
    assert_eq!(empty.unsupported_profile(), None);
}

#[test]
fn regression_a_forged_witness_is_not_even_looked_at() {
    let golden = include_str!("../../../../../spec/vectors/golden/capability.json");
    let golden: Value = serde_json::from_str(golden).unwrap();
    let token = golden.pointer("/attenuated/token").unwrap().clone();
    let mut token: CapabilityToken = serde_json::from_value(token).unwrap();
    assert!(token.check_token_signature().is_ok());
    let proof = token.attenuation_proof.as_mut().unwrap();
    proof.normalized_subset_proof.normalized_child_scope = "{}".to_owned();
    // The signature fails first: only what an issuer signed is worth the work.
    let error = token.check_token_signature().unwrap_err();
    assert_eq!(error, TokenError::Signature(SignatureError::Invalid));
}
