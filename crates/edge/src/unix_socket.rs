//! Socket files: who may take over one, and who may open one.

use std::fs::{self, File, Permissions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::SocketAddr;
use std::path::{Path, PathBuf};

use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};

use crate::stream_listener::ListenError;

/// How often, and after what pause, a folder that is locked is looked at again.
const LOOKS: u32 = 200;
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A socket file that is removed when its listener ends.
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Device and inode, so that no other process's file is removed.
    identity: (u64, u64),
}

/// Listens on a socket file that only its owner can open.
///
/// A file on which no process answers is replaced; one on which a process does, and anything that
/// is no socket, is left alone.
pub(crate) async fn bind(path: &Path) -> Result<(UnixListener, SocketFile), ListenError> {
    // The draft's name is short; the name that callers use has to fit into an address, too.
    SocketAddr::from_pathname(path)?;
    // Of processes that come at the same time, one after the other sees whether the place is free.
    let _alone = lock_folder(path).await?;
    check_free(path).await?;
    // The file gets its name only when it has its mode: never can others open it.
    let unnamed = unnamed_beside(path);
    if fs::symlink_metadata(&unnamed).is_ok_and(|found| found.file_type().is_socket()) {
        remove_if_there(&unnamed)?;
    }
    let listener = UnixListener::bind(&unnamed)?;
    let named = fs::set_permissions(&unnamed, Permissions::from_mode(0o600))
        .and_then(|()| fs::rename(&unnamed, path))
        .and_then(|()| fs::symlink_metadata(path));
    match named {
        Ok(file) => {
            let identity = (file.dev(), file.ino());
            Ok((listener, SocketFile { path: path.to_owned(), identity }))
        }
        Err(error) => {
            remove_if_there(&unnamed)?;
            Err(error.into())
        }
    }
}

/// Sees whether a socket file can be listened on, as far as that can be told before.
pub(crate) async fn check(path: &Path) -> Result<(), ListenError> {
    SocketAddr::from_pathname(path)?;
    File::open(folder_of(path))?;
    check_free(path).await
}

/// The folder of a socket.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Locks the folder of a socket for as long as it takes to bind one there.
async fn lock_folder(path: &Path) -> io::Result<File> {
    let folder = File::open(folder_of(path))?;
    for _ in 0..LOOKS {
        match folder.try_lock() {
            Err(TryLockError::WouldBlock) => tokio::time::sleep(LOOK_AGAIN).await,
            locked => return Ok(locked.map(|()| folder)?),
        }
    }
    Err(io::Error::new(ErrorKind::WouldBlock, "another process has locked the socket's folder"))
}

/// A short name in the same folder: socket paths may not be long.
fn unnamed_beside(path: &Path) -> PathBuf {
    path.with_file_name(format!(".{:x}", std::process::id()))
}

async fn check_free(path: &Path) -> Result<(), ListenError> {
    let file = match fs::symlink_metadata(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    if !file.file_type().is_socket() {
        return Err(ListenError::NotASocket(path.to_owned()));
    }
    match UnixStream::connect(path).await {
        Ok(_) => Err(ListenError::SocketInUse(path.to_owned())),
        Err(error)
            if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound) =>
        {
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let ours = fs::symlink_metadata(&self.path)
            .is_ok_and(|file| (file.dev(), file.ino()) == self.identity);
        if ours {
            // The next process replaces a file that could not be removed.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests;
