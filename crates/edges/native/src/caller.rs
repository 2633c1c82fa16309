//! A caller over the native transport, as the kernel sees it.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use chio_core::frame::{FrameError, MAX_PAYLOAD};
use chio_core::message::{KernelMessage, encode_response};
use chio_cross_protocol::{ApprovalRequest, AskError, Caller, Evaluation, Gone, Question, Session};
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::error::NativeError;
use crate::outbox::{Outbox, SendError};
use crate::parked::ParkedCalls;
use crate::result;

/// What the calls of one connection share.
pub(crate) struct Link {
    pub(crate) session: Session,
    pub(crate) outbox: Outbox,
    /// Cancelled when the connection is gone.
    pub(crate) cancellation: CancellationToken,
    /// Those of them that wait for an approval.
    pub(crate) parked: ParkedCalls,
    /// The ids of calls that were not answered yet.
    ids: Mutex<HashSet<String>>,
}

impl Link {
    pub(crate) fn new(session: Session, outbox: Outbox) -> Self {
        let cancellation = CancellationToken::new();
        let (parked, ids) = (ParkedCalls::default(), Mutex::default());
        Self { session, outbox, cancellation, parked, ids }
    }

    /// Takes an id for a call; false when another call has it.
    pub(crate) fn take_id(&self, id: &str) -> bool {
        self.ids.lock().insert(id.to_owned())
    }

    fn release_id(&self, id: &str) {
        self.ids.lock().remove(id);
    }
}

/// The caller of one call.
pub(crate) struct NativeCaller {
    link: Arc<Link>,
    id: String,
    /// Whether the id is taken for this call, and not for an earlier one.
    owns_id: bool,
    /// The size of the call's message.
    weight: usize,
}

impl NativeCaller {
    pub(crate) const fn new(link: Arc<Link>, id: String, owns_id: bool, weight: usize) -> Self {
        Self { link, id, owns_id, weight }
    }

    /// Sends the end of the call. That its client has gone is no error: the end is in the log.
    pub(crate) async fn respond(&self, evaluation: Evaluation) -> Result<(), NativeError> {
        let receipt = &evaluation.receipt.bytes;
        let payload = encode_response(&self.id, &result::result(evaluation.outcome), receipt)
            .map_err(FrameError::from)?;
        let payload = if payload.len() > MAX_PAYLOAD {
            let found = u64::try_from(payload.len()).unwrap_or(u64::MAX);
            encode_response(&self.id, &result::too_large(found), receipt)
                .map_err(FrameError::from)?
        } else {
            payload
        };
        // Before the answer leaves: a client that has it may use the id again.
        if self.owns_id {
            self.link.release_id(&self.id);
        }
        match self.link.outbox.send_payload(&payload).await {
            Err(SendError::Frame(error)) => Err(error.into()),
            Ok(()) | Err(SendError::Closed) => Ok(()),
        }
    }
}

#[async_trait]
impl Caller for NativeCaller {
    fn session(&self) -> &Session {
        &self.link.session
    }

    async fn chunk(&self, index: u64, data: Value) -> Result<(), Gone> {
        let id = self.id.clone();
        let chunk = KernelMessage::ToolCallChunk { id, chunk_index: index, data };
        self.link.outbox.send(&chunk).await.map_err(|_| Gone)
    }

    async fn ask(&self, _question: Question) -> Result<Value, AskError> {
        // The transport has no message for it.
        Err(AskError::Unsupported)
    }

    fn cancellation(&self) -> &CancellationToken {
        &self.link.cancellation
    }

    fn parked(&self, waits_for: Option<&ApprovalRequest>) {
        if waits_for.is_some() {
            self.link.parked.begin(self.weight);
        } else {
            self.link.parked.end(self.weight);
        }
    }
}
