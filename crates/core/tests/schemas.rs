//! What Rust writes, against the published schemas: all of it is accepted, and nothing that is
//! broken is.
#![cfg(test)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use chio_core::canonical;
use chio_core::capability::{
    AggregateBudgetMarker, AggregateInvocationBudget, AggregateScope, ApprovalThreshold,
    Attenuation, AttenuationProof, CapabilityToken, ChioScope, Constraint, ContentReviewTier,
    CumulativeThreshold, DelegationLink, DpopProof, DpopTarget, GrantKind, GrantRelation,
    ModelRequirement, Operation, OperationClass, PromptGrant, ResourceGrant, RootBinding,
    RootBindingBody, SubsetWitness, ToolGrant, Validity,
};
use chio_core::checkpoint::{Batch, CHECKPOINT_SCHEMA_V1, CheckpointBody, KernelCheckpoint};
use chio_core::crypto::{Algorithm, PublicKey, Signature};
use chio_core::governance::{
    ApprovalDecision, ApprovalToken, Autonomy, CallChainContext, Commerce, ExecutionNonce,
    GovernedTransactionIntent, MeteredBilling, MeteredQuote, NonceBinding, NonceBody,
    RuntimeAttestation, SettlementMode,
};
use chio_core::hash::Hash;
use chio_core::merkle::{Frontier, InclusionProof, leaf_hash, root};
use chio_core::message::{
    AgentMessage, KernelMessage, SupplementalAuthorization, ToolCallError, ToolCallRequest,
    ToolCallResponse, ToolCallResult,
};
use chio_core::money::MonetaryAmount;
use chio_core::receipt::{
    Actor, BoundaryClass, ChildOutcome, ChildReceipt, ChioReceipt, Decision, GuardEvidence,
    NO_OUTPUT_HASH, ObservationOutcome, OperationKind, ReceiptKind, RedactionMode, TerminalState,
    ToolCallAction, ToolOrigin, TrustLevel,
};
use chio_core::registry::ErrorCode;
use chio_core::signed::Signed;
use chio_core::tier::{AutonomyTier, RuntimeAssurance, SafetyTier};
use chio_testkit::{golden, key};
use jsonschema::{Registry, Validator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

const START: u64 = 1_700_000_000;
const END: u64 = START + 3600;

// The schemas.

fn schema_root() -> PathBuf {
    golden::root().join("spec/schemas/chio-wire/v1")
}

fn load(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Every schema by its folder and name, such as `agent/heartbeat`.
static SCHEMAS: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    let mut found = BTreeMap::new();
    for folder in fs::read_dir(schema_root()).unwrap().map(|entry| entry.unwrap().path()) {
        for file in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = file.file_name().unwrap().to_str().unwrap();
            let name = name.strip_suffix(".schema.json").expect("only schemas are here");
            let folder = folder.file_name().unwrap().to_str().unwrap();
            found.insert(format!("{folder}/{name}"), load(&file));
        }
    }
    found
});

static REGISTRY: LazyLock<Registry<'static>> = LazyLock::new(|| {
    let mut registry = Registry::new();
    for schema in SCHEMAS.values() {
        registry = registry.add(schema["$id"].as_str().unwrap(), schema.clone()).unwrap();
    }
    registry.prepare().unwrap()
});

static VALIDATORS: LazyLock<BTreeMap<String, Validator>> = LazyLock::new(|| {
    let build = |schema: &Value| {
        jsonschema::options().with_registry(&REGISTRY).offline().build(schema).unwrap()
    };
    SCHEMAS.iter().map(|(name, schema)| (name.clone(), build(schema))).collect()
});

fn accepts(schema: &str, value: &Value) -> bool {
    VALIDATORS[schema].is_valid(value)
}

// What Rust writes.

/// One value, as Rust wrote it.
struct Case {
    /// The schema it is to fit.
    schema: String,
    value: Value,
    /// Whether Rust reads a value of the same type.
    reads: fn(&Value) -> bool,
}

fn reads<T: DeserializeOwned>(value: &Value) -> bool {
    chio_core::strict::from_slice::<T>(value.to_string().as_bytes()).is_ok()
}

/// Writes an item as it goes to the wire; it must read back as itself.
#[track_caller]
fn case<T>(schema: &str, item: &T) -> Case
where
    T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let bytes = canonical::to_vec(item).unwrap();
    assert_eq!(&chio_core::strict::from_slice::<T>(&bytes).unwrap(), item);
    let value = serde_json::from_slice(&bytes).unwrap();
    Case { schema: schema.to_owned(), value, reads: reads::<T> }
}

/// A full item, and the same with optional members absent: each alone, all but each, all.
#[track_caller]
fn with_and_without<T>(schema: &str, full: &T, optional: &[&str]) -> Vec<Case>
where
    T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let value = serde_json::to_value(full).unwrap();
    let without = |absent: &dyn Fn(&str) -> bool| {
        let mut value = value.clone();
        for pointer in optional.iter().copied().filter(|pointer| absent(pointer)) {
            remove(&mut value, pointer);
        }
        let item: T = serde_json::from_value(value.clone()).unwrap();
        let case = case(schema, &item);
        assert_eq!(case.value, value, "absent members are not written");
        case
    };
    let mut cases = vec![without(&|_| false), without(&|_| true)];
    for one in optional {
        assert!(value.pointer(one).is_some(), "{schema} has {one}");
        cases.push(without(&|pointer| pointer == *one));
        cases.push(without(&|pointer| !one.starts_with(pointer)));
    }
    cases
}

fn remove(value: &mut Value, pointer: &str) {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    if let Some(Value::Object(members)) = value.pointer_mut(parent) {
        members.remove(name);
    }
}

fn public(seed: u8) -> PublicKey {
    key(seed).public_key().clone()
}

fn text(text: &str) -> String {
    text.to_owned()
}

fn hash(n: u8) -> String {
    format!("{n:02x}").repeat(32)
}

