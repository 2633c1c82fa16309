//! Tasks in the shared database, by what they have in common.

use async_trait::async_trait;
use chio_core::crypto::PublicKey;
use chio_core::protocol::DiscoveryProtocol;
use chio_kernel::store::{
    MAX_LISTED, MessageQuery, MessageStanding, StoreResult, TaskIndex, TaskPage, TaskQuery,
};
use rusqlite::{Connection, OptionalExtension, params};

use super::SqliteStore;
use super::database::Database;
use super::error::{failed, unreadable};
use super::number::{clamped, count, length};
use super::tasks::{COLUMNS, OPEN_OF_ACCOUNT, read_task};
use crate::bounds::{MAX_FORGOTTEN, MAX_FORGOTTEN_BYTES};

/// Finds a task to forget, however many run beyond their time.
pub(super) const HAS_EXPIRED: &str =
    "SELECT 1 FROM tasks WHERE expires_at <= ?1 AND state <> 'running' LIMIT 1";

/// Finds the task that a message began.
pub(super) const BY_MESSAGE: &str = "SELECT id FROM tasks WHERE message = ?1 AND owner = ?2
    AND (state = 'running' OR expires_at > ?3) LIMIT 1";

/// Finds a conversation of other owners.
pub(super) const FOREIGN_CONTEXT: &str = "SELECT 1 FROM tasks WHERE context = ?1 AND owner <> ?2
    AND (state = 'running' OR expires_at > ?3) LIMIT 1";

/// Finds what shall run.
pub(super) const DUE: &str = "SELECT id, owner FROM tasks WHERE protocol = ?1 AND due_at <= ?2
    AND state = 'waiting' AND due_at IS NOT NULL AND expires_at > ?2 ORDER BY due_at LIMIT ?3";

