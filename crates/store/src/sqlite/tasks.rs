//! Tasks in the shared database, one by one.

use async_trait::async_trait;
use chio_core::crypto::PublicKey;
use chio_core::protocol::DiscoveryProtocol;
use chio_kernel::store::{
    CallTask, Closing, EndedTask, NewTask, StoreResult, Task, TaskClaim, TaskQuota, TaskReceipt,
    TaskRefused, TaskState, TaskStore,
};
use rusqlite::{Connection, Row, params};

use super::SqliteStore;
use super::database::Database;
use super::error::{failed, unreadable};
use super::number::{clamped, count, length};
use crate::bounds::MAX_PRUNED;
use crate::tasks::{Standing, Unlooked, ended, gone_at, size_of};

/// The most owners whose quotas are followed at once.
const MAX_FOLLOWED: usize = 4096;

/// Counts the tasks of an account that are not over.
pub(super) const OPEN_OF_ACCOUNT: &str = "SELECT count(*) FROM tasks WHERE account = ?1
    AND state IN ('waiting', 'running', 'asking') AND (state = 'running' OR expires_at > ?2)";

/// Tasks of an owner on a protocol that are over.
const OVER: &str = "owner = ?1 AND protocol = ?2
    AND state IN ('completed', 'failed', 'rejected', 'cancelled')";

/// What the database says of a task's standing.
struct Found {
    owner: PublicKey,
    state: TaskState,
    expires_at: u64,
    kept_for: u64,
    /// The bytes of its record.
    record: u64,
}

impl Found {
    const fn standing(&self) -> Standing<'_> {
        Standing { owner: &self.owner, state: self.state, expires_at: self.expires_at }
    }
}

fn owner(row: &Row<'_>, column: usize) -> StoreResult<PublicKey> {
    let owner: String = row.get(column).map_err(failed)?;
    PublicKey::from_hex(&owner).map_err(|error| unreadable("the owner of a task", error))
}

fn state(row: &Row<'_>, column: usize) -> StoreResult<TaskState> {
    let name: String = row.get(column).map_err(failed)?;
    let known = TaskState::ALL.into_iter().find(|known| known.name() == name);
    known.ok_or_else(|| unreadable("the state of a task", "it is none we know"))
}

/// How a task is when it is written first.
struct Written<'a> {
    state: TaskState,
    updated_at: u64,
    intent: Option<i64>,
    receipt: Option<(&'a str, i64)>,
    result: Option<&'a [u8]>,
}

impl Database {
    fn task_standing(&self, id: &str) -> StoreResult<Option<Found>> {
        let sql = "SELECT owner, state, expires_at, kept_for, length(record) FROM tasks
                   WHERE id = ?1";
        let mut statement = self.connection().prepare_cached(sql).map_err(failed)?;
        let mut rows = statement.query([id]).map_err(failed)?;
        let Some(row) = rows.next().map_err(failed)? else { return Ok(None) };
        Ok(Some(Found {
            owner: owner(row, 0)?,
            state: state(row, 1)?,
            expires_at: count(row.get(2).map_err(failed)?)?,
            kept_for: count(row.get(3).map_err(failed)?)?,
            record: count(row.get(4).map_err(failed)?)?,
        }))
    }

    /// Why this claim cannot be met, if so. Nothing is written.
    pub(crate) fn look_at_task(&self, claim: &TaskClaim) -> StoreResult<Result<(), TaskRefused>> {
        let found = self.task_standing(&claim.id)?;
        let claimed = |found: Found| found.standing().claim(&claim.owner, claim.now);
        Ok(found.map_or(Err(TaskRefused::Unknown), claimed))
    }

    /// Lets an intent run a task that was looked at.
    pub(crate) fn claim_task(&self, intent: i64, claim: &TaskClaim) -> StoreResult<()> {
        let sql = "UPDATE tasks SET state = 'running', intent = ?2, updated_at = ?3 WHERE id = ?1";
        let claimed = params![claim.id, intent, clamped(claim.now)];
        self.without_trace(|| self.execute(sql, claimed).map(drop))
    }

    /// Keeps the task of a call that runs with this intent.
    pub(crate) fn begin_task(&mut self, intent: i64, task: &CallTask) -> StoreResult<()> {
        let (state, updated_at) = (TaskState::Running, task.new.created_at);
        let intent = Some(intent);
        let written = Written { state, updated_at, intent, receipt: None, result: None };
        self.insert_task(&task.new, task.new.expires_at, &written)?;
        self.keep_within(&task.new, &task.quota, size_of(&task.new, None))
    }

