//! A store in a folder: one database that processes share, and an index of its receipts.
//!
//! `store.db` holds what must not be lost. It is written by one thread of each process, a group of
//! requests at a time. `index.db` can be made again from it at any time.

mod checkpointer;
mod database;
mod epoch_file;
mod error;
mod folder;
mod inbox;
mod index;
mod index_backpressure;
mod ledger;
mod number;
mod once;
mod opening;
mod queue;
mod read;
mod readers;
mod schema;
mod shared;
mod tasks;
#[cfg(test)]
mod tests;
mod writer;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chio_core::certificate::KernelCertificate;
use chio_core::checkpoint::log_id;
use chio_core::crypto::{Keypair, PublicKey};
use chio_kernel::Clock;
use chio_kernel::store::{StoreError, StoreResult};
use parking_lot::Mutex;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::certify::{certificate, in_use};
use crate::{Indexing, Slot};
use checkpointer::Checkpointer;
use database::{CertificateRow, Database, LogRow};
use epoch_file::EpochFile;
use error::{failed, unreadable};
use folder::{Folder, NewSlot, Role, SlotKey};
use index::{Index, Indexer};
use index_backpressure::IndexBackpressure;
use ledger::{LogHandle, SqliteLedger};
use readers::{Readers, blocking};
use writer::Writer;

/// How long another kernel may take to close what the last kernel of a slot left open.
const SWEEP_PATIENCE: Duration = Duration::from_secs(3);
/// How long others may take to open the same database.
const OPEN_PATIENCE: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A folder, open.
pub(crate) struct SqliteStore {
    folder: Folder,
    store_id: String,
    clock: Arc<dyn Clock>,
    writer: Writer,
    checkpointer: Arc<Checkpointer>,
    readers: Arc<Readers>,
    /// A connection of its own for what every call asks, so that it is never behind a long read.
    epochs: Mutex<Connection>,
    epoch_file: Arc<EpochFile>,
    index: Arc<Index>,
    index_backpressure: Arc<IndexBackpressure>,
    indexing: Indexing,
    indexer: Mutex<Option<Indexer>>,
}

impl SqliteStore {
    /// Opens the store in this folder, made when absent.
    pub(crate) fn open(
        path: &Path,
        clock: Arc<dyn Clock>,
        indexing: Indexing,
    ) -> StoreResult<Self> {
        let folder = Folder::make(path)?;
        let connection = open_database(&folder, clock.as_ref())?;
        make_keys(&folder, &connection)?;
        Self::start(folder, connection, clock, indexing)
    }

    /// As [`SqliteStore::open`], without waiting for the disk.
    pub(crate) fn open_unsynced(path: &Path, clock: Arc<dyn Clock>) -> StoreResult<Self> {
        let folder = Folder::make(path)?;
        let connection = open_database(&folder, clock.as_ref())?;
        make_keys(&folder, &connection)?;
        connection.pragma_update(None, "synchronous", "off").map_err(failed)?;
        Self::start(folder, connection, clock, Indexing::On)
    }

    /// Opens the store that must be in this folder. No key is made.
    pub(crate) fn open_existing(path: &Path, clock: Arc<dyn Clock>) -> StoreResult<Self> {
        let folder = Folder::existing(path)?;
        let connection = patiently(|| schema::open_existing(&folder.database()))?;
        Self::start(folder, connection, clock, Indexing::Off)
    }

    /// The public half of the authority's key; also when the key itself is kept elsewhere.
    pub(crate) fn authority_public(&self) -> StoreResult<Option<PublicKey>> {
        self.public_key(Role::Authority)
    }

    /// The public half of the approver's key; also when the key itself is kept elsewhere.
    pub(crate) fn approver_public(&self) -> StoreResult<Option<PublicKey>> {
        self.public_key(Role::Approver)
    }

    fn public_key(&self, role: Role) -> StoreResult<Option<PublicKey>> {
        self.readers.with(|database| {
            let text = schema::read_meta(database, role.name()).map_err(failed)?;
            let key = text.map(|text| PublicKey::from_hex(&text)).transpose();
            key.map_err(|error| unreadable(&format!("the {} key", role.name()), error))
        })
    }

