//! How much one answer may hold, whoever asks.

/// The most rows of one answer; whoever wants more asks again from where it ended.
const MAX_ROWS: usize = 10_000;

/// The most bytes of one answer, but for a single row that has more.
pub(crate) const MAX_BYTES: usize = 64 << 20;

/// So many rows as asked for, within the bound.
pub(crate) fn rows(limit: usize) -> usize {
    limit.min(MAX_ROWS)
}
