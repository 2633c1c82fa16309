//! Moments until which something is waited for.

use std::time::Duration;

use tokio::time::Instant;

/// Longer than any connection lives, and short enough to be added to any moment.
const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// The moment after some time from now. Time without end is a caller's right and ends here.
pub(super) fn deadline(after: Duration) -> Instant {
    Instant::now() + after.min(FAR)
}
