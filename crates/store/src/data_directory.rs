//! The data directory: the keys of a store and its kernels, and the locks of those that run.
//!
//! It belongs to one store. What else is local, such as sockets and tokens, is in it too.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use chio_core::canonical;
use chio_core::checkpoint::log_id;
use chio_core::crypto::{Keypair, PublicKey};
use chio_core::mark::{Mark, StoreNumbers};
use chio_core::signed::Signed;
use chio_core::strict;
use chio_kernel::mark::{Marks, Regression};
use chio_kernel::store::{StoreError, StoreResult};
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::files::{
    MAX_SMALL, create_private, folder_path, make_folder, make_private, open_lock, read_small,
    read_text, sync_folder, try_lock, unreachable, write_private,
};
use crate::keys::{Keys, Lock, Role, SignMark};

/// What it is called in errors.
const DATA: &str = "data directory";
const AUTHORITY: &str = "authority.key";
const APPROVER: &str = "approver.key";
const STORE: &str = "store.id";
const KERNELS: &str = "kernels";
const SECRET: &str = "key";
const PUBLIC: &str = "public";
const LOCK: &str = "lock";
const MARK: &str = "mark";
const IGNORED: &str = ".gitignore";
/// What the name of a slot begins with once its log is closed.
const CLOSED: &str = "closed-";
/// More than twice what a mark has.
const MARK_ROOM: usize = 8 * MAX_SMALL;

/// Where the keys of one store are.
#[derive(Debug)]
pub(crate) struct DataDirectory {
    path: PathBuf,
}

/// The key of a slot, as far as the data directory has it.
enum SlotKey {
    /// With its secret.
    Ours(Keypair),
    /// The secret is kept elsewhere.
    Elsewhere(PublicKey),
}

impl SlotKey {
    const fn public(&self) -> &PublicKey {
        match self {
            Self::Ours(key) => key.public_key(),
            Self::Elsewhere(key) => key,
        }
    }
}

impl DataDirectory {
    /// The data directory at this path, which need not be there yet.
    pub(crate) fn at(path: &Path) -> StoreResult<Self> {
        Ok(Self { path: folder_path(path, DATA)? })
    }

    /// Makes the folder unless it is there, with a word to git that nothing in it is to be added.
    pub(crate) fn make(&self) -> StoreResult<()> {
        make_folder(&self.path)?;
        if fs::symlink_metadata(self.path.join(IGNORED)).is_err() {
            // Best effort: kernels also start on a disk that is full.
            let _ = write_private(&self.path, IGNORED, b"*\n");
        }
        Ok(())
    }

    /// The folder of every slot, in the order of their numbers.
    fn slots(&self) -> StoreResult<Vec<PathBuf>> {
        let mut numbers = self.named(|name| name.parse::<u32>().ok())?;
        numbers.sort_unstable();
        let path = self.path.join(KERNELS);
        Ok(numbers.into_iter().map(|number| path.join(number.to_string())).collect())
    }

    /// The folder of every slot whose log is closed.
    fn closed_slots(&self) -> StoreResult<Vec<PathBuf>> {
        let path = self.path.join(KERNELS);
        self.named(|name| name.starts_with(CLOSED).then(|| path.join(name)))
    }

    /// What the names in the folder of the slots are read as.
    fn named<T>(&self, read: impl Fn(&str) -> Option<T>) -> StoreResult<Vec<T>> {
        let path = self.path.join(KERNELS);
        let listed = match fs::read_dir(&path) {
            Ok(listed) => listed,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(unreachable(&path, &error)),
        };
        let mut found = Vec::new();
        for entry in listed {
            let entry = entry.map_err(|error| unreachable(&path, &error))?;
            found.extend(entry.file_name().to_str().and_then(&read));
        }
        Ok(found)
    }

    /// Keeps others from taking or adding slots. Waits for its turn.
    fn lock_slots(&self) -> StoreResult<File> {
        self.make()?;
        let kernels = self.path.join(KERNELS);
        make_folder(&kernels)?;
        let path = kernels.join(LOCK);
        let file = open_lock(&path)?;
        file.lock().map_err(|error| unreachable(&path, &error))?;
        Ok(file)
    }

    /// Makes a slot and takes it. It appears with its key, which `write` puts there, and lock in
    /// place, or not at all. The caller has [`DataDirectory::lock_slots`].
    fn add_slot(&self, write: impl FnOnce(&Path) -> io::Result<()>) -> StoreResult<Lock> {
        let kernels = self.path.join(KERNELS);
        let lock = try_add_slot(&kernels, write).map_err(|error| unreachable(&kernels, &error))?;
        Ok(Box::new(lock))
    }
}

