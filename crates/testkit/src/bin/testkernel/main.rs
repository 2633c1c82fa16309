//! A kernel for tests: composed of the same crates as the product, with what the product does not
//! offer: guards, broken tools, and bounds that are small enough to run into.

mod guards;
mod tools;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use async_trait::async_trait;
use chio_core::crypto::PublicKey;
use chio_cross_protocol::{
    Admission, CrossProtocolOrchestrator, DiscoveryProtocol, Principal, Refused, Session,
};
use chio_demo::{DemoOptions, DemoServer};
use chio_edge::{Edge, Endpoint, StreamListener, Streams};
use chio_kernel::{
    ChioKernel, Clock, KernelConfig, KernelParts, Pipeline, SystemClock, SystemRandomness,
};
use chio_native_edge::NativeService;
use chio_store::{OpenStore, StoreUrl};
use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::guards::TestGuard;
use crate::tools::TestServer;

/// A kernel for tests
#[derive(Debug, Parser)]
struct Args {
    /// Listen at this Unix socket; standard input and output are served otherwise
    #[arg(long)]
    unix: Option<PathBuf>,
    /// Listen at this TCP address
    #[arg(long, conflicts_with = "unix")]
    tcp: Option<SocketAddr>,
    /// The folder of the store; in memory otherwise
    #[arg(long)]
    data: Option<PathBuf>,
    /// Every client that connects is this subject
    #[arg(long, value_parser = public_key)]
    peer: Option<PublicKey>,
    /// An issuer besides the store's authority
    #[arg(long, value_parser = public_key)]
    trusted_issuer: Vec<PublicKey>,
    /// A guard, as `KIND` or `KIND=WORD`; in this order
    #[arg(long)]
    guard: Vec<TestGuard>,
    /// How long running calls may take to end when told to
    #[arg(long, default_value_t = 10_000)]
    patience_ms: u64,
    #[command(flatten)]
    kernel: KernelArgs,
    #[command(flatten)]
    edge: EdgeArgs,
}

/// How far one call may go.
#[derive(Debug, clap::Args)]
struct KernelArgs {
    #[arg(long)]
    deadline_ms: Option<u64>,
    #[arg(long)]
    max_chunks: Option<u64>,
    #[arg(long)]
    max_stream_bytes: Option<u64>,
    #[arg(long)]
    max_argument_bytes: Option<usize>,
    #[arg(long)]
    max_output_bytes: Option<usize>,
    #[arg(long)]
    checkpoint_size: Option<usize>,
}

/// How much one connection may ask for.
#[derive(Debug, clap::Args)]
struct EdgeArgs {
    #[arg(long)]
    max_connections: Option<usize>,
    #[arg(long)]
    max_in_flight: Option<usize>,
    #[arg(long)]
    max_in_flight_bytes: Option<usize>,
    #[arg(long)]
    max_queued_bytes: Option<usize>,
    #[arg(long)]
    linger_ms: Option<u64>,
}

fn public_key(text: &str) -> Result<PublicKey, String> {
    PublicKey::from_hex(text).map_err(|error| error.to_string())
}

fn set<T>(place: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *place = given;
    }
}

impl KernelArgs {
    fn config(&self, trusted_issuers: Vec<PublicKey>) -> KernelConfig {
        let mut config = KernelConfig { trusted_issuers, ..KernelConfig::default() };
        let limits = &mut config.limits;
        set(&mut limits.deadline, self.deadline_ms.map(Duration::from_millis));
        set(&mut limits.max_chunks, self.max_chunks);
        set(&mut limits.max_stream_bytes, self.max_stream_bytes);
        set(&mut limits.max_argument_bytes, self.max_argument_bytes);
        set(&mut limits.max_output_bytes, self.max_output_bytes);
        set(&mut config.checkpoint_size, self.checkpoint_size);
        config
    }
}

