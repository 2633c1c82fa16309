//! What is read from the shared database.

use chio_core::capability::CapabilityToken;
use chio_core::certificate::KernelCertificate;
use chio_core::checkpoint::KernelCheckpoint;
use chio_core::crypto::PublicKey;
use chio_core::mark::StoreNumbers;
use chio_kernel::store::{LogEntry, LogSummary, Revocations, Spent, StoreResult};
use rusqlite::{Connection, OptionalExtension, Params, params};
use serde::de::DeserializeOwned;

use super::error::{failed, unreadable};
use super::ledger::place;
use super::number::{LAST_PLACE, clamped, count, joined, split};
use super::schema::read_meta;
use crate::bounds;

/// The epoch of revocations and the stop.
pub(crate) fn epoch(database: &Connection) -> StoreResult<u64> {
    let sql = "SELECT value FROM meta WHERE key = 'epoch'";
    let mut statement = database.prepare_cached(sql).map_err(failed)?;
    let stored = statement.query_row([], |row| row.get(0)).map_err(failed)?;
    count(stored)
}

/// Everything revoked after an epoch, as of one moment.
pub(crate) fn revoked_since(database: &Connection, after: u64) -> StoreResult<Revocations> {
    let moment = database.unchecked_transaction().map_err(failed)?;
    let sql = "SELECT capability_id FROM revocations WHERE epoch > ?1 ORDER BY epoch";
    let mut statement = moment.prepare_cached(sql).map_err(failed)?;
    let ids = statement.query_map([clamped(after)], |row| row.get(0)).map_err(failed)?;
    let ids = ids.collect::<Result<_, _>>().map_err(failed)?;
    let stopped = read_meta(&moment, "stop").map_err(failed)?;
    Ok(Revocations { epoch: epoch(&moment)?, ids, stopped })
}

/// The numbers of the store that only grow. One statement, so that they are of one moment.
pub(crate) fn numbers(database: &Connection) -> StoreResult<StoreNumbers> {
    let sql = "SELECT (SELECT coalesce(sum(debits), 0) FROM budgets),
               (SELECT value FROM meta WHERE key = 'epoch'), (SELECT count(*) FROM revocations)";
    let mut statement = database.prepare_cached(sql).map_err(failed)?;
    let read = |row: &rusqlite::Row<'_>| Ok([row.get(0)?, row.get(1)?, row.get(2)?]);
    let [debits, epoch, revoked] = statement.query_row([], read).map_err(failed)?;
    Ok(StoreNumbers { debits: count(debits)?, epoch: count(epoch)?, revoked: count(revoked)? })
}

/// What has been debited from a grant.
pub(crate) fn spent(
    database: &Connection,
    capability_id: &str,
    grant_index: u32,
) -> StoreResult<Spent> {
    let sql = "SELECT invocations, units FROM budgets
               WHERE capability_id = ?1 AND grant_index = ?2";
    let mut statement = database.prepare_cached(sql).map_err(failed)?;
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
    let found = statement.query_row(params![capability_id, grant_index], read);
    let (invocations, units) = found.optional().map_err(failed)?.unwrap_or_default();
    Ok(Spent { invocations: count(invocations)?, units: count(units)? })
}

/// The documents in the one column that a statement answers with.
fn documents<T: DeserializeOwned>(
    database: &Connection,
    sql: &str,
    params: impl Params,
) -> StoreResult<Vec<T>> {
    let mut statement = database.prepare_cached(sql).map_err(failed)?;
    let mut rows = statement.query(params).map_err(failed)?;
    let (mut documents, mut size) = (Vec::new(), 0);
    while let Some(row) = rows.next().map_err(failed)? {
        let body = row.get_ref(0).map_err(failed)?;
        let body = body.as_bytes().map_err(|error| unreadable("a document", error))?;
        size += body.len();
        if size > bounds::MAX_BYTES && !documents.is_empty() {
            break;
        }
        let document = serde_json::from_slice(body);
        documents.push(document.map_err(|error| unreadable("a document", error))?);
    }
    Ok(documents)
}

