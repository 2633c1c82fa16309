//! What is known of a call's receipt before its end.

use std::sync::Arc;

use chio_core::canonical::{self, Scratch, Written};
use chio_core::governance::GovernedTransactionReceipt;
use chio_core::money::MonetaryAmount;
use chio_core::receipt::{GuardEvidence, RedactionMode, ToolCallAction};
use chio_core::text::name_or_hash;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::call::ToolCall;
use crate::caller::Session;
use crate::error::KernelError;
use crate::kernel::Inner;
use crate::metadata::Metadata;
use crate::pipeline::{GuardMemo, Pipeline};
use crate::store::{ApprovalState, ApprovalUse, Hold, Intent, IntentId, OpenIntent, ProofUse};

/// The longest name that a receipt repeats, in bytes.
const MAX_NAME: usize = 256;

/// The deepest nesting of arguments and outputs. Receipts, messages and logs must stay readable,
/// whatever stands around them.
pub(crate) const MAX_NESTING: usize = 64;

/// The most bytes of arguments, and of each thing else that was handed in, that a receipt keeps for
/// a caller that has no token that holds.
pub(super) const MAX_UNVERIFIED: usize = 4096;

/// Arguments of this size and hash, which a receipt does not keep.
fn omitted(size: usize, hash: &str) -> Result<ToolCallAction, KernelError> {
    Ok(ToolCallAction::new(json!({"omitted_bytes": size, "sha256": hash}))?)
}

/// The part of a call that is larger than a receipt may carry.
fn oversize(call: &ToolCall, too_long: bool) -> Option<&'static str> {
    let names = [
        (&call.token.id, "a token id of at most 256 bytes"),
        (&call.server_id, "a server name of at most 256 bytes"),
        (&call.tool_name, "a tool name of at most 256 bytes"),
    ];
    let name = names.into_iter().find(|(name, _)| name.len() > MAX_NAME);
    name.map(|(_, expected)| expected).or(too_long.then_some("shorter and flatter arguments"))
}

/// A name as a receipt can carry it.
fn bounded(name: &str) -> String {
    name_or_hash(name, MAX_NAME).into_owned()
}

/// What is left when two guards have each taken something out of the same arguments.
fn both_redacted(original: &Value, one: Value, other: Value) -> Value {
    if one == *original || one == other {
        return other;
    }
    if other == *original {
        return one;
    }
    match (original, one, other) {
        (Value::Object(was), Value::Object(mut one), Value::Object(other)) => {
            let mut left = Map::new();
            for (name, other) in other {
                match (was.get(&name), one.remove(&name)) {
                    (Some(was), Some(one)) => {
                        left.insert(name, both_redacted(was, one, other));
                    }
                    // One of them took the member out.
                    (Some(_), None) => {}
                    (None, _) => {
                        left.insert(name, other);
                    }
                }
            }
            left.extend(one.into_iter().filter(|(name, _)| !was.contains_key(name)));
            Value::Object(left)
        }
        (Value::Array(was), Value::Array(one), Value::Array(other))
            if was.len() == one.len() && was.len() == other.len() =>
        {
            let pairs = was.iter().zip(one).zip(other);
            Value::Array(pairs.map(|((was, one), other)| both_redacted(was, one, other)).collect())
        }
        _ => Value::String("[redacted]".to_owned()),
    }
}

