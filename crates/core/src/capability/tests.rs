//! Tokens: what they look like, when they hold, and how they are handed on.

use serde::de::DeserializeOwned;
use serde_json::json;

use super::*;
use crate::crypto::{Keypair, SignatureError};
use crate::money::MonetaryAmount;
use crate::registry::ErrorCode;
use crate::signed::{ArtifactError, Signed};
use crate::strict;
use crate::window::WindowError;

const START: u64 = 1_700_000_000;
const END: u64 = START + 3600;
const ISSUER: u8 = 1;
const SUBJECT: u8 = 2;
const DELEGATEE: u8 = 3;
const STRANGER: u8 = 9;

fn key(seed: u8) -> Keypair {
    Keypair::from_seed(&[seed; 32])
}

fn public(seed: u8) -> PublicKey {
    key(seed).public_key().clone()
}

fn grant(tool_name: &str, operations: &[Operation]) -> ToolGrant {
    ToolGrant {
        server_id: "srv".to_owned(),
        tool_name: tool_name.to_owned(),
        operations: operations.to_vec(),
        constraints: Vec::new(),
        max_invocations: None,
        max_cost_per_invocation: None,
        max_total_cost: None,
        dpop_required: None,
    }
}

fn scope(grants: &[ToolGrant]) -> ChioScope {
    ChioScope { grants: grants.to_vec(), ..ChioScope::default() }
}

fn draft() -> CapabilityToken {
    let validity = Validity { issued_at: START, expires_at: END };
    let scope = scope(&[grant("read", &[Operation::Invoke, Operation::Delegate])]);
    CapabilityToken::draft("cap-1", public(ISSUER), public(SUBJECT), scope, validity)
}

fn token() -> CapabilityToken {
    draft().signed(&key(ISSUER)).unwrap()
}

/// Signs without asking whether we would make such a token.
fn force(token: CapabilityToken) -> CapabilityToken {
    let signature = key(ISSUER).sign(&token.signing_input().unwrap());
    CapabilityToken { signature, ..token }
}

/// Signs as the oldest tokens were signed.
fn force_legacy(token: CapabilityToken) -> CapabilityToken {
    let omit = ["algorithm", "schema", "signature"];
    let signature = key(ISSUER).sign(&canonical::to_vec_without(&token, &omit).unwrap());
    CapabilityToken { signature, ..token }
}

fn link(from: u8, to: u8, timestamp: u64) -> DelegationLink {
    let link = DelegationLink {
        capability_id: "cap-0".to_owned(),
        delegator: public(from),
        delegatee: public(to),
        attenuations: Vec::new(),
        timestamp,
        scope_hash: None,
        aggregate_budget: None,
        cumulative_approval: None,
        signature: Signature::blank(),
    };
    link.signed(&key(from)).unwrap()
}

fn cumulative(units: u64) -> Constraint {
    Constraint::RequireCumulativeApprovalAbove(CumulativeThreshold {
        threshold: MonetaryAmount::new(units, "USD"),
        approval_budget_id: "budget".to_owned(),
        approval_budget_epoch: 1,
        cumulative_approval_root_binding: None,
    })
}

fn verify(token: &CapabilityToken, now: u64) -> Result<SignatureForm, TokenError> {
    let trusted_issuers = [public(ISSUER)];
    let options =
        VerifyOptions { now, trusted_issuers: &trusted_issuers, max_chain_depth: Some(2) };
    token.verify(&options)
}

#[track_caller]
fn read<T: DeserializeOwned>(value: &Value) -> T {
    strict::from_slice(value.to_string().as_bytes()).unwrap()
}

fn reads<T: DeserializeOwned>(value: &Value) -> bool {
    strict::from_slice::<T>(value.to_string().as_bytes()).is_ok()
}

// Verification.

/// A change of a token: one fault more, or one less.
type Edit = fn(&mut CapabilityToken);

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

