//! Moves the index on: reads what is new in the logs, a batch at a time.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs::File;
use std::path::PathBuf;

use chio_kernel::store::{ReceiptOutcome, StoreError, StoreResult};
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::super::error::failed;
use super::super::number::{LAST_PLACE, clamped, joined, split};
use super::super::read::heads;
use super::{Progress, schema};
use crate::fields::{Fields, short_id};
use crate::files::{identity, try_lock};

/// Entries that are indexed in one transaction.
const BATCH: i64 = 4096;

/// The fewest entries that are read from a log at once, however many logs there are.
const MIN_SHARE: i64 = 64;

/// Names that are kept at hand.
const MAX_NAMES: usize = 100_000;

/// Receipts for which the range of times and costs is kept together: two to this power.
pub(super) const ZONE_BITS: u32 = 12;

/// The index, as the holder of its lock has it.
pub(crate) struct Advancer {
    path: PathBuf,
    lock_path: PathBuf,
    store_id: String,
    /// The index is kept for the next process.
    is_kept: bool,
    /// The index was found to be damaged, and is made again before it is used.
    suspect: bool,
    held: Option<Held>,
}

/// What one batch did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Batch {
    /// There was nothing to do.
    Empty,
    /// It has all that was there: this many entries.
    Last(usize),
    /// There is more than fitted into it.
    Full,
}

struct Held {
    index: Connection,
    /// The file that it is in.
    identity: (u64, u64),
    progress: Progress,
    names: HashMap<String, i64>,
    next: i64,
    _lock: File,
}

impl Advancer {
    pub(super) fn new(path: PathBuf, lock_path: PathBuf, store_id: String, is_kept: bool) -> Self {
        Self { path, lock_path, store_id, is_kept, suspect: false, held: None }
    }

    /// Whether we hold the lock.
    pub(super) const fn is_ours(&self) -> bool {
        self.held.is_some()
    }

    /// Gives the lock back.
    pub(super) fn release(&mut self) {
        self.held = None;
    }

    /// Has the index made again.
    pub(super) fn mistrust(&mut self) {
        self.suspect = true;
    }

    /// How far the index is; nothing unless we hold the lock.
    pub(super) fn progress(&self) -> &Progress {
        static NONE: std::sync::LazyLock<Progress> = std::sync::LazyLock::new(Progress::new);
        self.held.as_ref().map_or(&NONE, |held| &held.progress)
    }

    /// Indexes a batch. None when the lock is held elsewhere.
    pub(super) fn advance(&mut self, store: &Connection) -> StoreResult<Option<Batch>> {
        if !self.hold(store)? {
            return Ok(None);
        }
        let Some(held) = &mut self.held else { return Ok(None) };
        let advanced = held.advance(store);
        if let Err(error) = &advanced {
            // What is remembered of the index may be what was undone.
            self.suspect |= matches!(error, StoreError::Damaged(_));
            self.held = None;
        }
        advanced.map(Some)
    }

    /// Indexes everything up to these places. False when the lock is held elsewhere.
    pub(super) fn catch_up(
        &mut self,
        store: &Connection,
        wanted: &[(i64, i64)],
    ) -> StoreResult<bool> {
        loop {
            if !self.hold(store)? {
                return Ok(false);
            }
            let progress = self.progress();
            let has = |(log, seq): &(i64, i64)| *seq <= progress.get(log).copied().unwrap_or(0);
            if wanted.iter().all(has) {
                return Ok(true);
            }
            self.advance(store)?;
        }
    }

    /// Takes the lock and opens the index, unless we have it. False when it is held elsewhere.
    fn hold(&mut self, store: &Connection) -> StoreResult<bool> {
        // An index whose file was removed or replaced is made again.
        let is_gone = |held: &Held| identity(&self.path) != Some(held.identity);
        if self.suspect || self.held.as_ref().is_some_and(is_gone) {
            self.held = None;
        }
        if self.held.is_some() {
            return Ok(true);
        }
        let Some(lock) = try_lock(&self.lock_path)? else { return Ok(false) };
        if self.suspect {
            schema::remove(&self.path)?;
            self.suspect = false;
        }
        let mut index = schema::open_writer(&self.path, &self.store_id)?;
        let mut progress = schema::progress(&index)?;
        // A log never gets shorter, unless the store was put back to an earlier state.
        let lengths: Progress = heads(store)?.into_iter().collect();
        let fits = |(log, seq): (&i64, &i64)| lengths.get(log).is_some_and(|head| seq <= head);
        if !progress.iter().all(fits) {
            drop(index);
            schema::remove(&self.path)?;
            index = schema::open_writer(&self.path, &self.store_id)?;
            progress = Progress::new();
        }
        if !self.is_kept && progress.is_empty() {
            // The next process makes the same index of the same logs: its cursors are of this one.
            schema::name_after(&index, &lengths)?;
        }
        let next = index
            .query_row("SELECT coalesce(max(n), 0) + 1 FROM receipts", [], |row| row.get(0))
            .map_err(failed)?;
        let Some(identity) = identity(&self.path) else { return Ok(false) };
        let names = HashMap::new();
        self.held = Some(Held { index, identity, progress, names, next, _lock: lock });
        Ok(true)
    }
}

