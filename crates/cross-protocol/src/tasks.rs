//! Tasks: calls that are taken on now and run later, and calls that leave a task behind.
//!
//! Edges share tasks. A task is durable, and only its owner reaches it. A deferred task runs when its
//! owner asks for the result, or when it is due, once, however many ask at the same time, in however
//! many processes. What was kept to run it, the token among it, goes when nothing of it will run.

mod caller;
mod kept;
mod look;
mod view;

use std::sync::Arc;
use std::time::Duration;

use chio_core::canonical;
use chio_core::capability::DpopProof;
use chio_core::crypto::PublicKey;
use chio_core::governance::ApprovalToken;
use chio_core::principal::Principal;
use chio_core::with_defaults;
use chio_kernel::store::{CallTask, NEVER, NewTask, StoreError, TaskQuota, TaskRefused, TaskState};
use chio_kernel::{Caller, Denial, KernelError, Outcome};
use serde_json::Value;

pub use view::{TaskResult, TaskView};

use caller::TaskCaller;
use kept::Kept;

use crate::DiscoveryProtocol;
use crate::orchestrated::OrchestratedToolCall;
use crate::orchestrator::CrossProtocolOrchestrator;
use crate::request::OrchestratedRequest;

/// The most bytes of a request that is kept for later.
const MAX_REQUEST: usize = 5 << 20;

with_defaults! {
    /// How many tasks are kept, and for how long.
    #[derive(Debug, Clone)]
    pub struct TaskLimits {
        /// How many tasks of one account may be there at once that are not over.
        pub most_open: usize = 1024,
        /// How long a task is kept from when it was taken on, unless it runs.
        pub lifetime: Duration = Duration::from_secs(300),
        /// How long a task is kept after its end, whatever its lifetime; when zero, by its lifetime.
        pub kept_for: Duration = Duration::ZERO,
        /// About how many tasks of one owner are kept that are over.
        pub most_ended: usize = usize::MAX,
        /// About how many bytes these have together.
        pub most_bytes: u64 = u64::MAX,
        /// The most bytes of a request that is kept for later.
        pub max_request: usize = MAX_REQUEST,
    }
}

/// What an edge names a task by, and keeps with it.
#[derive(Debug, Clone, Default)]
pub struct TaskNames {
    /// Its name, which no other task ever has.
    pub id: String,
    /// Whose quota counts; the agent's own when empty.
    pub account: String,
    /// The conversation that it belongs to.
    pub context: Option<String>,
    /// The agent's name of the message that makes it.
    pub message: Option<String>,
    /// What the edge tells of it beside its result.
    pub record: Vec<u8>,
    /// From when on it runs without being asked for, with this principal; only when it is asked for,
    /// when absent.
    pub due: Option<(u64, Arc<Principal>)>,
}

