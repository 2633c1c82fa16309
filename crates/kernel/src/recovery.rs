//! Calls that were left unfinished: after a crash, after a store that failed, after a kernel that
//! is gone. Each gets one receipt that says so.

use crate::error::KernelError;
use crate::kernel::Inner;

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
        Ok(closed)
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
