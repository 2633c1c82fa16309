//! The shared database: its tables, how it is opened, and how it is known as ours.

use std::path::Path;
use std::thread;
use std::time::Duration;

use chio_kernel::store::{StoreError, StoreResult};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension};

use super::error::failed;
use super::read_only::{self, is_read_only};

/// `Chio` in ASCII.
const APPLICATION: i64 = 0x4368_696f;

/// The schema that this program knows: every step.
const VERSION: i64 = 4;

/// Statements that a connection keeps prepared.
const STATEMENTS: usize = 128;

/// How often a busy database is tried again, a millisecond apart, before we give up.
const BUSY_TRIES: i32 = 5_000;

/// Bytes of a page: four receipts of an ordinary size fit one.
pub(crate) const PAGE: i64 = 8192;

/// Bytes of the write-ahead log at which the database itself makes an end; long before, others have
/// moved it: see [`super::checkpointer`].
const LONGEST_LOG: i64 = 256 << 20;

/// What leads from one schema to the next, beginning with nothing. A step that was ever released is
/// never changed.
const STEPS: [&str; 4] = [FIRST, SECOND, THIRD, FOURTH];

const FIRST: &str = "
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE logs(
    number INTEGER PRIMARY KEY,
    log_id TEXT NOT NULL UNIQUE,
    kernel_key TEXT NOT NULL,
    intents INTEGER NOT NULL DEFAULT 1
);
CREATE TABLE certificates(
    log INTEGER NOT NULL,
    authority TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY(log, authority)
) WITHOUT ROWID;
CREATE TABLE entries(id INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE intents(id INTEGER PRIMARY KEY, chosen INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE budgets(
    capability_id TEXT NOT NULL,
    grant_index INTEGER NOT NULL,
    invocations INTEGER NOT NULL,
    units INTEGER NOT NULL,
    PRIMARY KEY(capability_id, grant_index)
) WITHOUT ROWID;
CREATE TABLE revocations(
    capability_id TEXT PRIMARY KEY,
    epoch INTEGER NOT NULL,
    at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX revocations_by_epoch ON revocations(epoch);
CREATE TABLE tokens(
    id TEXT PRIMARY KEY,
    subject TEXT NOT NULL,
    issued_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    body BLOB NOT NULL
);
CREATE INDEX tokens_by_subject ON tokens(subject, issued_at, expires_at);
CREATE TABLE checkpoints(
    log INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    end_seq INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY(log, seq)
);
CREATE INDEX checkpoints_by_end ON checkpoints(log, end_seq);
INSERT INTO meta VALUES ('epoch', 0);
";

/// Approvals, proofs and tasks. An intent that waits has not reserved; one that owns something has
/// rows of the inbox or of the tasks that end with it. What is long comes last in a row, so that the
/// rest is read without it.
const SECOND: &str = "
ALTER TABLE intents ADD COLUMN waits INTEGER NOT NULL DEFAULT 0;
ALTER TABLE intents ADD COLUMN owns INTEGER NOT NULL DEFAULT 0;
CREATE TABLE proofs(key TEXT PRIMARY KEY, expires_at INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX proofs_by_end ON proofs(expires_at);
INSERT INTO meta VALUES ('proofs', 0);
CREATE TABLE approval_uses(
    digest TEXT PRIMARY KEY,
    request_id TEXT NOT NULL,
    intent_hash TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    UNIQUE(request_id, intent_hash)
) WITHOUT ROWID;
CREATE INDEX approval_uses_by_end ON approval_uses(expires_at);
CREATE TABLE approvals(
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    subject TEXT NOT NULL,
    intent INTEGER,
    state TEXT NOT NULL,
    requested_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    body BLOB NOT NULL,
    answer BLOB,
    receipt_id TEXT
);
CREATE INDEX approvals_by_state ON approvals(state);
CREATE INDEX approvals_by_subject ON approvals(subject) WHERE state IN ('pending', 'approved');
CREATE INDEX approvals_by_age ON approvals(requested_at);
CREATE INDEX approvals_by_intent ON approvals(intent) WHERE intent IS NOT NULL;
CREATE TABLE tasks(
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    protocol TEXT NOT NULL,
    server_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    state TEXT NOT NULL,
    receipt_id TEXT,
    intent INTEGER,
    request BLOB NOT NULL,
    result BLOB
);
CREATE INDEX tasks_by_owner ON tasks(owner, state, expires_at);
CREATE INDEX tasks_by_end ON tasks(expires_at) WHERE state <> 'running';
CREATE INDEX tasks_by_intent ON tasks(intent) WHERE intent IS NOT NULL;
";

/// What only grows: how often each budget was debited, and the latest end of the proofs and of the
/// approvals that were forgotten.
const THIRD: &str = "
ALTER TABLE budgets ADD COLUMN debits INTEGER NOT NULL DEFAULT 0;
INSERT INTO meta VALUES ('proofs_forgotten', 0), ('approvals_forgotten', 0);
";

/// Tasks that stay: those that ask, and for a while those that are over. The rows are moved, because
/// what is long comes last.
const FOURTH: &str = "
ALTER TABLE tasks RENAME TO tasks_before;
DROP INDEX tasks_by_owner;
DROP INDEX tasks_by_end;
DROP INDEX tasks_by_intent;
CREATE TABLE tasks(
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    account TEXT NOT NULL,
    protocol TEXT NOT NULL,
    server_id TEXT NOT NULL,
    context TEXT,
    message TEXT,
    due_at INTEGER,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    kept_for INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    state TEXT NOT NULL,
    size INTEGER NOT NULL,
    receipt_id TEXT,
    entry INTEGER,
    intent INTEGER,
    record BLOB NOT NULL,
    request BLOB NOT NULL,
    result BLOB
);
INSERT INTO tasks
    SELECT id, owner, owner, protocol, server_id, NULL, NULL, NULL, created_at, expires_at, 0,
        created_at, state, length(request) + coalesce(length(result), 0), receipt_id, NULL, intent,
        x'', request, result
    FROM tasks_before;
DROP TABLE tasks_before;
CREATE INDEX tasks_by_owner ON tasks(owner, protocol, updated_at, state, size, expires_at);
CREATE INDEX tasks_open ON tasks(account) WHERE state IN ('waiting', 'running', 'asking');
CREATE INDEX tasks_by_context ON tasks(context) WHERE context IS NOT NULL;
CREATE INDEX tasks_by_message ON tasks(message) WHERE message IS NOT NULL;
CREATE INDEX tasks_due ON tasks(protocol, due_at) WHERE state = 'waiting' AND due_at IS NOT NULL;
CREATE INDEX tasks_by_end ON tasks(expires_at) WHERE state <> 'running';
CREATE INDEX tasks_by_intent ON tasks(intent) WHERE intent IS NOT NULL;
";

/// Opens the database to write in it, and makes its tables when it is new, if it may be.
pub(crate) fn open(
    path: &Path,
    may_be_new: &StoreResult<()>,
    new_store_id: &dyn Fn() -> String,
) -> StoreResult<Connection> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    refuse_foreign(&connection, path)?;
    if version(&connection)? == 0 {
        may_be_new.clone()?;
    }
    prepare(&connection).map_err(failed)?;
    bring_up(&connection, new_store_id)?;
    Ok(connection)
}

/// Opens the database, which must be there already, to write in it, or to read it where this
/// process may not write.
pub(crate) fn open_existing(path: &Path) -> StoreResult<Connection> {
    let read_only = is_read_only(path);
    let connection = open_as(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    refuse_foreign(&connection, path)?;
    let (found, shown) = (version(&connection)?, path.display());
    if found == 0 {
        return Err(StoreError::Refused(format!("expected a store, found nothing in `{shown}`")));
    }
    if read_only && found < VERSION {
        return Err(StoreError::Refused(format!(
            "`{shown}` was made by an older chio: schema {found}, this one reads {VERSION}, and may \
             not write there to change it: open a copy that it may write"
        )));
    }
    if read_only {
        return Ok(connection);
    }
    prepare(&connection).map_err(failed)?;
    // There are tables already, so no name is asked for.
    bring_up(&connection, &String::new)?;
    Ok(connection)
}

/// The version of the tables; 0 before there are any.
fn version(connection: &Connection) -> StoreResult<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(failed)
}

/// Opens the database to read it.
pub(crate) fn open_reader(path: &Path) -> StoreResult<Connection> {
    let connection = open_as(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.pragma_update(None, "mmap_size", 1_i64 << 30).map_err(failed)?;
    Ok(connection)
}

/// Opens the database of a store with this access, or to read it where this process may not write.
pub(crate) fn open_as(path: &Path, access: OpenFlags) -> StoreResult<Connection> {
    if is_read_only(path) { read_only::open(path) } else { connect(path, access) }
}

/// Opens any of our databases.
pub(crate) fn connect(path: &Path, access: OpenFlags) -> StoreResult<Connection> {
    let opened = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX);
    let mut connection = opened.map_err(failed)?;
    connection.busy_handler(Some(wait_while_busy)).map_err(failed)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // Statements that are kept are not planned anew for every other value of a bound.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(failed)?;
    Ok(connection)
}

/// Waits its turn. Shorter and more even naps than the database's own, because the holder
/// gives it back within milliseconds.
fn wait_while_busy(tries: i32) -> bool {
    thread::sleep(Duration::from_millis(1));
    tries < BUSY_TRIES
}

/// Refuses what is no database of ours, before anything in it is changed.
fn refuse_foreign(connection: &Connection, path: &Path) -> StoreResult<()> {
    let shown = path.display();
    let found = connection
        .query_row(
            "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)
             FROM pragma_application_id, pragma_user_version",
            [],
            |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)),
        )
        .map_err(|error| match failed(error) {
            StoreError::Damaged(error) => {
                StoreError::Damaged(format!("`{shown}` is no database of a store: {error}"))
            }
            other => other,
        })?;
    match found {
        (0, 0, 0) => Ok(()),
        (APPLICATION, version, _) if version <= VERSION => Ok(()),
        (APPLICATION, version, _) => Err(StoreError::Refused(format!(
            "`{shown}` was made by a newer chio: schema {version}, this one knows {VERSION}"
        ))),
        _ => Err(StoreError::Refused(format!(
            "expected a database of chio, found another application's: `{shown}`"
        ))),
    }
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "page_size", PAGE)?;
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "wal_autocheckpoint", LONGEST_LOG / PAGE)?;
    connection.pragma_update(None, "cache_size", -32_768)
}

