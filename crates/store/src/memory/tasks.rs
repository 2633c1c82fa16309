//! The tasks of this process, one by one.

use std::collections::{HashMap, HashSet};

use async_trait::async_trait;
use chio_core::crypto::PublicKey;
use chio_kernel::store::{
    CallTask, Closing, EndedTask, NewTask, StoreResult, Task, TaskClaim, TaskQuota, TaskReceipt,
    TaskRefused, TaskState, TaskStore,
};

use super::MemoryStore;
use crate::bounds::MAX_PRUNED;
use crate::tasks::{Standing, Unlooked, ended, gone_at, size_of};

#[derive(Default)]
pub(super) struct Tasks {
    /// By name.
    pub(super) rows: HashMap<String, Row>,
    /// Names of those that are not over.
    pub(super) open: HashSet<String>,
    /// Names by the messages that began them.
    pub(super) messages: Names,
    /// Names by their conversations.
    pub(super) contexts: Names,
    /// Names by the open intents that run them.
    intents: HashMap<i64, String>,
    /// What owners have got since their quotas were looked at.
    unlooked: HashMap<PublicKey, Unlooked>,
    /// How many rows there ever were.
    inserted: u64,
    /// The last number that was taken.
    numbers: u64,
}

pub(super) struct Row {
    pub(super) task: Task,
    /// Counts rows, so that of two tasks of one second the later one is known.
    sequence: u64,
}

impl Row {
    pub(super) const fn standing(&self) -> Standing<'_> {
        let NewTask { owner, expires_at, .. } = &self.task.new;
        Standing { owner, state: self.task.state, expires_at: *expires_at }
    }
}

/// Names of tasks by something that they have in common.
#[derive(Default)]
pub(super) struct Names(HashMap<String, Vec<String>>);

impl Names {
    fn add(&mut self, common: Option<&String>, id: &str) {
        if let Some(common) = common {
            self.0.entry(common.clone()).or_default().push(id.to_owned());
        }
    }

    fn remove(&mut self, common: Option<&String>, id: &str) {
        let Some(common) = common else { return };
        let Some(ids) = self.0.get_mut(common) else { return };
        ids.retain(|known| known != id);
        if ids.is_empty() {
            self.0.remove(common);
        }
    }

    pub(super) fn of(&self, common: &str) -> &[String] {
        self.0.get(common).map_or(&[], Vec::as_slice)
    }
}

impl Tasks {
    /// Why this claim cannot be met, if so.
    pub(super) fn look_at(&self, claim: &TaskClaim) -> Result<(), TaskRefused> {
        let found = self.rows.get(&claim.id).ok_or(TaskRefused::Unknown)?;
        found.standing().claim(&claim.owner, claim.now)
    }

    /// Lets an intent run a task that was looked at.
    pub(super) fn claim(&mut self, intent: i64, claim: &TaskClaim) {
        if let Some(found) = self.rows.get_mut(&claim.id) {
            self.intents.insert(intent, claim.id.clone());
            found.task.state = TaskState::Running;
            found.task.updated_at = claim.now;
        }
    }

    /// Keeps the task of a call that runs with this intent.
    pub(super) fn begin(&mut self, intent: i64, task: &CallTask) {
        if self.insert(task.new.clone(), TaskState::Running) {
            self.intents.insert(intent, task.new.id.clone());
            self.keep_within(&task.new, &task.quota, size_of(&task.new, None));
        }
    }

    /// Ends what an intent runs, with this receipt.
    pub(super) fn close(&mut self, closing: &Closing, receipt: &[u8]) {
        let Some(id) = self.intents.remove(&closing.intent.0) else { return };
        let (state, result) = ended(closing.task.as_ref());
        let receipt = TaskReceipt { id: closing.receipt_id.clone(), body: Some(receipt.to_vec()) };
        self.end(&id, state, closing.closed_at, Some((result.map(<[u8]>::to_vec), receipt)));
    }

    /// Keeps the task of a call that has ended, with this receipt.
    pub(super) fn keep(&mut self, kept: &EndedTask, receipt: &[u8]) {
        let EndedTask { task, end, receipt_id, ended_at } = kept;
        if !self.insert(task.new.clone(), TaskState::Running) {
            return;
        }
        let (state, result) = ended(Some(end));
        let receipt = TaskReceipt { id: receipt_id.clone(), body: Some(receipt.to_vec()) };
        let came = (result.map(<[u8]>::to_vec), receipt);
        self.end(&task.new.id, state, *ended_at, Some(came));
        self.keep_within(&task.new, &task.quota, size_of(&task.new, result));
    }

    /// Has a task come into a state in which nothing runs.
    fn end(
        &mut self,
        id: &str,
        state: TaskState,
        now: u64,
        came: Option<(Option<Vec<u8>>, TaskReceipt)>,
    ) {
        let Some(Row { task, .. }) = self.rows.get_mut(id) else { return };
        let new = &mut task.new;
        task.state = state;
        task.updated_at = now;
        task.result = None;
        new.request = Vec::new();
        match came {
            Some((result, receipt)) => {
                new.expires_at = gone_at(state, now, new.expires_at, new.kept_for);
                (task.result, task.receipt) = (result, Some(receipt));
            }
            None if new.kept_for > 0 => new.expires_at = now.saturating_add(new.kept_for),
            None => {}
        }
        if state.is_over() {
            self.open.remove(id);
        }
    }

