//! Everything that a store and its demo tool have on the disk, as of one moment.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use chio_core::receipt::{ChioReceipt, LoggedReceipt};
use chio_kernel::store::Reservation;
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

use crate::check::Record;

/// Where the database keeps the number of a log within the number of an entry or intent.
const LOG_SHIFT: i64 = 40;

/// What a store holds.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// Every receipt of a call, with its log's number and the bytes of its entry.
    pub(crate) receipts: Vec<Arc<Entry>>,
    /// Calls that have begun and not ended.
    pub(crate) intents: Vec<Open>,
    /// What was debited: token and grant to calls and cents.
    pub(crate) budgets: BTreeMap<(String, u32), (u64, u64)>,
    /// Log numbers by kernel key, in hex.
    pub(crate) logs: HashMap<String, i64>,
    /// The texts of all notes that had been put before the rest was read, in order.
    pub(crate) notes: Vec<String>,
    /// As much, and those that were put meanwhile.
    pub(crate) notes_since: Vec<String>,
}

/// A receipt in a log.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) log: i64,
    pub(crate) body: Vec<u8>,
    pub(crate) receipt: ChioReceipt,
}

/// An open intent.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) log: i64,
    pub(crate) reservation: Reservation,
    pub(crate) chosen: usize,
}

impl Snapshot {
    /// Reads a store, whether a process serves it or not, and changes nothing in it.
    pub(crate) fn read(data: &Path, record: &mut Record) -> Self {
        let mut database =
            Connection::open_with_flags(data.join("store.db"), OpenFlags::SQLITE_OPEN_READ_ONLY)
                .unwrap();
        database.busy_timeout(std::time::Duration::from_secs(20)).unwrap();
        // A note is recorded before it is put, and its receipt comes after it: a check that
        // reads the notes before and after the rest can tell, also while calls run.
        let before = notes(data);
        // The moment is that of the first look into the database.
        let moment = database.transaction().unwrap();
        let (receipts, intents) = (receipts(&moment, record), intents(&moment));
        let (budgets, logs) = (budgets(&moment), logs(&moment));
        let notes_since = notes(data);
        Self { receipts, intents, budgets, logs, notes: before, notes_since }
    }

    /// The calls that a log has open.
    pub(crate) fn open_in(&self, kernel_key: &str) -> impl Iterator<Item = &Open> {
        let log = self.logs.get(kernel_key).copied();
        self.intents.iter().filter(move |open| Some(open.log) == log)
    }
}

/// Reads the receipts. What did not change since it was last read is not parsed again.
fn receipts(database: &Connection, record: &mut Record) -> Vec<Arc<Entry>> {
    let mut statement = database.prepare("SELECT id, body FROM entries ORDER BY id").unwrap();
    let mut rows = statement.query([]).unwrap();
    let mut found = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        let id: i64 = row.get(0).unwrap();
        let body = row.get_ref(1).unwrap().as_blob().unwrap();
        if let Some(known) = record.parsed.get(&id).filter(|known| known.body == body) {
            found.push(Arc::clone(known));
            continue;
        }
        let LoggedReceipt::Call(receipt) = LoggedReceipt::from_slice(body).unwrap() else {
            panic!("expected the receipt of a call at {id}");
        };
        let entry = Entry { log: id >> LOG_SHIFT, body: body.to_vec(), receipt: *receipt };
        let entry = Arc::new(entry);
        record.parsed.insert(id, Arc::clone(&entry));
        found.push(entry);
    }
    found
}

fn intents(database: &Connection) -> Vec<Open> {
    let mut statement = database.prepare("SELECT id, chosen, body FROM intents").unwrap();
    let open = |row: &rusqlite::Row<'_>| {
        let body: Vec<u8> = row.get(2)?;
        let reservation = serde_json::from_slice(&body).unwrap();
        let chosen = usize::try_from(row.get::<_, i64>(1)?).unwrap();
        Ok(Open { log: row.get::<_, i64>(0)? >> LOG_SHIFT, reservation, chosen })
    };
    statement.query_map([], open).unwrap().map(Result::unwrap).collect()
}

fn budgets(database: &Connection) -> BTreeMap<(String, u32), (u64, u64)> {
    let sql = "SELECT capability_id, grant_index, invocations, units FROM budgets";
    let mut statement = database.prepare(sql).unwrap();
    let number = |row: &rusqlite::Row<'_>, at| u64::try_from(row.get::<_, i64>(at).unwrap());
    let budget = |row: &rusqlite::Row<'_>| {
        let spent = (number(row, 2).unwrap(), number(row, 3).unwrap());
        Ok(((row.get(0)?, row.get(1)?), spent))
    };
    statement.query_map([], budget).unwrap().map(Result::unwrap).collect()
}

fn logs(database: &Connection) -> HashMap<String, i64> {
    let mut statement = database.prepare("SELECT kernel_key, number FROM logs").unwrap();
    let log = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    statement.query_map([], log).unwrap().map(Result::unwrap).collect()
}

/// The notes as the tool itself has counted them. A last line without an end was never put.
fn notes(data: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(data.join("notes/notes.jsonl")).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let note = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    whole.lines().map(|line| note(line)["text"].as_str().unwrap().to_owned()).collect()
}
