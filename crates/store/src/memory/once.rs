//! Proofs and approvals that were used, in this process.
//!
//! What was used before it began is unknown, so what was made before is refused. One thing stays
//! open: a proof by a clock that is ahead of ours bears a time after our beginning, and may have
//! been used before it.

use std::collections::{BTreeSet, HashMap, HashSet};

use chio_kernel::store::{ApprovalUse, ProofUse, UseRefused};

use crate::bounds::{MAX_PROOFS, MAX_PRUNED, USE_GRACE};
use crate::once::has_twins;

/// Proofs that were used.
pub(super) struct Proofs {
    used: HashSet<String>,
    by_end: BTreeSet<(u64, String)>,
    /// The first second that is all of this store.
    since: u64,
    /// The latest end of those that were forgotten.
    forgotten: u64,
    most: u64,
}

impl Default for Proofs {
    fn default() -> Self {
        let (used, by_end) = (HashSet::new(), BTreeSet::new());
        Self { used, by_end, since: 0, forgotten: 0, most: MAX_PROOFS }
    }
}

impl Proofs {
    /// Those of a store that begins with this second.
    pub(super) fn since(since: u64) -> Self {
        Self { since, ..Self::default() }
    }

    /// Why these proofs cannot be used, if so.
    pub(super) fn refuse(&self, proofs: &[ProofUse]) -> Option<UseRefused> {
        if proofs.iter().any(|proof| proof.issued_at < self.since) {
            return Some(UseRefused::ProofTooOld);
        }
        if has_twins(proofs) || proofs.iter().any(|proof| self.used.contains(&proof.key)) {
            return Some(UseRefused::ProofUsed);
        }
        // SECURITY: by a clock that went back, a proof that was used and forgotten holds again.
        if proofs.iter().any(|proof| proof.expires_at <= self.forgotten) {
            return Some(UseRefused::ProofForgotten);
        }
        let now = proofs.first()?.now;
        let over = self.by_end.iter().take(proofs.len()).filter(|(end, _)| *end <= now).count();
        let after = self.used.len().saturating_add(proofs.len()).saturating_sub(over);
        (super::count(after) > self.most).then_some(UseRefused::ProofsFull)
    }

    pub(super) fn take(&mut self, proofs: Vec<ProofUse>) {
        let Some(now) = proofs.first().map(|proof| proof.now) else { return };
        for _ in 0..MAX_PRUNED.max(proofs.len()) {
            if self.by_end.first().is_none_or(|(end, _)| *end > now) {
                break;
            }
            if let Some((end, key)) = self.by_end.pop_first() {
                self.forgotten = self.forgotten.max(end);
                self.used.remove(&key);
            }
        }
        for proof in proofs {
            self.by_end.insert((proof.expires_at, proof.key.clone()));
            self.used.insert(proof.key);
        }
    }
}

/// Approvals that were used.
#[derive(Default)]
pub(super) struct ApprovalUses {
    /// The request and the intent of each digest.
    by_digest: HashMap<String, (String, String)>,
    pairs: HashSet<(String, String)>,
    by_end: BTreeSet<(u64, String)>,
    /// The first second that is all of this store.
    since: u64,
    /// The latest end of those that were forgotten.
    forgotten: u64,
}

impl ApprovalUses {
    /// Those of a store that begins with this second.
    pub(super) fn since(since: u64) -> Self {
        Self { since, ..Self::default() }
    }

    /// Why this approval cannot be used, if so.
    pub(super) fn refuse(&self, approval: &ApprovalUse) -> Option<UseRefused> {
        if approval.issued_at < self.since {
            return Some(UseRefused::ApprovalTooOld);
        }
        let pair = (approval.request_id.clone(), approval.intent_hash.clone());
        let is_used = self.by_digest.contains_key(&approval.digest) || self.pairs.contains(&pair);
        if is_used {
            return Some(UseRefused::ApprovalUsed);
        }
        // SECURITY: as with proofs. Another approval of the same request was made before the end of
        // the one that is forgotten.
        (approval.issued_at <= self.forgotten).then_some(UseRefused::ApprovalForgotten)
    }

    pub(super) fn take(&mut self, approval: ApprovalUse) {
        let remembered = |end: u64| approval.now <= end.saturating_add(USE_GRACE);
        for _ in 0..MAX_PRUNED {
            if self.by_end.first().is_none_or(|(end, _)| remembered(*end)) {
                break;
            }
            let Some((end, digest)) = self.by_end.pop_first() else { break };
            self.forgotten = self.forgotten.max(end);
            if let Some(pair) = self.by_digest.remove(&digest) {
                self.pairs.remove(&pair);
            }
        }
        let pair = (approval.request_id, approval.intent_hash);
        self.by_end.insert((approval.expires_at, approval.digest.clone()));
        self.pairs.insert(pair.clone());
        self.by_digest.insert(approval.digest, pair);
    }
}

#[cfg(test)]
mod tests {
    use chio_kernel::store::{ProofUse, UseRefused};

    use super::Proofs;

    #[test]
    fn a_full_table_refuses_until_something_in_it_has_expired() {
        let mut proofs = Proofs { most: 2, ..Proofs::default() };
        let proof = |key: &str, now| {
            let (key, expires_at) = (key.to_owned(), now + 10);
            vec![ProofUse { key, issued_at: now, expires_at, now }]
        };
        for key in ["a", "b"] {
            assert_eq!(proofs.refuse(&proof(key, 1)), None);
            proofs.take(proof(key, 1));
        }
        assert_eq!(proofs.refuse(&proof("c", 10)), Some(UseRefused::ProofsFull));
        assert_eq!(proofs.refuse(&proof("a", 10)), Some(UseRefused::ProofUsed));
        assert_eq!(proofs.refuse(&proof("c", 11)), None);
        // Together they need more room than there is even now.
        let three = ["c", "d", "e"].map(|key| proof(key, 11)).concat();
        assert_eq!(proofs.refuse(&three), Some(UseRefused::ProofsFull));
        proofs.take(proof("c", 11));
        assert_eq!(proofs.used.len(), 1);
    }
}
