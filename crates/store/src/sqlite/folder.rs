//! The folder of a database: what is in it.

use std::fs::File;
use std::path::{Path, PathBuf};

use chio_core::checkpoint::log_id;
use chio_core::crypto::PublicKey;
use chio_kernel::store::{StoreError, StoreResult};

use crate::files::{make_folder, try_lock};

/// Where everything of one database is.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The folder at this absolute path, made when absent.
    pub(crate) fn make(path: &Path) -> StoreResult<Self> {
        make_folder(path)?;
        Ok(Self::at(path))
    }

    /// The folder at this absolute path, as it is.
    pub(crate) fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// The folder at this path, if it holds a store.
    pub(crate) fn existing(path: &Path) -> StoreResult<Self> {
        let folder = Self::at(path);
        if folder.database().is_file() {
            return Ok(folder);
        }
        let shown = folder.path.display();
        Err(StoreError::Refused(format!("expected a store in `{shown}`, found none")))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn reserve(&self) -> PathBuf {
        self.path.join("store.reserve")
    }

    pub(crate) fn epoch_file(&self) -> PathBuf {
        self.path.join("store.epoch")
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path.join("store.db")
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.path.join("index.db")
    }

    pub(crate) fn index_lock(&self) -> PathBuf {
        self.path.join("index.lock")
    }

    /// Locks the log of a kernel, wherever its key is kept; none when it is locked.
    pub(crate) fn try_lock_log(&self, kernel_key: &PublicKey) -> StoreResult<Option<File>> {
        let logs = self.path.join("logs");
        make_folder(&logs)?;
        try_lock(&logs.join(format!("{}.lock", log_id(kernel_key))))
    }
}