fn try_add_slot(kernels: &Path, write: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<File> {
    let draft = kernels.join(format!(".new-{}", Uuid::now_v7()));
    make_private(&draft)?;
    let lock = create_private(&draft.join(LOCK))?;
    lock.lock()?;
    write(&draft)?;
    let mut paths = (0_u32..=u32::MAX).map(|number| kernels.join(number.to_string()));
    let free = paths.find(|path| fs::symlink_metadata(path).is_err());
    fs::rename(&draft, free.ok_or_else(|| io::Error::other("there are too many slots"))?)?;
    sync_folder(kernels)?;
    Ok(lock)
}

/// The key of a slot; none when there is none.
fn slot_key(slot: &Path) -> StoreResult<Option<SlotKey>> {
    if let Some(key) = read_secret(&slot.join(SECRET))? {
        return Ok(Some(SlotKey::Ours(key)));
    }
    let path = slot.join(PUBLIC);
    let Some(text) = read_small(&path)? else { return Ok(None) };
    let key = PublicKey::from_hex(text.trim())
        .map_err(|error| StoreError::Damaged(format!("`{}`: {error}", path.display())))?;
    Ok(Some(SlotKey::Elsewhere(key)))
}

/// What is in the place of a slot's mark, if anything.
enum Found {
    /// The mark of the slot's kernel.
    Sound(Mark),
    /// Something else.
    Unreadable(Regression),
}

/// The mark in a slot, if there is one.
fn read_mark(slot: &Path) -> StoreResult<Option<Found>> {
    let owner = slot_key(slot)?;
    let problem = match own_mark(slot, owner.as_ref().map(SlotKey::public)) {
        Err(StoreError::Damaged(problem)) => problem,
        read => return Ok(read?.map(Found::Sound)),
    };
    let name = slot.file_name().unwrap_or_default().display();
    let log_id = owner.map(|owner| log_id(owner.public()));
    let problem = format!("the mark of kernel {name} cannot be read: {problem}");
    Ok(Some(Found::Unreadable(Regression { log_id, problem })))
}

/// As [`read_mark`]. Refused as damaged when it is not the mark of this kernel.
fn own_mark(slot: &Path, owner: Option<&PublicKey>) -> StoreResult<Option<Mark>> {
    let path = slot.join(MARK);
    let Some(text) = read_text(&path, MARK_ROOM)? else { return Ok(None) };
    let damaged = |problem: &str| StoreError::Damaged(format!("`{}`: {problem}", path.display()));
    let mark: Mark = strict::object_from_slice(text.as_bytes())
        .map_err(|error| damaged(&format!("this is not a mark: {error}")))?;
    mark.check_signature().map_err(|error| damaged(&error.to_string()))?;
    if owner != Some(&mark.kernel_key) {
        return Err(damaged("expected the mark of this slot's kernel, found another's"));
    }
    Ok(Some(mark))
}

fn write_mark(slot: &Path, mark: &Mark) -> StoreResult<()> {
    let text = canonical::to_vec(mark)
        .map_err(|error| StoreError::Refused(format!("a mark has no form: {error}")))?;
    write_private(slot, MARK, &text).map_err(|error| unreachable(&slot.join(MARK), &error))
}

/// Finds the slot with this key.
fn slot_of(slots: Vec<PathBuf>, key: &PublicKey) -> StoreResult<Option<PathBuf>> {
    for slot in slots {
        if slot_key(&slot)?.is_some_and(|found| found.public() == key) {
            return Ok(Some(slot));
        }
    }
    Ok(None)
}

impl fmt::Display for DataDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.path.display())
    }
}

impl Keys for DataDirectory {
    // SECURITY: keys without their store are what is left of it. To begin anew with them would bring
    // back revoked tokens and spent budgets, and write a second log under one key.
    fn check_unused(&self) -> StoreResult<()> {
        let has_key = self.key(Role::Authority)?.is_some() || self.key(Role::Approver)?.is_some();
        if has_key || !self.slots()?.is_empty() || read_small(&self.path.join(STORE))?.is_some() {
            return Err(StoreError::Damaged(format!(
                "there are keys of a store in {self}, but the store is empty: put the database back, \
                 or begin anew with another data directory"
            )));
        }
        Ok(())
    }

    fn check_store(&self, store_id: &str, bind: bool) -> StoreResult<()> {
        let path = self.path.join(STORE);
        let mut found = read_small(&path)?;
        if found.is_none() && bind {
            let _alone = self.lock_slots()?;
            found = read_small(&path)?;
            if found.is_none() {
                return write_private(&self.path, STORE, format!("{store_id}\n").as_bytes())
                    .map_err(|error| unreachable(&path, &error));
            }
        }
        match found.as_deref().map(|found| found.trim()) {
            Some(found) if found != store_id => Err(StoreError::Refused(format!(
                "expected the data directory of the store `{store_id}`, found that of the store \
                 `{found}`: {self}"
            ))),
            _ => Ok(()),
        }
    }

