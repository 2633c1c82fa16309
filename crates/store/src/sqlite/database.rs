//! What the writer thread does in the shared database, one small step for each kind of request.

use std::collections::HashMap;
use std::sync::Arc;

use chio_core::canonical;
use chio_core::certificate::KernelCertificate;
use chio_kernel::store::{
    Alternative, Appended, ApprovalUse, CallTask, Entry, IntentId, ProofUse, Refund, Reserved,
    StoreError, StoreResult,
};
use rusqlite::{Connection, params};

use super::epoch_file::EpochFile;
use super::error::failed;
use super::number::{LAST_PLACE, clamped, count, joined, length};
use super::read;
use super::schema::{read_meta, write_meta};
use crate::bounds::MAX_PROOFS;
use crate::budget::{Choice, Debit, choose};
use crate::tasks::Unlooked;

/// Intent numbers are set aside in blocks, so that none is ever used twice though closed intents
/// leave no trace.
const INTENT_BLOCK: i64 = 1 << 16;

/// The database, as its writer has it.
pub(crate) struct Database {
    connection: Connection,
    epoch_file: Arc<EpochFile>,
    /// Where each log of this process goes on. Forgotten whenever something is undone.
    heads: HashMap<i64, Head>,
    /// Bytes written since [`Database::take_written`] was last called.
    written: usize,
    /// The most proofs that are remembered at once.
    pub(crate) most_proofs: u64,
    /// What owners of tasks have got since their quotas were looked at.
    pub(super) unlooked: HashMap<String, Unlooked>,
}

#[derive(Debug, Clone, Copy)]
struct Head {
    next_entry: i64,
    next_intent: i64,
    /// The first intent number that is not set aside.
    intents_end: i64,
}

/// A reservation, ready to be written.
#[derive(Debug)]
pub(crate) struct ReservationRow {
    pub(crate) body: Vec<u8>,
    pub(crate) alternatives: Vec<Alternative>,
    pub(crate) authority: Vec<String>,
    pub(crate) resumes: Option<IntentId>,
    pub(crate) proofs: Vec<ProofUse>,
    pub(crate) approval: Option<ApprovalUse>,
    pub(crate) task: Option<Arc<CallTask>>,
}

/// A token, ready to be written.
#[derive(Debug)]
pub(crate) struct TokenRow {
    pub(crate) id: String,
    pub(crate) subject: String,
    pub(crate) issued_at: u64,
    pub(crate) expires_at: u64,
    pub(crate) body: Vec<u8>,
}

/// A checkpoint, ready to be written.
#[derive(Debug)]
pub(crate) struct CheckpointRow {
    pub(crate) seq: u64,
    pub(crate) end_seq: u64,
    pub(crate) body: Vec<u8>,
}

/// A certificate, ready to be written.
#[derive(Debug)]
pub(crate) struct CertificateRow {
    authority: String,
    body: Vec<u8>,
}

impl CertificateRow {
    pub(crate) fn new(certificate: &KernelCertificate) -> StoreResult<Self> {
        let body = canonical::to_vec(certificate)
            .map_err(|error| StoreError::Refused(format!("a certificate has no form: {error}")))?;
        Ok(Self { authority: certificate.authority.to_hex(), body })
    }
}

/// A log as its kernel or a certificate names it.
#[derive(Debug, Clone)]
pub(crate) struct LogRow {
    pub(crate) log_id: String,
    pub(crate) kernel_key: String,
}

impl Database {
    pub(crate) fn new(connection: Connection, epoch_file: Arc<EpochFile>) -> Self {
        let (heads, unlooked) = (HashMap::new(), HashMap::new());
        Self { connection, epoch_file, heads, written: 0, most_proofs: MAX_PROOFS, unlooked }
    }

    /// Bytes of entries and intents written since the last time.
    pub(crate) const fn take_written(&mut self) -> usize {
        std::mem::replace(&mut self.written, 0)
    }

    /// Notes that this many bytes were written.
    pub(crate) const fn note_written(&mut self, bytes: usize) {
        self.written = self.written.saturating_add(bytes);
    }