/// A receipt in the making.
pub(crate) struct Draft {
    pub(crate) request_id: String,
    pub(crate) capability_id: String,
    pub(crate) tool_server: String,
    pub(crate) tool_name: String,
    pub(crate) action: ToolCallAction,
    pub(crate) redaction: RedactionMode,
    /// The size of the arguments as they came.
    pub(crate) argument_bytes: usize,
    pub(crate) evidence: Vec<GuardEvidence>,
    pub(crate) metadata: Metadata,
    /// The act that the call is part of.
    pub(crate) trace_id: Option<String>,
    pub(crate) tenant_id: Option<String>,
    /// Who judges the call.
    pub(crate) pipeline: Arc<Pipeline>,
    /// What the guards have worked out.
    pub(crate) memo: Arc<GuardMemo>,
    /// Whether guards were asked.
    pub(crate) guarded: bool,
    pub(crate) started_at: u64,
    /// When the call must have ended.
    pub(crate) deadline: Instant,
    /// Whether the token was found to hold, and to be its caller's.
    pub(crate) verified: bool,
    /// What is too large for a receipt to carry, if anything is.
    pub(crate) oversize: Option<&'static str>,
    /// The open intent, once there is one.
    pub(crate) intent: Option<IntentId>,
    /// What was debited with it.
    pub(crate) holds: Vec<Hold>,
    /// What the call may cost.
    pub(crate) price: Option<MonetaryAmount>,
    /// What the caller intends, and what bears it out.
    pub(crate) governed: Option<Box<GovernedTransactionReceipt>>,
    /// Proofs that are used up when the call reserves or waits.
    pub(crate) proofs: Vec<ProofUse>,
    /// The approval that is used up when the call reserves.
    pub(crate) approval: Option<ApprovalUse>,
    /// Whether the call has waited for an approval.
    pub(crate) resumed: bool,
    /// What becomes of its request for approval if that is never answered.
    pub(crate) unanswered: ApprovalState,
    /// Whether the call is a deferred task.
    pub(crate) claimed: bool,
    /// What is kept as the task's result.
    pub(crate) result: Option<Vec<u8>>,
}

impl Draft {
    /// What a receipt can say before anything is checked. Takes the call's evidence.
    pub(crate) fn new(
        kernel: &Inner,
        call: &mut ToolCall,
        session: &Session,
    ) -> Result<Self, KernelError> {
        let mut scratch = Scratch::default();
        let parameter_hash = scratch.hash(&call.arguments)?;
        let size = scratch.size();
        let too_long =
            size.bytes > kernel.config.limits.max_argument_bytes || size.depth > MAX_NESTING;
        let action = if too_long {
            // A receipt must fit where the call fitted: it keeps the hash in place of the text.
            omitted(size.bytes, &parameter_hash)?
        } else {
            ToolCallAction { parameters: call.arguments.clone(), parameter_hash }
        };
        let mut metadata = Metadata::default();
        for (member, written) in std::mem::take(&mut call.evidence) {
            metadata.insert_written(member, written);
        }
        metadata.set_context(&call.request_id);
        if let Some(model) = &call.model {
            let model = serde_json::to_value(model.as_recorded()).unwrap_or_default();
            metadata.insert("model_metadata", model);
        }
        metadata.attribute(&call.token);
        Ok(Self {
            capability_id: bounded(&call.token.id),
            tool_server: bounded(&call.server_id),
            tool_name: bounded(&call.tool_name),
            redaction: if too_long { RedactionMode::Summary } else { RedactionMode::None },
            argument_bytes: size.bytes,
            metadata,
            trace_id: call.trace_id.take(),
            tenant_id: session.principal.tenant.clone(),
            started_at: kernel.clock.unix_seconds(),
            deadline: Instant::now() + kernel.config.limits.deadline,
            oversize: oversize(call, too_long),
            ..Self::blank(call.request_id.clone(), action, kernel.pipeline())
        })
    }

    /// A draft that says which call it is of, and nothing else.
    fn blank(request_id: String, action: ToolCallAction, pipeline: Arc<Pipeline>) -> Self {
        Self {
            request_id,
            capability_id: String::new(),
            tool_server: String::new(),
            tool_name: String::new(),
            action,
            redaction: RedactionMode::None,
            argument_bytes: 0,
            evidence: Vec::new(),
            metadata: Metadata::default(),
            trace_id: None,
            tenant_id: None,
            pipeline,
            memo: Arc::default(),
            guarded: false,
            started_at: 0,
            deadline: Instant::now(),
            verified: false,
            oversize: None,
            intent: None,
            holds: Vec::new(),
            price: None,
            governed: None,
            proofs: Vec::new(),
            approval: None,
            resumed: false,
            unanswered: ApprovalState::Cancelled,
            claimed: false,
            result: None,
        }
    }

