//! One kernel and everything around it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use chio_core::canonical;
use chio_core::capability::CapabilityToken;
use chio_core::certificate::KernelCertificate;
use chio_core::checkpoint::{KernelCheckpoint, log_id};
use chio_core::crypto::{Keypair, PublicKey};
use chio_core::money::MonetaryAmount;
use chio_core::receipt::{ChioReceipt, Decision, LoggedReceipt, NO_OUTPUT_HASH};
use chio_core::registry::ErrorCode;
use chio_kernel::audit::{AuditReport, AuditTrust, audit};
use chio_kernel::store::{Ledger as _, SharedStore};
use chio_kernel::{
    Caller, ChioKernel, Clock, Denial, Evaluation, Guard, KernelConfig, KernelError, KernelParts,
    Outcome, Pipeline, ToolCall,
};
use chio_store::{OpenStore, StoreUrl};
use chio_testkit::process::Folder;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;

use super::clock::{Counting, ManualClock};
use super::guards::Scripted;
use super::ledger::TestLedger;
use super::{Journal, SERVER, TestCaller, tokens, tools};

/// A time that no test waits for.
const NEVER: Duration = Duration::from_secs(100 * 24 * 3600);

/// What a world begins with.
pub(crate) struct Setup {
    pub(crate) config: KernelConfig,
    pub(crate) journal: Journal,
    guards: Vec<Arc<dyn Guard>>,
    clock: Arc<ManualClock>,
    randomness: Arc<Counting>,
    url: StoreUrl,
    /// The store, when it is open already.
    open: Option<OpenStore>,
    key: Option<Keypair>,
}

impl Default for Setup {
    fn default() -> Self {
        let clock = Arc::new(ManualClock::default());
        let config = KernelConfig {
            trusted_issuers: vec![tokens::issuer().public_key().clone()],
            checkpoint_interval: NEVER,
            revocation_poll: NEVER,
            sweep_interval: NEVER,
            ..KernelConfig::default()
        };
        let (journal, randomness) = (Journal::default(), Arc::default());
        let url = StoreUrl::Memory;
        Self { config, journal, guards: Vec::new(), clock, randomness, url, open: None, key: None }
    }
}

impl Setup {
    pub(crate) fn guard(mut self, guard: Scripted) -> Self {
        self.guards.push(Arc::new(guard));
        self
    }

    pub(crate) fn config(mut self, change: impl FnOnce(&mut KernelConfig)) -> Self {
        change(&mut self.config);
        self
    }

    /// A second kernel, or the next one, on the same store.
    pub(crate) fn beside(world: &World) -> Self {
        Self {
            clock: Arc::clone(&world.clock),
            open: Some(world.open.clone()),
            journal: world.journal.clone(),
            randomness: Arc::clone(&world.randomness),
            ..Self::default()
        }
    }

    /// A kernel on the store in this folder, as a process of its own has it. No two of one folder
    /// may have the same number.
    pub(crate) fn in_folder(folder: &Folder, number: u32) -> Self {
        let url = StoreUrl::Sqlite(folder.path("store"));
        Self { url, randomness: Arc::new(Counting::of(number)), ..Self::default() }
    }

    /// A kernel that signs with this key.
    pub(crate) fn key(mut self, key: Keypair) -> Self {
        self.key = Some(key);
        self
    }

    /// Takes a kernel's place without starting one.
    pub(crate) async fn hold_slot(&self) -> chio_store::Slot {
        self.open.as_ref().unwrap().take_slot(None).await.unwrap()
    }

    /// Starts a kernel; panics when it does not start.
    pub(crate) async fn start(self) -> World {
        self.try_start().await.unwrap()
    }

    pub(crate) async fn try_start(self) -> Result<World, KernelError> {
        let clock = Arc::<ManualClock>::clone(&self.clock);
        let open = match self.open {
            Some(open) => open,
            None => OpenStore::open(&self.url, clock).await.unwrap(),
        };
        let slot = open.take_slot(self.key).await.unwrap();
        let ledger = Arc::new(TestLedger::new(slot.ledger, &self.journal));
        let gate = Arc::new(Semaphore::new(0));
        let kernel = ChioKernel::start(KernelParts {
            config: self.config,
            key: slot.key,
            ledger: Arc::<TestLedger>::clone(&ledger),
            store: open.shared(),
            clock: Arc::<ManualClock>::clone(&self.clock),
            randomness: Arc::<Counting>::clone(&self.randomness),
            pipeline: Pipeline::new("policy-1", self.guards),
        })
        .await?;
        kernel.register_tool_server(tools::usual(&self.journal, &gate)).unwrap();
        Ok(World {
            kernel,
            ledger,
            store: open.shared(),
            gate,
            certificate: slot.certificate,
            clock: self.clock,
            randomness: self.randomness,
            open,
            journal: self.journal,
        })
    }
}

