//! What a policy hands to those who come: capabilities that the store's authority issues.

use std::time::Duration;

use anyhow::Result;
use chio_core::capability::{CapabilityToken, Validity};
use chio_core::crypto::{Keypair, PublicKey};
use chio_core::signed::Signed;
use chio_kernel::ChioKernel;
use chio_policy::capabilities::DefaultCapability;
use tokio::sync::Mutex;
use uuid::Uuid;

use crate::policies::Capabilities;

/// How many of a peer's tokens are looked through.
const MOST: usize = 1000;

/// A token for a subject with what a policy says, from `now` on.
pub(crate) fn issue(
    authority: &Keypair,
    subject: &PublicKey,
    capability: &DefaultCapability,
    now: u64,
) -> Result<CapabilityToken> {
    let expires_at = now.saturating_add(capability.ttl.as_secs());
    let validity = Validity { issued_at: now, expires_at };
    let (id, issuer) = (format!("cap-{}", Uuid::now_v7()), authority.public_key().clone());
    let scope = capability.scope.clone();
    let draft = CapabilityToken::draft(id, issuer, subject.clone(), scope, validity);
    Ok(draft.signed(authority)?)
}

/// Whether a token is what `issue` would give, still good for a while.
pub(crate) fn is_fresh(token: &CapabilityToken, capability: &DefaultCapability, now: u64) -> bool {
    is_same(token, capability) && token.expires_at > now + capability.ttl.as_secs() / 4
}

fn is_same(token: &CapabilityToken, capability: &DefaultCapability) -> bool {
    let ttl = Duration::from_secs(token.expires_at.saturating_sub(token.issued_at));
    token.scope == capability.scope && ttl == capability.ttl && token.delegation_chain.is_empty()
}

/// Hands the capabilities of the policy in force to whoever comes.
pub(crate) struct HandOut {
    kernel: ChioKernel,
    authority: Keypair,
    capabilities: Capabilities,
    /// What is handed out where the policy says nothing.
    otherwise: Vec<DefaultCapability>,
    /// Connections that come together get the same tokens.
    one_at_a_time: Mutex<()>,
}

impl HandOut {
    pub(crate) fn new(kernel: ChioKernel, authority: Keypair, capabilities: Capabilities) -> Self {
        let (otherwise, one_at_a_time) = (Vec::new(), Mutex::default());
        Self { kernel, authority, capabilities, otherwise, one_at_a_time }
    }

    /// The same, with this where the policy says nothing.
    #[must_use]
    pub(crate) fn or_else(mut self, otherwise: Vec<DefaultCapability>) -> Self {
        self.otherwise = otherwise;
        self
    }

    /// The key that issues what is handed out.
    pub(crate) const fn authority(&self) -> &Keypair {
        &self.authority
    }

    /// What the peer may do: the tokens that it has and that are good for a while yet, or new
    /// ones. One that was revoked is not replaced before its time would have come: whoever lost
    /// it does not get it back by connecting again.
    pub(crate) async fn tokens(&self, peer: &PublicKey) -> Result<Vec<CapabilityToken>> {
        let said = self.capabilities.now();
        let capabilities = if said.is_empty() { &*self.otherwise } else { &*said };
        if capabilities.is_empty() {
            return Ok(Vec::new());
        }
        let _turn = self.one_at_a_time.lock().await;
        let (store, now) = (self.kernel.store(), self.kernel.clock().unix_seconds());
        let mut held = store.held_by(peer, now, MOST).await?;
        held.retain(|it| it.issuer == *self.authority.public_key());
        let mut tokens = Vec::with_capacity(capabilities.len());
        for capability in capabilities {
            let fresh = |it: &&CapabilityToken| {
                is_fresh(it, capability, now) && !self.kernel.is_revoked(it)
            };
            if let Some(token) = held.iter().find(fresh) {
                tokens.push(token.clone());
                continue;
            }
            if held.iter().any(|it| is_same(it, capability) && self.kernel.is_revoked(it)) {
                continue;
            }
            let token = issue(&self.authority, peer, capability, now)?;
            store.remember(&token).await?;
            tokens.push(token);
        }
        Ok(tokens)
    }
}
