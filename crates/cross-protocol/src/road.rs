//! What an edge needs of the orchestrator.

use std::future::Future;
use std::sync::Arc;

use chio_core::capability::CapabilityToken;
use chio_core::crypto::PublicKey;
use chio_kernel::store::StoreResult;
use chio_kernel::{Caller, KernelError};
use tokio::sync::broadcast;

use crate::orchestrated::OrchestratedToolCall;
use crate::request::OrchestratedRequest;

/// The road as an edge sees it: [`crate::CrossProtocolOrchestrator`], or a script in an edge's
/// tests.
pub trait Road: Send + Sync + 'static {
    /// Runs a call; see [`crate::CrossProtocolOrchestrator::run`].
    fn run(
        &self,
        request: OrchestratedRequest,
        caller: Arc<dyn Caller>,
    ) -> impl Future<Output = Result<OrchestratedToolCall, KernelError>> + Send;

    /// The tokens of this subject that are valid now.
    fn capabilities_of(
        &self,
        subject: &PublicKey,
    ) -> impl Future<Output = StoreResult<Vec<CapabilityToken>>> + Send;

    /// Ids of tokens as they are revoked.
    fn revocations(&self) -> broadcast::Receiver<String>;

    /// Whether the token, or one that it comes from, is known to be revoked.
    fn is_revoked(&self, token: &CapabilityToken) -> bool;

    /// Whether the kernel has verified exactly this token, or it is one that its store knows.
    fn has_verified(&self, token: &CapabilityToken) -> bool;
}
