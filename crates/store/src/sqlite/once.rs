//! Proofs and approvals that were used, in the shared database.

use chio_kernel::store::{ApprovalUse, ProofUse, StoreResult, UseRefused};
use rusqlite::params;

use super::database::Database;
use super::number::{clamped, length};
use crate::bounds::{MAX_PRUNED, USE_GRACE};
use crate::once::has_twins;

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
        let pruned = self.execute(
            "DELETE FROM proofs WHERE key IN
             (SELECT key FROM proofs WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)",
            [now, length(MAX_PRUNED.max(proofs.len()))],
        )?;
        for proof in proofs {
            let sql = "INSERT INTO proofs(key, expires_at) VALUES (?1, ?2)";
            self.execute(sql, params![proof.key, clamped(proof.expires_at)])?;
        }
        // To count them every time would take longer than all the rest.
        let sql = "UPDATE meta SET value = value + ?1 - ?2 WHERE key = 'proofs'";
        self.execute(sql, [length(proofs.len()), length(pruned)]).map(drop)
    }

    /// Whether this approval, or another of the same request and intent, was used. Nothing is
    /// written.
    pub(crate) fn is_approval_used(&self, approval: &ApprovalUse) -> StoreResult<bool> {
        let by_digest = "SELECT 1 FROM approval_uses WHERE digest = ?1";
        let by_pair = "SELECT 1 FROM approval_uses WHERE request_id = ?1 AND intent_hash = ?2";
        Ok(self.exists(by_digest, [&approval.digest])?
            || self.exists(by_pair, [&approval.request_id, &approval.intent_hash])?)
    }

    /// Uses an approval that was not used, and forgets some that are not accepted any more.
    pub(crate) fn use_approval(&self, approval: &ApprovalUse) -> StoreResult<()> {
        let long_over = clamped(approval.now).saturating_sub(clamped(USE_GRACE));
        self.execute(
            "DELETE FROM approval_uses WHERE digest IN
             (SELECT digest FROM approval_uses WHERE expires_at < ?1 ORDER BY expires_at LIMIT ?2)",
            [long_over, length(MAX_PRUNED)],
        )?;
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
}
