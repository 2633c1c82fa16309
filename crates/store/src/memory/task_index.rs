//! The tasks of this process, by what they have in common.

use async_trait::async_trait;
use chio_core::crypto::PublicKey;
use chio_core::protocol::DiscoveryProtocol;
use chio_kernel::store::{
    MAX_LISTED, MessageQuery, MessageStanding, StoreResult, Task, TaskIndex, TaskPage, TaskQuery,
    TaskState,
};

use super::MemoryStore;
use super::tasks::{Row, Tasks};
use crate::bounds::MAX_FORGOTTEN;

/// What tasks are listed by: when they came into their state, then the numbers in their names.
fn position(task: &Task) -> (u64, usize, &str) {
    (task.updated_at, task.new.id.len(), &task.new.id)
}

impl Tasks {
    /// The rows with these names that are not gone.
    fn rows_of<'a>(&'a self, ids: &'a [String], now: u64) -> impl Iterator<Item = &'a Row> {
        let rows = ids.iter().filter_map(|id| self.rows.get(id));
        rows.filter(move |row| !row.standing().is_gone(now))
    }

    fn standing_of(&self, wanted: &MessageQuery<'_>) -> MessageStanding {
        let MessageQuery { owner, account, message, context, now } = *wanted;
        let known = message.and_then(|message| {
            let mut rows = self.rows_of(self.messages.of(message), now);
            rows.find(|row| row.task.new.owner == *owner).map(|row| row.task.new.id.clone())
        });
        let foreign_context = context.is_some_and(|context| {
            let mut rows = self.rows_of(self.contexts.of(context), now);
            rows.any(|row| row.task.new.owner != *owner)
        });
        MessageStanding { known, foreign_context, open: self.open_of(account, now) }
    }

    fn page(&self, query: &TaskQuery) -> TaskPage {
        let fits = |row: &&Row| {
            let new = &row.task.new;
            new.protocol == query.protocol
                && row.standing().see(&query.owner, query.now).is_ok()
                && row.task.updated_at >= query.since
                && query.states.as_ref().is_none_or(|it| it.contains(&row.task.state))
                && (query.context.is_none() || new.context == query.context)
        };
        let mut found: Vec<&Task> = self.rows.values().filter(fits).map(|row| &row.task).collect();
        let total = found.len();
        found.sort_by(|one, other| position(other).cmp(&position(one)));
        if let Some((at, id)) = &query.after {
            found.retain(|task| position(task) < (*at, id.len(), id));
        }
        let listed = found.into_iter().take(query.limit).cloned().map(|mut task| {
            task.new.request = Vec::new();
            task.result = task.result.filter(|result| result.len() <= MAX_LISTED);
            task
        });
        TaskPage { tasks: listed.collect(), total }
    }

    fn due(&self, protocol: DiscoveryProtocol, now: u64, most: usize) -> Vec<(String, PublicKey)> {
        let waits = |row: &&Row| {
            let task = &row.task;
            let due = task.new.due_at.is_some_and(|due_at| due_at <= now);
            due && task.new.protocol == protocol
                && task.state == TaskState::Waiting
                && !row.standing().is_gone(now)
        };
        let rows = self.open.iter().filter_map(|id| self.rows.get(id));
        let mut due: Vec<&Row> = rows.filter(waits).collect();
        due.sort_by_key(|row| row.task.new.due_at);
        let named = |row: &Row| (row.task.new.id.clone(), row.task.new.owner.clone());
        due.into_iter().take(most).map(named).collect()
    }
}

#[async_trait]
impl TaskIndex for MemoryStore {
    async fn standing_of(&self, message: MessageQuery<'_>) -> StoreResult<MessageStanding> {
        Ok(self.state().tasks.standing_of(&message))
    }

    async fn tasks_of(&self, query: TaskQuery) -> StoreResult<TaskPage> {
        Ok(self.state().tasks.page(&query))
    }

    async fn due_tasks(
        &self,
        protocol: DiscoveryProtocol,
        now: u64,
        most: usize,
    ) -> StoreResult<Vec<(String, PublicKey)>> {
        Ok(self.state().tasks.due(protocol, now, most))
    }

    async fn forget_expired(&self, now: u64) -> StoreResult<u64> {
        Ok(self.state().tasks.forget(now, MAX_FORGOTTEN))
    }
}
