//! The client, as the kernel sees it while a call runs.

use async_trait::async_trait;
use chio_cross_protocol::{AskError, Caller, Gone, Question, Session};
use chio_edge::limits::ConcurrencyPermit;
use chio_net::memory::HeldMemory;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// A client that receives one whole result, answers no questions and cannot wait for approvals.
pub(crate) struct A2aCaller {
    session: Session,
    cancellation: CancellationToken,
    /// None for a call that is cancelled before it runs.
    _permit: Option<ConcurrencyPermit>,
    /// What the message takes.
    _held: HeldMemory,
}

impl A2aCaller {
    /// Permit and memory are held until the kernel is done with the call.
    pub(crate) fn new(
        session: Session,
        cancellation: CancellationToken,
        (permit, held): (Option<ConcurrencyPermit>, HeldMemory),
    ) -> Self {
        Self { session, cancellation, _permit: permit, _held: held }
    }

    /// Cancels the call.
    pub(crate) fn cancel(&self) {
        self.cancellation.cancel();
    }
}

#[async_trait]
impl Caller for A2aCaller {
    fn session(&self) -> &Session {
        &self.session
    }

    async fn chunk(&self, _index: u64, _data: Value) -> Result<(), Gone> {
        // They are kept with the task, and given as a whole.
        Ok(())
    }

    async fn ask(&self, _question: Question) -> Result<Value, AskError> {
        Err(AskError::Unsupported)
    }

    fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }

    fn can_wait(&self) -> bool {
        false
    }
}