    /// Ends what an intent runs, with the receipt in this entry.
    pub(crate) fn close_task(&self, closing: &Closing, entry: i64) -> StoreResult<()> {
        let sql = "SELECT expires_at, kept_for, length(record), id FROM tasks WHERE intent = ?1";
        let mut statement = self.connection().prepare_cached(sql).map_err(failed)?;
        let mut rows = statement.query([closing.intent.0]).map_err(failed)?;
        let Some(row) = rows.next().map_err(failed)? else { return Ok(()) };
        let expires_at = count(row.get(0).map_err(failed)?)?;
        let kept_for = count(row.get(1).map_err(failed)?)?;
        let (record, id): (i64, String) =
            (row.get(2).map_err(failed)?, row.get(3).map_err(failed)?);
        let (state, result) = ended(closing.task.as_ref());
        let gone_at = gone_at(state, closing.closed_at, expires_at, kept_for);
        let size = record.saturating_add(length(result.map_or(0, <[u8]>::len)));
        self.without_trace(|| {
            self.execute(
                "UPDATE tasks SET state = ?2, result = ?3, receipt_id = ?4, entry = ?5, size = ?6,
                 expires_at = ?7, updated_at = ?8, request = x'', intent = NULL WHERE id = ?1",
                params![
                    id,
                    state.name(),
                    result,
                    closing.receipt_id,
                    entry,
                    size,
                    clamped(gone_at),
                    clamped(closing.closed_at)
                ],
            )
            .map(drop)
        })
    }

    /// Keeps the task of a call that has ended, with the receipt in this entry.
    pub(crate) fn keep_task(&mut self, ended_task: &EndedTask, entry: i64) -> StoreResult<()> {
        let EndedTask { task, end, receipt_id, ended_at } = ended_task;
        let (state, result) = ended(Some(end));
        let gone_at = gone_at(state, *ended_at, task.new.expires_at, task.new.kept_for);
        let receipt = Some((receipt_id.as_str(), entry));
        let written = Written { state, updated_at: *ended_at, intent: None, receipt, result };
        self.insert_task(&task.new, gone_at, &written)?;
        self.keep_within(&task.new, &task.quota, size_of(&task.new, result))
    }

    /// Has the database overwrite what it moves or removes meanwhile. Requests carry tokens, which
    /// must not lie about in unused pages; for all the rest that would only cost time.
    /// What the write-ahead log still has goes when it begins anew.
    pub(super) fn without_trace<T>(
        &self,
        write: impl FnOnce() -> StoreResult<T>,
    ) -> StoreResult<T> {
        let overwrite = |how| self.connection().pragma_update(None, "secure_delete", how);
        overwrite("on").map_err(failed)?;
        let written = write();
        overwrite("off").map_err(failed)?;
        written
    }

    /// Takes a task on, and forgets some that have expired.
    fn create_task(
        &mut self,
        task: &NewTask,
        quota: &TaskQuota,
    ) -> StoreResult<Result<(), TaskRefused>> {
        if self.exists("SELECT 1 FROM tasks WHERE id = ?1", [&task.id])? {
            return Ok(Err(TaskRefused::NameTaken));
        }
        let now = clamped(task.created_at);
        if self.number(OPEN_OF_ACCOUNT, params![task.account, now])? >= length(quota.open) {
            return Ok(Err(TaskRefused::TooMany));
        }
        self.forget_tasks(now, MAX_PRUNED)?;
        let (state, updated_at) = (TaskState::Waiting, task.created_at);
        let written = Written { state, updated_at, intent: None, receipt: None, result: None };
        self.without_trace(|| self.insert_task(task, task.expires_at, &written))?;
        self.keep_within(task, quota, size_of(task, None))?;
        Ok(Ok(()))
    }