fn usd(units: u64) -> MonetaryAmount {
    MonetaryAmount::new(units, "USD")
}

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn constraints() -> Vec<Constraint> {
    let texts = || vec![text("a"), text("b")];
    let requirement = |allowed_model_ids, min_safety_tier| {
        Constraint::ModelConstraint(ModelRequirement { allowed_model_ids, min_safety_tier })
    };
    let cumulative = |cumulative_approval_root_binding| {
        Constraint::RequireCumulativeApprovalAbove(CumulativeThreshold {
            threshold: usd(u64::MAX),
            approval_budget_id: text("budget"),
            approval_budget_epoch: 0,
            cumulative_approval_root_binding,
        })
    };
    let binding = json!({"body": {"any": 1}, "algorithm": "p256", "signature": "0".repeat(128)});
    let mut all = vec![
        Constraint::PathPrefix(text("/a")),
        Constraint::DomainExact(text("a.example")),
        Constraint::DomainGlob(text("*.example")),
        Constraint::RegexMatch(text("^a$")),
        Constraint::MaxLength(u64::MAX),
        Constraint::MaxArgsSize(0),
        Constraint::GovernedIntentRequired,
        Constraint::RequireApprovalAbove(ApprovalThreshold { threshold_units: u64::MAX }),
        cumulative(None),
        cumulative(Some(object(&binding))),
        Constraint::SellerExact(text("seller")),
        Constraint::Custom(text("name"), String::new()),
        Constraint::TableAllowlist(texts()),
        Constraint::TableAllowlist(Vec::new()),
        Constraint::ColumnDenylist(texts()),
        Constraint::MaxRowsReturned(u64::MAX),
        Constraint::AudienceAllowlist(texts()),
        Constraint::MaxTransactionAmountUsd(text("100.50")),
        Constraint::MaxTransactionAmountUsd(text("0")),
        Constraint::RequireDualApproval(true),
        Constraint::RequireDualApproval(false),
        Constraint::MemoryStoreAllowlist(texts()),
        Constraint::MemoryWriteDenyPatterns(texts()),
        requirement(texts(), None),
    ];
    use SafetyTier::{High, Low, Restricted, Standard};
    all.extend([Low, Standard, High, Restricted].map(|tier| requirement(Vec::new(), Some(tier))));
    use RuntimeAssurance as Assurance;
    all.extend(
        [Assurance::None, Assurance::Basic, Assurance::Attested, Assurance::Verified]
            .map(Constraint::MinimumRuntimeAssurance),
    );
    all.extend(
        [AutonomyTier::Direct, AutonomyTier::Delegated, AutonomyTier::Autonomous]
            .map(Constraint::MinimumAutonomyTier),
    );
    all.extend(
        [OperationClass::ReadOnly, OperationClass::ReadWrite, OperationClass::Admin]
            .map(Constraint::OperationClass),
    );
    all.extend(
        [ContentReviewTier::None, ContentReviewTier::Basic, ContentReviewTier::Strict]
            .map(Constraint::ContentReviewTier),
    );
    all
}

fn attenuations() -> Vec<Attenuation> {
    let (server_id, tool_name) = (text("srv"), text("read"));
    let mut steps = vec![
        Attenuation::RemoveTool { server_id: server_id.clone(), tool_name: tool_name.clone() },
        Attenuation::RemoveOperation {
            server_id: server_id.clone(),
            tool_name: tool_name.clone(),
            operation: Operation::Delegate,
        },
        Attenuation::ReduceBudget {
            server_id: server_id.clone(),
            tool_name: tool_name.clone(),
            max_invocations: u32::MAX,
        },
        Attenuation::ReduceCostPerInvocation {
            server_id: server_id.clone(),
            tool_name: tool_name.clone(),
            max_cost_per_invocation: usd(1),
        },
        Attenuation::ReduceTotalCost {
            server_id: server_id.clone(),
            tool_name: tool_name.clone(),
            max_total_cost: usd(1),
        },
        Attenuation::ShortenExpiry { new_expires_at: u64::MAX },
    ];
    steps.extend(constraints().into_iter().map(|constraint| Attenuation::AddConstraint {
        server_id: server_id.clone(),
        tool_name: tool_name.clone(),
        constraint,
    }));
    steps
}

const OPERATIONS: [Operation; 6] = [
    Operation::Invoke,
    Operation::ReadResult,
    Operation::Read,
    Operation::Subscribe,
    Operation::Get,
    Operation::Delegate,
];

fn scope() -> ChioScope {
    ChioScope {
        grants: vec![ToolGrant {
            server_id: text("srv"),
            tool_name: text("*"),
            operations: OPERATIONS.to_vec(),
            constraints: constraints(),
            max_invocations: Some(u32::MAX),
            max_cost_per_invocation: Some(usd(1)),
            max_total_cost: Some(usd(u64::MAX)),
            dpop_required: Some(false),
        }],
        resource_grants: vec![ResourceGrant {
            uri_pattern: text("file:*"),
            operations: vec![Operation::Read],
        }],
        prompt_grants: vec![PromptGrant { prompt_name: text("*"), operations: Vec::new() }],
    }
}

fn link() -> DelegationLink {
    DelegationLink {
        capability_id: text("cap-0"),
        delegator: public(2),
        delegatee: public(3),
        attenuations: attenuations(),
        timestamp: START,
        scope_hash: Some(hash(1)),
        aggregate_budget: Some(AggregateBudgetMarker {
            root_binding_digest: hash(2),
            max_invocations: 3,
        }),
        cumulative_approval: Some(object(&json!({"any": 1}))),
        signature: Signature::blank(),
    }
    .signed(&key(2))
    .unwrap()
}

fn family_budget() -> AggregateInvocationBudget {
    AggregateInvocationBudget {
        scope: AggregateScope::DelegationFamily,
        max_invocations: 3,
        root_binding: Some(RootBinding {
            body: RootBindingBody {
                schema: text("chio.aggregate-budget-root.v1"),
                root_capability_id: text("cap-0"),
                root_capability_hash: hash(3),
                root_issuer: public(1),
                root_subject: public(2),
                max_invocations: 3,
                root_expires_at: END,
                root_scope_hash: hash(4),
            },
            algorithm: Some(Algorithm::P384),
            signature: Signature::blank(),
        }),
    }
}

fn attenuation_proof() -> AttenuationProof {
    let kinds = [GrantKind::Tool, GrantKind::Resource, GrantKind::Prompt];
    let relation =
        |grant_kind| GrantRelation { grant_kind, child_index: 0, parent_index: 0, subset: true };
    AttenuationProof {
        parent_scope_hash: hash(5),
        child_scope_hash: hash(6),
        normalized_subset_proof: SubsetWitness {
            normalized_parent_scope: text("{}"),
            normalized_child_scope: text("{}"),
            subset_relations: kinds.map(relation).to_vec(),
            restricted_predicates: vec![text("tool:srv:read:constraint:MaxLength(128)")],
            aggregate_budget: Some(object(&json!({}))),
            cumulative_approval: Some(object(&json!({}))),
        },
    }
}

fn plain_token() -> CapabilityToken {
    let validity = Validity { issued_at: START, expires_at: END };
    CapabilityToken::draft("cap-1", public(1), public(2), ChioScope::default(), validity)
        .signed(&key(1))
        .unwrap()
}

fn full_token() -> CapabilityToken {
    CapabilityToken {
        scope: scope(),
        delegation_chain: vec![link(), link()],
        aggregate_invocation_budget: Some(family_budget()),
        algorithm: Some(Algorithm::P256),
        caveats: vec![json!({"any": 1})],
        scope_attenuations: Some(attenuations()),
        attenuation_proof: Some(attenuation_proof()),
        budget_share_bps: Some(10_000),
        ..plain_token()
    }
}

