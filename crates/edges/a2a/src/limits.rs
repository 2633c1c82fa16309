//! What clients may use.

use std::time::Duration;

use chio_core::with_defaults;
use chio_cross_protocol::TaskLimits;
use chio_edge::limits::Rate;

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
        /// How many tasks of one caller there may be that are not over.
        pub open_tasks: usize = 256,
        /// About how many tasks of one caller are retained that are over; the oldest go.
        pub ended_tasks: usize = 10_000,
        /// About how many bytes these have together; the oldest go.
        pub ended_bytes: usize = 128 << 20,
        /// How large a message may be that is stored for later, in bytes.
        pub deferred_bytes: usize = 256 << 10,
        /// How long a task is retained after its end.
        pub task_retention: Duration = Duration::from_secs(24 * 3600),
        /// How many contexts of one caller are remembered beside those of its tasks.
        pub contexts_per_owner: usize = 1024,
        /// How many contexts are remembered beside those of tasks.
        pub contexts: usize = 4096,
        /// How many admitted principals are remembered.
        pub principals: usize = 4096,
        /// For how long the capabilities of a principal are remembered.
        pub principal_lifetime: Duration = Duration::from_secs(30),
    }
}

impl A2aLimits {
    pub(crate) fn task_limits(&self) -> TaskLimits {
        TaskLimits {
            most_open: self.open_tasks,
            lifetime: Duration::MAX,
            kept_for: self.task_retention,
            most_ended: self.ended_tasks,
            most_bytes: u64::try_from(self.ended_bytes).unwrap_or(u64::MAX),
            max_request: self.deferred_bytes,
        }
    }
}
