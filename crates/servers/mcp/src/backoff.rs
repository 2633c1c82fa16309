//! When a child that failed may be started again.

use std::time::Duration;

use tokio::time::Instant;

use crate::options::Limits;

/// How often a child has failed in a row, and until when it is left alone.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
    until: Option<Instant>,
}

impl Backoff {
    /// Takes note of a child that was over at `at` after it had lived for `lived`.
    pub(crate) fn failed(&mut self, lived: Duration, at: Instant, limits: &Limits) {
        if lived >= limits.settled_after {
            *self = Self::default();
            return;
        }
        let times = 2_u32.saturating_pow(self.failures);
        let pause = limits.first_pause.saturating_mul(times).min(limits.longest_pause);
        self.failures = self.failures.saturating_add(1);
        self.until = Some(at + pause);
    }

    /// How long it is still left alone; none when it may be started.
    pub(crate) fn remaining(&self, now: Instant) -> Option<Duration> {
        self.until
            .and_then(|until| until.checked_duration_since(now))
            .filter(|left| !left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_doubles_the_pause_until_the_longest() {
        let (limits, start) = (Limits::default(), Instant::now());
        let mut backoff = Backoff::default();
        assert_eq!(backoff.remaining(start), None);
        for expected in [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000] {
            backoff.failed(Duration::ZERO, start, &limits);
            assert_eq!(backoff.remaining(start), Some(Duration::from_millis(expected)));
        }
        assert_eq!(backoff.remaining(start + Duration::from_secs(10)), None);
    }

    #[test]
    fn a_child_that_has_lived_a_while_is_started_again_at_once() {
        let (limits, start) = (Limits::default(), Instant::now());
        let mut backoff = Backoff::default();
        backoff.failed(Duration::ZERO, start, &limits);
        backoff.failed(limits.settled_after, start, &limits);
        assert_eq!(backoff.remaining(start), None);
        backoff.failed(Duration::ZERO, start, &limits);
        assert_eq!(backoff.remaining(start), Some(limits.first_pause));
    }
}
