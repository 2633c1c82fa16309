//! Governed: what the caller says it intends, held against the call and the grant, and recorded.

use chio_core::canonical;
use chio_core::capability::{Constraint, DPOP_SKEW, PresentedToken, ToolGrant};
use chio_core::governance::{
    CallChainContext, CallChainProvenance, CurrentCall, DelegationEnds, EvidenceClass,
    EvidenceSource, GovernedTransactionIntent, GovernedTransactionReceipt, RuntimeAttestation,
    SettlementMode,
};
use chio_core::hash::sha256_hex;
use chio_core::money::MonetaryAmount;
use chio_core::receipt::LoggedReceipt;
use chio_core::registry::ErrorCode;
use chio_core::tier::{AutonomyTier, RuntimeAssurance};
use serde_json::{Value, json};

use super::Draft;
use super::verify::deny_store;
use crate::call::{Denial, ToolCall};
use crate::kernel::Inner;
use crate::store::ProofUse;

/// The name under which the kernel denies intents that do not hold.
const GUARD: &str = "governed_intent";

/// The intent that a call was stated with, checked.
#[derive(Debug)]
pub(crate) struct Stated {
    pub(super) intent: Box<GovernedTransactionIntent>,
    pub(super) hash: String,
}

fn deny(reason: impl Into<String>) -> Denial {
    Denial { code: ErrorCode::CapabilityDenied, ..Denial::by_guard(GUARD, reason) }
}

impl Inner {
    /// Checks what the caller says it intends, and notes it for the receipt. A call without a
    /// word of it costs nothing.
    pub(super) async fn govern(
        &self,
        call: &ToolCall,
        draft: &mut Draft,
    ) -> Result<Option<Stated>, Denial> {
        let Some(intent) = &call.governed_intent else { return Ok(None) };
        for (what, stated, called) in [
            ("server", &intent.server_id, &call.server_id),
            ("tool", &intent.tool_name, &call.tool_name),
        ] {
            if stated != called {
                return Err(deny(format!(
                    "expected an intent for {what} `{called}`, found one for `{stated}`"
                )));
            }
        }
        if intent.body.is_some() {
            return Err(deny("expected the intent of an ordinary tool call, found another body"));
        }
        check_arguments(intent, call)?;
        let mut record =
            GovernedTransactionReceipt::new(intent).map_err(|e| deny(e.to_string()))?;
        if let Some(context) = &intent.call_chain {
            let provenance = self.provenance(call, intent, context, draft).await?;
            record.call_chain = Some(provenance);
        } else {
            check_unnamed(intent)?;
        }
        if let Some(attestation) = &intent.runtime_attestation {
            let window = attestation.check_window(draft.record.started_at);
            window.map_err(|error| deny(format!("the runtime attestation: {error}")))?;
            draft.metadata.insert("runtime_attestation", asserted(attestation));
        }
        // A call that has waited is looked at again with the approval that it was given.
        record.approval = draft.governed.take().and_then(|earlier| earlier.approval);
        let hash = record.intent_hash.clone();
        draft.governed = Some(Box::new(record));
        Ok(Some(Stated { intent: intent.clone(), hash }))
    }

    /// Where the call comes from, and how well that is known.
    async fn provenance(
        &self,
        call: &ToolCall,
        intent: &GovernedTransactionIntent,
        context: &CallChainContext,
        draft: &mut Draft,
    ) -> Result<CallChainProvenance, Denial> {
        let refused = |problem: String| deny(format!("the call chain: {problem}"));
        let intent_hash = intent.hash().map_err(|error| refused(error.to_string()))?;
        let (parent_hash, is_local) = self.local_parent(context).await?;
        let link = call.token.delegation_chain.last();
        let link_hash = link.map(chio_core::capability::DelegationLink::hash).transpose();
        let link_hash = link_hash.map_err(|error| refused(error.to_string()))?;
        let current = CurrentCall {
            now: draft.record.started_at,
            request_id: &call.request_id,
            live_parent: call.parent_request_id.as_deref(),
            subject: &call.token.subject,
            server_id: &call.server_id,
            tool_name: &call.tool_name,
            intent_hash: &intent_hash,
            delegation: ends(&call.token, link_hash.as_deref()),
            parent_receipt_hash: parent_hash.as_deref(),
            parent_anchor: None,
        };
        let mut sources = context.check(&current).map_err(|error| refused(error.to_string()))?;
        if is_local {
            sources.push(EvidenceSource::LocalParentReceiptLinkage);
        }
        let proof = intent.upstream_proof().map_err(|error| refused(error.to_string()))?;
        let proof = proof.map(|proof| proof.check(context, &current)).transpose();
        let proof = proof.map_err(|error| refused(error.to_string()))?;
        let mut provenance = CallChainProvenance::new(context.clone(), sources, proof);
        let continuation = intent.continuation().map_err(|error| refused(error.to_string()))?;
        if let Some(token) = continuation {
            let checked = token.check(context, &current, &self.trust().kernels);
            checked.map_err(|error| refused(error.to_string()))?;
            // The nonce of a call that has waited was used when it began to wait.
            if let Some(nonce) = token.nonce.as_ref().filter(|_| !draft.resumed()) {
                draft.proofs.push(ProofUse {
                    key: sha256_hex(format!("continuation\0{}\0{nonce}", token.signer).as_bytes()),
                    issued_at: token.issued_at,
                    // Another kernel's clock may be behind ours.
                    expires_at: token.expires_at.saturating_add(2 * DPOP_SKEW),
                    now: draft.record.started_at,
                });
            }
            provenance.continuation_token_id = Some(token.token_id);
            provenance.evidence_class = EvidenceClass::Verified;
        }
        Ok(provenance)
    }

