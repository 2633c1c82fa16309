//! What became of a call at its tool, which a decision alone does not say.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ChildReceipt, ChioReceipt, Decision, LoggedReceipt, SealedReceipt, TerminalState};

/// The member of a receipt's metadata that says it. An allowed call without it ran and succeeded;
/// any other receipt without it, as earlier versions signed them, does not say whether the call ran.
pub const EXECUTION_MEMBER: &str = "execution";

/// What became of a call at its tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Execution {
    /// It did not reach its tool.
    NotBegun,
    /// It was given to its tool, and whether it ended there is not known.
    Begun,
    /// The tool ended and answered.
    Completed,
    /// The tool ended, and said that it failed: with an error, or in its result.
    Failed,
    /// Whether it reached its tool is not known: its kernel stopped.
    Unknown,
}

impl Execution {
    /// The member's value.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotBegun => "not_begun",
            Self::Begun => "begun",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }

    /// What metadata says; none when it says nothing that is known here.
    fn of(metadata: Option<&Value>) -> Option<Self> {
        Self::deserialize(metadata?.get(EXECUTION_MEMBER)?).ok()
    }
}

impl ChioReceipt {
    /// What became of the call at its tool; none when the receipt does not say.
    pub fn execution(&self) -> Option<Execution> {
        let said = Execution::of(self.metadata.as_ref());
        said.or((self.decision == Some(Decision::Allow)).then_some(Execution::Completed))
    }
}

impl ChildReceipt {
    /// What became of a read at its server; none when the receipt does not say, or is of a question.
    pub fn execution(&self) -> Option<Execution> {
        let metadata = self.metadata.as_ref();
        let succeeded = self.terminal_state == TerminalState::Completed
            && metadata.and_then(|it| it.get("outcome")?.as_str()) == Some("result");
        Execution::of(metadata).or(succeeded.then_some(Execution::Completed))
    }
}

impl LoggedReceipt {
    /// What became of the call or read at its tool server; none when the receipt does not say.
    pub fn execution(&self) -> Option<Execution> {
        match self {
            Self::Call(receipt) => receipt.execution(),
            Self::Child(receipt) => receipt.execution(),
        }
    }
}

impl SealedReceipt {
    /// What became of the call at its tool; none when the receipt does not say.
    pub fn execution(&self) -> Option<Execution> {
        LoggedReceipt::from_slice(&self.bytes).ok()?.execution()
    }
}
