//! Time and randomness, as arguments.

use std::fmt;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use chio_core::crypto::random_bytes;
use parking_lot::Mutex;
use uuid::{Builder, Uuid};

/// Where the kernel has the time from.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Milliseconds since 1970.
    fn unix_millis(&self) -> u64;

    /// Time since some moment in the past; never goes back.
    fn monotonic(&self) -> Duration;

    /// Seconds since 1970.
    fn unix_seconds(&self) -> u64 {
        self.unix_millis() / 1000
    }
}

/// The clock of the operating system.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that others are given")]
    fn unix_millis(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }
}

/// Where the kernel has random bytes from.
pub trait Randomness: Send + Sync + fmt::Debug {
    /// Ten bytes that cannot be guessed.
    fn ten_bytes(&self) -> [u8; 10];
}

/// The randomness of the operating system.
#[derive(Default)]
pub struct SystemRandomness {
    /// Drawn and not yet given out: what a draw costs hardly depends on how much is drawn.
    drawn: Mutex<Vec<[u8; 10]>>,
}

impl fmt::Debug for SystemRandomness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SystemRandomness").finish_non_exhaustive()
    }
}

impl Randomness for SystemRandomness {
    fn ten_bytes(&self) -> [u8; 10] {
        let mut drawn = self.drawn.lock();
        if drawn.is_empty() {
            drawn.extend_from_slice(random_bytes::<640>().as_chunks().0);
        }
        drawn.pop().unwrap_or_else(random_bytes)
    }
}

/// A name that cannot be guessed: only random bytes, no time.
pub(crate) fn random_name(prefix: &str, random: &dyn Randomness) -> String {
    let mut bytes = [0; 16];
    let (first, second) = (random.ten_bytes(), random.ten_bytes());
    for (byte, random) in bytes.iter_mut().zip(first.into_iter().chain(second)) {
        *byte = random;
    }
    format!("{prefix}{}", Builder::from_random_bytes(bytes).into_uuid())
}

/// A name that no other has, and that sorts by time.
pub(crate) fn unique_name(prefix: &str, clock: &dyn Clock, random: &dyn Randomness) -> String {
    let uuid = Builder::from_unix_timestamp_millis(clock.unix_millis(), &random.ten_bytes());
    let mut name = String::with_capacity(prefix.len() + 36);
    name.push_str(prefix);
    name.push_str(uuid.into_uuid().as_hyphenated().encode_lower(&mut Uuid::encode_buffer()));
    name
}
