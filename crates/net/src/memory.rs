//! The memory that messages from outside may take together: one limit for the process, since its
//! memory is one.
//!
//! Every reader counts what it keeps: bodies over HTTP, frames, lines, answers of upstreams, and the
//! trees that they are read into. Memory is counted as bytes arrive, not as they are announced. The
//! first bytes of each message are free, so the usual one touches nothing that others share. When the
//! limit is reached, a reader waits for a bounded time, and those that have been receiving for longest
//! are cut off.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use chio_core::strict::tree_size;
use chio_core::with_defaults;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

/// From this size on a text is read on a thread of its own: others wait for this one.
pub const LARGE: usize = 128 << 10;
/// How often a reader that waits looks for one to cut off.
const LOOK: Duration = Duration::from_millis(20);

with_defaults! {
    /// How much memory messages may take together.
    #[derive(Debug, Clone, Copy)]
    pub struct MemoryLimits {
        /// How many bytes in all.
        pub total: usize = 64 << 20,
        /// How long a reader waits when they are taken.
        pub wait: Duration = Duration::from_secs(5),
        /// How long a message may take to arrive before it is cut off for others.
        pub undisturbed: Duration = Duration::from_secs(1),
    }
}

/// There is no memory for a message now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected memory for the message, found all in use; try again later")]
pub struct Crowded;

/// A limit of memory that readers share.
#[derive(Debug)]
pub struct Memory {
    limits: MemoryLimits,
    /// A permit for each byte that is not taken.
    free: Semaphore,
    receiving: Mutex<Receiving>,
}

/// The messages that are still arriving and take memory.
#[derive(Debug, Default)]
struct Receiving {
    last: u64,
    /// By number, so oldest first: since when, and how it is cut off.
    messages: BTreeMap<u64, (Instant, CancellationToken)>,
}

/// The memory of the process.
static PROCESS: LazyLock<Arc<Memory>> = LazyLock::new(|| Memory::new(MemoryLimits::default()));

impl Memory {
    /// Memory of this size, all of it free.
    pub fn new(limits: MemoryLimits) -> Arc<Self> {
        // What a reader takes at once is counted in 32 bits.
        let total = limits.total.min(u32::MAX as usize);
        let limits = MemoryLimits { total, ..limits };
        let free = Semaphore::new(total);
        Arc::new(Self { limits, free, receiving: Mutex::default() })
    }

    fn begin(&self) -> (u64, CancellationToken) {
        let mut receiving = self.receiving.lock();
        receiving.last += 1;
        let (number, cut) = (receiving.last, CancellationToken::new());
        receiving.messages.insert(number, (Instant::now(), cut.clone()));
        (number, cut)
    }

    fn end(&self, number: u64) {
        self.receiving.lock().messages.remove(&number);
    }

    /// Cuts off the message that has been arriving for longest, other than this one and unless it
    /// began just now. One after the other: the last has to be gone first.
    fn cut_oldest(&self, own: Option<u64>) {
        let receiving = self.receiving.lock();
        let mut cuts = receiving.messages.values();
        if cuts.any(|(_, cut)| cut.is_cancelled()) {
            return;
        }
        let mut others = receiving.messages.iter().filter(|(number, _)| Some(**number) != own);
        if let Some((_, (since, cut))) = others.next()
            && since.elapsed() >= self.limits.undisturbed
        {
            cut.cancel();
        }
    }
}

/// The memory that one message takes. Dropping it gives the memory back.
#[derive(Debug)]
pub struct HeldMemory {
    memory: Arc<Memory>,
    /// How many bytes of the message are free.
    free: usize,
    size: usize,
    /// Permits taken for the rest.
    taken: usize,
    receiving: Option<(u64, CancellationToken)>,
    has_arrived: bool,
}

impl HeldMemory {
    /// Of the process, for a message whose first bytes are free.
    pub fn of_process(free: usize) -> Self {
        Self::of(&PROCESS, free)
    }

