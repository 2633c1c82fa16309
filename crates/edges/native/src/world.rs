//! A kernel with tools and an inbox, for connections to be served with.

mod agent;
mod tools;

use std::sync::Arc;
use std::time::Duration;

use chio_core::capability::{CapabilityToken, Validity};
use chio_core::checkpoint::log_id;
use chio_core::crypto::{PublicKey, Signature};
use chio_core::frame::MAX_PAYLOAD;
use chio_core::governance::{ApprovalDecision, ApprovalToken};
use chio_core::message::ToolCallRequest;
use chio_core::receipt::{ChioReceipt, Decision};
use chio_core::signed::Signed as _;
use chio_cross_protocol::{CrossProtocolOrchestrator, DiscoveryProtocol, Principal, Session};
use chio_edge::Place;
use chio_store::{OpenStore, StoreUrl};
use chio_testkit::kernel::store::{
    Answered, Approval, ApprovalQuery, ApprovalState, Ledger, SharedStore,
};
use chio_testkit::kernel::{
    ChioKernel, Clock, KernelConfig, KernelParts, Pipeline, SystemRandomness,
};
use chio_testkit::{key, token as tokens};
use serde_json::Value;

use crate::connection::{ConnectionOptions, Limits, OnEof};

pub(crate) use agent::Agent;
use tools::Tools;

/// No test waits longer for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// The second in which every test takes place.
pub(crate) const NOW: u64 = 150;
/// The seeds of their keys.
const ISSUER: u8 = 1;
const KERNEL: u8 = 7;
const APPROVER: u8 = 8;

/// A clock that stands.
#[derive(Debug)]
struct StandingClock;

