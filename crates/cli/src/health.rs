//! What `chio doctor` finds: one line for each thing that was looked at.

use serde_json::{Value, json};

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Fine,
    /// Worth knowing.
    Note,
    Wrong,
}

impl State {
    pub(crate) const fn mark(self) -> &'static str {
        match self {
            Self::Fine => "ok",
            Self::Note => "note",
            Self::Wrong => "WRONG",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) state: State,
    /// What was looked at.
    pub(crate) what: String,
    /// What was found.
    pub(crate) found: String,
    /// What to do about it.
    pub(crate) to_do: Option<String>,
}

impl Check {
    pub(crate) fn fine(what: impl Into<String>, found: impl Into<String>) -> Self {
        Self { state: State::Fine, what: what.into(), found: found.into(), to_do: None }
    }

    pub(crate) fn note(what: impl Into<String>, found: impl Into<String>) -> Self {
        Self { state: State::Note, ..Self::fine(what, found) }
    }

    pub(crate) fn wrong(what: impl Into<String>, found: impl Into<String>) -> Self {
        Self { state: State::Wrong, ..Self::fine(what, found) }
    }

    pub(crate) fn with_advice(self, to_do: impl Into<String>) -> Self {
        Self { to_do: Some(to_do.into()), ..self }
    }

    pub(crate) fn document(&self) -> Value {
        json!({"check": self.what, "state": self.state.mark().to_ascii_lowercase(), "found": self.found,
            "todo": self.to_do})
    }
}
