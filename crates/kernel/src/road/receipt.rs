//! Receipt: what came of the call is signed and made durable, and the budget is settled with it.

use chio_core::canonical::Written;
use chio_core::money::MonetaryAmount;
use chio_core::receipt::{
    ChioReceipt, Decision, EXECUTION_MEMBER, Execution, NO_OUTPUT_HASH, NONCE_MEMBER, SealedReceipt,
};
use serde_json::{Map, Value, json};

use super::draft::Open;
use super::{Draft, Remarks};
use crate::call::{Evaluation, Outcome, ServerError};
use crate::caller::Session;
use crate::error::KernelError;
use crate::kernel::Inner;
use crate::metadata::Metadata;
use crate::store::{
    Alternative, Appended, ApprovalState, Closing, EndedTask, Entry, Hold, Intent, OpenIntent,
    Refund, TaskEnd,
};

/// How a call ended, with all that its receipt needs to say so.
#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) outcome: Outcome,
    /// What became of it at its tool.
    pub(crate) execution: Execution,
    pub(crate) content_hash: String,
    pub(crate) stream: Option<Value>,
    pub(crate) remarks: Remarks,
    /// What it cost, as far as that is known.
    pub(crate) cost: Option<MonetaryAmount>,
    /// The error that the server answered with.
    pub(crate) answered: Option<ServerError>,
}

impl Ending {
    /// The end of a call that never reached its tool.
    pub(crate) fn before_dispatch(outcome: Outcome) -> Self {
        let content_hash = NO_OUTPUT_HASH.to_owned();
        let (stream, remarks, cost) = (None, Remarks::default(), None);
        let execution = Execution::NotBegun;
        Self { outcome, execution, content_hash, stream, remarks, cost, answered: None }
    }

    /// The end of a call that was cancelled before it reached its tool.
    pub(crate) fn cancelled(reason: &str) -> Self {
        Self::before_dispatch(Outcome::Cancelled { reason: reason.to_owned(), chunks: 0 })
    }

    /// What the receipt says of the tool besides the decision: nothing where the call was allowed
    /// and its tool succeeded.
    pub(super) const fn execution(&self) -> Option<&'static str> {
        match (&self.outcome, self.execution) {
            (Outcome::Value(_) | Outcome::Stream { .. }, Execution::Completed) => None,
            (_, execution) => Some(execution.name()),
        }
    }

    /// What the log says of it.
    pub(super) const fn verdict(&self) -> &'static str {
        match self.outcome {
            Outcome::Value(_) | Outcome::Stream { .. } => "allow",
            Outcome::Denied(_) => "deny",
            Outcome::Cancelled { .. } => "cancelled",
            Outcome::Incomplete { .. } => "incomplete",
        }
    }
}

/// What a call is charged and what goes back.
#[derive(Debug)]
pub(crate) struct Settlement {
    charged: Option<MonetaryAmount>,
    refunds: Vec<Refund>,
    /// The tool asked for more than was reserved; it does not get it.
    excess: Option<MonetaryAmount>,
}

impl Settlement {
    /// Settles what was held. A call that never ran gives everything back; one that ran counts,
    /// and only a success that cost less than was held gives the rest back.
    fn of(taken: Option<&Alternative>, ending: &Ending) -> Self {
        let holds: &[Hold] = taken.map_or(&[], |taken| &taken.holds);
        let price = taken.and_then(|taken| taken.price.as_ref());
        if ending.execution == Execution::NotBegun {
            let back = |hold: &Hold| Refund {
                capability_id: hold.capability_id.clone(),
                grant_index: hold.grant_index,
                invocations: u32::from(hold.max_invocations.is_some()),
                units: hold.units,
            };
            return Self { charged: None, refunds: holds.iter().map(back).collect(), excess: None };
        }
        let succeeded = matches!(ending.outcome, Outcome::Value(_) | Outcome::Stream { .. });
        let reported = ending.cost.as_ref().filter(|_| succeeded).or(price);
        let Some(price) = price else {
            // Nothing was to be charged, so nothing is.
            let charged = reported.map(|cost| MonetaryAmount::new(0, cost.currency.clone()));
            let excess = reported.filter(|cost| cost.units > 0).cloned();
            return Self { charged, refunds: Vec::new(), excess };
        };
        let (charged, excess) = match reported {
            Some(cost) if cost.is_within(price) => (cost.clone(), None),
            other => (price.clone(), other.filter(|cost| *cost != price).cloned()),
        };
        let rest = price.units.saturating_sub(charged.units);
        let back = |hold: &Hold| Refund {
            capability_id: hold.capability_id.clone(),
            grant_index: hold.grant_index,
            invocations: 0,
            units: rest.min(hold.units),
        };
        let refunds = holds.iter().filter(|hold| rest > 0 && hold.units > 0).map(back).collect();
        Self { charged: Some(charged), refunds, excess }
    }

