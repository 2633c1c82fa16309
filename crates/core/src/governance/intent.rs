//! What a caller means to do: the governed intent that approvals and receipts are bound to.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::call_chain::{CallChainContext, ContinuationToken, UpstreamProof};
use crate::canonical::{self, CanonicalError};
use crate::money::MonetaryAmount;
use crate::strict::{self, StrictError};
use crate::text::is_absent;
use crate::tier::{AutonomyTier, RuntimeAssurance};
use crate::window::{Validity, WindowError};

/// The kind of an absent `body`.
const DEFAULT_BODY_KIND: &str = "tool_invocation";

const CONTROL_PLANE: [&str; 2] = ["chioControlPlane", "chio_control_plane"];
const PREFERRED_TARGET: [&str; 2] = ["preferredTargetProtocol", "preferred_target_protocol"];
const NATIVE_FALLBACK: [&str; 2] = ["allowNativeFallback", "allow_native_fallback"];
const NO_PROJECTION: [&str; 2] = ["disallowProjectedProtocols", "disallow_projected_protocols"];

/// What a caller means to do with one tool, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GovernedTransactionIntent {
    /// The intent's id, chosen by the caller.
    pub id: String,
    /// The server that is to run the tool.
    pub server_id: String,
    /// The tool.
    pub tool_name: String,
    /// The purpose, as readable text.
    pub purpose: String,
    /// The most that the call may cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_amount: Option<MonetaryAmount>,
    /// Who is paid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commerce: Option<Commerce>,
    /// What was quoted for a metered call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metered_billing: Option<MeteredBilling>,
    /// What the caller's runtime has shown of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_attestation: Option<RuntimeAttestation>,
    /// The call that this one continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_chain: Option<CallChainContext>,
    /// How far the caller acts on its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autonomy: Option<Autonomy>,
    /// Free-form; [`Self::route_hints`], [`Self::upstream_proof`] and [`Self::continuation`] read
    /// the members that have a meaning here.
    #[serde(default, skip_serializing_if = "is_absent")]
    pub context: Option<Value>,
    /// What is asked for when it is not an ordinary tool call.
    #[serde(default, deserialize_with = "read_body", skip_serializing_if = "is_absent")]
    pub body: Option<Value>,
}

impl GovernedTransactionIntent {
    /// An intent to call one tool, without anything optional.
    pub fn new(
        id: impl Into<String>,
        server_id: impl Into<String>,
        tool_name: impl Into<String>,
        purpose: impl Into<String>,
    ) -> Self {
        Self {
            id: id.into(),
            server_id: server_id.into(),
            tool_name: tool_name.into(),
            purpose: purpose.into(),
            ..Self::default()
        }
    }

    /// The hash that approvals and receipts name.
    ///
    /// # Errors
    /// When the intent has no canonical form.
    pub fn hash(&self) -> Result<String, CanonicalError> {
        canonical::hash(self)
    }

    /// What the caller asks of the route planner. Members of the wrong type count as absent.
    ///
    /// # Errors
    /// When the hints are not an object.
    pub fn route_hints(&self) -> Result<RouteHints, RouteHintsError> {
        let context = self.context.as_ref().and_then(Value::as_object);
        let Some((member, hints)) = context.and_then(|context| either(context, CONTROL_PLANE))
        else {
            return Ok(RouteHints::default());
        };
        let hints =
            hints.as_object().ok_or(RouteHintsError { member, found: strict::kind(hints) })?;
        let value = |names| either(hints, names).map(|(_, value)| value);
        let flag = |names| value(names).and_then(Value::as_bool).unwrap_or(false);
        Ok(RouteHints {
            preferred_target: value(PREFERRED_TARGET).and_then(Value::as_str).map(str::to_owned),
            allow_native_fallback: flag(NATIVE_FALLBACK),
            disallow_projected: flag(NO_PROJECTION),
        })
    }

    /// The upstream proof in `context.callChainUpstreamProof`, unchecked.
    ///
    /// # Errors
    /// When the member is something else.
    pub fn upstream_proof(&self) -> Result<Option<UpstreamProof>, StrictError> {
        self.in_context("callChainUpstreamProof")
    }

    /// The continuation token in `context.callChainContinuation`, unchecked.
    ///
    /// # Errors
    /// When the member is something else.
    pub fn continuation(&self) -> Result<Option<ContinuationToken>, StrictError> {
        self.in_context("callChainContinuation")
    }

    fn in_context<T: DeserializeOwned>(&self, member: &str) -> Result<Option<T>, StrictError> {
        let Some(value) = self.context.as_ref().and_then(|context| context.get(member)) else {
            return Ok(None);
        };
        Option::deserialize(value).map_err(|error| strict::shape(&error))
    }
}

