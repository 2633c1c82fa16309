//! The numbers of entries and intents: a log's number and a place in it, in one integer.

use chio_kernel::store::{StoreError, StoreResult};

/// Bits for the place within a log.
const PLACE_BITS: u32 = 40;

/// The highest place in a log.
pub(crate) const LAST_PLACE: i64 = (1 << PLACE_BITS) - 1;

/// The integer of this place in this log.
pub(crate) const fn joined(log: i64, place: i64) -> i64 {
    log << PLACE_BITS | place
}

/// The log and the place in it.
pub(crate) const fn split(number: i64) -> (i64, i64) {
    (number >> PLACE_BITS, number & LAST_PLACE)
}

/// A count for the database; the largest it has where the count is beyond.
pub(crate) fn clamped(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A length for the database.
pub(crate) fn length(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// A count from the database.
pub(crate) fn count(stored: i64) -> StoreResult<u64> {
    u64::try_from(stored)
        .map_err(|_| StoreError::Damaged(format!("expected a count, found {stored}")))
}
