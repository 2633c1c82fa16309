//! A task, as every dialect encodes it.

use chio_core::crypto::PublicKey;
use chio_edge::tasks::{self, Record};

use crate::call_report::CallReport;
use crate::message::{Message, Part};

/// The state of a task, by its name in A2A 1.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE", prefix = "TASK_STATE_", const_into_str)]
pub(crate) enum State {
    Working,
    Completed,
    Failed,
    Canceled,
    Rejected,
    InputRequired,
}

impl State {
    /// Whether the state is final.
    pub(crate) const fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::Rejected)
    }
}

/// A task.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TaskRecord {
    pub(crate) id: String,
    /// The conversation that it belongs to; unknown for a task that was cancelled before a restart.
    pub(crate) context_id: Option<String>,
    pub(crate) skill: String,
    pub(crate) state: State,
    pub(crate) output: Vec<Part>,
    /// Why it is in its state, or what its agent asks.
    pub(crate) words: Vec<Part>,
    /// Messages, the newest last.
    pub(crate) history: Vec<Message>,
    pub(crate) report: CallReport,
    /// Whether the tool wants a message as response and no task.
    pub(crate) replies: bool,
    /// When it entered its state, in Unix seconds.
    pub(crate) updated_at: u64,
}

/// The tasks of this process, by the keys of their callers.
pub(crate) type TaskTable = tasks::TaskTable<PublicKey, TaskRecord>;
pub(crate) type TaskEntry = tasks::TaskEntry<PublicKey, TaskRecord>;

impl Record for TaskRecord {
    fn id(&self) -> &str {
        &self.id
    }

    fn size(&self) -> usize {
        let parts = self.output.iter().chain(&self.words).map(Part::size);
        let messages = self.history.iter().map(Message::size);
        512 + parts.sum::<usize>() + messages.sum::<usize>() + self.report.size()
    }
}

impl TaskRecord {
    /// A task without a result.
    pub(crate) const fn working(
        id: String,
        context_id: Option<String>,
        skill: String,
        history: Vec<Message>,
        updated_at: u64,
    ) -> Self {
        Self {
            id,
            context_id,
            skill,
            state: State::Working,
            output: Vec::new(),
            words: Vec::new(),
            history,
            report: CallReport::pending(),
            replies: false,
            updated_at,
        }
    }

    /// The newest messages, at most `limit`; all when absent.
    pub(crate) fn newest(&self, limit: Option<usize>) -> &[Message] {
        let limit = limit.unwrap_or(self.history.len());
        let from = self.history.len().saturating_sub(limit);
        self.history.get(from..).unwrap_or_default()
    }

    /// The number in its id.
    pub(crate) fn number(&self) -> u64 {
        self.id.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or_default()
    }
}
