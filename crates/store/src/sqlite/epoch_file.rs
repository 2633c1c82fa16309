//! The epoch of revocations in eight bytes beside the database.
//!
//! Every call looks at the epoch before it runs. To ask the database for it takes locks and a
//! transaction; to read eight bytes that are in the system's cache takes next to nothing.
//!
//! The process that revokes writes the new epoch here while it alone may write the database, and
//! before it commits. So no caller is ever told that something is revoked before the file says that
//! there is something new. A file that is ahead, after a commit that failed, costs each reader a
//! question to the database; one that is behind, after a power cut, is behind what every reader has
//! read by then.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

const LENGTH: u64 = 8;

#[derive(Debug)]
pub(crate) struct EpochFile(Option<File>);

impl EpochFile {
    /// None, of a store that cannot change: the database is asked.
    pub(crate) const fn none() -> Self {
        Self(None)
    }

    /// The epoch file at this path, made when absent. Tells whether it has yet to be set.
    pub(crate) fn open(path: &Path) -> io::Result<(Self, bool)> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(path)?;
        let is_new = file.metadata()?.len() < LENGTH;
        Ok((Self(Some(file)), is_new))
    }

    pub(crate) fn read(&self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        let file = self.0.as_ref().ok_or(io::ErrorKind::NotFound)?;
        file.read_exact_at(&mut bytes, 0)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Sets the epoch. Only for the caller that alone may write the database.
    pub(crate) fn set(&self, epoch: u64) -> io::Result<()> {
        self.0.as_ref().map_or(Ok(()), |file| file.write_all_at(&epoch.to_le_bytes(), 0))
    }
}
