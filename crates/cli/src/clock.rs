//! The one place that asks the machine for the time; everything else is told.

use std::time::{SystemTime, UNIX_EPOCH};

/// Now, in Unix seconds.
#[expect(clippy::disallowed_methods, reason = "this is the clock that all others are given")]
pub(crate) fn now() -> u64 {
    // A clock before 1970 is broken; at second 0 no token is valid yet.
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
