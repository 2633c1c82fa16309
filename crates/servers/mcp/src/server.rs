//! An MCP server as the kernel sees it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use chio_core::manifest::ToolManifest;
use chio_core::protocol::DiscoveryProtocol;
use chio_kernel::{
    CallContext, KernelError, Permit, ResourceProvider, SessionContext, ToolInvocation, ToolOutput,
    ToolServerConnection,
};
use parking_lot::{Mutex, MutexGuard};
use tokio::task::JoinSet;

use crate::child_slot::ChildSlot;
use crate::error::McpError;
use crate::manifest::Manifests;
use crate::options::{McpServerOptions, Sharing};

/// A handle on an MCP server. Its children are killed when the last handle is dropped.
#[derive(Clone)]
pub struct McpServer {
    inner: Arc<Inner>,
}

struct Inner {
    settings: Arc<McpServerOptions>,
    manifests: Arc<Manifests>,
    shared: Arc<ChildSlot>,
    sessions: Mutex<HashMap<String, Opened>>,
}

/// A session that was opened with the server.
#[derive(Clone)]
pub(crate) enum Opened {
    /// It has its own child.
    Own(Arc<ChildSlot>),
    /// It works with the shared one.
    Shared(SessionContext),
}

impl McpServer {
    /// Starts the shared child and learns from it what the server offers.
    ///
    /// # Errors
    /// When it does not start, or does not introduce itself.
    pub async fn start(options: McpServerOptions) -> Result<Self, McpError> {
        let settings = Arc::new(options);
        let manifests = Arc::new(Manifests::new(&settings.server_id, settings.public_key.clone()));
        let shared = Arc::new(ChildSlot::shared(Arc::clone(&settings), Arc::clone(&manifests)));
        shared.child().await?;
        if settings.sharing == Sharing::Single && settings.client.is_none() {
            shared.rest().await;
        }
        let inner = Inner { settings, manifests, shared, sessions: Mutex::default() };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Ends every child as gently as it lets us, and waits until all are gone. Nothing can be
    /// called any more.
    pub async fn stop(&self) {
        let sessions: Vec<Opened> = self.sessions().drain().map(|(_, opened)| opened).collect();
        let mut closing = JoinSet::new();
        for opened in sessions {
            if let Opened::Own(slot) = opened {
                closing.spawn(async move { slot.close().await });
            }
        }
        self.inner.shared.close().await;
        closing.join_all().await;
    }

    pub(crate) fn sessions(&self) -> MutexGuard<'_, HashMap<String, Opened>> {
        self.inner.sessions.lock()
    }

    /// How a session was opened, if it was.
    pub(crate) fn opened(&self, session_id: &str) -> Option<Opened> {
        self.sessions().get(session_id).cloned()
    }

    /// A session's slot was closed.
    pub(crate) fn forget(&self, session_id: &str, closed: &Arc<ChildSlot>) {
        let mut sessions = self.sessions();
        let is_it = |opened: &Opened| matches!(opened, Opened::Own(it) if Arc::ptr_eq(it, closed));
        if sessions.get(session_id).is_some_and(is_it) {
            sessions.remove(session_id);
        }
    }

    /// Where the child of a session works.
    pub(crate) fn slot(&self, session_id: &str) -> Arc<ChildSlot> {
        match self.opened(session_id) {
            Some(Opened::Own(slot)) => slot,
            Some(Opened::Shared(_)) | None => Arc::clone(&self.inner.shared),
        }
    }

    pub(crate) fn shared(&self) -> &Arc<ChildSlot> {
        &self.inner.shared
    }

    pub(crate) fn sharing(&self) -> Sharing {
        self.inner.settings.sharing
    }

    pub(crate) fn settings(&self) -> &McpServerOptions {
        &self.inner.settings
    }
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServer").field("options", &self.inner.settings).finish_non_exhaustive()
    }
}

#[async_trait]
impl ToolServerConnection for McpServer {
    fn manifest(&self) -> Arc<ToolManifest> {
        self.inner.manifests.current()
    }

    fn protocol(&self) -> DiscoveryProtocol {
        DiscoveryProtocol::Mcp
    }

    async fn invoke(
        &self,
        _permit: Permit,
        invocation: ToolInvocation,
        context: &CallContext<'_>,
    ) -> Result<ToolOutput, KernelError> {
        context.not_sent();
        let child = self.slot(&context.session().id).child().await?;
        Ok(ToolOutput::value(child.call_tool(invocation, context).await?))
    }

    async fn stop(&self) {
        Self::stop(self).await;
    }

    fn resources(&self) -> Option<&dyn ResourceProvider> {
        Some(self)
    }
}