/// Keys and signatures of every algorithm, as Rust prints them.
fn other_algorithms() -> Vec<(Algorithm, PublicKey, Signature)> {
    let hex = |bytes: usize| "5a".repeat(bytes);
    let (p256, p384) = (format!("p256:04{}", hex(64)), format!("p384:04{}", hex(96)));
    let (p256s, p384s) = (format!("p256:30{}", hex(71)), format!("p384:30{}", hex(7)));
    let hybrid = |classical: &str, size: usize, set: &str| {
        format!("hybrid:{classical}:{}:{set}+mldsa65", hex(size))
    };
    [
        (Algorithm::P256, p256.clone(), p256s.clone()),
        (Algorithm::P384, p384.clone(), p384s.clone()),
        (Algorithm::Hybrid, hybrid(&hex(32), 1952, "ed25519"), hybrid(&hex(64), 3309, "ed25519")),
        (Algorithm::Hybrid, hybrid(&p256, 1952, "p256"), hybrid(&p256s, 3309, "p256")),
        (Algorithm::Hybrid, hybrid(&p384, 1952, "p384"), hybrid(&p384s, 3309, "p384")),
    ]
    .map(|(algorithm, key, signature)| {
        let key = PublicKey::from_hex(&key).unwrap();
        (algorithm, key, Signature::from_hex(&signature).unwrap())
    })
    .to_vec()
}

fn capability_cases() -> Vec<Case> {
    let mut cases = with_and_without(
        "capability/token",
        &full_token(),
        &[
            "/delegation_chain",
            "/aggregate_invocation_budget",
            "/aggregate_invocation_budget/root_binding/algorithm",
            "/algorithm",
            "/caveats",
            "/scope_attenuations",
            "/attenuation_proof",
            "/attenuation_proof/normalizedSubsetProof/subsetRelations",
            "/attenuation_proof/normalizedSubsetProof/restrictedPredicates",
            "/attenuation_proof/normalizedSubsetProof/aggregateBudget",
            "/attenuation_proof/normalizedSubsetProof/cumulativeApproval",
            "/budget_share_bps",
        ],
    );
    cases.push(case("capability/token", &plain_token()));
    let own_budget = AggregateInvocationBudget {
        scope: AggregateScope::Capability,
        max_invocations: u32::MAX,
        root_binding: None,
    };
    let budgeted =
        CapabilityToken { aggregate_invocation_budget: Some(own_budget), ..plain_token() };
    cases.push(case("capability/token", &budgeted));
    for (algorithm, key, signature) in other_algorithms() {
        let token = CapabilityToken {
            issuer: key.clone(),
            subject: key,
            signature,
            algorithm: Some(algorithm),
            ..plain_token()
        };
        cases.push(case("capability/token", &token));
    }
    cases.extend(with_and_without(
        "capability/scope",
        &scope(),
        &[
            "/grants",
            "/grants/0/constraints",
            "/grants/0/max_invocations",
            "/grants/0/max_cost_per_invocation",
            "/grants/0/max_total_cost",
            "/grants/0/dpop_required",
            "/resource_grants",
            "/prompt_grants",
        ],
    ));
    cases.extend(constraints().iter().map(|one| case("capability/constraint", one)));
    let optional = ["/attenuations", "/scope_hash", "/aggregate_budget", "/cumulative_approval"];
    cases.extend(with_and_without("capability/delegation_link", &link(), &optional));
    for step in attenuations() {
        let link = DelegationLink { attenuations: vec![step], ..link() };
        cases.push(case("capability/delegation_link", &link));
    }
    cases
}

fn dpop_proof() -> DpopProof {
    let (token, arguments) = (plain_token(), json!({"path": "/a"}));
    let target =
        DpopTarget { token: &token, tool_server: "srv", tool_name: "read", arguments: &arguments };
    DpopProof::new(&target, "nonce", START, &key(2)).unwrap()
}

fn approval(decision: ApprovalDecision) -> ApprovalToken {
    ApprovalToken {
        id: text("approval-1"),
        approver: public(4),
        subject: public(2),
        governed_intent_hash: hash(7),
        request_id: text("req-1"),
        threshold_proposal_hash: Some(hash(8)),
        issued_at: START,
        expires_at: END,
        decision,
        algorithm: Some(Algorithm::Hybrid),
        signature: Signature::blank(),
    }
}

fn nonce() -> ExecutionNonce {
    let nonce = NonceBody {
        schema: text(ExecutionNonce::SCHEMA),
        nonce_id: text("nonce-1"),
        issued_at: i64::MIN,
        expires_at: i64::MAX,
        bound_to: NonceBinding {
            subject_id: public(2).to_hex(),
            request_id: text("req-1"),
            capability_id: text("cap-1"),
            tool_server: text("srv"),
            tool_name: text("read"),
            parameter_hash: hash(9),
        },
        reserved_hold_id: Some(text("hold-1")),
        reserving_request_id: Some(text("req-0")),
    };
    ExecutionNonce::sign(nonce, &key(7)).unwrap()
}

fn intent(settlement_mode: SettlementMode) -> GovernedTransactionIntent {
    GovernedTransactionIntent {
        max_amount: Some(usd(1)),
        commerce: Some(Commerce {
            seller: text("seller"),
            shared_payment_token_id: text("payment-1"),
            settlement_destination_ref: Some(text("account")),
        }),
        metered_billing: Some(MeteredBilling {
            settlement_mode,
            quote: MeteredQuote {
                quote_id: text("quote-1"),
                provider: text("provider"),
                billing_unit: text("page"),
                quoted_units: 3,
                quoted_cost: usd(3),
                issued_at: START,
                expires_at: Some(END),
            },
            max_billed_units: Some(u64::MAX),
            verified_outcome: Some(json!({"any": 1})),
        }),
        runtime_attestation: Some(RuntimeAttestation {
            schema: text("evidence.v1"),
            verifier: text("verifier"),
            tier: RuntimeAssurance::Attested,
            issued_at: START,
            expires_at: END,
            evidence_sha256: hash(1),
            runtime_identity: Some(text("runtime")),
            workload_identity: Some(json!({"any": 1})),
            claims: Some(json!([1, "two", null])),
        }),
        call_chain: Some(CallChainContext {
            chain_id: text("chain-1"),
            parent_request_id: text("req-0"),
            parent_receipt_id: Some(hash(2)),
            origin_subject: public(2).to_hex(),
            delegator_subject: public(3).to_hex(),
        }),
        autonomy: Some(Autonomy {
            tier: AutonomyTier::Autonomous,
            delegation_bond_id: Some(text("bond-1")),
        }),
        context: Some(json!({"chioControlPlane": {"allowNativeFallback": true}})),
        body: Some(json!({"kind": "active_response_plan", "value": {"any": 1}})),
        ..GovernedTransactionIntent::new("intent-1", "srv", "read", "why")
    }
}

