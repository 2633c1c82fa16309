//! A store that was put back to an earlier state on purpose: its logs are closed as they stand, and
//! kernels go on with new keys and new logs.
//!
//! To go on with a log from an earlier place would sign other checkpoints under the same numbers: a
//! fork, which is what a forger would do.

use std::sync::Arc;

use chio_core::checkpoint::{KernelCheckpoint, log_id};
use chio_core::crypto::{Keypair, PublicKey};
use chio_core::mark::{Mark, StoreNumbers};
use chio_kernel::mark::{Regression, regressions};
use chio_kernel::store::{StoreError, StoreResult};

use crate::blocking::blocking;
use crate::key_in_use::use_key;
use crate::keys::{Keys, Lock};
use crate::{OpenStore, Slot};

/// A restore that is about to be accepted. While it lives, no kernel of the data directory can
/// start.
pub struct Restore {
    /// What the store has no more.
    pub regressions: Vec<Regression>,
    /// The marks that could be read, as they were before.
    pub marks: Vec<Mark>,
    /// The logs that will be closed, with their last checkpoints.
    pub logs: Vec<(String, Option<KernelCheckpoint>)>,
    /// Their kernels, and whether the store has the log at all.
    kernels: Vec<(PublicKey, bool)>,
    keys: Arc<dyn Keys>,
    store_id: String,
    numbers: StoreNumbers,
    _locks: Vec<Lock>,
}

impl std::fmt::Debug for Restore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Restore").field("marks", &self.marks).finish_non_exhaustive()
    }
}

impl OpenStore {
    /// Begins to accept the store as it is. With the place of a new kernel, for the receipt of it all.
    /// Nothing is closed before [`Restore::close_logs`], so that
    /// what breaks off between is begun again.
    ///
    /// # Errors
    /// When a kernel of this data directory runs, or a new one cannot be certified. Unless `anyway`,
    /// also when the store is not behind its marks, nor one whose keys another store uses now.
    pub async fn begin_restore(&self, anyway: bool) -> StoreResult<(Restore, Slot)> {
        let keys = Arc::clone(&self.keys);
        let (known, lock) = blocking(move || keys.lock_all()).await?;
        let mut locks = vec![lock];
        for key in &known {
            let log = self.backend.try_lock_log(key).await?;
            locks.push(log.ok_or_else(|| {
                let problem = format!("expected no kernel to run, found `{key}`: stop it first");
                StoreError::Refused(problem)
            })?);
        }
        let marks = self.marks().await?;
        let regressions = regressions(&*self.backend, &marks).await?;
        if !anyway && regressions.is_empty() && !self.is_copied(&known).await? {
            return Err(StoreError::Refused(
                "expected a store that is behind what its kernels have signed, or a copy of one that \
                 is in use on this machine, found neither: kernels start as it is; pass --anyway to \
                 close its logs all the same"
                    .to_owned(),
            ));
        }
        let (there, mut logs, mut kernels) = (self.backend.logs().await?, Vec::new(), Vec::new());
        for key in known {
            let id = log_id(&key);
            let log = there.iter().find(|log| log.log_id == id);
            let count = log.map_or(0, |log| log.checkpoints);
            let last = self.backend.checkpoints(&id, count, 1).await?.pop();
            logs.push((id, last));
            kernels.push((key, log.is_some()));
        }
        let restore = Restore {
            regressions,
            marks: marks.sound,
            logs,
            kernels,
            keys: Arc::clone(&self.keys),
            store_id: self.backend.store_id().await?,
            numbers: self.backend.numbers().await?,
            _locks: locks,
        };
        // Every other slot is held, so this is a new one.
        Ok((restore, self.take_unchecked(None).await?))
    }

    /// Whether one of these kernels runs on this machine with another store.
    async fn is_copied(&self, kernels: &[PublicKey]) -> StoreResult<bool> {
        let (keys, kernels) = (Arc::clone(&self.keys), kernels.to_vec());
        blocking(move || {
            for kernel in &kernels {
                if keys.kernel(kernel)?.is_some_and(|key| use_key(&key).elsewhere) {
                    return Ok(true);
                }
            }
            Ok(false)
        })
        .await
    }
}

impl Restore {
    /// Closes the logs. From now on kernels start.
    ///
    /// # Errors
    /// When the data directory cannot be written. Then no kernel starts, and all can be begun again.
    pub async fn close_logs(self) -> StoreResult<()> {
        blocking(move || {
            for ((key, is_there), (_, last)) in self.kernels.iter().zip(&self.logs) {
                let mark = |key: &Keypair| {
                    let mark = Mark::issue(key, &*self.store_id, last.as_ref(), self.numbers);
                    let mark =
                        mark.map_err(|error| StoreError::Damaged(format!("a mark: {error}")));
                    is_there.then_some(mark).transpose()
                };
                self.keys.close_log(key, &mark)?;
            }
            Ok(())
        })
        .await
    }
}
