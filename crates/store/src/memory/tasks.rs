//! The deferred tasks of this process.

use std::collections::HashMap;

use async_trait::async_trait;
use chio_core::crypto::PublicKey;
use chio_core::protocol::DiscoveryProtocol;
use chio_kernel::store::{
    Closing, MAX_LISTED, NewTask, StoreResult, Task, TaskClaim, TaskRefused, TaskState, TaskStore,
};

use super::MemoryStore;
use crate::bounds::{MAX_FORGOTTEN, MAX_PRUNED};
use crate::tasks::{Standing, ended, fetchable_until};

#[derive(Default)]
pub(super) struct Tasks {
    /// By name.
    rows: HashMap<String, Row>,
    /// The last number that was taken.
    numbers: u64,
}

struct Row {
    /// The open intent that runs it.
    intent: Option<i64>,
    task: Task,
}

impl Row {
    const fn standing(&self) -> Standing<'_> {
        let NewTask { owner, expires_at, .. } = &self.task.new;
        Standing { owner, state: self.task.state, expires_at: *expires_at }
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
            found.intent = Some(intent);
            found.task.state = TaskState::Running;
        }
    }

    /// Ends what an intent runs.
    pub(super) fn close(&mut self, closing: &Closing) {
        let ours = |row: &&mut Row| row.intent == Some(closing.intent.0);
        for row in self.rows.values_mut().filter(ours) {
            let (state, result) = ended(closing.task.as_ref());
            row.intent = None;
            row.task.state = state;
            row.task.result = result.map(<[u8]>::to_vec);
            row.task.receipt_id = Some(closing.receipt_id.clone());
            row.task.new.request = Vec::new();
            let until = &mut row.task.new.expires_at;
            *until = fetchable_until(closing.closed_at).max(*until);
        }
    }

    fn create(&mut self, task: NewTask, most: usize) -> Result<(), TaskRefused> {
        if self.rows.contains_key(&task.id) {
            return Err(TaskRefused::NameTaken);
        }
        let now = task.created_at;
        let counts = |row: &&Row| {
            let standing = row.standing();
            *standing.owner == task.owner && !standing.state.is_over() && !standing.is_gone(now)
        };
        if self.rows.values().filter(counts).count() >= most {
            return Err(TaskRefused::TooMany);
        }
        self.forget(now, MAX_PRUNED);
        let task = Task { new: task, state: TaskState::Waiting, result: None, receipt_id: None };
        self.rows.insert(task.new.id.clone(), Row { intent: None, task });
        Ok(())
    }

    /// Forgets at most this many that have expired. Tells how many.
    fn forget(&mut self, now: u64, most: usize) -> u64 {
        let gone = self.rows.iter().filter(|(_, row)| row.standing().is_gone(now));
        let gone: Vec<String> = gone.map(|(id, _)| id.clone()).take(most).collect();
        for id in &gone {
            self.rows.remove(id);
        }
        super::count(gone.len())
    }

    fn cancel(&mut self, id: &str, owner: &PublicKey, now: u64) -> Result<(), TaskRefused> {
        let found = self.rows.get_mut(id).ok_or(TaskRefused::Unknown)?;
        if found.standing().cancel(owner, now)? {
            found.task.state = TaskState::Cancelled;
            found.task.new.request = Vec::new();
        }
        Ok(())
    }
}

#[async_trait]
impl TaskStore for MemoryStore {
    async fn create_task(
        &self,
        task: NewTask,
        most: usize,
    ) -> StoreResult<Result<(), TaskRefused>> {
        Ok(self.state().tasks.create(task, most))
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

    async fn forget_task(&self, id: &str, owner: &PublicKey) -> StoreResult<bool> {
        let rows = &mut self.state().tasks.rows;
        let is_theirs = |row: &Row| row.task.new.owner == *owner && row.task.state.is_over();
        Ok(rows.get(id).is_some_and(is_theirs) && rows.remove(id).is_some())
    }

    async fn tasks_of(
        &self,
        owner: &PublicKey,
        protocol: DiscoveryProtocol,
        now: u64,
        most: usize,
    ) -> StoreResult<Vec<Task>> {
        let state = self.state();
        let theirs = |row: &&Row| {
            row.task.new.protocol == protocol && row.standing().see(owner, now).is_ok()
        };
        let mut found: Vec<&Task> =
            state.tasks.rows.values().filter(theirs).map(|row| &row.task).collect();
        found.sort_by_key(|task| std::cmp::Reverse((task.new.created_at, task.new.id.clone())));
        let listed = found.into_iter().take(most).cloned().map(|mut task| {
            if task.new.request.len() > MAX_LISTED {
                task.new.request = Vec::new();
            }
            task.result = task.result.filter(|result| result.len() <= MAX_LISTED);
            task
        });
        Ok(listed.collect())
    }

    async fn take_numbers(&self, count: u32) -> StoreResult<u64> {
        let mut state = self.state();
        let first = state.tasks.numbers.saturating_add(1);
        state.tasks.numbers = state.tasks.numbers.saturating_add(u64::from(count));
        Ok(first)
    }

    async fn forget_expired(&self, now: u64) -> StoreResult<u64> {
        Ok(self.state().tasks.forget(now, MAX_FORGOTTEN))
    }

    async fn cancel_task(
        &self,
        id: &str,
        owner: &PublicKey,
        now: u64,
    ) -> StoreResult<Result<(), TaskRefused>> {
        Ok(self.state().tasks.cancel(id, owner, now))
    }
}
