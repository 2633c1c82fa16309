//! The calls that run now, and the gate that closes when the kernel shuts down.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The calls that run now.
#[derive(Debug, Default)]
pub(crate) struct Running {
    calls: Mutex<HashSet<String>>,
    /// Woken when the last call has left.
    idle: Notify,
    closed: CancellationToken,
    /// Some call ended without its receipt; its intent may be open.
    orphaned: AtomicBool,
    give_up: CancellationToken,
    changing: Mutex<Changing>,
}

/// The calls that may change something outside.
#[derive(Debug, Default)]
struct Changing {
    now: usize,
    /// When the last of them ended.
    ended: Option<Instant>,
}

/// That a call may change something, until this is dropped.
#[derive(Debug)]
pub(crate) struct Changes<'a>(&'a Running);

/// A call's place among the running ones.
#[derive(Debug)]
pub(crate) struct Ticket<'a> {
    running: &'a Running,
    request_id: String,
    receipted: bool,
}

impl Running {
    /// Notes that a call runs, until the ticket is dropped.
    pub(crate) fn enter(&self, request_id: &str) -> Ticket<'_> {
        self.calls.lock().insert(request_id.to_owned());
        Ticket { running: self, request_id: request_id.to_owned(), receipted: false }
    }

    pub(crate) fn contains(&self, request_id: &str) -> bool {
        self.calls.lock().contains(request_id)
    }

    pub(crate) fn count(&self) -> usize {
        self.calls.lock().len()
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.closed.is_cancelled()
    }

    /// From now on, new calls are denied.
    pub(crate) fn close(&self) {
        self.closed.cancel();
    }

    /// Waits until new calls are denied.
    pub(crate) async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// Cancels what still runs.
    pub(crate) fn give_up(&self) {
        self.give_up.cancel();
    }

    /// Waits until what still runs is cancelled.
    pub(crate) async fn given_up(&self) {
        self.give_up.cancelled().await;
    }

    /// Waits until nothing runs.
    pub(crate) async fn idle(&self) {
        loop {
            let left = self.idle.notified();
            if self.count() == 0 {
                return;
            }
            left.await;
        }
    }

    /// Notes that a call may change something, until what this gives is dropped.
    pub(crate) fn change(&self) -> Changes<'_> {
        self.changing.lock().now += 1;
        Changes(self)
    }

    /// Whether a call that may change something ran at this moment or later.
    pub(crate) fn changed_since(&self, moment: Instant) -> bool {
        let changing = self.changing.lock();
        changing.now > 0 || changing.ended.is_some_and(|ended| ended >= moment)
    }

    pub(crate) fn set_orphaned(&self) {
        self.orphaned.store(true, Ordering::Relaxed);
    }

    /// Whether some call ended without its receipt since this was last asked.
    pub(crate) fn take_orphaned(&self) -> bool {
        self.orphaned.swap(false, Ordering::Relaxed)
    }
}

impl Drop for Changes<'_> {
    fn drop(&mut self) {
        let mut changing = self.0.changing.lock();
        changing.now = changing.now.saturating_sub(1);
        changing.ended = Some(Instant::now());
    }
}

impl Ticket<'_> {
    /// Ends the call's run.
    pub(crate) fn leave(mut self, receipted: bool) {
        self.receipted = receipted;
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if !self.receipted {
            self.running.set_orphaned();
        }
        let mut calls = self.running.calls.lock();
        calls.remove(&self.request_id);
        if calls.is_empty() {
            self.running.idle.notify_waiters();
        }
    }
}
