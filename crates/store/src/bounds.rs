//! How much one answer may hold, and how much is kept for how long, for every caller.

/// The most rows of one answer; a caller that wants more asks again from where it ended.
const MAX_ROWS: usize = 10_000;

/// The most bytes of one answer, but for a single row that has more.
pub(crate) const MAX_BYTES: usize = 64 << 20;

/// The most proofs of possession that are remembered at once.
pub(crate) const MAX_PROOFS: u64 = 1 << 20;

/// The most requests for approval that are open at once.
pub(crate) const MAX_OPEN_APPROVALS: u64 = 4096;

/// The most of them that one subject has.
pub(crate) const MAX_OPEN_OF_SUBJECT: u64 = 64;

/// The most bytes that those of one subject have.
pub(crate) const MAX_OPEN_BYTES_OF_SUBJECT: u64 = 16 << 20;

/// Seconds for which a used approval is remembered after its end: as long as another approval of
/// the same request, made before that end, may hold.
pub(crate) const USE_GRACE: u64 = 3600;

/// Seconds for which a request for approval that is over stays in the inbox.
pub(crate) const INBOX_MEMORY: u64 = 30 * 24 * 3600;

/// Seconds for which a task that has ended is kept at least, so that its owner can fetch it.
pub(crate) const RESULT_MEMORY: u64 = 300;

/// The most rows that one write removes because their time is over.
pub(crate) const MAX_PRUNED: usize = 64;

/// The most tasks that are forgotten at once when a kernel asks for that.
pub(crate) const MAX_FORGOTTEN: usize = 256;

/// The most bytes that are overwritten at once, but for a single task that has more: no other
/// process can write meanwhile.
pub(crate) const MAX_FORGOTTEN_BYTES: u64 = 16 << 20;

/// This many rows as asked for, within the bound.
pub(crate) fn rows(limit: usize) -> usize {
    limit.min(MAX_ROWS)
}
