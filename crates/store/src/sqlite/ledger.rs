//! The log of one kernel in the shared database.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;
use chio_core::canonical;
use chio_core::checkpoint::{KernelCheckpoint, log_id};
use chio_core::crypto::PublicKey;
use chio_core::mark::Mark;
use chio_kernel::store::{
    Abandoned, Appended, Entry, IntentId, Ledger, OpenIntent, Opened, Opening, Reservation,
    Reserved, StoreError, StoreResult, Uncovered,
};
use rusqlite::Connection;

use super::database::{CheckpointRow, ReservationRow};
use super::error::{failed, unreadable};
use super::number::{LAST_PLACE, clamped, count, joined, split};
use super::opening::OpeningRow;
use super::{SqliteStore, read};
use crate::blocking::blocking;
use crate::key_in_use::use_key;
use crate::keys::Lock;

/// A log that this process may write. Each request holds on to it, so that the lock outlives what
/// is queued.
#[derive(Debug)]
pub(crate) struct LogHandle {
    pub(crate) number: i64,
    pub(crate) log_id: String,
    /// Its last entry that is durable, as far as this process has been told.
    durable: AtomicU64,
    /// Its last entry that the index has, as far as this process has looked.
    indexed: AtomicU64,
    /// Whether its writer waits for the index. Not before the index was close for the first time:
    /// to make one again for a long log takes a while.
    paced: AtomicBool,
    /// No other kernel can write the log while these are held.
    _locks: [Lock; 2],
}

impl LogHandle {
    /// A log with this many entries.
    pub(crate) fn new(number: i64, log_id: String, entries: u64, locks: [Lock; 2]) -> Self {
        let (durable, indexed) = (AtomicU64::new(entries), AtomicU64::new(0));
        let paced = AtomicBool::new(false);
        Self { number, log_id, durable, indexed, paced, _locks: locks }
    }

    /// Notes that the log is durable up to here.
    pub(crate) fn note_durable(&self, seq: u64) {
        self.durable.fetch_max(seq, Ordering::Relaxed);
    }

    /// Whether the index is behind by more than this and the writer should wait.
    pub(crate) fn is_ahead(&self, most: u64) -> bool {
        self.lag() > most && self.paced.load(Ordering::Relaxed)
    }

    /// Entries that the index does not have yet.
    pub(crate) fn lag(&self) -> u64 {
        let durable = self.durable.load(Ordering::Relaxed);
        durable.saturating_sub(self.indexed.load(Ordering::Relaxed))
    }

    /// Notes how far the index is; from when it is this close, the writer waits for it. Tells
    /// whether it got on.
    pub(crate) fn note_indexed(&self, seq: u64, close: u64) -> bool {
        let advanced = self.indexed.fetch_max(seq, Ordering::Relaxed) < seq;
        if self.lag() <= close {
            self.paced.store(true, Ordering::Relaxed);
        }
        advanced
    }
}

/// Writes a log and settles in the shared tables.
pub(crate) struct SqliteLedger {
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) log: Arc<LogHandle>,
}

#[async_trait]
impl Ledger for SqliteLedger {
    async fn open(&self, opening: Opening) -> StoreResult<Opened> {
        let row = OpeningRow::new(opening)?;
        let log = Arc::clone(&self.log);
        self.store.writer.run(move |database| database.open(log.number, &row)).await
    }

    async fn reserve(&self, reservation: Reservation) -> StoreResult<Reserved> {
        if reservation.alternatives.is_empty() {
            return Err(crate::no_alternative());
        }
        let body = serde_json::to_vec(&reservation)
            .map_err(|error| StoreError::Refused(format!("an intent has no form: {error}")))?;
        let Reservation { alternatives, authority, resumes, proofs, approval, task, .. } =
            reservation;
        let row = ReservationRow { body, alternatives, authority, resumes, proofs, approval, task };
        let log = Arc::clone(&self.log);
        self.store.writer.run(move |database| database.reserve(log.number, &row)).await
    }

