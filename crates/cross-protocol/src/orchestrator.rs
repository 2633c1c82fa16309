//! The only caller of the kernel.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;

use chio_core::capability::CapabilityToken;
use chio_core::crypto::PublicKey;
use chio_core::fidelity::BridgeFidelity;
use chio_core::manifest::{ToolDefinition, ToolManifest};
use chio_core::principal::Principal;
use chio_core::signed::{ArtifactError, Signed};
use chio_kernel::store::StoreResult;
use chio_kernel::{Caller, ChioKernel, KernelError, Session, ToolProtocols, UnusableTool};
use serde_json::Value;
use tokio::sync::broadcast;

use crate::DiscoveryProtocol;
use crate::fidelity::{AcpCategory, Facts, fidelity};
use crate::orchestrated::{OrchestratedToolCall, Projection};
use crate::prepare::{PreparedCall, RouteContext};
use crate::registry::TargetProtocolRegistry;
use crate::request::{MAX_ORIGIN_ID, OrchestratedRequest};
use crate::route::RouteAvailabilityStatus;

/// Takes calls of every protocol to the kernel. Nothing else does.
///
/// It has a handle of its own on the kernel; the lifetime says whose kernel it was made for, and
/// [`Self::detached`] lets go of it.
#[derive(Clone)]
pub struct CrossProtocolOrchestrator<'a> {
    kernel: ChioKernel,
    routes: Arc<Routes>,
    made_for: PhantomData<&'a ChioKernel>,
}

/// Where calls may go.
#[derive(Debug, Clone)]
struct Routes {
    registry: TargetProtocolRegistry,
    /// What is known of a protocol; one that nothing is known of is available if it is registered.
    availability: BTreeMap<DiscoveryProtocol, RouteAvailabilityStatus>,
}

impl<'a> CrossProtocolOrchestrator<'a> {
    /// An orchestrator in front of this kernel, with every executor.
    pub fn new(kernel: &'a ChioKernel) -> Self {
        let registry = TargetProtocolRegistry::complete();
        let routes = Arc::new(Routes { registry, availability: BTreeMap::new() });
        Self { kernel: kernel.clone(), routes, made_for: PhantomData }
    }

    /// With these executors only.
    #[must_use]
    pub fn with_registry(mut self, registry: TargetProtocolRegistry) -> Self {
        Arc::make_mut(&mut self.routes).registry = registry;
        self
    }

    /// With a protocol that can be used, or cannot.
    pub fn with_protocol_availability(
        mut self,
        protocol: DiscoveryProtocol,
        status: RouteAvailabilityStatus,
    ) -> Self {
        Arc::make_mut(&mut self.routes).availability.insert(protocol, status);
        self
    }

