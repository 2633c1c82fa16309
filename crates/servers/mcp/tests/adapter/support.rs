//! A kernel with one MCP server, whose children are the fixture.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use chio_core::capability::{
    CapabilityToken, ChioScope, Operation, PresentedToken, PromptGrant, ResourceGrant, Validity,
};
use chio_core::checkpoint::log_id;
use chio_core::protocol::DiscoveryProtocol;
use chio_core::receipt::{ChildReceipt, LoggedReceipt};
use chio_core::signed::Signed;
use chio_kernel::{
    AskError, Caller, ChioKernel, Clock, Gone, KernelConfig, KernelError, KernelParts, ListKind,
    Offer, Outcome, Pipeline, Question, ReadKind, ReadOutcome, ReadRequest, ServerNotification,
    Session, SystemRandomness, ToolCall, ToolServerConnection as _,
};
use chio_mcp_adapter::{McpServer, McpServerOptions};
use chio_store::{OpenStore, StoreUrl};
use chio_testkit::log::CapturedLog;
use chio_testkit::{key, token};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// The second at which every test takes place.
const NOW: u64 = 1_700_000_000;
/// The server's name.
pub(crate) const SERVER: &str = "srv";
/// How long anything may take that should happen soon. Only a failing test waits for so long.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often to look again.
const BEAT: Duration = Duration::from_millis(10);

#[derive(Debug)]
struct StandingClock;

impl Clock for StandingClock {
    fn unix_millis(&self) -> u64 {
        NOW * 1000
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

/// Waits until there is something, and gives it.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(BEAT).await;
        }
    };
    let found = tokio::time::timeout(PATIENCE, looking).await;
    found.unwrap_or_else(|_| panic!("{what} never came"))
}

/// A caller that remembers what came back besides the answer.
pub(crate) struct TestCaller {
    session: Session,
    cancellation: CancellationToken,
    progress: bool,
    slow: bool,
    answers: Mutex<VecDeque<Result<Value, AskError>>>,
    notices: Mutex<Vec<ServerNotification>>,
    questions: Mutex<Vec<Question>>,
}

impl TestCaller {
    pub(crate) fn of(session_id: &str) -> Self {
        Self {
            session: Session::anonymous(session_id, DiscoveryProtocol::Mcp),
            cancellation: CancellationToken::new(),
            progress: false,
            slow: false,
            answers: Mutex::default(),
            notices: Mutex::default(),
            questions: Mutex::default(),
        }
    }

    /// Wants to know how far calls have come.
    pub(crate) fn with_progress(mut self) -> Self {
        self.progress = true;
        self
    }

    /// Takes its time with what it is let known.
    pub(crate) fn slowly(mut self) -> Self {
        self.slow = true;
        self
    }

    /// Gives this answer to the next question that has none yet.
    pub(crate) fn answering(self, answer: Result<Value, AskError>) -> Self {
        self.answers.lock().unwrap().push_back(answer);
        self
    }

    pub(crate) fn cancel(&self) {
        self.cancellation.cancel();
    }

    pub(crate) fn notices(&self) -> Vec<ServerNotification> {
        self.notices.lock().unwrap().clone()
    }

    /// How often something was let known.
    pub(crate) fn told(&self, method: &str) -> usize {
        self.notices().iter().filter(|notice| notice.method == method).count()
    }

    pub(crate) fn questions(&self) -> Vec<Question> {
        self.questions.lock().unwrap().clone()
    }
}

#[async_trait]
impl Caller for TestCaller {
    fn session(&self) -> &Session {
        &self.session
    }

    async fn chunk(&self, _index: u64, _data: Value) -> Result<(), Gone> {
        Err(Gone)
    }

    async fn ask(&self, question: Question) -> Result<Value, AskError> {
        self.questions.lock().unwrap().push(question);
        let next = self.answers.lock().unwrap().pop_front();
        next.unwrap_or(Err(AskError::Unsupported))
    }

    fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }

    async fn notice(&self, notice: ServerNotification) {
        if self.slow {
            tokio::time::sleep(BEAT).await;
        }
        self.notices.lock().unwrap().push(notice);
    }

    fn wants_progress(&self) -> bool {
        self.progress
    }
}

