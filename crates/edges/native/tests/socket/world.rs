//! A server to connect to: a kernel with the demo tools, the edge, and a socket of its own.

use std::sync::Arc;

use async_trait::async_trait;
use chio_core::capability::{CapabilityToken, PresentedToken, ToolGrant};
use chio_core::crypto::Keypair;
use chio_core::message::ToolCallResponse;
use chio_core::receipt::ChioReceipt;
use chio_cross_protocol::{
    Admission, CrossProtocolOrchestrator, DiscoveryProtocol, Principal, Refused, Session,
};
use chio_demo::{DemoOptions, DemoServer};
use chio_edge::{Endpoint, StreamListener};
use chio_native_edge::NativeService;
use chio_policy::Policy;
use chio_testkit::embedded::EmbeddedKernel;
use chio_testkit::kernel::{Clock as _, KernelConfig, Pipeline, SystemClock};
use chio_testkit::process::Wire;
use chio_testkit::{key, token};
use tokio_util::sync::CancellationToken;

/// The key that issues every token.
pub(crate) fn authority() -> Keypair {
    key(1)
}

/// The key of the agent in these tests.
pub(crate) fn agent() -> Keypair {
    key(9)
}

/// Now, in Unix seconds.
pub(crate) fn now() -> u64 {
    SystemClock::default().unix_seconds()
}

/// Admits everyone, with nothing but what their calls bring.
struct Everyone(Arc<CrossProtocolOrchestrator<'static>>);

#[async_trait]
impl Admission for Everyone {
    async fn admit(
        &self,
        protocol: DiscoveryProtocol,
        principal: Principal,
    ) -> Result<Session, Refused> {
        Ok(self.0.open_session(protocol, principal))
    }

    async fn tokens(&self, _principal: &Principal) -> Result<Vec<PresentedToken>, Refused> {
        Ok(Vec::new())
    }
}

/// A server, whose calls the default policy judges.
pub(crate) struct World {
    pub(crate) endpoint: Endpoint,
    pub(crate) embedded: EmbeddedKernel,
}

impl World {
    pub(crate) fn new() -> Self {
        let trusted_issuers = vec![authority().public_key().clone()];
        let config = KernelConfig { trusted_issuers, ..KernelConfig::default() };
        let embedded = EmbeddedKernel::start(config, default_policy());
        let endpoint = Endpoint::Unix(embedded.folder().path("a.sock"));
        let (public_key, clock) = (key(5).public_key().clone(), Arc::new(SystemClock::default()));
        let demo = DemoServer::new(DemoOptions { public_key, clock, notes: None }).unwrap();
        embedded.kernel.register_tool_server(Box::new(demo)).unwrap();
        let orchestrator = Arc::new(CrossProtocolOrchestrator::new(&embedded.kernel).detached());
        let admission = Arc::new(Everyone(Arc::clone(&orchestrator)));
        let service = Arc::new(NativeService::new(orchestrator, admission));
        let listener = embedded.runtime.block_on(StreamListener::bind(&endpoint)).unwrap();
        embedded.runtime.spawn(listener.serve(service, CancellationToken::new()));
        Self { endpoint, embedded }
    }

    /// A bare connection.
    pub(crate) fn connect(&self) -> Wire {
        Wire::connect(&self.endpoint.to_string())
    }

    /// A token of the agent's.
    pub(crate) fn token(&self, id: &str, grants: Vec<ToolGrant>) -> CapabilityToken {
        token::token(&authority(), agent().public_key(), id, grants, now())
    }

    /// The receipts of a token's calls, each of which holds.
    #[track_caller]
    pub(crate) fn receipts(&self, token: &str) -> Vec<ChioReceipt> {
        let all = self.embedded.receipts().into_iter();
        let read = |receipt| -> ChioReceipt {
            let receipt: ChioReceipt = serde_json::from_value(receipt).unwrap();
            receipt.verify().unwrap();
            receipt
        };
        all.map(read).filter(|receipt| receipt.capability_id == token).collect()
    }

    /// Checks that a call left one receipt, which is the one that its answer carried.
    #[track_caller]
    pub(crate) fn check_receipt(&self, response: &ToolCallResponse) {
        let receipts = self.receipts(&response.receipt.capability_id);
        assert_eq!(receipts, std::slice::from_ref(&response.receipt));
    }
}

async fn default_policy() -> Pipeline {
    let policy = Policy::load("default", &std::env::temp_dir(), &Arc::default()).unwrap();
    policy.proven().await.unwrap()
}
