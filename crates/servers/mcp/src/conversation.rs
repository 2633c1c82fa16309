//! The conversation with one child: which request it answers, and who gets what else it says.
//!
//! Nothing here waits for a reader: a message is sorted at once, or dropped where its reader is too
//! slow.

mod audience;
mod events;
mod routing;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chio_core::text::members;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) use audience::Audience;
pub(crate) use events::{Change, ChildQuestion, Events, Outside, QueuedNotification, Running};

use crate::error::McpError;
use crate::list::ListCache;
use crate::options::McpServerOptions;
use crate::outbox::Outbox;
use crate::wire;
use events::Route;

/// How many things outside of any call wait for the client.
const MAX_OUTSIDE: usize = 64;
/// The one request that cannot be cancelled.
const INITIALIZE: &str = "initialize";

/// The conversation with one child.
pub(crate) struct Conversation {
    pub(crate) settings: Arc<McpServerOptions>,
    /// Whom the child speaks to; none as long as that is not known.
    audience: OnceLock<Audience>,
    pub(crate) outbox: Outbox,
    pub(crate) list_cache: ListCache,
    /// A permit for each byte that may still wait for a client.
    room: Arc<Semaphore>,
    state: Mutex<State>,
    outside: mpsc::Sender<Outside>,
    changes: Mutex<BTreeSet<Change>>,
    changed: Notify,
    over: CancellationToken,
}

#[derive(Default)]
struct State {
    last_id: u64,
    pending: HashMap<u64, Pending>,
    /// The calls that run, in the order in which they began.
    calls: Vec<Route>,
    /// Sessions whose calls have ended, until when the child may still speak of them.
    recent: HashMap<String, Instant>,
    /// Questions that the child still waits for.
    asked: HashSet<String>,
    end: Option<(McpError, Instant)>,
}

impl State {
    const fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }
}

type Answer = Result<Value, McpError>;

struct Pending {
    answer: oneshot::Sender<Answer>,
    can_cancel: bool,
}

/// A request that waits for its answer. To drop it before cancels the request.
pub(crate) struct Waiting<'a> {
    conversation: &'a Conversation,
    id: u64,
    answer: oneshot::Receiver<Answer>,
}

impl Waiting<'_> {
    /// Waits for the answer.
    ///
    /// # Errors
    /// When there is none, or an error.
    pub(crate) async fn answer(mut self) -> Answer {
        (&mut self.answer).await.unwrap_or(Err(McpError::Stopped))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let pending = self.conversation.state.lock().pending.remove(&self.id);
        if pending.is_some_and(|pending| pending.can_cancel) {
            self.conversation.send_cancellation(self.id);
        }
    }
}

impl Conversation {
    /// A conversation with a child. What belongs to no call comes out at the other end.
    pub(crate) fn new(settings: Arc<McpServerOptions>) -> (Arc<Self>, mpsc::Receiver<Outside>) {
        let (outside, others) = mpsc::channel(MAX_OUTSIDE);
        let limits = &settings.limits;
        let room = usize::try_from(limits.max_held_bytes).unwrap_or(Semaphore::MAX_PERMITS);
        let conversation = Self {
            audience: OnceLock::new(),
            outbox: Outbox::new(limits.max_queued_bytes),
            list_cache: ListCache::default(),
            room: Arc::new(Semaphore::new(room)),
            state: Mutex::default(),
            outside,
            changes: Mutex::default(),
            changed: Notify::new(),
            over: CancellationToken::new(),
            settings,
        };
        (Arc::new(conversation), others)
    }

    /// Says whom the child speaks to.
    pub(crate) fn address(&self, audience: Audience) {
        let _ = self.audience.set(audience);
    }

    /// Whom the child speaks to.
    pub(crate) fn audience(&self) -> &Audience {
        self.audience.get().unwrap_or(&Audience::Nobody)
    }

    /// Cancelled when the child is gone.
    pub(crate) const fn over(&self) -> &CancellationToken {
        &self.over
    }

