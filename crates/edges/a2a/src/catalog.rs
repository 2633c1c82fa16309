//! The skills there are: made when the tool servers change what they offer, and looked up with
//! every message.

pub(crate) mod skills;

use std::sync::Arc;
use std::time::Duration;

use chio_core::manifest::ToolManifest;
use chio_cross_protocol::CrossProtocolOrchestrator;
use parking_lot::RwLock;
use tokio::time::Instant;

pub(crate) use skills::{Catalog, Skill};

use crate::config::A2aEdgeConfig;
use crate::error::Fault;

/// For how long messages are taken without a look at what the servers offer.
const FRESH: Duration = Duration::from_secs(1);

/// The skills as they are now, and when that was found out.
pub(crate) struct Catalogs {
    current: RwLock<(Arc<Catalog>, Option<Instant>)>,
}

impl Catalogs {
    /// No skill, until the first look at what the servers offer.
    pub(crate) fn new() -> Self {
        Self { current: RwLock::new((Arc::new(Catalog::default()), None)) }
    }

    /// The skills of this very moment. When nothing has changed, nothing is made anew.
    pub(crate) async fn refreshed(
        &self,
        orchestrator: &CrossProtocolOrchestrator<'static>,
        options: &A2aEdgeConfig,
    ) -> Arc<Catalog> {
        let mut manifests = offered(orchestrator, options).await;
        manifests.retain(|manifest| match manifest.check() {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!("server `{}`: {error}", manifest.server_id);
                false
            }
        });
        let now = Instant::now();
        let mut current = self.current.write();
        // Where the manifests are equal, the kernel may still hold new definitions of the tools.
        if current.0.manifests() != manifests || !current.0.is_current(orchestrator) {
            current.0 = Arc::new(Catalog::new(manifests, orchestrator, options));
        }
        current.1 = Some(now);
        Arc::clone(&current.0)
    }

    /// The skills as they were a moment ago.
    async fn recent(
        &self,
        orchestrator: &CrossProtocolOrchestrator<'static>,
        options: &A2aEdgeConfig,
    ) -> Arc<Catalog> {
        let (catalog, looked) = {
            let current = self.current.read();
            (Arc::clone(&current.0), current.1)
        };
        if looked.is_some_and(|looked| looked.elapsed() < FRESH) {
            return catalog;
        }
        self.refreshed(orchestrator, options).await
    }

    /// The skill that is meant: the one named, or the only one.
    pub(crate) async fn find(
        &self,
        named: Option<&str>,
        orchestrator: &CrossProtocolOrchestrator<'static>,
        options: &A2aEdgeConfig,
    ) -> Result<Arc<Skill>, Fault> {
        if let Ok(skill) = self.recent(orchestrator, options).await.find(named)
            && skill.is_current(orchestrator)
        {
            return Ok(Arc::clone(skill));
        }
        self.refreshed(orchestrator, options).await.find(named).cloned()
    }
}

/// What the servers offer that the agent shows.
async fn offered(
    orchestrator: &CrossProtocolOrchestrator<'static>,
    options: &A2aEdgeConfig,
) -> Vec<ToolManifest> {
    let mut manifests = orchestrator.manifests().await;
    manifests.retain(|manifest| options.servers.contains(&manifest.server_id));
    manifests
}
