//! What clients may use.

use std::time::Duration;

use chio_edge::limits::Rate;
use chio_edge::tasks::TableLimits;

/// Limits on what clients may use.
#[derive(Debug, Clone)]
pub struct A2aLimits {
    /// How large one body may be, in bytes.
    pub body_bytes: usize,
    /// How many requests one principal may send; no limit when absent.
    pub rate: Option<Rate>,
    /// How many calls run at once.
    pub running: usize,
    /// How many tasks of one owner are retained.
    pub tasks_per_owner: usize,
    /// How many tasks of one owner wait to be run.
    pub deferred_per_owner: usize,
    /// How large a message may be that is stored for later, in bytes.
    pub deferred_bytes: usize,
    /// How many tasks are retained in memory.
    pub tasks: usize,
    /// How many bytes of tasks are retained in memory.
    pub task_bytes: usize,
    /// How long a task is retained after its last change.
    pub task_lifetime: Duration,
    /// How many admitted principals are remembered.
    pub principals: usize,
    /// For how long the capabilities of a principal are remembered.
    pub principal_lifetime: Duration,
}

impl A2aLimits {
    pub(crate) const fn table_limits(&self) -> TableLimits {
        TableLimits {
            tasks_per_owner: self.tasks_per_owner,
            tasks: self.tasks,
            bytes: self.task_bytes,
            lifetime: self.task_lifetime,
        }
    }
}

impl Default for A2aLimits {
    fn default() -> Self {
        Self {
            body_bytes: 4 << 20,
            rate: None,
            running: 256,
            tasks_per_owner: 1024,
            deferred_per_owner: 256,
            deferred_bytes: 256 << 10,
            tasks: 4096,
            task_bytes: 64 << 20,
            task_lifetime: Duration::from_secs(300),
            principals: 4096,
            principal_lifetime: Duration::from_secs(30),
        }
    }
}
