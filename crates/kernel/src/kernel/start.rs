//! How a kernel begins: it recovers, then it starts.

use std::sync::Arc;

use chio_core::capability::Patterns;
use parking_lot::RwLock;
use tokio::runtime::Handle;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use super::{
    ChioKernel, Inner, KernelParts, MAX_REGISTERED, make_checkpoints, poll_revocations, sweep,
};
use crate::cache::TokenCache;
use crate::config::Trust;
use crate::error::KernelError;
use crate::log::{DurableReceipt, ReceiptLog};
use crate::revocation::RevocationView;
use crate::running::Running;

/// A kernel that has recovered what an earlier process left open, and takes no calls yet.
pub struct RecoveredKernel {
    inner: Arc<Inner>,
    /// Its receipts, from before the recovery.
    receipts: broadcast::Receiver<DurableReceipt>,
    /// What its background tasks run on.
    runtime: Handle,
}

impl KernelParts {
    /// Recovers what an earlier process left open in this log.
    ///
    /// # Errors
    /// When the store does not answer, or the log is not this kernel's.
    pub async fn recover(self) -> Result<RecoveredKernel, KernelError> {
        let Self { config, key, ledger, store, clock, randomness, pipeline } = self;
        let revocations = RevocationView::open(&*store, clock.monotonic()).await?;
        let (writes, time) = (Arc::clone(&ledger), Arc::clone(&clock));
        let batch = config.checkpoint_size;
        let log = ReceiptLog::open(&*store, writes, time, key.public_key(), batch).await?;
        let receipts = log.subscribe();
        let inner = Arc::new(Inner {
            trust: RwLock::new(Arc::new(Trust::from(&config))),
            trusted_issuers: config.trusted_issuers.clone(),
            pipeline: RwLock::new(Arc::new(pipeline)),
            cache: TokenCache::new(config.token_cache),
            patterns: Patterns::default(),
            running: Running::default(),
            servers: RwLock::default(),
            absent: RwLock::default(),
            registered: broadcast::Sender::new(MAX_REGISTERED),
            stop: CancellationToken::new(),
            lost: CancellationToken::new(),
            config,
            key,
            ledger,
            store,
            clock,
            randomness,
            revocations,
            log: Arc::new(log),
        });
        inner.recover_own().await?;
        inner.checkpoint(true).await?;
        inner.keep_mark().await?;
        Ok(RecoveredKernel { inner, receipts, runtime: Handle::current() })
    }
}

impl ChioKernel {
    /// Starts a kernel that has recovered.
    pub fn new(recovered: RecoveredKernel) -> Self {
        Self::with_receipts(recovered).0
    }

    fn with_receipts(recovered: RecoveredKernel) -> (Self, broadcast::Receiver<DurableReceipt>) {
        let RecoveredKernel { inner, receipts, runtime } = recovered;
        runtime.spawn(poll_revocations(Arc::downgrade(&inner), inner.stop.clone()));
        runtime.spawn(make_checkpoints(Arc::downgrade(&inner), inner.stop.clone()));
        runtime.spawn(sweep(Arc::downgrade(&inner), inner.stop.clone()));
        (Self { inner }, receipts)
    }

    /// [`KernelParts::recover`], then [`Self::new`].
    ///
    /// # Errors
    /// When the store does not answer, or the log is not this kernel's.
    pub async fn start(parts: KernelParts) -> Result<Self, KernelError> {
        Ok(Self::new(parts.recover().await?))
    }

    /// As [`Self::start`], with [`Self::receipts`] from before the recovery.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn start_with_receipts(
        parts: KernelParts,
    ) -> Result<(Self, broadcast::Receiver<DurableReceipt>), KernelError> {
        Ok(Self::with_receipts(parts.recover().await?))
    }
}
