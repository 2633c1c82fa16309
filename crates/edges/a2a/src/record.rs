//! A task, as every dialect encodes it.

use crate::account::Account;
use crate::message::{Message, Part};

/// How far a task has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Working,
    Completed,
    Failed,
    Canceled,
    Rejected,
    InputRequired,
}

impl State {
    /// Whether nothing will happen to it any more.
    pub(crate) const fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::Rejected)
    }

    /// Its name in A2A 1.0.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Working => "TASK_STATE_WORKING",
            Self::Completed => "TASK_STATE_COMPLETED",
            Self::Failed => "TASK_STATE_FAILED",
            Self::Canceled => "TASK_STATE_CANCELED",
            Self::Rejected => "TASK_STATE_REJECTED",
            Self::InputRequired => "TASK_STATE_INPUT_REQUIRED",
        }
    }
}

/// A task.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TaskRecord {
    pub(crate) id: String,
    /// What it belongs to; unknown for a task that was called off before a restart.
    pub(crate) context_id: Option<String>,
    /// The skill that it is for.
    pub(crate) skill: String,
    pub(crate) state: State,
    /// What came of it.
    pub(crate) output: Vec<Part>,
    /// Why it is so, or what is asked.
    pub(crate) words: Vec<Part>,
    /// The messages, the newest last.
    pub(crate) history: Vec<Message>,
    pub(crate) account: Account,
    /// Whether the tool asked for the answer to be a message and no task.
    pub(crate) replies: bool,
    /// When it came into its state, in Unix seconds.
    pub(crate) updated_at: u64,
}

impl TaskRecord {
    /// About how many bytes it takes.
    pub(crate) fn size(&self) -> usize {
        let parts = self.output.iter().chain(&self.words).map(Part::size);
        let messages = self.history.iter().map(Message::size);
        512 + parts.sum::<usize>() + messages.sum::<usize>() + self.account.size()
    }

    /// The newest messages, so many at most.
    pub(crate) fn newest(&self, most: Option<usize>) -> &[Message] {
        let most = most.unwrap_or(self.history.len());
        let from = self.history.len().saturating_sub(most);
        self.history.get(from..).unwrap_or_default()
    }

    /// The number in its name.
    pub(crate) fn number(&self) -> u64 {
        self.id.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or_default()
    }
}