    /// Of this memory, for a message whose first bytes are free.
    pub fn of(memory: &Arc<Memory>, free: usize) -> Self {
        let memory = Arc::clone(memory);
        Self { memory, free, size: 0, taken: 0, receiving: None, has_arrived: false }
    }

    /// How many bytes it has room for now without taking more.
    pub const fn room(&self) -> usize {
        (self.free + self.taken).saturating_sub(self.size)
    }

    /// Takes this much more. Nothing is lost when the future is dropped.
    ///
    /// # Errors
    /// When there is none for too long, or the message was cut off for others.
    pub async fn grow(&mut self, bytes: usize) -> Result<(), Crowded> {
        let size = self.size.saturating_add(bytes);
        self.reserve(size).await?;
        self.size = size;
        Ok(())
    }

    /// Takes or gives back as much as makes this size.
    ///
    /// # Errors
    /// As [`Self::grow`].
    pub async fn resize(&mut self, size: usize) -> Result<(), Crowded> {
        match self.size.checked_sub(size) {
            Some(less) => {
                self.shrink(less);
                Ok(())
            }
            None => self.grow(size - self.size).await,
        }
    }

    /// Takes memory for a message of this size in all, without counting it as used.
    ///
    /// # Errors
    /// As [`Self::grow`].
    pub async fn reserve(&mut self, size: usize) -> Result<(), Crowded> {
        // A message beyond all that there is takes all that there is.
        let wanted = size.saturating_sub(self.free).min(self.memory.limits.total);
        let more = wanted.saturating_sub(self.taken);
        if more == 0 {
            return Ok(());
        }
        if self.receiving.is_none() && !self.has_arrived {
            self.receiving = Some(self.memory.begin());
        }
        if self.is_cut_off() {
            return Err(Crowded);
        }
        let permits = u32::try_from(more).map_err(|_| Crowded)?;
        let memory = Arc::clone(&self.memory);
        let permit = match memory.free.try_acquire_many(permits) {
            Ok(permit) => permit,
            Err(_) => {
                let waiting = self.unless_cut_off(self.wait_for(permits));
                timeout(memory.limits.wait, waiting).await.map_err(|_| Crowded)??
            }
        };
        permit.forget();
        self.taken += more;
        Ok(())
    }

    async fn wait_for(&self, permits: u32) -> tokio::sync::SemaphorePermit<'_> {
        let own = self.receiving.as_ref().map(|(number, _)| *number);
        let cutting = async {
            loop {
                self.memory.cut_oldest(own);
                sleep(LOOK).await;
            }
        };
        tokio::select! {
            biased;
            // The semaphore is never closed.
            Ok(permit) = self.memory.free.acquire_many(permits) => permit,
            never = cutting => never,
        }
    }

    /// Gives this much back.
    pub fn shrink(&mut self, bytes: usize) {
        self.size = self.size.saturating_sub(bytes);
        let wanted = self.size.saturating_sub(self.free).min(self.memory.limits.total);
        self.memory.free.add_permits(self.taken.saturating_sub(wanted));
        self.taken = self.taken.min(wanted);
    }

    /// Begins with the next message, which takes nothing yet.
    pub fn clear(&mut self) {
        self.arrived();
        self.has_arrived = false;
        self.shrink(self.size);
    }

    /// The message is here as a whole: it is not cut off any more.
    pub fn arrived(&mut self) {
        self.has_arrived = true;
        if let Some((number, _)) = self.receiving.take() {
            self.memory.end(number);
        }
    }

    /// Whether the message is here as a whole.
    #[must_use]
    pub const fn has_arrived(&self) -> bool {
        self.has_arrived
    }

    fn is_cut_off(&self) -> bool {
        self.receiving.as_ref().is_some_and(|(_, cut)| cut.is_cancelled())
    }

    /// Waits for something, such as the next bytes of the message, unless it is cut off.
    ///
    /// # Errors
    /// When it is.
    pub async fn unless_cut_off<T>(&self, wait: impl Future<Output = T>) -> Result<T, Crowded> {
        let Some((_, cut)) = &self.receiving else { return Ok(wait.await) };
        tokio::select! {
            biased;
            () = cut.cancelled() => Err(Crowded),
            waited = wait => Ok(waited),
        }
    }

    /// Reads a text that is in this memory, large ones on a thread of their own. What it is read into
    /// takes memory until this is dropped; the text gives its own back.
    ///
    /// # Errors
    /// When there is no memory for what it is read into.
    pub async fn read<T: Send + 'static>(
        &mut self,
        text: Vec<u8>,
        read: impl FnOnce(&[u8]) -> T + Send + 'static,
    ) -> Result<T, Crowded> {
        self.arrived();
        let length = text.len();
        self.grow(tree_size(&text)).await?;
        let value =
            if length < LARGE { read(&text) } else { read_text(Cow::Owned(text), read).await? };
        self.shrink(length);
        Ok(value)
    }
}