    fn key(&self, role: Role) -> StoreResult<Option<Keypair>> {
        read_secret(&self.path.join(file_of(role)))
    }

    fn key_or_make(&self, role: Role) -> StoreResult<Keypair> {
        if let Some(key) = self.key(role)? {
            return Ok(key);
        }
        let (key, name) = (Keypair::generate(), file_of(role));
        self.make()?;
        write_secret(&self.path, name, &key)
            .map_err(|error| unreachable(&self.path.join(name), &error))?;
        Ok(key)
    }

    fn free_slot(&self) -> StoreResult<(Keypair, Lock)> {
        let _alone = self.lock_slots()?;
        for slot in self.slots()? {
            let Some(lock) = try_lock(&slot.join(LOCK))? else { continue };
            if let Some(SlotKey::Ours(key)) = slot_key(&slot)? {
                return Ok((key, Box::new(lock)));
            }
        }
        let key = Keypair::generate();
        let lock = self.add_slot(|slot| write_secret(slot, SECRET, &key))?;
        Ok((key, lock))
    }

    fn try_lock(&self, kernel_key: &PublicKey, add: bool) -> StoreResult<Option<Lock>> {
        let _alone = add.then(|| self.lock_slots()).transpose()?;
        if let Some(slot) = slot_of(self.slots()?, kernel_key)? {
            return Ok(try_lock(&slot.join(LOCK))?.map(|lock| Box::new(lock) as Lock));
        }
        if !add {
            return Ok(Some(Box::new(())));
        }
        // SECURITY: another kernel would go on with the closed log from an earlier place.
        if slot_of(self.closed_slots()?, kernel_key)?.is_some() {
            return Err(StoreError::Refused(format!(
                "expected a kernel key whose log goes on, found `{kernel_key}`, whose log was closed \
                 when a restore was accepted"
            )));
        }
        let public = format!("{kernel_key}\n");
        self.add_slot(|slot| write_private(slot, PUBLIC, public.as_bytes())).map(Some)
    }

    fn kernel(&self, kernel_key: &PublicKey) -> StoreResult<Option<Keypair>> {
        let slot = slot_of(self.slots()?, kernel_key)?;
        Ok(match slot.map(|slot| slot_key(&slot)).transpose()?.flatten() {
            Some(SlotKey::Ours(key)) => Some(key),
            _ => None,
        })
    }

    fn marks(&self) -> StoreResult<Marks> {
        let mut marks = Marks::default();
        for slot in [self.slots()?, self.closed_slots()?].concat() {
            match read_mark(&slot)? {
                Some(Found::Sound(mark)) => marks.sound.push(mark),
                Some(Found::Unreadable(unread)) => marks.unreadable.push(unread),
                None => {}
            }
        }
        Ok(marks)
    }

    fn keep_mark(&self, mark: &Mark) -> StoreResult<bool> {
        let Some(slot) = slot_of(self.slots()?, &mark.kernel_key)? else {
            let key = &mark.kernel_key;
            return Err(StoreError::Unavailable(format!(
                "the slot of the kernel `{key}` is gone from {self}"
            )));
        };
        let before = match read_mark(&slot)? {
            // SECURITY: what it said may be more than this one says.
            Some(Found::Unreadable(unread)) => {
                return Err(StoreError::Damaged(unread.to_string()));
            }
            Some(Found::Sound(before)) => Some(before),
            None => None,
        };
        if before.as_ref() != Some(mark) {
            write_mark(&slot, mark)?;
        }
        Ok(before.is_none())
    }

    fn raise_marks(&self, numbers: StoreNumbers) -> StoreResult<Vec<Regression>> {
        let mut unreadable = Vec::new();
        for slot in self.slots()? {
            let Some(_lock) = try_lock(&slot.join(LOCK))? else { continue };
            let Some(SlotKey::Ours(key)) = slot_key(&slot)? else { continue };
            let mark = match read_mark(&slot)? {
                Some(Found::Sound(mark)) => mark,
                found => {
                    if let Some(Found::Unreadable(unread)) = found {
                        unreadable.push(unread);
                    }
                    continue;
                }
            };
            let raised = Mark { store: mark.store.max(numbers), ..mark.clone() };
            if raised != mark {
                let raised = raised.signed(&key);
                let problem = |error| StoreError::Refused(format!("a mark has no form: {error}"));
                write_mark(&slot, &raised.map_err(problem)?)?;
            }
        }
        Ok(unreadable)
    }

