//! Where receipts, intents, budgets, tokens, revocations, approvals and tasks are kept.
//!
//! A store is named by a [`StoreUrl`] and opened as an [`OpenStore`]. What processes share they
//! reach through [`OpenStore::shared`]; what one kernel alone may write, its log, through the
//! [`Slot`] that it takes.

mod bounds;
mod budget;
mod certify;
mod fields;
mod inbox;
mod memory;
mod once;
mod slot;
mod sqlite;
mod tasks;
mod url;

use std::sync::Arc;

use chio_core::certificate::KernelCertificate;
use chio_core::crypto::{Keypair, PublicKey, random_bytes};
use chio_core::signed::Signed;
use chio_kernel::Clock;
use chio_kernel::store::{Intent, Reservation, SharedStore, StoreError, StoreResult};
use uuid::Builder;

pub use slot::Slot;
pub use url::StoreUrl;

use memory::MemoryStore;
use sqlite::SqliteStore;

/// Whether this process advances the query index as it writes. A query brings the index up to date
/// in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Indexing {
    /// From the first slot on; a writer that is far ahead of the index waits for it.
    On,
    /// Only when a caller queries it.
    Off,
}

/// An open store. Clones are handles on the same one.
#[derive(Clone)]
pub struct OpenStore(Backend);

#[derive(Clone)]
enum Backend {
    Memory(Arc<MemoryStore>),
    Sqlite(Arc<SqliteStore>),
}

impl OpenStore {
    /// Opens a store, and makes it, with the keys of an authority and an approver, when there is
    /// none. One that was made before approvers had a key gets one.
    ///
    /// # Errors
    /// When it cannot be made or reached, or is not one that this program may use.
    pub fn open(url: &StoreUrl, clock: Arc<dyn Clock>) -> StoreResult<Self> {
        Self::open_with(url, clock, Indexing::On)
    }

    /// As [`OpenStore::open`], with a word on the query index.
    ///
    /// # Errors
    /// As [`OpenStore::open`].
    pub fn open_with(
        url: &StoreUrl,
        clock: Arc<dyn Clock>,
        indexing: Indexing,
    ) -> StoreResult<Self> {
        Ok(Self(match url {
            StoreUrl::Memory => Backend::Memory(Arc::new(MemoryStore::new(clock))),
            StoreUrl::Sqlite(folder) => {
                Backend::Sqlite(Arc::new(SqliteStore::open(folder, clock, indexing)?))
            }
        }))
    }

    /// A store that loses what it says is durable: for the test that shows that such a loss would be
    /// noticed.
    #[doc(hidden)]
    pub fn open_unsynced(folder: &std::path::Path, clock: Arc<dyn Clock>) -> StoreResult<Self> {
        Ok(Self(Backend::Sqlite(Arc::new(SqliteStore::open_unsynced(folder, clock)?))))
    }

    /// Opens a store that must exist. No key is made, and the query index advances only when
    /// a caller queries it. A memory store is always a new one.
    ///
    /// # Errors
    /// When there is none, it cannot be reached, or is not one that this program may use.
    pub fn open_existing(url: &StoreUrl, clock: Arc<dyn Clock>) -> StoreResult<Self> {
        Ok(Self(match url {
            StoreUrl::Memory => Backend::Memory(Arc::new(MemoryStore::new(clock))),
            StoreUrl::Sqlite(folder) => {
                Backend::Sqlite(Arc::new(SqliteStore::open_existing(folder, clock)?))
            }
        }))
    }

    /// What every process shares.
    #[must_use]
    pub fn shared(&self) -> SharedStore {
        match &self.0 {
            Backend::Memory(store) => Arc::<MemoryStore>::clone(store),
            Backend::Sqlite(store) => Arc::<SqliteStore>::clone(store),
        }
    }

    /// The key that issues tokens and certifies kernels; none when the store does not have it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn authority(&self) -> StoreResult<Option<Keypair>> {
        match &self.0 {
            Backend::Memory(store) => store.authority().map(Some),
            Backend::Sqlite(store) => store.authority(),
        }
    }

    /// The public half of that key, which the store remembers also when the key is kept elsewhere.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn authority_public(&self) -> StoreResult<Option<PublicKey>> {
        match &self.0 {
            Backend::Memory(store) => Ok(Some(store.authority()?.public_key().clone())),
            Backend::Sqlite(store) => store.authority_public(),
        }
    }

    /// The key that signs approvals; none when the store does not have it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn approver(&self) -> StoreResult<Option<Keypair>> {
        match &self.0 {
            Backend::Memory(store) => store.approver().map(Some),
            Backend::Sqlite(store) => store.approver(),
        }
    }

    /// The public half of that key, which the store remembers also when the key is kept elsewhere.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn approver_public(&self) -> StoreResult<Option<PublicKey>> {
        match &self.0 {
            Backend::Memory(store) => Ok(Some(store.approver()?.public_key().clone())),
            Backend::Sqlite(store) => store.approver_public(),
        }
    }

    /// Takes the place of a kernel. With a key, it is that kernel's own place, and its secret is
    /// not kept in the store; without, the first that no kernel holds, or a new one.
    ///
    /// # Errors
    /// When another kernel holds the place of this key, or the kernel cannot be certified.
    pub fn take_slot(&self, key: Option<Keypair>) -> StoreResult<Slot> {
        match &self.0 {
            Backend::Memory(store) => store.take_slot(key),
            Backend::Sqlite(store) => SqliteStore::take_slot(store, key),
        }
    }

    /// Finishes what is queued and stops. Holders of a handle are answered that the store is
    /// unavailable. Dropping the last handle does the same.
    pub fn close(self) {
        if let Backend::Sqlite(store) = &self.0 {
            store.close();
        }
    }
}

/// A name for a new store.
fn new_store_id(clock: &dyn Clock) -> String {
    let random = random_bytes();
    Builder::from_unix_timestamp_millis(clock.unix_millis(), &random).into_uuid().to_string()
}

/// Refuses a certificate that contradicts itself. The caller decides whom to trust.
fn check_certificate(certificate: &KernelCertificate) -> StoreResult<()> {
    certificate
        .check_signature()
        .map_err(|error| StoreError::Refused(format!("this is no kernel certificate: {error}")))
}

/// What is kept of a call that has not reserved: there is nothing yet that it holds.
const fn unreserved(intent: Intent) -> Reservation {
    Reservation {
        intent,
        alternatives: Vec::new(),
        authority: Vec::new(),
        resumes: None,
        proofs: Vec::new(),
        approval: None,
    }
}

fn no_alternative() -> StoreError {
    StoreError::Refused("expected at least one way to pay in a reservation, found none".to_owned())
}

fn foreign_checkpoint() -> StoreError {
    StoreError::Refused("expected a checkpoint by this log's kernel, found another's".to_owned())
}

fn other_checkpoint(seq: u64) -> StoreError {
    StoreError::Refused(format!("expected a new checkpoint, found another with number {seq}"))
}
