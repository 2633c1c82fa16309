//! Tasks: calls that are taken on now and run later, and what is kept of calls that have run, for as
//! long as their owner may ask for it.

use std::sync::Arc;

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
    /// Who has a quota of tasks that are not over: a name of the edge's own.
    pub account: String,
    /// The protocol that it came in by.
    pub protocol: DiscoveryProtocol,
    /// The server that it is for: only a kernel that has it may run the task.
    pub server_id: String,
    /// The conversation that it belongs to.
    pub context: Option<String>,
    /// The owner's name of the message that began it: the owner begins no second task by it.
    pub message: Option<String>,
    /// The call as its edge wrote it, token included. It goes when nothing of it will run any more.
    pub request: Vec<u8>,
    /// What the edge tells of the task beside its result. It stays as long as the task.
    pub record: Vec<u8>,
    /// From when on it runs without being asked for.
    pub due_at: Option<u64>,
    /// When it was taken on, in Unix seconds.
    pub created_at: u64,
    /// The first second in which the task is gone, unless it runs; [`NEVER`] for one that is there
    /// until it has ended.
    pub expires_at: u64,
    /// How long it is there after its end, in seconds. When 0, until `expires_at`, and for five
    /// minutes at least.
    pub kept_for: u64,
}

impl NewTask {
    /// A task of nothing that is there until it has ended, on its owner's own account.
    pub fn new(
        id: impl Into<String>,
        owner: PublicKey,
        protocol: DiscoveryProtocol,
        server_id: impl Into<String>,
    ) -> Self {
        Self {
            id: id.into(),
            account: owner.to_hex(),
            owner,
            protocol,
            server_id: server_id.into(),
            context: None,
            message: None,
            request: Vec::new(),
            record: Vec::new(),
            due_at: None,
            created_at: 0,
            expires_at: NEVER,
            kept_for: 0,
        }
    }
}

/// The end of what does not expire.
pub const NEVER: u64 = i64::MAX as u64;

/// How many tasks one owner has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskQuota {
    /// The most of one account that are not over; more are refused.
    pub open: usize,
    /// About how many of one owner that are over are kept; the oldest go.
    pub ended: usize,
    /// About how many bytes these have together; the oldest go.
    pub bytes: u64,
}

impl TaskQuota {
    /// No more than these that are not over, and any number of others.
    pub const fn of_open(open: usize) -> Self {
        Self { open, ended: usize::MAX, bytes: u64::MAX }
    }
}

/// A task of a call that runs without having been stored before: it is stored with the call's
/// intent, where there is one, and else with its receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallTask {
    /// The task. Nothing of it will run again, so its request is empty.
    pub new: NewTask,
    /// How many its owner has.
    pub quota: TaskQuota,
}

/// A call's task, with how the call ended: for the transaction of its receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedTask {
    /// The task.
    pub task: Arc<CallTask>,
    /// How it ended.
    pub end: TaskEnd,
    /// The receipt of its call.
    pub receipt_id: String,
    /// When it ended, in Unix seconds.
    pub ended_at: u64,
}

/// How far a task has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// Taken on; nothing has run since.
    Waiting,
    /// A kernel runs it.
    Running,
    /// It asked its owner something, and goes on with the answer.
    Asking,
    /// It ended well.
    Completed,
    /// It failed, or its kernel stopped while it ran.
    Failed,
    /// It was refused.
    Rejected,
    /// Its owner cancelled it.
    Cancelled,
}

impl TaskState {
    /// Every state.
    pub const ALL: [Self; 7] = [
        Self::Waiting,
        Self::Running,
        Self::Asking,
        Self::Completed,
        Self::Failed,
        Self::Rejected,
        Self::Cancelled,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Asking => "asking",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether nothing will happen to it any more.
    #[must_use]
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Rejected | Self::Cancelled)
    }
}

/// A task that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// What was taken on. The request is empty once nothing of it will run any more.
    pub new: NewTask,
    /// How far it has come.
    pub state: TaskState,
    /// When it came into this state, in Unix seconds.
    pub updated_at: u64,
    /// What its edge answers from, once a call of it has ended. None when its kernel stopped.
    pub result: Option<Vec<u8>>,
    /// The receipt of its last call that ended.
    pub receipt: Option<TaskReceipt>,
}