/// Makes the tables, or those that an older program has not made, unless they are there, also
/// while other processes do the same.
fn bring_up(connection: &Connection, new_store_id: &dyn Fn() -> String) -> StoreResult<()> {
    // A process that only reads does not wait for writers.
    if version(connection)? >= VERSION {
        return Ok(());
    }
    connection.execute_batch("BEGIN IMMEDIATE").map_err(failed)?;
    let made = take_steps(connection, new_store_id);
    let ended = connection.execute_batch(if made.is_ok() { "COMMIT" } else { "ROLLBACK" });
    made.and(ended).map_err(failed)
}

fn take_steps(connection: &Connection, new_store_id: &dyn Fn() -> String) -> rusqlite::Result<()> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    for (from, step) in (0..).zip(STEPS) {
        if from >= version {
            connection.execute_batch(step)?;
        }
    }
    if version == 0 {
        write_meta(connection, "store_id", &new_store_id())?;
        connection.pragma_update(None, "application_id", APPLICATION)?;
    }
    if version < VERSION {
        connection.pragma_update(None, "user_version", VERSION)?;
    }
    Ok(())
}

/// A text of the `meta` table.
pub(crate) fn read_meta(connection: &Connection, key: &str) -> rusqlite::Result<Option<String>> {
    let mut statement = connection.prepare_cached("SELECT value FROM meta WHERE key = ?1")?;
    statement.query_row([key], |row| row.get(0)).optional()
}

