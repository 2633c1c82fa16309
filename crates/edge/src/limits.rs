//! How often a client may send requests, and how many calls run at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chio_core::crypto::PublicKey;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

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

/// Bounds the calls that run at once: in all, and for each owner to a share of that. When there is no
/// room for a call, one is cancelled whose caller has left.
#[derive(Debug)]
pub struct ConcurrencyLimit {
    semaphore: Arc<Semaphore>,
    limit: usize,
    held: Arc<Mutex<HeldPermits>>,
}

#[derive(Debug, Default)]
struct HeldPermits {
    last: u64,
    calls: HashMap<u64, RunningCall>,
    owners: HashMap<PublicKey, usize>,
}

#[derive(Debug)]
struct RunningCall {
    owner: PublicKey,
    cancellation: CancellationToken,
    is_abandoned: bool,
    permit: OwnedSemaphorePermit,
}

/// Permission to run one call. Dropping it makes room for another.
#[derive(Debug)]
pub struct ConcurrencyPermit {
    number: u64,
    held: Arc<Mutex<HeldPermits>>,
}

/// The caller of a call waits for it. Dropping this says that it has left.
#[derive(Debug)]
pub struct CallerWaits {
    number: u64,
    held: Arc<Mutex<HeldPermits>>,
}

impl ConcurrencyLimit {
    /// Allows this many calls at once.
    pub fn new(limit: usize) -> Self {
        let limit = limit.min(Semaphore::MAX_PERMITS);
        Self { semaphore: Arc::new(Semaphore::new(limit)), limit, held: Arc::default() }
    }

    /// A permit for a call of this owner, which can be cancelled so; none when too many run, or the
    /// limit is closed.
    pub fn try_acquire(
        &self,
        owner: &PublicKey,
        cancellation: &CancellationToken,
    ) -> Option<(ConcurrencyPermit, CallerWaits)> {
        let share = (self.limit / SHARE).max(1);
        let mut held = self.held.lock();
        let permit = if held.owners.get(owner).is_some_and(|count| *count >= share) {
            held.cancel_abandoned(|call| call.owner == *owner)?
        } else {
            match Arc::clone(&self.semaphore).try_acquire_owned() {
                Ok(permit) => permit,
                Err(TryAcquireError::NoPermits) => held.cancel_abandoned(|_| true)?,
                Err(TryAcquireError::Closed) => return None,
            }
        };
        held.last += 1;
        let number = held.last;
        let (owner, cancellation) = (owner.clone(), cancellation.clone());
        *held.owners.entry(owner.clone()).or_default() += 1;
        let call = RunningCall { owner, cancellation, is_abandoned: false, permit };
        held.calls.insert(number, call);
        let permit = ConcurrencyPermit { number, held: Arc::clone(&self.held) };
        Some((permit, CallerWaits { number, held: Arc::clone(&self.held) }))
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

impl HeldPermits {
    /// Cancels the oldest of these calls whose caller has left, and takes its permit.
    fn cancel_abandoned(
        &mut self,
        wanted: impl Fn(&RunningCall) -> bool,
    ) -> Option<OwnedSemaphorePermit> {
        let abandoned = self.calls.iter().filter(|(_, call)| call.is_abandoned && wanted(call));
        let oldest = abandoned.map(|(number, _)| *number).min()?;
        let call = self.release(oldest)?;
        call.cancellation.cancel();
        Some(call.permit)
    }

    fn release(&mut self, number: u64) -> Option<RunningCall> {
        let call = self.calls.remove(&number)?;
        if let Some(count) = self.owners.get_mut(&call.owner) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.owners.remove(&call.owner);
            }
        }
        Some(call)
    }
}

impl Drop for ConcurrencyPermit {
    fn drop(&mut self) {
        self.held.lock().release(self.number);
    }
}

impl Drop for CallerWaits {
    fn drop(&mut self) {
        if let Some(call) = self.held.lock().calls.get_mut(&self.number) {
            call.is_abandoned = true;
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
        let (limit, token) = (ConcurrencyLimit::new(8), CancellationToken::new());
        let acquire = |limit: &ConcurrencyLimit, seed| limit.try_acquire(&owner(seed), &token);
        let held = [acquire(&limit, 1), acquire(&limit, 1)];
        assert!(held.iter().all(Option::is_some));
        assert!(acquire(&limit, 1).is_none(), "a quarter of eight");
        let other = acquire(&limit, 2);
        assert!(other.is_some());
        drop(held);
        assert!(acquire(&limit, 1).is_some());
        let limit = ConcurrencyLimit::new(1);
        let only = acquire(&limit, 1);
        assert!(only.is_some() && acquire(&limit, 2).is_none());
        assert!(!token.is_cancelled());
    }

    #[tokio::test]
    async fn calls_whose_caller_has_left_make_room_oldest_first() {
        let limit = ConcurrencyLimit::new(4);
        let acquire = |seed| {
            let token = CancellationToken::new();
            limit.try_acquire(&owner(seed), &token).map(|(permit, waits)| (permit, waits, token))
        };
        let mut running: Vec<_> = (1..=4).map(|seed| acquire(seed).unwrap()).collect();
        assert!(acquire(5).is_none(), "all callers wait");
        let (third, waits, third_token) = running.remove(2);
        drop(waits);
        let (first, waits, first_token) = running.remove(0);
        drop(waits);
        let fifth = acquire(5).unwrap();
        assert!(first_token.is_cancelled() && !third_token.is_cancelled());
        // The same owner has its share, and the one call of it is abandoned.
        let again = acquire(3).unwrap();
        assert!(third_token.is_cancelled());
        // What was cancelled ends in its own time, and gives back nothing twice.
        drop((first, third));
        assert!(acquire(6).is_none());
        drop((fifth, again, running));
        assert!(limit.wait_idle(Duration::from_secs(1)).await);
    }
}
