//! Composition: a kernel on a store, with its tool servers, behind its doors.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use async_trait::async_trait;
use chio_core::crypto::{Keypair, PublicKey};
use chio_cross_protocol::{
    Admission, ConnectionInfo, CrossProtocolOrchestrator, Log, Peer, Refused,
};
use chio_demo::{DemoOptions, DemoServer};
use chio_kernel::{ChioKernel, Clock, KernelParts, SystemClock, SystemRandomness};
use chio_native_edge::{Endpoint, NativeListener, NativeService};
use chio_store::{OpenStore, StoreUrl};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::hand_out::HandOut;
use crate::policies::Policies;
use crate::policy_watch::watch;
use crate::text;
use crate::trust::Trust;

/// How long running calls may take to end when the process is told to.
const PATIENCE: Duration = Duration::from_secs(10);
/// Where the demo server keeps its notes, below the store's folder.
const NOTES: &str = "notes";

/// What a kernel is started with.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) store: OpenStore,
    /// Where the demo server keeps its notes; in memory when absent.
    pub(crate) notes: Option<PathBuf>,
    pub(crate) kernel_key: Option<Keypair>,
    pub(crate) trust: Trust,
    pub(crate) deadline: Option<Duration>,
    pub(crate) policies: Policies,
}

/// A running kernel and what it stands on.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) kernel: ChioKernel,
    pub(crate) orchestrator: Arc<CrossProtocolOrchestrator<'static>>,
    pub(crate) store: OpenStore,
    pub(crate) policies: Policies,
}

impl Served {
    /// Starts a kernel with the demo tools. The store's authority is trusted to issue, its
    /// approver to approve.
    pub(crate) async fn start(setup: Setup) -> Result<Self> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let store = setup.store;
        let given = setup.kernel_key.as_ref().map(Keypair::public_key);
        let trust = setup.trust.of_store(&store, given).await?;
        let slot = store.take_slot(setup.kernel_key)?;
        trust.check_kernel(slot.key.public_key())?;
        let mut config = trust.config();
        config.limits.deadline = setup.deadline.unwrap_or(config.limits.deadline);
        let demo = DemoServer::new(DemoOptions {
            public_key: slot.key.public_key().clone(),
            clock: Arc::clone(&clock),
            notes: setup.notes,
        });
        let kernel = ChioKernel::start(KernelParts {
            config,
            key: slot.key,
            ledger: slot.ledger,
            store: store.shared(),
            clock,
            randomness: Arc::new(SystemRandomness),
            pipeline: setup.policies.pipeline(),
        })
        .await?;
        let demo = demo.context("cannot keep the demo server's notes")?;
        kernel.register_tool_server(Box::new(demo))?;
        let orchestrator = Arc::new(CrossProtocolOrchestrator::new(&kernel).detached());
        Ok(Self { kernel, orchestrator, store, policies: setup.policies })
    }

    /// The native service of this kernel, for a peer that is known or not. One that is known is
    /// handed what the policy says.
    pub(crate) fn native(
        &self,
        peer: Option<PublicKey>,
    ) -> Result<NativeService<CrossProtocolOrchestrator<'static>>> {
        let (orchestrator, log) = (Arc::clone(&self.orchestrator), operator_log());
        let hand_out = match (&peer, self.store.authority()?) {
            (Some(peer), Some(authority)) => {
                let capabilities = self.policies.capabilities().clone();
                Some(HandOut::new(self.kernel.clone(), authority, peer.clone(), capabilities))
            }
            (Some(_), None) if !self.policies.capabilities().now().is_empty() => {
                log.line("the authority's key is kept elsewhere: the peer is handed nothing");
                None
            }
            _ => None,
        };
        let admission = SamePeer { orchestrator, peer, hand_out, log: log.clone() };
        let mut service = NativeService::new(Arc::clone(&self.orchestrator), Arc::new(admission));
        service.log = log;
        Ok(service)
    }

    /// Serves until there is nothing more to serve or the process is told to end, then ends in
    /// good order. Calls that take too long then are called off, so that their doors can close.
    pub(crate) async fn serve(
        mut self,
        serving: impl Future<Output = ()>,
        shutdown: &CancellationToken,
    ) -> Result<()> {
        let hangup = signal(SignalKind::hangup()).context("cannot listen for signals")?;
        let (kernel, log) = (&self.kernel, operator_log());
        let told = async {
            shutdown.cancelled().await;
            kernel.drain(PATIENCE).await
        };
        let mut serving = pin!(serving);
        tokio::select! {
            () = &mut serving => {}
            // What could not be drained is told by the end, which tries again.
            _ = told => serving.await,
            never = watch(&mut self.policies, kernel, &log, hangup, shutdown) => match never {},
        }
        self.end().await
    }

    /// Ends in good order: running calls, the last checkpoint, the store.
    pub(crate) async fn end(self) -> Result<()> {
        let drained = self.kernel.drain(PATIENCE).await;
        drop((self.kernel, self.orchestrator));
        self.store.close();
        Ok(drained?)
    }
}

/// Where the demo server keeps its notes on this store.
pub(crate) fn notes_folder(url: &StoreUrl) -> Option<PathBuf> {
    match url {
        StoreUrl::Sqlite(folder) => Some(Path::new(folder).join(NOTES)),
        StoreUrl::Memory => None,
    }
}

/// Whoever reaches the door is this peer, or nobody in particular.
struct SamePeer {
    orchestrator: Arc<CrossProtocolOrchestrator<'static>>,
    peer: Option<PublicKey>,
    hand_out: Option<HandOut>,
    log: Log,
}

#[async_trait]
impl Admission for SamePeer {
    async fn admit(&self, connection: &ConnectionInfo) -> Result<Peer, Refused> {
        if let Some(hand_out) = &self.hand_out
            && let Err(error) = hand_out.run().await
        {
            // Whoever is handed nothing can still come with a token of its own.
            self.log.line(&format!("the peer is handed nothing: {error:#}"));
        }
        let session = self.orchestrator.open_session(connection.protocol, self.peer.clone());
        Ok(Peer { subject: self.peer.clone(), session })
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

/// Runs a server on every core, and leaves without waiting for threads that wait for input.
pub(crate) fn run_server<T>(server: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let result = runtime.block_on(server);
    runtime.shutdown_background();
    result
}
