//! How often somebody may come.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How many are counted; more are counted together.
const MOST: usize = 4096;

/// So many requests in such a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// How many.
    pub requests: u32,
    /// In how long.
    pub window: Duration,
}

/// Counts requests of each identity in windows of time.
#[derive(Debug, Default)]
pub struct Turnstile(Mutex<HashMap<String, (Instant, u32)>>);

impl Turnstile {
    /// Counts one more.
    ///
    /// # Errors
    /// In how many seconds to come back, if it is one too many.
    pub fn pass(&self, who: &str, rate: Rate, now: Instant) -> Result<(), u64> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() >= MOST && !counts.contains_key(who) {
            counts.retain(|_, (since, _)| now.duration_since(*since) < rate.window);
        }
        let who = if counts.len() >= MOST && !counts.contains_key(who) { "" } else { who };
        let (since, count) = counts.entry(who.to_owned()).or_insert((now, 0));
        let passed = now.duration_since(*since);
        if passed >= rate.window {
            (*since, *count) = (now, 0);
        }
        if *count >= rate.requests {
            return Err(rate.window.saturating_sub(passed).as_secs().max(1));
        }
        *count += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, Instant, MOST, Rate, Turnstile};

    #[test]
    fn each_has_so_many_in_a_window_and_crowds_share_one() {
        let rate = Rate { requests: 2, window: Duration::from_secs(60) };
        let (turnstile, now) = (Turnstile::default(), Instant::now());
        for expected in [Ok(()), Ok(()), Err(60)] {
            assert_eq!(turnstile.pass("a", rate, now), expected);
        }
        assert_eq!(turnstile.pass("b", rate, now), Ok(()));
        assert_eq!(turnstile.pass("a", rate, now + Duration::from_secs(59)), Err(1));
        assert_eq!(turnstile.pass("a", rate, now + Duration::from_secs(60)), Ok(()));
        for number in 0..MOST {
            let _ = turnstile.pass(&number.to_string(), rate, now);
        }
        let late = ["x", "y", "z"].map(|who| turnstile.pass(who, rate, now).is_ok());
        assert!(!late.iter().all(|passed| *passed), "{late:?}");
    }
}