impl EdgeArgs {
    fn apply(&self, service: &mut NativeService) {
        set(&mut service.max_connections, self.max_connections);
        let limits = &mut service.limits;
        set(&mut limits.max_in_flight, self.max_in_flight);
        set(&mut limits.max_in_flight_bytes, self.max_in_flight_bytes);
        set(&mut limits.max_queued_bytes, self.max_queued_bytes);
        set(&mut limits.linger, self.linger_ms.map(Duration::from_millis));
    }
}

/// Admits every client, as this subject if there is one.
struct FixedSubject {
    orchestrator: Arc<CrossProtocolOrchestrator<'static>>,
    subject: Option<PublicKey>,
}

#[async_trait]
impl Admission for FixedSubject {
    async fn admit(
        &self,
        protocol: DiscoveryProtocol,
        principal: Principal,
    ) -> Result<Session, Refused> {
        let principal = Principal { subject: self.subject.clone(), ..principal };
        Ok(self.orchestrator.open_session(protocol, principal))
    }
}

fn main() -> Result<()> {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(serve(args));
    runtime.shutdown_background();
    result
}

async fn serve(args: Args) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let shutdown = CancellationToken::new();
    let told = shutdown.clone();
    tokio::spawn(async move {
        terminate.recv().await;
        told.cancel();
    });
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let (store, kernel) = start(&args).await?;
    let orchestrator = Arc::new(CrossProtocolOrchestrator::new(&kernel).detached());
    let subject = args.peer.clone();
    let admission = Arc::new(FixedSubject { orchestrator: Arc::clone(&orchestrator), subject });
    let mut service = NativeService::new(orchestrator, admission);
    args.edge.apply(&mut service);
    tracing::info!("kernel {}", kernel.public_key());
    let patience = Duration::from_millis(args.patience_ms);
    match args.unix.map(Endpoint::Unix).or(args.tcp.map(Endpoint::Tcp)) {
        Some(endpoint) => {
            let listener = StreamListener::bind(&endpoint).await?;
            tracing::info!("listening on {}", listener.endpoint());
            // The patience begins with the signal, not with the end of the last connection.
            tokio::join!(listener.serve(Arc::new(service), shutdown.clone()), async {
                shutdown.cancelled().await;
                let _ = kernel.drain(patience).await;
            });
        }
        None => {
            let streams = Streams {
                reader: Box::new(tokio::io::stdin()),
                writer: Box::new(tokio::io::stdout()),
                principal: Principal::stdio(),
                place: Arc::new(chio_edge::Place::alone()),
            };
            if let Err(error) = service.serve_streams(streams, shutdown.clone()).await {
                tracing::warn!("native connection ended: {error}");
            }
        }
    }
    let drained = kernel.drain(patience).await;
    drop(kernel);
    store.close();
    Ok(drained?)
}

async fn start(args: &Args) -> Result<(OpenStore, ChioKernel)> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let url = args.data.clone().map_or(StoreUrl::Memory, StoreUrl::Sqlite);
    let store = OpenStore::open(&url, Arc::clone(&clock)).await?;
    let slot = store.take_slot(None).await?;
    let authority = store.authority().await?.context("the store has no authority")?;
    let mut trusted = args.trusted_issuer.clone();
    trusted.push(authority.public_key().clone());
    let public_key = slot.key.public_key().clone();
    let notes = args.data.as_ref().map(|folder| folder.join("notes"));
    let kernel = ChioKernel::start(KernelParts {
        config: args.kernel.config(trusted),
        key: slot.key,
        ledger: slot.ledger,
        store: store.shared(),
        clock: Arc::clone(&clock),
        randomness: Arc::<SystemRandomness>::default(),
        pipeline: Pipeline::new(
            "none",
            args.guard.iter().cloned().map(|guard| Arc::new(guard) as _).collect(),
        ),
    })
    .await?;
    let demo = DemoServer::new(DemoOptions { public_key: public_key.clone(), clock, notes })?;
    kernel.register_tool_server(Box::new(demo))?;
    kernel.register_tool_server(Box::new(TestServer::new(public_key)))?;
    Ok((store, kernel))
}
