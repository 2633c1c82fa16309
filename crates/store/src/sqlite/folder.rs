//! The folder of a store: its keys, and the slots of its kernels with their locks.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use chio_core::crypto::{Keypair, PublicKey};
use chio_kernel::store::{StoreError, StoreResult};
use uuid::Uuid;
use zeroize::Zeroizing;

/// More than any key file holds, blanks and all.
const MAX_KEY_FILE: usize = 1024;

const AUTHORITY: &str = "authority.key";
const APPROVER: &str = "approver.key";
const KERNELS: &str = "kernels";
const SECRET: &str = "key";
const PUBLIC: &str = "public";
const LOCK: &str = "lock";

/// Where everything of one store is.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    path: PathBuf,
}

/// What a key of the whole store is for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Role {
    /// Issues tokens and certifies kernels.
    Authority,
    /// Signs approvals.
    Approver,
}

impl Role {
    /// Its name in the database, which remembers the public half.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Authority => "authority",
            Self::Approver => "approver",
        }
    }

    const fn file(self) -> &'static str {
        match self {
            Self::Authority => AUTHORITY,
            Self::Approver => APPROVER,
        }
    }
}

/// The key of a slot, as far as the folder has it.
pub(crate) enum SlotKey {
    /// With its secret.
    Ours(Keypair),
    /// The secret is kept elsewhere.
    Elsewhere(PublicKey),
}

impl SlotKey {
    pub(crate) const fn public(&self) -> &PublicKey {
        match self {
            Self::Ours(key) => key.public_key(),
            Self::Elsewhere(key) => key,
        }
    }
}

/// The key that a new slot is for.
pub(crate) enum NewSlot<'a> {
    /// Its secret is kept in the slot.
    Ours(&'a Keypair),
    /// Its secret is kept elsewhere.
    Elsewhere(&'a PublicKey),
}

/// A slot that is there.
#[derive(Debug)]
pub(crate) struct SlotFolder {
    path: PathBuf,
}

impl Folder {
    /// The folder at this path, made when absent.
    pub(crate) fn make(path: &Path) -> StoreResult<Self> {
        let path = absolute(path)?;
        refuse_file(&path)?;
        make_private(&path).map_err(|error| unreachable(&path, &error))?;
        Ok(Self { path })
    }

    /// The folder at this path, if it holds a store.
    pub(crate) fn existing(path: &Path) -> StoreResult<Self> {
        let path = absolute(path)?;
        refuse_file(&path)?;
        let folder = Self { path };
        if folder.database().is_file() {
            return Ok(folder);
        }
        let shown = folder.path.display();
        Err(StoreError::Refused(format!("expected a store in `{shown}`, found none")))
    }

    /// Whether a store has been here: there is a key, or a slot.
    pub(crate) fn has_keys(&self) -> StoreResult<bool> {
        let has_key = self.key(Role::Authority)?.is_some() || self.key(Role::Approver)?.is_some();
        Ok(has_key || !self.slots()?.is_empty())
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

    /// Makes an empty file that only its owner can read, unless there is a file. The database's
    /// own files take their modes from it.
    pub(crate) fn prepare(path: &Path) -> StoreResult<()> {
        match create_private(path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                Err(unreachable(path, &error))
            }
            _ => Ok(()),
        }
    }

    /// The key of a role, if it is here.
    pub(crate) fn key(&self, role: Role) -> StoreResult<Option<Keypair>> {
        read_secret(&self.path.join(role.file()))
    }

    /// Makes the key of a role. The caller keeps others from doing the same.
    pub(crate) fn make_key(&self, role: Role) -> StoreResult<Keypair> {
        let (key, path) = (Keypair::generate(), self.path.join(role.file()));
        write_secret(&self.path, role.file(), &key).map_err(|error| unreachable(&path, &error))?;
        Ok(key)
    }

    /// Every slot, in the order of their numbers.
    pub(crate) fn slots(&self) -> StoreResult<Vec<SlotFolder>> {
        let path = self.path.join(KERNELS);
        let listed = match fs::read_dir(&path) {
            Ok(listed) => listed,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(unreachable(&path, &error)),
        };
        let mut numbers: Vec<u32> = Vec::new();
        for entry in listed {
            let entry = entry.map_err(|error| unreachable(&path, &error))?;
            numbers.extend(entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()));
        }
        numbers.sort_unstable();
        let slot = |number: u32| SlotFolder { path: path.join(number.to_string()) };
        Ok(numbers.into_iter().map(slot).collect())
    }

    /// Keeps others from taking or adding slots. Waits for its turn.
    pub(crate) fn lock_slots(&self) -> StoreResult<File> {
        let kernels = self.path.join(KERNELS);
        make_private(&kernels).map_err(|error| unreachable(&kernels, &error))?;
        let path = kernels.join(LOCK);
        let file = open_lock(&path)?;
        file.lock().map_err(|error| unreachable(&path, &error))?;
        Ok(file)
    }

    /// Makes a slot for this key and takes it. It appears with key and lock in place, or not at
    /// all. The caller has [`Folder::lock_slots`].
    pub(crate) fn add_slot(&self, key: &NewSlot<'_>) -> StoreResult<File> {
        let kernels = self.path.join(KERNELS);
        try_add_slot(&kernels, key).map_err(|error| unreachable(&kernels, &error))
    }
}