    /// The database itself.
    pub(crate) const fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Runs a statement. Tells how many rows it changed.
    pub(crate) fn execute(&self, sql: &str, params: impl rusqlite::Params) -> StoreResult<usize> {
        let mut statement = self.connection.prepare_cached(sql).map_err(failed)?;
        statement.execute(params).map_err(failed)
    }

    /// Whether a query finds a row.
    pub(crate) fn exists(&self, sql: &str, params: impl rusqlite::Params) -> StoreResult<bool> {
        let mut statement = self.connection.prepare_cached(sql).map_err(failed)?;
        statement.exists(params).map_err(failed)
    }

    /// The one number that a query answers with.
    pub(crate) fn number(&self, sql: &str, params: impl rusqlite::Params) -> StoreResult<i64> {
        let mut statement = self.connection.prepare_cached(sql).map_err(failed)?;
        statement.query_row(params, |row| row.get(0)).map_err(failed)
    }

    pub(crate) fn begin(&self) -> StoreResult<()> {
        self.execute("BEGIN IMMEDIATE", []).map(drop)
    }

    pub(crate) fn commit(&self) -> StoreResult<()> {
        self.execute("COMMIT", []).map(drop)
    }

    pub(crate) fn savepoint(&self) -> StoreResult<()> {
        self.execute("SAVEPOINT member", []).map(drop)
    }

    pub(crate) fn release_savepoint(&self) -> StoreResult<()> {
        self.execute("RELEASE member", []).map(drop)
    }

    /// Whether there is no transaction any more.
    pub(crate) fn is_undone(&self) -> bool {
        self.connection.is_autocommit()
    }

    /// Undoes one member.
    pub(crate) fn undo_to_savepoint(&mut self) -> StoreResult<()> {
        self.heads.clear();
        self.execute("ROLLBACK TO member", [])?;
        // Still alone: an epoch file that was ahead is put right.
        self.show_epoch()
    }

