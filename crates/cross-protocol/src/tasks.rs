//! Deferred tasks: calls that are taken on now and run when their owner asks for the result.
//!
//! Edges share deferred tasks. A task is durable, and only its owner reaches it. The owner's first
//! request for the result runs it, once, however many requests come at the same time, in however
//! many processes. What was kept to run it, the token among it, goes when the task is over.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chio_core::canonical;
use chio_core::capability::{CapabilityToken, ChioScope, DpopProof};
use chio_core::crypto::PublicKey;
use chio_core::governance::{ApprovalToken, GovernedTransactionIntent, ModelMetadata};
use chio_core::receipt::SealedReceipt;
use chio_core::with_defaults;
use chio_kernel::store::{ApprovalRequest, NewTask, StoreError, Task, TaskRefused, TaskState};
use chio_kernel::{
    AskError, Caller, Denial, Gone, KernelError, Outcome, Question, ServerNotification, Session,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::DiscoveryProtocol;
use crate::chunks::ChunkCollector;
use crate::orchestrator::CrossProtocolOrchestrator;
use crate::request::OrchestratedRequest;
use chio_core::capability_ref::CrossProtocolCapabilityRef;

/// The most bytes of a request that is kept for later.
const MAX_REQUEST: usize = 5 << 20;

with_defaults! {
    /// How many tasks are kept, and for how long.
    #[derive(Debug, Clone)]
    pub struct TaskLimits {
        /// How many tasks of one owner may wait or run at once.
        pub most_open: usize = 1024,
        /// How long a task is kept from when it was taken on.
        pub lifetime: Duration = Duration::from_secs(300),
        /// The most bytes of a request that is kept for later.
        pub max_request: usize = MAX_REQUEST,
    }
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

/// What a task came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskResult {
    /// How its call ended.
    pub outcome: Outcome,
    /// What it streamed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chunks: Vec<Value>,
    /// What its protocol called the thing that was called, and the message that called it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Value>,
}

/// A task as its owner sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskView {
    /// Its name.
    pub id: String,
    /// How far it has come.
    pub state: TaskState,
    /// What it came to. None while it is not over, when it was cancelled before it ran, and when
    /// its kernel stopped.
    pub result: Option<TaskResult>,
    /// The receipt of its call, once that has ended.
    pub receipt: Option<SealedReceipt>,
    /// What its protocol calls the thing that is called, and the message that calls it. None when
    /// it was cancelled before it ran, or its kernel stopped.
    pub context: Option<Value>,
    /// When it was taken on, in Unix seconds.
    pub created_at: u64,
    /// The first second in which the task is gone.
    pub expires_at: u64,
}

/// The deferred tasks of a store.
#[derive(Clone)]
pub struct DeferredTasks {
    orchestrator: CrossProtocolOrchestrator<'static>,
    limits: TaskLimits,
}

/// What is kept of a request.
#[derive(Serialize, Deserialize)]
struct Kept {
    token: CapabilityToken,
    agent: PublicKey,
    server_id: String,
    tool_name: String,
    arguments: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    capability_ref: Option<CrossProtocolCapabilityRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    governed_intent: Option<Box<GovernedTransactionIntent>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<Box<ModelMetadata>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    protocol_context: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    meta: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scope: Option<ChioScope>,
}

impl DeferredTasks {
    /// The deferred tasks of this orchestrator's store.
    pub const fn new(orchestrator: CrossProtocolOrchestrator<'static>, limits: TaskLimits) -> Self {
        Self { orchestrator, limits }
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
        self.defer_as(id, request, protocol).await
    }

    /// As [`Self::defer`], under a name that no other task ever has.
    ///
    /// # Errors
    /// Also when there is a task of this name.
    pub async fn defer_as(
        &self,
        id: String,
        request: OrchestratedRequest,
        protocol: DiscoveryProtocol,
    ) -> Result<TaskView, TaskError> {
        let kernel = self.orchestrator.kernel();
        // A caller without a valid token must not fill the store.
        kernel.check_token(&request.token, &request.agent).await.map_err(TaskError::Denied)?;
        let (owner, server_id) = (request.agent.clone(), request.server_id.clone());
        let kept = Kept {
            token: (*request.token).clone(),
            agent: request.agent,
            server_id: request.server_id,
            tool_name: request.tool_name,
            arguments: request.arguments,
            capability_ref: request.capability_ref,
            governed_intent: request.governed_intent,
            model: request.model,
            protocol_context: request.protocol_context,
            meta: request.meta,
            scope: request.scope,
        };
        let created_at = kernel.clock().unix_seconds();
        let expires_at = created_at.saturating_add(self.limits.lifetime.as_secs());
        let text = canonical::to_vec(&kept).map_err(KernelError::from)?;
        if text.len() > self.limits.max_request.min(MAX_REQUEST) {
            return Err(TaskError::TooLarge(text.len()));
        }
        let view = TaskView {
            id: id.clone(),
            state: TaskState::Waiting,
            result: None,
            receipt: None,
            context: kept.protocol_context,
            created_at,
            expires_at,
        };
        let new = NewTask { id, owner, protocol, server_id, request: text, created_at, expires_at };
        kernel.store().create_task(new, self.limits.most_open).await??;
        Ok(view)
    }

    /// The task as it is, without running it.
    ///
    /// # Errors
    /// When it is not there or not theirs, or the store does not answer.
    pub async fn look(&self, id: &str, owner: &PublicKey) -> Result<TaskView, TaskError> {
        let task = self.find(id, owner).await?;
        self.view(task).await
    }

