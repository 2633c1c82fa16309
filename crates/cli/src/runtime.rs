//! The one runtime of every command that serves: a kernel on a store, with its tool servers, behind
//! its listeners and edges. `up`, `serve`, `mcp serve`, `a2a serve` and `native serve` differ only
//! in the [`Plan`] that they make.

use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use chio_core::crypto::Keypair;
use chio_cross_protocol::{Admission, CrossProtocolOrchestrator};
use chio_edge::{Carrier, Edge, EdgeContext, EdgeKind, Settings, UserApprovals};
use chio_kernel::{
    ChioKernel, Clock, DurableReceipt, KernelConfig, KernelParts, SystemClock, SystemRandomness,
};
use chio_mcp_adapter::ComingClient;
use chio_policy::capabilities::DefaultCapability;
use chio_policy::own::Own;
use chio_store::{Location, OpenStore, Slot};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::broadcast;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::access::Access;
use crate::admission::{FixedSubject, PolicyAdmission};
use crate::adoption;
use crate::approving::{ByClientUser, client_user};
use crate::client_input::ClientInput;
use crate::io::Io;
use crate::key_watch::watch_keys;
use crate::listeners::{AddressInUse, Admits, Listener, ListenerConfig};
use crate::live::Lines;
use crate::own_keys::OwnKeys;
use crate::policies::Policies;
use crate::policy_args::PolicySources;
use crate::policy_watch::watch;
use crate::queued_output::QueuedOutput;
use crate::reload::Reload;
use crate::servers::{self, ServerContext, ToolServer};
use crate::store_args::options_anywhere;
use crate::text;
use crate::token_issuer::TokenIssuer;
use crate::trust::{check_kernel, trust_store};

mod process;
mod served;

pub(crate) use process::{open_files, run_server, shutdown_on_signal};
pub(crate) use served::{Opening, Served};

use process::KILLED;

/// How long running calls may take to end when the process is told to.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long they may take when the client that started this process has left, or ends it: it waits
/// two seconds for all of it. Then how long all the rest may take, and each process of a server to end.
const SHORT_PATIENCE: Duration = Duration::from_millis(700);
const SHORT_REST: Duration = Duration::from_millis(900);
const SHORT_STOP: Duration = Duration::from_millis(200);
/// How long a start may still take when the client has closed its end.
const LATE_START: Duration = Duration::from_secs(1);
/// How long answers of calls that have ended may take to be written before their streams end.
const LAST_ANSWERS: Duration = Duration::from_millis(200);

/// What a command serves.
pub(crate) struct Plan<'a> {
    pub(crate) location: Location,
    pub(crate) servers: Vec<Arc<dyn ToolServer>>,
    pub(crate) listeners: Vec<ListenerConfig>,
    pub(crate) edges: Vec<EdgeConfig>,
    pub(crate) policies: PolicySources,
    pub(crate) kernel: KernelConfig,
    /// A key for the kernel; one of the store's own when absent.
    pub(crate) kernel_key: Option<Keypair>,
    /// How another address is chosen, for an address that is in use.
    pub(crate) choose_address: &'a str,
    /// A line for the log before tool servers start.
    pub(crate) starting: Option<String>,
    /// Whether other commands find this process even while another one runs on the store.
    pub(crate) is_main: bool,
    /// Whether each call is a line on standard output, and the end a word.
    pub(crate) tells_calls: bool,
    /// The configuration that is read again on a hangup signal.
    pub(crate) reload: Option<Reload>,
    /// Whether a data directory is used that was not made here.
    pub(crate) adopt: bool,
    /// Whether an MCP client has started this process, and speaks to it on standard input: what ends
    /// then ends within two seconds.
    pub(crate) ends_with_client: bool,
    /// What that client says, and what it says that it can do.
    pub(crate) input: Option<ClientInput>,
    pub(crate) client: Option<ComingClient>,
}

/// An edge as it is configured.
#[derive(Debug, Clone)]
pub(crate) struct EdgeConfig {
    pub(crate) kind: &'static EdgeKind,
    /// The name of its listener.
    pub(crate) listener: String,
    pub(crate) settings: Settings,
    /// What the log says before its address.
    pub(crate) announcement: &'static str,
}

impl EdgeConfig {
    /// An edge on its default listener.
    pub(crate) fn new(kind: &'static EdgeKind, settings: Settings) -> Self {
        let listener = kind.default_listener.to_owned();
        Self { kind, listener, settings, announcement: kind.announcement }
    }

    /// The same on another listener.
    pub(crate) fn on(mut self, listener: &str) -> Self {
        listener.clone_into(&mut self.listener);
        self
    }
}