impl Clock for StandingClock {
    fn unix_millis(&self) -> u64 {
        NOW * 1000
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

pub(crate) fn subject(seed: u8) -> PublicKey {
    key(seed).public_key().clone()
}

/// A token of this subject for every tool.
pub(crate) fn token_of(seed: u8, id: &str) -> CapabilityToken {
    let validity = Validity { issued_at: 100, expires_at: 200 };
    tokens::token_at(&key(ISSUER), &subject(seed), id, vec![tokens::grant("srv/*")], validity)
}

/// A token of subject 2.
pub(crate) fn token(id: &str) -> CapabilityToken {
    token_of(2, id)
}

/// A token that subject 2 makes of its own.
pub(crate) fn child(id: &str, parent: &CapabilityToken) -> CapabilityToken {
    tokens::child(&key(ISSUER), parent, &key(2), &subject(2), id)
}

pub(crate) fn request(id: &str, tool: &str, params: Value) -> ToolCallRequest {
    ToolCallRequest::new(id, token("cap-1"), "srv", tool, params)
}

pub(crate) fn options(peer: Option<PublicKey>) -> ConnectionOptions {
    let principal = Principal { subject: peer, ..Principal::anonymous() };
    let session = Session::anonymous("sess-1", DiscoveryProtocol::Native);
    let session = Session { principal: Arc::new(principal), ..session };
    let place = Arc::new(Place::alone());
    ConnectionOptions { session, limits: Limits::default(), on_eof: OnEof::Cancel, place }
}

/// A kernel on a store of its own, with its tools.
pub(crate) struct World {
    pub(crate) orchestrator: Arc<CrossProtocolOrchestrator<'static>>,
    pub(crate) kernel: ChioKernel,
    pub(crate) tools: Tools,
    ledger: Arc<dyn Ledger>,
}

impl World {
    pub(crate) async fn new() -> Self {
        let store = OpenStore::open(&StoreUrl::Memory, Arc::new(StandingClock)).await.unwrap();
        let ledger = store.take_slot(Some(key(KERNEL))).await.unwrap().ledger;
        let (kernel, tools) = (start(&ledger, &store.shared()).await, Tools::new());
        kernel.register_tool_server(Box::new(tools.clone())).unwrap();
        let orchestrator = Arc::new(CrossProtocolOrchestrator::new(&kernel).detached());
        Self { orchestrator, kernel, tools, ledger }
    }

    /// Has a second kernel recover the log, as after a crash: what runs here gets no answer.
    pub(crate) async fn recover(&self) {
        start(&self.ledger, self.kernel.store()).await;
    }

    /// Keeps a token as one that was issued.
    pub(crate) async fn issue(&self, token: &CapabilityToken) {
        assert!(self.kernel.store().remember(token).await.unwrap());
    }

    pub(crate) async fn revoke(&self, id: &str) {
        self.kernel.revoke(id).await.unwrap();
    }

    async fn receipts(&self) -> Vec<ChioReceipt> {
        let log_id = log_id(self.kernel.public_key());
        let entries = self.kernel.store().entries(&log_id, 1, 1000).await.unwrap();
        entries.iter().map(|entry| serde_json::from_slice(&entry.body).unwrap()).collect()
    }

    /// How many calls the kernel has begun: those that run, and those that have a receipt. A call
    /// that is about to end may count twice.
    pub(crate) async fn begun(&self) -> usize {
        self.kernel.in_flight() + self.receipts().await.len()
    }

    /// How many calls were cancelled, as their receipts say.
    pub(crate) async fn cancelled(&self) -> usize {
        let is_cancelled =
            |it: &&ChioReceipt| matches!(it.decision, Some(Decision::Cancelled { .. }));
        self.receipts().await.iter().filter(is_cancelled).count()
    }

    /// The calls that ever waited for an approval, or are in this state of it, oldest first.
    pub(crate) async fn inbox(&self, state: Option<ApprovalState>) -> Vec<Approval> {
        let query = ApprovalQuery { state, limit: 1000, cursor: None };
        let rows = self.kernel.store().approvals(&query).await.unwrap();
        rows.into_iter().rev().map(|(_, approval)| approval).collect()
    }

    /// Approves this many calls, as the operator would: those that have waited longest.
    pub(crate) async fn approve(&self, calls: usize) {
        let pending = async || self.inbox(Some(ApprovalState::Pending)).await;
        eventually("calls in the inbox", async || pending().await.len() >= calls).await;
        for Approval { request, .. } in pending().await.into_iter().take(calls) {
            let answer = ApprovalToken {
                id: format!("yes-to-{}", request.id),
                approver: subject(APPROVER),
                subject: request.subject,
                governed_intent_hash: request.intent_hash,
                request_id: request.request_id,
                threshold_proposal_hash: None,
                issued_at: NOW,
                expires_at: request.expires_at,
                decision: ApprovalDecision::Approved,
                algorithm: None,
                signature: Signature::blank(),
            };
            let answer = answer.signed(&key(APPROVER)).unwrap();
            let answered = self.kernel.store().answer(&request.id, &answer, NOW).await.unwrap();
            assert_eq!(answered, Answered::Recorded);
        }
    }

    /// Checks that this many calls come to wait for an approval, and this many to run, and no more.
    pub(crate) async fn check_begun(&self, waiting: usize, running: usize) {
        let found = async || (self.inbox(None).await.len(), self.tools.runs());
        eventually("calls", async || found().await == (waiting, running)).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(found().await, (waiting, running));
    }
}

/// Starts a kernel on this log.
async fn start(ledger: &Arc<dyn Ledger>, store: &SharedStore) -> ChioKernel {
    let mut config = KernelConfig {
        trusted_issuers: vec![subject(ISSUER)],
        trusted_approvers: vec![subject(APPROVER)],
        ..KernelConfig::default()
    };
    // More than a frame holds.
    config.limits.max_output_bytes = 2 * MAX_PAYLOAD;
    let parts = KernelParts {
        config,
        key: key(KERNEL),
        ledger: Arc::clone(ledger),
        store: Arc::clone(store),
        clock: Arc::new(StandingClock),
        randomness: Arc::<SystemRandomness>::default(),
        pipeline: Pipeline::none(),
    };
    ChioKernel::start(parts).await.unwrap()
}

/// Waits until something holds.
pub(crate) async fn eventually(what: &str, holds: impl AsyncFn() -> bool) {
    for _ in 0..2000 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("still waiting: {what}");
}
