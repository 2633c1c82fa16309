//! Tokens: what they look like, when they hold, and how they are handed on.

mod children;
mod form;
mod handing_on;
mod narrowing;
mod negotiated;
mod possession;
mod profiles;
mod verification;

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

/// A change of a token: one fault more, or one less.
type Edit = fn(&mut CapabilityToken);

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

/// The object at `pointer` gets an unknown member.
fn with_unknown_member(pointer: &str) -> Value {
    let mut value = full_value();
    let object = value.pointer_mut(pointer).unwrap().as_object_mut().unwrap();
    object.insert("never_heard_of".to_owned(), json!(1));
    value
}

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

/// A change of a link or of the tokens at its ends, and what it leads to.
struct HopCase {
    change: fn(&mut DelegationLink, &mut CapabilityToken, &mut Validity),
    expected: Result<(), DelegationError>,
}

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
