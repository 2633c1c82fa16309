//! What is known of a call while it is on its way, and what its receipt will say.

use std::borrow::Cow;
use std::sync::Arc;

use chio_core::canonical::{self, Scratch, Written};
use chio_core::governance::GovernedTransactionReceipt;
use chio_core::money::MonetaryAmount;
use chio_core::receipt::{RedactionMode, ToolCallAction};
use chio_core::registry::ErrorCode;
use chio_core::text::name_or_hash;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::call::{Denial, ToolCall};
use crate::caller::Session;
use crate::error::KernelError;
use crate::kernel::Inner;
use crate::metadata::Metadata;
use crate::pipeline::{GuardMemo, Pipeline};
use crate::resource_provider::ReadKind;
use crate::store::{Alternative, ApprovalState, ApprovalUse, CallTask, Intent, IntentId, ProofUse};

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

/// Denies a call of which some part is larger than a receipt may carry.
fn oversize(call: &ToolCall, too_long: bool) -> Option<Denial> {
    let names = [
        (&call.token.id, "a token id of at most 256 bytes"),
        (&call.server_id, "a server name of at most 256 bytes"),
        (&call.tool_name, "a tool name of at most 256 bytes"),
    ];
    let name = names.into_iter().find(|(name, _)| name.len() > MAX_NAME);
    let expected = name.map(|(_, expected)| expected);
    let expected = expected.or(too_long.then_some("shorter and flatter arguments"))?;
    let reason = format!("expected {expected}, found more than a receipt can carry");
    Some(Denial::by_kernel(ErrorCode::InvalidRequestShape, reason))
}

/// A name as a receipt can carry it.
pub(crate) fn bounded(name: &str) -> Cow<'_, str> {
    name_or_hash(name, MAX_NAME)
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

/// How far a call was checked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Checked {
    /// Not at all.
    Nothing,
    /// Its token holds, and is its caller's.
    Token,
    /// The guards were asked, too.
    Guards,
}

/// The open intent of a call.
pub(crate) struct Open {
    pub(crate) intent: IntentId,
    /// What becomes of its request for approval if that is never answered; none when the call has
    /// not waited for one.
    pub(crate) waited: Option<ApprovalState>,
    /// What was debited, once the call has reserved.
    pub(crate) taken: Option<Alternative>,
}

impl From<IntentId> for Open {
    fn from(intent: IntentId) -> Self {
        Self { intent, waited: None, taken: None }
    }
}

/// What is known of a call: as it was asked for, and what the stages add.
pub(crate) struct Draft {
    /// What the intent, and then the receipt, says; but for the metadata.
    pub(crate) record: Intent,
    pub(crate) metadata: Metadata,
    /// What is read; none for a call of a tool.
    pub(crate) read: Option<ReadKind>,
    /// The size of the arguments as they came.
    pub(crate) argument_bytes: usize,
    /// The act that the call is part of.
    pub(crate) trace_id: Option<String>,
    /// When the call must have ended.
    pub(crate) deadline: Instant,
    /// Who judges the call.
    pub(crate) pipeline: Arc<Pipeline>,
    /// What the guards have worked out.
    pub(crate) memo: Arc<GuardMemo>,
    pub(crate) checked: Checked,
    /// What the caller intends, and what bears it out.
    pub(crate) governed: Option<Box<GovernedTransactionReceipt>>,
    /// Proofs that are used up when the call reserves or waits.
    pub(crate) proofs: Vec<ProofUse>,
    /// The approval that is used up when the call reserves.
    pub(crate) approval: Option<ApprovalUse>,
    pub(crate) open: Option<Open>,
    /// The task that the call is, until something durable has it.
    pub(crate) task: Option<Arc<CallTask>>,
}

impl Draft {
    /// What a receipt can say before anything is checked. Takes the call's evidence, and refuses a
    /// call that no receipt can carry.
    pub(crate) fn new(
        kernel: &Inner,
        call: &mut ToolCall,
        read: Option<ReadKind>,
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
        call.refusal = call.refusal.take().or_else(|| oversize(call, too_long));
        let mut metadata = Metadata::default();
        for (member, written) in std::mem::take(&mut call.evidence) {
            metadata.insert_written(member, written);
        }
        metadata.set_context(&call.request_id);
        metadata.name_principal(&session.principal);
        if let Some(model) = &call.model {
            let model = serde_json::to_value(model.as_recorded()).unwrap_or_default();
            metadata.insert("model_metadata", model);
        }
        if call.token.problem().is_none() {
            metadata.attribute(&call.token);
        }
        let pipeline = kernel.pipeline();
        let record = Intent {
            request_id: call.request_id.clone(),
            capability_id: bounded(&call.token.id).into_owned(),
            tool_server: bounded(&call.server_id).into_owned(),
            tool_name: bounded(&call.tool_name).into_owned(),
            action,
            redaction: if too_long { RedactionMode::Summary } else { RedactionMode::None },
            policy_hash: pipeline.policy_hash().to_owned(),
            evidence: Vec::new(),
            metadata: Written::of(&Map::new())?,
            tenant_id: session.principal.tenant.clone(),
            started_at: kernel.clock.unix_seconds(),
            parked: false,
        };
        let mut draft = Self {
            record,
            metadata,
            read,
            argument_bytes: size.bytes,
            trace_id: call.trace_id.take(),
            deadline: Instant::now() + kernel.trust().deadline,
            pipeline,
            memo: Arc::default(),
            checked: Checked::Nothing,
            governed: None,
            proofs: Vec::new(),
            approval: None,
            open: None,
            task: None,
        };
        draft.note_meta(call)?;
        Ok(draft)
    }

