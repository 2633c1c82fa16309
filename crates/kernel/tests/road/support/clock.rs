//! A clock that stands until a test sets it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chio_kernel::{Clock, Randomness};

use super::NOW;

/// A clock that stands until a test sets it.
#[derive(Debug)]
pub(crate) struct ManualClock {
    seconds: AtomicU64,
    monotonic_millis: AtomicU64,
}

impl Default for ManualClock {
    fn default() -> Self {
        Self { seconds: AtomicU64::new(NOW), monotonic_millis: AtomicU64::new(0) }
    }
}

impl ManualClock {
    /// Sets the second; the monotonic clock stays.
    pub(crate) fn set(&self, seconds: u64) {
        self.seconds.store(seconds, Ordering::SeqCst);
    }

    /// Lets only the monotonic clock go on.
    pub(crate) fn wait(&self, time: Duration) {
        let millis = u64::try_from(time.as_millis()).unwrap();
        self.monotonic_millis.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn unix_millis(&self) -> u64 {
        self.seconds.load(Ordering::SeqCst) * 1000
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.monotonic_millis.load(Ordering::SeqCst))
    }
}

/// Bytes that count up, so that names differ and runs are alike.
#[derive(Debug, Default)]
pub(crate) struct Counting(AtomicU64);

impl Counting {
    /// Bytes that no other number gives.
    pub(crate) const fn of(number: u32) -> Self {
        Self(AtomicU64::new((number as u64) << 32))
    }
}

impl Randomness for Counting {
    fn ten_bytes(&self) -> [u8; 10] {
        let mut bytes = [0; 10];
        let number = self.0.fetch_add(1, Ordering::SeqCst).to_be_bytes();
        bytes.iter_mut().rev().zip(number.iter().rev()).for_each(|(to, from)| *to = *from);
        bytes
    }
}
