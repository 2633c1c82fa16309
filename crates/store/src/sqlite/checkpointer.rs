//! The thread that moves what is durable from the write-ahead log into the database, so that the
//! writer seldom has to.
//!
//! It never makes the writer wait, and for that very reason never comes to the end of a log that is
//! being written: the log grows. When it is long, the writer moves the little that is left, after
//! which the log begins anew. On a small disk a shorter log is long: what is in it needs room in the
//! database as well before the log gives up its own.

use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use chio_kernel::store::{StoreError, StoreResult};
use parking_lot::Mutex;
use rusqlite::{Connection, OpenFlags};

use super::reserve::room;
use super::schema::{PAGE, open_as};

/// Moves for each long log. The bytes of receipts and intents between two are counted; the log grows
/// by more, for it has whole pages. A move syncs the database, and while much of it goes to the disk,
/// the syncs of the log wait.
const STRIDES: i64 = 32;

/// Strides between two moves that wait for others: such a wait may be in vain.
const LONG_STRIDE: i64 = 8;

/// Bytes of a log that the writer moves to its end. At twice as many it waits for those who read the
/// log and for other processes.
const LONG_LOG: i64 = 64 << 20;

/// The same on a disk that is nearly full.
const LEAST_LONG_LOG: i64 = 1 << 20;

/// The part of the room on a disk that a log may have.
const PART: u64 = 4;

pub(crate) struct Checkpointer {
    log: Arc<Log>,
    signal: Mutex<Signal>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What is known of the write-ahead log.
struct Log {
    database: PathBuf,
    /// Its length in bytes when the thread last looked, less what had been written by then.
    length: AtomicI64,
    /// The bytes that were written so far: what comes while the thread is at work counts as well.
    written: AtomicI64,
    /// The length at which it is long.
    long: AtomicI64,
    /// Held by the thread that moves it, since two at once would only get in each other's way.
    moving: Mutex<()>,
}

struct Signal {
    /// Bytes since the thread was called the last time.
    written: i64,
    /// Bytes since the writer waited for others the last time.
    unwaited: i64,
    /// The length that the database cuts a log to when it begins anew.
    cut: i64,
    /// None when it has ended.
    call: Option<SyncSender<()>>,
}

impl Checkpointer {
    pub(crate) fn start(database: &Path) -> StoreResult<Self> {
        let connection = open_as(database, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let log = Arc::new(Log {
            database: database.to_owned(),
            length: AtomicI64::default(),
            written: AtomicI64::default(),
            long: AtomicI64::new(long_log(database)),
            moving: Mutex::default(),
        });
        // A call that comes while it works is remembered; more than one need not be.
        let (call, calls) = sync_channel(1);
        let moved = Arc::clone(&log);
        let thread = thread::Builder::new()
            .name("chio-store-checkpointer".to_owned())
            .spawn(move || serve(&calls, &moved, &connection))
            .map_err(|error| StoreError::Unavailable(format!("no thread: {error}")))?;
        let signal = Signal { written: 0, unwaited: 0, cut: LONG_LOG, call: Some(call) };
        let signal = Mutex::new(signal);
        Ok(Self { log, signal, thread: Mutex::new(Some(thread)) })
    }

    /// Notes that the writer has made this many bytes durable. Called between its transactions.
    pub(crate) fn note(&self, bytes: usize, writer: &Connection) {
        let mut signal = self.signal.lock();
        signal.written = signal.written.saturating_add(i64::try_from(bytes).unwrap_or(i64::MAX));
        let long = self.log.long.load(Ordering::Relaxed);
        let stride = long / STRIDES;
        if signal.written < stride {
            return;
        }
        let written = mem::take(&mut signal.written);
        signal.unwaited = signal.unwaited.saturating_add(written);
        let written =
            self.log.written.fetch_add(written, Ordering::Relaxed).saturating_add(written);
        if signal.cut != long {
            // On a large disk the log keeps its length: to make it longer again would take time.
            let cut = if long < LONG_LOG { long } else { -1 };
            let _ = writer.pragma_update_and_check(None, "journal_size_limit", cut, |_| Ok(()));
            signal.cut = long;
        }
        let length = self.log.length.load(Ordering::Relaxed).saturating_add(written);
        if length >= 2 * long && signal.unwaited >= LONG_STRIDE * stride {
            signal.unwaited = 0;
            self.log.move_to_end(writer, "PRAGMA wal_checkpoint(RESTART)");
        } else if length >= long {
            self.log.move_to_end(writer, PASSIVE);
        } else {
            let _ = signal.call.as_ref().map(|call| call.try_send(()));
        }
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        self.signal.lock().call = None;
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

/// Moves what can be moved without waiting for readers or writers.
const PASSIVE: &str = "PRAGMA wal_checkpoint(PASSIVE)";

impl Log {
    /// Moves what the thread has left. Then the length is not known until the thread looks again.
    fn move_to_end(&self, writer: &Connection, how: &str) {
        let _alone = self.moving.lock();
        // If it fails, the log stays, and the next stride tries again.
        let _ = writer.query_row(how, [], |_| Ok(()));
        self.length.store(-self.written.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// The length at which a log of this database is long, given the room on its disk.
fn long_log(database: &Path) -> i64 {
    let folder = database.parent().unwrap_or(database);
    let room = room(folder).and_then(|room| i64::try_from(room / PART).ok());
    room.map_or(LONG_LOG, |room| room.clamp(LEAST_LONG_LOG, LONG_LOG))
}

fn serve(calls: &Receiver<()>, log: &Log, connection: &Connection) {
    while calls.recv().is_ok() {
        let _alone = log.moving.lock();
        let written = log.written.load(Ordering::Relaxed);
        let frames = connection.query_row(PASSIVE, [], |row| row.get::<_, i64>(1));
        // Minus one when another process was at it.
        let length = frames.unwrap_or(0).max(0).saturating_mul(PAGE);
        log.length.store(length.saturating_sub(written), Ordering::Relaxed);
        log.long.store(long_log(&log.database), Ordering::Relaxed);
    }
    // The last to close the database leaves no log behind, if it may write and has ever looked. What
    // was to be overwritten would lie about in the log.
    let _ = connection.query_row("SELECT 1 FROM meta LIMIT 1", [], |_| Ok(()));
}