impl Database {
    /// Forgets at most this many expired tasks, and so few bytes at once that other writers do not
    /// wait long. Tells how many.
    pub(super) fn forget_tasks(&self, now: i64, most: usize) -> StoreResult<u64> {
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
        let sql = "SELECT rowid, size FROM tasks
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
}

/// Whether there is a task to forget.
fn has_expired(database: &Connection, now: u64) -> StoreResult<bool> {
    let mut statement = database.prepare_cached(HAS_EXPIRED).map_err(failed)?;
    statement.exists([clamped(now)]).map_err(failed)
}

/// A message, to be looked up on another thread.
struct Wanted {
    owner: String,
    account: String,
    message: Option<String>,
    context: Option<String>,
    now: i64,
}

fn standing_of(database: &Connection, wanted: &Wanted) -> StoreResult<MessageStanding> {
    let Wanted { owner, account, message, context, now } = wanted;
    let mut known = None;
    if let Some(message) = message {
        let mut statement = database.prepare_cached(BY_MESSAGE).map_err(failed)?;
        let found = statement.query_row(params![message, owner, now], |row| row.get(0));
        known = found.optional().map_err(failed)?;
    }
    let mut foreign_context = false;
    if let Some(context) = context {
        let mut statement = database.prepare_cached(FOREIGN_CONTEXT).map_err(failed)?;
        foreign_context = statement.exists(params![context, owner, now]).map_err(failed)?;
    }
    let mut statement = database.prepare_cached(OPEN_OF_ACCOUNT).map_err(failed)?;
    let open: i64 = statement.query_row(params![account, now], |row| row.get(0)).map_err(failed)?;
    let open = usize::try_from(open).unwrap_or(usize::MAX);
    Ok(MessageStanding { known, foreign_context, open })
}

fn tasks_of(database: &Connection, query: &TaskQuery) -> StoreResult<TaskPage> {
    let mut fits = "owner = ?1 AND protocol = ?2 AND updated_at >= ?3
                    AND (state = 'running' OR expires_at > ?4)"
        .to_owned();
    if let Some(states) = &query.states {
        let states: Vec<String> =
            states.iter().map(|state| format!("'{}'", state.name())).collect();
        fits.push_str(&format!(" AND state IN ({})", states.join(", ")));
    }
    if query.context.is_some() {
        fits.push_str(" AND context = ?5");
    }
    let (owner, protocol) = (query.owner.to_hex(), query.protocol.name());
    let (since, now) = (clamped(query.since), clamped(query.now));
    let sql = format!("SELECT count(*) FROM tasks WHERE {fits} AND ?5 IS ?5");
    let mut statement = database.prepare_cached(&sql).map_err(failed)?;
    let total = statement
        .query_row(params![owner, protocol, since, now, query.context], |row| row.get::<_, i64>(0))
        .map_err(failed)?;
    let (at, id) = match &query.after {
        Some((at, id)) => (clamped(*at), id.as_str()),
        None => (i64::MAX, ""),
    };
    let sql = format!(
        "SELECT {COLUMNS}, x'', CASE WHEN length(result) > {MAX_LISTED} THEN NULL ELSE result END
         FROM tasks WHERE {fits} AND ?5 IS ?5
         AND (updated_at, length(tasks.id), tasks.id) < (?6, length(?7), ?7)
         ORDER BY updated_at DESC, length(tasks.id) DESC, tasks.id DESC LIMIT ?8"
    );
    let mut statement = database.prepare_cached(&sql).map_err(failed)?;
    let wanted = params![owner, protocol, since, now, query.context, at, id, length(query.limit)];
    let mut rows = statement.query(wanted).map_err(failed)?;
    let mut tasks = Vec::new();
    while let Some(row) = rows.next().map_err(failed)? {
        tasks.push(read_task(row)?);
    }
    Ok(TaskPage { tasks, total: usize::try_from(total).unwrap_or(usize::MAX) })
}

fn due_tasks(
    database: &Connection,
    protocol: DiscoveryProtocol,
    now: u64,
    most: usize,
) -> StoreResult<Vec<(String, PublicKey)>> {
    let mut statement = database.prepare_cached(DUE).map_err(failed)?;
    let wanted = params![protocol.name(), clamped(now), length(most)];
    let mut rows = statement.query(wanted).map_err(failed)?;
    let mut due = Vec::new();
    while let Some(row) = rows.next().map_err(failed)? {
        let owner: String = row.get(1).map_err(failed)?;
        let owner = PublicKey::from_hex(&owner)
            .map_err(|error| unreadable("the owner of a task", error))?;
        due.push((row.get(0).map_err(failed)?, owner));
    }
    Ok(due)
}

#[async_trait]
impl TaskIndex for SqliteStore {
    async fn standing_of(&self, message: MessageQuery<'_>) -> StoreResult<MessageStanding> {
        let wanted = Wanted {
            owner: message.owner.to_hex(),
            account: message.account.to_owned(),
            message: message.message.map(str::to_owned),
            context: message.context.map(str::to_owned),
            now: clamped(message.now),
        };
        // Three indexes are looked at sooner than another thread could be asked to.
        if let Some(found) = self.readers.with_idle(|database| standing_of(database, &wanted)) {
            return found;
        }
        self.read(move |database| standing_of(database, &wanted)).await
    }

    async fn tasks_of(&self, query: TaskQuery) -> StoreResult<TaskPage> {
        self.read(move |database| tasks_of(database, &query)).await
    }

    async fn due_tasks(
        &self,
        protocol: DiscoveryProtocol,
        now: u64,
        most: usize,
    ) -> StoreResult<Vec<(String, PublicKey)>> {
        self.read(move |database| due_tasks(database, protocol, now, most)).await
    }

    async fn forget_expired(&self, now: u64) -> StoreResult<u64> {
        // Every kernel asks once in a second, and mostly there is nothing: then nothing is written.
        if !self.read(move |database| has_expired(database, now)).await? {
            return Ok(0);
        }
        let now = clamped(now);
        self.writer.run(move |database| database.forget_tasks(now, MAX_FORGOTTEN)).await
    }
}