/// The command that runs the fixture with these arguments.
pub(crate) fn fixture(arguments: &[&str]) -> Vec<String> {
    let program = [env!("CARGO_BIN_EXE_mcp-adapter-fixture")];
    program.iter().chain(arguments).map(|&it| it.to_owned()).collect()
}

/// Options for a fixture with these arguments.
pub(crate) fn options(arguments: &[&str]) -> McpServerOptions {
    McpServerOptions::new(SERVER, fixture(arguments), key(5).public_key().clone())
}

/// A kernel with one MCP server.
pub(crate) struct World {
    pub(crate) kernel: ChioKernel,
    pub(crate) server: McpServer,
    log: CapturedLog,
}

impl World {
    /// With a fixture that was started with these arguments.
    pub(crate) async fn new(arguments: &[&str]) -> Self {
        Self::with(options(arguments)).await
    }

    pub(crate) async fn with(options: McpServerOptions) -> Self {
        Self::within(options, KernelConfig::default()).await
    }

    pub(crate) async fn within(options: McpServerOptions, config: KernelConfig) -> Self {
        let log = CapturedLog::start();
        let server = McpServer::start(options).await.unwrap();
        let open = OpenStore::open(&StoreUrl::Memory, Arc::new(StandingClock)).await.unwrap();
        let slot = open.take_slot(None).await.unwrap();
        let kernel = ChioKernel::start(KernelParts {
            config: KernelConfig { trusted_issuers: vec![key(1).public_key().clone()], ..config },
            key: slot.key,
            ledger: slot.ledger,
            store: open.shared(),
            clock: Arc::new(StandingClock),
            randomness: Arc::<SystemRandomness>::default(),
            pipeline: Pipeline::none(),
        });
        let kernel = kernel.await.unwrap();
        kernel.register_tool_server(Box::new(server.clone())).unwrap();
        Self { kernel, server, log }
    }

    /// What the operator was told.
    pub(crate) fn log(&self) -> Vec<String> {
        self.log.lines()
    }

    pub(crate) fn tool_names(&self) -> Vec<String> {
        self.server.manifest().tools.iter().map(|tool| tool.name.clone()).collect()
    }

    /// Opens a session for a client that can do this.
    pub(crate) async fn try_open(
        &self,
        caller: &Arc<TestCaller>,
        client: Value,
    ) -> Result<Option<Offer>, KernelError> {
        let Value::Object(client) = client else { panic!("capabilities are an object") };
        let caller = Arc::<TestCaller>::clone(caller);
        self.kernel.open_session(SERVER, caller, cap().into(), client).await
    }

    /// Opens a session for a client that can do everything.
    pub(crate) async fn open(&self, session_id: &str) -> Arc<TestCaller> {
        let caller = Arc::new(TestCaller::of(session_id));
        let client = json!({"sampling": {}, "elicitation": {}, "roots": {"listChanged": true}});
        self.try_open(&caller, client).await.unwrap().unwrap();
        caller
    }

    /// Calls a tool, and checks that there is one receipt of the call.
    pub(crate) async fn call(
        &self,
        caller: &Arc<TestCaller>,
        tool: &str,
        arguments: Value,
    ) -> Outcome {
        let request_id = self.kernel.new_request_id();
        let call = ToolCall::new(request_id.clone(), cap(), SERVER, tool, arguments);
        let caller = Arc::<TestCaller>::clone(caller);
        let evaluation = self.kernel.evaluate(call, caller).await.unwrap();
        evaluation.receipt.open().unwrap().verify().unwrap();
        let all = self.logged().await;
        let of_call = all.iter().filter(|it| it.request_id() == Some(&request_id));
        assert_eq!(of_call.count(), 1, "one call, one receipt");
        evaluation.outcome
    }

    /// Calls a tool that gives a value.
    pub(crate) async fn value(
        &self,
        caller: &Arc<TestCaller>,
        tool: &str,
        arguments: Value,
    ) -> Value {
        match self.call(caller, tool, arguments).await {
            Outcome::Value(value) => value,
            other => panic!("expected a value of {tool}, found {other:?}"),
        }
    }

