//! Deferred tasks in the shared database.

use async_trait::async_trait;
use chio_core::crypto::PublicKey;
use chio_core::protocol::DiscoveryProtocol;
use chio_kernel::store::{
    Closing, MAX_LISTED, NewTask, StoreResult, Task, TaskClaim, TaskRefused, TaskState, TaskStore,
};
use rusqlite::{Connection, Row, params};

use super::SqliteStore;
use super::database::Database;
use super::error::{failed, unreadable};
use super::number::{clamped, count, length};
use crate::bounds::{MAX_FORGOTTEN, MAX_FORGOTTEN_BYTES, MAX_PRUNED};
use crate::tasks::{Standing, ended, fetchable_until};

const STATES: [TaskState; 5] = [
    TaskState::Waiting,
    TaskState::Running,
    TaskState::Completed,
    TaskState::Failed,
    TaskState::Cancelled,
];

/// Finds a task to forget, however many run beyond their time.
pub(super) const HAS_EXPIRED: &str =
    "SELECT 1 FROM tasks WHERE expires_at <= ?1 AND state <> 'running' LIMIT 1";

/// What the database says of a task's standing.
struct Found {
    owner: PublicKey,
    state: TaskState,
    expires_at: u64,
}

impl Found {
    /// From the columns `owner`, `state` and `expires_at`.
    fn read(row: &Row<'_>) -> StoreResult<Self> {
        let owner: String = row.get(0).map_err(failed)?;
        let state: String = row.get(1).map_err(failed)?;
        let state = STATES.into_iter().find(|known| known.name() == state);
        Ok(Self {
            owner: PublicKey::from_hex(&owner)
                .map_err(|error| unreadable("the owner of a task", error))?,
            state: state.ok_or_else(|| unreadable("the state of a task", "it is none we know"))?,
            expires_at: count(row.get(2).map_err(failed)?)?,
        })
    }

    const fn standing(&self) -> Standing<'_> {
        Standing { owner: &self.owner, state: self.state, expires_at: self.expires_at }
    }
}

impl Database {
    fn task_standing(&self, id: &str) -> StoreResult<Option<Found>> {
        let sql = "SELECT owner, state, expires_at FROM tasks WHERE id = ?1";
        let mut statement = self.connection().prepare_cached(sql).map_err(failed)?;
        let mut rows = statement.query([id]).map_err(failed)?;
        rows.next().map_err(failed)?.map(Found::read).transpose()
    }

    /// Why this claim cannot be met, if so. Nothing is written.
    pub(crate) fn look_at_task(&self, claim: &TaskClaim) -> StoreResult<Result<(), TaskRefused>> {
        let found = self.task_standing(&claim.id)?;
        let claimed = |found: Found| found.standing().claim(&claim.owner, claim.now);
        Ok(found.map_or(Err(TaskRefused::Unknown), claimed))
    }

    /// Lets an intent run a task that was looked at.
    pub(crate) fn claim_task(&self, intent: i64, claim: &TaskClaim) -> StoreResult<()> {
        let sql = "UPDATE tasks SET state = 'running', intent = ?2 WHERE id = ?1";
        self.without_trace(|| self.execute(sql, params![claim.id, intent]).map(drop))
    }

    /// Ends what an intent runs.
    pub(crate) fn close_task(&self, closing: &Closing) -> StoreResult<()> {
        let (state, result) = ended(closing.task.as_ref());
        self.without_trace(|| {
            self.execute(
                "UPDATE tasks SET state = ?2, result = ?3, receipt_id = ?4, request = x'',
                 intent = NULL, expires_at = max(expires_at, ?5) WHERE intent = ?1",
                params![
                    closing.intent.0,
                    state.name(),
                    result,
                    closing.receipt_id,
                    clamped(fetchable_until(closing.closed_at))
                ],
            )
            .map(drop)
        })
    }

