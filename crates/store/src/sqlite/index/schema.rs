//! The tables of the index, and what is done when the file is not what it should be.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use chio_core::crypto::random_bytes;
use chio_kernel::store::{StoreError, StoreResult};
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};

use super::super::error::failed;
use super::super::schema::connect;
use super::Progress;
use crate::files;

/// `ChiX` in ASCII.
const APPLICATION: i64 = 0x4368_6958;

/// The schema that this program knows; an index of another is made again.
const VERSION: i64 = 4;

/// How many indexes in a row are told apart.
const GENERATIONS: u16 = 4095;

/// Receipts, in the order in which they were found, with texts and ids as numbers. Each index is by
/// one column, and by `n` within it.
const TABLES: &str = "
CREATE TABLE receipts(
    n INTEGER PRIMARY KEY,
    entry INTEGER NOT NULL,
    capability INTEGER,
    subject INTEGER,
    principal INTEGER,
    server INTEGER,
    tool INTEGER,
    outcome INTEGER,
    time INTEGER,
    cost INTEGER,
    currency INTEGER,
    trace INTEGER,
    rid INTEGER
);
CREATE INDEX by_capability ON receipts(capability) WHERE capability IS NOT NULL;
CREATE INDEX by_subject ON receipts(subject) WHERE subject IS NOT NULL;
CREATE INDEX by_principal ON receipts(principal) WHERE principal IS NOT NULL;
CREATE INDEX by_server ON receipts(server) WHERE server IS NOT NULL;
CREATE INDEX by_tool ON receipts(tool) WHERE tool IS NOT NULL;
CREATE INDEX by_outcome ON receipts(outcome) WHERE outcome IS NOT NULL;
CREATE INDEX by_cost ON receipts(cost) WHERE cost IS NOT NULL;
CREATE INDEX by_currency ON receipts(currency) WHERE currency IS NOT NULL;
CREATE INDEX by_trace ON receipts(trace) WHERE trace IS NOT NULL;
CREATE INDEX by_rid ON receipts(rid) WHERE rid IS NOT NULL;
CREATE TABLE names(id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE progress(log INTEGER PRIMARY KEY, seq INTEGER NOT NULL);
CREATE TABLE zones(
    zone INTEGER PRIMARY KEY,
    first_time INTEGER,
    last_time INTEGER,
    least_cost INTEGER,
    most_cost INTEGER
);
CREATE TABLE meta(store_id TEXT NOT NULL, generation INTEGER NOT NULL);
";

/// Opens the index to advance it. One that is damaged, of another schema or of another store is
/// made again; only the holder of the lock may do this.
pub(super) fn open_writer(path: &Path, store_id: &str) -> StoreResult<Connection> {
    match try_open_writer(path, store_id) {
        Err(StoreError::Damaged(_)) => {
            remove(path)?;
            try_open_writer(path, store_id)
        }
        opened => opened,
    }
}

/// Removes the index. A reader that has it open still reads what it was.
pub(super) fn remove(path: &Path) -> StoreResult<()> {
    for suffix in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        match fs::remove_file(PathBuf::from(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(StoreError::Unavailable(format!("`{}`: {error}", path.display())));
            }
            _ => {}
        }
    }
    Ok(())
}

fn try_open_writer(path: &Path, store_id: &str) -> StoreResult<Connection> {
    files::prepare(path)?;
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    prepare(&connection).map_err(failed)?;
    if is_ours(&connection, store_id).map_err(failed)? {
        return Ok(connection);
    }
    let found: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(failed)?;
    if found > 0 {
        return Err(StoreError::Damaged("the index is another's".to_owned()));
    }
    connection.execute_batch("BEGIN IMMEDIATE").map_err(failed)?;
    let made = make_tables(&connection, store_id);
    let ended = connection.execute_batch(if made.is_ok() { "COMMIT" } else { "ROLLBACK" });
    made.and(ended).map_err(failed)?;
    Ok(connection)
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    // What a power failure takes is made again.
    connection.pragma_update(None, "synchronous", "normal")?;
    connection.pragma_update(None, "wal_autocheckpoint", 8192)?;
    connection.pragma_update(None, "cache_size", -65_536)
}

fn make_tables(connection: &Connection, store_id: &str) -> rusqlite::Result<()> {
    connection.execute_batch(TABLES)?;
    let [high, low] = random_bytes();
    let generation = i64::from(u16::from_be_bytes([high, low]) % GENERATIONS) + 1;
    connection.execute("INSERT INTO meta VALUES (?1, ?2)", params![store_id, generation])?;
    connection.pragma_update(None, "application_id", APPLICATION)?;
    connection.pragma_update(None, "user_version", VERSION)
}

/// Names an index after what is in it, so that another index of the same logs is not another.
pub(super) fn name_after(connection: &Connection, lengths: &Progress) -> StoreResult<()> {
    let total = lengths.values().fold(0_i64, |total, length| total.wrapping_add(*length));
    let generation = total.rem_euclid(GENERATIONS.into()) + 1;
    connection.execute("UPDATE meta SET generation = ?1", [generation]).map(drop).map_err(failed)
}

/// Which index this is: one that is made again counts its rows anew, and is another.
pub(super) fn generation(connection: &Connection) -> StoreResult<i64> {
    connection.query_row("SELECT generation FROM meta", [], |row| row.get(0)).map_err(failed)
}

fn is_ours(connection: &Connection, store_id: &str) -> rusqlite::Result<bool> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    if (number("application_id")?, number("user_version")?) != (APPLICATION, VERSION) {
        return Ok(false);
    }
    let found: Option<String> =
        connection.query_row("SELECT store_id FROM meta", [], |row| row.get(0)).optional()?;
    Ok(found.as_deref() == Some(store_id))
}

/// Opens the index to read it; none when there is none for this store yet.
pub(super) fn open_reader(path: &Path, store_id: &str) -> StoreResult<Option<Connection>> {
    if !path.exists() {
        return Ok(None);
    }
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.pragma_update(None, "mmap_size", 1_i64 << 30).map_err(failed)?;
    Ok(is_ours(&connection, store_id).map_err(failed)?.then_some(connection))
}

/// How far the index is with each log.
pub(super) fn progress(index: &Connection) -> StoreResult<Progress> {
    let mut statement = index.prepare_cached("SELECT log, seq FROM progress").map_err(failed)?;
    let found = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).map_err(failed)?;
    found.collect::<Result<_, _>>().map_err(failed)
}