    /// When the child was gone; none while it is there.
    pub(crate) fn ended_at(&self) -> Option<Instant> {
        self.state.lock().end.as_ref().map(|(_, at)| *at)
    }

    /// The child is gone: no request waits for it any more.
    pub(crate) fn end(&self, error: &McpError) {
        let pending: Vec<Pending> = {
            let mut state = self.state.lock();
            if state.end.is_none() {
                state.end = Some((error.clone(), Instant::now()));
            }
            state.pending.drain().map(|(_, pending)| pending).collect()
        };
        for Pending { answer, .. } in pending {
            let _ = answer.send(Err(error.clone()));
        }
        self.outbox.finish();
        self.over.cancel();
    }

    /// Lets every request that waits fail, because it is unknown whose answer was lost.
    pub(crate) fn fail_all(&self, error: &McpError) {
        let pending: Vec<(u64, Pending)> = self.state.lock().pending.drain().collect();
        for (id, Pending { answer, can_cancel }) in pending {
            let _ = answer.send(Err(error.clone()));
            if can_cancel {
                self.send_cancellation(id);
            }
        }
    }

    fn send_cancellation(&self, id: u64) {
        let params = json!({"requestId": id, "reason": "called off"});
        self.notify("notifications/cancelled", Some(&members(params)));
    }

    /// Asks the child something and waits for the answer. A caller that stops waiting cancels it.
    ///
    /// # Errors
    /// When there is no answer, or an error.
    pub(crate) async fn request(&self, method: &str, params: Map<String, Value>) -> Answer {
        self.send(method, &params)?.answer().await
    }

    /// As [`Self::request`], but not for ever.
    ///
    /// # Errors
    /// As there, and when it takes too long.
    pub(crate) async fn request_within(
        &self,
        within: Duration,
        method: &'static str,
        params: Map<String, Value>,
    ) -> Answer {
        let silent = Err(McpError::Silent { method, within });
        tokio::time::timeout(within, self.request(method, params)).await.unwrap_or(silent)
    }

    /// Asks the child something.
    ///
    /// # Errors
    /// When the request could not be queued: the child sees nothing of it.
    pub(crate) fn send(
        &self,
        method: &str,
        params: &Map<String, Value>,
    ) -> Result<Waiting<'_>, McpError> {
        let (sender, answer) = oneshot::channel();
        let pending = Pending { answer: sender, can_cancel: method != INITIALIZE };
        let max = self.settings.limits.max_pending;
        let id = {
            let mut state = self.state.lock();
            if let Some((error, _)) = &state.end {
                return Err(error.clone());
            }
            if state.pending.len() >= max {
                return Err(McpError::TooMany { what: "requests at once", max });
            }
            let id = state.next_id();
            state.pending.insert(id, pending);
            id
        };
        if self.outbox.push(&wire::request(id, method, params)) {
            return Ok(Waiting { conversation: self, id, answer });
        }
        self.state.lock().pending.remove(&id);
        Err(McpError::Deaf)
    }

    /// Asks the child for something without waiting for the answer.
    pub(crate) fn request_blindly(&self, method: &str, params: &Map<String, Value>) {
        let id = self.state.lock().next_id();
        self.outbox.push_urgent(&wire::request(id, method, params));
    }

    /// Sends the child a notification; tells whether it could be queued.
    pub(crate) fn notify(&self, method: &str, params: Option<&Map<String, Value>>) -> bool {
        self.outbox.push_urgent(&wire::notification(method, params))
    }

    /// Gives an answer to the request that waits for it. A late one is dropped.
    fn resolve(&self, id: u64, outcome: Answer) {
        let pending = self.state.lock().pending.remove(&id);
        if let Some(Pending { answer, .. }) = pending {
            let _ = answer.send(outcome);
        }
    }

    /// The lists that have changed since they were asked for; waits for the first.
    pub(crate) async fn changes(&self) -> BTreeSet<Change> {
        loop {
            let changes = std::mem::take(&mut *self.changes.lock());
            if !changes.is_empty() {
                return changes;
            }
            self.changed.notified().await;
        }
    }
}

#[cfg(test)]
mod tests;
