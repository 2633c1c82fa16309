//! What every request is served with.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chio_cross_protocol::{Admission, CrossProtocolOrchestrator, DeferredTasks, TaskLimits};
use chio_net::rate::Turnstile;
use tokio_util::sync::CancellationToken;

use crate::book::Book;
use crate::catalog::Catalogs;
use crate::config::{A2aEdgeConfig, A2aError};
use crate::guests::Guests;
use crate::numbers::Numbers;
use crate::places::Places;

/// How long running calls may take to end when everything ends.
const DRAIN: Duration = Duration::from_secs(5);

/// Serves the tools behind a kernel as an agent.
#[derive(Debug, Clone)]
pub struct A2aService {
    pub(crate) shared: Arc<Shared>,
}

/// What all requests share.
pub(crate) struct Shared {
    pub(crate) orchestrator: Arc<CrossProtocolOrchestrator<'static>>,
    pub(crate) admission: Arc<dyn Admission>,
    pub(crate) options: A2aEdgeConfig,
    pub(crate) catalogs: Catalogs,
    pub(crate) guests: Guests,
    pub(crate) book: Book,
    pub(crate) deferred: DeferredTasks,
    pub(crate) numbers: Numbers,
    pub(crate) turnstile: Turnstile,
    /// The places of calls that run.
    pub(crate) places: Places,
    /// Cancelled when everything ends.
    pub(crate) closing: CancellationToken,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("A2aService").field("options", &self.options).finish_non_exhaustive()
    }
}

impl A2aService {
    /// Host and port of the URL that the cards name.
    #[must_use]
    pub fn authority(&self) -> Option<String> {
        let url = url::Url::parse(&self.shared.options.url).ok()?;
        Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?))
    }

    /// A service in front of this orchestrator.
    ///
    /// # Errors
    /// When a text that every card repeats says nothing, or a manifest breaks a rule.
    pub fn new(
        orchestrator: Arc<CrossProtocolOrchestrator<'static>>,
        admission: Arc<dyn Admission>,
        options: A2aEdgeConfig,
    ) -> Result<Self, A2aError> {
        options.check()?;
        let limits = &options.limits;
        let of_tasks = TaskLimits {
            most_open: limits.deferred_per_owner,
            lifetime: limits.task_lifetime,
            max_request: limits.deferred_bytes,
        };
        let shared = Shared {
            catalogs: Catalogs::new(&orchestrator, &options)?,
            deferred: DeferredTasks::new((*orchestrator).clone(), of_tasks),
            book: Book::new(limits.clone()),
            places: Places::new(limits.running),
            guests: Guests::default(),
            numbers: Numbers::default(),
            turnstile: Turnstile::default(),
            closing: CancellationToken::new(),
            orchestrator,
            admission,
            options,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Takes no more calls. What runs may end first, for a while; then it is called off.
    pub async fn close(&self) {
        let shared = &self.shared;
        if !shared.places.emptied(DRAIN).await {
            shared.closing.cancel();
            // Whatever does not end by then ends with the process.
            shared.places.emptied(DRAIN).await;
        }
        shared.places.close();
        shared.closing.cancel();
    }
}
