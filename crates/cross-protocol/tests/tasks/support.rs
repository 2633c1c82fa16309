//! A process that takes deferred tasks on: a kernel, a small tool server, the table.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use chio_core::capability::{CapabilityToken, ToolGrant};
use chio_core::crypto::Keypair;
use chio_core::manifest::{MANIFEST_SCHEMA, ToolDefinition, ToolManifest};
use chio_core::receipt::Decision;
use chio_cross_protocol::{
    CrossProtocolOrchestrator, DeferredTasks, DiscoveryProtocol, NoCaller, OrchestratedRequest,
    Presented, Principal, TaskError, TaskLimits, TaskView,
};
use chio_kernel::{
    CallContext, ChioKernel, Clock, KernelConfig, KernelError, KernelParts, Permit, Pipeline,
    SystemRandomness, ToolInvocation, ToolOutput, ToolServerConnection,
};
use chio_store::{OpenStore, StoreUrl};
use chio_testkit::process::Folder;
use chio_testkit::{key, token};
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

/// The second at which every test begins.
pub(crate) const NOW: u64 = 1_700_000_000;

/// Who owns the tasks.
pub(crate) fn owner() -> Keypair {
    key(2)
}

/// Who approves.
pub(crate) fn approver() -> Keypair {
    key(8)
}

/// A clock that stands until a test sets it.
#[derive(Debug)]
pub(crate) struct StandingClock(AtomicU64);

impl StandingClock {
    pub(crate) fn set(&self, seconds: u64) {
        self.0.store(seconds, Ordering::SeqCst);
    }
}

impl Clock for StandingClock {
    fn unix_millis(&self) -> u64 {
        self.0.load(Ordering::SeqCst) * 1000
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

/// What the tools of all processes tell.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    runs: Arc<AtomicUsize>,
    /// Holds the tool `gate` back.
    pub(crate) gate: Arc<Semaphore>,
}

impl Default for Told {
    fn default() -> Self {
        Self { runs: Arc::default(), gate: Arc::new(Semaphore::new(0)) }
    }
}

impl Told {
    /// How often any tool ran.
    pub(crate) fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }
}

struct Tools {
    manifest: Arc<ToolManifest>,
    told: Told,
}

fn tool(name: &str, schema: Value) -> ToolDefinition {
    let input_schema: Map<String, Value> = serde_json::from_value(schema).unwrap();
    ToolDefinition {
        name: name.to_owned(),
        description: "A test tool".to_owned(),
        input_schema,
        output_schema: None,
        pricing: None,
        has_side_effects: true,
        latency_hint: None,
    }
}

impl Tools {
    fn new(told: &Told) -> Self {
        let mut tools: Vec<ToolDefinition> =
            ["work", "gate", "stream", "fail"].map(|name| tool(name, json!({}))).into();
        tools.push(tool("approved", json!({"x-chio-approval-required": true})));
        let manifest = ToolManifest {
            schema: MANIFEST_SCHEMA.to_owned(),
            server_id: "srv".to_owned(),
            name: "Test tools".to_owned(),
            description: None,
            version: "1.0.0".to_owned(),
            tools,
            server_tools: Vec::new(),
            required_permissions: None,
            public_key: key(5).public_key().clone(),
        };
        Self { manifest: Arc::new(manifest), told: told.clone() }
    }
}

#[async_trait]
impl ToolServerConnection for Tools {
    fn manifest(&self) -> Arc<ToolManifest> {
        Arc::clone(&self.manifest)
    }

    async fn invoke(
        &self,
        _permit: Permit,
        invocation: ToolInvocation,
        context: &CallContext<'_>,
    ) -> Result<ToolOutput, KernelError> {
        let run = self.told.runs.fetch_add(1, Ordering::SeqCst) + 1;
        match &*invocation.tool_name {
            "gate" => self.told.gate.acquire().await.unwrap().forget(),
            "fail" => return Err(KernelError::ToolServerError("no such row".to_owned())),
            "stream" => {
                let chunks = invocation.arguments["chunks"].as_array().unwrap();
                let times = invocation.arguments["times"].as_u64().unwrap_or(1);
                for chunk in (0..times).flat_map(|_| chunks) {
                    if context.chunk(chunk.clone()).await.is_err() {
                        break;
                    }
                }
                return Ok(ToolOutput { value: None, cost: None });
            }
            // Long enough for others to ask meanwhile.
            _ => tokio::time::sleep(Duration::from_millis(20)).await,
        }
        Ok(ToolOutput::value(json!({"run": run})))
    }
}