fn governance_cases() -> Vec<Case> {
    let mut cases = vec![case("capability/dpop_proof", &dpop_proof())];
    for decision in [ApprovalDecision::Approved, ApprovalDecision::Denied] {
        let optional = ["/threshold_proposal_hash", "/algorithm"];
        let approval = approval(decision);
        cases.extend(with_and_without("capability/approval_token", &approval, &optional));
    }
    let optional = ["/nonce/reserved_hold_id", "/nonce/reserving_request_id"];
    cases.extend(with_and_without("capability/execution_nonce", &nonce(), &optional));
    let modes =
        [SettlementMode::MustPrepay, SettlementMode::HoldCapture, SettlementMode::AllowThenSettle];
    for mode in modes {
        cases.extend(with_and_without(
            "capability/governed_intent",
            &intent(mode),
            &[
                "/max_amount",
                "/commerce",
                "/commerce/settlement_destination_ref",
                "/metered_billing",
                "/metered_billing/quote/expiresAt",
                "/metered_billing/maxBilledUnits",
                "/metered_billing/verifiedOutcome",
                "/runtime_attestation",
                "/runtime_attestation/runtime_identity",
                "/runtime_attestation/workload_identity",
                "/runtime_attestation/claims",
                "/call_chain",
                "/call_chain/parentReceiptId",
                "/autonomy",
                "/autonomy/delegationBondId",
                "/context",
                "/body",
            ],
        ));
    }
    cases
}

fn receipt(decision: Option<Decision>) -> ChioReceipt {
    let action = ToolCallAction::new(json!({"path": "/a"})).unwrap();
    let mut receipt =
        ChioReceipt::mediated(START, action, Decision::Allow, NO_OUTPUT_HASH.to_owned(), public(7));
    receipt.decision = decision;
    receipt.id = text("rcpt-1");
    receipt.actor_chain = vec![Actor { actor_id: text("a"), actor_kind: Some(text("agent")) }];
    receipt.evidence =
        vec![GuardEvidence { guard_name: text("g"), verdict: true, details: Some(text("d")) }];
    receipt.metadata = Some(json!({"receipt_context": {"request_id": "req-1"}}));
    receipt.tenant_id = Some(text("tenant"));
    receipt.bbs_projection_version = Some(text("1"));
    receipt.bbs_signature = Some(object(&json!({"any": 1})));
    receipt
}

fn signed(receipt: ChioReceipt) -> ChioReceipt {
    receipt.signed(&key(7)).unwrap()
}

fn decisions() -> [Decision; 4] {
    [
        Decision::Allow,
        Decision::Deny { reason: text("why"), guard: text("kernel") },
        Decision::Cancelled { reason: text("why") },
        Decision::Incomplete { reason: text("why") },
    ]
}

fn observations() -> Vec<ChioReceipt> {
    let rows = [
        (ReceiptKind::TraceObservation, BoundaryClass::DetectOnly, TrustLevel::Verified),
        (ReceiptKind::AdvisoryEvaluation, BoundaryClass::AdvisoryOnly, TrustLevel::Advisory),
    ];
    let outcomes =
        [ObservationOutcome::Observed, ObservationOutcome::Evaluated, ObservationOutcome::Dropped];
    let mut found = Vec::new();
    for (receipt_kind, boundary_class, trust_level) in rows {
        for outcome in outcomes {
            found.push(signed(ChioReceipt {
                receipt_kind,
                boundary_class,
                trust_level,
                observation_outcome: Some(outcome),
                ..receipt(None)
            }));
        }
    }
    found
}

fn receipt_cases() -> Vec<Case> {
    let optional = [
        "/actor_chain",
        "/actor_chain/0/actor_kind",
        "/evidence",
        "/evidence/0/details",
        "/metadata",
        "/tenant_id",
        "/bbs_projection_version",
        "/bbs_signature",
        "/algorithm",
    ];
    let mut cases = Vec::new();
    for decision in decisions() {
        let mut receipt = signed(receipt(Some(decision)));
        receipt.algorithm = Some(Algorithm::P256);
        cases.extend(with_and_without("receipt/receipt", &receipt, &optional));
    }
    cases.extend(observations().iter().map(|receipt| case("receipt/receipt", receipt)));
    let origins = [
        ToolOrigin::CallerExecuted,
        ToolOrigin::HostExecutedProviderReported,
        ToolOrigin::HostExecutedUnmediated,
    ];
    for tool_origin in origins {
        for redaction_mode in [RedactionMode::None, RedactionMode::Summary, RedactionMode::Redacted]
        {
            let receipt = receipt(Some(Decision::Allow));
            let receipt = signed(ChioReceipt { tool_origin, redaction_mode, ..receipt });
            cases.push(case("receipt/receipt", &receipt));
        }
    }
    cases.extend(child_cases());
    cases
}

const OPERATION_KINDS: [OperationKind; 12] = [
    OperationKind::ToolCall,
    OperationKind::CreateMessage,
    OperationKind::CreateElicitation,
    OperationKind::ListRoots,
    OperationKind::ListResources,
    OperationKind::ReadResource,
    OperationKind::ListResourceTemplates,
    OperationKind::ListPrompts,
    OperationKind::GetPrompt,
    OperationKind::Complete,
    OperationKind::ListCapabilities,
    OperationKind::Heartbeat,
];

fn child_cases() -> Vec<Case> {
    let reason = || text("why");
    let states = [
        TerminalState::Completed,
        TerminalState::Cancelled { reason: reason() },
        TerminalState::Incomplete { reason: reason() },
    ];
    let mut cases = Vec::new();
    for operation_kind in OPERATION_KINDS {
        for state in &states {
            let outcome = ChildOutcome::Error(reason());
            let child = ChildReceipt {
                id: text("child-rcpt-1"),
                timestamp: START,
                session_id: text("sess-1"),
                parent_request_id: text("req-1"),
                request_id: text("req-1.1"),
                operation_kind,
                terminal_state: state.clone(),
                outcome_hash: outcome.hash().unwrap(),
                policy_hash: text("policy"),
                metadata: Some(outcome.metadata()),
                kernel_key: public(7),
                algorithm: Some(Algorithm::P384),
                signature: Signature::blank(),
            };
            let optional = ["/metadata", "/algorithm"];
            cases.extend(with_and_without("receipt/child_receipt", &child, &optional));
        }
    }
    cases
}

fn log_cases() -> Vec<Case> {
    let leaves: Vec<Hash> = (0..9_u8).map(|n| leaf_hash(&[n])).collect();
    let mut cases = Vec::new();
    for size in 1..=leaves.len() {
        for index in 0..size {
            let proof = InclusionProof::build(&leaves[..size], index).unwrap();
            cases.push(case("receipt/inclusion_proof", &proof));
        }
    }
    let mut chain = Frontier::default();
    let mut issued: Vec<KernelCheckpoint> = Vec::new();
    for (start_seq, end_seq) in [(1, 4), (5, 5), (6, 9)] {
        let merkle_root = root(&leaves[..usize::try_from(end_seq - start_seq + 1).unwrap()]);
        let batch = Batch { start_seq, end_seq, merkle_root: merkle_root.unwrap() };
        let next = KernelCheckpoint::issue(issued.last(), &mut chain, batch, START, &key(7));
        issued.push(next.unwrap());
    }
    for checkpoint in &issued {
        cases.push(case("receipt/checkpoint", checkpoint));
        let body = CheckpointBody {
            schema: text(CHECKPOINT_SCHEMA_V1),
            chain_root: None,
            ..checkpoint.body.clone()
        };
        let old = KernelCheckpoint { body, signature: Signature::blank() };
        cases.push(case("receipt/checkpoint", &old.signed(&key(7)).unwrap()));
    }
    cases
}