    /// What a tool gives besides text.
    pub(crate) async fn data(
        &self,
        caller: &Arc<TestCaller>,
        tool: &str,
        arguments: Value,
    ) -> Value {
        self.value(caller, tool, arguments).await["structuredContent"].take()
    }

    /// Why the end of a tool is not known.
    pub(crate) async fn loss(
        &self,
        caller: &Arc<TestCaller>,
        tool: &str,
        arguments: Value,
    ) -> String {
        match self.call(caller, tool, arguments).await {
            Outcome::Incomplete { reason, .. } => reason,
            other => panic!("expected {tool} to be lost, found {other:?}"),
        }
    }

    /// Why a tool gives nothing.
    pub(crate) async fn failure(
        &self,
        caller: &Arc<TestCaller>,
        tool: &str,
        arguments: Value,
    ) -> String {
        match self.call(caller, tool, arguments).await {
            Outcome::Denied(denial) => denial.reason,
            other => panic!("expected a failure of {tool}, found {other:?}"),
        }
    }

    /// What the child of a session has noticed.
    pub(crate) async fn seen(&self, caller: &Arc<TestCaller>) -> Value {
        self.data(caller, "seen", json!({})).await
    }

    /// The process of the child of a session, and how often it has counted.
    pub(crate) async fn count(&self, caller: &Arc<TestCaller>) -> (u32, u64) {
        let counted = self.data(caller, "count", json!({})).await;
        (counted["pid"].as_u64().unwrap().try_into().unwrap(), counted["count"].as_u64().unwrap())
    }

    pub(crate) async fn read(
        &self,
        caller: &Arc<TestCaller>,
        kind: ReadKind,
        params: Value,
    ) -> ReadOutcome {
        let Value::Object(params) = params else { panic!("{params}") };
        let (token, server_id) = (PresentedToken::from(cap()), SERVER.to_owned());
        let agent = token.subject.clone();
        let request = ReadRequest { kind, token, agent, server_id, params, meta: None };
        let caller = Arc::<TestCaller>::clone(caller);
        self.kernel.read(request, caller).await.unwrap().outcome
    }

    pub(crate) async fn list(&self, caller: &Arc<TestCaller>, kind: ListKind) -> Vec<Value> {
        Arc::unwrap_or_clone(
            self.kernel.list(SERVER, caller.session(), kind).await.unwrap().unwrap(),
        )
    }

    pub(crate) async fn logged(&self) -> Vec<LoggedReceipt> {
        let log = log_id(self.kernel.public_key());
        let entries = self.kernel.store().entries(&log, 1, 10_000).await.unwrap();
        entries.iter().map(|entry| LoggedReceipt::from_slice(&entry.body).unwrap()).collect()
    }

    /// The receipts of nested questions.
    pub(crate) async fn children(&self) -> Vec<ChildReceipt> {
        let child = |logged| match logged {
            LoggedReceipt::Child(child) => Some(*child),
            LoggedReceipt::Call(_) => None,
        };
        self.logged().await.into_iter().filter_map(child).collect()
    }
}

/// A token for everything.
pub(crate) fn cap() -> CapabilityToken {
    let scope = ChioScope {
        grants: vec![token::grant("srv/*")],
        resource_grants: vec![ResourceGrant {
            uri_pattern: "*".to_owned(),
            operations: vec![Operation::Read, Operation::Subscribe],
        }],
        prompt_grants: vec![PromptGrant {
            prompt_name: "*".to_owned(),
            operations: vec![Operation::Get],
        }],
    };
    let validity = Validity { issued_at: NOW, expires_at: NOW + 3600 };
    let (issuer, subject) = (key(1), key(2).public_key().clone());
    let draft =
        CapabilityToken::draft("cap-1", issuer.public_key().clone(), subject, scope, validity);
    draft.signed(&issuer).unwrap()
}

/// Whether a process is still there; one that has yet to be reaped is not.
pub(crate) fn is_alive(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state != Some('Z')
}
