//! Proofs and approvals that were used, in the shared database.

use chio_kernel::store::{ApprovalUse, ProofUse, StoreResult, UseRefused};
use rusqlite::params;

use super::database::Database;
use super::error::failed;
use super::number::{clamped, length};
use crate::bounds::{MAX_PRUNED, USE_GRACE};
use crate::once::has_twins;

/// The latest end of the proofs that were forgotten, in the `meta` table.
const PROOFS_FORGOTTEN: &str = "proofs_forgotten";
/// The same of approvals.
const APPROVALS_FORGOTTEN: &str = "approvals_forgotten";

impl Database {
    /// Why these proofs cannot be used, if so. Nothing is written.
    pub(crate) fn refuse_proofs(&self, proofs: &[ProofUse]) -> StoreResult<Option<UseRefused>> {
        let Some(now) = proofs.first().map(|proof| clamped(proof.now)) else { return Ok(None) };
        if has_twins(proofs) {
            return Ok(Some(UseRefused::ProofUsed));
        }
        for proof in proofs {
            if self.exists("SELECT 1 FROM proofs WHERE key = ?1", [&proof.key])? {
                return Ok(Some(UseRefused::ProofUsed));
            }
        }
        // SECURITY: by a clock that went back, a proof that was used and forgotten holds again.
        let forgotten = self.forgotten(PROOFS_FORGOTTEN)?;
        if proofs.iter().any(|proof| clamped(proof.expires_at) <= forgotten) {
            return Ok(Some(UseRefused::ProofForgotten));
        }
        let after = self.number("SELECT value FROM meta WHERE key = 'proofs'", [])?;
        let after = after.saturating_add(length(proofs.len()));
        if after <= clamped(self.most_proofs) {
            return Ok(None);
        }
        let sql = "SELECT count(*) FROM (SELECT 1 FROM proofs WHERE expires_at <= ?1 LIMIT ?2)";
        let over = self.number(sql, [now, length(proofs.len())])?;
        let is_full = after.saturating_sub(over) > clamped(self.most_proofs);
        Ok(is_full.then_some(UseRefused::ProofsFull))
    }

    /// Uses proofs that nothing refused, and forgets some that are not accepted any more.
    pub(crate) fn use_proofs(&self, proofs: &[ProofUse]) -> StoreResult<()> {
        let Some(now) = proofs.first().map(|proof| clamped(proof.now)) else { return Ok(()) };
        let sql = "DELETE FROM proofs WHERE key IN
                   (SELECT key FROM proofs WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)
                   RETURNING expires_at";
        let most = length(MAX_PRUNED.max(proofs.len()));
        let pruned = self.forget(sql, [now, most], PROOFS_FORGOTTEN)?;
        for proof in proofs {
            let sql = "INSERT INTO proofs(key, expires_at) VALUES (?1, ?2)";
            self.execute(sql, params![proof.key, clamped(proof.expires_at)])?;
        }
        // To count them every time would take longer than all the rest.
        let sql = "UPDATE meta SET value = value + ?1 - ?2 WHERE key = 'proofs'";
        self.execute(sql, [length(proofs.len()), length(pruned)]).map(drop)
    }

    /// Why this approval cannot be used, if so: it, or another of the same request and intent, was.
    /// Nothing is written.
    pub(crate) fn refuse_approval(
        &self,
        approval: &ApprovalUse,
    ) -> StoreResult<Option<UseRefused>> {
        let by_digest = "SELECT 1 FROM approval_uses WHERE digest = ?1";
        let by_pair = "SELECT 1 FROM approval_uses WHERE request_id = ?1 AND intent_hash = ?2";
        if self.exists(by_digest, [&approval.digest])?
            || self.exists(by_pair, [&approval.request_id, &approval.intent_hash])?
        {
            return Ok(Some(UseRefused::ApprovalUsed));
        }
        // SECURITY: as with proofs. Another approval of the same request was made before the end of
        // the one that is forgotten.
        let is_old = clamped(approval.issued_at) <= self.forgotten(APPROVALS_FORGOTTEN)?;
        Ok(is_old.then_some(UseRefused::ApprovalForgotten))
    }

    /// Uses an approval that was not used, and forgets some that are not accepted any more.
    pub(crate) fn use_approval(&self, approval: &ApprovalUse) -> StoreResult<()> {
        let long_over = clamped(approval.now).saturating_sub(clamped(USE_GRACE));
        let sql = "DELETE FROM approval_uses WHERE digest IN
                   (SELECT digest FROM approval_uses WHERE expires_at < ?1
                    ORDER BY expires_at LIMIT ?2) RETURNING expires_at";
        self.forget(sql, [long_over, length(MAX_PRUNED)], APPROVALS_FORGOTTEN)?;
        self.execute(
            "INSERT INTO approval_uses(digest, request_id, intent_hash, expires_at)
             VALUES (?1, ?2, ?3, ?4)",
            params![
                approval.digest,
                approval.request_id,
                approval.intent_hash,
                clamped(approval.expires_at)
            ],
        )
        .map(drop)
    }

    fn forgotten(&self, what: &str) -> StoreResult<i64> {
        self.number("SELECT value FROM meta WHERE key = ?1", [what])
    }

    /// Forgets what a statement removes, and notes its latest end. Tells how much it was.
    fn forget(&self, sql: &str, range: [i64; 2], what: &str) -> StoreResult<usize> {
        let mut statement = self.connection().prepare_cached(sql).map_err(failed)?;
        let ends = statement.query_map(range, |row| row.get::<_, i64>(0)).map_err(failed)?;
        let ends = ends.collect::<Result<Vec<_>, _>>().map_err(failed)?;
        if let Some(last) = ends.iter().max() {
            let sql = "UPDATE meta SET value = max(value, ?2) WHERE key = ?1";
            self.execute(sql, params![what, last])?;
        }
        Ok(ends.len())
    }
}
