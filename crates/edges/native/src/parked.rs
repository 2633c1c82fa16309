//! The calls of one connection that wait for an approval. They run nothing, so they take no
//! running call's place.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// How many calls of one connection may wait without taking a place. Those beyond take one.
pub(crate) const MAX_PARKED: usize = 256;

/// How many calls wait for an approval, and how large their messages are together.
#[derive(Debug, Default)]
pub(crate) struct ParkedCalls {
    calls: AtomicUsize,
    bytes: AtomicUsize,
    begun: Notify,
}

impl ParkedCalls {
    /// A call with a message of this size begins to wait.
    pub(crate) fn begin(&self, weight: usize) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(weight, Ordering::Relaxed);
        self.begun.notify_one();
    }

    /// A call that waited goes on or ends.
    pub(crate) fn end(&self, weight: usize) {
        self.calls.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(weight, Ordering::Relaxed);
    }

    /// How many calls take no place, as they wait.
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed).min(MAX_PARKED)
    }

    /// How large the messages of calls that wait are together.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Waits until another call waits. Nothing is missed when the future is dropped.
    pub(crate) async fn begun(&self) {
        self.begun.notified().await;
    }
}
