//! Intents of calls that wait before they may reserve, in the shared database.

use chio_kernel::store::{
    Closing, IntentId, Opened, Opening, ProofUse, Reserved, StoreError, StoreResult, TaskClaim,
    UseRefused,
};
use rusqlite::params;

use super::database::{Database, ReservationRow};
use super::inbox::ApprovalRow;
use super::number::split;

/// An opening, ready to be written.
#[derive(Debug)]
pub(crate) struct OpeningRow {
    body: Vec<u8>,
    resumes: Option<IntentId>,
    proofs: Vec<ProofUse>,
    waits_for: Option<ApprovalRow>,
    claims: Option<TaskClaim>,
}

impl OpeningRow {
    pub(crate) fn new(opening: Opening) -> StoreResult<Self> {
        let Opening { intent, resumes, proofs, waits_for, claims } = opening;
        let body = serde_json::to_vec(&crate::unreserved(intent))
            .map_err(|error| StoreError::Refused(format!("an intent has no form: {error}")))?;
        let waits_for = waits_for.map(ApprovalRow::new).transpose()?;
        Ok(Self { body, resumes, proofs, waits_for, claims })
    }
}

impl Database {
    /// Writes the intent of a call that waits, with all that it waits for. Everything is looked up
    /// before anything is written.
    pub(crate) fn open(&mut self, log: i64, row: &OpeningRow) -> StoreResult<Opened> {
        if let Some(refused) = self.refuse_opening(log, row)? {
            return Ok(refused);
        }
        let owns = row.waits_for.is_some() || row.claims.is_some();
        let intent = match row.resumes {
            Some(IntentId(intent)) => {
                let sql = "UPDATE intents SET body = ?2, owns = max(owns, ?3) WHERE id = ?1";
                self.execute(sql, params![intent, row.body, owns])?;
                intent
            }
            None => {
                let intent = self.next_intent(log)?;
                let sql = "INSERT INTO intents(id, chosen, body, waits, owns)
                           VALUES (?1, 0, ?2, 1, ?3)";
                self.execute(sql, params![intent, row.body, owns])?;
                intent
            }
        };
        self.note_written(row.body.len());
        self.use_proofs(&row.proofs)?;
        if let Some(claim) = &row.claims {
            self.claim_task(intent, claim)?;
        }
        if let Some(request) = &row.waits_for {
            self.ask(intent, request)?;
        }
        Ok(Opened::At(IntentId(intent)))
    }

    fn refuse_opening(&self, log: i64, row: &OpeningRow) -> StoreResult<Option<Opened>> {
        if let Some(intent) = row.resumes
            && !self.waits(log, intent)?
        {
            return Ok(Some(Opened::IntentClosed));
        }
        if let Some(refused) = self.refuse_proofs(&row.proofs)? {
            return Ok(Some(Opened::Refused(refused)));
        }
        if let Some(claim) = &row.claims
            && let Err(refused) = self.look_at_task(claim)?
        {
            return Ok(Some(Opened::NotClaimed(refused)));
        }
        let Some(request) = &row.waits_for else { return Ok(None) };
        if self.is_in_inbox(request)? {
            return Err(crate::inbox::name_taken());
        }
        Ok(self.is_inbox_full(request, row.resumes)?.then_some(Opened::InboxFull))
    }

    /// Whether this is an open intent of this log that has not reserved.
    fn waits(&self, log: i64, IntentId(intent): IntentId) -> StoreResult<bool> {
        let sql = "SELECT 1 FROM intents WHERE id = ?1 AND waits = 1";
        Ok(split(intent).0 == log && self.exists(sql, [intent])?)
    }

    /// Why a reservation cannot go on with its intent, its proof or its approval, if so. Asks the
    /// database nothing about a reservation that has none of these. Nothing is written.
    pub(crate) fn refuse_uses(
        &self,
        log: i64,
        row: &ReservationRow,
    ) -> StoreResult<Option<Reserved>> {
        if let Some(intent) = row.resumes
            && !self.waits(log, intent)?
        {
            return Ok(Some(Reserved::IntentClosed));
        }
        if let Some(refused) = self.refuse_proofs(&row.proofs)? {
            return Ok(Some(Reserved::Refused(refused)));
        }
        let approval = row.approval.as_ref();
        if let Some(refused) = approval.map_or(Ok(None), |brought| self.refuse_approval(brought))? {
            return Ok(Some(Reserved::Refused(refused)));
        }
        let may = row.resumes.map_or(Ok(true), |it| self.lets_go_on(it.0, approval.is_some()))?;
        Ok((!may).then_some(Reserved::Refused(UseRefused::ApprovalUsed)))
    }

    /// Uses up what a reservation brings.
    pub(crate) fn use_up(&self, row: &ReservationRow) -> StoreResult<()> {
        self.use_proofs(&row.proofs)?;
        let Some(approval) = &row.approval else { return Ok(()) };
        self.use_approval(approval)?;
        row.resumes.map_or(Ok(()), |IntentId(intent)| self.go_on(intent))
    }

    /// Closes an intent, and ends what belongs to it with this entry; false when it is not open. It may
    /// be in another kernel's log: sweepers close those of others.
    pub(crate) fn close_intent(&self, closing: &Closing, entry: i64) -> StoreResult<bool> {
        let IntentId(intent) = closing.intent;
        // Nothing belongs to most intents, and then this is all.
        if self.execute("DELETE FROM intents WHERE id = ?1 AND owns = 0", [intent])? > 0 {
            return Ok(true);
        }
        if self.execute("DELETE FROM intents WHERE id = ?1", [intent])? == 0 {
            return Ok(false);
        }
        self.close_requests(closing)?;
        self.close_task(closing, entry)?;
        Ok(true)
    }
}
