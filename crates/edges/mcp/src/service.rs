//! The MCP edge: what all its sessions share.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use chio_cross_protocol::{
    Admission, ApprovalRequest, CrossProtocolOrchestrator, DeferredTasks, TaskLimits,
};
use chio_edge::auth::HttpAuth;
use chio_edge::limits::{Rate, RateLimiter};
use chio_edge::{
    Carrier, Edge, EdgeContext, EdgeKind, Form, Setting, SettingError, Settings, StreamError,
    Streams, UserApprovals,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::events::Retained;
use crate::http;
use crate::limits::McpLimits;
use crate::methods;
use crate::names::Names;
use crate::negotiation::{VERSIONS, Versions};
use crate::parked::ParkedCalls;
use crate::sessions::Sessions;

/// How often sessions that no client uses are ended.
const EXPIRY_INTERVAL: Duration = Duration::from_millis(250);

/// How long running requests may take to end when everything ends.
const DRAIN: Duration = Duration::from_secs(5);

/// How long a request waits for an approval: clients give up after a minute, some after half of one.
const APPROVAL_WAIT: Duration = Duration::from_secs(15);

/// How long servers may take to end what they keep for sessions.
const LEAVE: Duration = Duration::from_secs(6);

/// The entry in the list of edges.
pub const EDGE: EdgeKind = EdgeKind {
    name: "mcp",
    announcement: "listening on ",
    path: http::PATH,
    address_hint: "",
    carriers: &[Carrier::Http, Carrier::Stdio],
    admits_ended: false,
    default_listener: "http",
    asks_users: true,
    settings: &[
        Setting::new(VERSIONS, Form::Texts, "all", "the versions of MCP that are spoken"),
        Setting::new("max_sessions", Form::Number(1_000_000), "1024", "the most sessions at once"),
        Setting::new("session_idle", Form::Duration, "15m", "how long an unused session lives"),
        Rate::SETTING,
        Setting::new(
            "approval_wait",
            Form::Duration,
            "15s",
            "how long a call waits for an approval",
        ),
        Setting::new("rotate_streams", Form::Duration, "never", "when clients have to come back"),
    ],
    check: |settings, _| Versions::new(settings.texts(VERSIONS)).map(drop),
    start: |context, settings| Ok(Arc::new(McpService::new(context, settings)?)),
};

/// How sessions are served.
pub(crate) struct McpOptions {
    /// The versions of the protocol that are spoken.
    pub(crate) versions: Versions,
    /// How much clients may ask for.
    pub(crate) limits: McpLimits,
    /// After how long a stream is closed for its client to come back.
    pub(crate) rotate_streams: Option<Duration>,
    /// How long a request waits for an approval before it is told how to ask again.
    pub(crate) approval_wait: Duration,
    /// Records the answers of clients' users to approval requests.
    pub(crate) user_approvals: Option<Arc<dyn UserApprovals>>,
    /// Where commands of operators find the store; none where they do not.
    pub(crate) store_options: Option<String>,
}

impl McpLimits {
    fn new(settings: &Settings) -> Self {
        let mut limits = Self::default();
        if let Some(max) = settings.number("max_sessions") {
            (limits.sessions, limits.sessions_per_principal) = (max, max);
        }
        limits.idle = settings.duration("session_idle").unwrap_or(limits.idle);
        limits.rate = Rate::from_settings(settings);
        limits
    }
}

/// Serves sessions.
#[derive(Clone)]
pub(crate) struct McpService {
    pub(crate) shared: Arc<EdgeState>,
}

/// What all sessions share.
pub(crate) struct EdgeState {
    pub(crate) orchestrator: Arc<CrossProtocolOrchestrator<'static>>,
    pub(crate) admission: Arc<dyn Admission>,
    pub(crate) options: McpOptions,
    pub(crate) names: Names,
    pub(crate) sessions: Sessions,
    pub(crate) parked: ParkedCalls,
    pub(crate) retained: Arc<Retained>,
    pub(crate) rate_limiter: RateLimiter,
    /// Cancelled when everything ends.
    pub(crate) closing: CancellationToken,
}

impl EdgeState {
    /// The command that lets a call go on, in any folder.
    pub(crate) fn approve_command(&self, approval: &ApprovalRequest) -> Option<String> {
        let options = self.options.store_options.as_ref()?;
        Some(format!("chio approvals approve {} {options}", approval.id))
    }

    /// The table of deferred tasks, which are kept for so long.
    pub(crate) fn deferred(&self, lifetime: Duration) -> DeferredTasks {
        let most_open = self.options.limits.tasks;
        let limits = TaskLimits { most_open, lifetime, ..TaskLimits::default() };
        DeferredTasks::new((*self.orchestrator).clone(), limits)
    }
}

impl McpService {
    /// A service of these settings. Must be made within a runtime.
    fn new(context: EdgeContext, settings: &Settings) -> Result<Self, SettingError> {
        let options = McpOptions {
            versions: Versions::new(settings.texts(VERSIONS))?,
            limits: McpLimits::new(settings),
            rotate_streams: settings.duration("rotate_streams"),
            approval_wait: settings.duration("approval_wait").unwrap_or(APPROVAL_WAIT),
            user_approvals: context.user_approvals,
            store_options: context.store_options,
        };
        let shared = Arc::new(EdgeState {
            orchestrator: context.orchestrator,
            admission: context.admission,
            names: Names::new(context.servers),
            sessions: Sessions::default(),
            parked: ParkedCalls::default(),
            retained: Arc::default(),
            rate_limiter: RateLimiter::new(options.limits.rate),
            closing: CancellationToken::new(),
            options,
        });
        let (watched, closing) = (Arc::downgrade(&shared), shared.closing.clone());
        let mut registered = shared.orchestrator.registered_servers();
        let (later, ending) = (Arc::downgrade(&shared), shared.closing.clone());
        tokio::spawn(async move {
            loop {
                let server = tokio::select! {
                    () = ending.cancelled() => return,
                    server = registered.recv() => server,
                };
                let (Ok(server), Some(shared)) = (server, later.upgrade()) else { return };
                methods::join_late(&shared, &server).await;
            }
        });
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = closing.cancelled() => return,
                    () = tokio::time::sleep(EXPIRY_INTERVAL) => {}
                }
                let Some(shared) = watched.upgrade() else { return };
                let limits = &shared.options.limits;
                shared.sessions.expire(limits.idle);
                shared.sessions.make_room(&shared.retained, limits.retained_bytes);
            }
        });
        Ok(Self { shared })
    }
}

#[async_trait]
impl Edge for McpService {
    fn routes(&self, auth: Arc<HttpAuth>) -> Option<Router> {
        Some(self.router(auth))
    }

    async fn serve_streams(
        &self,
        streams: Streams,
        shutdown: CancellationToken,
    ) -> Result<(), StreamError> {
        Ok(self.serve_lines(streams, shutdown).await?)
    }

    /// Ends every session, and what their servers keep for them. What runs may end first, for a
    /// while.
    async fn close(&self) {
        for session in self.shared.sessions.all() {
            session.drain();
        }
        let idle = async {
            for session in self.shared.sessions.all() {
                session.idle().await;
            }
        };
        let _ = tokio::time::timeout(DRAIN, idle).await;
        self.shared.closing.cancel();
        let mut leaving = JoinSet::new();
        for session in self.shared.sessions.close_all() {
            leaving.spawn(async move { session.leave_servers().await });
        }
        let all = async { while leaving.join_next().await.is_some() {} };
        // Whatever does not end by then is killed with its server.
        let _ = tokio::time::timeout(LEAVE, all).await;
    }
}
