//! What an adapter is configured with.

mod check;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chio_core::capability::CapabilityToken;
use chio_core::with_defaults;
use chio_kernel::{Clock, SystemClock};
use chio_net::address::AddressPattern;
use url::Url;

use crate::card::security::KeyPlace;
use crate::place::origin;
use crate::policy::A2aPartnerPolicy;
use crate::secret::Secret;

with_defaults! {
    /// What an adapter is configured with. Secrets are wiped when dropped and never printed.
    #[derive(Clone)]
    pub struct A2aAdapterConfig {
        pub(crate) target: String = String::new(),
        pub(crate) public_key: String = String::new(),
        pub(crate) root_pems: Vec<String> = Vec::new(),
        pub(crate) identity_pems: Option<(String, Secret)> = None,
        pub(crate) headers: Vec<(String, Secret)> = Vec::new(),
        pub(crate) query: Vec<(String, Secret)> = Vec::new(),
        pub(crate) cookies: Vec<(String, Secret)> = Vec::new(),
        pub(crate) bearer: Option<Secret> = None,
        pub(crate) basic: Option<(Secret, Secret)> = None,
        pub(crate) api_keys: Vec<(KeyPlace, String, Secret)> = Vec::new(),
        pub(crate) oauth: OAuthClient = OAuthClient::default(),
        pub(crate) policy: Option<A2aPartnerPolicy> = None,
        pub(crate) registry_file: Option<PathBuf> = None,
        /// How long a request may take: an agent answers when its task has ended.
        pub(crate) timeout: Duration = Duration::from_secs(60),
        pub(crate) server_id: Option<String> = None,
        pub(crate) server_version: String = "0.1.0".to_owned(),
        pub(crate) history_for_1_0: bool = false,
        pub(crate) capability: Option<Box<CapabilityToken>> = None,
        pub(crate) addresses: Vec<AddressPattern> = Vec::new(),
        pub(crate) limits: AgentLimits = AgentLimits::default(),
        pub(crate) clock: Arc<dyn Clock> = Arc::new(SystemClock::default()),
    }
}

/// Who we are to authorization servers.
#[derive(Debug, Clone, Default)]
pub(crate) struct OAuthClient {
    /// Id and secret.
    pub(crate) credentials: Option<(Secret, Secret)>,
    /// Asked for besides those that a card names.
    pub(crate) scopes: Vec<String>,
    /// Instead of the endpoints that cards name.
    pub(crate) token_endpoint: Option<String>,
}

with_defaults! {
    /// How much of an agent's answers is taken.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct AgentLimits {
        /// Bytes of an answer that is read whole.
        pub body: usize = 4 << 20,
        /// Bytes of a line of a stream.
        pub line: usize = 256 << 10,
        /// Bytes of an event of a stream.
        pub event: usize = 256 << 10,
        /// Bytes of all events of a stream.
        pub stream: usize = 1 << 20,
        /// Events of a stream.
        pub chunks: usize = 1024,
    }
}

impl A2aAdapterConfig {
    /// An adapter for the agent at a base URL or a card URL, with the key of its manifest in hex.
    pub fn new(card_or_base_url: impl Into<String>, public_key_hex: impl Into<String>) -> Self {
        let (target, public_key) = (card_or_base_url.into(), public_key_hex.into());
        Self { target, public_key, ..Self::default() }
    }
}

