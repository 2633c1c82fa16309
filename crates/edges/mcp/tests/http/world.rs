//! A server to connect to: a kernel, its tool server, the edge, and a listener on a port of its own.

mod admission;
mod approver;

use std::io::Cursor;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chio_core::capability::{
    CapabilityToken, ChioScope, Operation, PromptGrant, ResourceGrant, Validity,
};
use chio_core::crypto::PublicKey;
use chio_core::signed::Signed as _;
use chio_cross_protocol::{CrossProtocolOrchestrator, Principal};
use chio_demo::{DemoOptions, DemoServer};
use chio_edge::auth::HttpAuth;
use chio_edge::cors::with_named_pages;
use chio_edge::{Edge, EdgeContext, Place, SettingValue, Settings, Streams};
use chio_mcp_adapter::{McpServer, McpServerOptions, Sharing};
use chio_mcp_edge::EDGE;
use chio_net::auth::{Authenticator, OriginRules};
use chio_net::serve::{ServeLimits, serve};
use chio_policy::Policy;
use chio_testkit::embedded::EmbeddedKernel;
use chio_testkit::kernel::{
    ChioKernel, Clock as _, KernelConfig, Pipeline, SystemClock, ToolServerConnection,
};
use chio_testkit::mcp::Door;
use chio_testkit::process::mcp_fixture;
use chio_testkit::{key, receipts, token};
use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use admission::TestAdmission;
use approver::{APPROVER, USER, User};

/// The seeds of those who take part.
pub(crate) const ISSUER: u8 = 1;
const SERVER: u8 = 5;
/// How long running calls may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// What calls are for.
pub(crate) enum Tools {
    /// The demo tools, in this process.
    Demo,
    /// The fixture, started with this command.
    Fixture { command: Vec<String>, sharing: Sharing, folder: Option<PathBuf>, late: Duration },
}

impl Tools {
    fn fixture(sharing: Sharing) -> Self {
        let command = vec![mcp_fixture().display().to_string()];
        Self::Fixture { command, sharing, folder: None, late: Duration::ZERO }
    }

    /// A fixture for each session, with these tools besides (a list with commas).
    pub(crate) fn also(tools: &str) -> Self {
        let command =
            vec![mcp_fixture().display().to_string(), "--also".to_owned(), tools.to_owned()];
        let (sharing, late) = (Sharing::PerSession, Duration::ZERO);
        Self::Fixture { command, sharing, folder: None, late }
    }

    /// The name in grants and receipts.
    const fn name(&self) -> &'static str {
        match self {
            Self::Demo => chio_demo::SERVER_ID,
            Self::Fixture { .. } => "fixture",
        }
    }

    async fn start(self) -> Box<dyn ToolServerConnection> {
        let (name, public_key) = (self.name(), key(SERVER).public_key().clone());
        match self {
            Self::Demo => {
                let clock = Arc::new(SystemClock::default());
                let options = DemoOptions { public_key, clock, notes: None };
                Box::new(DemoServer::new(options).unwrap())
            }
            Self::Fixture { command, sharing, folder, late } => {
                let mut options = McpServerOptions::new(name, command, public_key);
                (options.sharing, options.cwd) = (sharing, folder);
                options.limits.late = late;
                Box::new(McpServer::start(options).await.unwrap())
            }
        }
    }
}

/// How a server begins.
pub(crate) struct Beginning {
    pub(crate) tools: Tools,
    pub(crate) settings: Settings,
    /// A built-in policy that judges calls.
    pub(crate) policy: &'static str,
    /// What every client has to show.
    pub(crate) token: Option<&'static str>,
    /// The origins of web pages that may call.
    pub(crate) pages: &'static [&'static str],
    /// Whether clients' users may be asked to approve a call; none where nothing takes their answers.
    pub(crate) asks_users: Option<bool>,
    /// How long a call waits for an approval.
    pub(crate) approval_timeout: Duration,
}

impl Default for Beginning {
    fn default() -> Self {
        let tools = Tools::fixture(Sharing::PerSession);
        let settings = Settings::default();
        let approval_timeout = KernelConfig::default().approval_timeout;
        let (policy, token, asks_users) = ("permissive", None, None);
        Self { tools, settings, policy, token, pages: &[], asks_users, approval_timeout }
    }
}

