//! MCP connections, which carry no tokens of their own: a name, a token in a header, or nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chio_core::capability::{
    ChioScope, Operation, PresentedToken, PromptGrant, ResourceGrant, ToolGrant, WILDCARD,
};
use chio_core::crypto::PublicKey;
use chio_cross_protocol::{
    Admission, ConnectionInfo, CrossProtocolOrchestrator, Door, Log, Peer, Refused,
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

/// Says who is at the other end of an MCP connection.
pub(crate) struct McpAdmission {
    orchestrator: Arc<CrossProtocolOrchestrator<'static>>,
    /// None where the authority's key is kept elsewhere.
    hand_out: Option<HandOut>,
    anonymous: Anonymous,
    log: Log,
    /// The token of each session that has exactly one. Sessions are named in the order in which
    /// they come, and the oldest are forgotten first.
    bound: Mutex<BTreeMap<String, PresentedToken>>,
}

impl McpAdmission {
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
impl Admission for McpAdmission {
    async fn admit(&self, connection: &ConnectionInfo) -> Result<Peer, Refused> {
        if let Some(token) = &connection.presented {
            return Ok(self.open_with(connection, token));
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
        ..ChioScope::default()
    };
    DefaultCapability { scope, ttl: TTL }
}
