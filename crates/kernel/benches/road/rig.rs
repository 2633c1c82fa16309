//! A kernel to measure, on the store that is asked for.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use chio_core::canonical::Written;
use chio_core::capability::{
    CapabilityToken, ChioScope, Operation, PresentedToken, ToolGrant, Validity,
};
use chio_core::crypto::Keypair;
use chio_core::protocol::DiscoveryProtocol;
use chio_core::signed::Signed;
use chio_demo::{DemoOptions, DemoServer};
use chio_kernel::{
    Caller, ChioKernel, Clock, KernelConfig, KernelParts, NoCaller, Pipeline, Session, SystemClock,
    SystemRandomness, ToolCall,
};
use chio_store::{Indexing, OpenStore, StoreUrl};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// Where the store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Memory,
    /// SQLite, with the index built right behind.
    Indexed,
    /// SQLite, with the index left for later.
    Unindexed,
}

/// A kernel, its store and a token for its tools.
pub(crate) struct Rig {
    pub(crate) runtime: Runtime,
    pub(crate) kernel: ChioKernel,
    pub(crate) store: OpenStore,
    pub(crate) token: PresentedToken,
    pub(crate) caller: Arc<dyn Caller>,
    folder: Option<PathBuf>,
}

impl Rig {
    /// A kernel on a fresh store, run by this many threads; 0 is the calling thread alone.
    pub(crate) fn new(place: Place, threads: usize) -> Self {
        let runtime = if threads == 0 {
            tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
        } else {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            builder.worker_threads(threads).enable_all().build().unwrap()
        };
        let folder = (place != Place::Memory).then(fresh_folder);
        let url = folder.clone().map_or(StoreUrl::Memory, StoreUrl::Sqlite);
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let indexing = if place == Place::Unindexed { Indexing::Off } else { Indexing::On };
        let opening = OpenStore::open_with(&url, Arc::clone(&clock), indexing);
        let store = runtime.block_on(opening).unwrap();
        let slot = runtime.block_on(store.take_slot(None)).unwrap();
        let authority = runtime.block_on(store.authority()).unwrap().unwrap();
        let token = token(&authority, clock.unix_seconds());
        let parts = KernelParts {
            config: KernelConfig {
                trusted_issuers: vec![authority.public_key().clone()],
                ..KernelConfig::default()
            },
            key: slot.key,
            ledger: slot.ledger,
            store: store.shared(),
            clock: Arc::clone(&clock),
            randomness: Arc::<SystemRandomness>::default(),
            pipeline: Pipeline::none(),
        };
        let kernel = runtime.block_on(ChioKernel::start(parts)).unwrap();
        let public_key = kernel.public_key().clone();
        let demo = DemoServer::new(DemoOptions { public_key, clock, notes: None }).unwrap();
        kernel.register_tool_server(Box::new(demo)).unwrap();
        let session = Session::anonymous("bench", DiscoveryProtocol::Native);
        let caller: Arc<dyn Caller> = Arc::new(NoCaller::new(session));
        Self { runtime, kernel, store, token, caller, folder }
    }

    /// One call.
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> ToolCall {
        call(&self.kernel, &self.token, tool, arguments)
    }

    /// How many calls a second this many callers get through, each one call after another.
    pub(crate) fn rate(&self, tool: Tool, callers: usize, turn: Duration) -> f64 {
        self.rate_with(tool, callers, turn, &[])
    }

    /// The same, with these members in every receipt.
    pub(crate) fn rate_with(
        &self,
        tool: Tool,
        callers: usize,
        turn: Duration,
        evidence: &[(&'static str, Written)],
    ) -> f64 {
        let (done, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let elapsed = self.runtime.block_on(async {
            let mut tasks = Vec::with_capacity(callers);
            let start = Instant::now();
            for number in 0..callers {
                let (kernel, token) = (self.kernel.clone(), self.token.clone());
                let caller = Arc::clone(&self.caller);
                let (done, stop) = (Arc::clone(&done), Arc::clone(&stop));
                let evidence = evidence.to_vec();
                tasks.push(tokio::spawn(async move {
                    while !stop.load(Ordering::Relaxed) {
                        let (name, arguments) = tool.arguments(number);
                        let mut call = call(&kernel, &token, name, arguments);
                        call.evidence = evidence.clone();
                        kernel.evaluate(call, Arc::clone(&caller)).await.unwrap();
                        done.fetch_add(1, Ordering::Relaxed);
                        if callers == 1 {
                            // A single caller that never waits would not see the time pass.
                            tokio::task::yield_now().await;
                        }
                    }
                }));
            }
            tokio::time::sleep(turn).await;
            stop.store(true, Ordering::Relaxed);
            let elapsed = start.elapsed();
            for task in tasks {
                task.await.unwrap();
            }
            elapsed
        });
        done.load(Ordering::Relaxed) as f64 / elapsed.as_secs_f64()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let _ = self.runtime.block_on(self.kernel.drain(Duration::from_secs(1)));
        self.store.clone().close();
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// Which tool is called.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Tool {
    Echo,
    NotePut,
}

impl Tool {
    pub(crate) fn arguments(self, number: usize) -> (&'static str, Value) {
        match self {
            Self::Echo => ("echo", json!({"text": "Revenue grew in all regions."})),
            Self::NotePut => {
                ("note_put", json!({"name": format!("note-{}", number % 16), "text": "a note"}))
            }
        }
    }
}

fn call(kernel: &ChioKernel, token: &PresentedToken, tool: &str, arguments: Value) -> ToolCall {
    ToolCall::new(kernel.new_request_id(), token.clone(), "demo", tool, arguments)
}

fn token(authority: &Keypair, now: u64) -> PresentedToken {
    let grant = |tool: &str| ToolGrant::new("demo", tool, &[Operation::Invoke]);
    let scope = ChioScope { grants: vec![grant("echo"), grant("*")], ..ChioScope::default() };
    let validity = Validity { issued_at: now, expires_at: now + 86_400 };
    let agent = Keypair::from_seed(&[2; 32]).public_key().clone();
    let issuer = authority.public_key().clone();
    let token = CapabilityToken::draft("cap-bench", issuer, agent, scope, validity);
    token.signed(authority).unwrap().into()
}

/// A folder of its own below the build's, which is on a real disk.
pub(crate) fn fresh_folder() -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    folder.join(format!("bench-{}-{number}", std::process::id()))
}
