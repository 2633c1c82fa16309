//! Call chains: what a call says of its parent, and what bears it out.

use serde_json::{Value, json};

use super::*;
use crate::canonical;
use crate::governance::tests::{key, read_signed, text};
use crate::signed::Signed;
use crate::strict;

const NOW: u64 = 1_700_000_200;
const RECEIPT_HASH: &str = "64ec8df63fadaa0e070b4e73054725538f331efacd2b58de1827e58221719b93";
const LINK_HASH: &str = "4b32e5b45c801088b80b8aaf3f73e754a074cf77c92bb77e8007202c8271c10b";

/// The keys that a [`CurrentCall`] borrows.
struct Keys {
    delegator: PublicKey,
    subject: PublicKey,
}

fn keys() -> Keys {
    Keys { delegator: key(2).public_key().clone(), subject: key(3).public_key().clone() }
}

impl Keys {
    /// The call that the golden proof and the golden continuation token are made for.
    fn call(&self) -> CurrentCall<'_> {
        CurrentCall {
            now: NOW,
            request_id: "req-9",
            live_parent: None,
            subject: &self.subject,
            server_id: "srv-files",
            tool_name: "file_read",
            intent_hash: "an intent hash",
            delegation: Some(DelegationEnds {
                origin: &self.delegator,
                delegator: &self.delegator,
                capability_id: "cap-golden-full",
                link_hash: LINK_HASH,
            }),
            parent_receipt_hash: None,
            parent_anchor: None,
        }
    }
}

fn proof() -> UpstreamProof {
    read_signed("upstream_proof", 2)
}

fn continuation() -> ContinuationToken {
    read_signed("continuation_token", 7)
}

fn kernels() -> [PublicKey; 1] {
    [key(7).public_key().clone()]
}

/// The member that a mismatch is about.
fn mismatch<T: std::fmt::Debug>(outcome: Result<T, CallChainError>) -> &'static str {
    match outcome {
        Err(CallChainError::Mismatch { member, .. }) => member,
        other => panic!("expected a mismatch, found {other:?}"),
    }
}

