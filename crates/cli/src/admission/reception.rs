//! Connections that need carry no tokens of their own: a name, a token in a header, or nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chio_core::capability::{
    ChioScope, Operation, PresentedToken, PromptGrant, ResourceGrant, ToolGrant, WILDCARD,
};
use chio_core::crypto::PublicKey;
use chio_core::registry::ErrorCode;
use chio_cross_protocol::{
    Admission, ConnectionInfo, CrossProtocolOrchestrator, Denial, DiscoveryProtocol, Door, Log,
    Peer, Refused,
};
use chio_policy::capabilities::DefaultCapability;

use super::principal;
use crate::hand_out::HandOut;

/// Whoever started the process.
const STDIO: &str = "stdio";
/// Whoever need not show anything.
const ANONYMOUS: &str = "anonymous";
/// How long a capability holds where the policy says nothing.
const TTL: Duration = Duration::from_secs(3600);
/// How many sessions are remembered that came with a token, or were given one.
const MOST_BOUND: usize = 4096;
/// Ends the names of such sessions.
const BOUND: &str = "-bound";

/// What somebody may do who need not show anything.
#[derive(Debug, Clone, Default)]
pub(crate) enum Anonymous {
    /// Nothing: they are not let in.
    #[default]
    Refused,
    /// What a principal of that name may.
    Principal,
    /// What the holder of this key may.
    Key(PublicKey),
    /// Exactly this.
    Token(PresentedToken),
}

/// Says who is at the other end of a connection.
pub(crate) struct Reception {
    orchestrator: Arc<CrossProtocolOrchestrator<'static>>,
    /// None where the authority's key is kept elsewhere.
    hand_out: Option<HandOut>,
    anonymous: Anonymous,
    log: Log,
    /// The token of each session that has exactly one. Sessions are named by the millisecond in
    /// which they come, and the oldest are forgotten first.
    bound: Mutex<BTreeMap<String, PresentedToken>>,
}

impl Reception {
    pub(crate) fn new(
        orchestrator: Arc<CrossProtocolOrchestrator<'static>>,
        hand_out: Option<HandOut>,
        anonymous: Anonymous,
        log: Log,
    ) -> Self {
        Self { orchestrator, hand_out, anonymous, log, bound: Mutex::default() }
    }

    fn bound(&self) -> MutexGuard<'_, BTreeMap<String, PresentedToken>> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session of somebody with this key.
    fn open(&self, connection: &ConnectionInfo, subject: PublicKey) -> Peer {
        let session = self.orchestrator.open_session(connection.protocol, Some(subject.clone()));
        Peer { subject: Some(subject), session }
    }

    /// A session that may do what this token says. The kernel looks at it with every call.
    fn open_with(&self, connection: &ConnectionInfo, token: &PresentedToken) -> Peer {
        let mut peer = self.open(connection, token.subject.clone());
        // SECURITY: a session whose token was forgotten must never be taken for one that is handed
        // what the policy says.
        peer.session.id.push_str(BOUND);
        let mut bound = self.bound();
        bound.insert(peer.session.id.clone(), token.clone());
        if bound.len() > MOST_BOUND {
            bound.pop_first();
        }
        peer
    }

    /// A session of a principal of this name.
    fn open_as(&self, connection: &ConnectionInfo, name: &str) -> Result<Peer, Refused> {
        let key = principal::key_of(self.hand_out()?.authority(), name);
        Ok(self.open(connection, key))
    }

    fn hand_out(&self) -> Result<&HandOut, Refused> {
        let missing = || {
            let why = "the authority's key is kept elsewhere, so that nobody can be handed a \
                       capability; come with one in `X-Chio-Capability`";
            Refused(why.to_owned())
        };
        self.hand_out.as_ref().ok_or_else(missing)
    }
}

#[async_trait]
impl Admission for Reception {
    async fn admit(&self, connection: &ConnectionInfo) -> Result<Peer, Refused> {
        if let Some(token) = &connection.presented {
            // SECURITY: whoever made a token up gets no session, and starts nobody's process.
            let verified = self.orchestrator.check_token(token).await;
            // Over A2A a session is one call, which the kernel denies with a receipt. The last of
            // these is what is said while everything is stopped, when tasks can still be called off.
            let is_known = |denial: &Denial| {
                let known = [
                    ErrorCode::CapabilityRevoked,
                    ErrorCode::CapabilityExpired,
                    ErrorCode::GuardDenied,
                ];
                connection.protocol == DiscoveryProtocol::A2a && known.contains(&denial.code)
            };
            match verified {
                Err(denial) if !is_known(&denial) => return Err(Refused(denial.reason)),
                _ => return Ok(self.open_with(connection, token)),
            }
        }
        if connection.door == Door::Stdio {
            return self.open_as(connection, STDIO);
        }
        if let Some(name) = connection.principal.as_deref().filter(|name| *name != ANONYMOUS) {
            return self.open_as(connection, name);
        }
        match &self.anonymous {
            Anonymous::Refused => {
                Err(Refused("expected a bearer token or a capability, found neither".to_owned()))
            }
            Anonymous::Principal => self.open_as(connection, ANONYMOUS),
            Anonymous::Key(key) => Ok(self.open(connection, key.clone())),
            Anonymous::Token(token) => Ok(self.open_with(connection, token)),
        }
    }