/// What a token has beyond the oldest ones.
type Feature = (&'static str, Edit);

const LATER_FEATURES: [Feature; 5] = [
    ("budget_share_bps", |token| token.budget_share_bps = Some(10_000)),
    ("scope_attenuations", |token| {
        token.scope_attenuations =
            Some(vec![Attenuation::ShortenExpiry { new_expires_at: token.expires_at }]);
    }),
    ("attenuation_proof", |token| token.attenuation_proof = Some(proof(&token.scope))),
    ("aggregate_invocation_budget", |token| {
        token.scope.grants[0].operations = vec![Operation::Invoke];
        token.aggregate_invocation_budget = Some(AggregateInvocationBudget {
            scope: AggregateScope::Capability,
            max_invocations: 3,
            root_binding: None,
        });
    }),
    ("a cumulative constraint", |token| {
        token.scope.grants[0].constraints.push(cumulative(100));
    }),
];

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

// Rare profiles.

/// A sound proof for a token of this scope.
fn proof(child: &ChioScope) -> AttenuationProof {
    let text = canonical::to_string(child).unwrap();
    AttenuationProof {
        parent_scope_hash: child.hash().unwrap(),
        child_scope_hash: child.hash().unwrap(),
        normalized_subset_proof: SubsetWitness {
            normalized_parent_scope: text.clone(),
            normalized_child_scope: text,
            subset_relations: vec![GrantRelation {
                grant_kind: GrantKind::Tool,
                child_index: 0,
                parent_index: 0,
                subset: true,
            }],
            restricted_predicates: vec!["anything".to_owned()],
            aggregate_budget: None,
            cumulative_approval: None,
        },
    }
}

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

fn root_binding() -> RootBinding {
    RootBinding {
        body: RootBindingBody {
            schema: "chio.aggregate-budget-root.v1".to_owned(),
            root_capability_id: "cap-0".to_owned(),
            root_capability_hash: "0".repeat(64),
            root_issuer: public(ISSUER),
            root_subject: public(SUBJECT),
            max_invocations: 3,
            root_expires_at: END,
            root_scope_hash: "0".repeat(64),
        },
        algorithm: None,
        signature: Signature::blank(),
    }
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

// Form.

/// A token with every member and every profile, for reading only.
fn full_value() -> Value {
    let (issuer, subject) = (public(ISSUER).to_hex(), public(SUBJECT).to_hex());
    let (hash, signature) = ("0".repeat(64), "0".repeat(128));
    let money = json!({"units": 5, "currency": "USD"});
    let attenuations = json!([
        {"type": "remove_tool", "server_id": "s", "tool_name": "t"},
        {"type": "add_constraint", "server_id": "s", "tool_name": "t",
         "constraint": {"type": "max_length", "value": 1}},
        {"type": "reduce_total_cost", "server_id": "s", "tool_name": "t", "max_total_cost": money},
    ]);
    json!({
        "schema": CAPABILITY_SCHEMA, "id": "cap", "issuer": issuer, "subject": subject,
        "scope": {
            "grants": [{
                "server_id": "s", "tool_name": "t", "operations": ["invoke"],
                "constraints": [
                    {"type": "path_prefix", "value": "/"},
                    {"type": "require_approval_above", "value": {"threshold_units": 1}},
                    {"type": "require_cumulative_approval_above", "value": {
                        "threshold": money, "approval_budget_id": "b", "approval_budget_epoch": 1}},
                    {"type": "model_constraint", "value": {
                        "allowed_model_ids": ["m"], "min_safety_tier": null}},
                    {"type": "governed_intent_required"},
                ],
                "max_invocations": 3, "max_cost_per_invocation": money, "max_total_cost": money,
                "dpop_required": false,
            }],
            "resource_grants": [{"uri_pattern": "file:*", "operations": ["read"]}],
            "prompt_grants": [{"prompt_name": "*", "operations": ["get"]}],
        },
        "issued_at": START, "expires_at": END,
        "delegation_chain": [{
            "capability_id": "parent", "delegator": issuer, "delegatee": subject,
            "attenuations": attenuations, "timestamp": START, "scope_hash": hash,
            "aggregate_budget": {"root_binding_digest": hash, "max_invocations": 3},
            "cumulative_approval": {"any": 1}, "signature": signature,
        }],
        "aggregate_invocation_budget": {
            "scope": "delegation_family", "max_invocations": 3,
            "root_binding": {
                "body": root_binding().body, "algorithm": "p256", "signature": signature,
            },
        },
        "algorithm": "hybrid",
        "scope_attenuations": attenuations,
        "attenuation_proof": proof(&ChioScope::default()),
        "budget_share_bps": 5000,
        "signature": signature,
    })
}

#[test]
fn a_full_token_is_written_as_it_was_read() {
    let value = full_value();
    let token: CapabilityToken = read(&value);
    assert_eq!(serde_json::to_value(&token).unwrap(), value);
    let canonical = canonical::to_string(&value).unwrap();
    assert_eq!(canonical::to_string(&token).unwrap(), canonical);
}

/// The object at `pointer` gets a member that nobody knows.
fn with_unknown_member(pointer: &str) -> Value {
    let mut value = full_value();
    let object = value.pointer_mut(pointer).unwrap().as_object_mut().unwrap();
    object.insert("never_heard_of".to_owned(), json!(1));
    value
}

#[test]
fn unknown_members_are_dropped_where_the_format_may_grow() {
    let original: CapabilityToken = read(&full_value());
    for pointer in [
        "",
        "/scope",
        "/scope/grants/0",
        "/scope/resource_grants/0",
        "/scope/prompt_grants/0",
        "/delegation_chain/0",
        "/delegation_chain/0/attenuations/0",
        "/delegation_chain/0/attenuations/1",
        "/scope_attenuations/2",
    ] {
        let token: CapabilityToken = read(&with_unknown_member(pointer));
        assert_eq!(token, original, "{pointer}");
        let written = canonical::to_string(&token).unwrap();
        assert!(!written.contains("never_heard_of"), "{pointer}");
    }
}

#[test]
fn unknown_members_are_refused_where_the_format_may_not_grow() {
    for pointer in [
        "/scope/grants/0/max_cost_per_invocation",
        "/scope/grants/0/max_total_cost",
        "/scope/grants/0/constraints/0",
        "/scope/grants/0/constraints/1",
        "/scope/grants/0/constraints/1/value",
        "/scope/grants/0/constraints/2/value",
        "/scope/grants/0/constraints/2/value/threshold",
        "/scope/grants/0/constraints/3/value",
        "/scope/grants/0/constraints/4",
        "/aggregate_invocation_budget",
        "/aggregate_invocation_budget/root_binding",
        "/aggregate_invocation_budget/root_binding/body",
        "/delegation_chain/0/aggregate_budget",
        "/delegation_chain/0/attenuations/1/constraint",
        "/delegation_chain/0/attenuations/2/max_total_cost",
        "/attenuation_proof",
        "/attenuation_proof/normalizedSubsetProof",
        "/attenuation_proof/normalizedSubsetProof/subsetRelations/0",
    ] {
        assert!(!reads::<CapabilityToken>(&with_unknown_member(pointer)), "{pointer}");
    }
}

#[test]
fn null_stands_for_an_optional_member_that_is_absent() {
    for pointer in [
        "/aggregate_invocation_budget",
        "/aggregate_invocation_budget/root_binding",
        "/aggregate_invocation_budget/root_binding/algorithm",
        "/algorithm",
        "/scope_attenuations",
        "/attenuation_proof",
        "/attenuation_proof/normalizedSubsetProof/aggregateBudget",
        "/attenuation_proof/normalizedSubsetProof/cumulativeApproval",
        "/budget_share_bps",
        "/scope/grants/0/max_invocations",
        "/scope/grants/0/max_cost_per_invocation",
        "/scope/grants/0/max_total_cost",
        "/scope/grants/0/dpop_required",
        "/delegation_chain/0/scope_hash",
        "/delegation_chain/0/aggregate_budget",
        "/delegation_chain/0/cumulative_approval",
    ] {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let mut value = full_value();
        value.pointer_mut(parent).unwrap()[name] = Value::Null;
        let with_null: CapabilityToken = read(&value);
        value.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name);
        assert_eq!(with_null, read(&value), "{pointer}");
        assert_eq!(serde_json::to_value(&with_null).unwrap(), value, "{pointer}");
    }
}

#[test]
fn required_members_are_required() {
    for pointer in [
        "/id",
        "/issuer",
        "/subject",
        "/scope",
        "/issued_at",
        "/expires_at",
        "/signature",
        "/scope/grants/0/server_id",
        "/scope/grants/0/tool_name",
        "/scope/grants/0/operations",
        "/scope/grants/0/constraints/0/type",
        "/scope/grants/0/constraints/0/value",
        "/scope/resource_grants/0/uri_pattern",
        "/scope/resource_grants/0/operations",
        "/scope/prompt_grants/0/prompt_name",
        "/scope/prompt_grants/0/operations",
        "/scope/grants/0/max_total_cost/units",
        "/scope/grants/0/max_total_cost/currency",
        "/delegation_chain/0/capability_id",
        "/delegation_chain/0/delegator",
        "/delegation_chain/0/delegatee",
        "/delegation_chain/0/timestamp",
        "/delegation_chain/0/signature",
        "/delegation_chain/0/attenuations/0/type",
        "/delegation_chain/0/attenuations/0/server_id",
    ] {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let mut value = full_value();
        value.pointer_mut(parent).unwrap()[name] = Value::Null;
        assert!(!reads::<CapabilityToken>(&value), "null at {pointer}");
        value.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name);
        assert!(!reads::<CapabilityToken>(&value), "nothing at {pointer}");
    }
}

