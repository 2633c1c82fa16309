//! Folders and files that only their owner can read, and locks on them.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use chio_kernel::store::{StoreError, StoreResult};
use uuid::Uuid;
use zeroize::Zeroizing;

/// More than any small file holds, blanks and all.
pub(crate) const MAX_SMALL: usize = 1024;

/// Makes an empty file that only its owner can read, unless there is a file. A database's own files
/// take their modes from it.
pub(crate) fn prepare(path: &Path) -> StoreResult<()> {
    match create_private(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(unreachable(path, &error)),
        _ => Ok(()),
    }
}

/// The file at this path: its device and number.
pub(crate) fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;

    fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// Locks a file, made when absent; none when the lock is held elsewhere.
pub(crate) fn try_lock(path: &Path) -> StoreResult<Option<File>> {
    let file = open_lock(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(unreachable(path, &error)),
    }
}

pub(crate) fn open_lock(path: &Path) -> StoreResult<File> {
    prepare(path)?;
    let file = OpenOptions::new().read(true).write(true).open(path);
    file.map_err(|error| unreachable(path, &error))
}

/// A path that stays the same when the process changes its folder.
fn absolute(path: &Path) -> StoreResult<PathBuf> {
    std::path::absolute(path).map_err(|error| unreachable(path, &error))
}

pub(crate) fn unreachable(path: &Path, error: &io::Error) -> StoreError {
    StoreError::Unavailable(format!("`{}`: {error}", path.display()))
}

/// A folder's path, absolute; refused when there is a file in its place.
pub(crate) fn folder_path(path: &Path, what: &str) -> StoreResult<PathBuf> {
    let path = absolute(path)?;
    if path.exists() && !path.is_dir() {
        let shown = path.display();
        let message = format!("expected a folder for the {what}, found the file `{shown}`");
        return Err(StoreError::Refused(message));
    }
    Ok(path)
}

/// Makes a folder that only its owner can enter, unless it is there.
pub(crate) fn make_folder(path: &Path) -> StoreResult<()> {
    make_private(path).map_err(|error| unreachable(path, &error))
}

/// Makes a folder, and those above it, that only their owner can enter, whatever the umask says.
/// One that exists is left as it is.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent() {
        make_private(above)?;
    }
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => return Ok(()),
        made => made?,
    }
    set_mode(path, 0o700)?;
    path.parent().map_or(Ok(()), sync_folder)
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn set_mode(_path: &Path, _mode: u32) -> io::Result<()> {
    Ok(())
}

/// Makes the names in a folder durable.
#[cfg(unix)]
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(not(unix))]
pub(crate) fn sync_folder(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Creates a file that did not exist and never has more readers than its owner.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    set_mode(path, 0o600)?;
    Ok(file)
}

/// Writes a whole file: at each moment there is all of it or nothing.
pub(crate) fn write_private(folder: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let draft = folder.join(format!(".{name}.{}", Uuid::now_v7()));
    let mut file = create_private(&draft)?;
    let written = file
        .write_all(content)
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&draft, folder.join(name)));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written.and_then(|()| sync_folder(folder))
}

/// Refuses a file that others than its owner can change: what it says may be their word.
#[cfg(unix)]
fn check_owned(path: &Path, file: &File) -> StoreResult<()> {
    use std::os::unix::fs::MetadataExt;
    let found = file.metadata().map_err(|error| unreachable(path, &error))?;
    if found.mode() & 0o022 == 0 {
        return Ok(());
    }
    let shown = path.display();
    Err(StoreError::Refused(format!(
        "expected a file that only its owner can change, found `{shown}`: run `chmod 600` on it"
    )))
}

#[cfg(not(unix))]
fn check_owned(_path: &Path, _file: &File) -> StoreResult<()> {
    Ok(())
}

/// The text of a small file; none when there is no such file. Refused when others than its owner can
/// change it.
pub(crate) fn read_small(path: &Path) -> StoreResult<Option<Zeroizing<String>>> {
    read_text(path, MAX_SMALL)
}

/// The same of a file that fills half of this room at most.
pub(crate) fn read_text(path: &Path, room: usize) -> StoreResult<Option<Zeroizing<String>>> {
    let mut text = Zeroizing::new(String::with_capacity(room));
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreachable(path, &error)),
    };
    check_owned(path, &file)?;
    // Less than the room that there is, so that the text is never moved.
    let read = file.take(room as u64 / 2).read_to_string(&mut text);
    read.map_err(|error| match error.kind() {
        ErrorKind::InvalidData => StoreError::Damaged(format!("`{}`: {error}", path.display())),
        _ => unreachable(path, &error),
    })?;
    Ok(Some(text))
}