    /// Writes a task. One whose name is taken is not: no receipt fails for that.
    fn insert_task(
        &self,
        task: &NewTask,
        expires_at: u64,
        written: &Written<'_>,
    ) -> StoreResult<()> {
        let (receipt_id, entry) = written.receipt.unzip();
        let sql = "INSERT INTO tasks(id, owner, account, protocol, server_id, context, message,
            due_at, created_at, expires_at, kept_for, updated_at, state, size, receipt_id, entry,
            intent, record, request, result)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
            ?18, ?19, ?20) ON CONFLICT(id) DO NOTHING";
        self.execute(
            sql,
            params![
                task.id,
                task.owner.to_hex(),
                task.account,
                task.protocol.name(),
                task.server_id,
                task.context,
                task.message,
                task.due_at.map(clamped),
                clamped(task.created_at),
                clamped(expires_at),
                clamped(task.kept_for),
                clamped(written.updated_at),
                written.state.name(),
                clamped(size_of(task, written.result)),
                receipt_id,
                entry,
                written.intent,
                task.record,
                task.request,
                written.result
            ],
        )
        .map(drop)
    }

    /// Looks at an owner's quota now and then: the oldest tasks that are over make room. Their
    /// receipts stay, as all do.
    fn keep_within(&mut self, task: &NewTask, quota: &TaskQuota, bytes: u64) -> StoreResult<()> {
        if quota.ended == usize::MAX && quota.bytes == u64::MAX {
            return Ok(());
        }
        let owner = task.owner.to_hex();
        if self.unlooked.len() >= MAX_FOLLOWED && !self.unlooked.contains_key(&owner) {
            self.unlooked.clear();
        }
        // An owner that was not followed may have too many already.
        let is_time = match self.unlooked.get_mut(&owner) {
            Some(unlooked) => unlooked.note(quota, bytes),
            None => self.unlooked.insert(owner.clone(), Unlooked::default()).is_none(),
        };
        if !is_time {
            return Ok(());
        }
        for row in self.too_many(&owner, task.protocol.name(), quota)? {
            self.execute("DELETE FROM tasks WHERE rowid = ?1", [row])?;
        }
        Ok(())
    }

    /// The rows of the oldest tasks of an owner that are over, as far as there are too many.
    fn too_many(&self, owner: &str, protocol: &str, quota: &TaskQuota) -> StoreResult<Vec<i64>> {
        let sum = format!("SELECT count(*), coalesce(sum(size), 0) FROM tasks WHERE {OVER}");
        let mut statement = self.connection().prepare_cached(&sum).map_err(failed)?;
        let found = statement.query_row([owner, protocol], |row| Ok((row.get(0)?, row.get(1)?)));
        let (mut tasks, mut bytes): (i64, i64) = found.map_err(failed)?;
        let (most, most_bytes) = (length(quota.ended), clamped(quota.bytes));
        let oldest = format!("SELECT rowid, size FROM tasks WHERE {OVER} ORDER BY updated_at");
        let mut statement = self.connection().prepare_cached(&oldest).map_err(failed)?;
        let mut rows = statement.query([owner, protocol]).map_err(failed)?;
        let mut gone = Vec::new();
        while tasks > most || (tasks > 1 && bytes > most_bytes) {
            let Some(row) = rows.next().map_err(failed)? else { break };
            gone.push(row.get(0).map_err(failed)?);
            tasks -= 1;
            bytes = bytes.saturating_sub(row.get(1).map_err(failed)?);
        }
        Ok(gone)
    }

    /// Numbers never given out before. The store keeps count: its next user goes on after them.
    fn take_numbers(&self, count_of: u32) -> StoreResult<u64> {
        let sql = "INSERT INTO meta VALUES ('numbers', ?1)
                   ON CONFLICT(key) DO UPDATE SET value = value + ?1 RETURNING value";
        let last = count(self.number(sql, [count_of])?)?;
        Ok(last.saturating_sub(u64::from(count_of)).saturating_add(1))
    }

    fn answer_task(&self, answer: &NewTask) -> StoreResult<Result<(), TaskRefused>> {
        let now = answer.created_at;
        let Some(found) = self.task_standing(&answer.id)? else {
            return Ok(Err(TaskRefused::Unknown));
        };
        if let Err(refused) = found.standing().answer(&answer.owner, now) {
            return Ok(Err(refused));
        }
        let sql =
            "UPDATE tasks SET state = 'waiting', updated_at = ?2, server_id = ?3, due_at = ?4,
                   size = ?5, record = ?6, request = ?7, result = NULL WHERE id = ?1";
        let size = clamped(size_of(answer, None));
        let due_at = answer.due_at.map(clamped);
        let (record, request) = (&answer.record, &answer.request);
        let written =
            params![answer.id, clamped(now), answer.server_id, due_at, size, record, request];
        self.without_trace(|| self.execute(sql, written))?;
        Ok(Ok(()))
    }

    fn cancel_task(
        &self,
        id: &str,
        owner: &PublicKey,
        now: u64,
    ) -> StoreResult<Result<(), TaskRefused>> {
        let Some(found) = self.task_standing(id)? else { return Ok(Err(TaskRefused::Unknown)) };
        match found.standing().cancel(owner, now) {
            Err(refused) => return Ok(Err(refused)),
            Ok(false) => {}
            Ok(true) => {
                let gone_at = match found.kept_for {
                    0 => found.expires_at,
                    kept_for => now.saturating_add(kept_for),
                };
                let sql = "UPDATE tasks SET state = 'cancelled', updated_at = ?2, expires_at = ?3,
                           size = ?4, request = x'', result = NULL WHERE id = ?1";
                let written = params![id, clamped(now), clamped(gone_at), clamped(found.record)];
                self.without_trace(|| self.execute(sql, written))?;
            }
        }
        Ok(Ok(()))
    }
}