/// A change of one member, and the name under which it is reported.
type Change<T> = (&'static str, fn(&mut T));

const CONTEXT_CHANGES: [Change<CallChainContext>; 5] = [
    ("chainId", |context| context.chain_id.push('x')),
    ("parentRequestId", |context| context.parent_request_id.push('x')),
    ("parentReceiptId", |context| context.parent_receipt_id = Some("x".to_owned())),
    ("originSubject", |context| context.origin_subject.push('x')),
    ("delegatorSubject", |context| context.delegator_subject.push('x')),
];

#[test]
fn the_golden_provenance_keeps_its_bytes() {
    let wire = text("/call_chain_provenance_asserted");
    let provenance: CallChainProvenance = strict::from_slice(wire.as_bytes()).unwrap();
    assert_eq!(canonical::to_string(&provenance).unwrap(), wire);
    assert_eq!(CallChainProvenance::asserted(provenance.context.clone()), provenance);
}

#[test]
fn provenance_with_every_member_keeps_its_bytes() {
    let mut full: Value = serde_json::from_str(&text("/call_chain_provenance_asserted")).unwrap();
    let context = full.clone();
    full["evidenceClass"] = json!("verified");
    full["evidenceSources"] = json!([
        "session_parent_request_lineage",
        "local_parent_receipt_linkage",
        "capability_delegator_subject",
        "capability_origin_subject",
        "upstream_delegator_proof",
    ]);
    full["upstreamProof"] = serde_json::to_value(proof()).unwrap();
    full["assertedContext"] = context;
    full["assertedContext"].as_object_mut().unwrap().remove("evidenceClass");
    full["continuationTokenId"] = json!("cont-1");
    full["sessionAnchorId"] = json!("anchor-1");
    full["receiptLineageStatementId"] = json!("lin-1");
    let provenance = CallChainProvenance::deserialize(&full).unwrap();
    assert_eq!(canonical::to_vec(&provenance).unwrap(), canonical::to_vec(&full).unwrap());
}

#[test]
fn the_class_follows_from_the_evidence() {
    let (keys, context) = (keys(), proof().context);
    let accepted = proof().check(&context, &keys.call()).unwrap();
    let observed = vec![EvidenceSource::LocalParentReceiptLinkage];
    let claimed = vec![EvidenceSource::UpstreamDelegatorProof];
    for (sources, proof, expected) in [
        (vec![], None, EvidenceClass::Asserted),
        (claimed, None, EvidenceClass::Asserted),
        (observed.clone(), None, EvidenceClass::Observed),
        (vec![], Some(accepted.clone()), EvidenceClass::Verified),
        (observed, Some(accepted), EvidenceClass::Verified),
    ] {
        let proven = proof.is_some();
        let provenance = CallChainProvenance::new(context.clone(), sources, proof);
        assert_eq!(provenance.evidence_class, expected);
        let source = EvidenceSource::UpstreamDelegatorProof;
        assert_eq!(provenance.evidence_sources.contains(&source), proven);
        assert_eq!(provenance.upstream_proof.is_some(), proven);
    }
}

#[test]
fn a_context_that_the_call_bears_out_names_its_sources() {
    let (keys, context) = (keys(), proof().context);
    let delegated = keys.call();
    let nested = CurrentCall { live_parent: Some("req-parent-1"), ..delegated };
    let plain = CurrentCall { delegation: None, ..delegated };
    let by_link =
        [EvidenceSource::CapabilityDelegatorSubject, EvidenceSource::CapabilityOriginSubject];
    let by_session = EvidenceSource::SessionParentRequestLineage;
    assert_eq!(context.check(&plain).unwrap(), []);
    assert_eq!(context.check(&delegated).unwrap(), by_link);
    assert_eq!(context.check(&nested).unwrap(), [by_session, by_link[0], by_link[1]]);
}

#[test]
fn a_blank_member_is_refused() {
    let blanks: [Change<CallChainContext>; 5] = [
        ("chainId", |context| context.chain_id.clear()),
        ("parentRequestId", |context| context.parent_request_id = " ".to_owned()),
        ("parentReceiptId", |context| context.parent_receipt_id = Some("\t".to_owned())),
        ("originSubject", |context| context.origin_subject.clear()),
        ("delegatorSubject", |context| context.delegator_subject.clear()),
    ];
    for (member, blank) in blanks {
        let mut context = proof().context;
        blank(&mut context);
        assert_eq!(context.check(&keys().call()), Err(CallChainError::Blank(member)));
    }
}

#[test]
fn a_context_that_the_call_contradicts_is_refused() {
    let (keys, context) = (keys(), proof().context);
    let own = CurrentCall { request_id: "req-parent-1", ..keys.call() };
    let expected = CallChainError::OwnParent("req-parent-1".to_owned());
    assert_eq!(context.check(&own), Err(expected));

    let other_parent = CurrentCall { live_parent: Some("req-8"), ..keys.call() };
    let error = context.check(&other_parent).unwrap_err();
    assert_eq!(error.to_string(), "expected `parentRequestId` to be `req-8`, found `req-parent-1`");

    let delegation = keys.call().delegation.unwrap();
    let other_delegator = DelegationEnds { delegator: &keys.subject, ..delegation };
    let call = CurrentCall { delegation: Some(other_delegator), ..keys.call() };
    assert_eq!(mismatch(context.check(&call)), "delegatorSubject");
    let other_origin = DelegationEnds { origin: &keys.subject, ..delegation };
    let call = CurrentCall { delegation: Some(other_origin), ..keys.call() };
    assert_eq!(mismatch(context.check(&call)), "originSubject");
}

#[test]
fn a_proof_holds_within_its_window_for_its_own_call() {
    let (keys, context) = (keys(), proof().context);
    let at = |now| proof().check(&context, &CurrentCall { now, ..keys.call() });
    assert!(at(1_700_000_000).is_ok());
    assert!(at(1_700_000_599).is_ok());
    assert!(matches!(at(1_699_999_999), Err(CallChainError::Window(_))));
    assert!(matches!(at(1_700_000_600), Err(CallChainError::Window(_))));

    let undelegated = CurrentCall { delegation: None, ..keys.call() };
    assert_eq!(proof().check(&context, &undelegated), Err(CallChainError::Undelegated));
    let stolen = CurrentCall { subject: &keys.delegator, ..keys.call() };
    assert_eq!(mismatch(proof().check(&context, &stolen)), "subject");
    for (member, change) in CONTEXT_CHANGES {
        let mut other = context.clone();
        change(&mut other);
        assert_eq!(mismatch(proof().check(&other, &keys.call())), member);
    }
}

#[test]
fn only_the_last_delegators_own_signature_proves() {
    let (keys, context) = (keys(), proof().context);
    for seed in [3, 7] {
        let found = key(seed).public_key().clone();
        let forged = UpstreamProof { signer: found.clone(), ..proof() }.signed(&key(seed)).unwrap();
        let Err(CallChainError::Signer { found: named, .. }) = forged.check(&context, &keys.call())
        else {
            panic!("the signer was accepted");
        };
        assert_eq!(named, found);
    }
    let changed = UpstreamProof { expires_at: 1_700_000_601, ..proof() };
    let outcome = changed.check(&context, &keys.call());
    assert!(matches!(outcome, Err(CallChainError::Artifact(_))), "{outcome:?}");
}

#[test]
fn a_continuation_is_accepted_for_its_own_call() {
    let (keys, token) = (keys(), continuation());
    let check = |call: &CurrentCall<'_>| token.check(&token.context, call, &kernels());
    assert_eq!(check(&keys.call()), Ok(()));
    let known = CurrentCall { parent_receipt_hash: Some(RECEIPT_HASH), ..keys.call() };
    assert_eq!(check(&known), Ok(()));

    let delegators = ContinuationToken { signer: keys.delegator.clone(), ..continuation() };
    let delegators = delegators.signed(&key(2)).unwrap();
    assert_eq!(delegators.check(&token.context, &keys.call(), &[]), Ok(()));
}

#[test]
fn a_continuation_is_refused_for_another_call() {
    let (keys, token) = (keys(), continuation());
    let call = keys.call();
    let delegation = call.delegation.unwrap();
    let with = |delegation| CurrentCall { delegation: Some(delegation), ..call };
    for (member, call) in [
        ("subject", CurrentCall { subject: &keys.delegator, ..call }),
        ("audience.serverId", CurrentCall { server_id: "srv-other", ..call }),
        ("audience.toolName", CurrentCall { tool_name: "file_write", ..call }),
        ("parentCapabilityId", CurrentCall { delegation: None, ..call }),
        ("parentCapabilityId", with(DelegationEnds { capability_id: "other", ..delegation })),
        ("delegationLinkHash", with(DelegationEnds { link_hash: "other", ..delegation })),
        ("parentReceiptHash", CurrentCall { parent_receipt_hash: Some("other"), ..call }),
    ] {
        assert_eq!(mismatch(token.check(&token.context, &call, &kernels())), member);
    }
    for (member, change) in CONTEXT_CHANGES {
        let mut other = token.context.clone();
        change(&mut other);
        assert_eq!(mismatch(token.check(&other, &call, &kernels())), member);
    }
    for now in [token.issued_at - 1, token.expires_at] {
        let outcome = token.check(&token.context, &CurrentCall { now, ..call }, &kernels());
        assert!(matches!(outcome, Err(CallChainError::Window(_))), "at {now}");
    }
}

#[test]
fn what_a_continuation_names_beyond_that_has_to_be_so() {
    let keys = keys();
    let anchor = |id: &str, hash: &str| SessionAnchorReference {
        session_anchor_id: id.to_owned(),
        session_anchor_hash: hash.to_owned(),
    };
    let known = anchor("a1", "h1");
    let call = CurrentCall { parent_anchor: Some(&known), ..keys.call() };
    let check = |token: ContinuationToken, call: &CurrentCall<'_>| {
        let token = token.signed(&key(7)).unwrap();
        token.check(&token.context, call, &kernels())
    };
    let subject = ContinuationToken { current_subject: "other".to_owned(), ..continuation() };
    assert_eq!(mismatch(check(subject, &call)), "currentSubject");

    let intent = |hash: &str| ContinuationToken {
        governed_intent_hash: Some(hash.to_owned()),
        ..continuation()
    };
    assert_eq!(check(intent("an intent hash"), &call), Ok(()));
    assert_eq!(mismatch(check(intent("other"), &call)), "governedIntentHash");

    let session =
        |anchor| ContinuationToken { parent_session_anchor: Some(anchor), ..continuation() };
    assert_eq!(check(session(known.clone()), &call), Ok(()));
    assert_eq!(check(session(anchor("a2", "h2")), &keys.call()), Ok(()));
    assert_eq!(mismatch(check(session(anchor("a2", "h1")), &call)), "sessionAnchorId");
    assert_eq!(mismatch(check(session(anchor("a1", "h2")), &call)), "sessionAnchorHash");
}