    fn record(&self) -> Option<Value> {
        let charged = self.charged.as_ref()?;
        let mut record = Map::new();
        record.insert("cost_charged".to_owned(), json!(charged.units));
        record.insert("currency".to_owned(), json!(charged.currency));
        let status = if self.excess.is_some() { "failed" } else { "settled" };
        record.insert("settlement_status".to_owned(), json!(status));
        if let Some(excess) = &self.excess {
            record.insert("cost_reported".to_owned(), json!(excess));
        }
        Some(Value::Object(record))
    }
}

impl Inner {
    /// The stage receipt. `task` is how the call's task ends.
    pub(super) async fn receipt(
        &self,
        mut draft: Draft,
        mut ending: Ending,
        session: &Session,
        task: Option<TaskEnd>,
    ) -> Result<Evaluation, KernelError> {
        let settlement = Settlement::of(draft.taken(), &ending);
        let (open, call_task) = (draft.open.take(), draft.task.take());
        let receipt = match draft.read {
            Some(kind) => self.sign_read(kind, &draft, &ending, session)?,
            None => self.sign_call(draft, &mut ending, &settlement)?,
        };
        let Settlement { charged, refunds, .. } = settlement;
        let (now, receipt_id) = (self.clock.unix_seconds(), receipt.id.clone());
        let (task, ended) = match (call_task, task) {
            (Some(task), Some(end)) => {
                let receipt_id = receipt_id.clone();
                (None, Some(Box::new(EndedTask { task, end, receipt_id, ended_at: now })))
            }
            (_, task) => (task, None),
        };
        let closes = open.map(|Open { intent, waited, .. }| Closing {
            intent,
            refunds,
            receipt_id,
            unanswered: waited.unwrap_or(ApprovalState::Cancelled),
            task,
            closed_at: now,
        });
        let entry = Entry { body: receipt.bytes.clone(), closes, task: ended };
        let seq = self.append(entry).await?;
        let Ending { outcome, answered, .. } = ending;
        Ok(Evaluation { outcome, receipt, seq, cost: charged, answered })
    }

    /// Signs the receipt of a call of a tool.
    fn sign_call(
        &self,
        mut draft: Draft,
        ending: &mut Ending,
        settlement: &Settlement,
    ) -> Result<SealedReceipt, KernelError> {
        draft.note_governed()?;
        let Draft { record, mut metadata, .. } = draft;
        if let Some(stream) = ending.stream.take() {
            metadata.insert("stream", stream);
        }
        if !ending.remarks.is_empty() {
            metadata.insert_written("post_invocation", Written::of(&ending.remarks)?);
        }
        if let Some(financial) = settlement.record() {
            metadata.insert("financial", financial);
        }
        if let Outcome::Denied(denial) = &ending.outcome {
            let code = json!({"code": denial.code, "name": denial.code.name()});
            metadata.insert("denial", code);
        }
        if let Some(execution) = ending.execution() {
            metadata.insert(EXECUTION_MEMBER, json!(execution));
        }
        let content_hash = std::mem::take(&mut ending.content_hash);
        self.sign(record, metadata, decision(&ending.outcome), content_hash)
    }