/// A receipt on its way into the index.
struct Row {
    entry: i64,
    texts: [Option<i64>; 6],
    outcome: Option<i64>,
    time: Option<i64>,
    cost: Option<i64>,
    trace: Option<i64>,
    rid: Option<i64>,
}

/// The range of times and costs in a zone.
#[derive(Default)]
struct Zone {
    times: Option<(i64, i64)>,
    costs: Option<(i64, i64)>,
}

/// What has been read of one log.
struct Ahead {
    log: i64,
    rows: VecDeque<Row>,
    /// There is more than was read.
    more: bool,
}

/// How the index writes an outcome.
pub(super) const fn outcome_number(outcome: ReceiptOutcome) -> i64 {
    match outcome {
        ReceiptOutcome::Allow => 0,
        ReceiptOutcome::Deny => 1,
        ReceiptOutcome::Cancelled => 2,
        ReceiptOutcome::Incomplete => 3,
        ReceiptOutcome::Failed => 4,
    }
}

impl Held {
    /// Reads the next entries of all logs and indexes them in the order of their times. Where a log
    /// has more than was read, its next entries wait for the next batch, so that the order does not
    /// depend on where batches end.
    fn advance(&mut self, store: &Connection) -> StoreResult<Batch> {
        let behind: Vec<(i64, i64, i64)> = heads(store)?
            .into_iter()
            .map(|(log, head)| (log, self.progress.get(&log).copied().unwrap_or(0), head))
            .filter(|(_, seq, head)| seq < head)
            .collect();
        if behind.is_empty() {
            return Ok(Batch::Empty);
        }
        let transaction =
            Transaction::new_unchecked(&self.index, rusqlite::TransactionBehavior::Immediate)
                .map_err(failed)?;
        let mut names = Names { known: &mut self.names, index: &transaction };
        let share = (BATCH / i64::try_from(behind.len()).unwrap_or(BATCH)).max(MIN_SHARE);
        let mut ahead = Vec::with_capacity(behind.len());
        for (log, seq, head) in behind {
            let rows = read_rows(store, &mut names, joined(log, seq), share.min(head - seq))?;
            ahead.push(Ahead { log, more: seq + share < head, rows });
        }
        let more = ahead.iter().any(|log| log.more);
        let (next, progress) = insert(&transaction, self.next, ahead)?;
        transaction.commit().map_err(failed)?;
        let added = usize::try_from(next - self.next).unwrap_or(usize::MAX);
        self.next = next;
        self.progress.extend(progress);
        Ok(if more { Batch::Full } else { Batch::Last(added) })
    }
}

/// Puts rows into the index, numbered from here. Gives the next number and how far each log is.
fn insert(
    index: &Connection,
    mut next: i64,
    mut ahead: Vec<Ahead>,
) -> StoreResult<(i64, Progress)> {
    let sql =
        "INSERT INTO receipts VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
    let mut statement = index.prepare_cached(sql).map_err(failed)?;
    let (mut zones, mut progress) = (BTreeMap::<i64, Zone>::new(), Progress::new());
    while let Some((log, row)) = earliest(&mut ahead) {
        let [capability, subject, principal, server, tool, currency] = row.texts;
        statement
            .execute(params![
                next,
                row.entry,
                capability,
                subject,
                principal,
                server,
                tool,
                row.outcome,
                row.time,
                row.cost,
                currency,
                row.trace,
                row.rid
            ])
            .map_err(failed)?;
        let zone = zones.entry(next >> ZONE_BITS).or_default();
        zone.times = widened(zone.times, row.time);
        zone.costs = widened(zone.costs, row.cost);
        progress.insert(log, split(row.entry).1);
        next += 1;
    }
    for (zone, found) in &zones {
        write_zone(index, *zone, found).map_err(failed)?;
    }
    let sql = "INSERT OR REPLACE INTO progress VALUES (?1, ?2)";
    let mut statement = index.prepare_cached(sql).map_err(failed)?;
    for (log, seq) in &progress {
        statement.execute([log, seq]).map_err(failed)?;
    }
    Ok((next, progress))
}

