//! Where receipts, intents, budgets, tokens, revocations, approvals and tasks are kept.
//!
//! A store is named by a [`StoreUrl`], together with its data directory by a [`Location`], and opened
//! as an [`OpenStore`]. What processes share they reach through [`OpenStore::shared`]; what one kernel
//! alone may write, its log, through the [`Slot`] that it takes.

mod backend;
mod blocking;
mod bounds;
mod budget;
mod data_directory;
mod fields;
mod files;
mod inbox;
mod key_in_use;
mod keys;
mod location;
mod memory;
mod once;
mod restore;
mod slot;
mod sqlite;
mod tasks;
mod url;

use std::path::Path;
use std::sync::Arc;

use chio_core::certificate::KernelCertificate;
use chio_core::crypto::{Keypair, PublicKey, random_bytes};
use chio_core::signed::Signed;
use chio_kernel::Clock;
use chio_kernel::store::{Intent, Reservation, SharedStore, StoreError, StoreResult};
use uuid::Builder;

pub use location::Location;
pub use restore::Restore;
pub use slot::Slot;
pub use url::StoreUrl;

use backend::Backend;
use blocking::blocking;
use data_directory::DataDirectory;
use keys::{Keys, MemoryKeys, Role};
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

/// How a store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// It must be there.
    Existing,
    /// It is made when absent.
    Made(Indexing),
    /// As that, and it never waits for the disk.
    Unsynced,
}

/// An open store. Clones are handles on the same one.
#[derive(Clone)]
pub struct OpenStore {
    backend: Arc<dyn Backend>,
    keys: Arc<dyn Keys>,
    clock: Arc<dyn Clock>,
}

impl OpenStore {
    /// Opens a store, and makes it, with the keys of an authority and an approver, when there is
    /// none. One that was made before approvers had a key gets one.
    ///
    /// # Errors
    /// When it cannot be made or reached, or is not one that this program may use, or the data
    /// directory is another store's.
    pub async fn open(at: impl Into<Location>, clock: Arc<dyn Clock>) -> StoreResult<Self> {
        Self::open_with(at, clock, Indexing::On).await
    }

    /// As [`OpenStore::open`], with a word on the query index.
    ///
    /// # Errors
    /// As [`OpenStore::open`].
    pub async fn open_with(
        at: impl Into<Location>,
        clock: Arc<dyn Clock>,
        indexing: Indexing,
    ) -> StoreResult<Self> {
        Self::opened(&at.into(), clock, Mode::Made(indexing)).await?.with_keys().await
    }

    /// A store that loses what it says is durable: for the test that shows that such a loss would be
    /// noticed.
    #[doc(hidden)]
    pub async fn open_unsynced(folder: &Path, clock: Arc<dyn Clock>) -> StoreResult<Self> {
        let at = Location::from(&StoreUrl::Sqlite(folder.to_owned()));
        Self::opened(&at, clock, Mode::Unsynced).await?.with_keys().await
    }

    /// Opens a store that must exist. No key is made, and the query index advances only when
    /// a caller queries it. A memory store is always a new one.
    ///
    /// # Errors
    /// When there is none, it cannot be reached, or is not one that this program may use, or the
    /// data directory is another store's.
    pub async fn open_existing(
        at: impl Into<Location>,
        clock: Arc<dyn Clock>,
    ) -> StoreResult<Self> {
        let at = at.into();
        let store = Self::opened(&at, clock, Mode::Existing).await?;
        if *at.store() == StoreUrl::Memory {
            return store.with_keys().await;
        }
        store.check_store(false).await.map(|()| store)
    }

    /// A store without a look at its keys.
    async fn opened(at: &Location, clock: Arc<dyn Clock>, mode: Mode) -> StoreResult<Self> {
        let (backend, keys): (Arc<dyn Backend>, Arc<dyn Keys>) = match at.store() {
            // A store that ends with its process has no use for keys that do not; sockets and tokens
            // are in the data directory all the same.
            StoreUrl::Memory => {
                if let Some(data) = at.data().map(Path::to_owned) {
                    let make = move || DataDirectory::at(&data)?.make();
                    blocking(make).await?;
                }
                (Arc::new(MemoryStore::new(clock.as_ref())), Arc::new(MemoryKeys::new()))
            }
            StoreUrl::Sqlite(folder) => {
                let folder = files::folder_path(folder, "store")?;
                let keys = Arc::new(DataDirectory::at(at.data().unwrap_or(&folder))?);
                let (locked, now) = (Arc::clone(&keys), Arc::clone(&clock));
                let open = move || SqliteStore::open(&folder, locked, now.as_ref(), mode);
                (Arc::new(blocking(open).await?), keys)
            }
        };
        Ok(Self { backend, keys, clock })
    }

    /// The same with the keys of the store, each made once in its life. One that was taken away to
    /// a safer place is not made again.
    async fn with_keys(self) -> StoreResult<Self> {
        self.check_store(false).await?;
        // A data directory without a key of this store belongs to it once a kernel is certified.
        let mut belongs = false;
        for role in Role::ALL {
            belongs |= self.key(role).await?.is_some();
            belongs |= self.backend.public_key(role).await?.is_none();
        }
        if belongs {
            self.check_store(true).await?;
        }
        for role in Role::ALL {
            if self.backend.public_key(role).await?.is_none() {
                let keys = Arc::clone(&self.keys);
                let make = move || Ok(keys.key_or_make(role)?.public_key().clone());
                self.backend.remember_key(role, Box::new(make)).await?;
            }
        }
        Ok(self)
    }

    async fn check_store(&self, bind: bool) -> StoreResult<()> {
        let (keys, store_id) = (Arc::clone(&self.keys), self.backend.store_id().await?);
        blocking(move || keys.check_store(&store_id, bind)).await
    }

    /// The key of a role, if it is here. Refuses one that is not this store's.
    async fn key(&self, role: Role) -> StoreResult<Option<Keypair>> {
        let keys = Arc::clone(&self.keys);
        let Some(key) = blocking(move || keys.key(role)).await? else { return Ok(None) };
        let (found, known) = (key.public_key(), self.backend.public_key(role).await?);
        match known {
            Some(expected) if expected != *found => Err(StoreError::Refused(format!(
                "expected the {role} key `{expected}` of this store, found `{found}` in {}",
                self.keys
            ))),
            _ => Ok(Some(key)),
        }
    }

    /// What every process shares.
    pub fn shared(&self) -> SharedStore {
        Arc::<dyn Backend>::clone(&self.backend)
    }

    /// The key that issues tokens and certifies kernels; none when it is kept elsewhere.
    ///
    /// # Errors
    /// When it cannot be read, or is not this store's.
    pub async fn authority(&self) -> StoreResult<Option<Keypair>> {
        self.key(Role::Authority).await
    }

    /// The public half of that key, which the store remembers also when the key is kept elsewhere.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn authority_public(&self) -> StoreResult<Option<PublicKey>> {
        self.backend.public_key(Role::Authority).await
    }

    /// The key that signs approvals; none when it is kept elsewhere.
    ///
    /// # Errors
    /// When it cannot be read, or is not this store's.
    pub async fn approver(&self) -> StoreResult<Option<Keypair>> {
        self.key(Role::Approver).await
    }

    /// The public half of that key, which the store remembers also when the key is kept elsewhere.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn approver_public(&self) -> StoreResult<Option<PublicKey>> {
        self.backend.public_key(Role::Approver).await
    }

    /// Finishes what is queued and stops. Holders of a handle are answered that the store is
    /// unavailable. Dropping the last handle does the same.
    pub fn close(self) {
        self.backend.close();
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
        task: None,
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
