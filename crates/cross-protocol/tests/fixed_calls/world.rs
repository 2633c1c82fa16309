//! A kernel whose clock, randomness and keys are fixed, and the callers of its fixed calls.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use chio_core::canonical;
use chio_core::checkpoint::log_id;
use chio_cross_protocol::{
    AskError, Caller, CrossProtocolOrchestrator, DiscoveryProtocol, Gone, Principal, Question,
    ReadOutcome, RouteAvailabilityStatus, Session,
};
use chio_kernel::{
    ChioKernel, Clock, Guard, GuardInput, GuardOutcome, KernelConfig, KernelParts, Pipeline,
    Randomness, Review, ReviewMode, Verdict,
};
use chio_store::{OpenStore, StoreUrl};
use chio_testkit::key;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::calls::{Action, FixedCall, NOW, REVOKED, approver, elsewhere, issuer};
use crate::golden::{Logged, Recorded};
use crate::server::{MCP, NATIVE, TestServer};

/// A time that no test waits for.
const NEVER: Duration = Duration::from_secs(100 * 24 * 3600);

/// A clock that stands still.
#[derive(Debug)]
struct FixedClock;

impl Clock for FixedClock {
    fn unix_millis(&self) -> u64 {
        NOW * 1000
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

/// Bytes that count up.
#[derive(Debug, Default)]
struct Counting(AtomicU64);

impl Randomness for Counting {
    fn ten_bytes(&self) -> [u8; 10] {
        let mut bytes = [0; 10];
        let number = self.0.fetch_add(1, Ordering::SeqCst).to_be_bytes();
        bytes.iter_mut().rev().zip(number.iter().rev()).for_each(|(to, from)| *to = *from);
        bytes
    }
}

/// A guard that does what the arguments say, and marks or blocks output that says so.
struct Scripted;

#[async_trait]
impl Guard for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    async fn check(&self, input: &GuardInput<'_>) -> Result<GuardOutcome, String> {
        let arguments = input.arguments;
        let verdict = match arguments.get("deny").and_then(Value::as_str) {
            Some("error") => return Err("the guard broke".to_owned()),
            Some(reason) => Verdict::Deny(reason.to_owned()),
            None => Verdict::Allow,
        };
        let redacted = arguments.get("secret").map(|_| {
            let mut kept = arguments.clone();
            kept["secret"] = json!("[redacted]");
            kept
        });
        let evidence = redacted.as_ref().map(|_| "a secret in `secret`".to_owned());
        Ok(GuardOutcome { verdict, evidence, redacted })
    }

    fn review_mode(&self) -> ReviewMode {
        ReviewMode::EachChunk
    }

    async fn review(&self, _input: &GuardInput<'_>, output: &Value) -> Result<Review, String> {
        Ok(match output.get("review").and_then(Value::as_str) {
            Some("note") => Review::Note("noted".to_owned()),
            Some("replace") => Review::Replace(json!({"replaced": true})),
            Some("block") => Review::Block("blocked".to_owned()),
            _ => Review::Pass,
        })
    }
}

/// A caller that answers questions, takes chunks up to a limit, and waits for no approval.
struct FixedCaller {
    session: Session,
    cancellation: CancellationToken,
    chunks: Mutex<Vec<Value>>,
    /// How many chunks it takes before it is gone.
    takes: usize,
    /// What it answers to every question; none when it takes no questions.
    answer: Option<Value>,
}

#[async_trait]
impl Caller for FixedCaller {
    fn session(&self) -> &Session {
        &self.session
    }

    async fn chunk(&self, _index: u64, data: Value) -> Result<(), Gone> {
        let mut chunks = self.chunks.lock().unwrap();
        if chunks.len() >= self.takes {
            return Err(Gone);
        }
        chunks.push(data);
        Ok(())
    }

    async fn ask(&self, _question: Question) -> Result<Value, AskError> {
        self.answer.clone().ok_or(AskError::Unsupported)
    }

    fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }

    fn can_wait(&self) -> bool {
        false
    }
}

/// A kernel and the protocol that its callers speak.
pub(crate) struct World {
    source: DiscoveryProtocol,
    kernel: ChioKernel,
    store: OpenStore,
    /// How many entries of the log have been recorded.
    seen: u64,
}