    /// The same orchestrator, not bound to a lifetime.
    pub fn detached(self) -> CrossProtocolOrchestrator<'static> {
        CrossProtocolOrchestrator {
            kernel: self.kernel,
            routes: self.routes,
            made_for: PhantomData,
        }
    }

    /// Runs a call. Dropping the future does not stop it, only the caller's cancellation does; kept
    /// and not polled, it stands still.
    ///
    /// # Errors
    /// When no receipt could be made durable: then nothing may be released.
    pub async fn run(
        &self,
        request: OrchestratedRequest,
        caller: Arc<dyn Caller>,
    ) -> Result<OrchestratedToolCall, KernelError> {
        let continued = self.continued(&request).await;
        let source = caller.session().protocol;
        let PreparedCall { call, executor } = self.prepare(request, source, continued)?;
        let (request_id, target) = (call.request_id.clone(), call.target);
        let trace_id = call.trace_id.clone().unwrap_or_default();
        let projection = executor.map(|executor| {
            let origin_request_id = call.origin_request_id.clone();
            Box::new(Projection {
                executor,
                origin_request_id: origin_request_id.unwrap_or_else(|| request_id.clone()),
                server_id: call.server_id.clone(),
                tool_name: call.tool_name.clone(),
            })
        });
        let evaluation = self.kernel.evaluate(call, caller).await?;
        Ok(OrchestratedToolCall { evaluation, request_id, trace_id, target, projection })
    }

    /// The trace that the call continues by the word of a kernel elsewhere that counts. The call
    /// must be its agent's; the kernel looks at all the rest, and denies.
    async fn continued(&self, request: &OrchestratedRequest) -> Option<String> {
        let intent = request.governed_intent.as_ref()?;
        let (token, context) = (intent.continuation().ok()??, intent.call_chain.as_ref()?);
        let audience = token.audience.as_ref().is_none_or(|audience| {
            audience.server_id == request.server_id && audience.tool_name == request.tool_name
        });
        let now = self.kernel.clock().unix_seconds();
        let chain = &context.chain_id;
        let counts = self.kernel.trusts_kernel(&token.signer)
            && token.context == *context
            && token.subject == request.agent
            && audience
            && (token.issued_at..token.expires_at).contains(&now)
            && !chain.trim().is_empty()
            && chain.len() <= MAX_ORIGIN_ID
            && token.check_signature().is_ok()
            && self.kernel.check_token(&request.token, &request.agent).await.is_ok();
        counts.then(|| chain.clone())
    }

    pub(crate) const fn kernel(&self) -> &ChioKernel {
        &self.kernel
    }

    fn prepare(
        &self,
        request: OrchestratedRequest,
        source: DiscoveryProtocol,
        continued: Option<String>,
    ) -> Result<PreparedCall, KernelError> {
        let kernel = &self.kernel;
        let known = kernel.protocols_of(&request.server_id, &request.tool_name);
        let requested = self.target_of(known);
        let route = RouteContext {
            fidelity: self.fidelity_to(&request.server_id, &request.tool_name, source, requested),
            request_id: kernel.new_request_id(),
            source,
            requested,
            spoken: known.map_or(DiscoveryProtocol::Native, |known| known.spoken),
            now: kernel.clock().unix_seconds(),
            continued,
            registry: &self.routes.registry,
            availability: &self.routes.availability,
        };
        Ok(PreparedCall::new(request, route)?)
    }

    /// The protocol that a tool is to be called by.
    fn target_of(&self, known: Option<ToolProtocols>) -> DiscoveryProtocol {
        known.map_or_else(|| self.routes.registry.default_target(), |known| known.target)
    }

    /// How honestly a protocol can present a tool to its callers; its own presents all. None for a
    /// tool that is not known.
    pub fn fidelity(
        &self,
        server_id: &str,
        tool_name: &str,
        source: DiscoveryProtocol,
    ) -> Option<BridgeFidelity> {
        let target = self.target_of(self.kernel.protocols_of(server_id, tool_name));
        self.fidelity_to(server_id, tool_name, source, target)
    }

    fn fidelity_to(
        &self,
        server_id: &str,
        tool_name: &str,
        source: DiscoveryProtocol,
        target: DiscoveryProtocol,
    ) -> Option<BridgeFidelity> {
        if source == DiscoveryProtocol::Native && target == source {
            return Some(BridgeFidelity::Lossless);
        }
        let tool = self.kernel.tool(server_id, tool_name)?;
        let supported =
            target == DiscoveryProtocol::Native || self.routes.registry.executor(target).is_some();
        let facts = Facts::of(&tool, supported, AcpCategory::default());
        Some(fidelity(source.into(), &facts))
    }

    /// This many numbers in a row that this store has never given out. Gives the first.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn task_numbers(&self, count: u32) -> StoreResult<u64> {
        self.kernel.store().take_numbers(count).await
    }

    /// Whether the word of this kernel elsewhere counts here.
    #[must_use]
    pub fn trusts_kernel(&self, key: &PublicKey) -> bool {
        self.kernel.trusts_kernel(key)
    }

    /// A new session of a principal.
    pub fn open_session(&self, protocol: DiscoveryProtocol, principal: Principal) -> Session {
        Session { id: self.kernel.new_session_id(), protocol, principal: Arc::new(principal) }
    }

    /// The tokens of this subject that are valid now.
    ///
    /// # Errors
    /// When the store cannot say.
    pub async fn capabilities_of(&self, subject: &PublicKey) -> StoreResult<Vec<CapabilityToken>> {
        self.kernel.capabilities_of(subject).await
    }

    /// A value without what a guard would keep out of a receipt; none where there is no such thing.
    pub fn redacted(&self, value: &Value) -> Option<Value> {
        self.kernel.pipeline().redacted(value)
    }

    /// Ids of tokens as they are revoked.
    pub fn revocations(&self) -> broadcast::Receiver<String> {
        self.kernel.revocations()
    }

    /// Whether the token, or one that it comes from, is known to be revoked.
    #[must_use]
    pub fn is_revoked(&self, token: &CapabilityToken) -> bool {
        self.kernel.is_revoked(token)
    }

    /// Whether exactly this token has been verified here and is remembered.
    #[must_use]
    pub fn has_verified(&self, token: &CapabilityToken) -> bool {
        self.kernel.has_verified(token)
    }

    /// A tool as its server publishes it.
    pub fn tool(&self, server_id: &str, tool_name: &str) -> Option<Arc<ToolDefinition>> {
        self.kernel.tool(server_id, tool_name)
    }

    /// The tools of a server that are not listed, since every call of them would be denied.
    pub fn unusable_tools(&self, server_id: &str) -> Arc<Vec<UnusableTool>> {
        self.kernel.unusable_tools(server_id)
    }

    /// Why a tool server is not there that is to come.
    pub fn absent(&self, server_id: &str) -> Option<String> {
        self.kernel.absent(server_id)
    }

    /// The names of tool servers as they are registered, from now on.
    pub fn registered_servers(&self) -> broadcast::Receiver<String> {
        self.kernel.registered_servers()
    }

    /// Whether what these tool servers offer is as manifests have to be.
    ///
    /// # Errors
    /// With the first that is not, and why.
    pub fn check_manifests(&self, servers: &[String]) -> Result<(), (String, ArtifactError)> {
        let mut manifests = self.kernel.manifests();
        manifests.retain(|manifest| servers.contains(&manifest.server_id));
        manifests.iter().try_for_each(|manifest| {
            manifest.check().map_err(|error| (manifest.server_id.clone(), error))
        })
    }

    /// What every tool server offers, as far as the output guards let it be shown.
    pub async fn manifests(&self) -> Vec<ToolManifest> {
        self.kernel.shown_manifests().await
    }
}