fn request() -> ToolCallRequest {
    ToolCallRequest {
        id: text("req-1"),
        capability_token: plain_token(),
        server_id: text("srv"),
        tool: text("read"),
        params: json!({"path": "/a"}),
        governed_intent: Some(intent(SettlementMode::MustPrepay)),
        approval_token: Some(approval(ApprovalDecision::Approved)),
        approval_tokens: vec![approval(ApprovalDecision::Denied)],
        threshold_approval_proposal: Some(object(&json!({"any": 1}))),
        supplemental_authorization: Some(SupplementalAuthorization {
            signed_extension: json!([1, "any"]),
        }),
        execution_nonce: Some(nonce()),
        dpop_proof: Some(dpop_proof()),
    }
}

/// The schema of each message. Without a wildcard, so that a new one is not forgotten.
const fn agent_schema(message: &AgentMessage) -> &'static str {
    match message {
        AgentMessage::ToolCallRequest(_) => "agent/tool_call_request",
        AgentMessage::ListCapabilities => "agent/list_capabilities",
        AgentMessage::Heartbeat => "agent/heartbeat",
    }
}

const fn kernel_schema(message: &KernelMessage) -> &'static str {
    match message {
        KernelMessage::ToolCallChunk { .. } => "kernel/tool_call_chunk",
        KernelMessage::ToolCallResponse(_) => "kernel/tool_call_response",
        KernelMessage::CapabilityList { .. } => "kernel/capability_list",
        KernelMessage::CapabilityRevoked { .. } => "kernel/capability_revoked",
        KernelMessage::Heartbeat => "kernel/heartbeat",
    }
}

const fn result_schema(result: &ToolCallResult) -> &'static str {
    match result {
        ToolCallResult::Ok { .. } => "result/ok",
        ToolCallResult::StreamComplete { .. } => "result/stream_complete",
        ToolCallResult::Cancelled { .. } => "result/cancelled",
        ToolCallResult::Incomplete { .. } => "result/incomplete",
        ToolCallResult::Err { .. } => "result/err",
    }
}

const fn error_schema(error: &ToolCallError) -> &'static str {
    match error {
        ToolCallError::CapabilityDenied(_) => "error/capability_denied",
        ToolCallError::CapabilityExpired => "error/capability_expired",
        ToolCallError::CapabilityRevoked => "error/capability_revoked",
        ToolCallError::PolicyDenied { .. } => "error/policy_denied",
        ToolCallError::ToolServerError(_) => "error/tool_server_error",
        ToolCallError::InternalError(_) => "error/internal_error",
    }
}

fn errors() -> [ToolCallError; 6] {
    [
        ToolCallError::CapabilityDenied(text("why")),
        ToolCallError::CapabilityExpired,
        ToolCallError::CapabilityRevoked,
        ToolCallError::PolicyDenied { guard: text("g"), reason: text("why") },
        ToolCallError::ToolServerError(String::new()),
        ToolCallError::InternalError(text("why")),
    ]
}

fn free_form() -> [Value; 7] {
    [json!(null), json!(true), json!(-1.5), json!("x"), json!([]), json!({}), json!({"type": 1})]
}

fn results() -> Vec<ToolCallResult> {
    let mut results = vec![
        ToolCallResult::StreamComplete { total_chunks: u64::MAX },
        ToolCallResult::Cancelled { reason: text("why"), chunks_received: 0 },
        ToolCallResult::Incomplete { reason: String::new(), chunks_received: u64::MAX },
    ];
    results.extend(free_form().map(|value| ToolCallResult::Ok { value }));
    results.extend(errors().map(|error| ToolCallResult::Err { error }));
    results
}

fn agent_cases() -> Vec<Case> {
    let full = AgentMessage::ToolCallRequest(Box::new(request()));
    let mut cases = with_and_without(
        agent_schema(&full),
        &full,
        &[
            "/governed_intent",
            "/approval_token",
            "/approval_tokens",
            "/threshold_approval_proposal",
            "/supplemental_authorization",
            "/execution_nonce",
            "/dpop_proof",
        ],
    );
    let mut messages = vec![AgentMessage::ListCapabilities, AgentMessage::Heartbeat];
    messages.extend(free_form().map(|params| {
        AgentMessage::ToolCallRequest(Box::new(ToolCallRequest { params, ..request() }))
    }));
    let many = vec![approval(ApprovalDecision::Approved); 32];
    messages.push(AgentMessage::ToolCallRequest(Box::new(ToolCallRequest {
        capability_token: full_token(),
        approval_tokens: many,
        ..request()
    })));
    cases.extend(messages.iter().map(|message| case(agent_schema(message), message)));
    cases
}

fn kernel_cases() -> Vec<Case> {
    let mut messages = vec![
        KernelMessage::CapabilityList { capabilities: Vec::new() },
        KernelMessage::CapabilityList { capabilities: vec![plain_token(), full_token()] },
        KernelMessage::CapabilityRevoked { id: text("cap-1") },
        KernelMessage::Heartbeat,
    ];
    for (index, data) in (0..).zip(free_form()) {
        let (id, chunk_index) = (text("req-1"), u64::MAX - index);
        messages.push(KernelMessage::ToolCallChunk { id, chunk_index, data });
    }
    let mut receipts: Vec<ChioReceipt> =
        decisions().map(|decision| signed(receipt(Some(decision)))).to_vec();
    receipts.extend(observations());
    for result in results() {
        for receipt in &receipts {
            for execution_nonce in [None, Some(nonce())] {
                let (id, result, receipt) = (text("req-1"), result.clone(), receipt.clone());
                let response = ToolCallResponse { id, result, receipt, execution_nonce };
                messages.push(KernelMessage::ToolCallResponse(Box::new(response)));
            }
        }
    }
    messages.iter().map(|message| case(kernel_schema(message), message)).collect()
}

/// Everything that has a schema, in every form that Rust writes.
static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| {
    let mut cases = agent_cases();
    cases.extend(kernel_cases());
    cases.extend(results().iter().map(|result| case(result_schema(result), result)));
    cases.extend(errors().iter().map(|error| case(error_schema(error), error)));
    cases.extend(capability_cases());
    cases.extend(governance_cases());
    cases.extend(receipt_cases());
    cases.extend(log_cases());
    cases
});

// The tests.

