//! Answers queries from the index.
//!
//! Rows come in the order of `n`. The index by one column leads, the most telling of those that the
//! query names; the other columns are looked at row by row. Ranges of times and costs have no order
//! of `n`: there, zones say which stretches of `n` can hold a match at all.

use chio_kernel::store::{ReceiptQuery, ReceiptRow, StoreError, StoreResult};
use rusqlite::{Connection, params_from_iter};

use super::super::error::failed;
use super::super::number::{clamped, count, split};
use super::super::read;
use super::advance::{ZONE_BITS, name_number, outcome_number};
use super::schema;
use crate::bounds;
use crate::fields::{Fields, short_id, short_ids};

/// Rows within a range of costs that are sorted rather than looked for along `n`.
const FEW: i64 = 4096;

/// A column that a query gives a value for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Asked {
    column: &'static str,
    index: &'static str,
    value: i64,
}

/// What is looked for, in the index's own terms.
#[derive(Debug)]
struct Plan {
    /// The most telling first.
    asked: Vec<Asked>,
    times: Option<(i64, i64)>,
    costs: Option<(i64, i64)>,
    /// The rows with such a cost are few.
    by_cost: bool,
    /// The first and the last `n` that count.
    span: (i64, i64),
    newest_first: bool,
}

/// The rows that a query asks for.
pub(super) fn run(
    index: &Connection,
    store: &Connection,
    query: &ReceiptQuery,
) -> StoreResult<Vec<ReceiptRow>> {
    let limit = bounds::rows(query.limit);
    let cursors = Cursors { generation: schema::generation(index)? };
    let Some(plan) = Plan::new(index, query, cursors)? else { return Ok(Vec::new()) };
    let mut answer = Answer { rows: Vec::new(), size: 0, limit };
    for stretch in plan.stretches(index)? {
        if answer.is_full() {
            break;
        }
        plan.collect(index, stretch, &mut |n, entry| {
            let row = receipt(store, cursors.of(n)?, entry)?;
            // Two ids may share their short form.
            if Fields::read(&row.body).answer(query) {
                answer.push(row);
            }
            Ok(!answer.is_full())
        })?;
    }
    answer.rows.truncate(limit);
    Ok(answer.rows)
}

