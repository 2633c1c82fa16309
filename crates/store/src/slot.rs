//! The place of one kernel in a store, and how it is taken: the same for every kind of store.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chio_core::certificate::KernelCertificate;
use chio_core::crypto::{Keypair, PublicKey};
use chio_kernel::mark::{Marks, Regression, regressions};
use chio_kernel::store::{Ledger, LogSummary, StoreError, StoreResult};
use tokio::time::{Instant, sleep};

use crate::OpenStore;
use crate::blocking::blocking;
use crate::key_in_use::use_key;
use crate::keys::{Lock, Role};

/// How long another kernel may take to close what the last kernel of a slot left open.
const SWEEP_PATIENCE: Duration = Duration::from_secs(3);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A kernel's place in a store. The ledger holds the slot's locks as long as it lives.
pub struct Slot {
    /// The kernel's key.
    pub key: Keypair,
    /// The authority's word for it.
    pub certificate: KernelCertificate,
    /// The kernel's log.
    pub ledger: Arc<dyn Ledger>,
    /// Whether another kernel on this machine has the same key and another store: one is a copy of
    /// the other, and both go on with one log.
    pub is_copy: bool,
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").field("log_id", &self.certificate.log_id).finish_non_exhaustive()
    }
}

/// Refuses an authority that certified none of the kernels of its store, where another one did: its
/// key was replaced, in the store as well.
fn check_authority(known: &PublicKey, store_id: &str, logs: &[LogSummary]) -> StoreResult<()> {
    let certificates = logs.iter().flat_map(|log| &log.certificates);
    let mut authorities =
        certificates.filter(|it| it.store_id == store_id).map(|it| &it.authority).peekable();
    let Some(other) = authorities.peek().copied() else { return Ok(()) };
    if authorities.any(|authority| authority == known) {
        return Ok(());
    }
    Err(StoreError::Refused(format!(
        "expected the authority key `{other}`, which certified the kernels of this store, found \
         `{known}`"
    )))
}

impl OpenStore {
    /// Checks that the keys that are here are those that the store knows, and that its authority
    /// certified its kernels.
    ///
    /// # Errors
    /// When a key is another, or cannot be read.
    pub async fn check_keys(&self) -> StoreResult<()> {
        for role in Role::ALL {
            self.key(role).await?;
        }
        let Some(known) = self.authority_public().await? else { return Ok(()) };
        check_authority(&known, &self.backend.store_id().await?, &self.backend.logs().await?)
    }

    /// Takes the place of a kernel. With a key, it is that kernel's own place, and its secret is
    /// not kept; without, the first that no kernel holds, or a new one.
    ///
    /// # Errors
    /// When another kernel holds the place of this key, the kernel cannot be certified, or the store
    /// is behind the marks in the data directory.
    pub async fn take_slot(&self, key: Option<Keypair>) -> StoreResult<Slot> {
        self.check_marks().await?;
        self.take_unchecked(key).await
    }

    /// As [`OpenStore::take_slot`], of a store that may be behind.
    pub(crate) async fn take_unchecked(&self, key: Option<Keypair>) -> StoreResult<Slot> {
        let (key, locks) = match key {
            Some(key) => {
                let locks = self.lock_own(key.public_key()).await?;
                (key, locks)
            }
            None => self.lock_any().await?,
        };
        let [slot, log] = locks;
        let in_use = use_key(&key);
        let is_copy = in_use.elsewhere;
        let locks = [Box::new((slot, in_use.lock)) as Lock, log];
        let certificate = self.certify(key.public_key()).await?;
        // Keys that this store has a certificate for are its keys.
        self.check_store(true).await?;
        let ledger = Arc::clone(&self.backend).ledger(key.public_key(), locks).await?;
        Ok(Slot { key, certificate, ledger, is_copy })
    }

    /// The marks that kernels keep in this data directory.
    ///
    /// # Errors
    /// When their files cannot be reached.
    pub async fn marks(&self) -> StoreResult<Marks> {
        let keys = Arc::clone(&self.keys);
        blocking(move || keys.marks()).await
    }

