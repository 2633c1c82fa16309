//! What can go wrong with an MCP server.

use std::time::Duration;

use chio_kernel::KernelError;
use serde_json::Value;

/// What went wrong with an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// There is nothing to start.
    #[error("expected a command to start, found none")]
    NoCommand,
    /// The program did not start.
    #[error("`{program}` cannot be started: {problem}")]
    NotStarted {
        /// The program, without its arguments.
        program: String,
        /// The system's error.
        problem: String,
    },
    /// The server speaks another version of the protocol.
    #[error("expected a server of MCP {expected}, found one of `{found}`")]
    Version {
        /// What we offered.
        expected: &'static str,
        /// What it answered.
        found: String,
    },
    /// The server answered with an error of its own.
    #[error("the server answered {code}: {message}")]
    Answered {
        /// JSON-RPC's code.
        code: i64,
        /// The server's words.
        message: String,
        /// What it says for programs.
        data: Option<Box<Value>>,
    },
    /// The server's answer is not what was asked for.
    #[error("expected {expected} from the server, found something else")]
    Unexpected {
        /// What was asked for.
        expected: &'static str,
    },
    /// An answer is no JSON that could be read.
    #[error("the server's answer cannot be read: {0}")]
    Unreadable(String),
    /// A line was too long to be read. Whose answer it was cannot be known.
    #[error("the server sent a line longer than {0} bytes")]
    TooLong(usize),
    /// There was no memory for a line. Whose answer it was cannot be known.
    #[error("there was no memory for what the server sent: all was in use")]
    Crowded,
    /// There was no answer in time.
    #[error("expected an answer of the server to `{method}` within {}s, found none", within.as_secs())]
    Silent {
        /// What was asked.
        method: &'static str,
        /// In which time.
        within: Duration,
    },
    /// There is more of something than may be.
    #[error("expected at most {max} {what}, found more")]
    TooMany {
        /// What was counted.
        what: &'static str,
        /// How many may be.
        max: usize,
    },
    /// The server does not read what it is sent.
    #[error("the server does not read what it is sent")]
    Deaf,
    /// The server's process is over.
    #[error("the server ended: {0}")]
    Ended(String),
    /// The server failed a moment ago.
    #[error("the server failed and is started again in {} ms at the earliest", .0.as_millis())]
    Pausing(Duration),
    /// The server was stopped.
    #[error("the server was stopped")]
    Stopped,
    /// Only a session that was opened can be told of changes.
    #[error("expected a session that was opened with the server, found another")]
    NoSession,
}

impl From<McpError> for KernelError {
    fn from(error: McpError) -> Self {
        match error {
            McpError::Answered { code, message, data } => Self::Answered { code, message, data },
            McpError::Unreadable(_)
            | McpError::TooLong(_)
            | McpError::Crowded
            | McpError::Silent { .. }
            | McpError::Ended(_)
            | McpError::Stopped => Self::Incomplete(error.to_string()),
            other => Self::ToolServerError(other.to_string()),
        }
    }
}