    /// The hash of the parent's receipt, if this store has it; and whether it is the receipt of
    /// the request that is named as parent.
    async fn local_parent(
        &self,
        context: &CallChainContext,
    ) -> Result<(Option<String>, bool), Denial> {
        let Some(id) = &context.parent_receipt_id else { return Ok((None, false)) };
        let row = self.store.find(id).await.map_err(|error| deny_store(&error))?;
        let Some(row) = row else { return Ok((None, false)) };
        let parent =
            LoggedReceipt::from_slice(&row.body).map_err(|error| deny(error.to_string()))?;
        if parent.request_id() != Some(&*context.parent_request_id) {
            return Err(deny(
                "the call chain: expected the parent's receipt to be of the parent's request, \
                 found one of another",
            ));
        }
        Ok((Some(sha256_hex(&row.body)), true))
    }
}

/// Evidence of a call chain is held against the chain that the intent names; without one, it
/// would not be checked.
fn check_unnamed(intent: &GovernedTransactionIntent) -> Result<(), Denial> {
    if matches!((intent.upstream_proof(), intent.continuation()), (Ok(None), Ok(None))) {
        return Ok(());
    }
    Err(deny("expected `call_chain` with the evidence for it, found none"))
}

/// Whether an intent is for certain arguments only.
pub(super) fn names_arguments(intent: &GovernedTransactionIntent) -> bool {
    intent.context.as_ref().is_some_and(|context| context.get(PARAMETER_HASH).is_some())
}

/// An intent that names the hash of its arguments is for no others.
fn check_arguments(intent: &GovernedTransactionIntent, call: &ToolCall) -> Result<(), Denial> {
    let context = intent.context.as_ref();
    let Some(named) = context.and_then(|context| context.get(PARAMETER_HASH)) else {
        return Ok(());
    };
    if named.as_str() == Some(&*parameter_hash(call)?) {
        return Ok(());
    }
    Err(deny("expected an intent for these arguments, found one for others"))
}

fn parameter_hash(call: &ToolCall) -> Result<String, Denial> {
    canonical::hash(&call.arguments).map_err(|error| deny(error.to_string()))
}

/// Where an intent names the hash of the arguments that it is for.
const PARAMETER_HASH: &str = "parameterHash";

/// The intent of a call that was stated with none: it is for exactly this call.
pub(super) fn made_intent(call: &ToolCall) -> Result<GovernedTransactionIntent, Denial> {
    let parameter_hash = parameter_hash(call)?;
    let subject = call.token.subject.to_hex();
    let (server, tool) = (&call.server_id, &call.tool_name);
    let name = sha256_hex(format!("{subject}\0{server}\0{tool}\0{parameter_hash}").as_bytes());
    let purpose = format!("call `{tool}` of `{server}` with exactly these arguments");
    let mut intent = GovernedTransactionIntent::new(format!("call-{name}"), server, tool, purpose);
    intent.context = Some(json!({"subject": subject, PARAMETER_HASH: parameter_hash}));
    Ok(intent)
}

/// What a caller's runtime says of itself: it is not verified here.
fn asserted(attestation: &RuntimeAttestation) -> Value {
    let mut recorded = serde_json::to_value(attestation).unwrap_or_default();
    if let Value::Object(members) = &mut recorded {
        members.insert("provenance_class".to_owned(), json!("asserted"));
    }
    recorded
}