    /// Keeps back what the receipt of a call that was not guarded or not verified must not say.
    pub(crate) fn keep_back(&mut self) -> Result<(), KernelError> {
        if !self.guarded {
            self.redact_unguarded()?;
        }
        if !self.verified {
            self.distrust()?;
        }
        Ok(())
    }

    /// Says that the token did not hold, so that its names are only claims; and keeps no more of
    /// the arguments than any caller may put into the log.
    fn distrust(&mut self) -> Result<(), KernelError> {
        self.metadata.distrust(MAX_UNVERIFIED);
        if self.redaction == RedactionMode::None {
            let size = canonical::to_vec(&self.action.parameters)?.len();
            if size > MAX_UNVERIFIED {
                self.action = omitted(size, &self.action.parameter_hash)?;
                self.redaction = RedactionMode::Summary;
            }
        }
        Ok(())
    }

    /// Writes what is known of the caller's intent into the metadata.
    pub(crate) fn note_governed(&mut self) -> Result<(), KernelError> {
        if let Some(governed) = &self.governed {
            self.metadata.insert_written("governed_transaction", Written::of(governed)?);
        }
        Ok(())
    }

    /// Keeps the parameters as a guard left them.
    pub(crate) fn redact(&mut self, original: &Value, redacted: Value) -> Result<(), KernelError> {
        let kept = std::mem::take(&mut self.action.parameters);
        self.action = ToolCallAction::new(both_redacted(original, kept, redacted))?;
        self.redaction = RedactionMode::Redacted;
        Ok(())
    }

    /// Keeps no secret of a call that no guard was asked about.
    fn redact_unguarded(&mut self) -> Result<(), KernelError> {
        if self.redaction != RedactionMode::Summary
            && let Some(kept) = self.pipeline.redacted(&self.action.parameters)
        {
            self.action = ToolCallAction::new(kept)?;
            self.redaction = RedactionMode::Redacted;
        }
        Ok(())
    }

    /// The intent that a recovery would make a receipt of.
    pub(crate) fn intent(&self) -> Result<Intent, KernelError> {
        Ok(Intent {
            request_id: self.request_id.clone(),
            capability_id: self.capability_id.clone(),
            tool_server: self.tool_server.clone(),
            tool_name: self.tool_name.clone(),
            action: self.action.clone(),
            redaction: self.redaction,
            policy_hash: self.pipeline.policy_hash().to_owned(),
            evidence: self.evidence.clone(),
            metadata: Written::of(&self.metadata)?,
            tenant_id: self.tenant_id.clone(),
            started_at: self.started_at,
            parked: false,
        })
    }

    /// The draft of a call that was left open.
    pub(crate) fn of_orphan(open: &OpenIntent) -> Self {
        let intent = &open.reservation.intent;
        // It was judged under the policy that its intent names.
        let pipeline = Arc::new(Pipeline::new(intent.policy_hash.clone(), Vec::new()));
        Self {
            capability_id: intent.capability_id.clone(),
            tool_server: intent.tool_server.clone(),
            tool_name: intent.tool_name.clone(),
            redaction: intent.redaction,
            evidence: intent.evidence.clone(),
            metadata: Metadata::of(&intent.metadata),
            tenant_id: intent.tenant_id.clone(),
            guarded: true,
            started_at: intent.started_at,
            verified: true,
            intent: Some(open.id),
            ..Self::blank(intent.request_id.clone(), intent.action.clone(), pipeline)
        }
    }

    /// Which grant of the token is used.
    pub(crate) fn grant_index(&self) -> u32 {
        self.metadata.grant_index().unwrap_or_default()
    }
}
