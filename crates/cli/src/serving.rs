//! Composition: a kernel on a store, with its tool servers, behind its doors.

use std::io::Write;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use chio_a2a_edge::{A2aEdgeConfig, A2aService};
use chio_core::crypto::{Keypair, PublicKey};
use chio_cross_protocol::{CrossProtocolOrchestrator, Log};
use chio_kernel::store::Ledger;
use chio_kernel::{ChioKernel, Clock, KernelParts, SystemClock, SystemRandomness};
use chio_mcp_edge::{McpOptions, McpService, UserApprovals};
use chio_native_edge::{Endpoint, NativeListener, NativeService};
use chio_policy::capabilities::DefaultCapability;
use chio_store::OpenStore;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::admission::{Anonymous, Reception, SamePeer, everything_of};
use crate::approving::{ByClientUser, client_user};
use crate::hand_out::HandOut;
use crate::http_door::Edges;
use crate::live;
use crate::policies::Policies;
use crate::policy_watch::watch;
use crate::servers::{Servers, ToolServer};
use crate::text;
use crate::trust::Trust;

/// The most open files that a server asks for. Its children have the same limit, and some of them
/// walk through all of it.
const MOST_FILES: u64 = 16_384;

/// How long running calls may take to end when the process is told to.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long answers of calls that have ended may take to be written before their streams end.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// What a kernel is started with.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) store: OpenStore,
    pub(crate) servers: Vec<ToolServer>,
    pub(crate) kernel_key: Option<Keypair>,
    pub(crate) trust: Trust,
    pub(crate) deadline: Option<Duration>,
    pub(crate) policies: Policies,
    /// Who wants to see each receipt.
    pub(crate) receipts: Option<live::Sink>,
    /// Whether clients come over MCP, whose users may approve calls where the policy lets them.
    pub(crate) serves_mcp: bool,
}

impl Setup {
    /// A kernel on a store with these servers, and the usual for the rest.
    pub(crate) fn new(store: OpenStore, servers: Vec<ToolServer>, policies: Policies) -> Self {
        Self {
            store,
            servers,
            kernel_key: None,
            trust: Trust::default(),
            deadline: None,
            policies,
            receipts: None,
            serves_mcp: false,
        }
    }
}

/// A running kernel and what it stands on.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) kernel: ChioKernel,
    pub(crate) orchestrator: Arc<CrossProtocolOrchestrator<'static>>,
    pub(crate) store: OpenStore,
    pub(crate) policies: Policies,
    pub(crate) servers: Servers,
    /// The key that answers for users of clients.
    client_user: Option<Arc<Keypair>>,
    /// What is served over HTTP, which ends with everything else.
    edges: Edges,
}

