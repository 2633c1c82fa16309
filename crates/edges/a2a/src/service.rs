//! The A2A edge: what all its requests share.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use chio_cross_protocol::{Admission, CrossProtocolOrchestrator, DeferredTasks, TaskLimits};
use chio_edge::auth::HttpAuth;
use chio_edge::limits::{ConcurrencyLimit, Rate, RateLimiter};
use chio_edge::{Carrier, Edge, EdgeContext, EdgeKind, Form, Setting, SettingError, Settings};
use tokio_util::sync::CancellationToken;

use crate::card_url;
use crate::catalog::Catalogs;
use crate::config::{A2aEdgeConfig, A2aError};
use crate::contexts::{self, ContextTable};
use crate::principals::PrincipalCache;
use crate::record::TaskTable;
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
    settings: &[
        Setting::new("name", Form::Text, "Chio A2A Edge", "the agent's name"),
        Setting::new("description", Form::Text, "a general one", "what the agent is, for people"),
        Setting::new("url", Form::Text, "where it listens", "where clients reach it"),
        Setting::new("http_json", Form::Flag, "true", "whether HTTP+JSON is served, below /rest"),
        Setting::new("tags", Form::TextLists, "{}", "tags of skills, by id"),
        Rate::SETTING,
    ],
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

fn wrong(key: &'static str, message: String) -> SettingError {
    SettingError { key: Some(key), message }
}

impl A2aEdgeConfig {
    fn from_settings(context: &EdgeContext, settings: &Settings) -> Result<Self, SettingError> {
        let url = match settings.text("url") {
            Some(url) => card_url::read(url).map_err(|message| wrong("url", message))?,
            None => context.base_url.clone(),
        };
        let mut options = Self::new(context.servers.clone(), url);
        if let Some(name) = settings.text("name") {
            name.clone_into(&mut options.agent_name);
        }
        if let Some(description) = settings.text("description") {
            description.clone_into(&mut options.agent_description);
        }
        options.http_json = settings.flag("http_json").unwrap_or(true);
        options.tags = settings.text_lists("tags");
        options.limits.rate = Rate::from_settings(settings);
        Ok(options)
    }
}

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
        let wrong = |(server, error)| A2aError::Manifest { server, error };
        orchestrator.check_manifests(&options.servers).map_err(wrong)?;
        let limits = &options.limits;
        let task_limits = TaskLimits {
            most_open: limits.deferred_per_owner,
            lifetime: limits.task_lifetime,
            max_request: limits.deferred_bytes,
        };
        let shared = EdgeState {
            catalogs: Catalogs::new(),
            deferred: DeferredTasks::new((*orchestrator).clone(), task_limits),
            tasks: TaskTable::new(limits.table_limits()),
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
        Ok(Self { shared: Arc::new(shared) })
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
