//! The place of one kernel in a store.

use std::fmt;
use std::sync::Arc;

use chio_core::certificate::KernelCertificate;
use chio_core::crypto::Keypair;
use chio_kernel::store::Ledger;

/// A kernel's place in a store. The ledger holds the slot's lock as long as it lives.
pub struct Slot {
    /// The kernel's key.
    pub key: Keypair,
    /// The authority's word for it.
    pub certificate: KernelCertificate,
    /// The kernel's log.
    pub ledger: Arc<dyn Ledger>,
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").field("log_id", &self.certificate.log_id).finish_non_exhaustive()
    }
}
