//! The one place that asks the machine for the time; everything else is told.

use std::time::{SystemTime, UNIX_EPOCH};

/// Now, in Unix seconds.
pub(crate) fn now() -> u64 {
    // A clock before 1970 is broken; at second 0 no token is valid yet.
    system_time().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Now, to compare with what file systems say.
#[expect(clippy::disallowed_methods, reason = "this is the clock that all others are given")]
pub(crate) fn system_time() -> SystemTime {
    SystemTime::now()
}