#[test]
fn members_of_the_wrong_kind_fail_the_whole_token() {
    for (pointer, wrong) in [
        ("/scope/grants/0/constraints/0/type", json!("path_suffix")),
        ("/scope/grants/0/constraints/0/type", json!("PathPrefix")),
        ("/scope/grants/0/constraints/0/value", json!(7)),
        ("/scope/grants/0/constraints/1/value/threshold_units", json!(-1)),
        ("/scope/grants/0/constraints/1/value/threshold_units", json!(1.0)),
        ("/scope/grants/0/constraints/3/value/min_safety_tier", json!("medium")),
        ("/scope/grants/0/operations/0", json!("execute")),
        ("/scope/grants/0/operations/0", json!("Invoke")),
        ("/scope/grants/0/max_invocations", json!(4_294_967_296_u64)),
        ("/scope/grants/0/max_invocations", json!(1.0)),
        ("/scope/grants/0/dpop_required", json!("true")),
        ("/scope/grants/0/max_total_cost/units", json!(0.5)),
        ("/issued_at", json!(1.0)),
        ("/issued_at", json!(-1)),
        ("/issued_at", json!("1700000000")),
        ("/expires_at", json!(18_446_744_073_709_551_616_f64)),
        ("/delegation_chain/0/attenuations/0/type", json!("add_tool")),
        ("/algorithm", json!("rsa")),
        ("/issuer", json!("00")),
        ("/signature", json!("0".repeat(64))),
        ("/aggregate_invocation_budget/scope", json!("family")),
    ] {
        let mut value = full_value();
        *value.pointer_mut(pointer).unwrap() = wrong.clone();
        assert!(!reads::<CapabilityToken>(&value), "{wrong} at {pointer}");
    }
}