/// Reads a text: one that is given along, because it is large, on a thread of its own.
///
/// # Errors
/// When the thread does not end well: with the runtime, or because reading panics.
pub async fn read_text<T: Send + 'static>(
    text: Cow<'_, [u8]>,
    read: impl FnOnce(&[u8]) -> T + Send + 'static,
) -> Result<T, Crowded> {
    match text {
        Cow::Borrowed(text) => Ok(read(text)),
        Cow::Owned(text) => spawn_blocking(move || read(&text)).await.map_err(|_| Crowded),
    }
}

impl Drop for HeldMemory {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KB: usize = 1024;

    fn memory() -> Arc<Memory> {
        Memory::new(MemoryLimits { total: 100 * KB, ..MemoryLimits::default() })
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_taken_is_given_back_and_the_first_bytes_are_free() {
        let memory = memory();
        let mut one = HeldMemory::of(&memory, KB);
        one.grow(KB).await.unwrap();
        assert_eq!(memory.free.available_permits(), 100 * KB);
        one.grow(50 * KB).await.unwrap();
        let mut other = HeldMemory::of(&memory, 0);
        other.arrived();
        one.arrived();
        assert_eq!(other.grow(51 * KB).await, Err(Crowded), "after a wait");
        one.shrink(KB);
        other.grow(51 * KB).await.unwrap();
        drop(one);
        other.clear();
        assert_eq!(memory.free.available_permits(), 100 * KB);
        // More than there is takes all there is.
        other.grow(1000 * KB).await.unwrap();
        assert_eq!(memory.free.available_permits(), 0);
        drop(other);
        assert_eq!(memory.free.available_permits(), 100 * KB);
    }

    #[tokio::test(start_paused = true)]
    async fn messages_that_do_not_arrive_are_cut_off_for_others_oldest_first() {
        let memory = memory();
        let mut stalled = Vec::new();
        for _ in 0..2 {
            let mut held = HeldMemory::of(&memory, 0);
            held.grow(50 * KB).await.unwrap();
            stalled.push(tokio::spawn(async move {
                held.unless_cut_off(std::future::pending::<()>()).await
            }));
            sleep(Duration::from_millis(10)).await;
        }
        let mut honest = HeldMemory::of(&memory, 0);
        honest.grow(50 * KB).await.unwrap();
        assert_eq!(stalled.remove(0).await.unwrap(), Err(Crowded));
        assert!(!stalled[0].is_finished(), "one is enough");
        assert!(memory.receiving.lock().messages.len() == 2);
    }

    #[tokio::test]
    async fn a_text_is_read_into_what_it_takes() {
        let memory = memory();
        let mut held = HeldMemory::of(&memory, 0);
        held.grow(7).await.unwrap();
        let read = |text: &[u8]| serde_json::from_slice::<serde_json::Value>(text).unwrap();
        assert_eq!(
            held.read(b"[1,2,3]".to_vec(), read).await.unwrap(),
            serde_json::json!([1, 2, 3])
        );
        assert_eq!(held.size, tree_size(b"[1,2,3]"));
    }
}
