//! Who waits for which answer.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use chio_core::capability::CapabilityToken;
use chio_core::message::ToolCallResponse;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::ClientError;

/// How many chunks of a call wait for its caller. Beyond, nothing more is read.
const MAX_EVENTS: usize = 16;

/// Something that happened to a call.
pub(super) enum Event {
    Chunk(u64, Value),
    Response(Box<ToolCallResponse>),
}

/// Every caller that waits on one connection.
#[derive(Default)]
pub(super) struct Waiting(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    calls: HashMap<String, mpsc::Sender<Event>>,
    lists: VecDeque<oneshot::Sender<Vec<CapabilityToken>>>,
    heartbeats: VecDeque<oneshot::Sender<()>>,
    /// Why the connection ended.
    closed: Option<String>,
}

/// What happens to one call. When it is dropped, no caller waits for the call any more.
pub(super) struct Events {
    id: String,
    receiver: mpsc::Receiver<Event>,
    inner: Arc<Mutex<Inner>>,
}

impl Events {
    pub(super) async fn next(&mut self) -> Option<Event> {
        self.receiver.recv().await
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        // Closed first, so that an entry that another call has made since is told apart.
        self.receiver.close();
        let mut inner = self.inner.lock();
        if inner.calls.get(&self.id).is_some_and(mpsc::Sender::is_closed) {
            inner.calls.remove(&self.id);
        }
    }
}

impl Waiting {
    /// Waits for what happens to a call.
    pub(super) fn call(&self, id: &str) -> Result<Events, ClientError> {
        let mut inner = self.open()?;
        if inner.calls.contains_key(id) {
            return Err(ClientError::DuplicateId(id.to_owned()));
        }
        let (sender, receiver) = mpsc::channel(MAX_EVENTS);
        inner.calls.insert(id.to_owned(), sender);
        Ok(Events { id: id.to_owned(), receiver, inner: Arc::clone(&self.0) })
    }

    pub(super) fn list(&self) -> Result<oneshot::Receiver<Vec<CapabilityToken>>, ClientError> {
        let (sender, receiver) = oneshot::channel();
        self.open()?.lists.push_back(sender);
        Ok(receiver)
    }

    pub(super) fn heartbeat(&self) -> Result<oneshot::Receiver<()>, ClientError> {
        let (sender, receiver) = oneshot::channel();
        self.open()?.heartbeats.push_back(sender);
        Ok(receiver)
    }

    // What no caller waits for is dropped: it went away, or never asked.

    pub(super) async fn chunk(&self, id: &str, index: u64, data: Value) {
        let sender = self.0.lock().calls.get(id).cloned();
        if let Some(sender) = sender {
            let _ = sender.send(Event::Chunk(index, data)).await;
        }
    }

    pub(super) async fn response(&self, response: Box<ToolCallResponse>) {
        let sender = self.0.lock().calls.remove(&response.id);
        if let Some(sender) = sender {
            let _ = sender.send(Event::Response(response)).await;
        }
    }

    pub(super) fn listed(&self, capabilities: Vec<CapabilityToken>) {
        if let Some(sender) = self.0.lock().lists.pop_front() {
            let _ = sender.send(capabilities);
        }
    }

    pub(super) fn alive(&self) {
        if let Some(sender) = self.0.lock().heartbeats.pop_front() {
            let _ = sender.send(());
        }
    }

    /// Sends every caller away; only the first reason counts.
    pub(super) fn close(&self, problem: &str) {
        let mut inner = self.0.lock();
        inner.closed.get_or_insert_with(|| problem.to_owned());
        inner.calls.clear();
        inner.lists.clear();
        inner.heartbeats.clear();
    }

    /// Why the connection ended.
    pub(super) fn closed(&self) -> ClientError {
        ClientError::Closed(self.0.lock().closed.clone().unwrap_or_default())
    }

    fn open(&self) -> Result<MutexGuard<'_, Inner>, ClientError> {
        let inner = self.0.lock();
        match &inner.closed {
            Some(problem) => Err(ClientError::Closed(problem.clone())),
            None => Ok(inner),
        }
    }
}
