//! Who may come in, and what they may do.

use std::sync::Arc;

use async_trait::async_trait;
use chio_core::capability::{CapabilityToken, PresentedToken};
use chio_cross_protocol::{
    Admission, CrossProtocolOrchestrator, DiscoveryProtocol, Principal, Refused, Session,
};
use chio_testkit::key;

use super::{capability, everything};

/// The seeds of clients that show no capability: one that is known by its token, and one that is not.
const KNOWN: u8 = 2;
const UNKNOWN: u8 = 3;

/// Admits everyone: a client with a capability as its subject, every other one with a capability for
/// everything.
pub(super) struct TestAdmission {
    orchestrator: Arc<CrossProtocolOrchestrator<'static>>,
    issued: [CapabilityToken; 2],
}

impl TestAdmission {
    pub(super) fn new(
        orchestrator: &Arc<CrossProtocolOrchestrator<'static>>,
        server: &'static str,
    ) -> Self {
        let issue = |(id, seed)| {
            capability(id, key(seed).public_key(), everything(server), orchestrator.now())
        };
        let issued = [("cap-known", KNOWN), ("cap-unknown", UNKNOWN)].map(issue);
        Self { orchestrator: Arc::clone(orchestrator), issued }
    }
}

#[async_trait]
impl Admission for TestAdmission {
    async fn admit(
        &self,
        protocol: DiscoveryProtocol,
        mut principal: Principal,
    ) -> Result<Session, Refused> {
        let subject = match &principal.capability {
            Some(capability) => {
                let checked = self.orchestrator.check_token(capability).await;
                checked.map_err(|denial| Refused(denial.reason))?;
                capability.subject.clone()
            }
            None => {
                let seed = if principal.is_authenticated() { KNOWN } else { UNKNOWN };
                key(seed).public_key().clone()
            }
        };
        principal.subject = Some(subject);
        Ok(self.orchestrator.open_session(protocol, principal))
    }

    async fn tokens(&self, principal: &Principal) -> Result<Vec<PresentedToken>, Refused> {
        if let Some(capability) = &principal.capability {
            return Ok(vec![capability.clone()]);
        }
        let own = |token: &&CapabilityToken| Some(&token.subject) == principal.subject.as_ref();
        Ok(self.issued.iter().filter(own).cloned().map(Into::into).collect())
    }
}
