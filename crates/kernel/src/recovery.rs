//! Calls that were left unfinished: after a crash, after a store that failed, after a kernel that
//! is gone. Each gets one receipt that says so.

use std::sync::Arc;

use crate::error::KernelError;
use crate::kernel::Inner;
use crate::log::ReceiptLog;
use crate::mark::regressions;
use crate::store::Uncovered;

const CRASHED: &str = "the kernel stopped before the call ended";
const LOST: &str = "the call ended, but its receipt could not be made durable at the time";

impl Inner {
    /// Closes what an earlier process left open in this kernel's own log. Nothing runs yet.
    pub(crate) async fn recover_own(&self) -> Result<u64, KernelError> {
        let mut closed = 0;
        for open in self.ledger.open_intents().await? {
            closed += u64::from(self.close_orphan(open, CRASHED).await?);
        }
        Ok(closed)
    }

    /// Closes calls of this process whose receipt failed, and those of kernels that are gone.
    pub(crate) async fn sweep(&self) -> Result<u64, KernelError> {
        let mut closed = 0;
        if self.running.take_orphaned() {
            closed += self.sweep_own().await.inspect_err(|_| self.running.set_orphaned())?;
        }
        self.store.forget_expired(self.clock.unix_seconds()).await?;
        for abandoned in self.ledger.abandoned().await? {
            for open in abandoned.intents {
                closed += u64::from(self.close_orphan(open, CRASHED).await?);
            }
        }
        for uncovered in self.ledger.uncovered().await? {
            self.cover(uncovered).await?;
        }
        Ok(closed)
    }

    /// Signs the last checkpoint of a kernel that is gone, in its place.
    async fn cover(&self, uncovered: Uncovered) -> Result<(), KernelError> {
        let Uncovered { key, ledger, marks } = uncovered;
        // SECURITY: what was taken from the end of its log would be signed over.
        if !regressions(&*self.store, &marks).await?.is_empty() {
            return Ok(());
        }
        let (store, batch) = (&*self.store, self.config.checkpoint_size);
        let clock = Arc::clone(&self.clock);
        let log = ReceiptLog::open(store, ledger, clock, key.public_key(), batch).await?;
        log.checkpoint(&key, self.clock.unix_seconds(), true).await?;
        log.keep_mark(store, &key, self.revocations.epoch()).await
    }

    async fn sweep_own(&self) -> Result<u64, KernelError> {
        let mut closed = 0;
        for open in self.ledger.open_intents().await? {
            // A call is in the list of running ones before its intent is written.
            if !self.running.contains(&open.reservation.intent.request_id) {
                closed += u64::from(self.close_orphan(open, LOST).await?);
            }
        }
        Ok(closed)
    }
}
