//! Admission for listeners that only the owner of this machine can reach: every client is the same
//! subject, or each capability stands for its own.

use std::sync::Arc;

use async_trait::async_trait;
use chio_core::crypto::PublicKey;
use chio_cross_protocol::{
    Admission, CrossProtocolOrchestrator, DiscoveryProtocol, Principal, Refused, Session,
};

use crate::token_issuer::TokenIssuer;

/// Admits every client, as this subject if there is one.
pub(crate) struct FixedSubject {
    pub(crate) orchestrator: Arc<CrossProtocolOrchestrator<'static>>,
    pub(crate) subject: Option<PublicKey>,
    pub(crate) issuer: Option<TokenIssuer>,
}

#[async_trait]
impl Admission for FixedSubject {
    async fn admit(
        &self,
        protocol: DiscoveryProtocol,
        mut principal: Principal,
    ) -> Result<Session, Refused> {
        principal.subject = self.subject.clone();
        if let (Some(issuer), Some(subject)) = (&self.issuer, &self.subject)
            && let Err(error) = issuer.tokens(subject).await
        {
            // A client to which nothing was issued can still present a capability.
            tracing::warn!("the peer is handed nothing: {error:#}");
        }
        Ok(self.orchestrator.open_session(protocol, principal))
    }
}
