//! What may be used once, in any store.

use chio_kernel::store::ProofUse;

/// Whether the same proof is brought twice at once.
pub(crate) fn has_twins(proofs: &[ProofUse]) -> bool {
    let mut rest = proofs;
    while let [first, others @ ..] = rest {
        if others.iter().any(|other| other.key == first.key) {
            return true;
        }
        rest = others;
    }
    false
}
