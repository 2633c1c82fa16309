//! What a kind of store brings besides the kernel's traits. Keys, slots and certificates are the same
//! for all kinds, and not its business.

use std::sync::Arc;

use async_trait::async_trait;
use chio_core::crypto::PublicKey;
use chio_kernel::store::{Ledger, Store, StoreResult};

use crate::keys::{Lock, Role};

/// Makes a key whose public half is to be remembered; it may be called twice, and then gives the
/// same.
pub(crate) type MakeKey = Box<dyn Fn() -> StoreResult<PublicKey> + Send + Sync>;

/// One kind of store.
#[async_trait]
pub(crate) trait Backend: Store + Send + Sync {
    /// The public half of a role's key, which the store remembers wherever the key itself is.
    async fn public_key(&self, role: Role) -> StoreResult<Option<PublicKey>>;

    /// Remembers the public half of a role's key, unless it remembers one. Nothing else makes a key
    /// for this store meanwhile.
    async fn remember_key(&self, role: Role, make: MakeKey) -> StoreResult<()>;

    /// Keeps every other kernel, wherever its key is kept, from writing the log of this one; none
    /// when one may write it now.
    async fn try_lock_log(&self, kernel_key: &PublicKey) -> StoreResult<Option<Lock>>;

    /// The log of a kernel, to write, made when absent. It holds on to these locks.
    async fn ledger(
        self: Arc<Self>,
        kernel_key: &PublicKey,
        locks: [Lock; 2],
    ) -> StoreResult<Arc<dyn Ledger>>;

    /// Finishes what is queued and stops.
    fn close(&self) {}
}
