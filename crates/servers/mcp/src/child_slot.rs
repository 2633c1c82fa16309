//! Starts a child when it is needed, and another when it has failed, with the log level and the
//! subscriptions of the one before.

use std::sync::Arc;
use std::time::Duration;

use chio_core::text::members;
use chio_kernel::SessionContext;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::backoff::Backoff;
use crate::child::{Child, ChildConfig};
use crate::error::McpError;
use crate::manifest::Manifests;
use crate::options::{McpServerOptions, Sharing};
use crate::outside::{First, ServedSessions};
use crate::stdio::Link;
use crate::subscriptions::Subscriptions;

/// The place of one child at a time.
pub(crate) struct ChildSlot {
    config: Arc<ChildConfig>,
    pub(crate) subscriptions: Arc<Subscriptions>,
    /// Held while what the child is subscribed to changes.
    pub(crate) subscribing: tokio::sync::Mutex<()>,
    log_level: Mutex<Option<String>>,
    taken: tokio::sync::Mutex<Taken>,
    closing: CancellationToken,
}

#[derive(Default)]
struct Taken {
    by: Option<(Arc<Child>, Link)>,
    backoff: Backoff,
}

impl ChildSlot {
    /// The slot that sessions share; or that the first has, where its client is told of before.
    pub(crate) fn shared(settings: Arc<McpServerOptions>, manifests: Arc<Manifests>) -> Self {
        let subscriptions = Arc::<Subscriptions>::default();
        let sessions = match (settings.sharing, &settings.client) {
            (Sharing::Single, Some(client)) => ServedSessions::First(First::new(client.clone())),
            _ => ServedSessions::Shared(Arc::clone(&subscriptions)),
        };
        Self::new(ChildConfig { settings, manifests, sessions }, subscriptions)
    }

    /// The slot of a session.
    pub(crate) fn for_session(&self, session: SessionContext) -> Self {
        let ChildConfig { settings, manifests, .. } = &*self.config;
        let (settings, manifests) = (Arc::clone(settings), Arc::clone(manifests));
        let sessions = ServedSessions::Session(session);
        Self::new(ChildConfig { settings, manifests, sessions }, Arc::default())
    }

    fn new(config: ChildConfig, subscriptions: Arc<Subscriptions>) -> Self {
        Self {
            config: Arc::new(config),
            subscriptions,
            subscribing: tokio::sync::Mutex::default(),
            log_level: Mutex::default(),
            taken: tokio::sync::Mutex::default(),
            closing: CancellationToken::new(),
        }
    }

    /// The session whose slot it is.
    pub(crate) fn session(&self) -> Option<&SessionContext> {
        self.config.sessions.session()
    }

    /// Gives the slot to a session, where it waits for one whose client is this one's.
    pub(crate) fn take(&self, context: &SessionContext) -> bool {
        self.config.sessions.take(context)
    }

    /// The child; one is started when there is none.
    ///
    /// # Errors
    /// When it cannot be started, or failed a moment ago.
    pub(crate) async fn child(&self) -> Result<Arc<Child>, McpError> {
        let mut taken = self.taken.lock().await;
        if self.closing.is_cancelled() {
            return Err(McpError::Stopped);
        }
        let limits = &self.config.settings.limits;
        if let Some((child, _)) = &taken.by {
            let Some(ended_at) = child.conversation.ended_at() else {
                return Ok(Arc::clone(child));
            };
            let lived = ended_at.saturating_duration_since(child.started_at);
            taken.by = None;
            taken.backoff.failed(lived, ended_at, limits);
        }
        if let Some(left) = taken.backoff.remaining(Instant::now()) {
            return Err(McpError::Pausing(left));
        }
        let starting = async {
            let (child, link) = Child::start(&self.config).await?;
            self.restore(&child).await;
            Ok((child, link))
        };
        let started = tokio::select! {
            started = starting => started,
            () = self.closing.cancelled() => Err(McpError::Stopped),
        };
        match started {
            Ok((child, link)) => {
                taken.by = Some((Arc::clone(&child), link));
                Ok(child)
            }
            Err(error) => {
                taken.backoff.failed(Duration::ZERO, Instant::now(), limits);
                self.config.settings.note(&error);
                Err(error)
            }
        }
    }

    /// The child, if one is there.
    pub(crate) async fn present(&self) -> Option<Arc<Child>> {
        let taken = self.taken.lock().await;
        let (child, _) = taken.by.as_ref()?;
        child.conversation.ended_at().is_none().then(|| Arc::clone(child))
    }

    /// From which level on the session wants to read the child's log.
    pub(crate) fn set_log_level(&self, level: &str) {
        *self.log_level.lock() = Some(level.to_owned());
    }

    /// Gives a new child the log level and the subscriptions of the one before.
    async fn restore(&self, child: &Child) {
        let settings = &self.config.settings;
        let level = self.log_level.lock().clone();
        let level = level.map(|level| ("logging/setLevel", log_level(&level)));
        let subscribe = |uri| ("resources/subscribe", members(json!({"uri": uri})));
        let uris = self.subscriptions.uris().into_iter().map(subscribe);
        let restoring = async {
            for (method, params) in level.into_iter().chain(uris) {
                if let Err(error) = child.conversation.request(method, params).await {
                    settings.note(format_args!("`{method}` failed after a restart: {error}"));
                }
            }
        };
        if timeout(settings.limits.list, restoring).await.is_err() {
            settings.note("not all subscriptions could be made again after a restart");
        }
    }

    /// Ends the child; another is started when it is needed.
    pub(crate) async fn rest(&self) {
        // Held to its end, so that there are never two.
        let mut taken = self.taken.lock().await;
        if let Some((_, link)) = taken.by.take() {
            link.stop().await;
        }
    }

    /// Ends the child; there will be no other.
    pub(crate) async fn close(&self) {
        self.closing.cancel();
        self.rest().await;
        // What the server itself offers stays known.
        if let Some(session_id) = self.config.sessions.session_id() {
            self.config.manifests.remove(session_id);
        }
    }
}

/// The parameters by which a child learns what to log.
pub(crate) fn log_level(level: &str) -> Map<String, Value> {
    members(json!({"level": level}))
}
