//! Receipts by what they are about: an index in a file of its own, that can be made again.
//!
//! The holder of the file lock advances it: the indexer thread of some process, or a query when
//! the lock is free. An answer includes all that was durable when it was asked for.

mod advance;
mod indexer;
mod query;
mod schema;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use chio_kernel::store::{ReceiptQuery, ReceiptRow, StoreError, StoreResult};
use parking_lot::Mutex;
use rusqlite::Connection;

pub(crate) use indexer::Indexer;

use super::folder::Folder;
use super::index_backpressure::IndexBackpressure;
use super::read::heads;
use super::read_only::ScratchFolder;
use advance::Advancer;

/// How long a query waits for another process to advance the index.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long it waits before it looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// How long the index may stand still before a query makes one for its process alone: the process
/// that holds the lock may be stopped.
const STANDSTILL: Duration = Duration::from_secs(5);

/// How often a damaged index is made again for one query.
const MAX_REBUILDS: u32 = 2;

/// How far the index is with each log.
type Progress = HashMap<i64, i64>;

/// What a look at the index gave.
enum Asked<T> {
    Answer(T),
    /// It does not have all that is wanted: it has this many entries.
    Behind(i64),
}

pub(crate) struct Index {
    path: PathBuf,
    store_id: String,
    advancer: Mutex<Advancer>,
    index_backpressure: Arc<IndexBackpressure>,
    /// The folder of an index that is for this process alone.
    scratch: Option<ScratchFolder>,
    /// The index that is for this process alone, once that of the store stood still.
    apart: Mutex<Option<Arc<Self>>>,
}

impl Index {
    pub(crate) fn new(
        folder: &Folder,
        store_id: String,
        index_backpressure: Arc<IndexBackpressure>,
    ) -> Self {
        Self::at(folder, store_id, index_backpressure, None)
    }

    /// An index for this process alone, in a folder of its own.
    pub(crate) fn apart(store_id: String) -> StoreResult<Self> {
        let scratch = ScratchFolder::make()?;
        Ok(Self::at(&scratch.folder(), store_id, Arc::default(), Some(scratch)))
    }

    fn at(
        folder: &Folder,
        store_id: String,
        index_backpressure: Arc<IndexBackpressure>,
        scratch: Option<ScratchFolder>,
    ) -> Self {
        let (path, is_kept) = (folder.index(), scratch.is_none());
        let advancer = Advancer::new(path.clone(), folder.index_lock(), store_id.clone(), is_kept);
        let (advancer, apart) = (Mutex::new(advancer), Mutex::new(None));
        Self { path, store_id, advancer, index_backpressure, scratch, apart }
    }

    pub(crate) fn query(
        &self,
        store: &Connection,
        query: &ReceiptQuery,
    ) -> StoreResult<Vec<ReceiptRow>> {
        self.answer(store, &|index| query::run(index, store, query))
    }

    pub(crate) fn find(
        &self,
        store: &Connection,
        receipt_id: &str,
    ) -> StoreResult<Option<ReceiptRow>> {
        self.answer(store, &|index| query::find(index, store, receipt_id))
    }

    pub(crate) fn find_beginning(
        &self,
        store: &Connection,
        digits: &str,
        limit: usize,
    ) -> StoreResult<Vec<ReceiptRow>> {
        self.answer(store, &|index| query::find_beginning(index, store, digits, limit))
    }

    /// Asks the index once it has everything that is in the store now.
    fn answer<T>(
        &self,
        store: &Connection,
        ask: &dyn Fn(&Connection) -> StoreResult<T>,
    ) -> StoreResult<T> {
        let wanted = heads(store)?;
        let (start, mut rebuilds) = (Instant::now(), 0);
        let (mut reached, mut last_advance) = (0, start);
        loop {
            match self.ask_if_current(&wanted, ask) {
                Ok(Asked::Answer(answer)) => return Ok(answer),
                Ok(Asked::Behind(entries)) if entries == reached => {}
                Ok(Asked::Behind(entries)) => (reached, last_advance) = (entries, Instant::now()),
                Err(StoreError::Damaged(_)) if rebuilds < MAX_REBUILDS => {
                    rebuilds += 1;
                    self.advancer.lock().mistrust();
                }
                Err(error) => return Err(error),
            }
            let caught_up = self.catch_up(store, &wanted)?;
            if !caught_up && self.scratch.is_none() && last_advance.elapsed() > STANDSTILL {
                return self.index_apart()?.answer(store, ask);
            }
            if !caught_up && start.elapsed() > PATIENCE {
                let message = "the index of receipts does not catch up with the log";
                return Err(StoreError::Unavailable(message.to_owned()));
            }
            if !caught_up {
                thread::sleep(LOOK_AGAIN);
            }
        }
    }

    /// An index that no stopped process holds.
    fn index_apart(&self) -> StoreResult<Arc<Self>> {
        let mut apart = self.apart.lock();
        if apart.is_none() {
            *apart = Some(Arc::new(Self::apart(self.store_id.clone())?));
        }
        apart.clone().ok_or_else(super::writer::closed)
    }

    /// Asks the index, if it has all that is wanted.
    fn ask_if_current<T>(
        &self,
        wanted: &[(i64, i64)],
        ask: &dyn Fn(&Connection) -> StoreResult<T>,
    ) -> StoreResult<Asked<T>> {
        let Some(index) = schema::open_reader(&self.path, &self.store_id)? else {
            return Ok(Asked::Behind(0));
        };
        // What is compared and what is answered is the index of one moment.
        let moment = index.unchecked_transaction().map_err(super::error::failed)?;
        let progress = schema::progress(&moment)?;
        let has = |(log, seq): &(i64, i64)| *seq <= progress.get(log).copied().unwrap_or(0);
        if wanted.iter().all(has) {
            return ask(&moment).map(Asked::Answer);
        }
        Ok(Asked::Behind(progress.values().sum()))
    }

    /// Advances the index up to here, if the lock is free or ours.
    fn catch_up(&self, store: &Connection, wanted: &[(i64, i64)]) -> StoreResult<bool> {
        let mut advancer = self.advancer.lock();
        let was_ours = advancer.is_ours();
        let advanced = advancer.catch_up(store, wanted);
        if let Ok(true) = advanced {
            self.index_backpressure.note(advancer.progress());
        }
        if !was_ours {
            advancer.release();
        }
        advanced
    }
}
