//! A kernel with one A2A adapter.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use chio_a2a_adapter::{A2aAdapter, A2aAdapterConfig, AgentError};
use chio_core::capability::CapabilityToken;
use chio_core::checkpoint::log_id;
use chio_core::protocol::DiscoveryProtocol;
use chio_core::receipt::{ChioReceipt, LoggedReceipt};
use chio_kernel::{
    AskError, Caller, ChioKernel, Clock, Gone, KernelConfig, KernelParts, Outcome, Pipeline,
    Question, Session, SystemRandomness, ToolCall, ToolServerConnection as _,
};
use chio_store::{OpenStore, StoreUrl};
use chio_testkit::{key, token};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::agent::{Speaks, model};
use crate::server::{Reply, Seen, Server};

/// The second at which every test takes place.
pub(crate) const NOW: u64 = 1_700_000_000;

/// A clock that stands until it is moved.
#[derive(Debug, Default)]
pub(crate) struct TestClock(AtomicU64);

impl TestClock {
    pub(crate) fn advance(&self, seconds: u64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn unix_millis(&self) -> u64 {
        (NOW + self.0.load(Ordering::SeqCst)) * 1000
    }

    fn monotonic(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::SeqCst))
    }
}

/// A caller that remembers the chunks.
pub(crate) struct TestCaller {
    session: Session,
    cancellation: CancellationToken,
    chunks: Mutex<Vec<Value>>,
}

impl TestCaller {
    fn new() -> Self {
        let session = Session::anonymous("session", DiscoveryProtocol::Native);
        Self { session, cancellation: CancellationToken::new(), chunks: Mutex::default() }
    }
}

#[async_trait]
impl Caller for TestCaller {
    fn session(&self) -> &Session {
        &self.session
    }

    async fn chunk(&self, _index: u64, data: Value) -> Result<(), Gone> {
        self.chunks.lock().unwrap().push(data);
        Ok(())
    }

    async fn ask(&self, _question: Question) -> Result<Value, AskError> {
        Err(AskError::Unsupported)
    }

    fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }
}

/// A configuration for an agent.
pub(crate) fn config(server: &Server) -> A2aAdapterConfig {
    A2aAdapterConfig::new(server.url(""), key(5).public_key().to_hex())
        .with_timeout(Duration::from_secs(20))
}

/// What a call came to.
pub(crate) struct Done {
    pub(crate) outcome: Outcome,
    pub(crate) chunks: Vec<Value>,
    pub(crate) receipt: ChioReceipt,
}

/// A kernel with one A2A adapter.
pub(crate) struct World {
    pub(crate) kernel: ChioKernel,
    pub(crate) adapter: A2aAdapter,
    pub(crate) server_id: String,
}

impl World {
    pub(crate) async fn new(config: A2aAdapterConfig) -> Self {
        Self::try_new(config).await.unwrap()
    }

    pub(crate) async fn try_new(config: A2aAdapterConfig) -> Result<Self, AgentError> {
        Self::within(config, KernelConfig::default()).await
    }

    pub(crate) async fn within(
        config: A2aAdapterConfig,
        limits: KernelConfig,
    ) -> Result<Self, AgentError> {
        let adapter = A2aAdapter::connect(config).await?;
        let clock = Arc::<TestClock>::default();
        let open = OpenStore::open(&StoreUrl::Memory, Arc::clone(&clock) as _).await.unwrap();
        let slot = open.take_slot(None).await.unwrap();
        let kernel = ChioKernel::start(KernelParts {
            config: KernelConfig { trusted_issuers: vec![key(1).public_key().clone()], ..limits },
            key: slot.key,
            ledger: slot.ledger,
            store: open.shared(),
            clock,
            randomness: Arc::<SystemRandomness>::default(),
            pipeline: Pipeline::none(),
        });
        let kernel = kernel.await.unwrap();
        kernel.register_tool_server(Box::new(adapter.clone())).unwrap();
        let server_id = adapter.manifest().server_id.clone();
        Ok(Self { kernel, adapter, server_id })
    }