impl<'a> Plan<'a> {
    /// A plan with the usual for all the rest.
    pub(crate) fn new(
        location: Location,
        policies: PolicySources,
        choose_address: &'a str,
    ) -> Self {
        Self {
            location,
            servers: Vec::new(),
            listeners: Vec::new(),
            edges: Vec::new(),
            policies,
            kernel: KernelConfig::default(),
            kernel_key: None,
            choose_address,
            starting: None,
            is_main: false,
            tells_calls: false,
            reload: None,
            adopt: false,
            ends_with_client: false,
            input: None,
            client: None,
        }
    }

    /// Binds the listeners, opens the store and starts the kernel with its tool servers. What is
    /// refused leaves no kernel behind. The kernel's receipts come out last.
    pub(crate) async fn start(mut self, io: &mut Io<'_>) -> Result<(Runtime, Opening, Receipts)> {
        let data = self.location.data().map(Path::to_owned);
        let folders = [data.as_deref(), self.location.store().folder()];
        folders.into_iter().flatten().for_each(|folder| io.own.protect(folder, true));
        let policies = self.policies.load(io).await?;
        if let Some(data) = &data {
            let may_ask = self.listeners.iter().all(|it| it.carrier() != Carrier::Stdio);
            adoption::check(io, data, self.adopt, may_ask)?;
        }
        let in_use = AddressInUse { choose: self.choose_address, data: data.as_deref() };
        let mut listeners = Vec::new();
        // Sockets first: where one is taken, another address is no way out.
        let is_http = |it: &&ListenerConfig| it.carrier() == Carrier::Http;
        let (over_http, others): (Vec<_>, Vec<_>) = self.listeners.iter().partition(is_http);
        for config in others.into_iter().chain(over_http) {
            let listener = Listener::reserve(io, config, in_use)?;
            listener.check_streams(false, in_use).await?;
            listeners.push(listener);
        }
        listeners.sort_by_key(|it| self.listeners.iter().position(|config| config.name == it.name));
        let store = OpenStore::open(&self.location, Arc::new(SystemClock::default())).await?;
        for listener in &listeners {
            listener.check_streams(true, in_use).await?;
        }
        for listener in listeners.iter_mut().filter(|listener| listener.needs_access()) {
            listener.set_access(Access::own(io, data.as_deref())?);
        }
        if let Some(line) = &self.starting {
            tracing::info!("{line}");
        }
        listeners.iter().for_each(|listener| listener.keep_back(&io.own));
        let (edges, choose) = (self.edges.clone(), self.choose_address.to_owned());
        self.client = self.input.as_ref().map(|input| input.client.clone());
        listeners.iter_mut().for_each(|listener| listener.set_input(&mut self.input));
        let (runtime, receipts) = Runtime::start(self, store, policies, &io.own).await?;
        Ok((runtime, Opening { listeners, edges, data, choose }, receipts))
    }

    /// Serves until there is nothing more to serve or the process is told to end.
    pub(crate) fn run(self, io: &mut Io<'_>) -> Result<()> {
        run_server(async {
            let shutdown = shutdown_on_signal()?;
            let (is_main, tells_calls) = (self.is_main, self.tells_calls);
            let mut plan = self;
            plan.input = plan.ends_with_client.then(ClientInput::open);
            let input_ended = plan.input.as_ref().map(|input| input.ended.clone());
            let (mut runtime, opening, receipts) = tokio::select! {
                started = plan.start(io) => started?,
                () = shutdown.cancelled() => {
                    tokio::time::sleep(KILLED).await;
                    tracing::info!("told to end before everything was there");
                    return Ok(());
                }
                () = given_up(input_ended) => {
                    tokio::time::sleep(KILLED).await;
                    bail!("the client closed its end before the server was there");
                }
            };
            runtime.announce();
            let mut served = opening.open(&mut runtime, None).await?;
            // Before it is announced: clients may act on the announcement at once.
            served.listen(io, &runtime, is_main).await?;
            served.announce();
            match tells_calls {
                true => runtime.serve_and_tell(io, served, shutdown, receipts).await,
                false => runtime.serve(served, shutdown).await,
            }
        })
    }
}

/// The receipts of a kernel, from its start on.
type Receipts = broadcast::Receiver<DurableReceipt>;

/// A running kernel and what it stands on.
pub(crate) struct Runtime {
    pub(crate) kernel: ChioKernel,
    pub(crate) orchestrator: Arc<CrossProtocolOrchestrator<'static>>,
    pub(crate) store: OpenStore,
    pub(crate) policies: Policies,
    /// The ids of the tool servers, in the order in which they are configured.
    pub(crate) servers: Vec<String>,
    /// The key that answers for users of clients.
    client_user: Option<Arc<Keypair>>,
    edges: Vec<Arc<dyn Edge>>,
    own_keys: OwnKeys,
    /// By which commands find the store in any folder.
    store_options: Option<String>,
    /// Starts servers that are not there.
    starting: JoinSet<()>,
    ends_with_client: bool,
    reload: Option<Reload>,
}