    async fn tokens(&self, peer: &Peer) -> Result<Vec<PresentedToken>, Refused> {
        let unknown = || Refused("nobody knows whose session this is".to_owned());
        if peer.session.id.ends_with(BOUND) {
            let token = self.bound().get(&peer.session.id).cloned();
            return token.map(|token| vec![token]).ok_or_else(unknown);
        }
        let subject = peer.subject.as_ref().ok_or_else(unknown)?;
        match self.hand_out()?.tokens(subject).await {
            Ok(tokens) => Ok(tokens.into_iter().map(PresentedToken::from).collect()),
            Err(error) => {
                // The reasons of a store are for its operator.
                self.log.line(&format!("a session is handed nothing: {error:#}"));
                Err(Refused("no capability can be handed out now".to_owned()))
            }
        }
    }
}

/// Leave to use everything that these servers have.
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
mod tests {
    use std::net::SocketAddr;
    use std::path::Path;
    use std::sync::Arc;

    use chio_core::capability::{CapabilityToken, PresentedToken};
    use chio_cross_protocol::{Admission, ConnectionInfo, DiscoveryProtocol, Door, Peer};
    use chio_kernel::SystemClock;
    use chio_store::{OpenStore, StoreUrl};
    use chio_testkit::{key, token};

    use super::{Anonymous, Reception, everything_of};
    use crate::policies::{Policies, Source};
    use crate::servers::ToolServer;
    use crate::serving::{Served, Setup, operator_log};

    async fn served() -> Served {
        let store = OpenStore::open(&StoreUrl::Memory, Arc::new(SystemClock::default())).unwrap();
        let policies = Policies::load(Source::new("default", Path::new("")), None).await.unwrap();
        let demo = ToolServer::demo(&StoreUrl::Memory);
        Served::start(Setup::new(store, vec![demo], policies)).await.unwrap()
    }

    fn admission(served: &Served, anonymous: Anonymous) -> Reception {
        let otherwise = vec![everything_of(&served.servers.ids)];
        let hand_out = served.hand_out().unwrap().map(|it| it.or_else(otherwise));
        let orchestrator = Arc::clone(&served.orchestrator);
        Reception::new(orchestrator, hand_out, anonymous, operator_log())
    }

    fn over_http(principal: Option<&str>, presented: Option<&CapabilityToken>) -> ConnectionInfo {
        let from = SocketAddr::from(([127, 0, 0, 1], 1));
        let mut info = ConnectionInfo::new(DiscoveryProtocol::Mcp, Door::Tcp { from });
        info.principal = principal.map(str::to_owned);
        info.presented = presented.map(|token| PresentedToken::from(token.clone()));
        info
    }

    fn presented(id: &str) -> CapabilityToken {
        token::token(&key(1), key(2).public_key(), id, vec![token::grant("echo")], 1)
    }

    /// A token of the store's own authority that holds now.
    fn issued(served: &Served, id: &str) -> CapabilityToken {
        let (authority, now) =
            (served.store.authority().unwrap().unwrap(), served.orchestrator.now());
        token::token(&authority, key(2).public_key(), id, vec![token::grant("echo")], now)
    }

    async fn ids(admission: &Reception, peer: &Peer) -> Result<Vec<String>, String> {
        let tokens = admission.tokens(peer).await.map_err(|refused| refused.to_string())?;
        Ok(tokens.iter().map(|token| token.id.clone()).collect())
    }

    #[tokio::test]
    async fn a_principal_is_handed_the_same_capability_again_and_others_are_others() {
        let served = served().await;
        let admission = admission(&served, Anonymous::Refused);
        let stdio = ConnectionInfo::new(DiscoveryProtocol::Mcp, Door::Stdio);
        let alice = admission.admit(&over_http(Some("alice"), None)).await.unwrap();
        let again = admission.admit(&over_http(Some("alice"), None)).await.unwrap();
        let other = admission.admit(&stdio).await.unwrap();
        assert_eq!(alice.subject, again.subject);
        assert_ne!(alice.session.id, again.session.id);
        assert_ne!(alice.subject, other.subject);
        let handed = ids(&admission, &alice).await.unwrap();
        assert_eq!(handed.len(), 1);
        assert_eq!(ids(&admission, &again).await.unwrap(), handed);
        assert_ne!(ids(&admission, &other).await.unwrap(), handed);
    }

    #[tokio::test]
    async fn nobody_in_particular_comes_in_only_where_that_was_said() {
        let served = served().await;
        for (anonymous, admitted) in [(Anonymous::Refused, false), (Anonymous::Principal, true)] {
            let admission = admission(&served, anonymous);
            for principal in [None, Some("anonymous")] {
                let found = admission.admit(&over_http(principal, None)).await;
                assert_eq!(found.is_ok(), admitted);
            }
        }
        let bound = Anonymous::Token(presented("cap-any").into());
        let admission = admission(&served, bound);
        let peer = admission.admit(&over_http(None, None)).await.unwrap();
        assert_eq!(ids(&admission, &peer).await.unwrap(), ["cap-any"]);
    }

    #[tokio::test]
    async fn a_session_with_a_token_of_its_own_never_gets_another() {
        let served = served().await;
        let admission = admission(&served, Anonymous::Principal);
        // One that nobody issued opens nothing.
        let forged = presented("cap-forged");
        assert!(admission.admit(&over_http(Some("alice"), Some(&forged))).await.is_err());
        let own = issued(&served, "cap-own");
        let peer = admission.admit(&over_http(Some("alice"), Some(&own))).await.unwrap();
        assert_eq!(peer.subject.as_ref(), Some(&own.subject));
        assert_eq!(ids(&admission, &peer).await.unwrap(), ["cap-own"]);
        // So many come after it that it is forgotten: then it has nothing, not what others have.
        for _ in 0..2 * super::MOST_BOUND {
            admission.admit(&over_http(None, Some(&own))).await.unwrap();
        }
        assert!(ids(&admission, &peer).await.is_err());
        assert_eq!(admission.bound().len(), super::MOST_BOUND);
    }
}