    /// A token for every tool of the agent.
    pub(crate) fn cap(&self) -> CapabilityToken {
        self.cap_of(2, "cap-1")
    }

    fn cap_of(&self, caller: u8, id: &str) -> CapabilityToken {
        let grant = token::grant(&format!("{}/*", self.server_id));
        token::token(&key(1), key(caller).public_key(), id, vec![grant], NOW)
    }

    /// Calls a tool, and checks that there is one receipt of the call.
    pub(crate) async fn run(&self, tool: &str, arguments: Value) -> Done {
        self.run_with(self.cap(), tool, arguments).await
    }

    async fn run_with(&self, cap: CapabilityToken, tool: &str, arguments: Value) -> Done {
        let request_id = self.kernel.new_request_id();
        let call = ToolCall::new(request_id.clone(), cap, &*self.server_id, tool, arguments);
        let caller = Arc::new(TestCaller::new());
        let evaluation = self.kernel.evaluate(call, Arc::clone(&caller) as _).await.unwrap();
        let receipt = evaluation.receipt.open().unwrap();
        receipt.verify().unwrap();
        let log = log_id(self.kernel.public_key());
        let entries = self.kernel.store().entries(&log, 1, 10_000).await.unwrap();
        let all = entries.iter().map(|entry| LoggedReceipt::from_slice(&entry.body).unwrap());
        let of_call = all.filter(|it| it.request_id() == Some(&request_id));
        assert_eq!(of_call.count(), 1, "one call, one receipt");
        let chunks = caller.chunks.lock().unwrap().clone();
        Done { outcome: evaluation.outcome, chunks, receipt }
    }

    /// Calls `research`, which gives a value.
    pub(crate) async fn value(&self, arguments: Value) -> Value {
        match self.run("research", arguments).await.outcome {
            Outcome::Value(value) => value,
            other => panic!("expected a value, found {other:?}"),
        }
    }

    /// Calls a tool that gives nothing, and tells why.
    pub(crate) async fn failure_of(&self, tool: &str, arguments: Value) -> String {
        Self::failed(self.run(tool, arguments).await)
    }

    /// Calls `research` as another caller, which gives nothing, and tells why.
    pub(crate) async fn failure_by(&self, caller: u8, arguments: Value) -> String {
        Self::failed(self.run_with(self.cap_of(caller, "cap-other"), "research", arguments).await)
    }

    fn failed(done: Done) -> String {
        match done.outcome {
            Outcome::Denied(denial) => denial.reason,
            Outcome::Incomplete { reason, .. } => reason,
            other => panic!("expected a failure, found {other:?}"),
        }
    }

    /// Calls `research`, which gives nothing, and tells why.
    pub(crate) async fn failure(&self, arguments: Value) -> String {
        self.failure_of("research", arguments).await
    }
}

/// A model agent, and a world with it.
pub(crate) async fn with_model(speaks: Speaks) -> (Server, World) {
    let server = Server::start(move |seen: &Seen| model(seen, speaks)).await;
    let world = World::new(config(&server)).await;
    (server, world)
}

/// An agent with this card that answers as the model does.
pub(crate) async fn with_card(card: impl Fn(&str) -> Value + Send + Sync + 'static) -> Server {
    Server::start(move |seen: &Seen| {
        if seen.is_card() {
            return Reply::json(&card(&seen.base));
        }
        model(seen, crate::agent::RPC)
    })
    .await
}

/// Sends something, so that `task-1` is known.
pub(crate) async fn begin(world: &World) {
    let sent = world.value(json!({"message": "begin"})).await;
    assert_eq!(sent["task"]["id"], "task-1");
}

/// A folder of its own, which goes with the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let folder = format!("chio-a2a-adapter-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(folder);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