/// The row with the earliest time among the next of each log; none when a log that has more has
/// nothing left here.
fn earliest(ahead: &mut [Ahead]) -> Option<(i64, Row)> {
    if ahead.iter().any(|log| log.rows.is_empty() && log.more) {
        return None;
    }
    let time = |log: &&mut Ahead| log.rows.front().map(|row| row.time);
    let first = ahead.iter_mut().filter(|log| !log.rows.is_empty()).min_by_key(time)?;
    Some((first.log, first.rows.pop_front()?))
}

fn widened(range: Option<(i64, i64)>, value: Option<i64>) -> Option<(i64, i64)> {
    match (range, value) {
        (Some((least, most)), Some(value)) => Some((least.min(value), most.max(value))),
        (None, Some(value)) => Some((value, value)),
        (range, None) => range,
    }
}

fn write_zone(index: &Connection, zone: i64, found: &Zone) -> rusqlite::Result<()> {
    let sql = "SELECT first_time, last_time, least_cost, most_cost FROM zones WHERE zone = ?1";
    let mut statement = index.prepare_cached(sql)?;
    let known: Option<[Option<i64>; 4]> = statement
        .query_row([zone], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]))
        .optional()?;
    let [first, last, least, most] = known.unwrap_or_default();
    let times = widened(widened(found.times, first), last);
    let costs = widened(widened(found.costs, least), most);
    let sql = "INSERT OR REPLACE INTO zones VALUES (?1, ?2, ?3, ?4, ?5)";
    let mut statement = index.prepare_cached(sql)?;
    let (first, last) = times.unzip();
    let (least, most) = costs.unzip();
    statement.execute(params![zone, first, last, least, most]).map(drop)
}

/// Reads entries after this one.
fn read_rows(
    store: &Connection,
    names: &mut Names<'_>,
    after: i64,
    most: i64,
) -> StoreResult<VecDeque<Row>> {
    let sql = "SELECT id, body FROM entries WHERE id > ?1 AND id <= ?2 ORDER BY id LIMIT ?3";
    let mut statement = store.prepare_cached(sql).map_err(failed)?;
    let end = joined(split(after).0, LAST_PLACE);
    let mut found = statement.query([after, end, most]).map_err(failed)?;
    let mut rows = VecDeque::with_capacity(usize::try_from(most).unwrap_or(0));
    while let Some(row) = found.next().map_err(failed)? {
        let body = row.get_ref(1).map_err(failed)?;
        let fields = Fields::read(body.as_bytes().unwrap_or_default());
        rows.push_back(names.row(row.get(0).map_err(failed)?, &fields).map_err(failed)?);
    }
    Ok(rows)
}

/// Texts as numbers.
struct Names<'a> {
    known: &'a mut HashMap<String, i64>,
    index: &'a Connection,
}

impl Names<'_> {
    fn row(&mut self, entry: i64, fields: &Fields<'_>) -> rusqlite::Result<Row> {
        let texts = [
            self.number(fields.capability_id.as_deref())?,
            self.number(fields.subject.as_deref())?,
            self.number(fields.principal.as_deref())?,
            self.number(fields.tool_server.as_deref())?,
            self.number(fields.tool_name.as_deref())?,
            self.number(fields.currency.as_deref())?,
        ];
        Ok(Row {
            entry,
            texts,
            outcome: fields.outcome.map(outcome_number),
            time: fields.timestamp.map(clamped),
            cost: fields.cost.map(clamped),
            trace: fields.trace_id.as_deref().map(short_id),
            rid: fields.id.as_deref().map(short_id),
        })
    }

    fn number(&mut self, text: Option<&str>) -> rusqlite::Result<Option<i64>> {
        let Some(text) = text else { return Ok(None) };
        if let Some(number) = self.known.get(text) {
            return Ok(Some(*number));
        }
        let number = match name_number(self.index, text)? {
            Some(number) => number,
            None => {
                let sql = "INSERT INTO names(text) VALUES (?1)";
                self.index.prepare_cached(sql)?.insert([text])?
            }
        };
        if self.known.len() >= MAX_NAMES {
            self.known.clear();
        }
        self.known.insert(text.to_owned(), number);
        Ok(Some(number))
    }
}

/// The number of a text; none when the index has no receipt with it.
pub(super) fn name_number(index: &Connection, text: &str) -> rusqlite::Result<Option<i64>> {
    let mut statement = index.prepare_cached("SELECT id FROM names WHERE text = ?1")?;
    statement.query_row([text], |row| row.get(0)).optional()
}
