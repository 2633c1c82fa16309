//! The inbox in the shared database.

use async_trait::async_trait;
use chio_core::canonical;
use chio_core::governance::{ApprovalDecision, ApprovalToken};
use chio_kernel::store::{
    Answered, Approval, ApprovalQuery, ApprovalRequest, ApprovalState, ApprovalStore, Closing,
    IntentId, StoreError, StoreResult,
};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::SqliteStore;
use super::database::Database;
use super::error::{failed, unreadable};
use super::number::{clamped, count, length};
use crate::bounds::{self, INBOX_MEMORY, MAX_PRUNED};
use crate::inbox::{self, Load};

/// Counts what is open of a subject besides what an intent waits for, and its bytes.
pub(super) const OPEN_OF_SUBJECT: &str =
    "SELECT count(*), coalesce(sum(length(body)), 0) FROM approvals
     WHERE subject = ?1 AND state IN ('pending', 'approved') AND intent <> ?2";

/// A request for approval, ready to be written.
#[derive(Debug)]
pub(crate) struct ApprovalRow {
    id: String,
    subject: String,
    requested_at: u64,
    expires_at: u64,
    body: Vec<u8>,
}

impl ApprovalRow {
    pub(crate) fn new(request: ApprovalRequest) -> StoreResult<Self> {
        let body = inbox::body(&request)?;
        let ApprovalRequest { id, subject, requested_at, expires_at, .. } = request;
        Ok(Self { id, subject: subject.to_hex(), requested_at, expires_at, body })
    }
}

/// An answer, ready to be written.
struct AnswerRow {
    id: String,
    decision: ApprovalDecision,
    body: Vec<u8>,
    now: u64,
}

impl Database {
    /// Whether there is no room for another request, which takes the place of what its intent waits
    /// for. Nothing is written.
    pub(crate) fn is_inbox_full(
        &self,
        row: &ApprovalRow,
        intent: Option<IntentId>,
    ) -> StoreResult<bool> {
        // No intent has the number 0.
        let intent = intent.map_or(0, |IntentId(intent)| intent);
        let all = self.number(
            "SELECT (SELECT count(*) FROM approvals WHERE state IN ('pending', 'approved'))
             - (SELECT count(*) FROM approvals WHERE intent = ?1
                AND state IN ('pending', 'approved'))",
            [intent],
        )?;
        let mut statement = self.connection().prepare_cached(OPEN_OF_SUBJECT).map_err(failed)?;
        let read = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
        let found = statement.query_row(params![row.subject, intent], read).map_err(failed)?;
        let (of_subject, bytes_of_subject) = (count(found.0)?, count(found.1)?);
        let load = Load { all: count(all)?, of_subject, bytes_of_subject };
        Ok(load.is_full_for(count(length(row.body.len()))?))
    }

    /// Whether a request has this name.
    pub(crate) fn is_in_inbox(&self, row: &ApprovalRow) -> StoreResult<bool> {
        self.exists("SELECT 1 FROM approvals WHERE id = ?1", [&row.id])
    }

    /// Puts in what an intent waits for, in place of what it waited for before, and forgets some of
    /// what has long been over.
    pub(crate) fn ask(&self, intent: i64, row: &ApprovalRow) -> StoreResult<()> {
        let long_over = clamped(row.requested_at).saturating_sub(clamped(INBOX_MEMORY));
        self.execute(
            "DELETE FROM approvals WHERE number IN
             (SELECT number FROM approvals WHERE requested_at <= ?1
              AND state NOT IN ('pending', 'approved') ORDER BY requested_at LIMIT ?2)",
            [long_over, length(MAX_PRUNED)],
        )?;
        self.execute(
            "UPDATE approvals SET state = 'cancelled'
             WHERE intent = ?1 AND state IN ('pending', 'approved')",
            [intent],
        )?;
        self.execute(
            "INSERT INTO approvals(id, subject, intent, state, requested_at, expires_at, body)
             VALUES (?1, ?2, ?3, 'pending', ?4, ?5, ?6)",
            params![
                row.id,
                row.subject,
                intent,
                clamped(row.requested_at),
                clamped(row.expires_at),
                row.body
            ],
        )
        .map(drop)
    }

    /// Whether what an intent waits for, if anything, is approved, and the approval is brought.
    /// Nothing is written.
    pub(crate) fn lets_go_on(&self, intent: i64, has_approval: bool) -> StoreResult<bool> {
        let sql = "SELECT state = 'approved' FROM approvals
                   WHERE intent = ?1 ORDER BY number DESC LIMIT 1";
        let mut statement = self.connection().prepare_cached(sql).map_err(failed)?;
        let approved = statement.query_row([intent], |row| row.get::<_, bool>(0)).optional();
        Ok(approved.map_err(failed)?.is_none_or(|approved| has_approval && approved))
    }

    /// Uses the approval that an intent waited for.
    pub(crate) fn go_on(&self, intent: i64) -> StoreResult<()> {
        let sql = "UPDATE approvals SET state = 'used' WHERE intent = ?1 AND state = 'approved'";
        self.execute(sql, [intent]).map(drop)
    }