    fn start(
        folder: Folder,
        connection: Connection,
        clock: Arc<dyn Clock>,
        indexing: Indexing,
    ) -> StoreResult<Self> {
        let store_id = schema::read_meta(&connection, "store_id").map_err(failed)?;
        let store_id = store_id.ok_or_else(|| unreadable("the store's name", "there is none"))?;
        let database = folder.database();
        let index_backpressure = Arc::new(IndexBackpressure::default());
        let index =
            Arc::new(Index::new(&folder, store_id.clone(), Arc::clone(&index_backpressure)));
        let checkpointer = Arc::new(Checkpointer::start(&database)?);
        let (woken, noted) = (Arc::clone(&index_backpressure), Arc::clone(&checkpointer));
        let after_group = Arc::new(move |database: &mut Database| {
            woken.wake();
            noted.note(database.take_written(), database.connection());
        });
        let epoch_file = Arc::new(epoch_file_of(&folder, &connection)?);
        let writer =
            Writer::start(Database::new(connection, Arc::clone(&epoch_file)), after_group)?;
        Ok(Self {
            epochs: Mutex::new(schema::open_reader(&database)?),
            epoch_file,
            readers: Arc::new(Readers::new(database)),
            folder,
            store_id,
            clock,
            writer,
            checkpointer,
            index,
            index_backpressure,
            indexing,
            indexer: Mutex::new(None),
        })
    }

    pub(crate) fn authority(&self) -> StoreResult<Option<Keypair>> {
        self.folder.key(Role::Authority)
    }

    pub(crate) fn approver(&self) -> StoreResult<Option<Keypair>> {
        self.folder.key(Role::Approver)
    }

    /// Takes the slot of this key, or any.
    pub(crate) fn take_slot(store: &Arc<Self>, key: Option<Keypair>) -> StoreResult<Slot> {
        let (key, lock) = match key {
            Some(key) => {
                let lock = store.lock_slot_of(key.public_key())?;
                (key, lock)
            }
            None => store.lock_any_slot()?,
        };
        let (number, entries, certificate) = store.certify(key.public_key())?;
        let log_id = certificate.log_id.clone();
        let log = Arc::new(LogHandle::new(number, log_id, entries, lock));
        store.start_indexer(&log)?;
        let ledger = Arc::new(SqliteLedger { store: Arc::clone(store), log });
        Ok(Slot { key, certificate, ledger })
    }

