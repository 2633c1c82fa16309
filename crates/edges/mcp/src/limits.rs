//! How much a client may ask for.

use std::time::Duration;

use chio_edge::limits::Rate;

/// How much a client may ask for.
#[derive(Debug, Clone)]
pub(crate) struct McpLimits {
    /// How many sessions there may be.
    pub(crate) sessions: usize,
    /// How many of them one principal may have.
    pub(crate) sessions_per_principal: usize,
    /// How long an unused session lives.
    pub(crate) idle: Duration,
    /// How many requests one principal may send; no limit when absent.
    pub(crate) rate: Option<Rate>,
    /// How large one message may be, in bytes.
    pub(crate) message_bytes: usize,
    /// How many requests of one session run at once.
    pub(crate) running: usize,
    /// How many events of a session are kept for clients that come back.
    pub(crate) window_events: usize,
    /// How many bytes of them. The newest is always kept.
    pub(crate) window_bytes: usize,
    /// How many bytes of events all sessions together keep.
    pub(crate) retained_bytes: usize,
    /// How many notifications wait for a reader that is slow; more are dropped.
    pub(crate) queued_notifications: usize,
    /// How many entries a page of a list has.
    pub(crate) page: usize,
    /// How long a deferred task is kept when its caller does not say.
    pub(crate) task_ttl: Duration,
    /// How long a deferred task is kept at most.
    pub(crate) max_task_ttl: Duration,
    /// How many tasks a session may have.
    pub(crate) tasks: usize,
}

impl Default for McpLimits {
    fn default() -> Self {
        Self {
            sessions: 1024,
            sessions_per_principal: 256,
            idle: Duration::from_secs(15 * 60),
            rate: None,
            message_bytes: 8 << 20,
            running: 64,
            window_events: 1024,
            window_bytes: 2 << 20,
            retained_bytes: 256 << 20,
            queued_notifications: 256,
            page: 50,
            task_ttl: Duration::from_secs(300),
            max_task_ttl: Duration::from_secs(3600),
            tasks: 256,
        }
    }
}
