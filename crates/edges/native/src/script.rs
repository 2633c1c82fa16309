//! A road that follows a script, and an agent that sends whatever bytes a test wants.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chio_core::canonical;
use chio_core::capability::{CapabilityToken, ChioScope, DelegationLink, Validity};
use chio_core::crypto::{Keypair, PublicKey, Signature};
use chio_core::frame::{self, Decoder};
use chio_core::governance::GovernedTransactionIntent;
use chio_core::message::{
    AgentMessage, KernelMessage, ToolCallRequest, ToolCallResponse, ToolCallResult,
};
use chio_core::receipt::{ChioReceipt, Decision, NO_OUTPUT_HASH, SealedReceipt, ToolCallAction};
use chio_cross_protocol::{
    ApprovalRequest, Caller, DiscoveryProtocol, Evaluation, KernelError, OrchestratedRequest,
    OrchestratedToolCall, Outcome, Principal, Road, Session, StoreResult,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::{Semaphore, broadcast};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::connection::{ConnectionOptions, Limits, OnEof, serve_connection};
use crate::error::NativeError;

/// No test waits longer for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn key(seed: u8) -> PublicKey {
    Keypair::from_seed(&[seed; 32]).public_key().clone()
}

/// A token of subject 2 that comes from these.
pub(crate) fn token(id: &str, ancestors: &[&str]) -> CapabilityToken {
    let validity = Validity { issued_at: 100, expires_at: 200 };
    let mut token = CapabilityToken::draft(id, key(1), key(2), ChioScope::default(), validity);
    let link = |ancestor: &&str| DelegationLink {
        capability_id: (*ancestor).to_owned(),
        delegator: key(1),
        delegatee: key(2),
        attenuations: Vec::new(),
        timestamp: 100,
        scope_hash: None,
        aggregate_budget: None,
        cumulative_approval: None,
        signature: Signature::blank(),
    };
    token.delegation_chain = ancestors.iter().map(link).collect();
    token
}

/// The id of a token that was never verified.
pub(crate) const FORGED: &str = "forged";

pub(crate) fn request(id: &str, tool: &str, params: Value) -> ToolCallRequest {
    ToolCallRequest::new(id, token("cap-1", &[]), "srv", tool, params)
}

/// Does what the tool's name says: `echo`, `wait` for [`Script::release`] or a cancel, `park` until
/// [`Script::approve`] or a cancel and then `wait`, `count`, `fail`, `large`, `burst` of large chunks.
pub(crate) struct Script {
    gate: Semaphore,
    approvals: Semaphore,
    pub(crate) started: AtomicUsize,
    pub(crate) approved: AtomicUsize,
    pub(crate) cancelled: AtomicUsize,
    pub(crate) chunks: AtomicUsize,
    pub(crate) agents: Mutex<Vec<PublicKey>>,
    pub(crate) held: Mutex<Vec<CapabilityToken>>,
    pub(crate) revoked: Mutex<HashSet<String>>,
    revocations: broadcast::Sender<String>,
}

