//! The calls that run at once: so many in all, and of one owner no more than a share of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chio_core::crypto::PublicKey;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// One owner has no more than one in so many of the places.
const SHARE: usize = 4;

/// The places there are.
#[derive(Debug)]
pub(crate) struct Places {
    all: Arc<Semaphore>,
    most: usize,
    owned: Arc<Mutex<HashMap<PublicKey, usize>>>,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    owner: PublicKey,
    owned: Arc<Mutex<HashMap<PublicKey, usize>>>,
    _one: OwnedSemaphorePermit,
}

impl Places {
    pub(crate) fn new(most: usize) -> Self {
        let most = most.min(Semaphore::MAX_PERMITS);
        Self { all: Arc::new(Semaphore::new(most)), most, owned: Arc::default() }
    }

    /// A place for this owner, if one is free.
    pub(crate) fn take(&self, owner: &PublicKey) -> Option<Place> {
        let share = (self.most / SHARE).max(1);
        let mut owned = lock(&self.owned);
        if owned.get(owner).copied().unwrap_or(0) >= share {
            return None;
        }
        let one = Arc::clone(&self.all).try_acquire_owned().ok()?;
        *owned.entry(owner.clone()).or_default() += 1;
        Some(Place { owner: owner.clone(), owned: Arc::clone(&self.owned), _one: one })
    }

    /// Waits until nothing runs. False when that took too long.
    pub(crate) async fn emptied(&self, within: Duration) -> bool {
        let all = u32::try_from(self.most).unwrap_or(u32::MAX);
        tokio::time::timeout(within, self.all.acquire_many(all)).await.is_ok()
    }

    /// Gives no more places.
    pub(crate) fn close(&self) {
        self.all.close();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut owned = lock(&self.owned);
        if let Some(count) = owned.get_mut(&self.owner) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                owned.remove(&self.owner);
            }
        }
    }
}

fn lock(owned: &Mutex<HashMap<PublicKey, usize>>) -> MutexGuard<'_, HashMap<PublicKey, usize>> {
    owned.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use chio_core::crypto::Keypair;

    use super::{Places, PublicKey};

    fn owner(seed: u8) -> PublicKey {
        Keypair::from_seed(&[seed; 32]).public_key().clone()
    }

    #[test]
    fn one_owner_never_takes_all_places() {
        let places = Places::new(8);
        let taken = [places.take(&owner(1)), places.take(&owner(1))];
        assert!(taken.iter().all(Option::is_some));
        assert!(places.take(&owner(1)).is_none(), "a quarter of eight");
        let other = places.take(&owner(2));
        assert!(other.is_some());
        drop(taken);
        assert!(places.take(&owner(1)).is_some());
        let places = Places::new(1);
        let only = places.take(&owner(1));
        assert!(only.is_some() && places.take(&owner(2)).is_none());
    }
}