fn try_add_slot(kernels: &Path, key: &NewSlot<'_>) -> io::Result<File> {
    let draft = kernels.join(format!(".new-{}", Uuid::now_v7()));
    make_private(&draft)?;
    let lock = create_private(&draft.join(LOCK))?;
    lock.lock()?;
    match key {
        NewSlot::Ours(key) => write_secret(&draft, SECRET, key)?,
        NewSlot::Elsewhere(key) => write_private(&draft, PUBLIC, format!("{key}\n").as_bytes())?,
    }
    let mut paths = (0_u32..=u32::MAX).map(|number| kernels.join(number.to_string()));
    let free = paths.find(|path| fs::symlink_metadata(path).is_err());
    fs::rename(&draft, free.ok_or_else(|| io::Error::other("there are too many slots"))?)?;
    sync_folder(kernels)?;
    Ok(lock)
}

impl SlotFolder {
    /// The slot's key; none when the folder has none.
    pub(crate) fn key(&self) -> StoreResult<Option<SlotKey>> {
        if let Some(key) = read_secret(&self.path.join(SECRET))? {
            return Ok(Some(SlotKey::Ours(key)));
        }
        let path = self.path.join(PUBLIC);
        let Some(text) = read_small(&path)? else { return Ok(None) };
        let key = PublicKey::from_hex(text.trim())
            .map_err(|error| StoreError::Damaged(format!("`{}`: {error}", path.display())))?;
        Ok(Some(SlotKey::Elsewhere(key)))
    }

    /// The slot's lock, unless it is held.
    pub(crate) fn try_lock(&self) -> StoreResult<Option<File>> {
        try_lock(&self.path.join(LOCK))
    }
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

fn open_lock(path: &Path) -> StoreResult<File> {
    Folder::prepare(path)?;
    let file = OpenOptions::new().read(true).write(true).open(path);
    file.map_err(|error| unreachable(path, &error))
}

/// A path that stays the same when the process changes its folder.
fn absolute(path: &Path) -> StoreResult<PathBuf> {
    std::path::absolute(path).map_err(|error| unreachable(path, &error))
}

fn unreachable(path: &Path, error: &io::Error) -> StoreError {
    StoreError::Unavailable(format!("`{}`: {error}", path.display()))
}

fn refuse_file(path: &Path) -> StoreResult<()> {
    if path.exists() && !path.is_dir() {
        let shown = path.display();
        let message = format!("expected a folder for the store, found the file `{shown}`");
        return Err(StoreError::Refused(message));
    }
    Ok(())
}

/// Makes a folder, and those above it, that only their owner can enter, whatever the umask says.
/// One that exists is left as it is.
fn make_private(path: &Path) -> io::Result<()> {
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
fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Creates a file that did not exist and never has more readers than its owner.
fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    set_mode(path, 0o600)?;
    Ok(file)
}

/// Writes a whole file: at each moment there is all of it or nothing.
fn write_private(folder: &Path, name: &str, content: &[u8]) -> io::Result<()> {
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

fn write_secret(folder: &Path, name: &str, key: &Keypair) -> io::Result<()> {
    // With all its room from the start, so that no copy of the seed is left behind.
    let mut content = Zeroizing::new(Vec::with_capacity(MAX_KEY_FILE));
    content.extend_from_slice(key.seed_hex().as_bytes());
    content.push(b'\n');
    write_private(folder, name, &content)
}

fn read_secret(path: &Path) -> StoreResult<Option<Keypair>> {
    let Some(text) = read_small(path)? else { return Ok(None) };
    let key = Keypair::from_seed_hex(text.trim());
    let damaged = |error| StoreError::Damaged(format!("`{}`: {error}", path.display()));
    key.map(Some).map_err(damaged)
}

/// The text of a small file; none when there is no such file.
fn read_small(path: &Path) -> StoreResult<Option<Zeroizing<String>>> {
    let mut text = Zeroizing::new(String::with_capacity(MAX_KEY_FILE));
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreachable(path, &error)),
    };
    // Less than the room that there is, so that the text is never moved.
    let read = file.take(MAX_KEY_FILE as u64 / 2).read_to_string(&mut text);
    read.map_err(|error| unreachable(path, &error))?;
    Ok(Some(text))
}
