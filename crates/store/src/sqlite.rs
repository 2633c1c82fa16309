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
mod read_only;
mod readers;
mod reserve;
mod schema;
mod shared;
mod task_index;
mod tasks;
#[cfg(test)]
mod tests;
mod writer;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use chio_core::checkpoint::log_id;
use chio_core::crypto::PublicKey;
use chio_kernel::Clock;
use chio_kernel::store::{Ledger, StoreError, StoreResult};
use parking_lot::Mutex;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::backend::{Backend, MakeKey};
use crate::blocking::blocking;
use crate::keys::{Keys, Lock, Role};
use crate::{Indexing, Mode, files};
use checkpointer::Checkpointer;
use database::{Database, LogRow};
use epoch_file::EpochFile;
use error::{failed, unreadable};
use folder::Folder;
use index::{Index, Indexer};
use index_backpressure::IndexBackpressure;
use ledger::{LogHandle, SqliteLedger};
use read_only::is_read_only;
use readers::Readers;
use reserve::Reserve;
use writer::Writer;

/// How long others may take to open the same database.
const OPEN_PATIENCE: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A folder, open.
pub(crate) struct SqliteStore {
    folder: Folder,
    /// The file that the database is in.
    identity: Option<(u64, u64)>,
    store_id: String,
    reserve: Reserve,
    /// Where the keys of its kernels may be locked.
    keys: Arc<dyn Keys>,
    /// Kernels that run with another store as well; this process leaves their logs alone.
    in_use_elsewhere: Mutex<HashSet<PublicKey>>,
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
    /// Opens the store in this folder. Blocks.
    pub(crate) fn open(
        path: &Path,
        keys: Arc<dyn Keys>,
        clock: &dyn Clock,
        mode: Mode,
    ) -> StoreResult<Self> {
        if mode == Mode::Existing {
            let folder = Folder::existing(path)?;
            let reserve = Reserve::make_room(&folder);
            let connection = patiently(|| schema::open_existing(&folder.database()))?;
            return Self::start(folder, connection, keys, Indexing::Off, reserve);
        }
        let folder = Folder::make(path)?;
        let reserve = Reserve::make_room(&folder);
        let database = folder.database();
        // Asked first: another process may make the tables, and then its keys, at the same moment.
        let may_be_new = keys.check_unused();
        if !database.is_file() {
            may_be_new.clone()?;
        }
        files::prepare(&database)?;
        let new_store_id = || crate::new_store_id(clock);
        let connection = patiently(|| schema::open(&database, &may_be_new, &new_store_id))?;
        if mode == Mode::Unsynced {
            connection.pragma_update(None, "synchronous", "off").map_err(failed)?;
        }
        let indexing = if let Mode::Made(indexing) = mode { indexing } else { Indexing::On };
        Self::start(folder, connection, keys, indexing, reserve)
    }

    fn start(
        folder: Folder,
        connection: Connection,
        keys: Arc<dyn Keys>,
        indexing: Indexing,
        reserve: Reserve,
    ) -> StoreResult<Self> {
        let store_id = schema::read_meta(&connection, "store_id").map_err(failed)?;
        let store_id = store_id.ok_or_else(|| unreadable("the store's name", "there is none"))?;
        let database = folder.database();
        let index_backpressure = Arc::new(IndexBackpressure::default());
        let read_only = is_read_only(&database);
        let index = if read_only {
            Index::apart(store_id.clone())?
        } else {
            Index::new(&folder, store_id.clone(), Arc::clone(&index_backpressure))
        };
        let index = Arc::new(index);
        let checkpointer = Arc::new(Checkpointer::start(&database)?);
        let (woken, noted) = (Arc::clone(&index_backpressure), Arc::clone(&checkpointer));
        let after_group = Arc::new(move |database: &mut Database| {
            woken.wake();
            noted.note(database.take_written(), database.connection());
        });
        let epoch_file =
            if read_only { EpochFile::none() } else { epoch_file_of(&folder, &connection)? };
        let epoch_file = Arc::new(epoch_file);
        let writer =
            Writer::start(Database::new(connection, Arc::clone(&epoch_file)), after_group)?;
        Ok(Self {
            epochs: Mutex::new(schema::open_reader(&database)?),
            epoch_file,
            identity: files::identity(&database),
            readers: Arc::new(Readers::new(database)),
            reserve,
            folder,
            store_id,
            keys,
            in_use_elsewhere: Mutex::default(),
            writer,
            checkpointer,
            index,
            index_backpressure,
            indexing,
            indexer: Mutex::new(None),
        })
    }

    /// Refuses to go on with a database that was removed or replaced: what is written to it is lost.
    fn check_present(&self) -> StoreResult<()> {
        let database = self.folder.database();
        if files::identity(&database) == self.identity {
            return Ok(());
        }
        let shown = database.display();
        Err(StoreError::Damaged(format!("`{shown}` was removed or replaced while it was in use")))
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
        self.reserve.keep_again();
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

#[async_trait]
impl Backend for SqliteStore {
    async fn public_key(&self, role: Role) -> StoreResult<Option<PublicKey>> {
        self.read(move |database| public_key(database, role)).await
    }

    async fn remember_key(&self, role: Role, make: MakeKey) -> StoreResult<()> {
        let remember = move |database: &mut Database| {
            let database = database.connection();
            if public_key(database, role)?.is_some() {
                return Ok(());
            }
            schema::write_meta(database, role.name(), &make()?.to_hex()).map_err(failed)
        };
        self.writer.run(remember).await
    }

    async fn try_lock_log(&self, kernel_key: &PublicKey) -> StoreResult<Option<Lock>> {
        let (folder, key) = (self.folder.clone(), kernel_key.clone());
        let lock = blocking(move || folder.try_lock_log(&key)).await?;
        Ok(lock.map(|lock| Box::new(lock) as Lock))
    }

    async fn ledger(
        self: Arc<Self>,
        kernel_key: &PublicKey,
        locks: [Lock; 2],
    ) -> StoreResult<Arc<dyn Ledger>> {
        let row = LogRow { log_id: log_id(kernel_key), kernel_key: kernel_key.to_hex() };
        let log_id = row.log_id.clone();
        let find = move |database: &mut Database| {
            let number = database.log_number(&row)?;
            Ok((number, database.reread_entries(number)?))
        };
        let (number, entries) = self.writer.run(find).await?;
        let log = Arc::new(LogHandle::new(number, log_id, entries, locks));
        self.start_indexer(&log)?;
        Ok(Arc::new(SqliteLedger { store: self, log }))
    }

    fn close(&self) {
        Self::close(self);
    }
}

fn public_key(database: &Connection, role: Role) -> StoreResult<Option<PublicKey>> {
    let text = schema::read_meta(database, role.name()).map_err(failed)?;
    let key = text.map(|text| PublicKey::from_hex(&text)).transpose();
    key.map_err(|error| unreadable(&format!("the {role} key"), error))
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.close();
    }
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