    fn lock_all(&self) -> StoreResult<(Vec<PublicKey>, Lock)> {
        let _alone = self.lock_slots()?;
        let (mut keys, mut locks) = (Vec::new(), Vec::new());
        for slot in self.slots()? {
            let Some(lock) = try_lock(&slot.join(LOCK))? else {
                let shown = slot.display();
                return Err(StoreError::Refused(format!(
                    "expected no kernel to run, found that of `{shown}`: stop it first"
                )));
            };
            locks.push(lock);
            keys.extend(slot_key(&slot)?.map(|key| key.public().clone()));
        }
        for slot in self.closed_slots()? {
            keys.extend(slot_key(&slot)?.map(|key| key.public().clone()));
        }
        Ok((keys, Box::new(locks)))
    }

    fn close_log(&self, kernel_key: &PublicKey, mark: SignMark<'_>) -> StoreResult<()> {
        let kernels = self.path.join(KERNELS);
        // First the name, so that the slot is never free to be taken with a mark that fits.
        if let Some(slot) = slot_of(self.slots()?, kernel_key)? {
            let closed = kernels.join(format!("{CLOSED}{}", Uuid::now_v7()));
            fs::rename(&slot, closed)
                .and_then(|()| sync_folder(&kernels))
                .map_err(|error| unreachable(&slot, &error))?;
        }
        let Some(slot) = slot_of(self.closed_slots()?, kernel_key)? else { return Ok(()) };
        if let Some(SlotKey::Ours(key)) = slot_key(&slot)?
            && let Some(mark) = mark(&key)?
        {
            return write_mark(&slot, &mark);
        }
        match fs::remove_file(slot.join(MARK)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(unreachable(&slot, &error)),
            _ => Ok(()),
        }
    }
}

const fn file_of(role: Role) -> &'static str {
    match role {
        Role::Authority => AUTHORITY,
        Role::Approver => APPROVER,
    }
}

fn write_secret(folder: &Path, name: &str, key: &Keypair) -> io::Result<()> {
    // With all its room from the start, so that no copy of the seed is left behind.
    let mut content = Zeroizing::new(Vec::with_capacity(MAX_SMALL));
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use chio_core::crypto::Keypair;

    use super::DataDirectory;
    use crate::keys::{Keys, Role};

    /// A data directory that is gone when dropped.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            Self(std::env::temp_dir().join(format!("chio-data-{name}-{}", std::process::id())))
        }

        fn data(&self) -> DataDirectory {
            DataDirectory::at(&self.0).unwrap()
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_key_is_made_once_and_is_left_of_its_store() {
        let scratch = Scratch::new("keys");
        let data = scratch.data();
        data.check_unused().unwrap();
        assert!(data.key(Role::Approver).unwrap().is_none());
        assert!(!scratch.0.exists(), "nothing is made by looking");
        let made = data.key_or_make(Role::Approver).unwrap();
        let again = scratch.data().key_or_make(Role::Approver).unwrap();
        assert_eq!(again.public_key(), made.public_key());
        assert!(data.key(Role::Authority).unwrap().is_none());
        assert!(data.check_unused().is_err());
    }

    #[test]
    fn it_is_of_the_first_store_that_binds_it() {
        let scratch = Scratch::new("store");
        let data = scratch.data();
        data.check_store("one", false).unwrap();
        data.check_store("two", true).unwrap();
        for bind in [false, true] {
            data.check_store("two", bind).unwrap();
            let refused = data.check_store("one", bind).unwrap_err().to_string();
            assert!(refused.contains("of the store `one`, found that of the store `two`"));
        }
        assert!(data.check_unused().is_err());
    }

    #[test]
    fn a_kernel_key_is_used_by_one_kernel_at_a_time() {
        let scratch = Scratch::new("slots");
        let (data, other) = (scratch.data(), scratch.data());
        let (key, lock) = data.free_slot().unwrap();
        let (second, _second) = other.free_slot().unwrap();
        assert_ne!(key.public_key(), second.public_key());
        assert!(other.try_lock(key.public_key(), false).unwrap().is_none());
        drop(lock);
        assert_eq!(other.free_slot().unwrap().0.public_key(), key.public_key());
        // A key that is kept elsewhere has a slot once it was used here.
        let own = Keypair::generate();
        let held = data.try_lock(own.public_key(), false).unwrap();
        assert!(other.try_lock(own.public_key(), true).unwrap().is_some(), "{held:?}");
        let held = data.try_lock(own.public_key(), true).unwrap().unwrap();
        assert!(other.try_lock(own.public_key(), false).unwrap().is_none());
        drop(held);
    }
}
