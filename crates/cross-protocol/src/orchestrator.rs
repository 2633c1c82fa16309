//! The one who calls the kernel.

use std::fmt;
use std::sync::Arc;

use chio_core::capability::CapabilityToken;
use chio_core::crypto::PublicKey;
use chio_core::manifest::ToolManifest;
use chio_kernel::store::StoreResult;
use chio_kernel::{Caller, ChioKernel, Evaluation, KernelError, Session};
use tokio::sync::broadcast;

use crate::DiscoveryProtocol;
use crate::request::{OrchestratedRequest, Way};
use crate::road::Road;

/// Takes calls of every protocol to the kernel. Nobody else does.
#[derive(Clone)]
pub struct CrossProtocolOrchestrator {
    kernel: ChioKernel,
}

impl CrossProtocolOrchestrator {
    /// An orchestrator in front of this kernel.
    #[must_use]
    pub const fn new(kernel: ChioKernel) -> Self {
        Self { kernel }
    }

    /// Runs a call. Dropping the future does not stop it; only the caller's cancellation does.
    ///
    /// # Errors
    /// When no receipt could be made durable: then nothing may be released.
    pub async fn run(
        &self,
        request: OrchestratedRequest,
        caller: Arc<dyn Caller>,
    ) -> Result<Evaluation, KernelError> {
        let way = Way {
            request_id: self.kernel.new_request_id(),
            source: caller.session().protocol,
            target: self.kernel.protocol_of(&request.server_id).unwrap_or_default(),
            now: self.kernel.clock().unix_seconds(),
        };
        self.kernel.evaluate(request.into_call(way)?, caller).await
    }

    /// A new session on a protocol, with whoever has shown to hold this key.
    #[must_use]
    pub fn open_session(&self, protocol: DiscoveryProtocol, peer: Option<PublicKey>) -> Session {
        let unique = self.kernel.new_request_id();
        let unique = unique.strip_prefix("req-").unwrap_or(&unique);
        Session { id: format!("sess-{unique}"), protocol, peer, tenant_id: None }
    }

    /// The tokens of this subject that are valid now.
    ///
    /// # Errors
    /// When the store cannot say.
    pub async fn capabilities_of(&self, subject: &PublicKey) -> StoreResult<Vec<CapabilityToken>> {
        self.kernel.capabilities_of(subject).await
    }

    /// Ids of tokens as they are revoked.
    #[must_use]
    pub fn revocations(&self) -> broadcast::Receiver<String> {
        self.kernel.revocations()
    }

    /// Whether the token, or one that it comes from, is known to be revoked.
    #[must_use]
    pub fn is_revoked(&self, token: &CapabilityToken) -> bool {
        self.kernel.is_revoked(token)
    }

    /// What every tool server offers.
    #[must_use]
    pub fn manifests(&self) -> Vec<ToolManifest> {
        self.kernel.manifests()
    }
}

impl Road for CrossProtocolOrchestrator {
    async fn run(
        &self,
        request: OrchestratedRequest,
        caller: Arc<dyn Caller>,
    ) -> Result<Evaluation, KernelError> {
        self.run(request, caller).await
    }

    async fn capabilities_of(&self, subject: &PublicKey) -> StoreResult<Vec<CapabilityToken>> {
        self.capabilities_of(subject).await
    }

    fn revocations(&self) -> broadcast::Receiver<String> {
        self.revocations()
    }

    fn is_revoked(&self, token: &CapabilityToken) -> bool {
        self.is_revoked(token)
    }

    fn has_verified(&self, token: &CapabilityToken) -> bool {
        self.kernel.has_verified(token)
    }
}

impl fmt::Debug for CrossProtocolOrchestrator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CrossProtocolOrchestrator").finish_non_exhaustive()
    }
}