/// The known tokens with these ids.
pub(crate) fn tokens(database: &Connection, ids: &[String]) -> StoreResult<Vec<CapabilityToken>> {
    let mut tokens = Vec::with_capacity(ids.len());
    for id in ids {
        tokens.extend(documents(database, "SELECT body FROM tokens WHERE id = ?1", [id])?);
    }
    Ok(tokens)
}

/// Whether the token known by this id is this one; none when none is known.
pub(crate) fn is_known(database: &Connection, id: &str, body: &[u8]) -> StoreResult<Option<bool>> {
    let sql = "SELECT body = ?2 FROM tokens WHERE id = ?1";
    let mut statement = database.prepare_cached(sql).map_err(failed)?;
    statement.query_row(params![id, body], |row| row.get(0)).optional().map_err(failed)
}

/// The tokens of a subject that are in their window.
pub(crate) fn held_by(
    database: &Connection,
    subject: &str,
    now: u64,
    limit: usize,
) -> StoreResult<Vec<CapabilityToken>> {
    let sql = "SELECT body FROM tokens WHERE subject = ?1 AND issued_at <= ?2 AND expires_at > ?2
               ORDER BY issued_at DESC, id DESC LIMIT ?3";
    documents(database, sql, params![subject, clamped(now), rows(limit)])
}

/// The known tokens after this id.
pub(crate) fn known_after(
    database: &Connection,
    id: &str,
    limit: usize,
) -> StoreResult<Vec<CapabilityToken>> {
    let sql = "SELECT body FROM tokens WHERE id > ?1 ORDER BY id LIMIT ?2";
    documents(database, sql, params![id, rows(limit)])
}

fn rows(limit: usize) -> i64 {
    i64::try_from(bounds::rows(limit)).unwrap_or(i64::MAX)
}

/// The number of a log.
pub(crate) fn log_number(database: &Connection, log_id: &str) -> StoreResult<Option<i64>> {
    let sql = "SELECT number FROM logs WHERE log_id = ?1";
    let mut statement = database.prepare_cached(sql).map_err(failed)?;
    statement.query_row([log_id], |row| row.get(0)).optional().map_err(failed)
}

/// The name of a log.
pub(crate) fn log_id(database: &Connection, number: i64) -> StoreResult<Option<String>> {
    let sql = "SELECT log_id FROM logs WHERE number = ?1";
    let mut statement = database.prepare_cached(sql).map_err(failed)?;
    statement.query_row([number], |row| row.get(0)).optional().map_err(failed)
}

/// The key of the kernel that writes a log.
pub(crate) fn kernel_key(database: &Connection, number: i64) -> StoreResult<Option<PublicKey>> {
    let sql = "SELECT kernel_key FROM logs WHERE number = ?1";
    let mut statement = database.prepare_cached(sql).map_err(failed)?;
    let found = statement.query_row([number], |row| row.get::<_, String>(0)).optional();
    let key = found.map_err(failed)?.map(|key| PublicKey::from_hex(&key)).transpose();
    key.map_err(|error| unreadable("a kernel's key", error))
}

/// The last place that each log has filled; 0 for none.
pub(crate) fn heads(database: &Connection) -> StoreResult<Vec<(i64, i64)>> {
    let sql = "SELECT number, (SELECT id FROM entries
               WHERE id BETWEEN number << 40 AND (number << 40) + ?1 ORDER BY id DESC LIMIT 1)
               FROM logs ORDER BY number";
    let mut statement = database.prepare_cached(sql).map_err(failed)?;
    let head = |row: &rusqlite::Row<'_>| {
        Ok((row.get(0)?, row.get::<_, Option<i64>>(1)?.map_or(0, |id| split(id).1)))
    };
    let heads = statement.query_map([LAST_PLACE], head).map_err(failed)?;
    heads.collect::<Result<_, _>>().map_err(failed)
}