/// What a call came to, with its receipt to look at.
#[derive(Debug, PartialEq)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    pub(crate) receipt: ChioReceipt,
    pub(crate) seq: u64,
    pub(crate) cost: Option<MonetaryAmount>,
}

impl From<Evaluation> for Ended {
    fn from(evaluation: Evaluation) -> Self {
        let Evaluation { outcome, receipt, seq, cost, .. } = evaluation;
        let opened = receipt.open().unwrap();
        assert_eq!(receipt.id, opened.id);
        assert_eq!(receipt.bytes, canonical::to_vec(&opened).unwrap(), "the form is canonical");
        Self { outcome, receipt: opened, seq, cost }
    }
}

/// One kernel and everything around it.
pub(crate) struct World {
    pub(crate) kernel: ChioKernel,
    pub(crate) ledger: Arc<TestLedger>,
    pub(crate) store: SharedStore,
    pub(crate) gate: Arc<Semaphore>,
    pub(crate) certificate: KernelCertificate,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) journal: Journal,
    randomness: Arc<Counting>,
    open: OpenStore,
}

impl World {
    pub(crate) async fn new() -> Self {
        Setup::default().start().await
    }

    /// A call under this token by its subject.
    pub(crate) fn call(&self, token: &CapabilityToken, tool: &str, arguments: Value) -> ToolCall {
        let request_id = self.kernel.new_request_id();
        ToolCall::new(request_id, token.clone(), SERVER, tool, arguments)
    }

    pub(crate) fn caller(&self) -> TestCaller {
        TestCaller::new(&self.journal)
    }

    /// Runs a call and checks all that holds of every answer.
    pub(crate) async fn run_for(&self, call: ToolCall, caller: Arc<dyn Caller>) -> Ended {
        let request_id = call.request_id.clone();
        let ended = Ended::from(self.kernel.evaluate(call, caller).await.unwrap());
        self.check(&request_id, &ended).await;
        ended
    }

    pub(crate) async fn run(&self, call: ToolCall) -> Ended {
        let caller = Arc::new(self.caller());
        self.run_for(call, caller).await
    }

    /// Runs a call of the agent's with a new token of these grants.
    pub(crate) async fn run_with(
        &self,
        grants: &[chio_core::capability::ToolGrant],
        tool: &str,
        arguments: Value,
    ) -> Ended {
        let token = tokens::token(&format!("cap-{}", self.kernel.new_request_id()), grants);
        self.run(self.call(&token, tool, arguments)).await
    }

    /// Runs a plain call of the agent's with a new token.
    pub(crate) async fn run_tool(&self, tool: &str, arguments: Value) -> Ended {
        self.run_with(&[tokens::grant(tool)], tool, arguments).await
    }

    /// Starts a call without waiting for its end.
    pub(crate) fn spawn(
        &self,
        call: ToolCall,
        caller: &Arc<TestCaller>,
    ) -> tokio::task::JoinHandle<Result<Ended, KernelError>> {
        let (kernel, caller) = (self.kernel.clone(), Arc::<TestCaller>::clone(caller));
        tokio::spawn(async move { kernel.evaluate(call, caller).await.map(Ended::from) })
    }