/// Keeps a text in the `meta` table.
pub(crate) fn write_meta(connection: &Connection, key: &str, value: &str) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached("INSERT OR REPLACE INTO meta VALUES (?1, ?2)")?;
    statement.execute([key, value]).map(drop)
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::{FIRST, SECOND, THIRD, VERSION, take_steps, version};

    #[test]
    fn tasks_of_an_earlier_schema_stay_as_they_were() {
        let database = Connection::open_in_memory().unwrap();
        for step in [FIRST, SECOND, THIRD] {
            database.execute_batch(step).unwrap();
        }
        let old = "INSERT INTO tasks VALUES
            ('t', 'aa', 'a2a', 'fs', 7, 307, 'completed', 'r', NULL, x'', x'0102')";
        database.execute(old, []).unwrap();
        database.pragma_update(None, "user_version", 3).unwrap();
        take_steps(&database, &String::new).unwrap();
        assert_eq!(version(&database).unwrap(), VERSION);
        let sql = "SELECT account || updated_at || expires_at || kept_for || size || receipt_id
                   || hex(result) || coalesce(due_at, '-') FROM tasks WHERE id = 't'";
        let found: String = database.query_row(sql, [], |row| row.get(0)).unwrap();
        assert_eq!(found, "aa730702r0102-");
    }
}