/// The receipt with this id.
pub(super) fn find(
    index: &Connection,
    store: &Connection,
    receipt_id: &str,
) -> StoreResult<Option<ReceiptRow>> {
    let cursors = Cursors { generation: schema::generation(index)? };
    let sql = "SELECT n, entry FROM receipts WHERE rid = ?1 ORDER BY n";
    let mut statement = index.prepare_cached(sql).map_err(failed)?;
    let mut rows = statement.query([short_id(receipt_id)]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let cursor = cursors.of(row.get(0).map_err(failed)?)?;
        let found = receipt(store, cursor, row.get(1).map_err(failed)?)?;
        if Fields::read(&found.body).id.as_deref() == Some(receipt_id) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The receipts of calls whose ids begin with these digits.
pub(super) fn find_beginning(
    index: &Connection,
    store: &Connection,
    digits: &str,
    limit: usize,
) -> StoreResult<Vec<ReceiptRow>> {
    let cursors = Cursors { generation: schema::generation(index)? };
    let Some((least, most)) = short_ids(digits) else { return Ok(Vec::new()) };
    let sql = "SELECT n, entry FROM receipts WHERE rid BETWEEN ?1 AND ?2 ORDER BY rid";
    let mut statement = index.prepare_cached(sql).map_err(failed)?;
    let mut rows = statement.query([least, most]).map_err(failed)?;
    let mut answer = Answer { rows: Vec::new(), size: 0, limit: bounds::rows(limit) };
    while let Some(row) = rows.next().map_err(failed)?.filter(|_| !answer.is_full()) {
        let cursor = cursors.of(row.get(0).map_err(failed)?)?;
        let found = receipt(store, cursor, row.get(1).map_err(failed)?)?;
        if Fields::read(&found.body).id.is_some_and(|id| id.starts_with(digits)) {
            answer.push(found);
        }
    }
    Ok(answer.rows)
}

/// Rows as callers name them: a place in this very index, so that no caller goes on in another.
#[derive(Debug, Clone, Copy)]
struct Cursors {
    generation: i64,
}

impl Cursors {
    /// Bits of the place. With those of the generation, a cursor is a whole number in any language.
    const BITS: u32 = 40;

    fn of(self, n: i64) -> StoreResult<u64> {
        count((self.generation << Self::BITS) | n)
    }

    /// The place that a cursor names; 0 is before all of them.
    fn place(self, cursor: u64) -> StoreResult<i64> {
        let (cursor, mask) = (clamped(cursor), (1 << Self::BITS) - 1);
        if cursor == 0 || cursor >> Self::BITS == self.generation {
            return Ok(cursor & mask);
        }
        Err(StoreError::Refused(
            "expected a cursor of this index, found one of before it was made again: begin anew"
                .to_owned(),
        ))
    }
}

fn receipt(store: &Connection, cursor: u64, entry: i64) -> StoreResult<ReceiptRow> {
    let lost = || StoreError::Damaged(format!("the index has an entry {entry}, the log has not"));
    let (log, seq) = split(entry);
    let log_id = read::log_id(store, log)?.ok_or_else(lost)?;
    let body = read::body(store, entry)?.ok_or_else(lost)?;
    Ok(ReceiptRow { cursor, log_id, seq: count(seq)?, body })
}

/// What has been found, within its bounds.
struct Answer {
    rows: Vec<ReceiptRow>,
    size: usize,
    limit: usize,
}

impl Answer {
    fn push(&mut self, row: ReceiptRow) {
        self.size += row.body.len();
        self.rows.push(row);
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= self.limit || self.size >= bounds::MAX_BYTES
    }
}

impl Plan {
    /// How to look for what is asked; none when no receipt can match.
    fn new(
        index: &Connection,
        query: &ReceiptQuery,
        cursors: Cursors,
    ) -> StoreResult<Option<Self>> {
        let short = |text: &Option<String>| text.as_deref().map(short_id);
        let mut asked = Vec::new();
        let mut ask = |column, index, value: Option<i64>| {
            asked.extend(value.map(|value| Asked { column, index, value }));
        };
        ask("trace", "by_trace", short(&query.trace_id));
        let names = [
            ("capability", "by_capability", &query.capability_id),
            ("subject", "by_subject", &query.subject),
            ("principal", "by_principal", &query.principal),
            ("tool", "by_tool", &query.tool_name),
            ("server", "by_server", &query.tool_server),
            ("currency", "by_currency", &query.currency),
        ];
        for (column, by, text) in names {
            let Some(text) = text else { continue };
            let Some(number) = name_number(index, text).map_err(failed)? else { return Ok(None) };
            ask(column, by, Some(number));
        }
        ask("outcome", "by_outcome", query.outcome.map(outcome_number));
        let cursor = query.cursor.map(|cursor| cursors.place(cursor)).transpose()?;
        let mut plan = Self {
            asked,
            times: range(query.since, query.until),
            costs: range(query.min_cost, query.max_cost),
            by_cost: false,
            span: if query.newest_first {
                (1, cursor.map_or(i64::MAX, |cursor| cursor.saturating_sub(1)))
            } else {
                (cursor.map_or(1, |cursor| cursor.saturating_add(1)), i64::MAX)
            },
            newest_first: query.newest_first,
        };
        if let Some(costs) = plan.costs {
            plan.by_cost = are_few(index, costs)?;
        }
        Ok(Some(plan))
    }

    /// The stretches of `n` that can hold a match, in the order asked for.
    fn stretches(&self, index: &Connection) -> StoreResult<Vec<(i64, i64)>> {
        if self.by_cost || (self.times.is_none() && self.costs.is_none()) {
            return Ok(vec![self.span]);
        }
        let (since, until) = self.times.unwrap_or((i64::MIN, i64::MAX));
        let (least, most) = self.costs.unwrap_or((i64::MIN, i64::MAX));
        let sql = format!(
            "SELECT zone FROM zones WHERE zone BETWEEN ?1 AND ?2 {} {} ORDER BY zone",
            if self.times.is_some() { "AND last_time >= ?3 AND first_time <= ?4" } else { "" },
            if self.costs.is_some() { "AND most_cost >= ?5 AND least_cost <= ?6" } else { "" },
        );
        let mut statement = index.prepare_cached(&sql).map_err(failed)?;
        let (first, last) = self.span;
        let zones = [first >> ZONE_BITS, last >> ZONE_BITS, since, until, least, most];
        let used = statement.parameter_count();
        let mut found =
            statement.query(params_from_iter(zones.iter().take(used))).map_err(failed)?;
        let mut stretches: Vec<(i64, i64)> = Vec::new();
        while let Some(row) = found.next().map_err(failed)? {
            let zone: i64 = row.get(0).map_err(failed)?;
            let start = (zone << ZONE_BITS).max(first);
            let end = ((zone << ZONE_BITS) | ((1 << ZONE_BITS) - 1)).min(last);
            match stretches.last_mut() {
                Some((_, before)) if *before + 1 == start => *before = end,
                _ => stretches.push((start, end)),
            }
        }
        if self.newest_first {
            stretches.reverse();
        }
        Ok(stretches)
    }

    /// The statement that walks one stretch: `?1` and `?2` are its ends.
    fn sql(&self) -> String {
        let leader = self.asked.first().filter(|_| !self.by_cost);
        let by = leader.map(|asked| asked.index).or_else(|| self.by_cost.then_some("by_cost"));
        let mut sql = "SELECT n, entry FROM receipts".to_owned();
        match by {
            Some(by) => sql.extend([" INDEXED BY ", by]),
            None => sql.push_str(" NOT INDEXED"),
        }
        sql.push_str(" WHERE n BETWEEN ?1 AND ?2");
        let mut place = 3;
        for asked in &self.asked {
            sql.push_str(&format!(" AND {} = ?{place}", asked.column));
            place += 1;
        }
        for (column, range) in [("time", self.times), ("cost", self.costs)] {
            if range.is_some() {
                sql.push_str(&format!(" AND {column} BETWEEN ?{place} AND ?{}", place + 1));
                place += 2;
            }
        }
        sql.push_str(" ORDER BY n");
        if self.newest_first {
            sql.push_str(" DESC");
        }
        sql
    }

    fn values(&self, (first, last): (i64, i64)) -> Vec<i64> {
        let mut values = vec![first, last];
        values.extend(self.asked.iter().map(|asked| asked.value));
        for (least, most) in [self.times, self.costs].into_iter().flatten() {
            values.extend([least, most]);
        }
        values
    }

    /// Hands each row of a stretch on until it is told to stop.
    fn collect(
        &self,
        index: &Connection,
        stretch: (i64, i64),
        take: &mut dyn FnMut(i64, i64) -> StoreResult<bool>,
    ) -> StoreResult<()> {
        let mut statement = index.prepare_cached(&self.sql()).map_err(failed)?;
        let mut rows = statement.query(params_from_iter(self.values(stretch))).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            if !take(row.get(0).map_err(failed)?, row.get(1).map_err(failed)?)? {
                break;
            }
        }
        Ok(())
    }
}

/// A range with one end or both.
fn range(least: Option<u64>, most: Option<u64>) -> Option<(i64, i64)> {
    if least.is_none() && most.is_none() {
        return None;
    }
    Some((clamped(least.unwrap_or(0)), most.map_or(i64::MAX, clamped)))
}

/// Whether few receipts have such a cost.
fn are_few(index: &Connection, (least, most): (i64, i64)) -> StoreResult<bool> {
    let sql = "SELECT count(*) FROM
               (SELECT 1 FROM receipts WHERE cost BETWEEN ?1 AND ?2 LIMIT ?3)";
    let mut statement = index.prepare_cached(sql).map_err(failed)?;
    let found: i64 = statement.query_row([least, most, FEW], |row| row.get(0)).map_err(failed)?;
    Ok(found < FEW)
}

#[cfg(test)]
mod tests;