    async fn append(&self, entry: Entry) -> StoreResult<Appended> {
        self.store.index_backpressure.wait_for_index(&self.log).await;
        let log = Arc::clone(&self.log);
        let append =
            move |database: &mut super::database::Database| database.append(log.number, &entry);
        let appended = self.store.writer.run(append).await?;
        if let Appended::At(seq) = appended {
            self.log.note_durable(seq);
        }
        Ok(appended)
    }

    async fn checkpoint(&self, checkpoint: KernelCheckpoint) -> StoreResult<()> {
        if log_id(&checkpoint.body.kernel_key) != self.log.log_id {
            return Err(crate::foreign_checkpoint());
        }
        let body = canonical::to_vec(&checkpoint)
            .map_err(|error| StoreError::Refused(format!("a checkpoint has no form: {error}")))?;
        let (seq, end_seq) = (checkpoint.body.checkpoint_seq, checkpoint.body.batch_end_seq);
        let row = CheckpointRow { seq, end_seq, body };
        let log = Arc::clone(&self.log);
        self.store.writer.run(move |database| database.checkpoint(log.number, &row)).await
    }

    async fn keep_mark(&self, mark: Mark) -> StoreResult<bool> {
        let keys = Arc::clone(&self.store.keys);
        blocking(move || keys.keep_mark(&mark)).await
    }

    async fn check_present(&self) -> StoreResult<()> {
        let store = Arc::clone(&self.store);
        blocking(move || {
            store.reserve.keep_later();
            store.check_present()
        })
        .await
    }

    async fn open_intents(&self) -> StoreResult<Vec<OpenIntent>> {
        let (store, log) = (Arc::clone(&self.store), self.log.number);
        blocking(move || store.readers.with(|database| open_intents(database, log))).await
    }

    async fn abandoned(&self) -> StoreResult<Vec<Abandoned>> {
        let (store, log) = (Arc::clone(&self.store), self.log.number);
        blocking(move || abandoned(&store, log)).await
    }

    async fn uncovered(&self) -> StoreResult<Vec<Uncovered>> {
        let (store, log) = (Arc::clone(&self.store), self.log.number);
        blocking(move || uncovered(&store, log)).await
    }
}

fn open_intents(database: &Connection, log: i64) -> StoreResult<Vec<OpenIntent>> {
    let sql = "SELECT id, chosen, body, waits FROM intents WHERE id BETWEEN ?1 AND ?2 ORDER BY id";
    let mut statement = database.prepare_cached(sql).map_err(failed)?;
    let range = [joined(log, 0), joined(log, LAST_PLACE)];
    let mut rows = statement.query(range).map_err(failed)?;
    let mut intents = Vec::new();
    while let Some(row) = rows.next().map_err(failed)? {
        let body = row.get_ref(2).map_err(failed)?;
        let body = body.as_bytes().map_err(|error| unreadable("an intent", error))?;
        let reservation =
            serde_json::from_slice(body).map_err(|error| unreadable("an intent", error))?;
        let id = IntentId(row.get(0).map_err(failed)?);
        let chosen: i64 = row.get(1).map_err(failed)?;
        let alternative =
            usize::try_from(chosen).map_err(|error| unreadable("an intent", error))?;
        let waits: bool = row.get(3).map_err(failed)?;
        intents.push(OpenIntent { id, reservation, alternative, reserved: !waits });
    }
    Ok(intents)
}

