//! Who calls, and with which capabilities: asked of admission, and remembered for a moment.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chio_core::capability::PresentedToken;
use chio_core::crypto::PublicKey;
use chio_cross_protocol::{Admission, ConnectionInfo, CrossProtocolOrchestrator, Peer, Refused};
use tokio::time::Instant;

use crate::limits::A2aLimits;

/// So many seconds before it ends, a capability is asked for anew.
const RENEW: u64 = 60;

/// Somebody who was admitted.
#[derive(Debug)]
pub(crate) struct Guest {
    pub(crate) peer: Peer,
    pub(crate) tokens: Vec<PresentedToken>,
    /// Whether they brought a capability, and were not handed one.
    pub(crate) brought: bool,
    since: Instant,
}

impl Guest {
    /// Whose tasks are theirs.
    pub(crate) fn owner(&self) -> Option<&PublicKey> {
        let of_token = || self.tokens.first().map(|token| &token.subject);
        self.peer.subject.as_ref().or_else(of_token)
    }

    /// The capability whose grants speak of a tool, else the first.
    pub(crate) fn token_for(&self, server: &str, tool: &str) -> Option<&PresentedToken> {
        let covers = |token: &&PresentedToken| {
            token.scope.grants.iter().any(|grant| grant.covers(server, tool))
        };
        self.tokens.iter().find(covers).or_else(|| self.tokens.first())
    }

    fn holds(&self, lifetime: Duration, now: u64) -> bool {
        let fresh = Instant::now().duration_since(self.since) < lifetime;
        fresh && self.tokens.iter().all(|token| token.expires_at > now.saturating_add(RENEW))
    }
}

/// Those who were here a moment ago.
#[derive(Debug, Default)]
pub(crate) struct Guests(Mutex<HashMap<String, Arc<Guest>>>);

impl Guests {
    /// Who this is. `name` tells one from another.
    pub(crate) async fn admit(
        &self,
        admission: &dyn Admission,
        name: String,
        info: &ConnectionInfo,
        (limits, orchestrator): (&A2aLimits, &CrossProtocolOrchestrator<'static>),
    ) -> Result<Arc<Guest>, Refused> {
        if let Some(guest) = self.known(&name, limits, orchestrator) {
            return Ok(guest);
        }
        let peer = admission.admit(info).await?;
        let mut tokens = admission.tokens(&peer).await?;
        if tokens.is_empty() {
            // Where tokens come with each request, the one that came is the one to use.
            tokens.extend(info.presented.clone());
        }
        let brought = info.presented.is_some();
        let guest = Arc::new(Guest { peer, tokens, brought, since: Instant::now() });
        self.remember(name, Arc::clone(&guest), limits);
        Ok(guest)
    }

    fn known(
        &self,
        name: &str,
        limits: &A2aLimits,
        orchestrator: &CrossProtocolOrchestrator<'static>,
    ) -> Option<Arc<Guest>> {
        let guest = {
            let guests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(guests.get(name)?)
        };
        let holds = guest.holds(limits.guest_lifetime, orchestrator.now());
        // SECURITY: whose capability was revoked, is asked about anew.
        let revoked = guest.tokens.iter().any(|token| orchestrator.is_revoked(token));
        (holds && !revoked).then_some(guest)
    }

    fn remember(&self, name: String, guest: Arc<Guest>, limits: &A2aLimits) {
        let mut guests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if guests.len() >= limits.guests {
            let now = Instant::now();
            guests.retain(|_, guest| now.duration_since(guest.since) < limits.guest_lifetime);
        }
        if guests.len() < limits.guests || guests.contains_key(&name) {
            guests.insert(name, guest);
        }
    }
}
