//! The caller, as the kernel sees it: it takes chunks, answers questions and may lose interest.

use std::sync::Arc;

use async_trait::async_trait;
use chio_core::principal::Principal;
use chio_core::protocol::DiscoveryProtocol;
use chio_core::receipt::OperationKind;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::call::Outcome;
use crate::store::{ApprovalRequest, TaskEnd};

/// The session that a call belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    /// Its name.
    pub id: String,
    /// The protocol that the caller speaks.
    pub protocol: DiscoveryProtocol,
    /// The principal that calls.
    pub principal: Arc<Principal>,
}

impl Session {
    /// A session of a principal that has not authenticated.
    pub fn anonymous(id: impl Into<String>, protocol: DiscoveryProtocol) -> Self {
        Self { id: id.into(), protocol, principal: Arc::default() }
    }
}

/// The caller takes nothing more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the caller is gone")]
pub struct Gone;

/// A question that a tool asks back.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// What is asked for.
    pub kind: OperationKind,
    /// The question, in the terms of that kind.
    pub params: Value,
}

/// A notice of a server to the caller while a call runs, or outside of any.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerNotification {
    /// What kind of thing: a method of the server's protocol, such as `notifications/progress`.
    pub method: String,
    /// The params of the method.
    pub params: Map<String, Value>,
}

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The caller's protocol, or the caller, does not take such questions.
    #[error("the caller does not take this kind of question")]
    Unsupported,
    /// The question could not be asked, or not be answered.
    #[error("the caller answered with an error: {0}")]
    Failed(String),
    /// The caller answered with an error of its protocol.
    #[error("the caller answered with an error: {message}")]
    Answered {
        /// The protocol's code.
        code: i64,
        /// The caller's words.
        message: String,
        /// What it says for programs.
        data: Option<Box<Value>>,
    },
    /// The caller is gone, or the call was cancelled.
    #[error("the caller is gone")]
    Gone,
}

/// The caller. Edges implement it.
#[async_trait]
pub trait Caller: Send + Sync {
    /// The session that the call belongs to.
    fn session(&self) -> &Session;

    /// Gives the caller one part of a stream.
    async fn chunk(&self, index: u64, data: Value) -> Result<(), Gone>;

    /// Asks the caller something on behalf of the tool.
    async fn ask(&self, question: Question) -> Result<Value, AskError>;

    /// Cancelled when the caller cancels the call.
    fn cancellation(&self) -> &CancellationToken;

    /// Whether the caller can wait until an approver answers.
    fn can_wait(&self) -> bool {
        true
    }

    /// Told when the call begins to wait for an approval, and for which; and with none when it goes
    /// on or ends.
    fn parked(&self, _waits_for: Option<&ApprovalRequest>) {}

    /// Sends the caller a notice. What it does not take is lost.
    async fn notice(&self, _notice: ServerNotification) {}

    /// Whether the caller wants to know how far a call has come.
    fn wants_progress(&self) -> bool {
        false
    }

    /// How a task ends whose call ends so, by its receipt.
    fn task_end(&self, outcome: &Outcome) -> TaskEnd {
        TaskEnd { state: outcome.task_state(), result: Vec::new() }
    }
}

/// A caller that takes no chunks and no questions and never cancels.
#[derive(Debug)]
pub struct NoCaller {
    session: Session,
    cancellation: CancellationToken,
}

impl NoCaller {
    /// A caller in this session.
    pub fn new(session: Session) -> Self {
        Self { session, cancellation: CancellationToken::new() }
    }
}

#[async_trait]
impl Caller for NoCaller {
    fn session(&self) -> &Session {
        &self.session
    }

    async fn chunk(&self, _index: u64, _data: Value) -> Result<(), Gone> {
        Ok(())
    }

    async fn ask(&self, _question: Question) -> Result<Value, AskError> {
        Err(AskError::Unsupported)
    }

    fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }
}
