//! The caller of a task's call: what it is given is kept with the task.

use std::sync::Arc;

use async_trait::async_trait;
use chio_core::canonical;
use chio_kernel::store::{ApprovalRequest, TaskEnd};
use chio_kernel::{AskError, Caller, Gone, Outcome, Question, ServerNotification, Session};
use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::StateOf;
use crate::chunks::ChunkCollector;

/// The caller that asks for a task's result: what it is given is kept with it.
pub(super) struct TaskCaller {
    caller: Arc<dyn Caller>,
    context: Option<Value>,
    state_of: StateOf,
    /// What it was given.
    pub(super) given: ChunkCollector,
}

impl TaskCaller {
    pub(super) fn new(
        caller: Arc<dyn Caller>,
        context: Option<Value>,
        state_of: StateOf,
    ) -> Arc<Self> {
        Arc::new(Self { caller, context, state_of, given: ChunkCollector::default() })
    }
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

    fn task_end(&self, outcome: &Outcome) -> TaskEnd {
        let context = self.context.as_ref();
        self.given.read(|chunks| {
            let result = BorrowedResult { outcome, chunks, context };
            // What the kernel let through has a form.
            let result = serde_json::to_vec(&result).unwrap_or_default();
            TaskEnd { state: (self.state_of)(outcome, chunks), result }
        })
    }
}

/// A [`TaskResult`] that is written.
#[derive(Serialize)]
struct BorrowedResult<'a> {
    outcome: &'a Outcome,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    chunks: &'a [Value],
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<&'a Value>,
}
