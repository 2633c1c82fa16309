//! Who gets what a child says.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use chio_core::receipt::OperationKind;
use chio_kernel::{Question, ServerNotification};
use chio_net::jsonrpc::RpcError;
use serde_json::{Map, Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::error::TrySendError;

use super::Conversation;
use super::events::{Change, ChildQuestion, Outside, QueuedNotification, Reply};
use crate::wire::{self, Incoming};

/// What a client can do that servers are told of.
pub(crate) const FORWARDED: [&str; 3] = ["sampling", "elicitation", "roots"];

/// What a server may ask: the method, the client's capability for it, and what receipts call it.
const QUESTIONS: [(&str, &str, OperationKind); 3] = [
    ("sampling/createMessage", "sampling", OperationKind::CreateMessage),
    ("elicitation/create", "elicitation", OperationKind::CreateElicitation),
    ("roots/list", "roots", OperationKind::ListRoots),
];

/// The member by which a server says whose progress it tells.
const PROGRESS_TOKEN: &str = "progressToken";
/// The size above which the kernel drops a notification.
const MAX_NOTIFICATION: usize = 1 << 20;

impl Conversation {
    /// Sorts a line; tells whether it was one of messages.
    pub(crate) fn take(self: &Arc<Self>, line: &[u8]) -> bool {
        let Some(messages) = wire::read(line) else {
            let Some((id, error)) = wire::unreadable_answer(line) else { return false };
            self.resolve(id, Err(error));
            return true;
        };
        for message in messages {
            match message {
                Incoming::Answer { id: Some(id), outcome } => self.resolve(id, outcome),
                Incoming::Answer { id: None, .. } => {}
                Incoming::Request { id, method, params } => {
                    self.asked(id, &method, params, line.len());
                }
                Incoming::Notification { method, params } => {
                    self.take_notification(method, params, line.len());
                }
            }
        }
        true
    }

    /// Room for something of this size; none when too much waits already.
    pub(super) fn weigh(&self, size: usize) -> Option<OwnedSemaphorePermit> {
        let size = u32::try_from(size).ok()?;
        Arc::clone(&self.room).try_acquire_many_owned(size).ok()
    }

    /// A question of the child.
    fn asked(self: &Arc<Self>, id: Value, method: &str, params: Map<String, Value>, size: usize) {
        if method == "ping" {
            self.outbox.push_urgent(&wire::answer(&id, &json!({})));
            return;
        }
        let refuse = |code, words: &str| {
            self.outbox.push_urgent(&wire::refusal(&id, code, words));
        };
        let known = QUESTIONS.iter().find(|(name, ..)| *name == method);
        let Some((_, capability, kind)) = known else {
            return refuse(RpcError::METHOD_NOT_FOUND, "the client has no such method");
        };
        // SECURITY: a child that has no client of its own may ask none.
        let client = self.client.as_ref();
        if !client.is_some_and(|client| client.contains_key(*capability)) {
            return refuse(RpcError::METHOD_NOT_FOUND, "the client does not take this");
        }
        let Some(weight) = self.weigh(size) else {
            return refuse(RpcError::INTERNAL_ERROR, "too much waits for the client already");
        };
        if !self.state.lock().asked.insert(id.to_string()) {
            return refuse(RpcError::INTERNAL_ERROR, "expected a new id, found one in use");
        }
        let question = Question { kind: *kind, params: Value::Object(params) };
        let reply = Reply::new(self, id, &question);
        self.ask(ChildQuestion { question, reply, _weight: weight });
    }

    /// A question goes to the newest call, or else to the client outside of any. One that does not
    /// fit is dropped, and so answered with an error.
    fn ask(&self, asked: ChildQuestion) {
        let newest = self.state.lock().calls.last().map(|call| call.questions.clone());
        let asked = match newest {
            None => asked,
            Some(questions) => match questions.try_send(asked) {
                Ok(()) | Err(TrySendError::Full(_)) => return,
                Err(TrySendError::Closed(asked)) => asked,
            },
        };
        self.ask_outside(asked);
    }

    pub(super) fn ask_outside(&self, mut asked: ChildQuestion) {
        asked.reply.is_outside();
        let _ = self.outside.try_send(Outside::Question(asked));
    }

    /// A notification of the child.
    fn take_notification(&self, method: String, mut params: Map<String, Value>, size: usize) {
        if let Some(change) = Change::ALL.into_iter().find(|change| change.method() == method) {
            return self.list_changed(change);
        }
        match &*method {
            "notifications/cancelled" => {
                if let Some(id) = params.get("requestId") {
                    self.state.lock().asked.remove(&id.to_string());
                }
            }
            "notifications/progress" => {
                let token = params.remove(PROGRESS_TOKEN).as_ref().and_then(Value::as_u64);
                self.notify_call(token, ServerNotification { method, params }, size);
            }
            // SECURITY: what a shared child says on its own belongs to no session.
            "notifications/message" if self.client.is_some() => {
                self.notify_call(None, ServerNotification { method, params }, size);
            }
            "notifications/resources/updated" => {
                self.notify_session(ServerNotification { method, params }, size)
            }
            "notifications/elicitation/complete" | "notifications/tasks/status"
                if self.client.is_some() =>
            {
                self.notify_session(ServerNotification { method, params }, size);
            }
            _ => {}
        }
    }

    fn list_changed(&self, change: Change) {
        change.kinds().iter().for_each(|kind| self.list_cache.forget(*kind));
        self.changes.lock().insert(change);
        self.changed.notify_one();
    }

    /// Passes a notification to the call of this name, or the newest. What names a call that is over is
    /// dropped; what names none is for the client when there is no call.
    fn notify_call(&self, token: Option<u64>, notification: ServerNotification, size: usize) {
        let names_one = notification.method == "notifications/progress";
        let route = {
            let state = self.state.lock();
            let found = match token {
                Some(token) => state.calls.iter().find(|call| call.token == token),
                None if names_one => None,
                None => state.calls.last(),
            };
            found.map(|call| (call.notifications.clone(), Arc::clone(&call.dropped)))
        };
        let Some((notifications, dropped)) = route else {
            if !names_one {
                self.notify_session(notification, size);
            }
            return;
        };
        let held = self.hold(notification, size);
        if held.is_none_or(|held| notifications.try_send(held).is_err()) {
            dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sends the client a notification outside of any call. What it does not take is lost.
    fn notify_session(&self, notification: ServerNotification, size: usize) {
        if let Some(held) = self.hold(notification, size) {
            let _ = self.outside.try_send(Outside::ServerNotification(held));
        }
    }

    fn hold(&self, notification: ServerNotification, size: usize) -> Option<QueuedNotification> {
        if size > MAX_NOTIFICATION {
            return None;
        }
        self.weigh(size).map(|weight| QueuedNotification { notification, _weight: weight })
    }
}
