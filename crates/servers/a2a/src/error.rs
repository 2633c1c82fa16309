//! What can go wrong with an A2A agent.

use chio_kernel::KernelError;
use chio_net::client::ClientError;

/// How many characters of an agent's or an operator's word a message repeats.
pub(crate) const MAX_SHOWN: usize = 40;

/// What went wrong with an A2A agent. Secrets, tokens and argument values never appear in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// What the adapter was configured with cannot be used.
    #[error("the configuration cannot be used: {0}")]
    Configuration(String),
    /// A URL that may not be reached.
    #[error("invalid URL: {0}")]
    InvalidUrl(String),
    /// Only interfaces of bindings that are not spoken here.
    #[error("unsupported binding: {0}")]
    UnsupportedBinding(String),
    /// Only interfaces of versions that are not spoken here.
    #[error("unsupported version: {0}")]
    UnsupportedVersion(String),
    /// No interface at all that can be spoken to.
    #[error("no supported interfaces: {0}")]
    NoSupportedInterfaces(String),
    /// A card without skills.
    #[error("no skills: {0}")]
    NoSkills(String),
    /// Only skills that take neither text nor JSON.
    #[error("no projectable skills: {0}")]
    NoProjectableSkills(String),
    /// A tool that is none of the agent's skills.
    #[error("tool not registered: {0}")]
    UnknownTool(String),
    /// Arguments that break the tool's contract.
    #[error("invalid tool input: {0}")]
    InvalidToolInput(String),
    /// Nothing was sent: there is no connection to the agent.
    #[error("remote request failed: {0}")]
    NotReached(String),
    /// The agent was asked, and its answer did not come.
    #[error("remote request failed: {0}")]
    Unanswered(String),
    /// The agent answered with an error.
    #[error("remote request failed: {detail}")]
    RemoteRequestFailed {
        /// The HTTP status, when it is not a success.
        status: Option<u16>,
        /// The JSON-RPC code, or none.
        code: Option<i64>,
        /// What is wrong.
        detail: String,
    },
    /// The agent answered what A2A does not allow.
    #[error("protocol error: {0}")]
    Protocol(String),
    /// A stream ended before its task did.
    #[error("incomplete stream: {0}")]
    Incomplete(String),
    /// The declared security requirements cannot be met.
    #[error("auth negotiation failed: {0}")]
    AuthNegotiation(String),
    /// The card breaks the contract with the partner.
    #[error("partner admission failed: {0}")]
    PartnerAdmission(String),
    /// A task that does not belong to the call, or whose binding cannot be kept.
    #[error("lifecycle correlation failed: {0}")]
    Lifecycle(String),
}

impl AgentError {
    /// A request that got no answer.
    pub(crate) fn unanswered(to: &str, error: &ClientError) -> Self {
        let detail = format!("{to}: {error}");
        if error.was_sent() { Self::Unanswered(detail) } else { Self::NotReached(detail) }
    }

    /// Whether the agent no longer speaks where it did.
    pub(crate) const fn says_gone(&self) -> bool {
        matches!(
            self,
            Self::RemoteRequestFailed { status: Some(404 | 410), .. }
                | Self::RemoteRequestFailed { code: Some(-32601), .. }
        )
    }

    /// Whether the agent did not take our credentials.
    pub(crate) const fn says_unauthorized(&self) -> bool {
        matches!(self, Self::RemoteRequestFailed { status: Some(401), .. })
    }
}

impl From<AgentError> for KernelError {
    fn from(error: AgentError) -> Self {
        match error {
            // What cannot be understood is no answer.
            AgentError::Incomplete(_)
            | AgentError::Unanswered(_)
            | AgentError::Protocol(_)
            | AgentError::Lifecycle(_) => Self::Incomplete(error.to_string()),
            _ => Self::ToolServerError(error.to_string()),
        }
    }
}