    /// Undoes everything since [`Database::begin`].
    pub(crate) fn undo(&mut self) {
        self.heads.clear();
        if !self.is_undone() {
            // Should even this fail, then so does the next `begin`, and every caller is told.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }

    /// Where this log goes on.
    fn head(&mut self, log: i64) -> StoreResult<Head> {
        if let Some(head) = self.heads.get(&log) {
            return Ok(*head);
        }
        let sql = "SELECT coalesce(max(id), ?1) FROM entries WHERE id BETWEEN ?1 AND ?2";
        let mut statement = self.connection.prepare_cached(sql).map_err(failed)?;
        let range = [joined(log, 0), joined(log, LAST_PLACE)];
        let last: i64 = statement.query_row(range, |row| row.get(0)).map_err(failed)?;
        let sql = "SELECT intents FROM logs WHERE number = ?1";
        let mut statement = self.connection.prepare_cached(sql).map_err(failed)?;
        let intents: i64 = statement.query_row([log], |row| row.get(0)).map_err(failed)?;
        let next_entry = (last & LAST_PLACE) + 1;
        let head = Head { next_entry, next_intent: intents, intents_end: intents };
        self.heads.insert(log, head);
        Ok(head)
    }

    /// How many entries a log has. Another process may have written it since we did.
    pub(crate) fn reread_entries(&mut self, log: i64) -> StoreResult<u64> {
        self.heads.remove(&log);
        count(self.head(log)?.next_entry - 1)
    }

    /// The number of a log, which is known from then on.
    pub(crate) fn log_number(&self, log: &LogRow) -> StoreResult<i64> {
        self.execute(
            "INSERT INTO logs(log_id, kernel_key) VALUES (?1, ?2) ON CONFLICT(log_id) DO NOTHING",
            [&log.log_id, &log.kernel_key],
        )?;
        let sql = "SELECT number FROM logs WHERE log_id = ?1";
        let mut statement = self.connection.prepare_cached(sql).map_err(failed)?;
        statement.query_row([&log.log_id], |row| row.get(0)).map_err(failed)
    }

    /// Keeps an authority's certificate of a log, in place of an earlier one.
    pub(crate) fn certify(&self, log: &LogRow, certificate: &CertificateRow) -> StoreResult<()> {
        let number = self.log_number(log)?;
        let sql = "INSERT OR REPLACE INTO certificates(log, authority, body) VALUES (?1, ?2, ?3)";
        self.execute(sql, params![number, certificate.authority, certificate.body]).map(drop)
    }

    /// Takes the holds of the first alternative that fits and writes the intent. Everything is
    /// looked up before anything is written.
    pub(crate) fn reserve(&mut self, log: i64, row: &ReservationRow) -> StoreResult<Reserved> {
        if let Some(reason) = self.stopped()? {
            return Ok(Reserved::Stopped(reason));
        }
        for id in &row.authority {
            if self.is_revoked(id)? {
                return Ok(Reserved::Revoked(id.clone()));
            }
        }
        if let Some(refused) = self.refuse_uses(log, row)? {
            return Ok(refused);
        }
        let (alternative, debits) = match choose(&row.alternatives, |id, index| {
            read::spent(&self.connection, id, index)
        })? {
            Choice::Take(alternative, debits) => (alternative, debits),
            Choice::Exhausted(missing) => return Ok(missing.answer()),
            Choice::Nothing => return Err(crate::no_alternative()),
        };
        for debit in &debits {
            self.debit(debit)?;
        }
        self.use_up(row)?;
        let (intent, sql) = match row.resumes {
            None => (
                self.next_intent(log)?,
                "INSERT INTO intents(id, chosen, body, owns) VALUES (?1, ?2, ?3, ?4)",
            ),
            Some(IntentId(intent)) => (
                intent,
                "UPDATE intents SET chosen = ?2, body = ?3, waits = 0, owns = max(owns, ?4)
                 WHERE id = ?1",
            ),
        };
        self.execute(sql, params![intent, length(alternative), row.body, row.task.is_some()])?;
        if let Some(task) = &row.task {
            self.begin_task(intent, task)?;
        }
        self.note_written(row.body.len());
        Ok(Reserved::Held { intent: IntentId(intent), alternative })
    }

    pub(crate) fn next_intent(&mut self, log: i64) -> StoreResult<i64> {
        let mut head = self.head(log)?;
        if head.next_intent >= head.intents_end {
            head.intents_end = head.next_intent.saturating_add(INTENT_BLOCK);
            if head.intents_end > LAST_PLACE {
                return Err(StoreError::Refused("a log has no more intent numbers".to_owned()));
            }
            let sql = "UPDATE logs SET intents = ?2 WHERE number = ?1";
            self.execute(sql, [log, head.intents_end])?;
        }
        let intent = joined(log, head.next_intent);
        head.next_intent += 1;
        self.heads.insert(log, head);
        Ok(intent)
    }

    fn stopped(&self) -> StoreResult<Option<String>> {
        read_meta(&self.connection, "stop").map_err(failed)
    }

    fn is_revoked(&self, capability_id: &str) -> StoreResult<bool> {
        self.exists("SELECT 1 FROM revocations WHERE capability_id = ?1", [capability_id])
    }

    fn debit(&self, debit: &Debit<'_>) -> StoreResult<()> {
        let (invocations, units) = (clamped(debit.invocations), clamped(debit.units));
        self.execute(
            "INSERT INTO budgets VALUES (?1, ?2, ?3, ?4, 1) ON CONFLICT DO UPDATE
             SET invocations = invocations + ?3, units = units + ?4, debits = debits + 1",
            params![debit.capability_id, debit.grant_index, invocations, units],
        )
        .map(drop)
    }

    fn give_back(&self, refund: &Refund) -> StoreResult<()> {
        self.execute(
            "UPDATE budgets SET invocations = max(0, invocations - ?3), units = max(0, units - ?4)
             WHERE capability_id = ?1 AND grant_index = ?2",
            params![
                refund.capability_id,
                refund.grant_index,
                refund.invocations,
                clamped(refund.units)
            ],
        )
        .map(drop)
    }

    /// Appends an entry, and closes and settles its intent; nothing is written when that is not
    /// open.
    pub(crate) fn append(&mut self, log: i64, entry: &Entry) -> StoreResult<Appended> {
        let mut head = self.head(log)?;
        let id = joined(log, head.next_entry);
        if let Some(closing) = &entry.closes {
            if !self.close_intent(closing, id)? {
                return Ok(Appended::IntentClosed);
            }
            for refund in &closing.refunds {
                self.give_back(refund)?;
            }
        }
        if head.next_entry > LAST_PLACE {
            return Err(StoreError::Refused("a log has no more room".to_owned()));
        }
        self.execute("INSERT INTO entries(id, body) VALUES (?1, ?2)", params![id, entry.body])?;
        if let Some(task) = &entry.task {
            self.keep_task(task, id)?;
        }
        let seq = count(head.next_entry)?;
        head.next_entry += 1;
        self.heads.insert(log, head);
        self.note_written(entry.body.len());
        Ok(Appended::At(seq))
    }

    pub(crate) fn checkpoint(&self, log: i64, row: &CheckpointRow) -> StoreResult<()> {
        let (seq, end_seq) = (clamped(row.seq), clamped(row.end_seq));
        let added = self.execute(
            "INSERT INTO checkpoints(log, seq, end_seq, body) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT(log, seq) DO NOTHING",
            params![log, seq, end_seq, row.body],
        )?;
        if added > 0 {
            return Ok(());
        }
        let sql = "SELECT body = ?3 FROM checkpoints WHERE log = ?1 AND seq = ?2";
        let mut statement = self.connection.prepare_cached(sql).map_err(failed)?;
        let same = statement.query_row(params![log, seq, row.body], |row| row.get(0));
        if same.map_err(failed)? { Ok(()) } else { Err(crate::other_checkpoint(row.seq)) }
    }

    /// Keeps a token unless one with its id is known. Tells whether it is the one that is known.
    pub(crate) fn remember(&self, row: &TokenRow) -> StoreResult<bool> {
        self.execute(
            "INSERT INTO tokens(id, subject, issued_at, expires_at, body)
             VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT(id) DO NOTHING",
            params![row.id, row.subject, clamped(row.issued_at), clamped(row.expires_at), row.body],
        )?;
        let sql = "SELECT body = ?2 FROM tokens WHERE id = ?1";
        let mut statement = self.connection.prepare_cached(sql).map_err(failed)?;
        statement.query_row(params![row.id, row.body], |row| row.get(0)).map_err(failed)
    }

    /// Revokes a token. Tells whether it was not revoked before.
    pub(crate) fn revoke(&self, capability_id: &str, at: u64) -> StoreResult<bool> {
        if self.is_revoked(capability_id)? {
            return Ok(false);
        }
        self.next_epoch()?;
        self.execute(
            "INSERT INTO revocations(capability_id, epoch, at)
             VALUES (?1, (SELECT value FROM meta WHERE key = 'epoch'), ?2)",
            params![capability_id, clamped(at)],
        )?;
        Ok(true)
    }

    /// Stops everything, or lets it go on.
    pub(crate) fn stop(&self, reason: Option<&str>) -> StoreResult<()> {
        if self.stopped()?.as_deref() == reason {
            return Ok(());
        }
        self.next_epoch()?;
        match reason {
            Some(reason) => write_meta(&self.connection, "stop", reason).map_err(failed),
            None => self.execute("DELETE FROM meta WHERE key = 'stop'", []).map(drop),
        }
    }

    /// Lets readers of the epoch know that there is something new.
    pub(crate) fn next_epoch(&self) -> StoreResult<()> {
        self.execute("UPDATE meta SET value = value + 1 WHERE key = 'epoch'", [])?;
        self.show_epoch()
    }

    fn show_epoch(&self) -> StoreResult<()> {
        self.epoch_file.set(read::epoch(&self.connection)?).map_err(|error| {
            StoreError::Unavailable(format!("the epoch of revocations cannot be kept: {error}"))
        })
    }
}
