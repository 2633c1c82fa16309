//! What sessions are served with, whichever door they come in by.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chio_cross_protocol::{
    Admission, ApprovalRequest, CrossProtocolOrchestrator, DeferredTasks, Log, TaskLimits,
};
use chio_net::rate::Turnstile;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::events::{Retained, Window};
use crate::limits::McpLimits;
use crate::names::Names;
use crate::negotiation::SUPPORTED;
use crate::sessions::Sessions;

/// How often sessions that nobody uses are looked for.
const BEAT: Duration = Duration::from_millis(250);

/// How long running requests may take to end when everything ends.
const DRAIN: Duration = Duration::from_secs(5);

/// How long servers may take to end what they keep for sessions.
const LEAVE: Duration = Duration::from_secs(6);

/// Answers requests for approval by the word of the client's own user. The binary implements it.
#[async_trait]
pub trait UserApprovals: Send + Sync {
    /// Whether the client's user may answer this one: policy has to say so.
    fn may_ask(&self, request: &ApprovalRequest) -> bool;

    /// Takes the answer.
    ///
    /// # Errors
    /// When it cannot be kept; then the request waits on.
    async fn answer(&self, request: &ApprovalRequest, approved: bool) -> Result<(), String>;
}

/// How sessions are served.
#[derive(Clone)]
pub struct McpOptions {
    /// The tool servers that are offered, by id, in order. With several, names of tools and prompts
    /// are `server__name`.
    pub servers: Vec<String>,
    /// The versions of the protocol that are spoken.
    pub versions: Vec<String>,
    /// How much clients may ask for.
    pub limits: McpLimits,
    /// After how long a stream is closed for its client to come back.
    pub rotate_streams: Option<Duration>,
    /// After how long a client whose stream was closed should come back.
    pub retry: Duration,
    /// Who takes the answers of clients' users to requests for approval; nobody when absent.
    pub user_approvals: Option<Arc<dyn UserApprovals>>,
    /// Where an operator reads what happens.
    pub log: Log,
}

impl McpOptions {
    /// The usual options for these tool servers.
    #[must_use]
    pub fn new(servers: Vec<String>) -> Self {
        Self {
            servers,
            versions: SUPPORTED.map(str::to_owned).to_vec(),
            limits: McpLimits::default(),
            rotate_streams: None,
            retry: Duration::from_millis(1000),
            user_approvals: None,
            log: Log::default(),
        }
    }
}

impl fmt::Debug for McpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpOptions")
            .field("servers", &self.servers)
            .field("versions", &self.versions)
            .field("limits", &self.limits)
            .field("rotate_streams", &self.rotate_streams)
            .finish_non_exhaustive()
    }
}

/// Serves sessions.
#[derive(Debug, Clone)]
pub struct McpService {
    pub(crate) shared: Arc<Shared>,
}

/// What all sessions share.
pub(crate) struct Shared {
    pub(crate) orchestrator: Arc<CrossProtocolOrchestrator<'static>>,
    pub(crate) admission: Arc<dyn Admission>,
    pub(crate) options: McpOptions,
    pub(crate) names: Names,
    pub(crate) sessions: Sessions,
    pub(crate) retained: Arc<Retained>,
    pub(crate) turnstile: Turnstile,
    /// Cancelled when everything ends.
    pub(crate) closing: CancellationToken,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpService").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn window(&self) -> Window {
        let limits = &self.options.limits;
        Window {
            events: limits.window_events,
            bytes: limits.window_bytes,
            retained: limits.retained_bytes,
            queued: limits.queued_notifications,
        }
    }

    pub(crate) fn retry_ms(&self) -> u64 {
        u64::try_from(self.options.retry.as_millis()).unwrap_or(u64::MAX)
    }

    /// The table of deferred tasks, which are kept for so long.
    pub(crate) fn deferred(&self, lifetime: Duration) -> DeferredTasks {
        let most_open = self.options.limits.tasks;
        let limits = TaskLimits { most_open, lifetime, ..TaskLimits::default() };
        DeferredTasks::new((*self.orchestrator).clone(), limits)
    }
}

impl McpService {
    /// A service in front of this orchestrator. Must be made within a runtime.
    #[must_use]
    pub fn new(
        orchestrator: Arc<CrossProtocolOrchestrator<'static>>,
        admission: Arc<dyn Admission>,
        options: McpOptions,
    ) -> Self {
        let shared = Arc::new(Shared {
            orchestrator,
            admission,
            names: Names::new(options.servers.clone()),
            sessions: Sessions::default(),
            retained: Arc::default(),
            turnstile: Turnstile::default(),
            closing: CancellationToken::new(),
            options,
        });
        let (watched, closing) = (Arc::downgrade(&shared), shared.closing.clone());
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = closing.cancelled() => return,
                    () = tokio::time::sleep(BEAT) => {}
                }
                let Some(shared) = watched.upgrade() else { return };
                let limits = &shared.options.limits;
                shared.sessions.expire(limits.idle);
                shared.sessions.make_room(&shared.retained, limits.retained_bytes);
            }
        });
        Self { shared }
    }

    /// How many sessions are open.
    #[must_use]
    pub fn open_sessions(&self) -> usize {
        self.shared.sessions.count()
    }

    /// Ends every session, and what their servers keep for them. What runs may end first, for a
    /// while.
    pub async fn close(&self) {
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