builders! { A2aAdapterConfig:
    /// As this, and servers of this authority are believed, besides those of the system's.
    with_tls_root_ca_pem(self, pem: impl Into<String>) { self.root_pems.push(pem.into()); }

    /// As this, with a certificate (and its chain) and its key for mutual TLS.
    with_mtls_client_auth_pem(self, chain_pem: impl Into<String>, key_pem: impl Into<String>) {
        self.identity_pems = Some((chain_pem.into(), Secret::new(key_pem)));
    }

    /// As this, with a header on every request to the agent, instead of any of the same name.
    with_request_header(self, name: impl Into<String>, value: impl Into<String>) {
        upsert(&mut self.headers, name.into().to_ascii_lowercase(), Secret::new(value));
    }

    /// As this, with a query parameter on every request to the agent.
    with_request_query(self, name: impl Into<String>, value: impl Into<String>) {
        upsert(&mut self.query, name.into(), Secret::new(value));
    }

    /// As this, with a cookie on every request to the agent.
    with_request_cookie(self, name: impl Into<String>, value: impl Into<String>) {
        upsert(&mut self.cookies, name.into(), Secret::new(value));
    }

    /// As this, with a bearer token for cards that ask for one.
    with_bearer_token(self, token: impl Into<String>) { self.bearer = Some(Secret::new(token)); }

    /// As this, with a user name and a password for cards that ask for HTTP Basic.
    with_http_basic(self, user: impl Into<String>, password: impl Into<String>) {
        self.basic = Some((Secret::new(user), Secret::new(password)));
    }

    /// As this, with an API key for cards that ask for one in this header.
    with_api_key_header(self, name: impl Into<String>, value: impl Into<String>) {
        self.set_api_key(KeyPlace::Header, name.into(), Secret::new(value));
    }

    /// As this, with an API key for cards that ask for one in this query parameter.
    with_api_key_query(self, name: impl Into<String>, value: impl Into<String>) {
        self.set_api_key(KeyPlace::Query, name.into(), Secret::new(value));
    }

    /// As this, with an API key for cards that ask for one in this cookie.
    with_api_key_cookie(self, name: impl Into<String>, value: impl Into<String>) {
        self.set_api_key(KeyPlace::Cookie, name.into(), Secret::new(value));
    }

    /// As this, with an id and a secret for authorization servers.
    with_oauth_client_credentials(self, id: impl Into<String>, secret: impl Into<String>) {
        self.oauth.credentials = Some((Secret::new(id), Secret::new(secret)));
    }

    /// As this, and tokens are asked for with this scope, too.
    with_oauth_scope(self, scope: impl Into<String>) { self.oauth.scopes.push(scope.into()); }

    /// As this, and tokens come from here, whatever the card names.
    with_oauth_token_endpoint(self, url: impl Into<String>) {
        self.oauth.token_endpoint = Some(url.into());
    }

    /// As this, and only a card that keeps to this is accepted.
    with_partner_policy(self, policy: A2aPartnerPolicy) { self.policy = Some(policy); }

    /// As this, and tasks are remembered in this file, over restarts. Several adapters may share it.
    with_task_registry_file(self, path: impl Into<PathBuf>) {
        self.registry_file = Some(path.into());
    }

    /// As this, and a request, or the next piece of a stream, may take so long.
    with_timeout(self, timeout: Duration) { self.timeout = timeout; }

    /// As this, under this name in grants and calls instead of `a2a:HOST`.
    with_server_id(self, id: impl Into<String>) { self.server_id = Some(id.into()); }

    /// As this, with this version in the manifest.
    with_server_version(self, version: impl Into<String>) { self.server_version = version.into(); }

    /// As this, and `history_length` may be sent to interfaces of 1.0, whose cards cannot say that
    /// they keep a history.
    with_history_length_for_1_0(self, allowed: bool) { self.history_for_1_0 = allowed; }

    /// As this, presenting a capability to an agent that is behind a kernel of its own.
    with_capability(self, capability: CapabilityToken) {
        self.capability = Some(Box::new(capability));
    }

    /// As this, and addresses of this pattern may be reached although they are not public.
    with_allowed_address(self, pattern: AddressPattern) { self.addresses.push(pattern); }

    /// As this, with other bounds of what is taken from the agent.
    with_limits(self, limits: AgentLimits) { self.limits = limits; }

    /// As this, with another clock than the system's.
    with_clock(self, clock: Arc<dyn Clock>) { self.clock = clock; }
}

impl A2aAdapterConfig {
    fn set_api_key(&mut self, place: KeyPlace, name: String, value: Secret) {
        self.api_keys.retain(|(at, known, _)| *at != place || !same_name(place, known, &name));
        self.api_keys.push((place, name, value));
    }

    /// The value that is configured under this name in this place.
    pub(crate) fn key(&self, place: KeyPlace, name: &str) -> Option<&Secret> {
        let own = self.api_keys.iter().filter(|(at, ..)| *at == place);
        let own = own.map(|(_, name, value)| (name, value));
        let extras = match place {
            KeyPlace::Header => &self.headers,
            KeyPlace::Query => &self.query,
            KeyPlace::Cookie => &self.cookies,
        };
        let extras = extras.iter().map(|(name, value)| (name, value));
        own.chain(extras).find(|(known, _)| same_name(place, known, name)).map(|(_, value)| value)
    }

    /// Whether anything is to be sent that only the agent may have.
    pub(crate) fn has_secrets(&self) -> bool {
        self.capability.is_some() || self.secrets().next().is_some()
    }

    /// Whether secrets may go to an origin that a card names: the card's own, or one that the
    /// operator allows.
    pub(crate) fn trusts(&self, named: &str) -> bool {
        Url::parse(&self.target).is_ok_and(|own| origin(&own) == named)
            || self.policy.as_ref().is_some_and(|policy| policy.lists(named))
    }

    /// Every secret that could be echoed by a server that gets requests.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &Secret> {
        let extras = [&self.headers, &self.query, &self.cookies].into_iter().flatten();
        let keys = self.api_keys.iter().map(|(_, _, value)| value);
        let password = self.basic.iter().map(|(_, password)| password);
        let client = self.oauth.credentials.iter().map(|(_, secret)| secret);
        extras.map(|(_, value)| value).chain(keys).chain(&self.bearer).chain(password).chain(client)
    }
}

fn upsert(list: &mut Vec<(String, Secret)>, name: String, value: Secret) {
    list.retain(|(known, _)| *known != name);
    list.push((name, value));
}

fn same_name(place: KeyPlace, one: &str, other: &str) -> bool {
    match place {
        KeyPlace::Header => one.eq_ignore_ascii_case(other),
        KeyPlace::Query | KeyPlace::Cookie => one == other,
    }
}

impl fmt::Debug for A2aAdapterConfig {
    /// Targets may hold secrets in their queries; of the rest, names alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |list: &[(String, Secret)]| -> Vec<String> {
            list.iter().map(|(name, _)| name.clone()).collect()
        };
        f.debug_struct("A2aAdapterConfig")
            .field("server_id", &self.server_id)
            .field("headers", &names(&self.headers))
            .field("query", &names(&self.query))
            .field("cookies", &names(&self.cookies))
            .field("policy", &self.policy)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
