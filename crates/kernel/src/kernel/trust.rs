//! What may change while a kernel runs: whom it trusts, how long it waits, and whether it is stopped.

use std::sync::Arc;

use chio_core::crypto::PublicKey;

use super::{ChioKernel, Inner};
use crate::call::Denial;
use crate::config::{KernelConfig, Trust};

impl Inner {
    /// Whom calls trust that ask now, and how long they may take.
    pub(crate) fn trust(&self) -> Arc<Trust> {
        Arc::clone(&self.trust.read())
    }

    /// Denies when everything is stopped, or the view of revocations is too old to tell. What was
    /// stopped is looked at once more: the end of a stop holds for the very next call.
    pub(crate) async fn check_running(&self) -> Result<(), Denial> {
        if self.revocations.is_stopped() {
            // A store that does not answer leaves it stopped.
            let _ = self.revocations.catch_up(&*self.store, self.clock.monotonic()).await;
        }
        self.revocations.check_running(self.clock.monotonic(), self.config.revocation_max_age)
    }
}

impl ChioKernel {
    /// Whether the word of this kernel elsewhere counts for where a call comes from.
    #[must_use]
    pub fn trusts_kernel(&self, key: &PublicKey) -> bool {
        self.inner.trust().kernels.contains(key)
    }

    /// Takes from a configuration what may change while a kernel runs: who approves, whether also the
    /// caller, how long a call waits for that, which kernels are trusted, and how long a tool may
    /// take. Calls that have begun to wait keep the time that they were given.
    pub fn reconfigure(&self, config: &KernelConfig) {
        *self.inner.trust.write() = Arc::new(Trust::from(config));
    }
}
