//! Issues capabilities to principals: those of the policy in force, signed by the store's authority.

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

/// How many tokens of a subject are looked through.
const MOST: usize = 1000;

/// A token for a subject, valid from `now` on.
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

/// Whether a token is what `issue` would sign, and valid for a quarter of its lifetime yet.
pub(crate) fn is_fresh(token: &CapabilityToken, capability: &DefaultCapability, now: u64) -> bool {
    is_same(token, capability) && token.expires_at > now + capability.ttl.as_secs() / 4
}

fn is_same(token: &CapabilityToken, capability: &DefaultCapability) -> bool {
    let ttl = Duration::from_secs(token.expires_at.saturating_sub(token.issued_at));
    token.scope == capability.scope && ttl == capability.ttl && token.delegation_chain.is_empty()
}

/// Issues the capabilities of the policy in force.
pub(crate) struct TokenIssuer {
    kernel: ChioKernel,
    authority: Keypair,
    capabilities: Capabilities,
    /// Issued where the policy has no default capabilities.
    fallback: Option<DefaultCapability>,
    /// Connections that are opened together get the same tokens.
    one_at_a_time: Mutex<()>,
}

impl TokenIssuer {
    pub(crate) fn new(
        kernel: ChioKernel,
        authority: Keypair,
        capabilities: Capabilities,
        fallback: Option<DefaultCapability>,
    ) -> Self {
        let one_at_a_time = Mutex::default();
        Self { kernel, authority, capabilities, fallback, one_at_a_time }
    }

    /// The key that signs what is issued.
    pub(crate) const fn authority(&self) -> &Keypair {
        &self.authority
    }

    /// The tokens of a subject: those that it has and that are valid for a while yet, or new ones.
    /// One that was revoked is not replaced before it would have expired: its holder does not get
    /// it back by connecting again.
    pub(crate) async fn tokens(&self, subject: &PublicKey) -> Result<Vec<CapabilityToken>> {
        let of_policy = self.capabilities.now();
        let capabilities =
            if of_policy.is_empty() { self.fallback.as_slice() } else { &*of_policy };
        if capabilities.is_empty() {
            return Ok(Vec::new());
        }
        let _turn = self.one_at_a_time.lock().await;
        let (store, now) = (self.kernel.store(), self.kernel.clock().unix_seconds());
        let mut held = store.held_by(subject, now, MOST).await?;
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
            let token = issue(&self.authority, subject, capability, now)?;
            store.remember(&token).await?;
            tokens.push(token);
        }
        Ok(tokens)
    }
}
