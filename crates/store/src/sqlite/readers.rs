//! Connections that only read, shared by the callers that need one for a moment.

use std::path::PathBuf;

use chio_kernel::store::StoreResult;
use parking_lot::Mutex;
use rusqlite::Connection;

use super::schema;

/// Connections that are kept for the next reader.
const MAX_IDLE: usize = 4;

pub(crate) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(crate) const fn new(path: PathBuf) -> Self {
        Self { path, idle: Mutex::new(Vec::new()) }
    }

    /// Reads with a connection that no other reader uses.
    pub(crate) fn with<T>(
        &self,
        read: impl FnOnce(&Connection) -> StoreResult<T>,
    ) -> StoreResult<T> {
        let idle = self.idle.lock().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => schema::open_reader(&self.path)?,
        };
        self.read_with(connection, read)
    }

    /// The same if there is a connection that is not in use: to open one takes a thousand times what a
    /// look at an index takes.
    pub(crate) fn with_idle<T>(
        &self,
        read: impl FnOnce(&Connection) -> StoreResult<T>,
    ) -> Option<StoreResult<T>> {
        let connection = self.idle.lock().pop()?;
        Some(self.read_with(connection, read))
    }

    fn read_with<T>(
        &self,
        connection: Connection,
        read: impl FnOnce(&Connection) -> StoreResult<T>,
    ) -> StoreResult<T> {
        let found = read(&connection);
        let mut idle = self.idle.lock();
        // One that failed may be broken; the next reader opens another.
        if found.is_ok() && idle.len() < MAX_IDLE {
            idle.push(connection);
        }
        found
    }

    /// Closes those that are not in use.
    pub(crate) fn close(&self) {
        self.idle.lock().clear();
    }
}