/// The receipt of a task's call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskReceipt {
    /// Its id.
    pub id: String,
    /// The canonical form of the whole signed receipt; none of a task that an earlier version of the
    /// program ended, whose receipt can be found by its id.
    pub body: Option<Vec<u8>>,
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
    /// Over, or asking.
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
    #[error("the task belongs to another owner")]
    NotOwner,
    /// A kernel runs it.
    #[error("the task runs")]
    Running,
    /// It asks its owner something.
    #[error("the task waits for an answer")]
    Asking,
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

/// The most bytes of a result that a list of tasks has.
pub const MAX_LISTED: usize = 64 << 10;

/// Which tasks of an owner are asked for, the latest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskQuery {
    /// Whose.
    pub owner: PublicKey,
    /// The protocol that they came in by.
    pub protocol: DiscoveryProtocol,
    /// Only tasks of this conversation.
    pub context: Option<String>,
    /// Only tasks in one of these states; all when absent.
    pub states: Option<Vec<TaskState>>,
    /// Only tasks that came into their state in this second or later.
    pub since: u64,
    /// Only tasks after this one: when it came into its state, and its id.
    pub after: Option<(u64, String)>,
    /// The time now, in Unix seconds.
    pub now: u64,
    /// At most this many.
    pub limit: usize,
}

/// Some tasks of an owner.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskPage {
    /// The tasks. Requests, and results of more than [`MAX_LISTED`] bytes, are left out.
    pub tasks: Vec<Task>,
    /// How many there are in all, before and after these.
    pub total: usize,
}

/// What a message may have to do with tasks that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageQuery<'a> {
    /// Who sends it.
    pub owner: &'a PublicKey,
    /// Whose quota counts.
    pub account: &'a str,
    /// Its name.
    pub message: Option<&'a str>,
    /// The conversation that it names.
    pub context: Option<&'a str>,
    /// The time now, in Unix seconds.
    pub now: u64,
}

/// What a message has to do with tasks that are there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessageStanding {
    /// The task that it began before.
    pub known: Option<String>,
    /// Whether its conversation has a task of another owner.
    pub foreign_context: bool,
    /// How many tasks of the account are not over.
    pub open: usize,
}

/// The tasks of a store, one by one. A task that has expired is gone for every caller, unless it
/// runs.
#[async_trait]
pub trait TaskStore: Send + Sync {
    /// Takes a task on, unless its account has too many that are not over.
    async fn create_task(
        &self,
        task: NewTask,
        quota: TaskQuota,
    ) -> StoreResult<Result<(), TaskRefused>>;

    /// A task, as its owner sees it.
    async fn task(
        &self,
        id: &str,
        owner: &PublicKey,
        now: u64,
    ) -> StoreResult<Result<Task, TaskRefused>>;

    /// Lets a task that asks go on: it waits, with the request, the record and the time of this one.
    /// Only one of several answers is taken.
    async fn answer_task(&self, answer: NewTask) -> StoreResult<Result<(), TaskRefused>>;

    /// Cancels a task that no kernel runs. To cancel twice is no error.
    async fn cancel_task(
        &self,
        id: &str,
        owner: &PublicKey,
        now: u64,
    ) -> StoreResult<Result<(), TaskRefused>>;

    /// This many numbers in a row that were never given out before. Gives the first.
    async fn take_numbers(&self, count: u32) -> StoreResult<u64>;
}

/// The tasks of a store, by what they have in common.
#[async_trait]
pub trait TaskIndex: Send + Sync {
    /// What a message has to do with tasks that are there.
    async fn standing_of(&self, message: MessageQuery<'_>) -> StoreResult<MessageStanding>;

    /// The tasks of an owner.
    async fn tasks_of(&self, query: TaskQuery) -> StoreResult<TaskPage>;

    /// Names and owners of tasks of a protocol that wait and shall run without being asked for, at
    /// most this many, those that are due longest first.
    async fn due_tasks(
        &self,
        protocol: DiscoveryProtocol,
        now: u64,
        most: usize,
    ) -> StoreResult<Vec<(String, PublicKey)>>;

    /// Forgets tasks that have expired and do not run, with all that was kept of them. Tells how
    /// many; a next call may find more.
    async fn forget_expired(&self, now: u64) -> StoreResult<u64>;
}