    /// Has the database overwrite what it moves or removes meanwhile. Requests carry tokens, which
    /// must not lie about in unused pages; for all the rest that would only cost time.
    /// What the write-ahead log still has goes when it begins anew.
    fn without_trace<T>(&self, write: impl FnOnce() -> StoreResult<T>) -> StoreResult<T> {
        let overwrite = |how| self.connection().pragma_update(None, "secure_delete", how);
        overwrite("on").map_err(failed)?;
        let written = write();
        overwrite("off").map_err(failed)?;
        written
    }

    /// Takes a task on, and forgets some that have expired.
    fn create_task(&self, task: &NewTask, most: usize) -> StoreResult<Result<(), TaskRefused>> {
        if self.exists("SELECT 1 FROM tasks WHERE id = ?1", [&task.id])? {
            return Ok(Err(TaskRefused::NameTaken));
        }
        let (owner, now) = (task.owner.to_hex(), clamped(task.created_at));
        let sql = "SELECT count(*) FROM tasks WHERE owner = ?1
                   AND state IN ('waiting', 'running') AND (state = 'running' OR expires_at > ?2)";
        let open = self.number(sql, params![owner, now])?;
        if open >= length(most) {
            return Ok(Err(TaskRefused::TooMany));
        }
        self.forget_tasks(now, MAX_PRUNED)?;
        self.without_trace(|| self.insert_task(task))?;
        Ok(Ok(()))
    }

    /// Forgets at most this many expired tasks, and so few bytes at once that other writers do not
    /// wait long. Tells how many.
    fn forget_tasks(&self, now: i64, most: usize) -> StoreResult<u64> {
        let gone = self.expired_tasks(now, most)?;
        if gone.is_empty() {
            return Ok(0);
        }
        self.without_trace(|| {
            for row in &gone {
                self.execute("DELETE FROM tasks WHERE rowid = ?1", [row])?;
            }
            Ok(())
        })?;
        count(length(gone.len()))
    }

    /// The rows of those that are forgotten next.
    fn expired_tasks(&self, now: i64, most: usize) -> StoreResult<Vec<i64>> {
        let sql = "SELECT rowid, length(request) + coalesce(length(result), 0) FROM tasks
                   WHERE expires_at <= ?1 AND state <> 'running' ORDER BY expires_at LIMIT ?2";
        let mut statement = self.connection().prepare_cached(sql).map_err(failed)?;
        let mut rows = statement.query([now, length(most)]).map_err(failed)?;
        let (mut gone, mut size) = (Vec::new(), 0_u64);
        while let Some(row) = rows.next().map_err(failed)? {
            size = size.saturating_add(count(row.get(1).map_err(failed)?)?);
            if size > MAX_FORGOTTEN_BYTES && !gone.is_empty() {
                break;
            }
            gone.push(row.get(0).map_err(failed)?);
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

    fn insert_task(&self, task: &NewTask) -> StoreResult<()> {
        self.execute(
            "INSERT INTO tasks(id, owner, protocol, server_id, request, created_at, expires_at,
             state) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'waiting')",
            params![
                task.id,
                task.owner.to_hex(),
                task.protocol.name(),
                task.server_id,
                task.request,
                clamped(task.created_at),
                clamped(task.expires_at)
            ],
        )
        .map(drop)
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
                let sql = "UPDATE tasks SET state = 'cancelled', request = x'' WHERE id = ?1";
                self.without_trace(|| self.execute(sql, [id]))?;
            }
        }
        Ok(Ok(()))
    }
}

/// Whether there is a task to forget.
fn has_expired(database: &Connection, now: u64) -> StoreResult<bool> {
    let mut statement = database.prepare_cached(HAS_EXPIRED).map_err(failed)?;
    statement.exists([clamped(now)]).map_err(failed)
}

/// What a task is read from.
const COLUMNS: &str = "owner, state, expires_at, protocol, server_id, request, created_at, result, \
                       receipt_id, id";