/// Every log, as of one moment.
pub(crate) fn logs(database: &Connection) -> StoreResult<Vec<LogSummary>> {
    let moment = database.unchecked_transaction().map_err(failed)?;
    let mut logs = Vec::new();
    for (number, head) in heads(&moment)? {
        let sql = "SELECT log_id, kernel_key,
                   (SELECT count(*) FROM checkpoints WHERE log = ?1),
                   (SELECT count(*) FROM intents WHERE id BETWEEN ?2 AND ?3)
                   FROM logs WHERE number = ?1";
        let mut statement = moment.prepare_cached(sql).map_err(failed)?;
        let range = [number, joined(number, 0), joined(number, LAST_PLACE)];
        let mut rows = statement.query(range).map_err(failed)?;
        let Some(row) = rows.next().map_err(failed)? else { continue };
        let key: String = row.get(1).map_err(failed)?;
        logs.push(LogSummary {
            log_id: row.get(0).map_err(failed)?,
            kernel_key: PublicKey::from_hex(&key)
                .map_err(|error| unreadable("a kernel's key", error))?,
            certificates: certificates(&moment, number)?,
            entries: count(head)?,
            checkpoints: count(row.get(2).map_err(failed)?)?,
            open_intents: count(row.get(3).map_err(failed)?)?,
        });
    }
    Ok(logs)
}

/// Entries of a log from a place on.
pub(crate) fn entries(
    database: &Connection,
    log_id: &str,
    from: u64,
    limit: usize,
) -> StoreResult<Vec<LogEntry>> {
    let Some(log) = log_number(database, log_id)? else { return Ok(Vec::new()) };
    let sql = "SELECT id, body FROM entries WHERE id BETWEEN ?1 AND ?2 ORDER BY id LIMIT ?3";
    let mut statement = database.prepare_cached(sql).map_err(failed)?;
    let range = [joined(log, place(from)), joined(log, LAST_PLACE), rows(limit)];
    let mut found = statement.query(range).map_err(failed)?;
    let (mut entries, mut size) = (Vec::new(), 0);
    while let Some(row) = found.next().map_err(failed)? {
        let body: Vec<u8> = row.get(1).map_err(failed)?;
        size += body.len();
        if size > bounds::MAX_BYTES && !entries.is_empty() {
            break;
        }
        let seq = count(split(row.get(0).map_err(failed)?).1)?;
        entries.push(LogEntry { seq, body });
    }
    Ok(entries)
}

/// The body of an entry.
pub(crate) fn body(database: &Connection, entry: i64) -> StoreResult<Option<Vec<u8>>> {
    let mut statement =
        database.prepare_cached("SELECT body FROM entries WHERE id = ?1").map_err(failed)?;
    statement.query_row([entry], |row| row.get(0)).optional().map_err(failed)
}

/// Checkpoints of a log from a number on.
pub(crate) fn checkpoints(
    database: &Connection,
    log_id: &str,
    from: u64,
    limit: usize,
) -> StoreResult<Vec<KernelCheckpoint>> {
    let Some(log) = log_number(database, log_id)? else { return Ok(Vec::new()) };
    let sql = "SELECT body FROM checkpoints WHERE log = ?1 AND seq >= ?2 ORDER BY seq LIMIT ?3";
    documents(database, sql, [log, clamped(from), rows(limit)])
}

/// The checkpoint whose batch has this entry.
pub(crate) fn covering(
    database: &Connection,
    log_id: &str,
    seq: u64,
) -> StoreResult<Option<KernelCheckpoint>> {
    let Some(log) = log_number(database, log_id)? else { return Ok(None) };
    let sql = "SELECT body FROM checkpoints WHERE log = ?1 AND end_seq >= ?2
               ORDER BY end_seq LIMIT 1";
    let found: Vec<KernelCheckpoint> = documents(database, sql, [log, clamped(seq)])?;
    Ok(found.into_iter().find(|found| found.body.batch_start_seq <= seq))
}

/// The certificates of a log.
pub(crate) fn certificates(
    database: &Connection,
    number: i64,
) -> StoreResult<Vec<KernelCertificate>> {
    let sql = "SELECT body FROM certificates WHERE log = ?1 ORDER BY authority";
    documents(database, sql, [number])
}