    /// Has the call judged by these guards.
    pub(crate) fn judge_by(
        &mut self,
        pipeline: Arc<Pipeline>,
        call: &mut ToolCall,
    ) -> Result<(), KernelError> {
        pipeline.policy_hash().clone_into(&mut self.record.policy_hash);
        self.pipeline = pipeline;
        self.note_meta(call)
    }

    /// Has the receipt tell what is sent to the server besides the arguments, by its hash. SECURITY:
    /// what a guard would keep out of a receipt is not sent either.
    fn note_meta(&mut self, call: &mut ToolCall) -> Result<(), KernelError> {
        let Some(meta) = &mut call.meta else { return Ok(()) };
        if let Some(less) = self.pipeline.redacted(meta) {
            *meta = less;
        }
        let mut scratch = Scratch::default();
        let sha256 = scratch.hash(meta)?;
        let noted = json!({"bytes": scratch.size().bytes, "sha256": sha256});
        self.metadata.insert("request_meta", noted);
        Ok(())
    }

    /// Notes that this was checked. A call that has waited is checked again, and stays what it was.
    pub(crate) fn reach(&mut self, checked: Checked) {
        self.checked = self.checked.max(checked);
    }

    /// Whether the call has waited for an approval.
    pub(crate) fn resumed(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.waited.is_some())
    }

    pub(crate) fn intent_id(&self) -> Option<IntentId> {
        self.open.as_ref().map(|open| open.intent)
    }

    /// What was debited for the call.
    pub(crate) fn taken(&self) -> Option<&Alternative> {
        self.open.as_ref()?.taken.as_ref()
    }

    /// What the call may cost.
    pub(crate) fn price(&self) -> Option<&MonetaryAmount> {
        self.taken()?.price.as_ref()
    }

    /// Keeps back what the receipt of a call that was not guarded or not verified must not say.
    pub(crate) fn keep_back(&mut self) -> Result<(), KernelError> {
        if self.checked < Checked::Guards {
            self.redact_unguarded()?;
        }
        if self.checked < Checked::Token {
            self.distrust()?;
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

    /// The intent that a recovery would make a receipt of.
    pub(crate) fn intent(&self) -> Result<Intent, KernelError> {
        Ok(Intent { metadata: Written::of(&self.metadata)?, ..self.record.clone() })
    }

    /// Which grant of the token is used.
    pub(crate) fn grant_index(&self) -> u32 {
        self.metadata.grant_index().unwrap_or_default()
    }

    /// Says that the token did not hold, so that its names are only claims; and keeps no more of
    /// the arguments than any caller may put into the log.
    fn distrust(&mut self) -> Result<(), KernelError> {
        self.metadata.distrust(MAX_UNVERIFIED);
        let record = &mut self.record;
        if record.redaction == RedactionMode::None {
            let size = canonical::to_vec(&record.action.parameters)?.len();
            if size > MAX_UNVERIFIED {
                record.action = omitted(size, &record.action.parameter_hash)?;
                record.redaction = RedactionMode::Summary;
            }
        }
        Ok(())
    }

    /// Keeps the parameters as a guard left them.
    pub(crate) fn redact(&mut self, original: &Value, redacted: Value) -> Result<(), KernelError> {
        let kept = std::mem::take(&mut self.record.action.parameters);
        self.record.action = ToolCallAction::new(both_redacted(original, kept, redacted))?;
        self.record.redaction = RedactionMode::Redacted;
        Ok(())
    }

    /// Keeps no secret of a call that no guard was asked about.
    fn redact_unguarded(&mut self) -> Result<(), KernelError> {
        let record = &mut self.record;
        if record.redaction != RedactionMode::Summary
            && let Some(kept) = self.pipeline.redacted(&record.action.parameters)
        {
            record.action = ToolCallAction::new(kept)?;
            record.redaction = RedactionMode::Redacted;
        }
        Ok(())
    }
}
