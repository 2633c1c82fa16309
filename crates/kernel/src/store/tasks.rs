//! Deferred tasks: calls that were taken on and run when their owner asks for the result.

use async_trait::async_trait;
use chio_core::crypto::PublicKey;
use chio_core::protocol::DiscoveryProtocol;
use serde::{Deserialize, Serialize};

use super::StoreResult;

/// A task that is taken on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTask {
    /// Its name, which no other task ever has.
    pub id: String,
    /// Who may ask for it.
    pub owner: PublicKey,
    /// The protocol that it came in by.
    pub protocol: DiscoveryProtocol,
    /// The server that it is for: only a kernel that has it may run the task.
    pub server_id: String,
    /// The call as its edge wrote it, token included. It goes when the task goes.
    pub request: Vec<u8>,
    /// When it was taken on, in Unix seconds.
    pub created_at: u64,
    /// The first second in which the task is gone, unless it runs.
    pub expires_at: u64,
}

/// How far a task has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// Taken on; nothing has run.
    Waiting,
    /// A kernel runs it.
    Running,
    /// It ended well.
    Completed,
    /// It was denied, failed, or its kernel stopped while it ran.
    Failed,
    /// Its owner cancelled it.
    Cancelled,
}

impl TaskState {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether nothing will happen to it any more.
    #[must_use]
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// A task that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// What was taken on. The request is empty once the task is over.
    pub new: NewTask,
    /// How far it has come.
    pub state: TaskState,
    /// What its edge answers from, once it has ended. None when its kernel stopped.
    pub result: Option<Vec<u8>>,
    /// Its receipt, once it has ended.
    pub receipt_id: Option<String>,
}

/// What a kernel claims, in the transaction that opens its intent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskClaim {
    /// The task.
    pub id: String,
    /// Who asks for it.
    pub owner: PublicKey,
    /// The time now, in Unix seconds.
    pub now: u64,
}

/// How a claimed task ends, in the transaction of its receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskEnd {
    /// Completed, failed or cancelled.
    pub state: TaskState,
    /// What its edge answers from.
    pub result: Vec<u8>,
}

/// Why a task could not be created, claimed or cancelled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskRefused {
    /// No such task, or no more.
    #[error("there is no such task")]
    Unknown,
    /// It belongs to another owner.
    #[error("the task belongs to somebody else")]
    NotOwner,
    /// A kernel runs it.
    #[error("the task runs")]
    Running,
    /// It is over.
    #[error("the task is {}", .0.name())]
    Over(TaskState),
    /// Its owner has too many that are not over.
    #[error("too many tasks of this owner are not over yet")]
    TooMany,
    /// There was a task with this name.
    #[error("there is a task of this name")]
    NameTaken,
}

/// The most bytes of a request or a result that a list of tasks has.
pub const MAX_LISTED: usize = 64 << 10;

/// The deferred tasks of a store. A task that has expired is gone for every caller, unless it runs.
#[async_trait]
pub trait TaskStore: Send + Sync {
    /// Takes a task on, unless its owner has this many that are not over.
    async fn create_task(&self, task: NewTask, most: usize)
    -> StoreResult<Result<(), TaskRefused>>;

    /// A task, as its owner sees it.
    async fn task(
        &self,
        id: &str,
        owner: &PublicKey,
        now: u64,
    ) -> StoreResult<Result<Task, TaskRefused>>;

    /// Forgets a task of this owner that is over. False when there is none: only one caller is
    /// told true.
    async fn forget_task(&self, id: &str, owner: &PublicKey) -> StoreResult<bool>;

    /// The tasks of an owner on a protocol, the latest first, at most this many. Requests and results
    /// of more than [`MAX_LISTED`] bytes are left out.
    async fn tasks_of(
        &self,
        owner: &PublicKey,
        protocol: DiscoveryProtocol,
        now: u64,
        most: usize,
    ) -> StoreResult<Vec<Task>>;

    /// This many numbers in a row that were never given out before. Gives the first.
    async fn take_numbers(&self, count: u32) -> StoreResult<u64>;

    /// Forgets tasks that have expired and do not run, with all that was kept of them. Tells how
    /// many; a next call may find more.
    async fn forget_expired(&self, now: u64) -> StoreResult<u64>;

    /// Cancels a task that no kernel runs yet. To cancel twice is no error.
    async fn cancel_task(
        &self,
        id: &str,
        owner: &PublicKey,
        now: u64,
    ) -> StoreResult<Result<(), TaskRefused>>;
}