/// Why there is no task to tell of.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// It is not there, not theirs, not to be had or not to be changed.
    #[error(transparent)]
    Refused(#[from] TaskRefused),
    /// Its token would not get it through.
    #[error(transparent)]
    Denied(Denial),
    /// It is more than is kept for later.
    #[error("expected a shorter request to keep for later, found {0} bytes")]
    TooLarge(usize),
    /// No kernel here has the tool server; another process may.
    #[error("no tool server of this process can run the task")]
    Elsewhere,
    /// What was kept cannot be read.
    #[error("the task cannot be read: {0}")]
    Unreadable(String),
    /// It ran without a receipt: nothing of it may be released.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What comes with the request that runs a task, and is never kept.
#[derive(Debug, Default)]
pub struct Presented {
    /// Proof that the caller holds the subject's key.
    pub dpop_proof: Option<Box<DpopProof>>,
    /// An approval.
    pub approval: Option<Box<ApprovalToken>>,
}

/// A call that was a task from its beginning, with what it streamed.
#[derive(Debug)]
pub struct RanTask {
    /// How it ended.
    pub call: OrchestratedToolCall,
    /// What it streamed.
    pub chunks: Vec<Value>,
}

/// Which state a task is in whose call ended so, and streamed this.
pub type StateOf = fn(&Outcome, &[Value]) -> TaskState;

/// The tasks of a store.
#[derive(Clone)]
pub struct DeferredTasks {
    orchestrator: CrossProtocolOrchestrator<'static>,
    limits: TaskLimits,
    state_of: StateOf,
}

impl DeferredTasks {
    /// The deferred tasks of this orchestrator's store.
    pub const fn new(orchestrator: CrossProtocolOrchestrator<'static>, limits: TaskLimits) -> Self {
        Self { orchestrator, limits, state_of: |outcome, _| outcome.task_state() }
    }

    /// With an edge's own reading of what tools answer.
    #[must_use]
    pub const fn with_states(mut self, state_of: StateOf) -> Self {
        self.state_of = state_of;
        self
    }

    /// Takes a request on for its agent. A proof or an approval in it is not kept: they come with
    /// the request that runs the task.
    ///
    /// # Errors
    /// When the token does not hold, the request is too large, the agent has too many open tasks,
    /// or the store does not answer.
    pub async fn defer(
        &self,
        request: OrchestratedRequest,
        protocol: DiscoveryProtocol,
    ) -> Result<TaskView, TaskError> {
        let unique = self.orchestrator.kernel().new_request_id();
        let id = format!("{protocol}-task-{}", unique.strip_prefix("req-").unwrap_or(&unique));
        self.defer_as(TaskNames { id, ..TaskNames::default() }, request, protocol).await
    }

    /// As [`Self::defer`], under a name that no other task ever has.
    ///
    /// # Errors
    /// Also when there is a task of this name.
    pub async fn defer_as(
        &self,
        names: TaskNames,
        request: OrchestratedRequest,
        protocol: DiscoveryProtocol,
    ) -> Result<TaskView, TaskError> {
        let kernel = self.orchestrator.kernel();
        // A caller without a valid token must not fill the store.
        kernel.check_token(&request.token, &request.agent).await.map_err(TaskError::Denied)?;
        let context = request.protocol_context.clone();
        let new = self.stored(names, request, protocol)?;
        if new.request.len() > self.limits.max_request {
            return Err(TaskError::TooLarge(new.request.len()));
        }
        let view = TaskView {
            id: new.id.clone(),
            state: TaskState::Waiting,
            result: None,
            receipt: None,
            context,
            conversation: new.context.clone(),
            record: Vec::new(),
            created_at: new.created_at,
            updated_at: new.created_at,
            expires_at: new.expires_at,
        };
        kernel.store().create_task(new, self.quota()).await??;
        Ok(view)
    }

    /// Lets a task that asks its owner something go on with this request. Whether the request's token
    /// holds is decided when it runs.
    ///
    /// # Errors
    /// When the task does not ask, or is not theirs, or the request is too large.
    pub async fn answer(
        &self,
        names: TaskNames,
        request: OrchestratedRequest,
        protocol: DiscoveryProtocol,
    ) -> Result<(), TaskError> {
        let answer = self.stored(names, request, protocol)?;
        Ok(self.orchestrator.kernel().store().answer_task(answer).await??)
    }

    /// Runs a request as a task that is stored with its intent or with its receipt.
    ///
    /// # Errors
    /// When no receipt could be made durable: then nothing may be released.
    pub async fn run(
        &self,
        names: TaskNames,
        mut request: OrchestratedRequest,
        caller: Arc<dyn Caller>,
    ) -> Result<RanTask, KernelError> {
        let (owner, server_id) = (request.agent.clone(), request.server_id.clone());
        let new = self.named(names, owner, server_id, caller.session().protocol);
        request.task = Some(Arc::new(CallTask { new, quota: self.quota() }));
        let caller = TaskCaller::new(caller, None, self.state_of);
        let call = self.orchestrator.run(request, Arc::clone(&caller) as _).await?;
        Ok(RanTask { call, chunks: caller.given.take() })
    }

    const fn quota(&self) -> TaskQuota {
        let TaskLimits { most_open, most_ended, most_bytes, .. } = self.limits;
        TaskQuota { open: most_open, ended: most_ended, bytes: most_bytes }
    }

    /// A task with these names, of nothing.
    fn named(
        &self,
        names: TaskNames,
        owner: PublicKey,
        server_id: String,
        protocol: DiscoveryProtocol,
    ) -> NewTask {
        let created_at = self.orchestrator.now();
        let mut new = NewTask::new(names.id, owner, protocol, server_id);
        if !names.account.is_empty() {
            new.account = names.account;
        }
        NewTask {
            context: names.context,
            message: names.message,
            record: names.record,
            due_at: names.due.map(|(due_at, _)| due_at),
            created_at,
            expires_at: created_at.saturating_add(self.limits.lifetime.as_secs()).min(NEVER),
            kept_for: self.limits.kept_for.as_secs(),
            ..new
        }
    }

    /// A task with all that it takes to run it.
    fn stored(
        &self,
        names: TaskNames,
        request: OrchestratedRequest,
        protocol: DiscoveryProtocol,
    ) -> Result<NewTask, TaskError> {
        let (owner, server_id) = (request.agent.clone(), request.server_id.clone());
        let kept = Kept::new(request, names.due.as_ref().map(|(_, principal)| &**principal));
        let text = canonical::to_vec(&kept).map_err(KernelError::from)?;
        if text.len() > MAX_REQUEST {
            return Err(TaskError::TooLarge(text.len()));
        }
        Ok(NewTask { request: text, ..self.named(names, owner, server_id, protocol) })
    }

    /// The task's result; a task that waits is run first, in the caller's session. While another
    /// request runs it, it is running.
    ///
    /// # Errors
    /// When it is not there or not theirs, cannot be run here, or left no receipt.
    pub async fn result(
        &self,
        id: &str,
        owner: &PublicKey,
        presented: Presented,
        caller: Arc<dyn Caller>,
    ) -> Result<TaskView, TaskError> {
        self.result_or(None, id, owner, presented, caller).await
    }

    /// The task's result when it is refused for this reason: a task that waits ends with a receipt that
    /// says so.
    ///
    /// # Errors
    /// As [`Self::result`].
    pub async fn refuse(
        &self,
        denial: Denial,
        id: &str,
        owner: &PublicKey,
        caller: Arc<dyn Caller>,
    ) -> Result<TaskView, TaskError> {
        self.result_or(Some(denial), id, owner, Presented::default(), caller).await
    }

    async fn result_or(
        &self,
        refusal: Option<Denial>,
        id: &str,
        owner: &PublicKey,
        presented: Presented,
        caller: Arc<dyn Caller>,
    ) -> Result<TaskView, TaskError> {
        let task = self.find(id, owner).await?;
        if task.state != TaskState::Waiting {
            return self.view(task).await;
        }
        let kept = Kept::read(&task)?;
        let may_run = kept.is_in_time(self.orchestrator.now());
        let is_cancelled = caller.cancellation().is_cancelled();
        let will_run = may_run && !is_cancelled && refusal.is_none();
        let kernel = self.orchestrator.kernel();
        // What will not run any more ends here, with its receipt.
        if will_run && kernel.protocols_of(&kept.server_id, &kept.tool_name).is_none() {
            return Err(TaskError::Elsewhere);
        }
        if presented.dpop_proof.is_none() && kept.asks_for_proof() && will_run {
            // A request without a proof spoils nothing for the one that has it.
            return self.view(task).await;
        }
        let request = OrchestratedRequest { refusal, ..kept.into_request(id, presented) };
        let context = request.protocol_context.clone();
        let caller = TaskCaller::new(caller, context, self.state_of);
        match self.orchestrator.run(request, Arc::clone(&caller) as _).await {
            // Another request was faster, or cancelled it.
            Ok(_) | Err(KernelError::NotClaimed(TaskRefused::Running | TaskRefused::Over(_))) => {
                self.look(id, owner).await
            }
            Err(KernelError::NotClaimed(refused)) => Err(refused.into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Cancels a task that no request runs yet.
    ///
    /// # Errors
    /// When it is not there, not theirs, running or over, or the store does not answer.
    pub async fn cancel(&self, id: &str, owner: &PublicKey) -> Result<TaskView, TaskError> {
        let kernel = self.orchestrator.kernel();
        let now = kernel.clock().unix_seconds();
        kernel.store().cancel_task(id, owner, now).await??;
        self.look(id, owner).await
    }
}