impl Script {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            gate: Semaphore::new(0),
            approvals: Semaphore::new(0),
            started: AtomicUsize::new(0),
            approved: AtomicUsize::new(0),
            cancelled: AtomicUsize::new(0),
            chunks: AtomicUsize::new(0),
            agents: Mutex::default(),
            held: Mutex::default(),
            revoked: Mutex::default(),
            revocations: broadcast::Sender::new(4),
        })
    }

    /// Lets this many waiting calls go on.
    pub(crate) fn release(&self, calls: usize) {
        self.gate.add_permits(calls);
    }

    /// Approves this many calls that are parked.
    pub(crate) fn approve(&self, calls: usize) {
        self.approvals.add_permits(calls);
    }

    pub(crate) fn revoke(&self, id: &str) {
        self.revoked.lock().unwrap().insert(id.to_owned());
        let _ = self.revocations.send(id.to_owned());
    }

    async fn outcome(&self, request: OrchestratedRequest, caller: &dyn Caller) -> Outcome {
        if let Some(refusal) = request.refusal {
            return Outcome::Denied(refusal);
        }
        match request.tool_name.as_str() {
            "wait" => self.wait(request.arguments, caller).await,
            "park" => {
                caller.parked(Some(&waiting(&request)));
                let approved = pass(&self.approvals, caller).await;
                caller.parked(None);
                if !approved {
                    return self.call_off();
                }
                self.approved.fetch_add(1, Ordering::SeqCst);
                self.wait(request.arguments, caller).await
            }
            "count" => self.stream(caller, request.arguments.as_u64().unwrap(), "").await,
            "burst" => self.stream(caller, 1, &"x".repeat(frame::MAX_PAYLOAD)).await,
            "large" => Outcome::Value(json!("x".repeat(frame::MAX_PAYLOAD))),
            _ => Outcome::Value(request.arguments),
        }
    }

    async fn wait(&self, arguments: Value, caller: &dyn Caller) -> Outcome {
        if pass(&self.gate, caller).await { Outcome::Value(arguments) } else { self.call_off() }
    }

    fn call_off(&self) -> Outcome {
        self.cancelled.fetch_add(1, Ordering::SeqCst);
        Outcome::Cancelled { reason: "called off".to_owned(), chunks: 0 }
    }

    async fn stream(&self, caller: &dyn Caller, count: u64, padding: &str) -> Outcome {
        for index in 0..count {
            if caller.chunk(index, json!({"n": index, "padding": padding})).await.is_err() {
                return Outcome::Incomplete { reason: "gone".to_owned(), chunks: index };
            }
            self.chunks.fetch_add(1, Ordering::SeqCst);
        }
        Outcome::Stream { chunks: count }
    }
}

/// Whether a gate opens before the caller cancels.
async fn pass(gate: &Semaphore, caller: &dyn Caller) -> bool {
    tokio::select! {
        permit = gate.acquire() => {
            permit.unwrap().forget();
            true
        }
        () = caller.cancellation().cancelled() => false,
    }
}

fn receipt() -> ChioReceipt {
    let kernel = Keypair::from_seed(&[7; 32]);
    let action = ToolCallAction::new(json!({})).unwrap();
    let (public, content) = (kernel.public_key().clone(), NO_OUTPUT_HASH.to_owned());
    ChioReceipt::mediated(150, action, Decision::Allow, content, public).signed(&kernel).unwrap()
}

impl Road for Script {
    async fn run(
        &self,
        request: OrchestratedRequest,
        caller: Arc<dyn Caller>,
    ) -> Result<OrchestratedToolCall, KernelError> {
        self.started.fetch_add(1, Ordering::SeqCst);
        self.agents.lock().unwrap().push(request.agent.clone());
        if request.tool_name == "fail" {
            return Err(KernelError::Panicked);
        }
        let outcome = self.outcome(request, &*caller).await;
        let bytes = canonical::to_vec(&receipt()).unwrap();
        let receipt = SealedReceipt { id: receipt().id, bytes };
        let evaluation = Evaluation { outcome, receipt, seq: 1, cost: None };
        Ok(OrchestratedToolCall::native(evaluation, "req-1".to_owned(), "trace-1".to_owned()))
    }

    async fn capabilities_of(&self, subject: &PublicKey) -> StoreResult<Vec<CapabilityToken>> {
        let held = self.held.lock().unwrap();
        Ok(held.iter().filter(|token| token.subject == *subject).cloned().collect())
    }

    fn revocations(&self) -> broadcast::Receiver<String> {
        self.revocations.subscribe()
    }

    fn has_verified(&self, token: &CapabilityToken) -> bool {
        token.id != FORGED
    }

    fn is_revoked(&self, token: &CapabilityToken) -> bool {
        let revoked = self.revoked.lock().unwrap();
        let ancestors = token.delegation_chain.iter().map(|link| &link.capability_id);
        std::iter::once(&token.id).chain(ancestors).any(|id| revoked.contains(id))
    }
}

pub(crate) fn session(subject: Option<PublicKey>) -> Session {
    let principal = Principal { subject, ..Principal::anonymous() };
    let session = Session::anonymous("sess-1", DiscoveryProtocol::Native);
    Session { principal: Arc::new(principal), ..session }
}