    /// Waits until the journal tells of this.
    pub(crate) async fn until(&self, event: &str) {
        for _ in 0..10_000 {
            if self.journal.count(event) > 0 {
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("{event} never came: {:?}", self.journal.all());
    }

    /// All that holds of every answer: its receipt verifies, is the log's entry, and is the only
    /// one of its call.
    pub(crate) async fn check(&self, request_id: &str, evaluation: &Ended) {
        let receipt = &evaluation.receipt;
        receipt.verify().unwrap();
        assert_eq!(receipt.kernel_key, *self.kernel.public_key());
        assert_eq!(receipt.timestamp, self.clock.unix_seconds());
        assert_eq!(receipt.policy_hash, self.kernel.pipeline().policy_hash());
        let metadata = receipt.metadata.as_ref().unwrap();
        assert_eq!(metadata["receipt_context"], json!({"request_id": request_id}));
        let entries = self.store.entries(&self.log_id(), evaluation.seq, 1).await.unwrap();
        assert_eq!(entries[0].body, canonical::to_vec(receipt).unwrap(), "the log has it");
        assert_eq!(self.receipts_of(request_id).await.len(), 1, "one call, one receipt");
        match (&evaluation.outcome, receipt.decision.as_ref().unwrap()) {
            (Outcome::Value(value), Decision::Allow) => {
                assert_eq!(receipt.content_hash, canonical::hash(value).unwrap());
            }
            (Outcome::Stream { .. }, Decision::Allow) => {}
            (Outcome::Denied(denial), Decision::Deny { reason, guard }) => {
                assert_eq!((&denial.reason, &denial.guard), (reason, guard));
                let code = json!({"code": denial.code.number(), "name": denial.code.name()});
                assert_eq!(metadata["denial"], code);
                if metadata.get("stream").is_none() {
                    assert_eq!(receipt.content_hash, NO_OUTPUT_HASH);
                }
            }
            (Outcome::Cancelled { reason: one, .. }, Decision::Cancelled { reason: other })
            | (Outcome::Incomplete { reason: one, .. }, Decision::Incomplete { reason: other }) => {
                assert_eq!(one, other);
            }
            (outcome, decision) => panic!("{outcome:?} does not go with {decision:?}"),
        }
    }

    pub(crate) fn log_id(&self) -> String {
        log_id(self.kernel.public_key())
    }

    /// The key that certifies the kernels of the store.
    pub(crate) fn authority(&self) -> PublicKey {
        self.certificate.authority.clone()
    }

    /// Everything in the kernel's log.
    pub(crate) async fn logged(&self) -> Vec<LoggedReceipt> {
        let entries = self.store.entries(&self.log_id(), 1, 10_000).await.unwrap();
        entries.iter().map(|entry| LoggedReceipt::from_slice(&entry.body).unwrap()).collect()
    }

    /// The receipts of a call.
    pub(crate) async fn receipts_of(&self, request_id: &str) -> Vec<ChioReceipt> {
        let of_call = |logged: LoggedReceipt| match logged {
            LoggedReceipt::Call(receipt) => Some(*receipt),
            LoggedReceipt::Child(_) => None,
        };
        let all = self.logged().await.into_iter();
        all.filter(|logged| logged.request_id() == Some(request_id)).filter_map(of_call).collect()
    }

    pub(crate) async fn checkpoints(&self) -> Vec<KernelCheckpoint> {
        self.store.checkpoints(&self.log_id(), 1, 10_000).await.unwrap()
    }

    pub(crate) async fn open_intents(&self) -> usize {
        self.ledger.open_intents().await.unwrap().len()
    }

    /// Re-verifies the whole store by the authority's key alone.
    pub(crate) async fn audit(&self) -> AuditReport {
        let trust = AuditTrust { authorities: vec![self.authority()], kernels: Vec::new() };
        audit(&*self.store, &trust, |_| {}).await.unwrap()
    }

    /// How often a tool ran.
    pub(crate) fn runs(&self, tool: &str) -> usize {
        self.journal.count(&format!("run {tool}"))
    }

    /// Shuts down and lets go of everything but the store.
    pub(crate) async fn shut_down(self) -> Setup {
        self.kernel.drain(Duration::from_secs(1)).await.unwrap();
        self.let_go().await
    }

    /// Dies in the middle of whatever runs. `runtime` is what all of it runs on.
    pub(crate) fn crash(self, runtime: Runtime) -> Setup {
        let next = Setup::beside(&self);
        drop(runtime);
        drop(self);
        next
    }

    /// Lets go of everything but the store, without a word.
    pub(crate) async fn let_go(self) -> Setup {
        let next = Setup::beside(&self);
        let ledger: Weak<TestLedger> = Arc::downgrade(&self.ledger);
        drop(self);
        for _ in 0..2000 {
            if ledger.strong_count() == 0 {
                return next;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("the kernel does not let go of its ledger");
    }
}

/// A runtime of its own, so that a crash is the end of all its tasks.
pub(crate) fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// The denial that a call came to.
pub(crate) fn denial(evaluation: &Ended) -> &Denial {
    match &evaluation.outcome {
        Outcome::Denied(denial) => denial,
        other => panic!("expected a denial, found {other:?}"),
    }
}

/// Checks that the kernel itself denied a call like this.
pub(crate) fn assert_denied(evaluation: &Ended, code: ErrorCode, words: &str) {
    assert_denied_by(evaluation, Denial::KERNEL, code, words);
}

/// Checks that a call was denied in this name and with this code, for a reason with these words.
pub(crate) fn assert_denied_by(evaluation: &Ended, guard: &str, code: ErrorCode, words: &str) {
    let denial = denial(evaluation);
    assert_eq!((denial.code, denial.guard.as_str()), (code, guard), "{denial}");
    assert!(denial.reason.contains(words), "expected `{words}` in `{}`", denial.reason);
}

/// Checks that the tool server did not take a call, or failed, with these words.
pub(crate) fn assert_failed(evaluation: &Ended, words: &str) {
    assert_denied_by(evaluation, Denial::TOOL_SERVER, ErrorCode::ToolServerError, words);
}

/// The value that a call came to.
pub(crate) fn value(evaluation: &Ended) -> &Value {
    match &evaluation.outcome {
        Outcome::Value(value) => value,
        other => panic!("expected a value, found {other:?}"),
    }
}

/// A member of a receipt's metadata.
pub(crate) fn metadata<'a>(evaluation: &'a Ended, member: &str) -> &'a Value {
    &evaluation.receipt.metadata.as_ref().unwrap()[member]
}