impl World {
    pub(crate) async fn new(source: DiscoveryProtocol) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(FixedClock);
        let store = OpenStore::open(&StoreUrl::Memory, Arc::clone(&clock)).await.unwrap();
        let slot = store.take_slot(Some(key(7))).await.unwrap();
        // Before the kernel starts, so that its view of revocations begins with it.
        store.shared().revoke(REVOKED, NOW).await.unwrap();
        let config = KernelConfig {
            trusted_issuers: vec![issuer().public_key().clone()],
            trusted_approvers: vec![approver().public_key().clone()],
            trusted_kernels: vec![elsewhere().public_key().clone()],
            // Checkpoints and sweeps would come at the mercy of the scheduler.
            checkpoint_size: 10_000,
            checkpoint_interval: NEVER,
            revocation_poll: NEVER,
            sweep_interval: NEVER,
            ..KernelConfig::default()
        };
        let kernel = ChioKernel::start(KernelParts {
            config,
            key: slot.key,
            ledger: slot.ledger,
            store: store.shared(),
            clock,
            randomness: Arc::new(Counting::default()),
            pipeline: Pipeline::new("policy-1", vec![Arc::new(Scripted)]),
        });
        let kernel = kernel.await.unwrap();
        for (name, protocol) in [(NATIVE, DiscoveryProtocol::Native), (MCP, DiscoveryProtocol::Mcp)]
        {
            kernel.register_tool_server(Box::new(TestServer::new(name, protocol))).unwrap();
        }
        Self { source, kernel, store, seen: 0 }
    }

    /// Runs a call and records what came of it.
    pub(crate) async fn run(&mut self, call: FixedCall) -> Recorded {
        let caller = Arc::new(FixedCaller {
            session: Session {
                id: "session-1".to_owned(),
                protocol: self.source,
                principal: Arc::new(Principal {
                    tenant: Some("tenant-1".to_owned()),
                    ..Principal::anonymous()
                }),
            },
            cancellation: CancellationToken::new(),
            chunks: Mutex::default(),
            takes: call.takes,
            answer: call.answer,
        });
        let to_kernel: Arc<dyn Caller> = Arc::<FixedCaller>::clone(&caller);
        let orchestrator = CrossProtocolOrchestrator::new(&self.kernel).with_protocol_availability(
            DiscoveryProtocol::Http,
            RouteAvailabilityStatus::unavailable("http is switched off"),
        );
        let (outcome, result) = match call.action {
            Action::Call(request) => {
                let ended = orchestrator.run(*request, to_kernel).await.unwrap();
                let chunks = caller.chunks.lock().unwrap().clone();
                let result = json!(ended.protocol_result(&chunks));
                (json!([ended.evaluation.outcome, ended.evaluation.cost, chunks]), result)
            }
            Action::Read(request) => {
                let ended = orchestrator.read(*request, to_kernel).await.unwrap();
                (read_outcome(ended.outcome), Value::Null)
            }
        };
        let log = self.entries().await;
        Recorded { name: call.name.to_owned(), outcome, result, log }
    }

    /// What was added to the log since this was asked last.
    async fn entries(&mut self) -> Vec<Logged> {
        let log_id = log_id(self.kernel.public_key());
        let entries = self.store.shared().entries(&log_id, self.seen + 1, 100).await.unwrap();
        self.seen += u64::try_from(entries.len()).unwrap();
        entries.iter().map(|entry| Logged::new(&entry.body)).collect()
    }

    /// Shuts the kernel down and records the checkpoint over everything.
    pub(crate) async fn end(mut self) -> Recorded {
        self.kernel.drain(Duration::from_secs(10)).await.unwrap();
        assert!(self.entries().await.is_empty(), "calls left nothing open");
        let log_id = log_id(self.kernel.public_key());
        let checkpoints = self.store.shared().checkpoints(&log_id, 1, 100).await.unwrap();
        let logged = |checkpoint| Logged::new(&canonical::to_vec(checkpoint).unwrap());
        Recorded {
            name: "the checkpoint over all of them".to_owned(),
            outcome: Value::Null,
            result: Value::Null,
            log: checkpoints.iter().map(logged).collect(),
        }
    }
}

fn read_outcome(outcome: ReadOutcome) -> Value {
    match outcome {
        ReadOutcome::Value(value) => json!({"value": value}),
        ReadOutcome::Denied(denial) => json!({"denied": denial}),
        ReadOutcome::Incomplete(reason) => json!({"incomplete": reason}),
        ReadOutcome::Answered { code, message, .. } => json!({"code": code, "message": message}),
        ReadOutcome::Cancelled(reason) => json!({"cancelled": reason}),
    }
}
