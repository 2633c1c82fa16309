//! A task as its owner sees it.

use chio_core::receipt::SealedReceipt;
use chio_kernel::Outcome;
use chio_kernel::store::TaskState;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    /// What its last call came to. None while nothing has ended, when it was cancelled before it ran,
    /// when its kernel stopped, and for what is too long for a list.
    pub result: Option<TaskResult>,
    /// The receipt of its last call that has ended.
    pub receipt: Option<SealedReceipt>,
    /// What its protocol calls the thing that is called, and the message that calls it. None when
    /// it was cancelled before it ran, or its kernel stopped.
    pub context: Option<Value>,
    /// The conversation that it belongs to.
    pub conversation: Option<String>,
    /// What its edge keeps with it.
    pub record: Vec<u8>,
    /// When it was taken on, in Unix seconds.
    pub created_at: u64,
    /// When it came into its state, in Unix seconds.
    pub updated_at: u64,
    /// The first second in which the task is gone.
    pub expires_at: u64,
}
