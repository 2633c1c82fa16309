//! How much a client may ask for.

use std::time::Duration;

use chio_core::with_defaults;
use chio_edge::limits::Rate;

with_defaults! {
    /// How much a client may ask for.
    #[derive(Debug, Clone)]
    pub(crate) struct McpLimits {
        /// How many sessions there may be.
        pub(crate) sessions: usize = 1024,
        /// How many of them one principal may have.
        pub(crate) sessions_per_principal: usize = 256,
        /// How long an unused session lives.
        pub(crate) idle: Duration = Duration::from_secs(15 * 60),
        /// How many requests one principal may send; no limit when absent.
        pub(crate) rate: Option<Rate> = None,
        /// How large one message may be, in bytes.
        pub(crate) message_bytes: usize = 8 << 20,
        /// How many requests of one session run at once.
        pub(crate) running: usize = 64,
        /// How many events of a session are kept for clients that come back.
        pub(crate) window_events: usize = 1024,
        /// How many bytes of them. The newest is always kept.
        pub(crate) window_bytes: usize = 2 << 20,
        /// How many bytes of events all sessions together keep.
        pub(crate) retained_bytes: usize = 256 << 20,
        /// How many notifications wait for a reader that is slow; more are dropped.
        pub(crate) queued_notifications: usize = 256,
        /// How many entries a page of a list has.
        pub(crate) page: usize = 50,
        /// How long a deferred task is kept when its caller does not say.
        pub(crate) task_ttl: Duration = Duration::from_secs(300),
        /// How long a deferred task is kept at most.
        pub(crate) max_task_ttl: Duration = Duration::from_secs(3600),
        /// How many tasks a session may have.
        pub(crate) tasks: usize = 256,
    }
}