/// One process.
pub(crate) struct Process {
    pub(crate) kernel: ChioKernel,
    pub(crate) tasks: DeferredTasks,
    pub(crate) clock: Arc<StandingClock>,
    pub(crate) told: Told,
}

/// How a process begins.
pub(crate) struct Beginning {
    pub(crate) url: StoreUrl,
    pub(crate) told: Told,
    pub(crate) limits: TaskLimits,
    /// Whether it has the tool server.
    pub(crate) has_tools: bool,
}

impl Beginning {
    pub(crate) fn on(url: StoreUrl) -> Self {
        Self { url, told: Told::default(), limits: TaskLimits::default(), has_tools: true }
    }

    pub(crate) fn told(mut self, told: &Told) -> Self {
        self.told = told.clone();
        self
    }

    pub(crate) async fn start(self) -> Process {
        let clock = Arc::new(StandingClock(AtomicU64::new(NOW)));
        let open = OpenStore::open(&self.url, Arc::<StandingClock>::clone(&clock)).await.unwrap();
        let slot = open.take_slot(None).await.unwrap();
        let kernel = ChioKernel::start(KernelParts {
            config: KernelConfig {
                trusted_issuers: vec![key(1).public_key().clone()],
                trusted_approvers: vec![approver().public_key().clone()],
                approval_timeout: Duration::from_secs(20),
                ..KernelConfig::default()
            },
            key: slot.key,
            ledger: slot.ledger,
            store: open.shared(),
            clock: Arc::<StandingClock>::clone(&clock),
            randomness: Arc::<SystemRandomness>::default(),
            pipeline: Pipeline::none(),
        });
        let kernel = kernel.await.unwrap();
        if self.has_tools {
            kernel.register_tool_server(Box::new(Tools::new(&self.told))).unwrap();
        }
        let orchestrator = CrossProtocolOrchestrator::new(&kernel).detached();
        let tasks = DeferredTasks::new(orchestrator, self.limits);
        Process { kernel, tasks, clock, told: self.told }
    }
}

/// A process of its own on each kind of store.
pub(crate) async fn on_every_store(folder: &Folder) -> [Process; 2] {
    let folder = StoreUrl::Sqlite(folder.path("store"));
    [Beginning::on(StoreUrl::Memory).start().await, Beginning::on(folder).start().await]
}

/// The owner's token for every tool.
pub(crate) fn cap() -> CapabilityToken {
    granted(token::grant("srv/*"))
}

/// The owner's token with this grant.
pub(crate) fn granted(grant: ToolGrant) -> CapabilityToken {
    token::token(&key(1), owner().public_key(), "cap-1", vec![grant], NOW)
}

/// A request of the owner's.
pub(crate) fn request(tool: &str, arguments: Value) -> OrchestratedRequest {
    OrchestratedRequest::new("r-1", cap(), "srv", tool, arguments)
}

impl Process {
    /// Takes a request on as A2A does.
    pub(crate) async fn defer(&self, request: OrchestratedRequest) -> TaskView {
        self.tasks.defer(request, DiscoveryProtocol::A2a).await.unwrap()
    }

    /// Asks for a task as its owner does.
    pub(crate) async fn poll_with(
        &self,
        id: &str,
        presented: Presented,
    ) -> Result<TaskView, TaskError> {
        let orchestrator = CrossProtocolOrchestrator::new(&self.kernel);
        let session = orchestrator.open_session(DiscoveryProtocol::A2a, Principal::anonymous());
        let caller = Arc::new(NoCaller::new(session));
        self.tasks.result(id, owner().public_key(), presented, caller).await
    }

    pub(crate) async fn poll(&self, id: &str) -> TaskView {
        self.poll_with(id, Presented::default()).await.unwrap()
    }

    pub(crate) async fn look(&self, id: &str) -> TaskView {
        self.tasks.look(id, owner().public_key()).await.unwrap()
    }
}

/// The decision in a task's receipt, which is signed.
pub(crate) fn decision(view: &TaskView) -> Decision {
    let receipt = view.receipt.as_ref().unwrap().open().unwrap();
    receipt.verify().unwrap();
    receipt.decision.unwrap()
}
