//! An A2A agent as the kernel sees it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use async_trait::async_trait;
use chio_core::manifest::ToolManifest;
use chio_core::protocol::DiscoveryProtocol;
use chio_kernel::{
    CallContext, KernelError, Permit, ToolInvocation, ToolOutput, ToolServerConnection,
};
use parking_lot::{Mutex, RwLock};

use crate::auth::oauth::Tokens;
use crate::config::A2aAdapterConfig;
use crate::discovery::DiscoveredAgent;
use crate::error::AgentError;
use crate::registry::Registry;
use crate::transport::Transport;

/// How long after a card was fetched again it is not fetched once more by itself.
const PAUSE: Duration = Duration::from_secs(30);

/// An A2A agent whose skills are tools. Clones are handles on the same one.
#[derive(Clone)]
pub struct A2aAdapter {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) transport: Transport,
    pub(crate) tokens: Tokens,
    pub(crate) registry: Registry,
    pub(crate) next_id: AtomicU64,
    agent: RwLock<Arc<DiscoveredAgent>>,
    /// When the card was last fetched because the agent was not where it said.
    refreshed: Mutex<Option<Duration>>,
}

impl A2aAdapter {
    /// Fetches the agent's card and makes tools of its skills. Blocks until it has; may be called
    /// inside an async runtime, which it then blocks, and outside of one.
    ///
    /// # Errors
    /// When the configuration cannot be used, there is no card, nothing in it can be spoken to, or
    /// it breaks the partner's contract.
    pub fn discover(config: A2aAdapterConfig) -> Result<Self, AgentError> {
        config.check()?;
        let config = Arc::new(config);
        let first = Arc::clone(&config);
        // A thread of its own, because a runtime cannot be started inside another.
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|_| broken())?;
            runtime.block_on(learn(&Transport::new(first)?))
        });
        let (agent, registry) = thread.join().map_err(|_| broken())??;
        // Connections belong to the runtime that made them, so this way out is another one.
        Ok(Self::new(Transport::new(config)?, agent, registry))
    }

    /// As [`A2aAdapter::discover`], without blocking.
    ///
    /// # Errors
    /// As [`A2aAdapter::discover`].
    pub async fn connect(config: A2aAdapterConfig) -> Result<Self, AgentError> {
        config.check()?;
        let transport = Transport::new(Arc::new(config))?;
        let (agent, registry) = learn(&transport).await?;
        Ok(Self::new(transport, agent, registry))
    }

    fn new(transport: Transport, agent: DiscoveredAgent, registry: Registry) -> Self {
        let inner = Inner {
            transport,
            tokens: Tokens::default(),
            registry,
            next_id: AtomicU64::new(1),
            agent: RwLock::new(Arc::new(agent)),
            refreshed: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Fetches the card again. When that fails, what was known before stays.
    ///
    /// # Errors
    /// As [`A2aAdapter::discover`].
    pub async fn refresh(&self) -> Result<(), AgentError> {
        self.inner.refresh().await.map(drop)
    }
}

/// What has to be known before anything can be called.
async fn learn(transport: &Transport) -> Result<(DiscoveredAgent, Registry), AgentError> {
    let path = transport.config().registry_file.clone();
    let registry = tokio::task::spawn_blocking(move || Registry::open(path));
    let registry = registry.await.map_err(|_| broken())??;
    Ok((DiscoveredAgent::discover(transport).await?, registry))
}

fn broken() -> AgentError {
    AgentError::Configuration("the discovery broke off".to_owned())
}

impl Inner {
    pub(crate) fn agent(&self) -> Arc<DiscoveredAgent> {
        Arc::clone(&self.agent.read())
    }

    async fn refresh(&self) -> Result<Arc<DiscoveredAgent>, AgentError> {
        let agent = Arc::new(DiscoveredAgent::discover(&self.transport).await?);
        let mut current = self.agent.write();
        *current = Arc::clone(&agent);
        Ok(agent)
    }

    /// Looks whether the agent speaks somewhere else now, unless another call just did.
    pub(crate) async fn look_again(
        &self,
        before: &DiscoveredAgent,
    ) -> Option<Arc<DiscoveredAgent>> {
        let current = self.agent();
        if current.interface != before.interface {
            return Some(current);
        }
        let now = self.transport.config().clock.monotonic();
        {
            let mut last = self.refreshed.lock();
            if last.is_some_and(|last| now.saturating_sub(last) < PAUSE) {
                return None;
            }
            *last = Some(now);
        }
        let found = self.refresh().await.ok()?;
        (found.interface != before.interface).then_some(found)
    }
}

impl fmt::Debug for A2aAdapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agent = self.inner.agent();
        f.debug_struct("A2aAdapter")
            .field("server_id", &agent.manifest.server_id)
            .field("interface", &agent.interface)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl ToolServerConnection for A2aAdapter {
    fn manifest(&self) -> Arc<ToolManifest> {
        Arc::clone(&self.inner.agent().manifest)
    }

    fn protocol(&self) -> DiscoveryProtocol {
        DiscoveryProtocol::A2a
    }

    async fn invoke(
        &self,
        _permit: Permit,
        invocation: ToolInvocation,
        context: &CallContext<'_>,
    ) -> Result<ToolOutput, KernelError> {
        Ok(self.inner.call(&invocation, context).await?)
    }
}
