//! The folder of a database: what is in it.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
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
        let shown = folder.path.display();
        match folder.database().metadata() {
            Ok(found) if found.is_file() => Ok(folder),
            // What this user may not look at may well be there.
            Err(error) if !is_absence(&error) => Err(StoreError::Refused(format!(
                "cannot look for a store in `{shown}`: {error}{}",
                whose(path)
            ))),
            _ => Err(StoreError::Refused(format!("expected a store in `{shown}`, found none"))),
        }
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

/// Whether there is nothing of this name.
fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// To whom a folder belongs, where that is another user.
fn whose(folder: &Path) -> String {
    let user = rustix::process::geteuid().as_raw();
    match fs::metadata(folder).map(|found| found.uid()) {
        Ok(owner) if owner != user => {
            format!("; it belongs to the user {owner}, and this is {user}: ask that user")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::Folder;

    #[test]
    fn what_cannot_be_looked_at_is_not_said_to_be_absent() {
        let root = std::env::temp_dir().join(format!("chio-folder-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        symlink(root.join("loop"), root.join("loop")).unwrap();
        for (name, expected) in [("none", "found none"), ("loop", "cannot look for a store")] {
            let refused = Folder::existing(&root.join(name)).unwrap_err().to_string();
            assert!(refused.contains(expected), "{name}: {refused}");
        }
        fs::remove_dir_all(&root).unwrap();
    }
}
