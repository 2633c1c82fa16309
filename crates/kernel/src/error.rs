//! What can go wrong without an answer, and what tool servers report.

use chio_core::canonical::CanonicalError;
use chio_core::registry::ErrorCode;
use chio_core::signed::ArtifactError;
use serde_json::Value;

use crate::call::Denial;
use crate::store::{StoreError, TaskRefused};

/// Why there is no answer. A call that ends so has left no receipt of its own: nothing of its
/// result may be released.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// A tool server failed: it answered with an error, or was not given the call
    /// ([`crate::CallContext::not_sent`]). The road makes a denial of it; it never leaves `evaluate`.
    #[error("the tool server failed: {0}")]
    ToolServerError(String),
    /// A tool server was given the call, and its answer did not come, or not whole. It never leaves
    /// the road either.
    #[error("the tool server failed: {0}")]
    Incomplete(String),
    /// A tool server answered with an error of its own protocol. It never leaves the road either.
    #[error("the tool server answered {code}: {message}")]
    Answered {
        /// The protocol's code.
        code: i64,
        /// The server's words.
        message: String,
        /// What it says for programs.
        data: Option<Box<Value>>,
    },
    /// The receipt could not be made durable.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The receipt could not be made.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// Another process has closed the call's intent in the meantime.
    #[error("the call was recovered by another kernel; its receipt is already signed")]
    Recovered,
    /// The deferred task that the call is for cannot be run; nothing was.
    #[error("the task cannot be run: {0}")]
    NotClaimed(TaskRefused),
    /// The kernel takes nothing on now; nothing was run.
    #[error("the kernel takes nothing on now: {0}")]
    NotNow(Denial),
    /// The call's task broke off.
    #[error("the call broke off inside the kernel")]
    Panicked,
    /// What a tool server offers cannot be understood.
    #[error("the manifest: {0}")]
    Manifest(String),
    /// Two tool servers of one name.
    #[error("expected one tool server named `{0}`, found a second")]
    DuplicateServer(String),
}

impl KernelError {
    /// Whether nothing was run, which is for the caller to know and not for the operator.
    pub(crate) const fn ran_nothing(&self) -> bool {
        matches!(self, Self::NotClaimed(_) | Self::NotNow(_))
    }

    /// The registry code.
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::ToolServerError(_) | Self::Incomplete(_) | Self::Answered { .. } => {
                ErrorCode::ToolServerError
            }
            _ => ErrorCode::InternalError,
        }
    }
}

impl From<CanonicalError> for KernelError {
    fn from(error: CanonicalError) -> Self {
        Self::Artifact(error.into())
    }
}