/// Finds logs with open intents that no kernel writes, and locks them.
fn abandoned(store: &SqliteStore, own: i64) -> StoreResult<Vec<Abandoned>> {
    let logs = store.readers.with(|database| logs_with_intents(database, own))?;
    let mut abandoned = Vec::new();
    for (number, kernel_key) in logs {
        // Kernels of earlier versions lock only their slot.
        let Some(slot) = store.keys.try_lock(&kernel_key, false)? else { continue };
        let Some(log) = store.folder.try_lock_log(&kernel_key)? else { continue };
        // Read again: its kernel may have closed some before it gave the lock back.
        let intents = store.readers.with(|database| open_intents(database, number))?;
        if !intents.is_empty() {
            let (log_id, lock) = (log_id(&kernel_key), Box::new((slot, log)));
            abandoned.push(Abandoned { log_id, intents, lock });
        }
    }
    Ok(abandoned)
}

/// Finds logs with entries that no checkpoint covers, whose kernels run no more and have their keys
/// here, and locks them.
fn uncovered(store: &Arc<SqliteStore>, own: i64) -> StoreResult<Vec<Uncovered>> {
    let mut found = Vec::new();
    for (number, _) in store.readers.with(open_ended)? {
        let key = store.readers.with(|database| read::kernel_key(database, number))?;
        let Some(kernel_key) = key.filter(|_| number != own) else { continue };
        if store.in_use_elsewhere.lock().contains(&kernel_key) {
            continue;
        }
        let Some(key) = store.keys.kernel(&kernel_key)? else { continue };
        let Some(slot) = store.keys.try_lock(&kernel_key, false)? else { continue };
        let Some(log) = store.folder.try_lock_log(&kernel_key)? else { continue };
        // Asked once: to ask is a connection that waits at the other process.
        let in_use = use_key(&key);
        if in_use.elsewhere {
            store.in_use_elsewhere.lock().insert(kernel_key);
            continue;
        }
        // Read again: its kernel may have covered them before it gave the lock back.
        let still = store.readers.with(open_ended)?;
        let Some((_, head)) = still.into_iter().find(|(log, _)| *log == number) else { continue };
        let (log_id, locks) = (log_id(&kernel_key), [slot, Box::new((log, in_use.lock)) as Lock]);
        let log = Arc::new(LogHandle::new(number, log_id, count(head)?, locks));
        let ledger = Arc::new(SqliteLedger { store: Arc::clone(store), log });
        let marks = store.keys.marks()?.of(&kernel_key);
        found.push(Uncovered { key, ledger, marks });
    }
    Ok(found)
}

/// The logs that go on after their last checkpoint, and how far.
fn open_ended(database: &Connection) -> StoreResult<Vec<(i64, i64)>> {
    let sql = "SELECT coalesce(max(end_seq), 0) FROM checkpoints WHERE log = ?1";
    let mut statement = database.prepare_cached(sql).map_err(failed)?;
    let mut logs = read::heads(database)?;
    let mut problem = None;
    logs.retain(|(log, head)| match statement.query_row([log], |row| row.get::<_, i64>(0)) {
        Ok(covered) => covered < *head,
        Err(error) => {
            problem = Some(error);
            false
        }
    });
    problem.map_or(Ok(logs), |error| Err(failed(error)))
}

/// The logs, other than our own, that have open intents, with the keys of their kernels. A step for
/// each log, however many intents they have.
fn logs_with_intents(database: &Connection, own: i64) -> StoreResult<Vec<(i64, PublicKey)>> {
    let sql = "SELECT id FROM intents WHERE id > ?1 ORDER BY id LIMIT 1";
    let mut statement = database.prepare_cached(sql).map_err(failed)?;
    let (mut logs, mut after) = (Vec::new(), 0_i64);
    loop {
        let mut found = statement.query([after]).map_err(failed)?;
        let Some(row) = found.next().map_err(failed)? else { return Ok(logs) };
        let (log, _) = split(row.get(0).map_err(failed)?);
        after = joined(log, LAST_PLACE);
        if log != own {
            logs.extend(read::kernel_key(database, log)?.map(|key| (log, key)));
        }
    }
}

/// The place of an entry or checkpoint as the database has it.
pub(crate) fn place(seq: u64) -> i64 {
    clamped(seq).min(LAST_PLACE)
}
