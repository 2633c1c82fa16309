//! An issuer's keys: fixed, or fetched, kept for a while, and fetched again.

use std::sync::Arc;
use std::time::Duration;

use chio_core::with_defaults;
use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::{Instant, timeout};

use super::discovery::{discover, fetch};
use super::error::{JwtError, KeysError};
use super::jwk::{JwkSet, KeyQuery};
use crate::client::HttpClient;

/// How long the task that fetches waits before old keys will do. Long enough for an issuer that is
/// well, so that a key which it has withdrawn is not trusted once more.
const PATIENCE: Duration = Duration::from_secs(1);

with_defaults! {
    /// When keys are fetched again. All times are in seconds.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct RefreshRules {
        /// How old keys may be before they are fetched again.
        pub max_age: u64 = 600,
        /// The least time between two fetches, from the end of one, for all callers and keys.
        pub interval: u64 = 30,
        /// How old keys may be when they cannot be fetched again, or not at once. Then no token is
        /// believed.
        pub max_stale: u64 = 6 * 3600,
    }
}

/// The keys of an issuer.
#[derive(Debug, Clone)]
pub struct IssuerKeys(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Fixed(Arc<JwkSet>),
    Remote(Arc<Remote>),
}

impl IssuerKeys {
    /// Keys that never change.
    pub fn fixed(keys: JwkSet) -> Self {
        Self(Kind::Fixed(Arc::new(keys)))
    }

    /// Keys that an issuer's metadata lead to.
    pub fn discovered(client: HttpClient, issuer: impl Into<String>, rules: RefreshRules) -> Self {
        let (issuer, state, flight) = (issuer.into(), Mutex::default(), Arc::default());
        Self(Kind::Remote(Arc::new(Remote { client, issuer, rules, state, flight })))
    }

    /// The keys at `now`, fetched again where the wanted one may have become known.
    pub(super) async fn get(
        &self,
        wanted: KeyQuery<'_>,
        now: u64,
    ) -> Result<Arc<JwkSet>, KeysError> {
        match &self.0 {
            Kind::Fixed(keys) => Ok(Arc::clone(keys)),
            Kind::Remote(remote) => remote.get(wanted, now).await,
        }
    }

    /// The issuer that the keys are discovered for, where they are.
    pub(super) fn issuer(&self) -> Option<&str> {
        match &self.0 {
            Kind::Fixed(_) => None,
            Kind::Remote(remote) => Some(&remote.issuer),
        }
    }
}

#[derive(Debug)]
struct Remote {
    client: HttpClient,
    issuer: String,
    rules: RefreshRules,
    state: Mutex<State>,
    /// Held by the task that fetches, so that there is one fetch at a time.
    flight: Arc<AsyncMutex<()>>,
}

#[derive(Debug, Default, Clone)]
struct State {
    /// The keys, and when they were fetched.
    keys: Option<(Arc<JwkSet>, u64)>,
    /// When a fetch last began, or ended if it has.
    tried_at: Option<u64>,
    /// Why the last fetch failed, if it did.
    failure: Option<KeysError>,
}

/// Whether the set has a key that fits, or several.
fn has(keys: &JwkSet, wanted: KeyQuery<'_>) -> bool {
    keys.find(wanted) != Err(JwtError::UnknownKey)
}

impl Remote {
    async fn get(
        self: &Arc<Self>,
        wanted: KeyQuery<'_>,
        now: u64,
    ) -> Result<Arc<JwkSet>, KeysError> {
        if let Some(keys) = self.fresh(wanted, now) {
            return Ok(keys);
        }
        let old = self.usable(now).filter(|keys| has(keys, wanted));
        let flight = match &old {
            None => Arc::clone(&self.flight).lock_owned().await,
            // Another task fetches already, and old keys will do until that has ended.
            Some(keys) => match Arc::clone(&self.flight).try_lock_owned() {
                Ok(flight) => flight,
                Err(_) => return Ok(Arc::clone(keys)),
            },
        };
        // The task that held it before may have fetched what is wanted.
        if let Some(keys) = self.fresh(wanted, now) {
            return Ok(keys);
        }
        if !self.may_try(now) {
            return self.known(wanted, now);
        }
        let this = Arc::clone(self);
        // In a task of its own: a caller that goes away neither stops the fetch nor lets another
        // begin before this one has ended.
        let fetch = tokio::spawn(async move {
            this.refresh(now).await;
            drop(flight);
        });
        match old {
            None => fetch.await.map_err(|_| KeysError::BrokenOff)?,
            Some(keys) => {
                if timeout(PATIENCE, fetch).await.is_err() {
                    return Ok(keys);
                }
            }
        }
        self.known(wanted, now)
    }

    fn state(&self) -> State {
        self.state.lock().clone()
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock());
    }

    /// The keys, when they are young and have the wanted one.
    fn fresh(&self, wanted: KeyQuery<'_>, now: u64) -> Option<Arc<JwkSet>> {
        let (keys, fetched_at) = self.state().keys?;
        // SECURITY: keys from the future have no age that could be trusted: the clock was set back.
        let young = now.checked_sub(fetched_at).is_some_and(|age| age < self.rules.max_age);
        (young && has(&keys, wanted)).then_some(keys)
    }

    // SECURITY: tokens with invented key names must not make us call the issuer each time.
    fn may_try(&self, now: u64) -> bool {
        let tried_at = self.state().tried_at;
        // A clock that was set back must not stop fetching until it has caught up.
        tried_at.is_none_or(|tried_at| now.abs_diff(tried_at) >= self.rules.interval)
    }

    async fn refresh(&self, now: u64) {
        self.change(|state| state.tried_at = Some(now));
        let began = Instant::now();
        let fetched = self.fetch().await;
        // From the end: an issuer that hangs for longer than the interval gets its rest too.
        let ended = now.saturating_add(began.elapsed().as_secs());
        self.change(|state| {
            state.tried_at = Some(ended);
            match fetched {
                Ok(keys) => {
                    state.keys = Some((Arc::new(keys), now));
                    state.failure = None;
                }
                Err(error) => state.failure = Some(error),
            }
        });
    }

    async fn fetch(&self) -> Result<JwkSet, KeysError> {
        // Asked each time: keys may move.
        let server = discover(&self.client, &self.issuer).await?;
        let url = server.jwks_uri.ok_or(KeysError::NoKeysUri)?;
        // A set without keys counts as any other: the issuer has withdrawn them all.
        fetch(&self.client, &url, "keys").await
    }

    /// The keys, also old ones as long as they may be used. Those of a moment ahead may be: the
    /// clock was corrected, or a caller with a later time has fetched them meanwhile.
    fn usable(&self, now: u64) -> Option<Arc<JwkSet>> {
        let (keys, fetched_at) = self.state().keys?;
        let usable = match now.checked_sub(fetched_at) {
            Some(age) => age <= self.rules.max_stale,
            None => now.abs_diff(fetched_at) < self.rules.interval,
        };
        usable.then_some(keys)
    }

    /// What can be said now: the keys, unless the wanted one may be among those that could not be
    /// fetched.
    fn known(&self, wanted: KeyQuery<'_>, now: u64) -> Result<Arc<JwkSet>, KeysError> {
        match (self.usable(now), self.state().failure) {
            (Some(keys), failure) if failure.is_none() || has(&keys, wanted) => Ok(keys),
            (_, failure) => Err(failure.unwrap_or(KeysError::NoKeys)),
        }
    }
}