impl Served {
    /// Starts a kernel with its tool servers. The store's authority is trusted to issue, its
    /// approver to approve.
    pub(crate) async fn start(setup: Setup) -> Result<Self> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let store = setup.store;
        let given = setup.kernel_key.as_ref().map(Keypair::public_key);
        let client_user = if setup.serves_mcp { client_user(&store)?.map(Arc::new) } else { None };
        let trust = match &client_user {
            Some(key) => setup.trust.and_approver(key.public_key().clone()),
            None => setup.trust,
        };
        let trust = trust.of_store(&store, given).await?;
        let slot = store.take_slot(setup.kernel_key)?;
        trust.check_kernel(slot.key.public_key())?;
        let mut config = trust.config();
        config.limits.deadline = setup.deadline.unwrap_or(config.limits.deadline);
        let log = operator_log();
        let starting = Servers::start(setup.servers, slot.key.public_key(), &clock, &log);
        let (servers, connections) = starting.await?;
        let ledger: Arc<dyn Ledger> = match setup.receipts {
            Some(sink) => live::Watched::new(slot.ledger, Arc::clone(&clock), sink),
            None => slot.ledger,
        };
        let kernel = ChioKernel::start(KernelParts {
            config,
            key: slot.key,
            ledger,
            store: store.shared(),
            clock,
            randomness: Arc::new(SystemRandomness),
            pipeline: setup.policies.pipeline(),
        })
        .await?;
        for connection in connections {
            kernel.register_tool_server(connection)?;
        }
        let orchestrator = Arc::new(CrossProtocolOrchestrator::new(&kernel).detached());
        let policies = setup.policies;
        let edges = Edges::default();
        Ok(Self { kernel, orchestrator, store, policies, servers, client_user, edges })
    }

    /// Says what was started, for the operator.
    pub(crate) fn tell(&self) {
        let log = operator_log();
        log.line(&format!("kernel {}", self.kernel.public_key()));
        log.line(&format!("policy {}", self.policies.in_force.summary()));
        if let Some(trial) = &self.policies.on_trial {
            log.line(&format!("shadow policy {}", trial.summary()));
        }
        for manifest in self.kernel.manifests() {
            let tools = text::count(manifest.tools.len(), "tool");
            log.line(&format!("server {} ({}): {tools}", manifest.server_id, manifest.name));
        }
    }

    /// What hands out the capabilities of the policy; none where the authority's key is elsewhere.
    pub(crate) fn hand_out(&self) -> Result<Option<HandOut>> {
        let capabilities = self.policies.capabilities().clone();
        let authority = self.store.authority()?;
        Ok(authority.map(|key| HandOut::new(self.kernel.clone(), key, capabilities)))
    }

    /// The native service of this kernel, for a peer that is known or not. One that is known is
    /// handed what the policy says.
    pub(crate) fn native(
        &self,
        peer: Option<PublicKey>,
    ) -> Result<NativeService<CrossProtocolOrchestrator<'static>>> {
        let (orchestrator, log) = (Arc::clone(&self.orchestrator), operator_log());
        let hand_out = if peer.is_some() { self.hand_out()? } else { None };
        let hands_out = !self.policies.capabilities().now().is_empty();
        if peer.is_some() && hand_out.is_none() && hands_out {
            log.line("the authority's key is kept elsewhere: the peer is handed nothing");
        }
        let admission = SamePeer { orchestrator, peer, hand_out, log: log.clone() };
        let mut service = NativeService::new(Arc::clone(&self.orchestrator), Arc::new(admission));
        service.log = log;
        Ok(service)
    }

    /// The MCP service of this kernel. Whoever comes is handed what the policy says, and where it
    /// says nothing, this; by default, everything that the servers have.
    pub(crate) fn mcp(
        &mut self,
        anonymous: Anonymous,
        otherwise: Option<DefaultCapability>,
        mut options: McpOptions,
    ) -> Result<McpService> {
        let admission = self.reception(anonymous, otherwise)?;
        options.log = operator_log();
        options.user_approvals = self.client_user.as_ref().map(|key| {
            let (kernel, key) = (self.kernel.clone(), Arc::clone(key));
            let allowed = self.policies.asks_client().clone();
            Arc::new(ByClientUser { kernel, key, allowed }) as Arc<dyn UserApprovals>
        });
        let service = McpService::new(Arc::clone(&self.orchestrator), admission, options);
        self.edges.mcp = Some(service.clone());
        Ok(service)
    }

    /// The A2A service of this kernel, for whoever comes as in [`Self::mcp`].
    pub(crate) fn a2a(
        &mut self,
        anonymous: Anonymous,
        otherwise: Option<DefaultCapability>,
        mut options: A2aEdgeConfig,
    ) -> Result<A2aService> {
        let admission = self.reception(anonymous, otherwise)?;
        options.log = operator_log();
        let service = A2aService::new(Arc::clone(&self.orchestrator), admission, options)?;
        self.edges.a2a = Some(service.clone());
        Ok(service)
    }

    /// Who lets people in.
    fn reception(
        &self,
        anonymous: Anonymous,
        otherwise: Option<DefaultCapability>,
    ) -> Result<Arc<Reception>> {
        let otherwise = otherwise.unwrap_or_else(|| everything_of(&self.servers.ids));
        let hand_out = self.hand_out()?.map(|it| it.or_else(vec![otherwise]));
        let orchestrator = Arc::clone(&self.orchestrator);
        Ok(Arc::new(Reception::new(orchestrator, hand_out, anonymous, operator_log())))
    }

    /// What was made to be served over HTTP.
    pub(crate) fn edges(&self) -> Edges {
        self.edges.clone()
    }

    /// Serves until there is nothing more to serve or the process is told to end, then ends in
    /// good order. Calls that take too long then are called off, so that their doors can close.
    pub(crate) async fn serve(
        mut self,
        serving: impl Future<Output = ()>,
        shutdown: &CancellationToken,
    ) -> Result<()> {
        let hangup = signal(SignalKind::hangup()).context("cannot listen for signals")?;
        let (kernel, edges, log) = (&self.kernel, &self.edges, operator_log());
        let told = async {
            shutdown.cancelled().await;
            // What could not be drained is told by the end, which tries again.
            let _ = kernel.drain(PATIENCE).await;
            if !edges.is_empty() {
                tokio::time::sleep(LAST_WORDS).await;
                edges.close().await;
            }
        };
        let mut serving = pin!(serving);
        tokio::select! {
            () = &mut serving => {}
            () = told => {
                // Whoever does not let go then is let go of.
                let _ = tokio::time::timeout(PATIENCE, serving).await;
            }
            never = watch(&mut self.policies, kernel, &log, hangup, shutdown) => match never {},
        }
        self.edges.close().await;
        self.end().await
    }

    /// Ends in good order: running calls, the last checkpoint, the tool servers, the store.
    pub(crate) async fn end(self) -> Result<()> {
        let drained = self.kernel.drain(PATIENCE).await;
        self.servers.stop().await;
        drop((self.kernel, self.orchestrator, self.edges));
        self.store.close();
        Ok(drained?)
    }
}