/// A task from its columns, unless this owner does not see it.
fn read_task(row: &Row<'_>, owner: &PublicKey, now: u64) -> StoreResult<Result<Task, TaskRefused>> {
    let found = Found::read(row)?;
    if let Err(refused) = found.standing().see(owner, now) {
        return Ok(Err(refused));
    }
    let protocol: String = row.get(3).map_err(failed)?;
    let protocol = DiscoveryProtocol::ALL.into_iter().find(|known| known.name() == protocol);
    let new = NewTask {
        id: row.get(9).map_err(failed)?,
        owner: found.owner,
        protocol: protocol
            .ok_or_else(|| unreadable("the protocol of a task", "it is none we know"))?,
        server_id: row.get(4).map_err(failed)?,
        request: row.get(5).map_err(failed)?,
        created_at: count(row.get(6).map_err(failed)?)?,
        expires_at: found.expires_at,
    };
    let (result, receipt_id) = (row.get(7).map_err(failed)?, row.get(8).map_err(failed)?);
    Ok(Ok(Task { new, state: found.state, result, receipt_id }))
}

fn task(
    database: &Connection,
    id: &str,
    owner: &PublicKey,
    now: u64,
) -> StoreResult<Result<Task, TaskRefused>> {
    let sql = format!("SELECT {COLUMNS} FROM tasks WHERE id = ?1");
    let mut statement = database.prepare_cached(&sql).map_err(failed)?;
    let mut rows = statement.query([id]).map_err(failed)?;
    let Some(row) = rows.next().map_err(failed)? else { return Ok(Err(TaskRefused::Unknown)) };
    read_task(row, owner, now)
}

fn tasks_of(
    database: &Connection,
    (owner, protocol): (&PublicKey, DiscoveryProtocol),
    now: u64,
    most: usize,
) -> StoreResult<Vec<Task>> {
    let sql = format!(
        "SELECT owner, state, expires_at, protocol, server_id,
         CASE WHEN length(request) > {MAX_LISTED} THEN x'' ELSE request END, created_at,
         CASE WHEN length(result) > {MAX_LISTED} THEN NULL ELSE result END, receipt_id, id
         FROM tasks WHERE owner = ?1 AND protocol = ?2
         AND (state = 'running' OR expires_at > ?3) ORDER BY created_at DESC, id DESC LIMIT ?4"
    );
    let mut statement = database.prepare_cached(&sql).map_err(failed)?;
    let wanted = params![owner.to_hex(), protocol.name(), clamped(now), length(most)];
    let mut rows = statement.query(wanted).map_err(failed)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(failed)? {
        found.extend(read_task(row, owner, now)?.ok());
    }
    Ok(found)
}

#[async_trait]
impl TaskStore for SqliteStore {
    async fn create_task(
        &self,
        task: NewTask,
        most: usize,
    ) -> StoreResult<Result<(), TaskRefused>> {
        self.writer.run(move |database| database.create_task(&task, most)).await
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

    async fn forget_task(&self, id: &str, owner: &PublicKey) -> StoreResult<bool> {
        let (id, owner) = (id.to_owned(), owner.to_hex());
        let sql = "DELETE FROM tasks WHERE id = ?1 AND owner = ?2
                   AND state IN ('completed', 'failed', 'cancelled')";
        self.writer
            .run(move |database| {
                database.without_trace(|| database.execute(sql, [&id, &owner]).map(|rows| rows > 0))
            })
            .await
    }

    async fn tasks_of(
        &self,
        owner: &PublicKey,
        protocol: DiscoveryProtocol,
        now: u64,
        most: usize,
    ) -> StoreResult<Vec<Task>> {
        let owner = owner.clone();
        self.read(move |database| tasks_of(database, (&owner, protocol), now, most)).await
    }

    async fn take_numbers(&self, count: u32) -> StoreResult<u64> {
        self.writer.run(move |database| database.take_numbers(count)).await
    }

    async fn forget_expired(&self, now: u64) -> StoreResult<u64> {
        // Every kernel asks once in a second, and mostly there is nothing: then nothing is written.
        if !self.read(move |database| has_expired(database, now)).await? {
            return Ok(0);
        }
        let now = clamped(now);
        self.writer.run(move |database| database.forget_tasks(now, MAX_FORGOTTEN)).await
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
}