/// What a task is read from, but for what is long.
pub(super) const COLUMNS: &str = "owner, state, expires_at, protocol, server_id, account, context, \
    message, due_at, created_at, kept_for, updated_at, receipt_id, \
    (SELECT body FROM entries WHERE entries.id = tasks.entry), tasks.id, record";

/// A task from its columns, then its request and its result.
pub(super) fn read_task(row: &Row<'_>) -> StoreResult<Task> {
    let protocol: String = row.get(3).map_err(failed)?;
    let protocol = DiscoveryProtocol::ALL.into_iter().find(|known| known.name() == protocol);
    let due_at: Option<i64> = row.get(8).map_err(failed)?;
    let new = NewTask {
        id: row.get(14).map_err(failed)?,
        owner: owner(row, 0)?,
        account: row.get(5).map_err(failed)?,
        protocol: protocol
            .ok_or_else(|| unreadable("the protocol of a task", "it is none we know"))?,
        server_id: row.get(4).map_err(failed)?,
        context: row.get(6).map_err(failed)?,
        message: row.get(7).map_err(failed)?,
        request: row.get(16).map_err(failed)?,
        record: row.get(15).map_err(failed)?,
        due_at: due_at.map(count).transpose()?,
        created_at: count(row.get(9).map_err(failed)?)?,
        expires_at: count(row.get(2).map_err(failed)?)?,
        kept_for: count(row.get(10).map_err(failed)?)?,
    };
    let (id, body): (Option<String>, _) =
        (row.get(12).map_err(failed)?, row.get(13).map_err(failed)?);
    Ok(Task {
        new,
        state: state(row, 1)?,
        updated_at: count(row.get(11).map_err(failed)?)?,
        result: row.get(17).map_err(failed)?,
        receipt: id.map(|id| TaskReceipt { id, body }),
    })
}

fn task(
    database: &Connection,
    id: &str,
    owner: &PublicKey,
    now: u64,
) -> StoreResult<Result<Task, TaskRefused>> {
    let sql = format!("SELECT {COLUMNS}, request, result FROM tasks WHERE id = ?1");
    let mut statement = database.prepare_cached(&sql).map_err(failed)?;
    let mut rows = statement.query([id]).map_err(failed)?;
    let Some(row) = rows.next().map_err(failed)? else { return Ok(Err(TaskRefused::Unknown)) };
    let task = read_task(row)?;
    let NewTask { owner: of, expires_at, .. } = &task.new;
    let standing = Standing { owner: of, state: task.state, expires_at: *expires_at };
    Ok(standing.see(owner, now).map(|()| task))
}

#[async_trait]
impl TaskStore for SqliteStore {
    async fn create_task(
        &self,
        task: NewTask,
        quota: TaskQuota,
    ) -> StoreResult<Result<(), TaskRefused>> {
        self.writer.run(move |database| database.create_task(&task, &quota)).await
    }

    async fn task(
        &self,
        id: &str,
        owner: &PublicKey,
        now: u64,
    ) -> StoreResult<Result<Task, TaskRefused>> {
        let (id, owner) = (id.to_owned(), owner.clone());
        self.read(move |database| task(database, &id, &owner, now)).await
    }

    async fn answer_task(&self, answer: NewTask) -> StoreResult<Result<(), TaskRefused>> {
        self.writer.run(move |database| database.answer_task(&answer)).await
    }

    async fn cancel_task(
        &self,
        id: &str,
        owner: &PublicKey,
        now: u64,
    ) -> StoreResult<Result<(), TaskRefused>> {
        let (id, owner) = (id.to_owned(), owner.clone());
        self.writer.run(move |database| database.cancel_task(&id, &owner, now)).await
    }

    async fn take_numbers(&self, count: u32) -> StoreResult<u64> {
        self.writer.run(move |database| database.take_numbers(count)).await
    }
}
