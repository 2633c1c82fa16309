//! Admitted principals and their capabilities, cached for a moment.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chio_core::capability::PresentedToken;
use chio_core::crypto::PublicKey;
use chio_cross_protocol::{
    Admission, CapabilityBridge, CrossProtocolOrchestrator, Principal, Refused, Session,
};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::bridge::A2aBridge;
use crate::limits::A2aLimits;

/// How long before its end a capability is renewed, in seconds.
const RENEW: u64 = 60;

/// A principal that was admitted.
#[derive(Debug)]
pub(crate) struct AdmittedPrincipal {
    pub(crate) session: Session,
    pub(crate) tokens: Vec<PresentedToken>,
    /// The capability that it presented; none when its capabilities are issued.
    pub(crate) presented: Option<PresentedToken>,
    /// Whose quota of tasks counts: that of its key, and of its address where it has shown nothing.
    pub(crate) account: String,
    since: Instant,
}

impl AdmittedPrincipal {
    /// The key that its tasks belong to.
    pub(crate) fn owner(&self) -> Option<&PublicKey> {
        let token_subject = || self.tokens.first().map(|token| &token.subject);
        self.session.principal.subject.as_ref().or_else(token_subject)
    }

    fn is_fresh(&self, lifetime: Duration, now: u64) -> bool {
        let fresh = Instant::now().duration_since(self.since) < lifetime;
        fresh && self.tokens.iter().all(|token| token.expires_at > now.saturating_add(RENEW))
    }
}

/// The principals that were admitted a moment ago.
#[derive(Debug, Default)]
pub(crate) struct PrincipalCache(Mutex<HashMap<String, Arc<AdmittedPrincipal>>>);

impl PrincipalCache {
    /// Admits a principal, or finds that it was admitted a moment ago from the same address.
    pub(crate) async fn admit(
        &self,
        admission: &dyn Admission,
        principal: Principal,
        address: &str,
        limits: &A2aLimits,
        orchestrator: &CrossProtocolOrchestrator<'static>,
    ) -> Result<Arc<AdmittedPrincipal>, Refused> {
        let key = format!("{address}|{}", principal.owner_id());
        let presented = principal.capability.clone();
        if let Some(known) = self.lookup(&key, presented.as_ref(), limits, orchestrator) {
            return Ok(known);
        }
        let session = admission.admit(A2aBridge.protocol(), principal).await?;
        let mut tokens = admission.tokens(&session.principal).await?;
        if tokens.is_empty() {
            tokens.extend(presented.clone());
        }
        let since = Instant::now();
        let account = String::new();
        let mut admitted = AdmittedPrincipal { session, tokens, presented, account, since };
        let owner = admitted.owner().map(PublicKey::to_hex).unwrap_or_default();
        let is_known =
            admitted.presented.is_some() || admitted.session.principal.is_authenticated();
        admitted.account = if is_known { owner } else { format!("{owner}|{address}") };
        let admitted = Arc::new(admitted);
        self.insert(key, Arc::clone(&admitted), limits);
        Ok(admitted)
    }

    fn lookup(
        &self,
        key: &str,
        presented: Option<&PresentedToken>,
        limits: &A2aLimits,
        orchestrator: &CrossProtocolOrchestrator<'static>,
    ) -> Option<Arc<AdmittedPrincipal>> {
        let known = {
            let principals = self.0.lock();
            Arc::clone(principals.get(key)?)
        };
        // SECURITY: admission has verified this one capability; another one has to be admitted.
        let same = known.presented.as_ref() == presented;
        let fresh = known.is_fresh(limits.principal_lifetime, orchestrator.now());
        // SECURITY: a principal whose capability was revoked is admitted anew.
        let revoked = known.tokens.iter().any(|token| orchestrator.is_revoked(token));
        (same && fresh && !revoked).then_some(known)
    }

    fn insert(&self, key: String, admitted: Arc<AdmittedPrincipal>, limits: &A2aLimits) {
        let mut principals = self.0.lock();
        if principals.len() >= limits.principals {
            let now = Instant::now();
            principals
                .retain(|_, known| now.duration_since(known.since) < limits.principal_lifetime);
        }
        if principals.len() < limits.principals || principals.contains_key(&key) {
            principals.insert(key, admitted);
        }
    }
}
