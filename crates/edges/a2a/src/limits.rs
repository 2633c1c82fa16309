//! How much clients may ask for.

use std::time::Duration;

use chio_net::rate::Rate;

/// How much clients may ask for.
#[derive(Debug, Clone)]
pub struct A2aLimits {
    /// How large one body may be, in bytes.
    pub body_bytes: usize,
    /// How many requests one identity may send; no limit when absent.
    pub rate: Option<Rate>,
    /// How many calls run at once.
    pub running: usize,
    /// How many tasks of one owner are kept.
    pub tasks_per_owner: usize,
    /// How many tasks of one owner wait to be run.
    pub deferred_per_owner: usize,
    /// How large a message may be that is kept for later, in bytes.
    pub deferred_bytes: usize,
    /// How many tasks are kept in memory.
    pub book_tasks: usize,
    /// How many bytes of tasks are kept in memory.
    pub book_bytes: usize,
    /// How long a task is kept from when it was made.
    pub task_lifetime: Duration,
    /// How many identities are remembered.
    pub guests: usize,
    /// For how long the capabilities of an identity are remembered.
    pub guest_lifetime: Duration,
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
            book_tasks: 4096,
            book_bytes: 64 << 20,
            task_lifetime: Duration::from_secs(300),
            guests: 4096,
            guest_lifetime: Duration::from_secs(30),
        }
    }
}
