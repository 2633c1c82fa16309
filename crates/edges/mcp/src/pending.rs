//! Questions that the client was asked, and has not answered yet.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use chio_cross_protocol::AskError;
use chio_cross_protocol::jsonrpc::{RequestId, Response};
use serde_json::Value;
use tokio::sync::oneshot;

type Answer = Result<Value, AskError>;

/// The most questions that wait at once.
const MOST: usize = 64;
/// The most of a client's words about a failure that go on.
const MAX_WORDS: usize = 4096;

/// Questions that wait for their answers.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    waiting: Mutex<HashMap<RequestId, oneshot::Sender<Answer>>>,
    next: AtomicU64,
}

impl Pending {
    fn waiting(&self) -> MutexGuard<'_, HashMap<RequestId, oneshot::Sender<Answer>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A name for a new question, and where its answer comes. None when too many wait.
    pub(crate) fn begin(&self) -> Option<(RequestId, oneshot::Receiver<Answer>)> {
        let mut waiting = self.waiting();
        if waiting.len() >= MOST {
            return None;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let (id, (sender, receiver)) =
            (RequestId::from(format!("chio-{number}")), oneshot::channel());
        waiting.insert(id.clone(), sender);
        Some((id, receiver))
    }

    /// Forgets a question. Tells whether it was still waiting.
    pub(crate) fn forget(&self, id: &RequestId) -> bool {
        self.waiting().remove(id).is_some()
    }

    /// Hands an answer to whoever waits for it. An answer to nothing is dropped.
    pub(crate) fn resolve(&self, response: Response) {
        let Some(sender) = self.waiting().remove(&response.id) else { return };
        let answer = match response.outcome {
            Ok(body) => Ok(body.into_value()),
            Err(error) => {
                let words: String = error.message.chars().take(MAX_WORDS).collect();
                Err(AskError::Failed(words))
            }
        };
        let _ = sender.send(answer);
    }
}