    /// The tasks of an owner on a protocol, the latest first, at most this many. None is run.
    ///
    /// # Errors
    /// When one cannot be read, or the store does not answer.
    pub async fn list(
        &self,
        owner: &PublicKey,
        protocol: DiscoveryProtocol,
        most: usize,
    ) -> Result<Vec<TaskView>, TaskError> {
        let kernel = self.orchestrator.kernel();
        let now = kernel.clock().unix_seconds();
        let mut views = Vec::new();
        for task in kernel.store().tasks_of(owner, protocol, now, most).await? {
            views.push(self.view(task).await?);
        }
        Ok(views)
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
        let task = self.find(id, owner).await?;
        if task.state != TaskState::Waiting {
            return self.view(task).await;
        }
        let request = self.request(&task, presented)?;
        if request.dpop_proof.is_none() && asks_for_proof(&request) {
            // A request without a proof spoils nothing for the one that has it.
            return self.view(task).await;
        }
        let context = request.protocol_context.clone();
        let caller = Arc::new(TaskCaller { caller, context, given: ChunkCollector::default() });
        match self.orchestrator.run(request, Arc::clone(&caller) as _).await {
            // Another request was faster, or cancelled it.
            Ok(_) | Err(KernelError::NotClaimed(TaskRefused::Running | TaskRefused::Over(_))) => {
                self.look(id, owner).await
            }
            Err(KernelError::NotClaimed(refused)) => Err(refused.into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Forgets a task that is over, for a caller that goes on with it elsewhere. False when there
    /// is none, or another request was faster.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn forget(&self, id: &str, owner: &PublicKey) -> Result<bool, TaskError> {
        Ok(self.orchestrator.kernel().store().forget_task(id, owner).await?)
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

    async fn find(&self, id: &str, owner: &PublicKey) -> Result<Task, TaskError> {
        let kernel = self.orchestrator.kernel();
        Ok(kernel.store().task(id, owner, kernel.clock().unix_seconds()).await??)
    }

    fn request(&self, task: &Task, presented: Presented) -> Result<OrchestratedRequest, TaskError> {
        let kept: Kept = serde_json::from_slice(&task.new.request)
            .map_err(|error| TaskError::Unreadable(error.to_string()))?;
        if self.orchestrator.kernel().protocols_of(&kept.server_id, &kept.tool_name).is_none() {
            return Err(TaskError::Elsewhere);
        }
        let id = &task.new.id;
        let (server, tool) = (kept.server_id, kept.tool_name);
        let request = OrchestratedRequest::new(id, kept.token, server, tool, kept.arguments);
        Ok(OrchestratedRequest {
            agent: kept.agent,
            capability_ref: kept.capability_ref,
            governed_intent: kept.governed_intent,
            model: kept.model,
            protocol_context: kept.protocol_context,
            meta: kept.meta,
            scope: kept.scope,
            dpop_proof: presented.dpop_proof,
            approval: presented.approval,
            task_id: Some(id.clone()),
            ..request
        })
    }

    async fn view(&self, task: Task) -> Result<TaskView, TaskError> {
        let result = task.result.as_deref().filter(|text| !text.is_empty());
        let result = result.map(serde_json::from_slice).transpose();
        let result = result.map_err(|error| TaskError::Unreadable(error.to_string()))?;
        let receipt = match task.receipt_id {
            Some(id) => {
                let row = self.orchestrator.kernel().store().find(&id).await?;
                row.map(|row| SealedReceipt { id, bytes: row.body })
            }
            None => None,
        };
        let mut result: Option<TaskResult> = result;
        let context = match &mut result {
            Some(result) => result.context.take(),
            // What was kept to run it goes when it is over.
            None => serde_json::from_slice(&task.new.request)
                .ok()
                .and_then(|kept: Kept| kept.protocol_context),
        };
        let NewTask { id, created_at, expires_at, .. } = task.new;
        Ok(TaskView { id, state: task.state, result, receipt, context, created_at, expires_at })
    }
}

/// Whether every grant that speaks of the tool asks for a proof of possession.
fn asks_for_proof(request: &OrchestratedRequest) -> bool {
    let (server, tool) = (&request.server_id, &request.tool_name);
    let mut grants =
        request.token.scope.grants.iter().filter(|it| it.covers(server, tool)).peekable();
    grants.peek().is_some() && grants.all(|grant| grant.dpop_required == Some(true))
}

/// The caller that asks for a task's result: what it is given is kept with it.
struct TaskCaller {
    caller: Arc<dyn Caller>,
    context: Option<Value>,
    given: ChunkCollector,
}

#[async_trait]
impl Caller for TaskCaller {
    fn session(&self) -> &Session {
        self.caller.session()
    }

    async fn chunk(&self, _index: u64, data: Value) -> Result<(), Gone> {
        // The owner cannot have what does not fit into the store, which keeps the canonical form.
        let size = canonical::size(&data).map_err(|_| Gone)?;
        self.given.push_sized(data, size.bytes)
    }

    async fn ask(&self, question: Question) -> Result<Value, AskError> {
        self.caller.ask(question).await
    }

    fn cancellation(&self) -> &CancellationToken {
        self.caller.cancellation()
    }

    fn can_wait(&self) -> bool {
        self.caller.can_wait()
    }

    fn parked(&self, waits_for: Option<&ApprovalRequest>) {
        self.caller.parked(waits_for);
    }

    async fn notice(&self, notice: ServerNotification) {
        self.caller.notice(notice).await;
    }

    fn wants_progress(&self) -> bool {
        self.caller.wants_progress()
    }

    fn task_result(&self, outcome: &Outcome) -> Vec<u8> {
        let chunks = self.given.take();
        let context = self.context.clone();
        let result = TaskResult { outcome: outcome.clone(), chunks, context };
        // What the kernel let through has a form.
        canonical::to_vec(&result).unwrap_or_default()
    }
}