// covers: WIRE-127
#[test]
fn every_schema_is_a_schema_and_is_where_its_id_says() {
    for folder in ["agent", "kernel", "result", "error"] {
        assert!(schema_root().join(folder).is_dir(), "{folder}");
    }
    assert_eq!(SCHEMAS.len(), 31);
    for (name, schema) in SCHEMAS.iter() {
        jsonschema::meta::validate(schema).unwrap_or_else(|error| panic!("{name}: {error}"));
        let expected = format!("https://chio-protocol.dev/schemas/chio-wire/v1/{name}.schema.json");
        assert_eq!(schema["$id"], json!(expected));
        assert_eq!(schema["$schema"], json!("https://json-schema.org/draft/2020-12/schema"));
    }
}

// covers: WIRE-128, WIRE-129
#[test]
fn everything_that_rust_writes_is_accepted() {
    for Case { schema, value, .. } in CASES.iter() {
        if let Err(error) = VALIDATORS[schema].validate(value) {
            panic!("{schema}: {error} at {}\n{value}", error.instance_path());
        }
    }
}

/// The schemas that at least one case is for.
fn schemas_with_cases() -> BTreeSet<&'static str> {
    CASES.iter().map(|case| case.schema.as_str()).collect()
}

#[test]
fn no_schema_is_without_something_that_rust_writes() {
    let all: BTreeSet<&str> = SCHEMAS.keys().map(String::as_str).collect();
    assert_eq!(schemas_with_cases(), all);
}

/// The constants of a tag in the branches of a `oneOf`.
fn tags<'a>(branches: &'a Value, tag: &str) -> BTreeSet<&'a str> {
    let branches = branches.as_array().unwrap();
    branches.iter().filter_map(|branch| branch["properties"][tag]["const"].as_str()).collect()
}

fn words(list: &Value) -> BTreeSet<String> {
    list.as_array().unwrap().iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn written<T: Serialize>(all: &[T]) -> BTreeSet<String> {
    words(&serde_json::to_value(all).unwrap())
}

#[test]
fn schemas_and_rust_know_the_same_words() {
    let kinds: BTreeSet<&str> = constraints().iter().map(Constraint::kind).collect();
    assert_eq!(kinds.len(), 24);
    assert_eq!(tags(&SCHEMAS["capability/constraint"]["oneOf"], "type"), kinds);
    let kinds: BTreeSet<&str> = attenuations().iter().map(Attenuation::kind).collect();
    assert_eq!(kinds.len(), 7);
    let definitions = &SCHEMAS["capability/delegation_link"]["$defs"];
    assert_eq!(tags(&definitions["attenuation"]["oneOf"], "type"), kinds);
    let operations = &SCHEMAS["capability/scope"]["$defs"]["operation"]["enum"];
    assert_eq!(words(operations), written(&OPERATIONS));
    let properties = &SCHEMAS["receipt/child_receipt"]["properties"];
    assert_eq!(words(&properties["operation_kind"]["enum"]), written(&OPERATION_KINDS));
    let decisions = serde_json::to_value(decisions()).unwrap();
    let verdicts: BTreeSet<&str> =
        decisions.as_array().unwrap().iter().filter_map(|d| d["verdict"].as_str()).collect();
    let definitions = &SCHEMAS["receipt/receipt"]["$defs"];
    assert_eq!(tags(&definitions["decision"]["oneOf"], "verdict"), verdicts);
}

#[test]
fn a_message_fits_its_own_schema_and_no_other_of_its_family() {
    for Case { schema, value, .. } in CASES.iter() {
        let family = schema.split('/').next().unwrap();
        if !["agent", "kernel", "result", "error"].contains(&family) {
            continue;
        }
        let fitting = SCHEMAS.keys().filter(|name| name.starts_with(family));
        let fitting: Vec<&String> = fitting.filter(|name| accepts(name, value)).collect();
        assert_eq!(fitting, [schema], "{value}");
    }
}

/// Members whose content is up to the caller alone.
const FREE: [&str; 16] = [
    "params",
    "data",
    "parameters",
    "metadata",
    "context",
    "signed_extension",
    "threshold_approval_proposal",
    "cumulative_approval",
    "workload_identity",
    "claims",
    "verifiedOutcome",
    "bbs_signature",
    "caveats",
    "aggregateBudget",
    "cumulativeApproval",
    "cumulative_approval_root_binding/body",
];

/// Pointers to every object whose members are fixed.
fn closed_objects(schema: &str, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), value)];
    while let Some((pointer, value)) = open.pop() {
        let free = FREE.iter().any(|name| pointer.ends_with(&format!("/{name}")));
        let value_of_ok = schema == "result/ok" && pointer == "/value"
            || schema == "kernel/tool_call_response" && pointer == "/result/value";
        if free || value_of_ok || pointer.ends_with("/body/value") {
            continue;
        }
        match value {
            Value::Object(members) => {
                open.extend(members.iter().map(|(name, v)| (format!("{pointer}/{name}"), v)));
                found.push(pointer);
            }
            Value::Array(items) => {
                open.extend((0..).zip(items).map(|(i, v)| (format!("{pointer}/{i}"), v)));
            }
            _ => {}
        }
    }
    found
}

/// A few cases of each schema: the largest, the smallest and one in between.
fn samples() -> Vec<&'static Case> {
    let mut found = Vec::new();
    for schema in SCHEMAS.keys() {
        let mut cases: Vec<&Case> = CASES.iter().filter(|case| case.schema == *schema).collect();
        cases.sort_by_cached_key(|case| case.value.to_string().len());
        let picked: BTreeSet<usize> = [0, cases.len() / 2, cases.len() - 1].into();
        found.extend(picked.into_iter().map(|index| cases[index]));
    }
    found
}

#[test]
fn a_member_that_nobody_knows_is_refused_wherever_it_stands() {
    let mut tried = 0;
    for Case { schema, value, .. } in samples() {
        for pointer in closed_objects(schema, value) {
            let mut changed = value.clone();
            changed.pointer_mut(&pointer).unwrap()["never_heard_of"] = json!(1);
            assert!(!accepts(schema, &changed), "{schema}: at `{pointer}`");
            tried += 1;
        }
    }
    assert!(tried > 500, "{tried}");
}

/// What each family needs, by the specification.
const REQUIRED: [(&str, &[&str]); 19] = [
    ("agent/tool_call_request", &["type", "id", "capability_token", "server_id", "tool", "params"]),
    ("agent/list_capabilities", &["type"]),
    ("agent/heartbeat", &["type"]),
    ("kernel/tool_call_chunk", &["type", "id", "chunk_index", "data"]),
    ("kernel/tool_call_response", &["type", "id", "result", "receipt"]),
    ("kernel/capability_list", &["type", "capabilities"]),
    ("kernel/capability_revoked", &["type", "id"]),
    ("kernel/heartbeat", &["type"]),
    ("result/ok", &["status", "value"]),
    ("result/stream_complete", &["status", "total_chunks"]),
    ("result/cancelled", &["status", "reason", "chunks_received"]),
    ("result/incomplete", &["status", "reason", "chunks_received"]),
    ("result/err", &["status", "error"]),
    ("error/capability_denied", &["code", "detail"]),
    ("error/capability_expired", &["code"]),
    ("error/capability_revoked", &["code"]),
    ("error/policy_denied", &["code", "detail"]),
    ("error/tool_server_error", &["code", "detail"]),
    ("error/internal_error", &["code", "detail"]),
];