    fn sign(
        &self,
        record: Intent,
        mut metadata: Metadata,
        decision: Decision,
        content_hash: String,
    ) -> Result<SealedReceipt, KernelError> {
        let nonce = Value::String(self.unique_name("rcpt-"));
        metadata.insert(NONCE_MEMBER, nonce);
        let now = self.clock.unix_seconds();
        let kernel_key = self.key.public_key().clone();
        let receipt = ChioReceipt {
            capability_id: record.capability_id,
            tool_server: record.tool_server,
            tool_name: record.tool_name,
            redaction_mode: record.redaction,
            policy_hash: record.policy_hash,
            evidence: record.evidence,
            tenant_id: record.tenant_id,
            ..ChioReceipt::mediated(now, record.action, decision, content_hash, kernel_key)
        };
        Ok(receipt.sealed(&metadata, &self.key)?)
    }

    /// Signs and appends a receipt of no call. Gives its id.
    pub(crate) async fn record(
        &self,
        record: Intent,
        metadata: Metadata,
        decision: Decision,
        content_hash: String,
    ) -> Result<String, KernelError> {
        let receipt = self.sign(record, metadata, decision, content_hash)?;
        self.append(Entry::new(receipt.bytes)).await?;
        Ok(receipt.id)
    }

    async fn append(&self, entry: Entry) -> Result<u64, KernelError> {
        match self.log.append(entry).await? {
            Appended::At(seq) => Ok(seq),
            Appended::IntentClosed => Err(KernelError::Recovered),
        }
    }

    /// Signs and appends the receipt of a call that was left unfinished. Tells whether it was
    /// still open.
    pub(crate) async fn close_orphan(
        &self,
        open: OpenIntent,
        reason: &str,
    ) -> Result<bool, KernelError> {
        let OpenIntent { id, reservation, alternative, reserved } = open;
        let record = reservation.intent;
        let mut metadata = Metadata::of(&record.metadata);
        let taken = reservation.alternatives.into_iter().nth(alternative);
        if reserved {
            metadata.set_grant(taken.as_ref().map_or(0, |taken| taken.grant_index));
        }
        if let Some(price) = taken.and_then(|taken| taken.price) {
            // What it cost is unknown: all that was reserved is charged.
            let settlement = Settlement { charged: Some(price), refunds: vec![], excess: None };
            if let Some(financial) = settlement.record() {
                metadata.insert("financial", financial);
            }
        }
        metadata.insert("recovery", json!({"started_at": record.started_at}));
        let (decision, execution) = if record.parked {
            let reason = format!("{reason}: it waited for an approval, and never ran");
            (Decision::Cancelled { reason }, Execution::NotBegun)
        } else {
            // The intent was durable before its tool was called, if it was.
            (Decision::Incomplete { reason: reason.to_owned() }, Execution::Unknown)
        };
        metadata.insert(EXECUTION_MEMBER, json!(execution));
        let receipt = self.sign(record, metadata, decision, NO_OUTPUT_HASH.to_owned())?;
        let closes = Closing {
            intent: id,
            refunds: Vec::new(),
            receipt_id: receipt.id.clone(),
            unanswered: ApprovalState::Cancelled,
            task: None,
            closed_at: self.clock.unix_seconds(),
        };
        match self.append(Entry { closes: Some(closes), ..Entry::new(receipt.bytes) }).await {
            Ok(_) => Ok(true),
            Err(KernelError::Recovered) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn decision(outcome: &Outcome) -> Decision {
    match outcome {
        Outcome::Value(_) | Outcome::Stream { .. } => Decision::Allow,
        Outcome::Denied(denial) => {
            Decision::Deny { reason: denial.reason.clone(), guard: denial.guard.clone() }
        }
        Outcome::Cancelled { reason, .. } => Decision::Cancelled { reason: reason.clone() },
        Outcome::Incomplete { reason, .. } => Decision::Incomplete { reason: reason.clone() },
    }
}