impl Runtime {
    /// Starts the kernel of a plan with its tool servers. The store's authority is trusted to issue,
    /// its approver to approve.
    pub(crate) async fn start(
        plan: Plan<'_>,
        store: OpenStore,
        policies: Policies,
        own: &Arc<Own>,
    ) -> Result<(Self, Receipts)> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let own_key = plan.kernel_key.as_ref().map(Keypair::public_key);
        let asks_users = plan.edges.iter().any(|edge| edge.kind.asks_users);
        let client_user = if asks_users { client_user(&store).await?.map(Arc::new) } else { None };
        let mut config = plan.kernel;
        config.trusted_approvers.extend(client_user.iter().map(|key| key.public_key().clone()));
        trust_store(&mut config, &store).await?;
        own_key.map_or(Ok(()), |key| check_kernel(&config, key))?;
        let slot = store.take_slot(plan.kernel_key).await?;
        let own_keys = OwnKeys::new(own, plan.location.data());
        let store_options = options_anywhere(&plan.location);
        check_kernel(&config, slot.key.public_key())?;
        warn_of_copy(&slot);
        let public_key = slot.key.public_key().clone();
        let stop = plan.ends_with_client.then_some(SHORT_STOP);
        let (now, own) = (Arc::clone(&clock), Arc::clone(own));
        let client = plan.client;
        let context = ServerContext { public_key, clock: now, client, stop, own };
        let (connections, absent) = servers::start(&plan.servers, &context).await?;
        let (kernel, receipts) = ChioKernel::start_with_receipts(KernelParts {
            config,
            key: slot.key,
            ledger: slot.ledger,
            store: store.shared(),
            clock,
            randomness: Arc::<SystemRandomness>::default(),
            pipeline: policies.pipeline(),
        })
        .await?;
        for connection in connections {
            kernel.register_tool_server(connection)?;
        }
        let mut starting = JoinSet::new();
        for server in absent {
            starting.spawn(servers::start_later(server, context.clone(), kernel.clone()));
        }
        let client_key = client_user.as_ref().map(|key| key.public_key().clone());
        let reload = plan.reload.map(|reload| reload.trusting(client_key));
        let runtime = Self {
            orchestrator: Arc::new(CrossProtocolOrchestrator::new(&kernel).detached()),
            kernel,
            store,
            policies,
            servers: plan.servers.iter().map(|server| server.id().to_owned()).collect(),
            client_user,
            edges: Vec::new(),
            own_keys,
            store_options,
            starting,
            ends_with_client: plan.ends_with_client,
            reload,
        };
        Ok((runtime, receipts))
    }

    /// Logs what was started.
    fn announce(&self) {
        tracing::info!("kernel {}", self.kernel.public_key());
        tracing::info!("policy {}", self.policies.in_force.summary());
        if let Some(trial) = &self.policies.on_trial {
            tracing::info!("shadow policy {}", trial.summary());
        }
        for manifest in self.kernel.manifests() {
            let tools = text::count(manifest.tools.len(), "tool");
            tracing::info!("server {} ({}): {tools}", manifest.server_id, manifest.name);
            // Logs each of them.
            self.kernel.unusable_tools(&manifest.server_id);
        }
    }

    /// Issues the capabilities of the policy; none where the authority's key is kept elsewhere.
    pub(crate) async fn issuer(
        &self,
        fallback: Option<DefaultCapability>,
    ) -> Result<Option<TokenIssuer>> {
        let capabilities = self.policies.capabilities().clone();
        let authority = self.store.authority().await?;
        let kernel = self.kernel.clone();
        Ok(authority.map(|key| TokenIssuer::new(kernel, key, capabilities, fallback)))
    }

    /// Admits the clients of a listener.
    async fn admission(
        &self,
        listener: &Listener,
        kind: &EdgeKind,
        fallback: &DefaultCapability,
    ) -> Result<Arc<dyn Admission>> {
        let orchestrator = Arc::clone(&self.orchestrator);
        match listener.admits() {
            Admits::ByPolicy(anonymous) => {
                let issuer = self.issuer(Some(fallback.clone())).await?;
                let admits_ended = kind.admits_ended;
                Ok(Arc::new(PolicyAdmission { orchestrator, issuer, anonymous, admits_ended }))
            }
            Admits::Everyone(subject) => {
                let issuer = if subject.is_some() { self.issuer(None).await? } else { None };
                let issues = !self.policies.capabilities().now().is_empty();
                if subject.is_some() && issuer.is_none() && issues {
                    tracing::warn!(
                        "the authority's key is kept elsewhere: no capability is issued for the subject"
                    );
                }
                Ok(Arc::new(FixedSubject { orchestrator, subject, issuer }))
            }
        }
    }

    async fn edge_context(
        &self,
        listener: &Listener,
        kind: &EdgeKind,
        fallback: &DefaultCapability,
    ) -> Result<EdgeContext> {
        let user_approvals = self.client_user.as_ref().map(|key| {
            let (kernel, key) = (self.kernel.clone(), Arc::clone(key));
            let allowed = self.policies.asks_client().clone();
            Arc::new(ByClientUser { kernel, key, allowed }) as Arc<dyn UserApprovals>
        });
        Ok(EdgeContext {
            orchestrator: Arc::clone(&self.orchestrator),
            admission: self.admission(listener, kind, fallback).await?,
            servers: self.servers.clone(),
            base_url: listener.base_url(),
            user_approvals,
            store_options: self.store_options.clone(),
        })
    }

    /// As [`Self::serve`], with a line for each call, and a word at the end.
    pub(crate) async fn serve_and_tell(
        self,
        io: &mut Io<'_>,
        served: Served,
        shutdown: CancellationToken,
        receipts: Receipts,
    ) -> Result<()> {
        let kernel = self.kernel.clone();
        let logged = async move |seq| kernel.logged(seq).await.ok();
        let lines = Lines::new(receipts, logged);
        lines.head(io)?;
        io.flush()?;
        let mut output = QueuedOutput::of_process()?;
        let mut told = Io {
            input: None,
            output: &mut output,
            errors: &mut *io.errors,
            folder: io.folder,
            now: io.now,
            own: Arc::clone(&io.own),
            look: io.look,
        };
        lines.print_during(&mut told, self.serve(served, shutdown)).await?;
        told.say("ended: everything that ran is in the log")?;
        output.finish();
        Ok(())
    }

    /// Serves until there is nothing more to serve or the process is told to end, then ends in good
    /// order. Calls that take too long then are cancelled, so that their connections can close.
    pub(crate) async fn serve(mut self, served: Served, shutdown: CancellationToken) -> Result<()> {
        let hangup = signal(SignalKind::hangup()).context("cannot listen for signals")?;
        let over_http = served.is_over_http();
        let (kernel, edges) = (&self.kernel, &self.edges);
        let patience = self.patience();
        let told = async {
            shutdown.cancelled().await;
            // What could not be drained is reported by the end, which tries again.
            let _ = kernel.drain(patience).await;
            if over_http {
                tokio::time::sleep(LAST_ANSWERS).await;
            }
            close(edges).await;
        };
        let mut serving = pin!(served.serve(shutdown.clone()));
        tokio::select! {
            () = &mut serving => {}
            () = told => {
                // Connections that are still open then are dropped.
                let _ = tokio::time::timeout(patience, serving).await;
            }
            () = kernel.lost() => {}
            never = watch(
                &mut self.policies, (kernel, &self.store), self.reload.as_ref(), hangup, &shutdown
            ) => match never {},
            never = watch_keys(&self.store) => match never {},
            never = self.own_keys.watch() => match never {},
        }
        if !self.ends_with_client {
            close(&self.edges).await;
            return self.end().await;
        }
        let ending = async {
            close(&self.edges).await;
            self.end().await
        };
        let ended = tokio::time::timeout(SHORT_REST, ending).await;
        // Whatever is left is killed, and the next start signs for it.
        ended.unwrap_or_else(|_| Err(anyhow!("not everything that ran could be ended in time")))
    }

    const fn patience(&self) -> Duration {
        if self.ends_with_client { SHORT_PATIENCE } else { PATIENCE }
    }

    /// Ends in good order: running calls, the last checkpoint, the tool servers, the store.
    pub(crate) async fn end(mut self) -> Result<()> {
        self.starting.shutdown().await;
        let drained = self.kernel.drain(self.patience()).await;
        self.kernel.stop_tool_servers().await;
        drop((self.kernel, self.orchestrator, self.edges));
        self.store.close();
        Ok(drained?)
    }
}

/// Says that another store has the same log, where that is so.
fn warn_of_copy(slot: &Slot) {
    if slot.is_copy {
        tracing::warn!(
            "the key {} is in use with another store on this machine: one store is a copy of the \
             other, and both go on with one log, which no auditor accepts. Stop one of them, and let \
             it begin new logs with `chio store accept-restore`",
            slot.key.public_key()
        );
    }
}

/// Waits until the client has closed its end and the start has taken a while longer.
async fn given_up(input_ended: Option<CancellationToken>) {
    let Some(ended) = input_ended else { return std::future::pending().await };
    ended.cancelled().await;
    tokio::time::sleep(LATE_START).await;
}

/// Closes edges, side by side.
async fn close(edges: &[Arc<dyn Edge>]) {
    let mut closing = JoinSet::new();
    for edge in edges {
        let edge = Arc::clone(edge);
        closing.spawn(async move { edge.close().await });
    }
    closing.join_all().await;
}

#[cfg(test)]
mod tests;
