//! Verify: who issued the token, did they sign it, does it hold now, is it revoked, where does it
//! come from, and does its subject call.

use std::sync::Arc;

use chio_core::capability::{CapabilityToken, Operation, PresentedToken, TokenError, check_hop};
use chio_core::crypto::PublicKey;
use chio_core::registry::ErrorCode;

use super::Draft;
use crate::cache::{GrantRef, KnownToken};
use crate::call::{Denial, ToolCall};
use crate::kernel::Inner;
use crate::store::StoreError;

/// Proof that the presented token holds and that its subject presents it.
#[derive(Debug)]
pub(crate) struct Verified {
    known: Arc<KnownToken>,
}

impl Verified {
    /// The token and what it comes from.
    pub(super) const fn known(&self) -> &Arc<KnownToken> {
        &self.known
    }
}

impl Inner {
    /// Denies what does not even get as far as its token.
    pub(super) async fn check_open(&self, call: &ToolCall) -> Result<(), Denial> {
        if let Some(refusal) = &call.refusal {
            return Err(refusal.clone());
        }
        self.check_serving().await
    }

    /// Denies when the kernel takes nothing on.
    pub(super) async fn check_serving(&self) -> Result<(), Denial> {
        if self.running.is_draining() {
            return Err(Denial::by_kernel(ErrorCode::InternalError, "the kernel is shutting down"));
        }
        self.check_running().await
    }

    /// The stage verify.
    pub(super) async fn verify(&self, call: &ToolCall, draft: &Draft) -> Result<Verified, Denial> {
        let known = self.verify_token(&call.token, &call.agent, draft.record.started_at).await?;
        Ok(Verified { known })
    }

    /// Whether the token holds now, and is this agent's.
    pub(crate) async fn verify_token(
        &self,
        token: &PresentedToken,
        agent: &PublicKey,
        now: u64,
    ) -> Result<Arc<KnownToken>, Denial> {
        // SECURITY: whatever stands in its place, what could not be read is no token.
        if let Some(problem) = token.problem() {
            let reason = format!("expected a capability token, found something else: {problem}");
            return Err(Denial::by_kernel(ErrorCode::CapabilityDenied, reason));
        }
        token.check_issuer(&self.trusted_issuers).map_err(|error| deny_token(&error))?;
        let remembered = self.cache.get(token);
        if remembered.is_none() {
            self.check_form(token)?;
        }
        token.validity().check(now).map_err(|error| deny_token(&error.into()))?;
        let known = match remembered {
            Some(known) => known,
            None => self.get_to_know(token).await?,
        };
        self.revocations.check(&known.authority)?;
        if let Some(issuer) = known.issuers().find(|key| !self.trusted_issuers.contains(key)) {
            return Err(deny_token(&TokenError::UntrustedIssuer(issuer.clone())));
        }
        if *agent != token.subject {
            let reason = "expected the token's subject as caller, found another key";
            return Err(Denial::by_kernel(ErrorCode::CapabilityDenied, reason));
        }
        Ok(known)
    }

    /// What is true of a token's bytes for ever: form, signature, chain.
    fn check_form(&self, token: &CapabilityToken) -> Result<(), Denial> {
        if let Some(profile) = token.unsupported_profile() {
            let reason = format!("the token is of a profile that is not supported: {profile}");
            return Err(Denial::by_kernel(ErrorCode::CapabilityDenied, reason));
        }
        token.check_token_signature().map_err(|error| deny_token(&error))?;
        let depth = self.config.limits.max_chain_depth;
        token.check_chain(Some(depth)).map_err(|error| deny_token(&error))
    }

