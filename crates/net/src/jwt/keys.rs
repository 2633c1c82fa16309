//! An issuer's keys: fixed, or fetched, kept for a while, and fetched again.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Mutex as AsyncMutex;

use super::discovery::{discover, fetch_text};
use super::error::KeysError;
use super::jwk::{Algorithm, Found, JwkSet};
use crate::client::HttpClient;

const KEYS: &str = "keys";

/// When keys are fetched again. All times are in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefreshRules {
    /// How old keys may be before they are fetched again.
    pub max_age: u64,
    /// The least time between two fetches, whoever asks for whatever key.
    pub interval: u64,
    /// How old keys may be when they cannot be fetched again. Then no token is believed.
    pub max_stale: u64,
}

impl Default for RefreshRules {
    fn default() -> Self {
        Self { max_age: 600, interval: 30, max_stale: 6 * 3600 }
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
    #[must_use]
    pub fn fixed(keys: JwkSet) -> Self {
        Self(Kind::Fixed(Arc::new(keys)))
    }

    /// Keys at a URL.
    #[must_use]
    pub fn at_url(client: HttpClient, url: impl Into<String>, rules: RefreshRules) -> Self {
        Self::remote(client, Place::Url(url.into()), rules)
    }

    /// Keys that an issuer's metadata lead to.
    #[must_use]
    pub fn discovered(client: HttpClient, issuer: impl Into<String>, rules: RefreshRules) -> Self {
        Self::remote(client, Place::Issuer(issuer.into()), rules)
    }

    fn remote(client: HttpClient, place: Place, rules: RefreshRules) -> Self {
        let (state, flight) = (Mutex::default(), Arc::default());
        Self(Kind::Remote(Arc::new(Remote { client, place, rules, state, flight })))
    }

    /// The keys to look for this one in, at this time.
    pub(super) async fn at(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
        now: u64,
    ) -> Result<Arc<JwkSet>, KeysError> {
        match &self.0 {
            Kind::Fixed(keys) => Ok(Arc::clone(keys)),
            Kind::Remote(remote) => remote.at(id, algorithm, now).await,
        }
    }
}

enum Place {
    Url(String),
    Issuer(String),
}

struct Remote {
    client: HttpClient,
    place: Place,
    rules: RefreshRules,
    state: Mutex<State>,
    /// Held by whoever fetches, so that there is one fetch at a time.
    flight: Arc<AsyncMutex<()>>,
}

#[derive(Default, Clone)]
struct State {
    /// The keys, and when they were fetched.
    keys: Option<(Arc<JwkSet>, u64)>,
    /// When a fetch was last begun.
    tried_at: Option<u64>,
    /// Why the last fetch failed, if it did.
    failure: Option<KeysError>,
}

impl Remote {
    async fn at(
        self: &Arc<Self>,
        id: Option<&str>,
        algorithm: Algorithm,
        now: u64,
    ) -> Result<Arc<JwkSet>, KeysError> {
        if let Some(keys) = self.fresh(id, algorithm, now) {
            return Ok(keys);
        }
        let flight = Arc::clone(&self.flight).lock_owned().await;
        // Whoever held it before may have fetched what is wanted.
        if let Some(keys) = self.fresh(id, algorithm, now) {
            return Ok(keys);
        }
        if self.may_try(now) {
            let this = Arc::clone(self);
            // In a task of its own: a caller that goes away neither stops the fetch nor lets
            // another begin before this one has ended.
            let fetch = tokio::spawn(async move {
                this.refresh(now).await;
                drop(flight);
            });
            fetch.await.map_err(|_| KeysError::BrokenOff)?;
        }
        self.usable(now)
    }

    fn state(&self) -> State {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// The keys, when they are young and have the wanted one.
    fn fresh(&self, id: Option<&str>, algorithm: Algorithm, now: u64) -> Option<Arc<JwkSet>> {
        let (keys, fetched_at) = self.state().keys?;
        let young = now.saturating_sub(fetched_at) < self.rules.max_age;
        let has = !matches!(keys.find(id, algorithm), Found::None);
        (young && has).then_some(keys)
    }

    // SECURITY: tokens with invented key names must not make us call the issuer each time.
    fn may_try(&self, now: u64) -> bool {
        let tried_at = self.state().tried_at;
        // A clock that was set back must not stop fetching until it has caught up.
        tried_at.is_none_or(|tried_at| now.abs_diff(tried_at) >= self.rules.interval)
    }

    async fn refresh(&self, now: u64) {
        self.change(|state| state.tried_at = Some(now));
        let fetched = self.fetch().await;
        self.change(|state| match fetched {
            Ok(keys) => {
                state.keys = Some((Arc::new(keys), now));
                state.failure = None;
            }
            Err(error) => state.failure = Some(error),
        });
    }

    async fn fetch(&self) -> Result<JwkSet, KeysError> {
        let discovered;
        let url = match &self.place {
            Place::Url(url) => url,
            Place::Issuer(issuer) => {
                // Asked each time: keys may move.
                let server = discover(&self.client, issuer).await?;
                discovered = server.jwks_uri.ok_or(KeysError::NoKeysUri)?;
                &discovered
            }
        };
        let text = fetch_text(&self.client, url, KEYS).await?;
        let keys = JwkSet::from_slice(&text);
        let keys = keys.map_err(|error| KeysError::Json { document: KEYS, error })?;
        if keys.is_empty() { Err(KeysError::NoKeys) } else { Ok(keys) }
    }

    /// The keys, also old ones as long as they may be used.
    fn usable(&self, now: u64) -> Result<Arc<JwkSet>, KeysError> {
        let State { keys, failure, .. } = self.state();
        let keys = keys
            .filter(|(_, fetched_at)| now.saturating_sub(*fetched_at) <= self.rules.max_stale)
            .map(|(keys, _)| keys);
        keys.ok_or(failure.unwrap_or(KeysError::NoKeys))
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("rules", &self.rules).finish_non_exhaustive()
    }
}