    /// Locks the slot of a key. Another kernel may hold it for a moment, to close what its last
    /// kernel left open.
    fn lock_slot_of(&self, key: &PublicKey) -> StoreResult<File> {
        let start = Instant::now();
        loop {
            if let Some(lock) = self.try_lock_slot_of(key)? {
                return Ok(lock);
            }
            if start.elapsed() > SWEEP_PATIENCE {
                return Err(in_use(key));
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    fn try_lock_slot_of(&self, key: &PublicKey) -> StoreResult<Option<File>> {
        let _alone = self.folder.lock_slots()?;
        for slot in self.folder.slots()? {
            if slot.key()?.is_some_and(|found| found.public() == key) {
                return slot.try_lock();
            }
        }
        self.folder.add_slot(&NewSlot::Elsewhere(key)).map(Some)
    }

    fn lock_any_slot(&self) -> StoreResult<(Keypair, File)> {
        let _alone = self.folder.lock_slots()?;
        for slot in self.folder.slots()? {
            let Some(lock) = slot.try_lock()? else { continue };
            if let Some(SlotKey::Ours(key)) = slot.key()? {
                return Ok((key, lock));
            }
        }
        let key = Keypair::generate();
        let lock = self.folder.add_slot(&NewSlot::Ours(&key))?;
        Ok((key, lock))
    }

    /// The number, length and certificate of a kernel's log, which is made when absent.
    fn certify(&self, key: &PublicKey) -> StoreResult<(i64, u64, KernelCertificate)> {
        let row = LogRow { log_id: log_id(key), kernel_key: key.to_hex() };
        let asked = row.clone();
        let (number, entries, known) = self.writer.run_blocking(move |database| {
            let number = database.log_number(&asked)?;
            let entries = database.reread_entries(number)?;
            Ok((number, entries, read::certificates(database.connection(), number)?))
        })?;
        let authority = self.authority()?;
        let now = self.clock.unix_seconds();
        let issued = certificate(&known, authority.as_ref(), key, &self.store_id, now)?;
        if !known.contains(&issued) {
            let certificate = CertificateRow::new(&issued)?;
            self.writer.run_blocking(move |database| database.certify(&row, &certificate))?;
        }
        Ok((number, entries, issued))
    }

    /// Lets the index follow what this process writes.
    fn start_indexer(&self, log: &Arc<LogHandle>) -> StoreResult<()> {
        if self.indexing == Indexing::Off {
            return Ok(());
        }
        self.index_backpressure.watch(log);
        let mut indexer = self.indexer.lock();
        if indexer.is_none() {
            *indexer = Some(Indexer::start(&self.index, &self.folder)?);
        }
        Ok(())
    }

    /// Finishes what is queued and ends the threads.
    pub(crate) fn close(&self) {
        self.writer.stop();
        self.index_backpressure.stop();
        let indexer = self.indexer.lock().take();
        if let Some(indexer) = indexer {
            indexer.join();
        }
        self.readers.close();
        // Last, because it may write: see there.
        self.checkpointer.stop();
    }

    /// Reads on a thread that may block.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> StoreResult<T> + Send + 'static,
    ) -> StoreResult<T> {
        let readers = Arc::clone(&self.readers);
        blocking(move || readers.with(read)).await
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.close();
    }
}

fn open_database(folder: &Folder, clock: &dyn Clock) -> StoreResult<Connection> {
    let path = folder.database();
    // SECURITY: keys without a database are what is left of a store. To begin anew with them would
    // bring back revoked tokens and spent budgets, and write a second log under one key.
    let is_left_over = folder.has_keys()?;
    Folder::prepare(&path)?;
    patiently(|| schema::open(&path, is_left_over, &|| crate::new_store_id(clock)))
}

/// Opens a database that others open at the same moment. Changing to a write-ahead log takes the
/// whole file, and the database does not wait for that by itself.
fn patiently(open: impl Fn() -> StoreResult<Connection>) -> StoreResult<Connection> {
    let start = Instant::now();
    loop {
        match open() {
            Err(StoreError::Unavailable(_)) if start.elapsed() < OPEN_PATIENCE => {
                std::thread::sleep(LOOK_AGAIN);
            }
            opened => return opened,
        }
    }
}

/// Opens the epoch file and sets it if it is new.
fn epoch_file_of(folder: &Folder, database: &Connection) -> StoreResult<EpochFile> {
    let problem = |error: std::io::Error| {
        StoreError::Unavailable(format!("the epoch of revocations cannot be kept: {error}"))
    };
    let (epoch_file, is_new) = EpochFile::open(&folder.epoch_file()).map_err(problem)?;
    if is_new {
        let alone =
            Transaction::new_unchecked(database, TransactionBehavior::Immediate).map_err(failed)?;
        epoch_file.set(read::epoch(&alone)?).map_err(problem)?;
    }
    Ok(epoch_file)
}

/// Makes the keys of the store, each once in its life. One that was taken away to a safer place is
/// not made again.
fn make_keys(folder: &Folder, database: &Connection) -> StoreResult<()> {
    make_key(folder, database, Role::Authority)?;
    make_key(folder, database, Role::Approver)
}

fn make_key(folder: &Folder, database: &Connection, role: Role) -> StoreResult<()> {
    if schema::read_meta(database, role.name()).map_err(failed)?.is_some() {
        return Ok(());
    }
    // The transaction also keeps other processes from making another key meanwhile.
    let alone =
        Transaction::new_unchecked(database, TransactionBehavior::Immediate).map_err(failed)?;
    if schema::read_meta(&alone, role.name()).map_err(failed)?.is_some() {
        return Ok(());
    }
    let key = match folder.key(role)? {
        Some(key) => key,
        None => folder.make_key(role)?,
    };
    schema::write_meta(&alone, role.name(), &key.public_key().to_hex()).map_err(failed)?;
    alone.commit().map_err(failed)
}
