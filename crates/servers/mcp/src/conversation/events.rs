//! What a child says besides answers, on its way to its receiver.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chio_core::receipt::OperationKind;
use chio_kernel::{AskError, ListKind, Question, ServerNotification};
use chio_net::jsonrpc::RpcError;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::Conversation;
use super::audience::LEFT_FOR;
use crate::wire;

/// A notification of a child, which takes room until it is delivered.
pub(crate) struct QueuedNotification {
    pub(crate) notification: ServerNotification,
    pub(super) _weight: OwnedSemaphorePermit,
}

/// A question of a child.
pub(crate) struct ChildQuestion {
    pub(crate) question: Question,
    pub(crate) reply: Reply,
    pub(super) _weight: OwnedSemaphorePermit,
}

/// What a child says that belongs to no call.
pub(crate) enum Outside {
    ServerNotification(QueuedNotification),
    Question(ChildQuestion),
}

/// The way back of an answer to a child. A question that is dropped is answered with an error, but
/// for one that has nothing to do with the call that it was asked in: that goes to the session.
pub(crate) struct Reply {
    conversation: Arc<Conversation>,
    id: Value,
    fallback: Option<Question>,
}

impl Reply {
    pub(super) fn new(conversation: &Arc<Conversation>, id: Value, question: &Question) -> Self {
        let fallback = (question.kind == OperationKind::ListRoots).then(|| question.clone());
        Self { conversation: Arc::clone(conversation), id, fallback }
    }

    /// It goes to the session, and nowhere else after that.
    pub(super) fn is_outside(&mut self) {
        self.fallback = None;
    }

    /// It is for no session that can be told.
    pub(super) fn refuse_for_all(mut self) {
        self.is_outside();
        let words = "expected a question while all calls are of one session";
        let error = RpcError::new(RpcError::INTERNAL_ERROR, words);
        self.send(&wire::refusal(&self.id, error));
    }

    /// Answers the child.
    pub(crate) fn give(mut self, answer: Result<Value, AskError>) {
        self.is_outside();
        match answer {
            Ok(result) => self.send(&wire::answer(&self.id, &result)),
            Err(error) => self.refuse(&error),
        }
    }

    fn refuse(&self, error: &AskError) {
        let error = match error {
            AskError::Answered { code, message, data } => {
                let data = data.as_deref().cloned();
                RpcError { code: *code, message: message.clone(), data }
            }
            AskError::Unsupported => RpcError::new(RpcError::METHOD_NOT_FOUND, error.to_string()),
            _ => RpcError::new(RpcError::INTERNAL_ERROR, error.to_string()),
        };
        self.send(&wire::refusal(&self.id, error));
    }

    /// Answers once, and not at all when the child does not wait any more.
    fn send(&self, line: &[u8]) {
        if self.conversation.state.lock().asked.remove(&self.id.to_string()) {
            self.conversation.outbox.push_urgent(line);
        }
    }

    /// The same question once more, for the session; none when the child is gone.
    fn again(&mut self) -> Option<ChildQuestion> {
        let question = self.fallback.take()?;
        let conversation = Arc::clone(&self.conversation);
        if conversation.over().is_cancelled() {
            return None;
        }
        let weight = conversation.weigh(1)?;
        let reply = Self { conversation, id: self.id.clone(), fallback: None };
        Some(ChildQuestion { question, reply, _weight: weight })
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        match self.again() {
            Some(asked) => self.conversation.ask_outside(asked),
            None => self.refuse(&AskError::Gone),
        }
    }
}

/// A list that has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Change {
    Tools,
    Resources,
    Prompts,
}

impl Change {
    pub(super) const ALL: [Self; 3] = [Self::Tools, Self::Resources, Self::Prompts];

    pub(crate) const fn method(self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Resources => "notifications/resources/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
        }
    }

    pub(super) const fn kinds(self) -> &'static [ListKind] {
        match self {
            Self::Tools => &[ListKind::Tools],
            Self::Resources => &[ListKind::Resources, ListKind::ResourceTemplates],
            Self::Prompts => &[ListKind::Prompts],
        }
    }
}

/// The way of what a child says to a call that runs.
pub(super) struct Route {
    pub(super) token: u64,
    /// Whose call it is, where the child has no session of its own.
    pub(super) session: Option<String>,
    /// The task that the child made of it.
    pub(super) task: Option<String>,
    pub(super) notifications: mpsc::Sender<QueuedNotification>,
    pub(super) questions: mpsc::Sender<ChildQuestion>,
    pub(super) dropped: Arc<AtomicU64>,
}

/// What a child says to a call.
pub(crate) struct Events {
    pub(crate) notifications: mpsc::Receiver<QueuedNotification>,
    pub(crate) questions: mpsc::Receiver<ChildQuestion>,
}

/// A call that runs. What the child says belongs to the newest, or to the one that it names.
pub(crate) struct Running {
    conversation: Arc<Conversation>,
    /// The progress token of the call.
    pub(crate) token: u64,
    /// Whether the child has ended it.
    pub(crate) is_over: bool,
    dropped: Arc<AtomicU64>,
}

impl Conversation {
    /// A call of a session begins.
    pub(crate) fn begin(self: &Arc<Self>, session_id: &str) -> (Running, Events) {
        let limits = &self.settings.limits;
        let (notifications, notifications_out) = mpsc::channel(limits.max_notifications.max(1));
        let (questions, questions_out) = mpsc::channel(limits.max_questions.max(1));
        let dropped = Arc::<AtomicU64>::default();
        let counter = Arc::clone(&dropped);
        let session = (!self.has_session()).then(|| session_id.to_owned());
        let token = {
            let mut state = self.state.lock();
            let token = state.next_id();
            let task = None;
            let dropped = counter;
            state.calls.push(Route { token, session, task, notifications, questions, dropped });
            token
        };
        let running = Running { conversation: Arc::clone(self), token, is_over: false, dropped };
        (running, Events { notifications: notifications_out, questions: questions_out })
    }

    /// Notes the task that the child has made of a call.
    pub(crate) fn relate(&self, token: u64, task_id: &str) {
        let mut state = self.state.lock();
        if let Some(call) = state.calls.iter_mut().find(|call| call.token == token) {
            call.task = Some(task_id.to_owned());
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // What is still in the channels answers for itself when it goes, so nothing is locked then.
        let mut route = {
            let mut state = self.conversation.state.lock();
            let place = state.calls.iter().position(|call| call.token == self.token);
            place.map(|place| state.calls.remove(place))
        };
        // SECURITY: the child may still speak of it, while calls of other sessions run.
        if let Some(session) = route.as_mut().and_then(|route| route.session.take()) {
            let late = self.conversation.settings.limits.late;
            let late = if self.is_over { late } else { late.max(LEFT_FOR) };
            self.conversation.state.lock().remember(session, late);
        }
        drop(route);
        let dropped = self.dropped.load(Ordering::Relaxed);
        if dropped > 0 {
            let words = "notices of a call were dropped: nobody took them in time";
            self.conversation.settings.note(format_args!("{dropped} {words}"));
        }
    }
}
