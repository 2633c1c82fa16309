//! Scope algebra as properties: what narrows stays narrow, however it is put together.
#![cfg(test)]

use chio_core::capability::{
    CapabilityToken, Child, ChioScope, Constraint, Delegation, DelegationError, Operation,
    ResourceGrant, Validity, delegate,
};
use chio_core::signed::Signed;
use chio_testkit::generate::{cases, narrower, near, scope, steps, tool_grant};
use chio_testkit::key;
use proptest::prelude::*;

/// A parent token of this scope, held by the key with seed 2.
fn parent(scope: ChioScope) -> Option<CapabilityToken> {
    let issuer = key(1);
    let validity = Validity { issued_at: 0, expires_at: 100 };
    let (from, to) = (issuer.public_key().clone(), key(2).public_key().clone());
    CapabilityToken::draft("cap-parent", from, to, scope, validity).signed(&issuer).ok()
}

fn hand_on(scope: ChioScope, expires_at: u64) -> Delegation {
    Delegation {
        delegatee: key(3).public_key().clone(),
        scope,
        expires_at,
        steps: Vec::new(),
        budget_share_bps: None,
        signed_at: 1,
        nonce: [0; 16],
    }
}

/// A single act: a tool of a server, or a resource, or a prompt.
#[derive(Debug)]
enum Act {
    Tool(&'static str, &'static str),
    Resource(&'static str),
    Prompt(&'static str),
}

/// Every act on a few names, with every operation, and with or without a proof of possession.
fn calls() -> Vec<(Act, Operation, bool)> {
    let names = ["files", "mail", "shell", "other"];
    let texts = ["", "a", "ab", "abc", "abcd", "b", "*", "a*", "a*b", "*a"];
    let operations = [Operation::Invoke, Operation::Read, Operation::Get, Operation::Delegate];
    let mut all = Vec::new();
    for operation in operations {
        for proved in [false, true] {
            for server in names {
                all.extend(names.map(|tool| (Act::Tool(server, tool), operation, proved)));
            }
            all.extend(texts.map(|text| (Act::Resource(text), operation, proved)));
            all.extend(texts.map(|text| (Act::Prompt(text), operation, proved)));
        }
    }
    all
}

/// Whether a scope allows one act, told without comparing scopes. Limits and constraints are left
/// out: other properties look at them.
fn allows(scope: &ChioScope, (act, operation, proved): &(Act, Operation, bool)) -> bool {
    match act {
        Act::Tool(server, tool) => scope.grants.iter().any(|grant| {
            (grant.server_id == "*" || grant.server_id == *server)
                && (grant.tool_name == "*" || grant.tool_name == *tool)
                && grant.operations.contains(operation)
                && (*proved || grant.dpop_required != Some(true))
        }),
        Act::Resource(uri) => scope
            .resource_grants
            .iter()
            .any(|grant| reaches(grant, uri) && grant.operations.contains(operation)),
        Act::Prompt(name) => scope.prompt_grants.iter().any(|grant| {
            matches_text(&grant.prompt_name, name) && grant.operations.contains(operation)
        }),
    }
}

fn reaches(grant: &ResourceGrant, uri: &str) -> bool {
    matches_text(&grant.uri_pattern, uri)
}

/// Whether a pattern matches one text: exactly, or by the prefix before its last star.
fn matches_text(pattern: &str, text: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => text.starts_with(prefix),
        None => pattern == text,
    }
}

proptest! {
    #![proptest_config(cases(4000))]

    #[test]
    fn a_scope_is_within_itself(scope in scope()) {
        prop_assert!(scope.is_subset_of(&scope));
    }

    #[test]
    fn being_within_is_transitive_where_it_holds(
        (a, b, c) in scope().prop_flat_map(|a| (Just(a.clone()), narrower(a)))
            .prop_flat_map(|(a, b)| (Just(a), Just(b.clone()), narrower(b))),
    ) {
        // Narrowing that was generated is narrowing that is seen.
        prop_assert!(b.is_subset_of(&a), "{b:?} within {a:?}");
        prop_assert!(c.is_subset_of(&b), "{c:?} within {b:?}");
        prop_assert!(c.is_subset_of(&a), "{c:?} within {a:?}");
    }

    #[test]
    fn being_within_is_transitive_for_any_three_grants(
        (a, b, c) in tool_grant().prop_flat_map(|a| (Just(a.clone()), near(a)))
            .prop_flat_map(|(a, b)| (Just(a), Just(b.clone()), near(b))),
    ) {
        prop_assume!(c.is_subset_of(&b) && b.is_subset_of(&a));
        prop_assert!(c.is_subset_of(&a), "{c:?} within {b:?} within {a:?}");
    }

    #[test]
    fn grants_that_are_within_each_other_allow_the_same_calls(
        (a, b) in tool_grant().prop_flat_map(|a| (Just(a.clone()), near(a))),
    ) {
        prop_assume!(a.is_subset_of(&b) && b.is_subset_of(&a));
        prop_assert_eq!(&a.server_id, &b.server_id);
        prop_assert_eq!(&a.tool_name, &b.tool_name);
        prop_assert_eq!(a.max_invocations, b.max_invocations);
        prop_assert_eq!(&a.max_cost_per_invocation, &b.max_cost_per_invocation);
        prop_assert_eq!(a.dpop_required == Some(true), b.dpop_required == Some(true));
        prop_assert!(a.operations.iter().all(|o| b.operations.contains(o)));
        prop_assert!(a.constraints.iter().all(|c| b.constraints.contains(c)));
    }

    #[test]
    fn attenuation_only_narrows(scope in scope(), steps in steps(), expires_at in 0u64..200) {
        if let Ok((child, ends)) = scope.attenuate(expires_at, &steps) {
            prop_assert!(child.is_subset_of(&scope), "{child:?} within {scope:?}");
            prop_assert!(ends <= expires_at);
        }
    }

    #[test]
    fn adding_a_grant_never_narrows_and_dropping_one_never_widens(
        scope in scope(), extra in tool_grant(),
    ) {
        let mut wider = scope.clone();
        wider.grants.push(extra);
        prop_assert!(scope.is_subset_of(&wider));
        let mut fewer = scope.clone();
        fewer.grants.pop();
        prop_assert!(fewer.is_subset_of(&scope));
    }

    #[test]
    fn lifting_a_limit_is_never_within(grant in tool_grant()) {
        let parent = ChioScope { grants: vec![grant.clone()], ..ChioScope::default() };
        let check = |child| {
            let child = ChioScope { grants: vec![child], ..ChioScope::default() };
            child.is_subset_of(&parent)
        };
        if let Some(most) = grant.max_invocations {
            let mut child = grant.clone();
            child.max_invocations = Some(most + 1);
            prop_assert!(!check(child.clone()));
            child.max_invocations = None;
            prop_assert!(!check(child));
        }
        // A cumulative threshold is also kept by a lower one.
        let is_plain = |c: &Constraint| !matches!(c, Constraint::RequireCumulativeApprovalAbove(_));
        if grant.constraints.first().is_some_and(is_plain) {
            let mut child = grant.clone();
            let gone = child.constraints.remove(0);
            prop_assert_eq!(check(child.clone()), child.constraints.contains(&gone));
        }
        let all = [Operation::Invoke, Operation::Read, Operation::Delegate];
        if let Some(missing) = all.iter().find(|o| !grant.operations.contains(o)) {
            let mut child = grant.clone();
            child.operations.push(*missing);
            prop_assert!(!check(child));
        }
        if grant.dpop_required == Some(true) {
            let mut child = grant;
            child.dpop_required = None;
            prop_assert!(!check(child));
        }
    }

    #[test]
    fn what_a_child_allows_its_parent_allows(
        (parent, child) in prop_oneof![
            (scope(), scope()),
            scope().prop_flat_map(|parent| (Just(parent.clone()), narrower(parent))),
        ],
    ) {
        // Asked of single calls, not of the function that compares scopes.
        if child.is_subset_of(&parent) {
            for call in calls() {
                prop_assert!(
                    !allows(&child, &call) || allows(&parent, &call),
                    "{:?}: {:?} within {:?}", call, child, parent
                );
            }
        }
    }

    #[test]
    fn patterns_within_each_other_cover_no_more(a in "[a*]{0,3}", b in "[a*]{0,3}") {
        let grant = |uri_pattern| ResourceGrant { uri_pattern, operations: Vec::new() };
        let (parent, child) = (grant(a), grant(b));
        if child.is_subset_of(&parent) {
            for uri in ["", "a", "aa", "aaa", "aaaa", "b", "ab", "*", "**", "a*", "a*b", "aa*b"] {
                prop_assert!(!reaches(&child, uri) || reaches(&parent, uri), "{}", uri);
            }
        }
    }

    #[test]
    fn an_issuer_signs_only_children_within_their_parents(
        (wide, child) in scope().prop_flat_map(|wide| (Just(wide.clone()), narrower(wide))),
        given in scope(),
        widen in any::<bool>(),
    ) {
        let Some(parent) = parent(wide) else { return Ok(()) };
        let Ok(receipt) = delegate(&parent, hand_on(child.clone(), 50), &key(2)) else {
            return Ok(());
        };
        let scope = if widen { given } else { child };
        let child = Child {
            parent: &parent,
            receipt: &receipt,
            scope: scope.clone(),
            id: "cap-child".to_owned(),
            issued_at: 2,
        };
        match child.signed(&key(1), &[]) {
            Ok(token) => {
                prop_assert!(scope.is_subset_of(&parent.scope));
                let holder = key(3);
                prop_assert_eq!(&token.subject, holder.public_key());
                prop_assert!(token.check_chain(None).is_ok() && token.expires_at <= 50);
            }
            Err(error) => prop_assert!(widen, "{}", error),
        }
    }

    #[test]
    fn a_delegated_child_never_exceeds_its_parent(
        (wide, child) in prop_oneof![
            (scope(), scope()),
            scope().prop_flat_map(|wide| (Just(wide.clone()), narrower(wide))),
        ],
        expires_at in 0u64..200,
    ) {
        let Some(parent) = parent(wide) else { return Ok(()) };
        match delegate(&parent, hand_on(child.clone(), expires_at), &key(2)) {
            Ok(receipt) => {
                prop_assert!(child.is_subset_of(&parent.scope));
                prop_assert!(child.is_delegable_from(&parent.scope));
                prop_assert!(expires_at <= parent.expires_at);
                prop_assert!(receipt.link.check_signature().is_ok());
            }
            Err(DelegationError::ExceedsScope) => {
                prop_assert!(!child.is_delegable_from(&parent.scope));
            }
            Err(DelegationError::ExceedsExpiry { .. }) => prop_assert!(expires_at > 100),
            Err(DelegationError::EmptyWindow { .. }) => prop_assert!(expires_at <= 1),
            Err(DelegationError::NotDelegable) => prop_assert!(!parent.scope.has_delegate()),
            Err(other) => prop_assert!(false, "unexpected: {other}"),
        }
    }

    #[test]
    fn declared_steps_are_shown_by_the_child_that_they_lead_to(
        scope in scope(), steps in steps(),
    ) {
        let Some(parent) = parent(scope) else { return Ok(()) };
        let Ok((child, ends)) = parent.scope.attenuate(parent.expires_at, &steps) else {
            return Ok(());
        };
        let mut delegation = hand_on(child.clone(), ends);
        delegation.steps = steps.clone();
        match delegate(&parent, delegation, &key(2)) {
            Ok(_) | Err(DelegationError::ExceedsScope | DelegationError::NotDelegable) => {}
            Err(DelegationError::EmptyWindow { end, .. }) => prop_assert!(end <= 1),
            Err(other) => prop_assert!(false, "{other}: {steps:?} to {child:?}"),
        }
    }
}