    /// Keeps a task, unless its name is taken.
    fn insert(&mut self, new: NewTask, state: TaskState) -> bool {
        let id = new.id.clone();
        if self.rows.contains_key(&id) {
            return false;
        }
        self.messages.add(new.message.as_ref(), &id);
        self.contexts.add(new.context.as_ref(), &id);
        self.open.insert(id.clone());
        self.inserted += 1;
        let sequence = self.inserted;
        let updated_at = new.created_at;
        let task = Task { new, state, updated_at, result: None, receipt: None };
        self.rows.insert(id, Row { task, sequence });
        true
    }

    fn remove(&mut self, id: &str) {
        let Some(Row { task, .. }) = self.rows.remove(id) else { return };
        self.messages.remove(task.new.message.as_ref(), id);
        self.contexts.remove(task.new.context.as_ref(), id);
        self.open.remove(id);
    }

    /// How many tasks of an account are not over.
    pub(super) fn open_of(&self, account: &str, now: u64) -> usize {
        let rows = self.open.iter().filter_map(|id| self.rows.get(id));
        rows.filter(|row| row.task.new.account == account && !row.standing().is_gone(now)).count()
    }

    fn create(&mut self, task: &NewTask, quota: &TaskQuota) -> Result<(), TaskRefused> {
        if self.rows.contains_key(&task.id) {
            return Err(TaskRefused::NameTaken);
        }
        let now = task.created_at;
        if self.open_of(&task.account, now) >= quota.open {
            return Err(TaskRefused::TooMany);
        }
        self.forget(now, MAX_PRUNED);
        self.insert(task.clone(), TaskState::Waiting);
        self.keep_within(task, quota, size_of(task, None));
        Ok(())
    }

    /// Looks at an owner's quota now and then: the oldest tasks that are over make room.
    fn keep_within(&mut self, task: &NewTask, quota: &TaskQuota, bytes: u64) {
        let unlooked = self.unlooked.entry(task.owner.clone()).or_default();
        if !unlooked.note(quota, bytes) {
            return;
        }
        let theirs = |row: &&Row| {
            let new = &row.task.new;
            new.owner == task.owner && new.protocol == task.protocol && row.task.state.is_over()
        };
        let mut over: Vec<&Row> = self.rows.values().filter(theirs).collect();
        over.sort_by_key(|row| std::cmp::Reverse((row.task.updated_at, row.sequence)));
        let (mut gone, mut bytes) = (Vec::new(), 0_u64);
        for (place, Row { task, .. }) in over.into_iter().enumerate() {
            bytes = bytes.saturating_add(size_of(&task.new, task.result.as_deref()));
            if place >= quota.ended || (place > 0 && bytes > quota.bytes) {
                gone.push(task.new.id.clone());
            }
        }
        gone.iter().for_each(|id| self.remove(id));
    }

    /// Forgets at most this many that have expired. Tells how many.
    pub(super) fn forget(&mut self, now: u64, most: usize) -> u64 {
        let gone = self.rows.iter().filter(|(_, row)| row.standing().is_gone(now));
        let gone: Vec<String> = gone.map(|(id, _)| id.clone()).take(most).collect();
        gone.iter().for_each(|id| self.remove(id));
        super::count(gone.len())
    }

    fn answer(&mut self, answer: NewTask) -> Result<(), TaskRefused> {
        let found = self.rows.get_mut(&answer.id).ok_or(TaskRefused::Unknown)?;
        found.standing().answer(&answer.owner, answer.created_at)?;
        let task = &mut found.task;
        task.state = TaskState::Waiting;
        task.updated_at = answer.created_at;
        task.result = None;
        let NewTask { server_id, due_at, record, request, .. } = answer;
        task.new = NewTask { server_id, due_at, record, request, ..task.new.clone() };
        Ok(())
    }

    fn cancel(&mut self, id: &str, owner: &PublicKey, now: u64) -> Result<(), TaskRefused> {
        let found = self.rows.get(id).ok_or(TaskRefused::Unknown)?;
        if found.standing().cancel(owner, now)? {
            self.end(id, TaskState::Cancelled, now, None);
        }
        Ok(())
    }
}

#[async_trait]
impl TaskStore for MemoryStore {
    async fn create_task(
        &self,
        task: NewTask,
        quota: TaskQuota,
    ) -> StoreResult<Result<(), TaskRefused>> {
        Ok(self.state().tasks.create(&task, &quota))
    }

    async fn task(
        &self,
        id: &str,
        owner: &PublicKey,
        now: u64,
    ) -> StoreResult<Result<Task, TaskRefused>> {
        let state = self.state();
        let Some(found) = state.tasks.rows.get(id) else { return Ok(Err(TaskRefused::Unknown)) };
        Ok(found.standing().see(owner, now).map(|()| found.task.clone()))
    }

    async fn answer_task(&self, answer: NewTask) -> StoreResult<Result<(), TaskRefused>> {
        Ok(self.state().tasks.answer(answer))
    }

    async fn cancel_task(
        &self,
        id: &str,
        owner: &PublicKey,
        now: u64,
    ) -> StoreResult<Result<(), TaskRefused>> {
        Ok(self.state().tasks.cancel(id, owner, now))
    }

    async fn take_numbers(&self, count: u32) -> StoreResult<u64> {
        let mut state = self.state();
        let first = state.tasks.numbers.saturating_add(1);
        state.tasks.numbers = state.tasks.numbers.saturating_add(u64::from(count));
        Ok(first)
    }
}
