//! How often a client may send requests, and how many calls run at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chio_core::crypto::PublicKey;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::settings::{Form, Setting, Settings};

/// The most clients that are counted each for itself; further ones are counted together.
const MAX_CLIENTS: usize = 4096;
/// One owner holds at most this fraction of all permits: one in four.
const SHARE: usize = 4;

/// The number of requests that a client may send in a window of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// The most requests in one window.
    pub requests: u32,
    /// The length of a window, which begins with a client's first request.
    pub window: Duration,
}

impl Rate {
    /// The setting of edges that limit the rate of their clients.
    pub const SETTING: Setting =
        Setting::new("rate", Form::Number(u32::MAX as u64), "no limit", "requests in a minute");

    /// The rate that [`Self::SETTING`] sets, if it does.
    pub fn from_settings(settings: &Settings) -> Option<Self> {
        let requests = settings.number(Self::SETTING.name)?;
        Some(Self { requests, window: Duration::from_secs(60) })
    }
}

/// Counts the requests of each client in windows of time.
#[derive(Debug, Default)]
pub struct RateLimiter {
    rate: Option<Rate>,
    counts: Mutex<HashMap<String, (Instant, u32)>>,
}

impl RateLimiter {
    /// A limiter; without a rate, it counts nothing.
    pub fn new(rate: Option<Rate>) -> Self {
        Self { rate, counts: Mutex::default() }
    }

    /// Counts a request of this client.
    ///
    /// # Errors
    /// When it is one too many: the seconds after which to try again.
    pub fn pass(&self, client: &str, now: Instant) -> Result<(), u64> {
        let Some(rate) = self.rate else { return Ok(()) };
        let mut counts = self.counts.lock();
        if counts.len() >= MAX_CLIENTS && !counts.contains_key(client) {
            counts.retain(|_, (since, _)| now.duration_since(*since) < rate.window);
        }
        let is_crowded = counts.len() >= MAX_CLIENTS && !counts.contains_key(client);
        let client = if is_crowded { "" } else { client };
        let (since, count) = counts.entry(client.to_owned()).or_insert((now, 0));
        let elapsed = now.duration_since(*since);
        if elapsed >= rate.window {
            (*since, *count) = (now, 0);
        }
        if *count >= rate.requests {
            return Err(rate.window.saturating_sub(elapsed).as_secs().max(1));
        }
        *count += 1;
        Ok(())
    }
}

type PermitCounts = Mutex<HashMap<PublicKey, usize>>;

/// Bounds the calls that run at once: in all, and for each owner to a share of that.
#[derive(Debug)]
pub struct ConcurrencyLimit {
    semaphore: Arc<Semaphore>,
    limit: usize,
    held: Arc<PermitCounts>,
}

/// Permission to run one call. Dropping it makes room for another.
#[derive(Debug)]
pub struct ConcurrencyPermit {
    owner: PublicKey,
    held: Arc<PermitCounts>,
    _permit: OwnedSemaphorePermit,
}

impl ConcurrencyLimit {
    /// Allows this many calls at once.
    pub fn new(limit: usize) -> Self {
        let limit = limit.min(Semaphore::MAX_PERMITS);
        Self { semaphore: Arc::new(Semaphore::new(limit)), limit, held: Arc::default() }
    }

    /// A permit for a call of this owner; none when too many run, or the limit is closed.
    pub fn try_acquire(&self, owner: &PublicKey) -> Option<ConcurrencyPermit> {
        let share = (self.limit / SHARE).max(1);
        let mut held = self.held.lock();
        if held.get(owner).copied().unwrap_or(0) >= share {
            return None;
        }
        let permit = Arc::clone(&self.semaphore).try_acquire_owned().ok()?;
        *held.entry(owner.clone()).or_default() += 1;
        Some(ConcurrencyPermit {
            owner: owner.clone(),
            held: Arc::clone(&self.held),
            _permit: permit,
        })
    }

    /// Waits until no call runs. False when that takes longer than `timeout`.
    pub async fn wait_idle(&self, timeout: Duration) -> bool {
        let all = u32::try_from(self.limit).unwrap_or(u32::MAX);
        tokio::time::timeout(timeout, self.semaphore.acquire_many(all)).await.is_ok()
    }

    /// Issues no further permits.
    pub fn close(&self) {
        self.semaphore.close();
    }
}

impl Drop for ConcurrencyPermit {
    fn drop(&mut self) {
        let mut held = self.held.lock();
        if let Some(count) = held.get_mut(&self.owner) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                held.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use chio_core::crypto::Keypair;

    use super::*;

    #[test]
    fn each_client_has_its_own_count_in_a_window_and_further_ones_share_one() {
        let rate = Rate { requests: 2, window: Duration::from_secs(60) };
        let (rate_limiter, now) = (RateLimiter::new(Some(rate)), Instant::now());
        for expected in [Ok(()), Ok(()), Err(60)] {
            assert_eq!(rate_limiter.pass("a", now), expected);
        }
        assert_eq!(rate_limiter.pass("b", now), Ok(()));
        assert_eq!(rate_limiter.pass("a", now + Duration::from_secs(59)), Err(1));
        assert_eq!(rate_limiter.pass("a", now + Duration::from_secs(60)), Ok(()));
        for number in 0..MAX_CLIENTS {
            let _ = rate_limiter.pass(&number.to_string(), now);
        }
        let late = ["x", "y", "z"].map(|client| rate_limiter.pass(client, now).is_ok());
        assert!(!late.iter().all(|passed| *passed), "{late:?}");
    }

    fn owner(seed: u8) -> PublicKey {
        Keypair::from_seed(&[seed; 32]).public_key().clone()
    }

    #[test]
    fn one_owner_never_holds_all_permits() {
        let limit = ConcurrencyLimit::new(8);
        let held = [limit.try_acquire(&owner(1)), limit.try_acquire(&owner(1))];
        assert!(held.iter().all(Option::is_some));
        assert!(limit.try_acquire(&owner(1)).is_none(), "a quarter of eight");
        let other = limit.try_acquire(&owner(2));
        assert!(other.is_some());
        drop(held);
        assert!(limit.try_acquire(&owner(1)).is_some());
        let limit = ConcurrencyLimit::new(1);
        let only = limit.try_acquire(&owner(1));
        assert!(only.is_some() && limit.try_acquire(&owner(2)).is_none());
    }
}