/// A server.
pub(crate) struct World {
    pub(crate) door: Door,
    edge: Arc<dyn Edge>,
    embedded: EmbeddedKernel,
}

impl World {
    /// With the demo tools.
    pub(crate) fn demo() -> Self {
        Beginning { tools: Tools::Demo, policy: "default", ..Beginning::default() }.start()
    }

    /// With the fixture, one for each session.
    pub(crate) fn fixture() -> Self {
        Beginning::default().start()
    }

    /// With a fixture that sessions share, or not.
    pub(crate) fn sharing(sharing: Sharing) -> Self {
        Beginning { tools: Tools::fixture(sharing), ..Beginning::default() }.start()
    }

    /// With the fixture's tools that show what comes through.
    pub(crate) fn through() -> Self {
        Self::through_with(Sharing::PerSession, "permissive", Duration::ZERO)
    }

    /// The same, shared by all sessions, of whose calls it may speak so long after their end.
    pub(crate) fn through_shared(late: Duration) -> Self {
        Self::through_with(Sharing::Shared, "permissive", late)
    }

    /// The same, with calls that the default policy judges.
    pub(crate) fn through_judged() -> Self {
        Self::through_with(Sharing::PerSession, "default", Duration::ZERO)
    }

    fn through_with(sharing: Sharing, policy: &'static str, late: Duration) -> Self {
        let program = mcp_fixture().display().to_string();
        let command = vec![program, "--also".to_owned(), "through".to_owned()];
        let tools = Tools::Fixture { command, sharing, folder: None, late };
        Beginning { tools, policy, ..Beginning::default() }.start()
    }

    /// With the fixture, and calls that the default policy judges.
    pub(crate) fn judged() -> Self {
        Beginning { policy: "default", ..Beginning::default() }.start()
    }

    /// With the fixture, and streams that are closed after this many milliseconds.
    pub(crate) fn rotating(milliseconds: u64) -> Self {
        Self::with("rotate_streams", SettingValue::Duration(Duration::from_millis(milliseconds)))
    }

    /// With the fixture, and this setting.
    pub(crate) fn with(key: &'static str, value: SettingValue) -> Self {
        let settings = Settings::default().with(key, Some(value));
        Beginning { settings, ..Beginning::default() }.start()
    }

    /// All receipts, oldest first.
    pub(crate) fn receipts(&self) -> Vec<Value> {
        self.embedded.receipts()
    }

    /// A receipt.
    #[track_caller]
    pub(crate) fn receipt(&self, id: &str) -> Value {
        self.receipts().into_iter().find(|receipt| receipt["id"] == id).unwrap()
    }

    /// The receipts of calls, oldest first: of which tool, and how each ended.
    pub(crate) fn calls(&self) -> Vec<(String, String)> {
        receipts::calls(&self.receipts())
    }

    /// Checks that the calls left exactly these receipts.
    #[track_caller]
    pub(crate) fn check_calls(&self, expected: &[(&str, &str)]) {
        receipts::check_calls(&self.receipts(), expected);
    }

    /// Checks that the whole store holds.
    #[track_caller]
    pub(crate) fn audit(&self) {
        self.embedded.audit();
    }

    /// Revokes a capability.
    pub(crate) fn revoke(&self, id: &str) {
        let EmbeddedKernel { kernel, runtime, .. } = &self.embedded;
        assert!(runtime.block_on(kernel.revoke(id)).unwrap());
    }

