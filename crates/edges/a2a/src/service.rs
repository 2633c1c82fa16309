//! The A2A edge: what all its requests share.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use chio_cross_protocol::{Admission, CrossProtocolOrchestrator, DeferredTasks};
use chio_edge::auth::HttpAuth;
use chio_edge::limits::{ConcurrencyLimit, RateLimiter};
use chio_edge::tasks::TableLimits;
use chio_edge::{Carrier, Edge, EdgeKind, SettingError};
use tokio_util::sync::CancellationToken;

use crate::card_url;
use crate::catalog::Catalogs;
use crate::config::{A2aEdgeConfig, A2aError};
use crate::contexts::{self, ContextTable};
use crate::convert::state_of;
use crate::principals::PrincipalCache;
use crate::record::TaskTable;
use crate::running;
use crate::sent::SentMessages;
use crate::settings::{SETTINGS, wrong};
use crate::task_ids::TaskIds;

/// The entry in the list of edges.
pub const EDGE: EdgeKind = EdgeKind {
    name: "a2a",
    announcement: "A2A on ",
    path: "",
    address_hint: "card at /.well-known/agent-card.json",
    carriers: &[Carrier::Http],
    admits_ended: true,
    default_listener: "http",
    asks_users: false,
    settings: SETTINGS,
    check: |settings, listens| match settings.text("url") {
        Some(url) => card_url::read(url).map(drop).map_err(|message| wrong("url", message)),
        None if listens.is_some_and(|address| address.ip().is_unspecified()) => {
            let message = "expected where clients reach it, since it listens at every address";
            Err(wrong("url", message.to_owned()))
        }
        None => Ok(()),
    },
    start: |context, settings| {
        let options = A2aEdgeConfig::from_settings(&context, settings)?;
        let service = A2aService::new(context.orchestrator, context.admission, options);
        let service =
            service.map_err(|error| SettingError { key: None, message: error.to_string() })?;
        Ok(Arc::new(service))
    },
};

/// How long running calls may take to end when everything ends.
const DRAIN: Duration = Duration::from_secs(5);

/// Serves the tools behind a kernel as an agent.
#[derive(Clone)]
pub struct A2aService {
    pub(crate) shared: Arc<EdgeState>,
}

/// What all requests share.
pub(crate) struct EdgeState {
    pub(crate) orchestrator: Arc<CrossProtocolOrchestrator<'static>>,
    pub(crate) admission: Arc<dyn Admission>,
    pub(crate) options: A2aEdgeConfig,
    pub(crate) catalogs: Catalogs,
    pub(crate) principals: PrincipalCache,
    pub(crate) tasks: TaskTable,
    pub(crate) sent: SentMessages,
    pub(crate) contexts: ContextTable,
    pub(crate) deferred: DeferredTasks,
    pub(crate) task_ids: TaskIds,
    pub(crate) rate_limiter: RateLimiter,
    /// Bounds the calls that run.
    pub(crate) running: ConcurrencyLimit,
    /// Cancelled when everything ends.
    pub(crate) closing: CancellationToken,
}

impl A2aService {
    /// A service in front of this orchestrator. Must be made within a runtime.
    ///
    /// # Errors
    /// When a text that every card repeats says nothing, or a manifest breaks a rule.
    pub fn new(
        orchestrator: Arc<CrossProtocolOrchestrator<'static>>,
        admission: Arc<dyn Admission>,
        options: A2aEdgeConfig,
    ) -> Result<Self, A2aError> {
        options.check()?;
        let wrong = |(server, error)| A2aError::Manifest { server, error };
        orchestrator.check_manifests(&options.servers).map_err(wrong)?;
        let limits = &options.limits;
        let deferred = DeferredTasks::new((*orchestrator).clone(), limits.task_limits());
        let shared = EdgeState {
            catalogs: Catalogs::new(),
            deferred: deferred.with_states(|outcome, chunks| state_of(outcome, chunks).stored()),
            tasks: TaskTable::new(TableLimits::default()),
            sent: SentMessages::default(),
            contexts: contexts::table(limits),
            running: ConcurrencyLimit::new(limits.running),
            principals: PrincipalCache::default(),
            task_ids: TaskIds::default(),
            rate_limiter: RateLimiter::new(limits.rate),
            closing: CancellationToken::new(),
            orchestrator,
            admission,
            options,
        };
        let shared = Arc::new(shared);
        tokio::spawn(running::follow_due(Arc::downgrade(&shared)));
        Ok(Self { shared })
    }
}

#[async_trait]
impl Edge for A2aService {
    fn routes(&self, auth: Arc<HttpAuth>) -> Option<Router> {
        Some(self.router(auth))
    }

    fn public_host(&self) -> Option<String> {
        let url = url::Url::parse(&self.shared.options.url).ok()?;
        Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?))
    }

    async fn close(&self) {
        let shared = &self.shared;
        if !shared.running.wait_idle(DRAIN).await {
            shared.closing.cancel();
            // Whatever does not end by then ends with the process.
            shared.running.wait_idle(DRAIN).await;
        }
        shared.running.close();
        shared.closing.cancel();
    }
}