pub(crate) fn options(peer: Option<PublicKey>) -> ConnectionOptions {
    let session = session(peer);
    ConnectionOptions { session, limits: Limits::default(), on_eof: OnEof::Cancel }
}

/// An agent at the end of a served connection.
pub(crate) struct Agent {
    pub(crate) stream: DuplexStream,
    decoder: Decoder,
    pub(crate) served: JoinHandle<Result<(), NativeError>>,
    pub(crate) shutdown: CancellationToken,
}

impl Agent {
    /// An agent whose connection holds this many bytes on their way.
    pub(crate) fn connect(road: &Arc<Script>, options: ConnectionOptions, bytes: usize) -> Self {
        let (stream, theirs) = tokio::io::duplex(bytes);
        let (reader, writer) = tokio::io::split(theirs);
        let shutdown = CancellationToken::new();
        let serving = serve_connection(reader, writer, Arc::clone(road), options, shutdown.clone());
        let served = tokio::spawn(serving);
        Self { stream, decoder: Decoder::default(), served, shutdown }
    }

    pub(crate) fn usual(road: &Arc<Script>) -> Self {
        Self::connect(road, options(None), 64 * 1024)
    }

    pub(crate) async fn send(&mut self, message: &AgentMessage) {
        self.send_bytes(&frame::encode(message).unwrap()).await;
    }

    pub(crate) async fn call(&mut self, id: &str, tool: &str, params: Value) {
        let request = request(id, tool, params);
        self.send(&AgentMessage::ToolCallRequest(Box::new(request))).await;
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        timeout(PATIENCE, self.stream.write_all(bytes)).await.unwrap().unwrap();
    }

    /// The next message, or none when the connection ends.
    pub(crate) async fn next(&mut self) -> Option<KernelMessage> {
        loop {
            if let Some(payload) = self.decoder.next_payload().unwrap() {
                return Some(KernelMessage::decode(payload).unwrap());
            }
            let mut bytes = [0; 4096];
            let count = timeout(PATIENCE, self.stream.read(&mut bytes)).await.unwrap().unwrap();
            if count == 0 {
                return None;
            }
            self.decoder.feed(&bytes[..count]);
        }
    }

    /// The next message, which is a response.
    pub(crate) async fn response(&mut self) -> ToolCallResponse {
        match self.next().await {
            Some(KernelMessage::ToolCallResponse(response)) => *response,
            other => panic!("expected a response, found {other:?}"),
        }
    }

    /// The ids and results of this many responses.
    pub(crate) async fn responses(&mut self, count: usize) -> Vec<(String, ToolCallResult)> {
        let mut responses = Vec::new();
        for _ in 0..count {
            let response = self.response().await;
            responses.push((response.id, response.result));
        }
        responses
    }

    /// How the connection was served.
    pub(crate) async fn ended(self) -> Result<(), String> {
        let Self { stream, served, .. } = self;
        let outcome = timeout(PATIENCE, served).await.unwrap().unwrap();
        drop(stream);
        outcome.map_err(|error| error.to_string())
    }
}

/// Waits until something holds.
pub(crate) async fn eventually(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..2000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("still waiting: {what}");
}

/// The request for approval that a call waits for.
fn waiting(request: &OrchestratedRequest) -> ApprovalRequest {
    let (server_id, tool_name) = (request.server_id.clone(), request.tool_name.clone());
    ApprovalRequest {
        id: "appr-1".to_owned(),
        request_id: "req-1".to_owned(),
        subject: request.agent.clone(),
        capability_id: request.token.id.clone(),
        action: ToolCallAction::new(request.arguments.clone()).unwrap(),
        intent: GovernedTransactionIntent::new("intent-1", &server_id, &tool_name, "a test"),
        intent_hash: String::new(),
        server_id,
        tool_name,
        asked_by: "script".to_owned(),
        reason: "a test".to_owned(),
        requested_at: 0,
        expires_at: 1,
        trace_id: None,
    }
}
