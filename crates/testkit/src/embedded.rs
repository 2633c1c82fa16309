//! A kernel in the process of the test, on a store in a folder of its own.

use std::sync::Arc;

use chio_core::checkpoint::log_id;
use chio_core::crypto::PublicKey;
use chio_kernel::audit::{AuditTrust, audit};
use chio_kernel::store::LogEntry;
use chio_kernel::{
    ChioKernel, Clock, KernelConfig, KernelParts, Pipeline, SystemClock, SystemRandomness,
};
use chio_store::{OpenStore, StoreUrl};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use crate::process::Folder;

/// More receipts than any test leaves.
const ALL: usize = 10_000;

/// A kernel that runs beside the test, whose own thread stays free.
pub struct EmbeddedKernel {
    /// The kernel.
    pub kernel: ChioKernel,
    store: Option<OpenStore>,
    authority: PublicKey,
    /// What runs it. It ends before its folder goes.
    pub runtime: Runtime,
    folder: Folder,
}

impl EmbeddedKernel {
    /// Starts a kernel.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start(config: KernelConfig, pipeline: impl Future<Output = Pipeline>) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let (runtime, folder) = (runtime.expect("a runtime"), Folder::new());
        // One in memory takes no proof and no approval of the second in which it began.
        let url = StoreUrl::Sqlite(folder.path("s"));
        let (kernel, store, authority) = runtime.block_on(async {
            let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
            let store = OpenStore::open(&url, Arc::clone(&clock)).await.expect("a store");
            let slot = store.take_slot(None).await.expect("a slot");
            let authority = store.authority_public().await.expect("a store");
            let parts = KernelParts {
                config,
                key: slot.key,
                ledger: slot.ledger,
                store: store.shared(),
                clock,
                randomness: Arc::<SystemRandomness>::default(),
                pipeline: pipeline.await,
            };
            let authority = authority.expect("an authority");
            (ChioKernel::start(parts).await.expect("a kernel"), Some(store), authority)
        });
        Self { kernel, store, authority, runtime, folder }
    }

    /// The folder of its store, which has room for sockets.
    #[must_use]
    pub const fn folder(&self) -> &Folder {
        &self.folder
    }

    /// All receipts, oldest first.
    ///
    /// # Panics
    /// When they cannot be read.
    #[must_use]
    pub fn receipts(&self) -> Vec<Value> {
        let log = log_id(self.kernel.public_key());
        let entries = self.runtime.block_on(self.kernel.store().entries(&log, 1, ALL));
        let read = |entry: &LogEntry| serde_json::from_slice(&entry.body).expect("a receipt");
        entries.expect("the log").iter().map(read).collect()
    }

    /// Checks that the whole store holds.
    ///
    /// # Panics
    /// When it does not.
    #[track_caller]
    pub fn audit(&self) {
        let trust = AuditTrust { authorities: vec![self.authority.clone()], kernels: Vec::new() };
        let report = self.runtime.block_on(audit(&**self.kernel.store(), &trust, |_| ()));
        let report = report.expect("a store that answers");
        assert!(report.is_clean(), "{report:?}");
    }
}

impl Drop for EmbeddedKernel {
    fn drop(&mut self) {
        // Its threads and files would stay as long as anything else holds it.
        if let Some(store) = self.store.take() {
            store.close();
        }
    }
}
