//! What the store says of tasks. Nothing is run.

use std::sync::Arc;

use chio_core::crypto::PublicKey;
use chio_core::receipt::SealedReceipt;
use chio_kernel::Session;
use chio_kernel::store::{
    MessageQuery, MessageStanding, NewTask, StoreResult, Task, TaskQuery, TaskReceipt, TaskRefused,
    TaskState,
};

use super::kept::Kept;
use super::{DeferredTasks, TaskError, TaskResult, TaskView};
use crate::DiscoveryProtocol;

impl DeferredTasks {
    /// The task as it is, without running it.
    ///
    /// # Errors
    /// When it is not there or not theirs, or the store does not answer.
    pub async fn look(&self, id: &str, owner: &PublicKey) -> Result<TaskView, TaskError> {
        let task = self.find(id, owner).await?;
        self.view(task).await
    }

    /// Tasks of an owner, the latest first, and how many there are in all. None is run.
    ///
    /// # Errors
    /// When one cannot be read, or the store does not answer.
    pub async fn list(&self, query: TaskQuery) -> Result<(Vec<TaskView>, usize), TaskError> {
        let page = self.orchestrator.kernel().store().tasks_of(query).await?;
        let mut views = Vec::with_capacity(page.tasks.len());
        for task in page.tasks {
            views.push(self.view(task).await?);
        }
        Ok((views, page.total))
    }

    /// What a message has to do with tasks that are there.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn standing_of(&self, message: MessageQuery<'_>) -> StoreResult<MessageStanding> {
        self.orchestrator.kernel().store().standing_of(message).await
    }

    /// Tasks of a protocol that shall run without being asked for, at most this many.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn due(
        &self,
        protocol: DiscoveryProtocol,
        most: usize,
    ) -> StoreResult<Vec<(String, PublicKey)>> {
        self.orchestrator.kernel().store().due_tasks(protocol, self.orchestrator.now(), most).await
    }

    /// A session of the principal whose task it is, for one that runs without being asked for.
    ///
    /// # Errors
    /// When it is not there or does not wait, or nobody was kept with it.
    pub async fn session_of(&self, id: &str, owner: &PublicKey) -> Result<Session, TaskError> {
        let task = self.find(id, owner).await?;
        if task.state != TaskState::Waiting {
            return Err(TaskRefused::Running.into());
        }
        let kept = Kept::read(&task)?;
        let unknown = || TaskError::Unreadable("nobody is named whose task it is".to_owned());
        let principal = Arc::new(*kept.principal.ok_or_else(unknown)?);
        let kernel = self.orchestrator.kernel();
        Ok(Session { id: kernel.new_session_id(), protocol: task.new.protocol, principal })
    }

    pub(super) async fn find(&self, id: &str, owner: &PublicKey) -> Result<Task, TaskError> {
        let kernel = self.orchestrator.kernel();
        Ok(kernel.store().task(id, owner, kernel.clock().unix_seconds()).await??)
    }

    pub(super) async fn view(&self, mut task: Task) -> Result<TaskView, TaskError> {
        let result = task.result.as_deref().filter(|text| !text.is_empty());
        let result = result.map(serde_json::from_slice).transpose();
        let result = result.map_err(|error| TaskError::Unreadable(error.to_string()))?;
        let receipt = match task.receipt.take() {
            Some(TaskReceipt { id, body: Some(bytes) }) => Some(SealedReceipt { id, bytes }),
            Some(TaskReceipt { id, body: None }) => {
                let row = self.orchestrator.kernel().store().find(&id).await?;
                row.map(|row| SealedReceipt { id, bytes: row.body })
            }
            None => None,
        };
        let mut result: Option<TaskResult> = result;
        let context = match &mut result {
            Some(result) => result.context.take(),
            // What was kept to run it goes when it is over.
            None => Kept::read(&task).ok().and_then(|kept| kept.protocol_context),
        };
        let NewTask { id, context: conversation, record, created_at, expires_at, .. } = task.new;
        let (state, updated_at) = (task.state, task.updated_at);
        Ok(TaskView {
            id,
            state,
            result,
            receipt,
            context,
            conversation,
            record,
            created_at,
            updated_at,
            expires_at,
        })
    }
}
