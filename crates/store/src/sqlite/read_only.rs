//! A store that this process may not write, such as a copy on a read-only disk. Nothing is made or
//! changed beside it.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use chio_kernel::store::StoreResult;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use uuid::Uuid;

use super::error::failed;
use super::folder::Folder;
use super::schema::connect;
use crate::files::make_folder;

/// Whether this process may not write a database, or make files beside it.
pub(crate) fn is_read_only(database: &Path) -> bool {
    let refused = |path: &Path| {
        matches!(access(path, Access::WRITE_OK), Err(Errno::ACCESS | Errno::ROFS | Errno::PERM))
    };
    refused(database) || database.parent().is_some_and(refused)
}

/// Opens a database that this process may not write.
pub(crate) fn open(database: &Path) -> StoreResult<Connection> {
    let is_there = |suffix: &str| {
        let mut name = database.as_os_str().to_owned();
        name.push(suffix);
        Path::new(&name).exists()
    };
    // Without a log, no process uses it. With a log, one may use it if there is shared memory; if
    // there is none, the place of each page in the log is kept in this process.
    let (how, alone) = match (is_there("-wal"), is_there("-shm")) {
        (false, _) => ("immutable=1", false),
        (true, true) => ("readonly_shm=1", false),
        (true, false) => ("vfs=unix-none", true),
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let connection = connect(&uri(database, how), flags)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(failed)?;
    if alone {
        let set = connection.pragma_update_and_check(None, "locking_mode", "exclusive", |_| Ok(()));
        set.map_err(failed)?;
    }
    Ok(connection)
}

fn uri(path: &Path, how: &str) -> PathBuf {
    let mut uri = b"file:".to_vec();
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'%' | b'?' | b'#' => uri.extend(format!("%{byte:02X}").into_bytes()),
            _ => uri.push(byte),
        }
    }
    uri.extend([b"?", how.as_bytes()].concat());
    PathBuf::from(OsString::from_vec(uri))
}

/// The folder of the query index of such a store, removed when dropped.
pub(crate) struct ScratchFolder(PathBuf);

impl ScratchFolder {
    pub(crate) fn make() -> StoreResult<Self> {
        let path = std::env::temp_dir().join(format!("chio-index-{}", Uuid::now_v7()));
        make_folder(&path)?;
        Ok(Self(path))
    }

    pub(crate) fn folder(&self) -> Folder {
        Folder::at(&self.0)
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
