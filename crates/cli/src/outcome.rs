//! How a command ends: well, with something that is not valid, or without having run.

use std::fmt;

use chio_core::capability::{DelegationError, TokenError};
use chio_core::registry::ErrorCode;
use chio_core::signed::ArtifactError;
use serde_json::Value;

use crate::io::Io;

/// Exit code of a command that did what it was asked and found nothing wrong.
const WELL: u8 = 0;
/// Exit code of a command that read its input and refuses it.
pub(crate) const INVALID: u8 = 1;
/// Exit code of a command that could not be run as it was given.
pub(crate) const NOT_RUN: u8 = 2;
/// Exit code of a call that its tool ran, and which failed there.
const FAILED: u8 = 3;
/// Exit code of a call that was given to its tool, and whose end is not known.
const INCOMPLETE: u8 = 4;
/// Exit code of a call that was cancelled.
const CANCELLED: u8 = 5;

/// How a command that came to its end has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Done, and nothing is wrong.
    Well,
    /// Done, and what was looked at is not valid; a call was denied.
    Invalid,
    /// A call ran, and failed at its tool.
    Failed,
    /// The end of a call is not known.
    Incomplete,
    /// A call was cancelled.
    Cancelled,
}

impl Outcome {
    /// How a call ended, by what its answer over MCP says of it.
    pub(crate) fn of_answer(chio: Option<&Value>, is_error: bool) -> Self {
        let said = |name: &str| chio.and_then(|chio| chio.get(name)?.as_str());
        match (said("decision"), said("execution")) {
            (Some("incomplete"), _) => Self::Incomplete,
            (Some("cancelled"), _) => Self::Cancelled,
            (Some("deny"), Some("failed")) => Self::Failed,
            (Some("deny"), _) => Self::Invalid,
            // What the tool itself says of its failure.
            _ if is_error => Self::Failed,
            _ => Self::Well,
        }
    }

    /// The outcome of a check.
    pub(crate) const fn of(valid: bool) -> Self {
        if valid { Self::Well } else { Self::Invalid }
    }
}

/// A command that judges nothing ends well, or with an error.
impl From<()> for Outcome {
    fn from((): ()) -> Self {
        Self::Well
    }
}

/// An input that was read and is refused. Every other error means that nothing was decided.
#[derive(Debug)]
pub(crate) struct Refused {
    message: String,
    code: Option<ErrorCode>,
    outcome: Outcome,
}

impl Refused {
    /// A refusal that the registry has no code for.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: None, outcome: Outcome::Invalid }
    }

    /// A refusal of this registered kind.
    pub(crate) fn with_code(message: impl Into<String>, code: ErrorCode) -> Self {
        Self { code: Some(code), ..Self::new(message) }
    }

    /// A call that ended so.
    pub(crate) fn ended(message: impl Into<String>, outcome: Outcome) -> Self {
        Self { outcome, ..Self::new(message) }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.code.map_or(Ok(()), |code| write!(f, " [{code}]"))
    }
}

impl std::error::Error for Refused {}

impl From<ArtifactError> for Refused {
    fn from(error: ArtifactError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<DelegationError> for Refused {
    fn from(error: DelegationError) -> Self {
        let message = match &error {
            DelegationError::Parent(TokenError::UntrustedIssuer(_)) => {
                "expected a parent from this issuer, found another's: \
                 pass its key with --trusted-issuer if you trust it"
                    .to_owned()
            }
            error => error.to_string(),
        };
        Self::with_code(message, error.code())
    }
}

/// Writes what is still to be written and gives the exit code.
pub(crate) fn finish(result: anyhow::Result<Outcome>, io: &mut Io<'_>) -> u8 {
    let result = result.and_then(|outcome| io.flush().map(|()| outcome));
    let outcome = match result {
        Ok(outcome) => outcome,
        Err(error) => {
            io.complain("error", format_args!("{error:#}"));
            let Some(refused) = error.downcast_ref::<Refused>() else { return NOT_RUN };
            refused.outcome
        }
    };
    match outcome {
        Outcome::Well => WELL,
        Outcome::Invalid => INVALID,
        Outcome::Failed => FAILED,
        Outcome::Incomplete => INCOMPLETE,
        Outcome::Cancelled => CANCELLED,
    }
}