fn ends<'a>(token: &'a PresentedToken, link_hash: Option<&'a str>) -> Option<DelegationEnds<'a>> {
    let (first, last) = (token.delegation_chain.first()?, token.delegation_chain.last()?);
    Some(DelegationEnds {
        origin: &first.delegator,
        delegator: &last.delegator,
        capability_id: &last.capability_id,
        link_hash: link_hash?,
    })
}

/// Why a constraint on governed calls does not hold for what was stated, if so.
pub(super) fn intent_violation(constraint: &Constraint, stated: Option<&Stated>) -> Option<String> {
    let intent = stated.map(|stated| &*stated.intent);
    match constraint {
        Constraint::GovernedIntentRequired => {
            intent.is_none().then(|| "expected a governed intent, found none".to_owned())
        }
        Constraint::SellerExact(seller) => {
            let commerce = intent.and_then(|intent| intent.commerce.as_ref());
            let found = commerce.map(|commerce| commerce.seller.as_str());
            (found != Some(seller)).then(|| format!("expected an intent to pay `{seller}`"))
        }
        Constraint::MinimumRuntimeAssurance(tier) => {
            let shown = intent.and_then(|intent| intent.runtime_attestation.as_ref());
            let shown = shown.map_or(RuntimeAssurance::None, |attestation| attestation.tier);
            // What a runtime says of itself is a claim, whatever it claims.
            let counts = shown.min(RuntimeAssurance::Basic);
            (counts < *tier)
                .then(|| "no verifier of runtime attestations is configured here".to_owned())
        }
        Constraint::MinimumAutonomyTier(tier) => {
            let autonomy = intent.and_then(|intent| intent.autonomy.as_ref());
            match (autonomy, tier) {
                (None, _) => {
                    Some("expected an intent with an autonomy tier, found none".to_owned())
                }
                (Some(_), AutonomyTier::Direct) => None,
                (Some(_), _) => Some("bonds behind autonomous calls are not supported".to_owned()),
            }
        }
        // Whether the approval is there is seen to before the call reserves.
        Constraint::RequireApprovalAbove(_) => None,
        _ => Some("it is of a kind that is not known here".to_owned()),
    }
}

/// Why a call on this grant needs an approval, if it does.
pub(super) fn asks_approval(
    grant: &ToolGrant,
    price: Option<&MonetaryAmount>,
    stated: Option<&Stated>,
) -> Option<String> {
    let intent = stated.map(|stated| &*stated.intent);
    let requested = requested_units(grant, price, intent);
    // A child keeps its parent's threshold and may add a lower one: that one counts.
    let thresholds = grant.constraints.iter().filter_map(|constraint| match constraint {
        Constraint::RequireApprovalAbove(above) => Some(above.threshold_units),
        _ => None,
    });
    let threshold = thresholds.min();
    if let Some(threshold) = threshold
        && requested >= threshold
    {
        return Some(format!(
            "the grant asks for approval from {threshold} units on, the call may cost {requested}"
        ));
    }
    let pays = intent.is_some_and(|intent| intent.commerce.is_some());
    (pays && price.is_some()).then(|| "the call pays a seller".to_owned())
}

/// What a call may cost: its price, else the grant's ceiling, else what the caller intends; a
/// quote that must be paid in advance can raise it.
fn requested_units(
    grant: &ToolGrant,
    price: Option<&MonetaryAmount>,
    intent: Option<&GovernedTransactionIntent>,
) -> u64 {
    let intended = intent.and_then(|intent| intent.max_amount.as_ref());
    let ceiling = price.or(grant.max_cost_per_invocation.as_ref()).or(intended);
    let billing = intent.and_then(|intent| intent.metered_billing.as_ref());
    let prepaid = billing
        .filter(|billing| billing.settlement_mode == SettlementMode::MustPrepay)
        .map_or(0, |billing| billing.quote.quoted_cost.units);
    ceiling.map_or(0, |amount| amount.units).max(prepaid)
}

/// Why a call of this price is not what the caller intends, if so.
pub(super) fn beyond_intent(
    price: Option<&MonetaryAmount>,
    stated: Option<&Stated>,
) -> Option<String> {
    let most = stated?.intent.max_amount.as_ref()?;
    let price = price?;
    (!price.is_within(most)).then(|| {
        let (units, currency) = (price.units, &price.currency);
        format!(
            "the intent is for at most {} {}, the call may cost {units} {currency}",
            most.units, most.currency
        )
    })
}