#[test]
fn only_a_trusted_kernels_or_the_delegators_signature_continues() {
    let (keys, token) = (keys(), continuation());
    let outcome = token.check(&token.context, &keys.call(), &[]);
    assert!(matches!(outcome, Err(CallChainError::Signer { .. })), "{outcome:?}");
    let undelegated = ContinuationToken {
        signer: keys.delegator.clone(),
        parent_capability_id: None,
        delegation_link_hash: None,
        ..continuation()
    };
    let undelegated = undelegated.signed(&key(2)).unwrap();
    let call = CurrentCall { delegation: None, ..keys.call() };
    let outcome = undelegated.check(&token.context, &call, &kernels());
    assert!(matches!(outcome, Err(CallChainError::Signer { .. })), "{outcome:?}");

    let changed = ContinuationToken { token_id: "cont-2".to_owned(), ..continuation() };
    let outcome = changed.check(&token.context, &keys.call(), &kernels());
    assert!(matches!(outcome, Err(CallChainError::Artifact(_))), "{outcome:?}");
}

#[test]
fn a_continuation_of_another_schema_is_refused() {
    let other = ContinuationToken { schema: "other".to_owned(), ..continuation() };
    assert_eq!(
        other.signed(&key(7)).unwrap_err().to_string(),
        "expected schema `chio.call_chain_continuation.v1`, found `other`"
    );
}
