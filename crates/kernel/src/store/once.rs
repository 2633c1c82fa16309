//! What may be used only once, for good: proofs of possession and approvals.

/// A proof of possession that a call is accepted with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProofUse {
    /// The hash of its nonce and its token: what must never come again.
    pub key: String,
    /// When it was made, in Unix seconds. A store that forgets when it ends refuses those made
    /// before it began.
    pub issued_at: u64,
    /// The first second in which it is not accepted any more; until then it is remembered.
    pub expires_at: u64,
    /// The time now, in Unix seconds.
    pub now: u64,
}

/// An approval that a call runs with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalUse {
    /// The digest of the approval token. No digest is taken twice.
    pub digest: String,
    /// The request that it approves.
    pub request_id: String,
    /// The intent that it approves. No request and intent are taken twice together.
    pub intent_hash: String,
    /// When it was made, in Unix seconds. A store that forgets when it ends refuses those made
    /// before it began.
    pub issued_at: u64,
    /// The first second in which it is not accepted any more; until then it is remembered.
    pub expires_at: u64,
    /// The time now, in Unix seconds.
    pub now: u64,
}

/// Why something could not be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UseRefused {
    /// The proof was used before.
    ProofUsed,
    /// The proof was made before this store remembers.
    ProofTooOld,
    /// The proof ends no later than others that were used and are forgotten; it may be one of them.
    ProofForgotten,
    /// No more proofs can be remembered now.
    ProofsFull,
    /// The approval was used before.
    ApprovalUsed,
    /// The approval was made before this store remembers.
    ApprovalTooOld,
    /// The approval was made before the end of others that were used and are forgotten; it may be
    /// one of them.
    ApprovalForgotten,
}
