//! What is revoked, as this kernel last saw it.
//!
//! The view is polled, and every call looks at the store's epoch once more before it runs. A view
//! that could not be renewed for too long denies.

use std::collections::HashSet;
use std::time::Duration;

use chio_core::registry::ErrorCode;
use parking_lot::RwLock;
use tokio::sync::{broadcast, watch};

use crate::call::Denial;
use crate::store::{RevocationStore, Store, StoreResult};

/// Revocations that a slow listener may fall behind before it misses some.
const NEWS: usize = 1024;

/// The words around the token in the denial of a call under one that is revoked.
const PRESENTED: &str = "capability `";
const ANCESTOR: &str = "ancestor capability `";
const REVOKED: &str = "` has been revoked";

/// What is revoked.
#[derive(Debug)]
pub(crate) struct RevocationView {
    seen: RwLock<Seen>,
    news: broadcast::Sender<String>,
    /// The epoch, for calls that wait for something to change.
    epoch: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Seen {
    epoch: u64,
    revoked: HashSet<String>,
    stopped: Option<String>,
    /// When the view was last known to be current, on the monotonic clock.
    at: Duration,
}

impl RevocationView {
    /// The view of a store.
    pub(crate) async fn open(store: &dyn Store, now: Duration) -> StoreResult<Self> {
        let (news, epoch) = (broadcast::channel(NEWS).0, watch::Sender::new(0));
        let view = Self { seen: RwLock::default(), news, epoch };
        view.refresh(store, now).await?;
        Ok(view)
    }

    /// Ids as they are revoked.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<String> {
        self.news.subscribe()
    }

    /// The epoch as it grows: with every revocation, stop and answer to a request for approval.
    pub(crate) fn epochs(&self) -> watch::Receiver<u64> {
        self.epoch.subscribe()
    }

    /// The epoch as of this view.
    pub(crate) fn epoch(&self) -> u64 {
        self.seen.read().epoch
    }

    /// Brings the view up to date. `now` was read before this began.
    pub(crate) async fn refresh(&self, store: &dyn Store, now: Duration) -> StoreResult<()> {
        let known = self.seen.read().epoch;
        // Asked for even when the epoch has not moved: that is what makes the view fresh.
        let current = RevocationStore::revoked_since(store, known).await?;
        let mut seen = self.seen.write();
        if current.epoch >= seen.epoch {
            if seen.epoch < current.epoch {
                self.epoch.send_replace(current.epoch);
            }
            seen.epoch = current.epoch;
            seen.stopped = current.stopped;
        }
        seen.at = seen.at.max(now);
        for id in current.ids {
            if seen.revoked.insert(id.clone()) {
                // There may be no listener.
                let _ = self.news.send(id);
            }
        }
        Ok(())
    }

    /// Makes sure that the view is of the store's epoch now.
    pub(crate) async fn catch_up(&self, store: &dyn Store, now: Duration) -> StoreResult<()> {
        let epoch = RevocationStore::epoch(store).await?;
        if self.seen.read().epoch >= epoch {
            return Ok(());
        }
        self.refresh(store, now).await
    }

    /// Whether any of these is revoked.
    pub(crate) fn any_revoked(&self, authority: &[String]) -> bool {
        let seen = self.seen.read();
        authority.iter().any(|id| seen.revoked.contains(id))
    }

    /// Whether everything is stopped, as far as this kernel has seen.
    pub(crate) fn is_stopped(&self) -> bool {
        self.seen.read().stopped.is_some()
    }

    /// Denies when everything is stopped, or the view is too old to tell.
    pub(crate) fn check_running(&self, now: Duration, max_age: Duration) -> Result<(), Denial> {
        let seen = self.seen.read();
        if let Some(reason) = &seen.stopped {
            return Err(stopped(reason));
        }
        if now.saturating_sub(seen.at) > max_age {
            let reason = "the view of revocations is too old to decide on";
            return Err(Denial::by_kernel(ErrorCode::InternalError, reason));
        }
        Ok(())
    }

    /// Denies when the token, first in the list, or one that it comes from is revoked.
    pub(crate) fn check(&self, authority: &[String]) -> Result<(), Denial> {
        let seen = self.seen.read();
        match authority.iter().position(|id| seen.revoked.contains(id)) {
            None => Ok(()),
            Some(at) => Err(revoked(authority.get(at).map_or("", String::as_str), at == 0)),
        }
    }
}

/// The denial of a call while everything is stopped.
pub(crate) fn stopped(reason: &str) -> Denial {
    Denial::by_kernel(ErrorCode::GuardDenied, format!("everything is stopped: {reason}"))
}

/// The denial of a call under a revoked token.
pub(crate) fn revoked(id: &str, is_presented: bool) -> Denial {
    let what = if is_presented { PRESENTED } else { ANCESTOR };
    Denial::by_kernel(ErrorCode::CapabilityRevoked, format!("{what}{id}{REVOKED}"))
}

/// The revoked token that such a denial names.
pub(crate) fn revoked_id(reason: &str) -> Option<&str> {
    let rest = reason.strip_prefix(PRESENTED).or_else(|| reason.strip_prefix(ANCESTOR));
    rest?.strip_suffix(REVOKED)
}
