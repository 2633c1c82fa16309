//! Where the keys of a store are kept: in a data directory, or in this process.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Weak};

use chio_core::crypto::{Keypair, PublicKey};
use chio_core::mark::{Mark, StoreNumbers};
use chio_kernel::mark::{Marks, Regression};
use chio_kernel::store::{StoreError, StoreResult};
use parking_lot::Mutex;

/// Keeps others from something as long as it lives.
pub(crate) type Lock = Box<dyn Any + Send + Sync>;

/// Signs the mark of a kernel, if it is to have one.
pub(crate) type SignMark<'a> = &'a dyn Fn(&Keypair) -> StoreResult<Option<Mark>>;

/// What a key of the whole store is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Issues tokens and certifies kernels.
    Authority,
    /// Signs approvals.
    Approver,
}

impl Role {
    pub(crate) const ALL: [Self; 2] = [Self::Authority, Self::Approver];

    /// Its name in the store, which remembers the public half.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Authority => "authority",
            Self::Approver => "approver",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The keys of a store and its kernels, and who uses them now. All of this may block.
pub(crate) trait Keys: fmt::Display + Send + Sync {
    /// Refuses to begin a new store with keys that are left of another.
    fn check_unused(&self) -> StoreResult<()>;

    /// Refuses keys of another store. With `bind`, keys of no store are this store's from now on.
    fn check_store(&self, store_id: &str, bind: bool) -> StoreResult<()>;

    /// The key of a role, if it is here.
    fn key(&self, role: Role) -> StoreResult<Option<Keypair>>;

    /// The key of a role, made when it is not here. The caller keeps others from doing the same.
    fn key_or_make(&self, role: Role) -> StoreResult<Keypair>;

    /// The first kernel key that no kernel uses, or a new one.
    fn free_slot(&self) -> StoreResult<(Keypair, Lock)>;

    /// Keeps others from using a kernel's key; none when a kernel uses it. With `add`, a key that
    /// is kept elsewhere gets a slot.
    fn try_lock(&self, kernel_key: &PublicKey, add: bool) -> StoreResult<Option<Lock>>;

    /// The key of a kernel, if its secret is here and its log goes on.
    fn kernel(&self, kernel_key: &PublicKey) -> StoreResult<Option<Keypair>>;

    /// The marks of all kernels whose keys are here, of those with a closed log too.
    fn marks(&self) -> StoreResult<Marks>;

    /// Keeps a mark beside its kernel's key, in place of the one before. Tells whether there was
    /// none, where there should be one.
    fn keep_mark(&self, mark: &Mark) -> StoreResult<bool>;

    /// Raises the marks of kernels that do not run to these numbers. Answers with those that cannot be
    /// read, which stay as they are.
    fn raise_marks(&self, numbers: StoreNumbers) -> StoreResult<Vec<Regression>>;

    /// The keys of all kernels that are here, and the lock of each that can be used. Refused while
    /// one is in use.
    fn lock_all(&self) -> StoreResult<(Vec<PublicKey>, Lock)>;

    /// Closes the log of a kernel for good: its key is not used again, and its mark is made anew or,
    /// as when its secret is kept elsewhere, removed.
    fn close_log(&self, kernel_key: &PublicKey, mark: SignMark<'_>) -> StoreResult<()>;
}

/// Keys that are gone with the process.
pub(crate) struct MemoryKeys {
    authority: Keypair,
    approver: Keypair,
    /// The keys of kernels; one is in use while its lock lives.
    kernels: Mutex<Vec<(Keypair, Weak<()>)>>,
}

impl MemoryKeys {
    pub(crate) fn new() -> Self {
        let (authority, approver) = (Keypair::generate(), Keypair::generate());
        Self { authority, approver, kernels: Mutex::default() }
    }
}

impl fmt::Display for MemoryKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this process")
    }
}

impl Keys for MemoryKeys {
    fn check_unused(&self) -> StoreResult<()> {
        Ok(())
    }

    fn check_store(&self, _store_id: &str, _bind: bool) -> StoreResult<()> {
        Ok(())
    }

    fn key(&self, role: Role) -> StoreResult<Option<Keypair>> {
        self.key_or_make(role).map(Some)
    }

    fn key_or_make(&self, role: Role) -> StoreResult<Keypair> {
        same_key(match role {
            Role::Authority => &self.authority,
            Role::Approver => &self.approver,
        })
    }

    fn free_slot(&self) -> StoreResult<(Keypair, Lock)> {
        let (mut kernels, lock) = (self.kernels.lock(), Arc::new(()));
        let free = kernels.iter_mut().find(|(_, used)| used.strong_count() == 0);
        let key = if let Some((key, used)) = free {
            *used = Arc::downgrade(&lock);
            same_key(key)?
        } else {
            let key = Keypair::generate();
            kernels.push((same_key(&key)?, Arc::downgrade(&lock)));
            key
        };
        Ok((key, Box::new(lock)))
    }

    fn try_lock(&self, _kernel_key: &PublicKey, _add: bool) -> StoreResult<Option<Lock>> {
        // The one store that has these keys locks its logs itself.
        Ok(Some(Box::new(())))
    }

    fn kernel(&self, kernel_key: &PublicKey) -> StoreResult<Option<Keypair>> {
        let kernels = self.kernels.lock();
        let known = kernels.iter().find(|(key, _)| key.public_key() == kernel_key);
        known.map(|(key, _)| same_key(key)).transpose()
    }

    fn marks(&self) -> StoreResult<Marks> {
        Ok(Marks::default())
    }

    fn keep_mark(&self, _mark: &Mark) -> StoreResult<bool> {
        Ok(false)
    }

    fn raise_marks(&self, _numbers: StoreNumbers) -> StoreResult<Vec<Regression>> {
        Ok(Vec::new())
    }

    fn lock_all(&self) -> StoreResult<(Vec<PublicKey>, Lock)> {
        Ok((Vec::new(), Box::new(())))
    }

    fn close_log(&self, _kernel_key: &PublicKey, _mark: SignMark<'_>) -> StoreResult<()> {
        Ok(())
    }
}

/// A second handle on the same secret.
fn same_key(key: &Keypair) -> StoreResult<Keypair> {
    Keypair::from_seed_hex(&key.seed_hex())
        .map_err(|error| StoreError::Damaged(format!("a key cannot be read again: {error}")))
}
