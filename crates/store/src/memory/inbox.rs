//! The inbox of this process.

use std::collections::BTreeMap;

use async_trait::async_trait;
use chio_core::crypto::PublicKey;
use chio_core::governance::ApprovalToken;
use chio_kernel::store::{
    Answered, Approval, ApprovalQuery, ApprovalRequest, ApprovalState, ApprovalStore, Closing,
    StoreResult,
};

use super::MemoryStore;
use crate::bounds::{self, INBOX_MEMORY, MAX_PRUNED};
use crate::inbox::{self, Load};

/// Requests for approval, by number.
#[derive(Default)]
pub(super) struct Inbox {
    rows: BTreeMap<u64, Row>,
    last: u64,
}

struct Row {
    /// The open intent that it belongs to.
    intent: Option<i64>,
    /// Bytes of the request as others write it down.
    size: u64,
    approval: Approval,
}

impl Inbox {
    /// What is open besides what this intent, if any, waits for.
    pub(super) fn load(&self, subject: &PublicKey, besides: Option<i64>) -> Load {
        let mut load = Load::default();
        let counts = |row: &&Row| row.approval.state.is_open() && row.intent != besides;
        for row in self.rows.values().filter(counts) {
            load.all += 1;
            if row.approval.request.subject == *subject {
                load.of_subject += 1;
                load.bytes_of_subject = load.bytes_of_subject.saturating_add(row.size);
            }
        }
        load
    }

    pub(super) fn has(&self, id: &str) -> bool {
        self.rows.values().any(|row| row.approval.request.id == id)
    }

    fn of_intent(&mut self, intent: i64) -> impl Iterator<Item = &mut Row> {
        self.rows.values_mut().filter(move |row| row.intent == Some(intent))
    }

    /// Puts in what an intent waits for, in place of what it waited for before.
    pub(super) fn add(&mut self, intent: i64, request: ApprovalRequest, size: u64) {
        self.prune(request.requested_at);
        for row in self.of_intent(intent) {
            if row.approval.state.is_open() {
                row.approval.state = ApprovalState::Cancelled;
            }
        }
        let state = ApprovalState::Pending;
        let approval = Approval { request, state, answer: None, receipt_id: None };
        self.last += 1;
        self.rows.insert(self.last, Row { intent: Some(intent), size, approval });
    }

    /// Forgets some of what has long been over.
    fn prune(&mut self, now: u64) {
        let is_over = |row: &Row| {
            let until = row.approval.request.requested_at.saturating_add(INBOX_MEMORY);
            !row.approval.state.is_open() && until <= now
        };
        let over = self.rows.iter().filter(|(_, row)| is_over(row)).map(|(number, _)| *number);
        let over: Vec<u64> = over.take(MAX_PRUNED).collect();
        for number in over {
            self.rows.remove(&number);
        }
    }

    /// Whether what an intent waits for, if anything, is approved, and the approval is brought.
    pub(super) fn lets_go_on(&self, intent: i64, has_approval: bool) -> bool {
        let last = self.rows.values().rfind(|row| row.intent == Some(intent));
        last.is_none_or(|row| has_approval && row.approval.state == ApprovalState::Approved)
    }

    /// Uses the approval that an intent waited for.
    pub(super) fn take(&mut self, intent: i64) {
        for row in self.of_intent(intent) {
            if row.approval.state == ApprovalState::Approved {
                row.approval.state = ApprovalState::Used;
            }
        }
    }

    /// Ends what belongs to an intent.
    pub(super) fn close(&mut self, closing: &Closing) {
        for row in self.of_intent(closing.intent.0) {
            if row.approval.state.is_open() {
                row.approval.state = inbox::unanswered(closing.unanswered);
            }
            row.approval.receipt_id = Some(closing.receipt_id.clone());
            row.intent = None;
        }
    }
}

#[async_trait]
impl ApprovalStore for MemoryStore {
    async fn approval(&self, id: &str) -> StoreResult<Option<Approval>> {
        let state = self.state();
        let found = state.inbox.rows.values().find(|row| row.approval.request.id == id);
        Ok(found.map(|row| row.approval.clone()))
    }

    async fn approvals(&self, query: &ApprovalQuery) -> StoreResult<Vec<(u64, Approval)>> {
        let state = self.state();
        let before = query.cursor.unwrap_or(u64::MAX);
        let rows = state.inbox.rows.range(..before).rev();
        let rows = rows.map(|(number, row)| (*number, &row.approval));
        let asked = rows.filter(|(_, found)| query.state.is_none_or(|state| found.state == state));
        let asked = asked.take(bounds::rows(query.limit));
        Ok(asked.map(|(number, found)| (number, found.clone())).collect())
    }

    async fn answer(&self, id: &str, answer: &ApprovalToken, now: u64) -> StoreResult<Answered> {
        let mut state = self.state();
        let mut rows = state.inbox.rows.values_mut().map(|row| &mut row.approval);
        let Some(found) = rows.find(|found| found.request.id == id) else {
            return Ok(Answered::Unknown);
        };
        let expires_at = found.request.expires_at;
        match inbox::answer(found.state, expires_at, answer.decision, now) {
            Ok(next) => found.state = next,
            Err(over) => return Ok(over),
        }
        found.answer = Some(answer.clone());
        state.epoch += 1;
        Ok(Answered::Recorded)
    }
}
