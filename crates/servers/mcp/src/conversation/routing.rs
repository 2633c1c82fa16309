//! Who gets what a child says.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use chio_core::mcp::{is_foreign_notification, is_foreign_request};
use chio_core::receipt::OperationKind;
use chio_kernel::{Question, ServerNotification};
use chio_net::jsonrpc::{Envelope, RpcError};
use serde_json::{Map, Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::error::TrySendError;

use super::events::{Change, ChildQuestion, Outside, QueuedNotification, Reply};
use super::{Audience, Conversation};
use crate::error::McpError;
use crate::wire::{self, Incoming};

/// What a server may ask: the method, the client's capability for it, and what receipts call it.
const QUESTIONS: [(&str, &str, OperationKind); 3] = [
    ("sampling/createMessage", "sampling", OperationKind::CreateMessage),
    ("elicitation/create", "elicitation", OperationKind::CreateElicitation),
    ("roots/list", "roots", OperationKind::ListRoots),
];

/// The capabilities by which a client says that it has methods that are no part of MCP.
const EXTENSIONS: [&str; 2] = ["experimental", "extensions"];
/// The member by which a server says whose progress it tells.
const PROGRESS_TOKEN: &str = "progressToken";
/// The size above which the kernel drops a notification.
const MAX_NOTIFICATION: usize = 1 << 20;

impl Conversation {
    /// Sorts a line; tells whether it was one of messages.
    pub(crate) fn take(self: &Arc<Self>, line: &[u8]) -> bool {
        let Some(messages) = wire::read(line) else {
            let Some((envelope, error)) = wire::unreadable(line) else { return false };
            self.take_envelope(envelope, error);
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

    /// Sorts a line that was too long to be read, by its ends.
    pub(crate) fn take_ends(&self, head: &[u8], tail: &[u8], error: McpError) {
        self.take_envelope(Envelope::of_ends(head, tail), error);
    }

    /// Sorts a message that cannot be read. One that may answer any request fails all of them.
    fn take_envelope(&self, envelope: Envelope, error: McpError) {
        match envelope {
            Envelope { is_call: true, id: Some(id), .. } => {
                let error = RpcError::new(RpcError::INVALID_REQUEST, error.to_string());
                self.outbox.push_urgent(&wire::refusal(&json!(id), error));
            }
            Envelope { is_call: true, id: None, .. } => self.settings.note(&error),
            Envelope { is_response: true, id: Some(id), .. } => {
                if let Some(id) = id.as_u64() {
                    self.resolve(id, Err(error));
                }
            }
            _ => self.fail_all(&error),
        }
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
            self.outbox.push_urgent(&wire::refusal(&id, RpcError::new(code, words)));
        };
        let known = QUESTIONS.iter().find(|(name, ..)| *name == method);
        // SECURITY: a child that has no client of its own may ask none.
        let question = match known {
            Some((_, capability, kind)) if self.audience().takes(capability) => {
                Question { kind: *kind, params: Value::Object(params) }
            }
            Some(_) => return refuse(RpcError::METHOD_NOT_FOUND, "the client does not take this"),
            // One that declares no extension has none.
            None if is_foreign_request(method)
                && EXTENSIONS.iter().any(|name| self.audience().takes(name)) =>
            {
                let params = json!({"method": method, "params": params});
                Question { kind: OperationKind::ToolCall, params }
            }
            None => return refuse(RpcError::METHOD_NOT_FOUND, "the client has no such method"),
        };
        let Some(weight) = self.weigh(size) else {
            return refuse(RpcError::INTERNAL_ERROR, "too much waits for the client already");
        };
        if !self.state.lock().asked.insert(id.to_string()) {
            return refuse(RpcError::INTERNAL_ERROR, "expected a new id, found one in use");
        }
        let reply = Reply::new(self, id, &question);
        self.ask(ChildQuestion { question, reply, _weight: weight });
    }

    /// A question goes to its call, or else to the client outside of any. One that does not fit, or
    /// that may be for several sessions, is dropped, and so answered with an error.
    fn ask(&self, asked: ChildQuestion) {
        let call = {
            let state = self.state.lock();
            let call = asked.question.params.as_object().and_then(|params| state.call_of(params));
            call.map(|call| call.questions.clone())
        };
        let asked = match call {
            None if *self.audience() == Audience::Shared => return asked.reply.refuse_for_all(),
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
            "notifications/message" if *self.audience() != Audience::Nobody => {
                self.notify_call(None, ServerNotification { method, params }, size);
            }
            "notifications/resources/updated" => {
                self.notify_session(ServerNotification { method, params }, size)
            }
            "notifications/elicitation/complete" | "notifications/tasks/status"
                if self.has_session() =>
            {
                self.notify_session(ServerNotification { method, params }, size);
            }
            other if *self.audience() != Audience::Nobody && is_foreign_notification(other) => {
                self.notify_call(None, ServerNotification { method, params }, size);
            }
            _ => {}
        }
    }

    fn list_changed(&self, change: Change) {
        change.kinds().iter().for_each(|kind| self.list_cache.forget(*kind));
        self.changes.lock().insert(change);
        self.changed.notify_one();
    }

    /// Whether all that the child says is for the client of one session.
    pub(super) fn has_session(&self) -> bool {
        matches!(self.audience(), Audience::Session(_))
    }

    /// Passes a notification to the call of this name, or to the one that it belongs to. What names a
    /// call that is over is dropped; what names none is for the client when there is no call.
    fn notify_call(&self, token: Option<u64>, notification: ServerNotification, size: usize) {
        let names_one = notification.method == "notifications/progress";
        let route = {
            let state = self.state.lock();
            let found = match token {
                Some(token) => state.calls.iter().find(|call| call.token == token),
                None if names_one => None,
                None => state.call_of(&notification.params),
            };
            found.map(|call| (call.notifications.clone(), Arc::clone(&call.dropped)))
        };
        let Some((notifications, dropped)) = route else {
            // SECURITY: what a shared child says on its own belongs to no session.
            if !names_one && self.has_session() {
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
