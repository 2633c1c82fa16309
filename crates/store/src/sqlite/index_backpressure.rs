//! Keeps the index close behind the log: wakes the indexer when there is work, and lets writers
//! wait when it is far behind.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::ledger::LogHandle;

/// Entries of a log that may be missing in the index before its writer waits.
const MAX_LAG: u64 = 20_000;

/// How long a writer waits before it looks again by itself.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

#[derive(Default)]
pub(crate) struct IndexBackpressure {
    /// The logs that this process writes.
    logs: Mutex<Vec<Weak<LogHandle>>>,
    advanced: Notify,
    /// The index does not advance; no writer waits for it.
    stuck: AtomicBool,
    stopped: AtomicBool,
    /// There is something new.
    pending: Mutex<bool>,
    woken: Condvar,
}

impl IndexBackpressure {
    /// Has the writer of this log wait for the index.
    pub(crate) fn watch(&self, log: &Arc<LogHandle>) {
        let mut logs = self.logs.lock();
        logs.retain(|log| log.strong_count() > 0);
        logs.push(Arc::downgrade(log));
    }

    /// Waits until the index is not too far behind this log. The writer of a log that is not watched
    /// never waits.
    pub(crate) async fn wait_for_index(&self, log: &LogHandle) {
        while log.is_ahead(MAX_LAG) && !self.is_free() {
            let advanced = self.advanced.notified();
            // Between the look and the wait it may have advanced; then this ends by itself.
            let _ = timeout(LOOK_AGAIN, advanced).await;
        }
    }

    fn is_free(&self) -> bool {
        self.stuck.load(Ordering::Relaxed) || self.is_stopped()
    }

    /// Notes how far the index is with each log. Tells whether any of ours got on.
    pub(crate) fn note(&self, progress: &HashMap<i64, i64>) -> bool {
        let logs = self.logs.lock();
        let mut advanced = false;
        for log in logs.iter().filter_map(Weak::upgrade) {
            let seq = progress.get(&log.number).and_then(|seq| u64::try_from(*seq).ok());
            advanced |= log.note_indexed(seq.unwrap_or(0), MAX_LAG);
        }
        drop(logs);
        self.advanced.notify_waiters();
        advanced
    }

    /// Whether any of our logs is ahead of the index.
    pub(crate) fn is_behind(&self) -> bool {
        let logs = self.logs.lock();
        logs.iter().filter_map(Weak::upgrade).any(|log| log.lag() > 0)
    }

    /// Says whether the index does not advance.
    pub(crate) fn set_stuck(&self, stuck: bool) {
        self.stuck.store(stuck, Ordering::Relaxed);
        if stuck {
            self.advanced.notify_waiters();
        }
    }

    /// Tells the indexer that there is something new.
    pub(crate) fn wake(&self) {
        let mut pending = self.pending.lock();
        if !*pending {
            *pending = true;
            self.woken.notify_all();
        }
    }

    /// Waits until there is something new, the end has come, or this time has passed.
    pub(crate) fn sleep(&self, most: Duration) {
        let mut pending = self.pending.lock();
        self.woken.wait_while_for(&mut pending, |pending| !*pending, most);
        *pending = false;
    }

    /// Ends the indexer.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.wake();
        self.advanced.notify_waiters();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::{IndexBackpressure, LogHandle, MAX_LAG};
    use crate::keys::Lock;

    /// Whether the writer of this log may go on.
    async fn goes_on(index_backpressure: &IndexBackpressure, log: &LogHandle) -> bool {
        timeout(Duration::from_millis(20), index_backpressure.wait_for_index(log)).await.is_ok()
    }

    #[tokio::test]
    async fn a_writer_waits_for_an_index_that_was_close_and_fell_behind() {
        let locks: [Lock; 2] = [Box::new(()), Box::new(())];
        let log = Arc::new(LogHandle::new(1, "log".to_owned(), 10 * MAX_LAG, locks));
        let index_backpressure = IndexBackpressure::default();
        index_backpressure.watch(&log);
        assert!(
            goes_on(&index_backpressure, &log).await,
            "the index is made again: nobody waits for it"
        );
        let far = i64::try_from(10 * MAX_LAG).unwrap();
        index_backpressure.note(&HashMap::from([(1, far)]));
        assert!(goes_on(&index_backpressure, &log).await, "it is close");
        log.note_durable(11 * MAX_LAG + 1);
        assert!(!goes_on(&index_backpressure, &log).await, "it fell behind");
        index_backpressure.set_stuck(true);
        assert!(goes_on(&index_backpressure, &log).await, "it goes nowhere");
        index_backpressure.set_stuck(false);
        assert!(!goes_on(&index_backpressure, &log).await);
        index_backpressure.note(&HashMap::from([(1, far + 1)]));
        assert!(goes_on(&index_backpressure, &log).await, "it is close again");
    }
}