/// Who is paid for a governed call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commerce {
    /// The seller.
    pub seller: String,
    /// The payment token that buyer and seller share.
    pub shared_payment_token_id: String,
    /// Where the money goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settlement_destination_ref: Option<String>,
}

/// When a metered call is paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettlementMode {
    /// Before the call.
    MustPrepay,
    /// Held before the call, taken after it.
    HoldCapture,
    /// After the call.
    AllowThenSettle,
}

/// What was agreed for a metered call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MeteredBilling {
    /// When it is paid.
    pub settlement_mode: SettlementMode,
    /// What it is expected to cost.
    pub quote: MeteredQuote,
    /// The most units that may be billed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_billed_units: Option<u64>,
    /// The outcome that the payment depends on, passed on unchanged.
    #[serde(default, skip_serializing_if = "is_absent")]
    pub verified_outcome: Option<Value>,
}

/// A provider's price for a metered call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MeteredQuote {
    /// The provider's name for the quote.
    pub quote_id: String,
    /// The party that quotes.
    pub provider: String,
    /// What is counted.
    pub billing_unit: String,
    /// How many of it.
    pub quoted_units: u64,
    /// What they cost together.
    pub quoted_cost: MonetaryAmount,
    /// When the quote was made, in Unix seconds.
    pub issued_at: u64,
    /// When it ends, in Unix seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
}

/// What a runtime has shown of itself, as a verifier puts it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimeAttestation {
    /// The format of the evidence.
    pub schema: String,
    /// Who verified it.
    pub verifier: String,
    /// What it amounts to.
    pub tier: RuntimeAssurance,
    /// The first second in which it holds, in Unix time.
    pub issued_at: u64,
    /// The first second in which it no longer holds, in Unix time.
    pub expires_at: u64,
    /// The digest of the evidence.
    pub evidence_sha256: String,
    /// What the runtime is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_identity: Option<String>,
    /// What the workload is called, passed on unchanged.
    #[serde(default, skip_serializing_if = "is_absent")]
    pub workload_identity: Option<Value>,
    /// What else the evidence says, passed on unchanged.
    #[serde(default, skip_serializing_if = "is_absent")]
    pub claims: Option<Value>,
}

impl RuntimeAttestation {
    /// Checks that the attestation holds at `now`.
    ///
    /// # Errors
    /// When it does not.
    pub fn check_window(&self, now: u64) -> Result<(), WindowError> {
        Validity { issued_at: self.issued_at, expires_at: self.expires_at }.check(now)
    }
}

/// How far the caller acts on its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Autonomy {
    /// The autonomy tier.
    pub tier: AutonomyTier,
    /// The bond that stands behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegation_bond_id: Option<String>,
}

/// What a caller asks of the route planner.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RouteHints {
    /// The preferred protocol, by name.
    pub preferred_target: Option<String>,
    /// Whether the native route will do when the others are unavailable.
    pub allow_native_fallback: bool,
    /// Whether only the native route will do.
    pub disallow_projected: bool,
}

/// Why route hints could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected `context.{member}` to be an object, found {found}")]
pub struct RouteHintsError {
    member: &'static str,
    found: &'static str,
}

/// The member with the first of two names that is there.
fn either<'v>(
    object: &'v Map<String, Value>,
    names: [&'static str; 2],
) -> Option<(&'static str, &'v Value)> {
    names.into_iter().find_map(|name| Some((name, object.get(name)?)))
}

