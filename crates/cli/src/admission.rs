//! Admission: which principals may open a session, under which key, with which capabilities.

mod fixed_subject;
mod principal_key;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chio_core::capability::{
    ChioScope, Operation, PresentedToken, PromptGrant, ResourceGrant, ToolGrant, WILDCARD,
};
use chio_core::crypto::PublicKey;
use chio_core::registry::ErrorCode;
use chio_cross_protocol::{
    Admission, CrossProtocolOrchestrator, Denial, DiscoveryProtocol, Principal, Refused, Session,
};
use chio_policy::capabilities::DefaultCapability;

pub(crate) use fixed_subject::FixedSubject;

use crate::token_issuer::TokenIssuer;

/// How long a capability is valid where the policy says nothing.
const TTL: Duration = Duration::from_secs(3600);

/// What principals may do that have not authenticated.
#[derive(Debug, Clone, Default)]
pub(crate) enum Anonymous {
    /// Nothing: they are not admitted.
    #[default]
    Refused,
    /// What a principal of the name `anonymous` may.
    Principal,
    /// What the holder of this key may.
    Key(PublicKey),
    /// Exactly this.
    Token(PresentedToken),
}

/// Admits principals as the policy and the listener say.
pub(crate) struct PolicyAdmission {
    pub(crate) orchestrator: Arc<CrossProtocolOrchestrator<'static>>,
    /// None where the authority's key is kept elsewhere.
    pub(crate) issuer: Option<TokenIssuer>,
    pub(crate) anonymous: Anonymous,
    /// Whether capabilities that were revoked or have expired are admitted.
    pub(crate) admits_ended: bool,
}

impl PolicyAdmission {
    /// The key of a principal of this name.
    fn key_of(&self, name: &str) -> Result<PublicKey, Refused> {
        Ok(principal_key::derive(self.issuer()?.authority(), name))
    }

    fn issuer(&self) -> Result<&TokenIssuer, Refused> {
        let missing = || {
            let why = "the authority's key is kept elsewhere, so that nobody can be handed a \
                       capability; come with one in `X-Chio-Capability`";
            Refused(why.to_owned())
        };
        self.issuer.as_ref().ok_or_else(missing)
    }

    /// Refuses a capability that was forged or altered: it opens no session and starts no process.
    async fn check(&self, capability: &PresentedToken) -> Result<(), Refused> {
        // The last of these is the denial while everything is stopped, when tasks can still be
        // cancelled.
        let is_known = |denial: &Denial| {
            let known = [
                ErrorCode::CapabilityRevoked,
                ErrorCode::CapabilityExpired,
                ErrorCode::GuardDenied,
            ];
            self.admits_ended && known.contains(&denial.code)
        };
        match self.orchestrator.check_token(capability).await {
            Err(denial) if !is_known(&denial) => Err(Refused(denial.reason)),
            _ => Ok(()),
        }
    }
}

#[async_trait]
impl Admission for PolicyAdmission {
    async fn admit(
        &self,
        protocol: DiscoveryProtocol,
        mut principal: Principal,
    ) -> Result<Session, Refused> {
        let subject = if let Some(capability) = &principal.capability {
            self.check(capability).await?;
            capability.subject.clone()
        } else if principal.is_authenticated() {
            self.key_of(&principal.name)?
        } else {
            match &self.anonymous {
                Anonymous::Refused => {
                    let why = "expected a bearer token or a capability, found neither";
                    return Err(Refused(why.to_owned()));
                }
                Anonymous::Principal => self.key_of(&principal.name)?,
                Anonymous::Key(key) => key.clone(),
                Anonymous::Token(token) => {
                    principal.capability = Some(token.clone());
                    token.subject.clone()
                }
            }
        };
        principal.subject = Some(subject);
        Ok(self.orchestrator.open_session(protocol, principal))
    }

    async fn tokens(&self, principal: &Principal) -> Result<Vec<PresentedToken>, Refused> {
        if let Some(capability) = &principal.capability {
            return Ok(vec![capability.clone()]);
        }
        let unknown = || Refused("the principal has no subject key".to_owned());
        let subject = principal.subject.as_ref().ok_or_else(unknown)?;
        match self.issuer()?.tokens(subject).await {
            Ok(tokens) => Ok(tokens.into_iter().map(PresentedToken::from).collect()),
            Err(error) => {
                // The reasons of a store are for its operator.
                tracing::error!("no capability is issued for a session: {error:#}");
                Err(Refused("no capability can be issued now".to_owned()))
            }
        }
    }
}

/// A capability for everything that these servers have.
pub(crate) fn everything_of(servers: &[String]) -> DefaultCapability {
    let tools = |server: &String| ToolGrant::new(server, WILDCARD, &[Operation::Invoke]);
    let resources = ResourceGrant {
        uri_pattern: WILDCARD.to_owned(),
        operations: vec![Operation::Read, Operation::Subscribe],
    };
    let prompts =
        PromptGrant { prompt_name: WILDCARD.to_owned(), operations: vec![Operation::Get] };
    let scope = ChioScope {
        grants: servers.iter().map(tools).collect(),
        resource_grants: vec![resources],
        prompt_grants: vec![prompts],
    };
    DefaultCapability { scope, ttl: TTL }
}

#[cfg(test)]
mod tests;