    /// Sends these messages over a pair of byte streams, and gives the lines that come back.
    pub(crate) fn lines(&self, messages: &[Value]) -> Vec<Value> {
        let sent: String = messages.iter().map(|message| format!("{message}\n")).collect();
        let (writer, mut answers) = tokio::io::duplex(1 << 20);
        let streams = Streams {
            reader: Box::new(Cursor::new(sent.into_bytes())),
            writer: Box::new(writer),
            principal: Principal::stdio(),
            place: Arc::new(Place::alone()),
        };
        let mut text = String::new();
        self.embedded.runtime.block_on(async {
            self.edge.serve_streams(streams, CancellationToken::new()).await.unwrap();
            answers.read_to_string(&mut text).await.unwrap();
        });
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The kernel.
    pub(crate) const fn kernel(&self) -> &ChioKernel {
        &self.embedded.kernel
    }

    /// Runs what the kernel is asked for.
    pub(crate) fn block_on<T>(&self, asked: impl Future<Output = T>) -> T {
        self.embedded.runtime.block_on(asked)
    }

    /// Ends every session, as the edge does when its process ends.
    pub(crate) fn end_edge(&self) {
        self.embedded.runtime.block_on(self.edge.close());
    }

    /// Waits until all that runs has ended, and ends every session.
    pub(crate) fn end(&self) {
        let EmbeddedKernel { kernel, runtime, .. } = &self.embedded;
        runtime.block_on(async {
            kernel.drain(PATIENCE).await.unwrap();
            self.edge.close().await;
        });
    }
}

impl Beginning {
    pub(crate) fn start(self) -> World {
        let public = |seed| key(seed).public_key().clone();
        let config = KernelConfig {
            trusted_issuers: vec![public(ISSUER)],
            trusted_approvers: vec![public(APPROVER), public(USER)],
            approval_timeout: self.approval_timeout,
            ..KernelConfig::default()
        };
        let embedded = EmbeddedKernel::start(config, pipeline(self.policy));
        let (door, edge) = embedded.runtime.block_on(self.serve(&embedded.kernel));
        World { door, edge, embedded }
    }

    /// Starts the tools and the edge, and serves that.
    async fn serve(self, kernel: &ChioKernel) -> (Door, Arc<dyn Edge>) {
        let server = self.tools.name();
        kernel.register_tool_server(self.tools.start().await).unwrap();
        let orchestrator = Arc::new(CrossProtocolOrchestrator::new(kernel).detached());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let user = |may_ask| Arc::new(User { kernel: kernel.clone(), may_ask }) as _;
        let context = EdgeContext {
            admission: Arc::new(TestAdmission::new(&orchestrator, server)),
            orchestrator,
            servers: vec![server.to_owned()],
            base_url: format!("http://{address}"),
            user_approvals: self.asks_users.map(user),
            store_options: Some("--data /the/data".to_owned()),
        };
        let edge = (EDGE.start)(context, &self.settings).unwrap();
        let mut authenticator = Authenticator::anonymous();
        if let Some(token) = self.token {
            authenticator = authenticator.with_token("bob", token).unwrap();
        }
        let origins =
            self.pages.iter().fold(OriginRules::loopback(address.port()), |rules, page| {
                rules.with_pages_of(page).unwrap()
            });
        let auth = Arc::new(HttpAuth { authenticator, origins, capabilities: true });
        let router = with_named_pages(edge.routes(Arc::clone(&auth)).unwrap(), &auth);
        tokio::spawn(serve(listener, router, ServeLimits::default(), std::future::pending()));
        (Door::new(&format!("http://{address}{}", EDGE.path)), edge)
    }
}

/// What calls are judged by.
async fn pipeline(policy: &str) -> Pipeline {
    let policy = Policy::load(policy, &std::env::temp_dir(), &Arc::default()).unwrap();
    policy.proven().await.unwrap()
}

/// A scope with these grants of tools, and leave to read what these patterns name.
pub(crate) fn scope(tools: &[&str], reads: &[&str]) -> ChioScope {
    let resource = |pattern: &&str| ResourceGrant {
        uri_pattern: (*pattern).to_owned(),
        operations: vec![Operation::Read, Operation::Subscribe],
    };
    ChioScope {
        grants: tools.iter().map(|tool| token::grant(tool)).collect(),
        resource_grants: reads.iter().map(resource).collect(),
        prompt_grants: Vec::new(),
    }
}

/// Everything that a server has.
fn everything(server: &str) -> ChioScope {
    let prompts = PromptGrant { prompt_name: "*".to_owned(), operations: vec![Operation::Get] };
    let tools = format!("{server}/*");
    ChioScope { prompt_grants: vec![prompts], ..scope(&[&tools], &["*"]) }
}

/// A capability of this name for a subject, valid for an hour.
pub(crate) fn capability(
    id: &str,
    subject: &PublicKey,
    scope: ChioScope,
    issued_at: u64,
) -> CapabilityToken {
    let validity = Validity { issued_at, expires_at: issued_at + 3600 };
    let issuer = key(ISSUER);
    let (public, subject) = (issuer.public_key().clone(), subject.clone());
    CapabilityToken::draft(id, public, subject, scope, validity).signed(&issuer).unwrap()
}

/// Now, in Unix seconds.
pub(crate) fn now() -> u64 {
    SystemClock::default().unix_seconds()
}