/// Reads `body`; the default kind, spelled out, is no body.
fn read_body<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    let body = Option::<Value>::deserialize(deserializer)?;
    let is_default = |body: &Value| body.get("kind").is_some_and(|kind| kind == DEFAULT_BODY_KIND);
    Ok(body.filter(|body| !is_default(body)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::governance::tests::{golden, text};

    fn golden_intent() -> GovernedTransactionIntent {
        strict::from_slice(text("/intent_canonical").as_bytes()).unwrap()
    }

    fn with_context(context: Value) -> GovernedTransactionIntent {
        let intent = GovernedTransactionIntent::new("intent-1", "srv", "tool", "because");
        GovernedTransactionIntent { context: Some(context), ..intent }
    }

    #[test]
    fn the_golden_intent_keeps_its_bytes_and_its_hash() {
        let intent = golden_intent();
        assert_eq!(canonical::to_string(&intent).unwrap(), text("/intent_canonical"));
        assert_eq!(intent.hash().unwrap(), text("/intent_hash"));
        assert_eq!(
            GovernedTransactionIntent::deserialize(golden("/intent")).unwrap(),
            golden_intent()
        );
    }

    #[test]
    fn the_call_chain_is_part_of_the_intent_and_of_its_hash() {
        let intent = golden_intent();
        assert_eq!(intent.call_chain.as_ref().unwrap().chain_id, "chain-1");
        let without = GovernedTransactionIntent { call_chain: None, ..intent.clone() };
        assert_ne!(without.hash().unwrap(), intent.hash().unwrap());
    }

    #[test]
    fn an_intent_with_every_member_keeps_its_bytes() {
        let mut full = golden("/intent");
        full["runtime_attestation"] = json!({
            "schema": "s", "verifier": "v", "tier": "attested", "issued_at": 10, "expires_at": 20,
            "evidence_sha256": "00", "runtime_identity": "r", "workload_identity": {"uri": "u"},
            "claims": {"n": 1.5},
        });
        full["autonomy"] = json!({"tier": "delegated", "delegationBondId": "bond-1"});
        full["context"] = json!({"anything": [1, 2]});
        full["body"] = json!({"kind": "active_response_plan", "value": {}});
        full["metered_billing"]["verifiedOutcome"] = json!({"v": 1});
        let intent = GovernedTransactionIntent::deserialize(&full).unwrap();
        assert_eq!(canonical::to_vec(&intent).unwrap(), canonical::to_vec(&full).unwrap());
        let attestation = intent.runtime_attestation.unwrap();
        assert!(attestation.check_window(10).is_ok());
        assert!(attestation.check_window(20).is_err());
    }

    #[test]
    fn what_says_nothing_does_not_change_the_hash() {
        for (member, value) in [
            ("max_amount", Value::Null),
            ("context", Value::Null),
            ("body", Value::Null),
            ("body", json!({"kind": "tool_invocation"})),
            ("never_heard_of", json!(1)),
        ] {
            let plain = json!({"id": "i", "server_id": "s", "tool_name": "t", "purpose": "p"});
            let mut padded = plain.clone();
            padded[member] = value;
            let intent = GovernedTransactionIntent::deserialize(padded).unwrap();
            assert_eq!(intent.hash().unwrap(), canonical::hash(&plain).unwrap(), "{member}");
        }
    }

    #[test]
    fn route_hints_are_read_in_both_spellings() {
        let none = RouteHints::default();
        let all = RouteHints {
            preferred_target: Some("mcp".to_owned()),
            allow_native_fallback: true,
            disallow_projected: true,
        };
        let camel = json!({"preferredTargetProtocol": "mcp", "allowNativeFallback": true,
            "disallowProjectedProtocols": true});
        let snake = json!({"preferred_target_protocol": "mcp", "allow_native_fallback": true,
            "disallow_projected_protocols": true});
        let wrong = json!({"preferredTargetProtocol": 1, "allowNativeFallback": "true",
            "disallowProjectedProtocols": null});
        for (context, expected) in [
            (json!({"chioControlPlane": camel}), &all),
            (json!({"chioControlPlane": snake}), &all),
            (json!({"chio_control_plane": camel}), &all),
            (json!({"chio_control_plane": snake}), &all),
            (json!({"chioControlPlane": {}, "chio_control_plane": snake}), &none),
            (json!({"chioControlPlane": wrong}), &none),
            (camel, &none),
            (json!("text"), &none),
        ] {
            let intent = with_context(context.clone());
            assert_eq!(intent.route_hints().as_ref(), Ok(expected), "{context}");
        }
        let plain = GovernedTransactionIntent::new("i", "s", "t", "p");
        assert_eq!(plain.route_hints(), Ok(none));
    }

    #[test]
    fn route_hints_that_are_no_object_are_refused() {
        let found = |context| with_context(context).route_hints().unwrap_err().to_string();
        assert_eq!(
            found(json!({"chioControlPlane": []})),
            "expected `context.chioControlPlane` to be an object, found an array"
        );
        assert_eq!(
            found(json!({"chio_control_plane": null})),
            "expected `context.chio_control_plane` to be an object, found null"
        );
    }

    #[test]
    fn proof_and_continuation_are_read_from_the_context() {
        let value = |name| serde_json::from_str::<Value>(&text(name)).unwrap();
        let intent = with_context(json!({
            "callChainUpstreamProof": value("/upstream_proof/wire_canonical"),
            "callChainContinuation": value("/continuation_token/wire_canonical"),
        }));
        assert_eq!(intent.upstream_proof().unwrap().unwrap().context.chain_id, "chain-1");
        assert_eq!(intent.continuation().unwrap().unwrap().token_id, "cont-1");

        let absent = with_context(json!({"callChainContinuation": null}));
        assert_eq!(absent.upstream_proof(), Ok(None));
        assert_eq!(absent.continuation(), Ok(None));

        let wrong = with_context(json!({"callChainUpstreamProof": {"signer": "secret"}}));
        let message = wrong.upstream_proof().unwrap_err().to_string();
        assert!(!message.contains("secret"), "{message}");
    }
}
