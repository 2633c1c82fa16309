//! What clients may use.

use std::time::Duration;

use chio_core::with_defaults;
use chio_edge::limits::Rate;
use chio_edge::tasks::TableLimits;

with_defaults! {
    /// Limits on what clients may use.
    #[derive(Debug, Clone)]
    pub struct A2aLimits {
        /// How large one body may be, in bytes.
        pub body_bytes: usize = 4 << 20,
        /// How many requests one principal may send; no limit when absent.
        pub rate: Option<Rate> = None,
        /// How many calls run at once.
        pub running: usize = 256,
        /// How many tasks of one owner are retained.
        pub tasks_per_owner: usize = 1024,
        /// How many tasks of one owner wait to be run.
        pub deferred_per_owner: usize = 256,
        /// How large a message may be that is stored for later, in bytes.
        pub deferred_bytes: usize = 256 << 10,
        /// How many tasks are retained in memory.
        pub tasks: usize = 4096,
        /// How many bytes of tasks are retained in memory.
        pub task_bytes: usize = 64 << 20,
        /// How long a task is retained after its last change.
        pub task_lifetime: Duration = Duration::from_secs(300),
        /// How many admitted principals are remembered.
        pub principals: usize = 4096,
        /// For how long the capabilities of a principal are remembered.
        pub principal_lifetime: Duration = Duration::from_secs(30),
    }
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