    /// Ends what belongs to an intent.
    pub(crate) fn close_requests(&self, closing: &Closing) -> StoreResult<()> {
        let unanswered = inbox::unanswered(closing.unanswered).name();
        self.execute(
            "UPDATE approvals SET intent = NULL, receipt_id = ?3,
             state = CASE WHEN state IN ('pending', 'approved') THEN ?2 ELSE state END
             WHERE intent = ?1",
            params![closing.intent.0, unanswered, closing.receipt_id],
        )
        .map(drop)
    }

    fn answer(&self, row: &AnswerRow) -> StoreResult<Answered> {
        let sql = "SELECT number, state, expires_at FROM approvals WHERE id = ?1";
        let mut statement = self.connection().prepare_cached(sql).map_err(failed)?;
        let read = |row: &Row<'_>| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(2)?))
        };
        let found = statement.query_row([&row.id], read).optional().map_err(failed)?;
        let Some((number, state, expires_at)) = found else { return Ok(Answered::Unknown) };
        let state = state_named(&state)?;
        let next = match inbox::answer(state, count(expires_at)?, row.decision, row.now) {
            Ok(next) => next,
            Err(over) => return Ok(over),
        };
        let sql = "UPDATE approvals SET state = ?2, answer = ?3 WHERE number = ?1";
        self.execute(sql, params![number, next.name(), row.body])?;
        self.next_epoch()?;
        Ok(Answered::Recorded)
    }
}

fn state_named(name: &str) -> StoreResult<ApprovalState> {
    let found = ApprovalState::ALL.into_iter().find(|state| state.name() == name);
    found.ok_or_else(|| unreadable("the state of a request for approval", "it is none we know"))
}

const COLUMNS: &str = "SELECT number, body, state, answer, receipt_id FROM approvals";

fn approval_in(row: &Row<'_>) -> StoreResult<Approval> {
    let damaged = |error: serde_json::Error| unreadable("a request for approval", error);
    let body: Vec<u8> = row.get(1).map_err(failed)?;
    let state: String = row.get(2).map_err(failed)?;
    let answer: Option<Vec<u8>> = row.get(3).map_err(failed)?;
    Ok(Approval {
        request: serde_json::from_slice(&body).map_err(damaged)?,
        state: state_named(&state)?,
        answer: answer.map(|it| serde_json::from_slice(&it)).transpose().map_err(damaged)?,
        receipt_id: row.get(4).map_err(failed)?,
    })
}

fn approval(database: &Connection, id: &str) -> StoreResult<Option<Approval>> {
    let sql = format!("{COLUMNS} WHERE id = ?1");
    let mut statement = database.prepare_cached(&sql).map_err(failed)?;
    let mut rows = statement.query([id]).map_err(failed)?;
    rows.next().map_err(failed)?.map(approval_in).transpose()
}

fn approvals(database: &Connection, query: &ApprovalQuery) -> StoreResult<Vec<(u64, Approval)>> {
    // Two statements, so that each finds its rows by an index.
    let state = if query.state.is_some() { "state = ?3" } else { "?3 IS NULL" };
    let sql = format!("{COLUMNS} WHERE number < ?1 AND {state} ORDER BY number DESC LIMIT ?2");
    let mut statement = database.prepare_cached(&sql).map_err(failed)?;
    let before = query.cursor.map_or(i64::MAX, clamped);
    let limit = length(bounds::rows(query.limit));
    let asked = params![before, limit, query.state.map(ApprovalState::name)];
    let mut rows = statement.query(asked).map_err(failed)?;
    let (mut found, mut size) = (Vec::new(), 0);
    while let Some(row) = rows.next().map_err(failed)? {
        let body = row.get_ref(1).map_err(failed)?;
        size += body.as_bytes().map_err(|error| unreadable("a request", error))?.len();
        if size > bounds::MAX_BYTES && !found.is_empty() {
            break;
        }
        found.push((count(row.get(0).map_err(failed)?)?, approval_in(row)?));
    }
    Ok(found)
}

#[async_trait]
impl ApprovalStore for SqliteStore {
    async fn approval(&self, id: &str) -> StoreResult<Option<Approval>> {
        let id = id.to_owned();
        self.read(move |database| approval(database, &id)).await
    }

    async fn approvals(&self, query: &ApprovalQuery) -> StoreResult<Vec<(u64, Approval)>> {
        let query = query.clone();
        self.read(move |database| approvals(database, &query)).await
    }

    async fn answer(&self, id: &str, answer: &ApprovalToken, now: u64) -> StoreResult<Answered> {
        let body = canonical::to_vec(answer)
            .map_err(|error| StoreError::Refused(format!("an approval has no form: {error}")))?;
        let row = AnswerRow { id: id.to_owned(), decision: answer.decision, body, now };
        self.writer.run(move |database| database.answer(&row)).await
    }
}
