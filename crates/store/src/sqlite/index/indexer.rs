//! The thread that lets the index follow what this process and others write.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use chio_kernel::store::{StoreError, StoreResult};
use rusqlite::Connection;

use super::super::error::failed;
use super::super::folder::Folder;
use super::super::schema::open_reader;
use super::advance::Batch;
use super::{Index, schema};

/// How long entries gather before they are indexed together: each touches pages all over the index,
/// and a page that many of them touch is written once.
const GATHER: Duration = Duration::from_millis(50);

/// How long they gather when many come.
const LONG_GATHER: Duration = Duration::from_millis(200);

/// This many at once are many.
const MANY: usize = 256;

/// How long it sleeps when this process writes nothing: others may.
const IDLE: Duration = Duration::from_millis(250);

/// How long an index may stand still before no writer waits for it.
const STANDSTILL: Duration = Duration::from_secs(5);

/// A running indexer.
pub(crate) struct Indexer {
    thread: JoinHandle<()>,
}

impl Indexer {
    pub(crate) fn start(index: &Arc<Index>, folder: &Folder) -> StoreResult<Self> {
        let (index, path) = (Arc::clone(index), folder.database());
        let store = open_reader(&path)?;
        // It reads entries once and in order. Pages that it kept would be dropped at every new look,
        // since others write meanwhile.
        store.pragma_update(None, "cache_size", -256).map_err(failed)?;
        let thread = thread::Builder::new()
            .name("chio-store-index".to_owned())
            .spawn(move || follow(&index, &store))
            .map_err(|error| StoreError::Unavailable(format!("no indexer thread: {error}")))?;
        Ok(Self { thread })
    }

    /// Waits for its end.
    pub(crate) fn join(self) {
        let _ = self.thread.join();
    }
}

fn follow(index: &Index, store: &Connection) {
    let mut last_advance = Instant::now();
    while !index.index_backpressure.is_stopped() {
        match step(index, store) {
            Ok(Step::More) => {
                last_advance = Instant::now();
                index.index_backpressure.set_stuck(false);
            }
            Ok(Step::Close { many }) => {
                last_advance = Instant::now();
                index.index_backpressure.set_stuck(false);
                thread::sleep(if many { LONG_GATHER } else { GATHER });
            }
            Ok(Step::Done) => {
                last_advance = Instant::now();
                index.index_backpressure.set_stuck(false);
                index.index_backpressure.sleep(IDLE);
                thread::sleep(GATHER);
            }
            Ok(Step::Stands) | Err(_) => {
                if last_advance.elapsed() > STANDSTILL {
                    index.index_backpressure.set_stuck(true);
                }
                thread::sleep(GATHER);
                index.index_backpressure.sleep(IDLE);
            }
        }
    }
    index.advancer.lock().release();
}

/// What one step found.
enum Step {
    /// There is more to do.
    More,
    /// All that was there a moment ago is indexed, and whether that was much.
    Close { many: bool },
    /// All is indexed, or another process indexes it.
    Done,
    /// Another process should index it, and does not.
    Stands,
}

fn step(index: &Index, store: &Connection) -> StoreResult<Step> {
    let mut advancer = index.advancer.lock();
    if let Some(batch) = advancer.advance(store)? {
        index.index_backpressure.note(advancer.progress());
        return Ok(match batch {
            Batch::Empty => Step::Done,
            Batch::Last(entries) => Step::Close { many: entries >= MANY },
            Batch::Full => Step::More,
        });
    }
    drop(advancer);
    let Some(reader) = schema::open_reader(&index.path, &index.store_id)? else {
        return Ok(Step::Stands);
    };
    let advanced = index.index_backpressure.note(&schema::progress(&reader)?);
    Ok(if advanced || !index.index_backpressure.is_behind() { Step::Done } else { Step::Stands })
}
