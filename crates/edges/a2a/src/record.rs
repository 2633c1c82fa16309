//! A task, as every dialect encodes it, and as the store has it.

use std::borrow::Cow;

use chio_core::crypto::PublicKey;
use chio_core::receipt::{Decision, SealedReceipt};
use chio_cross_protocol::{TaskState, TaskView};
use chio_edge::tasks::{self, Record};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::call_report::CallReport;
use crate::convert::task_outcome;
use crate::message::{Message, Part};
use crate::modes::AcceptedModes;

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

impl From<TaskState> for State {
    fn from(state: TaskState) -> Self {
        match state {
            TaskState::Waiting | TaskState::Running => Self::Working,
            TaskState::Asking => Self::InputRequired,
            TaskState::Completed => Self::Completed,
            TaskState::Failed => Self::Failed,
            TaskState::Rejected => Self::Rejected,
            TaskState::Cancelled => Self::Canceled,
        }
    }
}

impl State {
    /// Every state.
    pub(crate) const ALL: [Self; 6] = [
        Self::Working,
        Self::Completed,
        Self::Failed,
        Self::Canceled,
        Self::Rejected,
        Self::InputRequired,
    ];

    /// The state of a task in the store whose call came to this.
    pub(crate) const fn stored(self) -> TaskState {
        match self {
            Self::Working => TaskState::Running,
            Self::InputRequired => TaskState::Asking,
            Self::Completed => TaskState::Completed,
            Self::Failed => TaskState::Failed,
            Self::Rejected => TaskState::Rejected,
            Self::Canceled => TaskState::Cancelled,
        }
    }

    /// Every state that a task of the store can be in while it is in this one.
    pub(crate) const fn all_stored(self) -> &'static [TaskState] {
        match self {
            Self::Working => &[TaskState::Waiting, TaskState::Running],
            Self::InputRequired => &[TaskState::Asking],
            Self::Completed => &[TaskState::Completed],
            Self::Failed => &[TaskState::Failed],
            Self::Rejected => &[TaskState::Rejected],
            Self::Canceled => &[TaskState::Cancelled],
        }
    }
}

/// What the store keeps of a task beside its result.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept<'a> {
    skill: Cow<'a, str>,
    history: Cow<'a, [Message]>,
    #[serde(default, skip_serializing_if = "AcceptedModes::is_all")]
    accepted: AcceptedModes,
}

/// A task.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TaskRecord {
    pub(crate) id: String,
    /// The conversation that it belongs to; unknown for some tasks of earlier versions.
    pub(crate) context_id: Option<String>,
    pub(crate) skill: String,
    pub(crate) state: State,
    pub(crate) output: Vec<Part>,
    /// Why it is in its state, or what its agent asks.
    pub(crate) words: Vec<Part>,
    /// Messages, the newest last.
    pub(crate) history: Vec<Message>,
    /// What its client takes of a result.
    pub(crate) accepted: AcceptedModes,
    pub(crate) report: CallReport,
    /// Whether the tool wants a message as response and no task.
    pub(crate) replies: bool,
    /// When it entered its state, in Unix seconds.
    pub(crate) updated_at: u64,
}

/// The tasks that this process runs, by the keys of their callers.
pub(crate) type TaskTable = tasks::TaskTable<PublicKey, TaskRecord>;
pub(crate) type TaskEntry = tasks::TaskEntry<PublicKey, TaskRecord>;

impl Record for TaskRecord {
    fn id(&self) -> &str {
        &self.id
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
            accepted: AcceptedModes::All,
            report: CallReport::pending(),
            replies: false,
            updated_at,
        }
    }

    /// A task as the store has it.
    pub(crate) fn from_view(view: TaskView) -> Self {
        let kept: Kept<'static> = serde_json::from_slice(&view.record).unwrap_or_default();
        // Earlier versions kept the names with the call.
        let named = |name: &str| {
            let value = view.context.as_ref().and_then(|context| context.get(name));
            value.and_then(Value::as_str).map(str::to_owned)
        };
        let context_id = view.conversation.clone().or_else(|| named("contextId"));
        let skill = Some(kept.skill.into_owned()).filter(|skill| !skill.is_empty());
        let skill = skill.or_else(|| named("skillId")).unwrap_or_default();
        let history = kept.history.into_owned();
        let mut record = Self::working(view.id, context_id, skill, history, view.updated_at);
        record.state = view.state.into();
        record.accepted = kept.accepted;
        match (record.state, view.result, view.receipt) {
            (State::Working, ..) => {}
            (_, Some(result), Some(receipt)) => {
                let ending = task_outcome(&result.outcome, &result.chunks);
                record.output = record.accepted.tailored(ending.output);
                record.words = ending.words;
                record.replies = ending.replies;
                record.report = CallReport::new(&result.outcome, receipt);
            }
            (State::Canceled, _, receipt) => {
                record.words = vec![Part::text("called off by the caller")];
                record.report = CallReport::without_outcome("cancelled", receipt);
            }
            (State::Completed | State::InputRequired, _, receipt) => {
                record.report = CallReport::without_outcome("allow", receipt);
            }
            // Its result was left out of a list.
            (State::Failed | State::Rejected, _, Some(receipt)) if decided(&receipt).is_some() => {
                let decision = decided(&receipt).unwrap_or_default();
                record.report = CallReport::without_outcome(decision, Some(receipt));
            }
            (State::Failed | State::Rejected, _, receipt) => {
                record.words = vec![Part::text("the kernel stopped while the task ran")];
                record.report = CallReport::interrupted(receipt);
            }
        }
        record
    }

    /// What the store keeps of it beside its result.
    pub(crate) fn kept(&self) -> Vec<u8> {
        let (skill, history) = (self.skill.as_str().into(), self.history.as_slice().into());
        let accepted = self.accepted;
        serde_json::to_vec(&Kept { skill, history, accepted }).unwrap_or_default()
    }

    /// Whether this message is a part of it.
    pub(crate) fn has_said(&self, message: &Message) -> bool {
        self.history.iter().any(|said| {
            said.id == message.id && said.parts == message.parts && said.role == message.role
        })
    }

    /// Whether it was begun by a call of this skill whose result is wanted in these forms.
    pub(crate) fn is_for(&self, skill: &str, accepted: AcceptedModes) -> bool {
        self.skill == skill && self.accepted == accepted
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

/// The decision of a receipt whose call came to an end; none of one that was interrupted.
fn decided(receipt: &SealedReceipt) -> Option<&'static str> {
    match receipt.open().ok()?.decision? {
        Decision::Allow => Some("allow"),
        Decision::Deny { .. } => Some("deny"),
        Decision::Cancelled { .. } | Decision::Incomplete { .. } => None,
    }
}