    /// Meets a token for the first time: finds its ancestors, checks every hop, remembers it.
    async fn get_to_know(&self, token: &PresentedToken) -> Result<Arc<KnownToken>, Denial> {
        let links = token.delegation_chain.iter().map(|link| link.capability_id.clone());
        let mut authority = vec![token.id.clone()];
        authority.extend(links);
        // A revoked token needs no introduction.
        self.revocations.check(&authority)?;
        let ancestors = self.ancestors(token).await?;
        check_lineage(token, &ancestors)?;
        let above = (0..token.scope.grants.len())
            .map(|grant| grants_above(token, grant, &ancestors))
            .collect();
        let is_known = self.store.remember(token).await.map_err(|e| deny_store(&e))?;
        if !is_known {
            let reason = format!("another token with the id `{}` is known here", token.id);
            return Err(Denial::by_kernel(ErrorCode::CapabilityDenied, reason));
        }
        let known = Arc::new(KnownToken { token: token.clone(), ancestors, above, authority });
        self.cache.insert(Arc::clone(&known));
        Ok(known)
    }

    /// The tokens that this one comes from, root first, each verified.
    async fn ancestors(&self, token: &CapabilityToken) -> Result<Vec<CapabilityToken>, Denial> {
        let links = &token.delegation_chain;
        if links.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<String> = links.iter().map(|link| link.capability_id.clone()).collect();
        let found = self.store.tokens(&ids).await.map_err(|e| deny_store(&e))?;
        let mut ancestors = Vec::with_capacity(links.len());
        for id in &ids {
            let Some(ancestor) = found.iter().find(|token| token.id == *id) else {
                let reason = format!(
                    "the token comes from `{id}`, which is not known here: present that token \
                     once, or import it"
                );
                return Err(Denial::by_kernel(ErrorCode::CapabilityDenied, reason));
            };
            self.check_form(ancestor)?;
            ancestor.check_issuer(&self.trusted_issuers).map_err(|error| deny_token(&error))?;
            ancestors.push(ancestor.clone());
        }
        Ok(ancestors)
    }
}

/// Checks that each ancestor handed on what the next one has.
fn check_lineage(token: &CapabilityToken, ancestors: &[CapabilityToken]) -> Result<(), Denial> {
    let links = &token.delegation_chain;
    for (index, (link, parent)) in links.iter().zip(ancestors).enumerate() {
        let child = ancestors.get(index + 1).unwrap_or(token);
        if parent.delegation_chain.get(..) != links.get(..index) {
            let reason = format!("token `{}` has another history than the chain says", parent.id);
            return Err(Denial::by_kernel(ErrorCode::CapabilityDenied, reason));
        }
        check_hop(link, &parent.hop_to(&child.scope, child.validity())).map_err(|error| {
            let reason = format!("the delegation from `{}` does not hold: {error}", parent.id);
            Denial::by_kernel(error.code(), reason)
        })?;
    }
    Ok(())
}

/// The grants above one grant of a token, nearest first: in each ancestor the first that may be
/// handed on and covers the one below.
pub(crate) fn grants_above(
    token: &CapabilityToken,
    grant: usize,
    ancestors: &[CapabilityToken],
) -> Vec<GrantRef> {
    let mut above = Vec::with_capacity(ancestors.len());
    let Some(mut below) = token.scope.grants.get(grant) else { return above };
    for (index, ancestor) in ancestors.iter().enumerate().rev() {
        let covering = ancestor.scope.grants.iter().enumerate().find(|(_, grant)| {
            grant.operations.contains(&Operation::Delegate) && below.is_subset_of(grant)
        });
        // The lineage was checked, so there is one.
        let Some((at, covering)) = covering else { break };
        above.push(GrantRef { ancestor: index, grant: at });
        below = covering;
    }
    above
}

/// The denial of a call whose token does not hold.
pub(super) fn deny_token(error: &TokenError) -> Denial {
    Denial::by_kernel(error.code(), format!("capability verification failed: {error}"))
}

/// The denial of a call that the store cannot decide on.
pub(crate) fn deny_store(error: &StoreError) -> Denial {
    Denial::by_kernel(ErrorCode::InternalError, error.to_string())
}