// covers: WIRE-021, WIRE-029, WIRE-034..WIRE-038
#[test]
fn a_message_without_a_required_member_is_refused_by_schema_and_by_rust() {
    for (schema, required) in REQUIRED {
        let of_schema: BTreeSet<&str> = SCHEMAS[schema]["required"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        assert_eq!(of_schema, required.iter().copied().collect(), "{schema}");
        for case in samples().into_iter().filter(|case| case.schema == schema) {
            for name in required {
                let mut changed = case.value.clone();
                changed.as_object_mut().unwrap().remove(*name).unwrap();
                assert!(!accepts(schema, &changed), "{schema} without {name}");
                assert!(!(case.reads)(&changed), "{schema} without {name}");
            }
        }
    }
}

/// Members that Rust fills in, or whose absence it notices only when it verifies.
const FORGIVEN: [&str; 10] = [
    // Defaults on input.
    "/value/allowed_model_ids",
    "/value/min_safety_tier",
    // Coherence, which is checked with the signature.
    "/decision",
    "/observation_outcome",
    "/body/chain_root",
    "/aggregate_invocation_budget/root_binding",
    // Carried as it came, since nothing here enforces it.
    "/cumulative_approval_root_binding/body",
    "/cumulative_approval_root_binding/signature",
    "/body/kind",
    "/body/value",
];

#[test]
fn whatever_a_schema_accepts_without_a_member_rust_reads_and_the_other_way_round() {
    let mut tried = 0;
    let mut forgiven = BTreeSet::new();
    // The large ones repeat each other.
    let small = CASES.iter().filter(|case| case.value.to_string().len() < 3000);
    for Case { schema, value, reads } in small.chain(samples()) {
        for pointer in closed_objects(schema, value) {
            for name in value.pointer(&pointer).unwrap().as_object().unwrap().keys() {
                let mut changed = value.clone();
                let member = format!("{pointer}/{name}");
                remove(&mut changed, &member);
                let (by_schema, by_rust) = (accepts(schema, &changed), reads(&changed));
                tried += 1;
                if by_schema == by_rust {
                    continue;
                }
                assert!(by_rust, "{schema} without {member} is accepted but not read");
                let end = FORGIVEN.iter().find(|end| member.ends_with(**end));
                let end = end.unwrap_or_else(|| panic!("{schema} without {member} is read"));
                forgiven.insert(*end);
            }
        }
    }
    assert!(tried > 5000, "{tried}");
    assert_eq!(forgiven, FORGIVEN.into(), "nothing is forgiven that need not be");
}

#[test]
fn another_tag_is_refused() {
    let tags = ["type", "status", "code", "verdict", "state", "schema"];
    let mut tried = 0;
    for Case { schema, value, .. } in samples() {
        for pointer in closed_objects(schema, value) {
            for tag in tags {
                // The schema of an attestation is its verifier's.
                if pointer.ends_with("/runtime_attestation") {
                    continue;
                }
                if value.pointer(&format!("{pointer}/{tag}")).is_none() {
                    continue;
                }
                for other in [json!("other"), json!("Heartbeat"), json!(1), json!(null)] {
                    let mut changed = value.clone();
                    changed.pointer_mut(&pointer).unwrap()[tag] = other.clone();
                    assert!(!accepts(schema, &changed), "{schema}: {other} as {pointer}/{tag}");
                }
                tried += 1;
            }
        }
    }
    assert!(tried > 200, "{tried}");
}

#[test]
fn members_of_another_kind_are_refused() {
    let texts = ["", "x", "0x", "0"];
    for Case { schema, value, .. } in samples() {
        for pointer in closed_objects(schema, value) {
            for (name, member) in value.pointer(&pointer).unwrap().as_object().unwrap() {
                let free = FREE.iter().any(|free| free == name) || *name == "value";
                if free || name == "currency" {
                    continue;
                }
                let mut changed = value.clone();
                let wrong = match member {
                    Value::String(_) | Value::Array(_) => json!({"x": 1}),
                    Value::Number(_) | Value::Bool(_) => json!(texts),
                    Value::Object(_) | Value::Null => json!("x"),
                };
                changed.pointer_mut(&pointer).unwrap()[name] = wrong;
                assert!(!accepts(schema, &changed), "{schema}: {pointer}/{name}");
            }
        }
    }
}

#[test]
fn keys_hashes_and_numbers_have_one_spelling_on_the_wire() {
    let receipt = serde_json::to_value(signed(receipt(Some(Decision::Allow)))).unwrap();
    let token = serde_json::to_value(plain_token()).unwrap();
    let proof = InclusionProof::build(&[leaf_hash(b"a"), leaf_hash(b"b")], 0).unwrap();
    let proof = serde_json::to_value(proof).unwrap();
    let upper = |value: &Value| json!(value.as_str().unwrap().to_uppercase());
    let prefixed = |value: &Value| json!(format!("0x{}", value.as_str().unwrap()));
    for (schema, value, pointer) in [
        ("receipt/receipt", &receipt, "/id"),
        ("receipt/receipt", &receipt, "/kernel_key"),
        ("receipt/receipt", &receipt, "/signature"),
        ("receipt/receipt", &receipt, "/content_hash"),
        ("receipt/receipt", &receipt, "/action/parameter_hash"),
        ("capability/token", &token, "/issuer"),
        ("capability/token", &token, "/subject"),
        ("capability/token", &token, "/signature"),
        ("receipt/inclusion_proof", &proof, "/audit_path/0"),
    ] {
        assert!(accepts(schema, value));
        let member = value.pointer(pointer).unwrap();
        for other in [upper(member), prefixed(member), json!(""), json!(1)] {
            let mut changed = value.clone();
            *changed.pointer_mut(pointer).unwrap() = other.clone();
            assert!(!accepts(schema, &changed), "{schema}: {other} at {pointer}");
        }
    }
    for other in [json!(-1), json!(1.5), json!("1"), json!(18_446_744_073_709_551_616_f64)] {
        let mut changed = token.clone();
        changed["issued_at"] = other.clone();
        assert!(!accepts("capability/token", &changed), "{other}");
    }
}

#[test]
fn incoherent_receipts_and_checkpoints_are_refused() {
    let receipt = serde_json::to_value(signed(receipt(Some(Decision::Allow)))).unwrap();
    for (name, wrong) in [
        ("receipt_kind", json!("trace_observation")),
        ("receipt_kind", json!("advisory_evaluation")),
        ("boundary_class", json!("detect_only")),
        ("boundary_class", json!("cannot_see")),
        ("trust_level", json!("verified")),
        ("observation_outcome", json!("observed")),
    ] {
        let mut changed = receipt.clone();
        changed[name] = wrong.clone();
        assert!(!accepts("receipt/receipt", &changed), "{wrong} as {name}");
    }
    let checkpoints: Vec<&Case> =
        CASES.iter().filter(|case| case.schema == "receipt/checkpoint").collect();
    for Case { value, .. } in checkpoints {
        for (name, wrong) in [
            ("schema", json!("chio.checkpoint_statement.v3")),
            ("checkpoint_seq", json!(0)),
            ("batch_start_seq", json!(0)),
            ("batch_end_seq", json!(0)),
            ("tree_size", json!(0)),
            ("issued_at", json!(0)),
            ("chain_root", json!(null)),
            ("previous_checkpoint_sha256", json!(null)),
            ("merkle_root", json!("00".repeat(32))),
        ] {
            let mut changed = value.clone();
            changed["body"][name] = wrong.clone();
            assert!(!accepts("receipt/checkpoint", &changed), "{wrong} as {name}");
        }
        let mut old = value.clone();
        old["body"]["schema"] = json!(CHECKPOINT_SCHEMA_V1);
        let chained = old["body"].get("chain_root").is_some();
        assert_eq!(accepts("receipt/checkpoint", &old), !chained, "v1 has no chain root");
    }
}

#[test]
fn approvals_of_a_request_are_one_to_thirty_two() {
    let full = serde_json::to_value(AgentMessage::ToolCallRequest(Box::new(request()))).unwrap();
    for (count, accepted) in [(0, false), (1, true), (32, true), (33, false)] {
        let mut value = full.clone();
        let approval = serde_json::to_value(approval(ApprovalDecision::Approved)).unwrap();
        value["approval_tokens"] = json!(vec![approval; count]);
        assert_eq!(accepts("agent/tool_call_request", &value), accepted, "{count}");
    }
}

// covers: WIRE-114, WIRE-115, WIRE-116, WIRE-117
#[test]
fn the_error_registry_fits_its_schema_and_names_everything_once() {
    let folder = golden::root().join("spec/errors");
    let schema = load(&folder.join("chio-error-registry.schema.json"));
    let registry = load(&folder.join("chio-error-registry.v1.json"));
    jsonschema::meta::validate(&schema).unwrap();
    let validator = jsonschema::options().offline().build(&schema).unwrap();
    if let Err(error) = validator.validate(&registry) {
        panic!("{error} at {}", error.instance_path());
    }
    let codes = registry["codes"].as_array().unwrap();
    assert_eq!(codes.len(), ErrorCode::ALL.len());
    for name in ["code", "name"] {
        let distinct: BTreeSet<String> = codes.iter().map(|code| code[name].to_string()).collect();
        assert_eq!(distinct.len(), codes.len(), "each {name} stands there once");
    }
    let categories = ["protocol", "auth", "capability", "guard", "budget", "tool", "internal"];
    assert_eq!(registry["categories"], json!(categories));
    let used: BTreeSet<&str> = codes.iter().filter_map(|code| code["category"].as_str()).collect();
    assert_eq!(used, categories.into(), "and each category has a code");
    for index in 0..codes.len() {
        for name in ["code", "name", "category", "transient", "retry"] {
            let mut broken = registry.clone();
            broken["codes"][index].as_object_mut().unwrap().remove(name);
            assert!(!validator.is_valid(&broken), "code {index} without {name}");
        }
        for (name, wrong) in [
            ("code", json!(999)),
            ("code", json!("1000")),
            ("category", json!("transaction")),
            ("category", json!(["tool", "internal"])),
            ("transient", json!("no")),
            ("retry", json!({"strategy": "do_not_retry"})),
            ("retry", json!({"strategy": "do_not_retry", "guidance": ""})),
            ("never_heard_of", json!(1)),
        ] {
            let mut broken = registry.clone();
            broken["codes"][index][name] = wrong.clone();
            assert!(!validator.is_valid(&broken), "{wrong} as {name}");
        }
    }
}

// covers: WIRE-118
#[test]
fn every_native_error_has_one_entry_in_the_registry() {
    let registry = load(&golden::root().join("spec/errors/chio-error-registry.v1.json"));
    for error in errors() {
        let written = serde_json::to_value(&error).unwrap();
        let entries: Vec<&Value> = registry["codes"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|entry| entry.get("nativeWireName") == Some(&written["code"]))
            .collect();
        let [entry] = entries[..] else { panic!("{written}: {} entries", entries.len()) };
        assert_eq!(entry["code"], json!(error.code().number()));
        assert_eq!(entry["name"], json!(error.code().name()));
        assert!(SCHEMAS.contains_key(&format!("error/{}", written["code"].as_str().unwrap())));
    }
}

// covers: WIRE-073
#[test]
fn the_negotiation_rules_are_those_of_the_specification() {
    let rules = load(&golden::root().join("spec/versions/chio-protocol-negotiation.v1.json"));
    let unsupported = ErrorCode::ProtocolVersionUnsupported;
    for (pointer, expected) in [
        ("/nativeChio/wireVersion", json!("chio-wire-v1")),
        ("/nativeChio/negotiation", json!("out_of_band")),
        ("/nativeChio/compatibility", json!("exact_match")),
        ("/nativeChio/downgrade", json!("not_supported")),
        ("/nativeChio/onMismatch/transport", json!("close_or_reset")),
        ("/nativeChio/onMismatch/chioErrorCode", json!(unsupported.number())),
        ("/hostedMcp/requestField", json!("params.protocolVersion")),
        ("/hostedMcp/requestFieldRequired", json!(false)),
        ("/hostedMcp/responseField", json!("result.protocolVersion")),
        (
            "/hostedMcp/selectedVersionField",
            json!("result.capabilities.experimental.chioProtocol.selectedProtocolVersion"),
        ),
        ("/hostedMcp/sessionHeader", json!("MCP-Protocol-Version")),
        (
            "/hostedMcp/supportedVersions",
            json!(["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]),
        ),
        ("/hostedMcp/compatibility", json!("exact_match_from_supported_set")),
        ("/hostedMcp/downgrade", json!("not_supported")),
        ("/hostedMcp/onMismatch/jsonrpcCode", json!(unsupported.jsonrpc_code())),
        ("/hostedMcp/onMismatch/chioErrorCode", json!(unsupported.number())),
        ("/hostedMcp/onMismatch/chioErrorField", json!("error.data.chioError")),
        ("/trustControl/pathPrefix", json!("/v1")),
    ] {
        assert_eq!(rules.pointer(pointer), Some(&expected), "{pointer}");
    }
    assert_eq!((unsupported.number(), unsupported.jsonrpc_code()), (1000, Some(-32600)));
}