/// Listens at an endpoint.
pub(crate) async fn listen(endpoint: &Endpoint) -> Result<NativeListener> {
    let listener = NativeListener::bind(endpoint).await;
    listener.with_context(|| format!("cannot listen on {endpoint}"))
}

/// Lines for the operator, on standard error.
pub(crate) fn operator_log() -> Log {
    Log::new(|line| {
        // If nobody reads it, there is nobody to tell.
        let _ = writeln!(std::io::stderr(), "chio: {}", text::plain(line));
    })
}

/// Cancelled when the process is told to end. A second word ends it at once.
pub(crate) fn shutdown_on_signal() -> Result<CancellationToken> {
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for signals")?;
    let shutdown = CancellationToken::new();
    let told = shutdown.clone();
    tokio::spawn(async move {
        for told_before in [false, true] {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if told_before {
                std::process::exit(130);
            }
            told.cancel();
        }
    });
    Ok(shutdown)
}

/// Takes more open files, as far as the system grants them: each connection is one, and the usual
/// first limit is less than the connections that a listener takes.
fn raise_file_limit() {
    let granted = getrlimit(Resource::Nofile);
    let wanted = granted.maximum.map_or(MOST_FILES, |most| most.min(MOST_FILES));
    if granted.current.is_some_and(|current| current < wanted) {
        // Where it stays as it is, connections wait.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..granted });
    }
}

/// How many files this process may have open.
pub(crate) fn open_files() -> usize {
    let most = getrlimit(Resource::Nofile).current.unwrap_or(MOST_FILES);
    usize::try_from(most).unwrap_or(usize::MAX)
}

/// Runs a server on every core, and leaves without waiting for threads that wait for input.
pub(crate) fn run_server<T>(server: impl Future<Output = Result<T>>) -> Result<T> {
    raise_file_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let result = runtime.block_on(server);
    runtime.shutdown_background();
    result
}