    /// Has marks kept of what was changed while no kernel runs, such as a revocation. Kernels that run
    /// see to their own. Answers with the marks that cannot be read, which stay as they are.
    ///
    /// # Errors
    /// When a mark's file cannot be reached or written.
    pub async fn raise_marks(&self) -> StoreResult<Vec<Regression>> {
        let (keys, numbers) = (Arc::clone(&self.keys), self.backend.numbers().await?);
        blocking(move || keys.raise_marks(numbers)).await
    }

    /// Refuses a store that is behind the marks of any kernel whose key is here: it was put back to
    /// an earlier state, or something was taken from it.
    ///
    /// # Errors
    /// When it is, or cannot be read.
    pub async fn check_marks(&self) -> StoreResult<()> {
        let marks = self.marks().await?;
        let found = regressions(&*self.backend, &marks).await?;
        if found.is_empty() {
            return Ok(());
        }
        let said: Vec<String> = found.iter().map(ToString::to_string).collect();
        Err(StoreError::RolledBack(said.join("; ")))
    }

    /// Locks a kernel's key and its log. Another kernel may hold them for a moment, to close what
    /// the last kernel left open.
    async fn lock_own(&self, key: &PublicKey) -> StoreResult<[Lock; 2]> {
        let start = Instant::now();
        loop {
            let (keys, own) = (Arc::clone(&self.keys), key.clone());
            if let Some(slot) = blocking(move || keys.try_lock(&own, true)).await?
                && let Some(log) = self.backend.try_lock_log(key).await?
            {
                return Ok([slot, log]);
            }
            if start.elapsed() > SWEEP_PATIENCE {
                return Err(StoreError::Refused(format!(
                    "expected a kernel key that nobody uses, found `{key}` in use by another kernel"
                )));
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    async fn lock_any(&self) -> StoreResult<(Keypair, [Lock; 2])> {
        // SECURITY: a key that is free here may be in use elsewhere, in a copy of its data directory.
        // Such slots stay locked meanwhile, so that the next one is found.
        let mut passed = Vec::new();
        loop {
            let keys = Arc::clone(&self.keys);
            let (key, slot) = blocking(move || keys.free_slot()).await?;
            if let Some(log) = self.backend.try_lock_log(key.public_key()).await? {
                return Ok((key, [slot, log]));
            }
            passed.push(slot);
        }
    }

    /// The certificate of a kernel: one that is there if it is this authority's for this store,
    /// otherwise a new one.
    async fn certify(&self, key: &PublicKey) -> StoreResult<KernelCertificate> {
        let (store_id, authority) = (self.backend.store_id().await?, self.authority().await?);
        let logs = self.backend.logs().await?;
        if let Some(known) = self.authority_public().await? {
            check_authority(&known, &store_id, &logs)?;
        }
        let known = logs.into_iter().find(|log| log.kernel_key == *key);
        let fits = |known: &KernelCertificate| {
            let signer = authority.as_ref().map(Keypair::public_key);
            signer.is_none_or(|signer| known.authority == *signer)
                && known.store_id == store_id
                && known.kernel_key == *key
        };
        let known = known.and_then(|log| log.certificates.into_iter().find(fits));
        if let Some(known) = known {
            return Ok(known);
        }
        let Some(authority) = authority else { return Err(self.cannot_certify(key).await) };
        let issued =
            KernelCertificate::issue(&authority, key.clone(), &store_id, self.clock.unix_seconds());
        let issued = issued.map_err(|error| {
            StoreError::Refused(format!("the kernel cannot be certified: {error}"))
        })?;
        self.backend.admit(&issued).await?;
        Ok(issued)
    }

    /// The refusal of a kernel that no authority speaks for.
    async fn cannot_certify(&self, key: &PublicKey) -> StoreError {
        let authority = match self.backend.public_key(Role::Authority).await {
            Ok(Some(public)) => format!("the authority key `{public}`"),
            _ => "an authority key".to_owned(),
        };
        StoreError::Refused(format!(
            "expected {authority} in {}, or a certificate for the kernel `{key}` in the store, found \
             neither",
            self.keys
        ))
    }
}
