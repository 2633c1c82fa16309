//! Random receipts and child receipts, signed by the kernel with seed 7.

use chio_core::crypto::Signature;
use chio_core::receipt::{
    Actor, BoundaryClass, ChildOutcome, ChildReceipt, ChioReceipt, Decision, GuardEvidence,
    ObservationOutcome, OperationKind, ReceiptKind, TerminalState, ToolCallAction, TrustLevel,
};
use chio_core::signed::Signed;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::json::{json, text};
use crate::key;

fn decision() -> impl Strategy<Value = Decision> {
    prop_oneof![
        Just(Decision::Allow),
        (text(), text()).prop_map(|(reason, guard)| Decision::Deny { reason, guard }),
        text().prop_map(|reason| Decision::Cancelled { reason }),
        text().prop_map(|reason| Decision::Incomplete { reason }),
    ]
}

fn evidence() -> impl Strategy<Value = Vec<GuardEvidence>> {
    let one = (text(), any::<bool>(), option::of(text()));
    vec(one, 0..3).prop_map(|all| {
        let build = |(guard_name, verdict, details)| GuardEvidence { guard_name, verdict, details };
        all.into_iter().map(build).collect()
    })
}

fn actors() -> impl Strategy<Value = Vec<Actor>> {
    vec((text(), option::of(text())), 0..2).prop_map(|all| {
        all.into_iter().map(|(actor_id, actor_kind)| Actor { actor_id, actor_kind }).collect()
    })
}

/// A signed receipt of any kind.
pub fn receipt() -> impl Strategy<Value = ChioReceipt> {
    let kind = select(vec![
        (ReceiptKind::MediatedDecision, BoundaryClass::Prevent, TrustLevel::Mediated),
        (ReceiptKind::TraceObservation, BoundaryClass::DetectOnly, TrustLevel::Verified),
        (ReceiptKind::AdvisoryEvaluation, BoundaryClass::AdvisoryOnly, TrustLevel::Advisory),
    ]);
    let call = (text(), text(), text(), json());
    let extras = (evidence(), actors(), option::of(json()), option::of(text()), any::<u64>());
    (kind, decision(), call, extras, "(rcpt-[a-z]{3})?").prop_filter_map(
        "parameters have a canonical form",
        |(kind, decision, call, extras, id)| {
            let signer = key(7);
            let (capability_id, tool_server, tool_name, parameters) = call;
            let (evidence, actor_chain, metadata, tenant_id, timestamp) = extras;
            let action = ToolCallAction::new(parameters).ok()?;
            let content_hash = "00".repeat(32);
            let public = signer.public_key().clone();
            let mut receipt = ChioReceipt {
                id,
                capability_id,
                tool_server,
                tool_name,
                evidence,
                actor_chain,
                metadata: metadata.filter(|value| !value.is_null()),
                tenant_id,
                ..ChioReceipt::mediated(timestamp, action, decision, content_hash, public)
            };
            (receipt.receipt_kind, receipt.boundary_class, receipt.trust_level) = kind;
            if receipt.receipt_kind != ReceiptKind::MediatedDecision {
                receipt.decision = None;
                receipt.observation_outcome = Some(ObservationOutcome::Observed);
            }
            receipt.signed(&signer).ok()
        },
    )
}

/// A signed child receipt.
pub fn child_receipt() -> impl Strategy<Value = ChildReceipt> {
    let kinds = vec![
        OperationKind::ToolCall,
        OperationKind::CreateMessage,
        OperationKind::ReadResource,
        OperationKind::Heartbeat,
    ];
    let state = prop_oneof![
        Just(TerminalState::Completed),
        text().prop_map(|reason| TerminalState::Cancelled { reason }),
        text().prop_map(|reason| TerminalState::Incomplete { reason }),
    ];
    let outcome =
        prop_oneof![json().prop_map(ChildOutcome::Result), text().prop_map(ChildOutcome::Error),];
    ((text(), text(), text()), select(kinds), state, outcome, any::<u64>()).prop_filter_map(
        "the outcome has a canonical form",
        |((session_id, parent_request_id, request_id), operation_kind, state, outcome, time)| {
            let signer = key(7);
            let receipt = ChildReceipt {
                id: "child-rcpt-1".to_owned(),
                timestamp: time,
                session_id,
                parent_request_id,
                request_id,
                operation_kind,
                terminal_state: state,
                outcome_hash: outcome.hash().ok()?,
                policy_hash: "policy".to_owned(),
                metadata: Some(outcome.metadata()),
                kernel_key: signer.public_key().clone(),
                algorithm: None,
                signature: Signature::blank(),
            };
            receipt.signed(&signer).ok()
        },
    )
}
