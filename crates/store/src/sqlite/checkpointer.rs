//! The thread that moves what is durable from the write-ahead log into the database, so that the
//! writer seldom has to.
//!
//! It never makes the writer wait, and for that very reason never comes to the end of a log that is
//! being written: the log grows. When it is long, the writer moves the little that is left, after
//! which the log begins anew.

use std::mem;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use chio_kernel::store::{StoreError, StoreResult};
use parking_lot::Mutex;
use rusqlite::{Connection, OpenFlags};

use super::schema::{PAGE, open_as};

/// Bytes of receipts and intents that are written between two moves; the log grows by more, for it
/// has whole pages. A move syncs the database, and while much of it goes to the disk, the syncs of
/// the log wait.
const STRIDE: usize = 2 << 20;

/// The same between two moves that wait for others: such a wait may be in vain.
const LONG_STRIDE: usize = 16 << 20;

/// Bytes of a log that the writer moves to its end.
const LONG_LOG: i64 = 64 << 20;

/// Bytes of a log at which the writer waits for those who read it and for other processes.
const TOO_LONG_LOG: i64 = 2 * LONG_LOG;

pub(crate) struct Checkpointer {
    log: Arc<Log>,
    signal: Mutex<Signal>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What is known of the write-ahead log.
#[derive(Default)]
struct Log {
    /// Its length in bytes when the thread last looked.
    length: AtomicI64,
    /// Held by the thread that moves it, since two at once would only get in each other's way.
    moving: Mutex<()>,
}

struct Signal {
    /// Bytes since the thread was called the last time.
    written: usize,
    /// Bytes since the writer waited for others the last time.
    unwaited: usize,
    /// None when it has ended.
    call: Option<SyncSender<()>>,
}

impl Checkpointer {
    pub(crate) fn start(database: &Path) -> StoreResult<Self> {
        let connection = open_as(database, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let log = Arc::new(Log::default());
        // A call that comes while it works is remembered; more than one need not be.
        let (call, calls) = sync_channel(1);
        let moved = Arc::clone(&log);
        let thread = thread::Builder::new()
            .name("chio-store-checkpointer".to_owned())
            .spawn(move || serve(&calls, &moved, &connection))
            .map_err(|error| StoreError::Unavailable(format!("no thread: {error}")))?;
        let signal = Mutex::new(Signal { written: 0, unwaited: 0, call: Some(call) });
        Ok(Self { log, signal, thread: Mutex::new(Some(thread)) })
    }

    /// Notes that the writer has made this many bytes durable. Called between its transactions.
    pub(crate) fn note(&self, bytes: usize, writer: &Connection) {
        let mut signal = self.signal.lock();
        signal.written = signal.written.saturating_add(bytes);
        if signal.written < STRIDE {
            return;
        }
        signal.unwaited = signal.unwaited.saturating_add(mem::take(&mut signal.written));
        match self.log.length.load(Ordering::Relaxed) {
            TOO_LONG_LOG.. if signal.unwaited >= LONG_STRIDE => {
                signal.unwaited = 0;
                self.log.move_to_end(writer, "PRAGMA wal_checkpoint(RESTART)");
            }
            LONG_LOG.. => self.log.move_to_end(writer, PASSIVE),
            _ => drop(signal.call.as_ref().map(|call| call.try_send(()))),
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
        self.length.store(0, Ordering::Relaxed);
    }
}

fn serve(calls: &Receiver<()>, log: &Log, connection: &Connection) {
    while calls.recv().is_ok() {
        let _alone = log.moving.lock();
        let frames = connection.query_row(PASSIVE, [], |row| row.get::<_, i64>(1));
        // Minus one when another process was at it.
        let length = frames.unwrap_or(0).max(0).saturating_mul(PAGE);
        log.length.store(length, Ordering::Relaxed);
    }
    // The last to close the database leaves no log behind, if it may write and has ever looked. What
    // was to be overwritten would lie about in the log.
    let _ = connection.query_row("SELECT 1 FROM meta LIMIT 1", [], |_| Ok(()));
}