#[test]
fn optional_members_are_left_out_and_false_is_written() {
    let bare = serde_json::to_value(token()).unwrap();
    let names: Vec<&str> = bare.as_object().unwrap().keys().map(String::as_str).collect();
    let mut expected =
        ["schema", "id", "issuer", "subject", "scope", "issued_at", "expires_at", "signature"];
    expected.sort_unstable();
    assert_eq!({ names }, expected);
    assert_eq!(canonical::to_string(&ChioScope::default()).unwrap(), "{}");
    let written = canonical::to_string(&grant("t", &[])).unwrap();
    assert_eq!(written, r#"{"operations":[],"server_id":"srv","tool_name":"t"}"#);
    for (value, expected) in
        [(false, r#""dpop_required":false"#), (true, r#""dpop_required":true"#)]
    {
        let grant = ToolGrant { dpop_required: Some(value), ..grant("t", &[]) };
        assert!(canonical::to_string(&grant).unwrap().contains(expected));
    }
}

#[test]
fn keys_and_signatures_in_another_spelling_are_the_same_token() {
    let token = token();
    let mut value = serde_json::to_value(&token).unwrap();
    for member in ["issuer", "subject", "signature"] {
        let text = value[member].as_str().unwrap().to_uppercase();
        value[member] = json!(format!("0x{text}"));
    }
    let parsed: CapabilityToken = read(&value);
    assert_eq!(parsed, token);
    assert_eq!(verify(&parsed, START), Ok(SignatureForm::Current));
    assert_eq!(canonical::to_vec(&parsed), canonical::to_vec(&token));
}

#[test]
fn patterns_of_resources_and_prompts_cover_by_prefix() {
    for (parent, child, covered) in [
        ("*", "anything", true),
        ("*", "*", true),
        ("*", "", true),
        ("file:///a/*", "file:///a/b", true),
        ("file:///a/*", "file:///a/", true),
        ("file:///a/*", "file:///a/*", true),
        ("file:///a/*", "file:///a/b/*", true),
        ("file:///a/*", "file:///a", false),
        ("file:///a/*", "file:///b", false),
        ("file:///a/*", "*", false),
        ("file:///a", "file:///a", true),
        ("file:///a", "file:///A", false),
        ("file:///a", "file:///a/b", false),
        ("file:///a", "file:///a*", false),
        ("", "", true),
        ("", "a", false),
        ("a*b", "axb", false),
    ] {
        let operations = vec![Operation::Read];
        let resource = |pattern: &str| ResourceGrant {
            uri_pattern: pattern.to_owned(),
            operations: operations.clone(),
        };
        let prompt = |pattern: &str| PromptGrant {
            prompt_name: pattern.to_owned(),
            operations: operations.clone(),
        };
        let case = format!("`{parent}` and `{child}`");
        assert_eq!(resource(parent).covers(child), covered, "{case}");
        assert_eq!(prompt(parent).covers(child), covered, "{case}");
        assert_eq!(resource(child).is_subset_of(&resource(parent)), covered, "{case}");
        assert_eq!(prompt(child).is_subset_of(&prompt(parent)), covered, "{case}");
        let more = ResourceGrant { operations: vec![Operation::Subscribe], ..resource(child) };
        assert!(!more.is_subset_of(&resource(parent)), "{case} with another operation");
        let none = PromptGrant { operations: Vec::new(), ..prompt(child) };
        assert_eq!(none.is_subset_of(&prompt(parent)), covered, "{case} without operations");
    }
}

#[test]
fn the_whole_name_is_the_only_wildcard_of_tools() {
    for (server, tool, asked_server, asked_tool, covered) in [
        ("srv", "read", "srv", "read", true),
        ("*", "read", "srv", "read", true),
        ("srv", "*", "srv", "read", true),
        ("*", "*", "srv", "read", true),
        ("*", "*", "*", "*", true),
        ("srv", "read", "srv", "*", false),
        ("srv", "read", "*", "read", false),
        ("srv", "re*", "srv", "read", false),
        ("s*", "read", "srv", "read", false),
        ("srv", "read", "srv", "Read", false),
        ("srv", "read", "other", "read", false),
    ] {
        let grant = ToolGrant { server_id: server.to_owned(), ..grant(tool, &[]) };
        assert_eq!(grant.covers(asked_server, asked_tool), covered, "{server} {tool}");
        let asked = ToolGrant { server_id: asked_server.to_owned(), ..grant.clone() };
        let asked = ToolGrant { tool_name: asked_tool.to_owned(), ..asked };
        assert_eq!(asked.is_subset_of(&grant), covered, "{server} {tool}");
    }
}

// Attenuation.

fn names() -> (String, String) {
    ("srv".to_owned(), "read".to_owned())
}

fn usd(units: u64) -> MonetaryAmount {
    MonetaryAmount::new(units, "USD")
}

fn remove_tool() -> Attenuation {
    let (server_id, tool_name) = names();
    Attenuation::RemoveTool { server_id, tool_name }
}

fn remove_operation(operation: Operation) -> Attenuation {
    let (server_id, tool_name) = names();
    Attenuation::RemoveOperation { server_id, tool_name, operation }
}

fn add_constraint(constraint: Constraint) -> Attenuation {
    let (server_id, tool_name) = names();
    Attenuation::AddConstraint { server_id, tool_name, constraint }
}

fn reduce_budget(max_invocations: u32) -> Attenuation {
    let (server_id, tool_name) = names();
    Attenuation::ReduceBudget { server_id, tool_name, max_invocations }
}

fn reduce_cost(max_cost_per_invocation: MonetaryAmount) -> Attenuation {
    let (server_id, tool_name) = names();
    Attenuation::ReduceCostPerInvocation { server_id, tool_name, max_cost_per_invocation }
}

fn reduce_total(max_total_cost: MonetaryAmount) -> Attenuation {
    let (server_id, tool_name) = names();
    Attenuation::ReduceTotalCost { server_id, tool_name, max_total_cost }
}

const fn shorten(new_expires_at: u64) -> Attenuation {
    Attenuation::ShortenExpiry { new_expires_at }
}

/// A grant with every limit set.
fn limited() -> ToolGrant {
    ToolGrant {
        max_invocations: Some(10),
        max_cost_per_invocation: Some(usd(100)),
        max_total_cost: Some(usd(1000)),
        constraints: vec![Constraint::MaxLength(64)],
        ..grant("read", &[Operation::Invoke, Operation::ReadResult])
    }
}

/// A change of a grant.
type Change = fn(&mut ToolGrant);

#[test]
fn each_step_narrows_the_grant_it_names_and_no_other() {
    let other = grant("write", &[Operation::Invoke]);
    let cases: [(Attenuation, Change); 11] = [
        (remove_operation(Operation::ReadResult), |g| g.operations = vec![Operation::Invoke]),
        (add_constraint(Constraint::MaxArgsSize(9)), |g| {
            g.constraints.push(Constraint::MaxArgsSize(9));
        }),
        (add_constraint(Constraint::MaxLength(64)), |_| {}),
        (reduce_budget(9), |g| g.max_invocations = Some(9)),
        (reduce_budget(10), |_| {}),
        (reduce_budget(0), |g| g.max_invocations = Some(0)),
        (reduce_cost(usd(99)), |g| g.max_cost_per_invocation = Some(usd(99))),
        (reduce_cost(usd(100)), |_| {}),
        (reduce_total(usd(0)), |g| g.max_total_cost = Some(usd(0))),
        (reduce_total(usd(1000)), |_| {}),
        (shorten(END - 1), |_| {}),
    ];
    for (step, change) in cases {
        let parent = scope(&[limited(), other.clone()]);
        let (child, ends) = parent.attenuate(END, std::slice::from_ref(&step)).unwrap();
        let mut expected = limited();
        change(&mut expected);
        assert_eq!(child, scope(&[expected, other.clone()]), "{step:?}");
        assert_eq!(ends, if step.kind() == "shorten_expiry" { END - 1 } else { END });
        assert!(child.is_subset_of(&parent), "{step:?}");
    }
    let parent = scope(&[limited(), other.clone(), limited()]);
    assert_eq!(parent.attenuate(END, &[remove_tool()]).unwrap(), (scope(&[other]), END));
}

#[test]
fn limits_are_set_where_there_were_none() {
    let parent = scope(&[grant("read", &[Operation::Invoke])]);
    let steps = [reduce_budget(u32::MAX), reduce_cost(usd(7)), reduce_total(usd(u64::MAX))];
    let (child, _) = parent.attenuate(END, &steps).unwrap();
    assert_eq!(child.grants[0].max_invocations, Some(u32::MAX));
    assert_eq!(child.grants[0].max_cost_per_invocation, Some(usd(7)));
    assert_eq!(child.grants[0].max_total_cost, Some(usd(u64::MAX)));
    assert!(child.is_subset_of(&parent));
}

#[test]
fn steps_are_taken_one_after_another() {
    let parent = scope(&[limited()]);
    let narrowing = [reduce_budget(5), reduce_budget(3), shorten(50), shorten(40)];
    let (child, ends) = parent.attenuate(100, &narrowing).unwrap();
    assert_eq!((child.grants[0].max_invocations, ends), (Some(3), 40));
    for (steps, kind) in [
        (vec![reduce_budget(3), reduce_budget(5)], "reduce_budget"),
        (vec![shorten(40), shorten(50)], "shorten_expiry"),
        (
            vec![remove_operation(Operation::Invoke), remove_operation(Operation::Invoke)],
            "remove_operation",
        ),
    ] {
        assert_eq!(parent.attenuate(100, &steps), Err(AttenuationError::Widens(kind)));
    }
    let (server_id, tool_name) = names();
    let gone = AttenuationError::NoGrant { server_id, tool_name };
    assert_eq!(parent.attenuate(100, &[remove_tool(), reduce_budget(1)]), Err(gone));
    assert_eq!(parent.attenuate(100, &[]), Ok((parent.clone(), 100)));
}

#[test]
fn a_step_that_would_give_more_is_refused() {
    for step in [
        remove_operation(Operation::Delegate),
        add_constraint(cumulative(1)),
        reduce_budget(11),
        reduce_cost(usd(101)),
        reduce_cost(MonetaryAmount::new(1, "EUR")),
        reduce_total(usd(1001)),
        reduce_total(MonetaryAmount::new(1, "usd")),
        shorten(END + 1),
    ] {
        let outcome = scope(&[limited()]).attenuate(END, std::slice::from_ref(&step));
        assert_eq!(outcome, Err(AttenuationError::Widens(step.kind())), "{step:?}");
    }
    // One of two grants of the tool would be widened.
    let tighter = ToolGrant { max_invocations: Some(2), ..limited() };
    let outcome = scope(&[limited(), tighter]).attenuate(END, &[reduce_budget(5)]);
    assert_eq!(outcome, Err(AttenuationError::Widens("reduce_budget")));
}

#[test]
fn a_step_names_a_tool_that_is_granted_by_name() {
    let (server_id, tool_name) = names();
    let steps = [
        remove_tool(),
        remove_operation(Operation::Invoke),
        add_constraint(Constraint::MaxLength(1)),
        reduce_budget(1),
        reduce_cost(usd(1)),
        reduce_total(usd(1)),
    ];
    for step in steps {
        let absent = scope(&[grant("write", &[Operation::Invoke])]);
        let expected = AttenuationError::NoGrant {
            server_id: server_id.clone(),
            tool_name: tool_name.clone(),
        };
        let outcome = absent.attenuate(END, std::slice::from_ref(&step));
        assert_eq!(outcome, Err(expected), "{step:?}");
        for (server, tool) in [("*", "read"), ("srv", "*"), ("*", "*")] {
            let wild = ToolGrant { server_id: server.to_owned(), ..limited() };
            let wild = ToolGrant { tool_name: tool.to_owned(), ..wild };
            let expected = AttenuationError::Wildcard {
                server_id: server_id.clone(),
                tool_name: tool_name.clone(),
            };
            for parent in [scope(std::slice::from_ref(&wild)), scope(&[limited(), wild])] {
                let outcome = parent.attenuate(END, std::slice::from_ref(&step));
                assert_eq!(outcome, Err(expected.clone()), "{step:?}");
            }
        }
    }
    // A wildcard grant is narrowed by its own name.
    let wild = scope(&[ToolGrant { tool_name: "*".to_owned(), ..limited() }]);
    let all = Attenuation::ReduceBudget {
        server_id: "srv".to_owned(),
        tool_name: "*".to_owned(),
        max_invocations: 1,
    };
    let (child, _) = wild.attenuate(END, &[all]).unwrap();
    assert_eq!(child.grants[0].max_invocations, Some(1));
}

#[test]
fn steps_have_the_names_and_members_of_the_wire() {
    let tool = json!({"server_id": "srv", "tool_name": "read"});
    for (step, kind, member) in [
        (remove_tool(), "remove_tool", None),
        (remove_operation(Operation::Get), "remove_operation", Some(("operation", json!("get")))),
        (
            add_constraint(Constraint::MaxLength(1)),
            "add_constraint",
            Some(("constraint", json!({"type": "max_length", "value": 1}))),
        ),
        (reduce_budget(4), "reduce_budget", Some(("max_invocations", json!(4)))),
        (
            reduce_cost(usd(5)),
            "reduce_cost_per_invocation",
            Some(("max_cost_per_invocation", json!(usd(5)))),
        ),
        (reduce_total(usd(6)), "reduce_total_cost", Some(("max_total_cost", json!(usd(6))))),
    ] {
        let mut expected = tool.clone();
        expected["type"] = json!(kind);
        if let Some((name, value)) = member {
            expected[name] = value;
        }
        assert_eq!(serde_json::to_value(&step).unwrap(), expected);
        assert_eq!(read::<Attenuation>(&expected), step);
        assert_eq!(step.kind(), kind);
    }
    let expected = json!({"type": "shorten_expiry", "new_expires_at": 9});
    assert_eq!(serde_json::to_value(shorten(9)).unwrap(), expected);
    assert_eq!(shorten(9).kind(), "shorten_expiry");
}

// Delegation.

/// A parent whose grants may be handed on, one of them only.
fn parent() -> CapabilityToken {
    let delegable = ToolGrant {
        operations: vec![Operation::Invoke, Operation::ReadResult, Operation::Delegate],
        ..limited()
    };
    let kept = grant("kept", &[Operation::Invoke]);
    let token = CapabilityToken { scope: scope(&[delegable, kept]), ..draft() };
    token.signed(&key(ISSUER)).unwrap()
}

fn delegation() -> Delegation {
    let narrower = ToolGrant { max_invocations: Some(5), ..limited() };
    Delegation {
        delegatee: public(DELEGATEE),
        scope: scope(&[narrower]),
        expires_at: END,
        steps: vec![reduce_budget(5)],
        budget_share_bps: None,
        signed_at: START + 10,
        nonce: [0xab; 16],
    }
}

#[track_caller]
fn check_delegate(
    parent: &CapabilityToken,
    change: impl FnOnce(&mut Delegation),
    expected: DelegationError,
) {
    let mut delegation = delegation();
    change(&mut delegation);
    assert_eq!(delegate(parent, delegation, &key(SUBJECT)), Err(expected));
}

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
    let with_share = Delegation { budget_share_bps: Some(9_000), ..delegation() };
    let receipt = delegate(&parent(), with_share, &key(SUBJECT)).unwrap();
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
    for found in [None, Some(0), Some(1), Some(10_000)] {
        assert_eq!(share(None, found), Ok(()), "{found:?}");
    }
    for (most, found) in [(Some(10_000), None), (Some(5_000), Some(5_000)), (Some(0), Some(0))] {
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

// The issuer's part.

fn handed_on() -> DelegationReceipt {
    delegate(&parent(), delegation(), &key(SUBJECT)).unwrap()
}

/// Asks the issuer for the child of a changed hand-over.
fn ask(
    change: impl FnOnce(&mut CapabilityToken, &mut DelegationReceipt, &mut ChioScope),
) -> Result<CapabilityToken, DelegationError> {
    let (mut parent, mut receipt, mut scope) = (parent(), handed_on(), delegation().scope);
    change(&mut parent, &mut receipt, &mut scope);
    let (id, issued_at) = ("cap-2".to_owned(), START + 10);
    let child = Child { parent: &parent, receipt: &receipt, scope, id, issued_at };
    child.signed(&key(ISSUER), &[])
}

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

/// A change of a link or of the tokens at its ends, and what it leads to.
struct HopCase {
    change: fn(&mut DelegationLink, &mut CapabilityToken, &mut Validity),
    expected: Result<(), DelegationError>,
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

// Proofs of possession.

#[track_caller]
fn check_dpop(change: impl FnOnce(&mut DpopProof), now: u64, expected: &Result<(), DpopError>) {
    let token = token();
    let arguments = json!({"path": "/a", "n": 1.0});
    let target =
        DpopTarget { token: &token, tool_server: "srv", tool_name: "read", arguments: &arguments };
    let mut proof = DpopProof::new(&target, "nonce", START, &key(SUBJECT)).unwrap();
    change(&mut proof);
    assert_eq!(&proof.verify(&target, now), expected);
}

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

// Negotiation.

#[test]
fn feature_names_are_short_and_plain() {
    let profile = |name: &str| CapabilityNegotiation {
        schema: NEGOTIATION_SCHEMA.to_owned(),
        features: [(name.to_owned(), true)].into(),
    };
    for name in ["a", "9", "_.-", "accepts_anchor_batch_v1", &"a".repeat(96)] {
        assert_eq!(profile(name).check(), Ok(()), "{name}");
    }
    for name in ["", "A", "a b", "a/b", "é", "a\u{0}", "a\n", &"a".repeat(97)] {
        assert!(profile(name).check().is_err(), "{name:?}");
    }
    let other = CapabilityNegotiation { schema: "other".to_owned(), ..profile("a") };
    let expected = "expected schema `chio.capabilities.v1`, found `other`";
    assert_eq!(other.check(), Err(ArtifactError::Malformed(expected.to_owned())));
    let empty = CapabilityNegotiation { features: [].into(), ..profile("a") };
    assert_eq!(empty.check(), Ok(()));
}

#[test]
fn a_feature_is_off_unless_it_is_said_to_be_on() {
    let profile: CapabilityNegotiation = read(&json!({
        "schema": NEGOTIATION_SCHEMA,
        "features": {"accepts_hybrid_signatures": true, "threshold_governed_approvals": false},
    }));
    for (feature, on) in [
        ("accepts_hybrid_signatures", true),
        ("threshold_governed_approvals", false),
        ("aggregate_invocation_budget", false),
        ("cumulative_approval_budget", false),
        ("delegation_chain_binding", true),
        ("never_heard_of", false),
    ] {
        assert_eq!(profile.has(feature), on, "{feature}");
    }
    let off: CapabilityNegotiation = read(&json!({
        "schema": NEGOTIATION_SCHEMA, "features": {"delegation_chain_binding": false},
    }));
    assert!(!off.has("delegation_chain_binding"));
}

#[test]
fn a_negotiation_profile_is_strict_and_leaves_out_an_empty_list() {
    let bare = json!({"schema": NEGOTIATION_SCHEMA});
    let profile: CapabilityNegotiation = read(&bare);
    assert_eq!(serde_json::to_value(&profile).unwrap(), bare);
    for refused in [
        json!({}),
        json!({"schema": NEGOTIATION_SCHEMA, "extra": 1}),
        json!({"schema": NEGOTIATION_SCHEMA, "features": {"a": 1}}),
        json!({"schema": NEGOTIATION_SCHEMA, "features": {"a": null}}),
    ] {
        assert!(!reads::<CapabilityNegotiation>(&refused), "{refused}");
    }
}

#[test]
fn regression_a_pattern_is_within_another_by_its_prefix() {
    let grant = |uri_pattern: &str| ResourceGrant {
        uri_pattern: uri_pattern.to_owned(),
        operations: vec![Operation::Read],
    };
    for (child, parent, expected) in [
        ("a*", "a**", false),
        ("*", "**", false),
        ("a**", "a*", true),
        ("**", "*", true),
        ("a**", "a**", true),
        ("a*b", "a**", true),
        ("ab", "a**", false),
        ("", "*", true),
        ("*", "", false),
    ] {
        let within = grant(child).is_subset_of(&grant(parent));
        assert_eq!(within, expected, "`{child}` within `{parent}`");
    }
}

#[test]
fn regression_a_forged_witness_is_not_even_looked_at() {
    let golden = include_str!("../../../../spec/vectors/golden/capability.json");
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

#[test]
fn a_step_on_one_tool_is_shown_by_every_grant_that_reaches_it() {
    let parent_grant = ToolGrant {
        tool_name: WILDCARD.to_owned(),
        ..grant("any", &[Operation::Invoke, Operation::Delegate])
    };
    let parent = ChioScope { grants: vec![parent_grant.clone()], ..ChioScope::default() };
    let step = Attenuation::RemoveOperation {
        server_id: "srv".to_owned(),
        tool_name: "read".to_owned(),
        operation: Operation::Delegate,
    };
    let check = |operations: &[Operation]| {
        let child_grant = ToolGrant { operations: operations.to_vec(), ..parent_grant.clone() };
        let child = ChioScope { grants: vec![child_grant], ..ChioScope::default() };
        let (before, after) = (
            attenuation::Extent { scope: &parent, expires_at: END },
            attenuation::Extent { scope: &child, expires_at: END },
        );
        step.check(before, after)
    };
    assert_eq!(check(&[Operation::Invoke]), Ok(()));
    let kept = check(&[Operation::Invoke, Operation::Delegate]);
    assert_eq!(kept, Err(AttenuationError::NotReflected("remove_operation")));
}
