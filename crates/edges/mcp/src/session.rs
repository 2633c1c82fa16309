//! One session: who opened it, what they may do, and what runs for them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use chio_core::capability::PresentedToken;
use chio_core::receipt::OperationKind;
use chio_cross_protocol::{AskError, Question, Refused, ServerNotification, Session};
use chio_edge::pending::PendingRequests;
use chio_edge::tasks::TableLimits;
use chio_net::jsonrpc::{Notification, Params, Request, RequestId, RpcError};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::error::invalid;
use crate::events::{Priming, StreamId};
use crate::outlet::Outlet;
use crate::parked::ParkedCalls;
use crate::service::EdgeState;
use crate::tasks::TaskTable;
use crate::version::Version;
use crate::wire_form::{fit_notification, fit_question};

/// How long calls that were cancelled may take to end.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);
/// How long before its end a token is replaced, in seconds.
const RENEW: u64 = 30;

/// What a client can be asked: what receipts call it, the method, and the client's capability for it.
const QUESTIONS: [(OperationKind, &str, &str); 3] = [
    (OperationKind::CreateMessage, "sampling/createMessage", "sampling"),
    (OperationKind::CreateElicitation, "elicitation/create", "elicitation"),
    (OperationKind::ListRoots, "roots/list", "roots"),
];

/// The capabilities by which a client says that it has methods that are no part of the protocol.
const EXTENSIONS: [&str; 2] = ["experimental", "extensions"];

/// The error by which a server says that its client has to open a URL first.
const URL_ELICITATION_REQUIRED: i64 = -32042;

/// Whether a client that declares elicitation so takes one of this mode. One that names no mode has
/// forms.
fn takes_mode(declared: &Value, params: &Value) -> bool {
    let has = |mode: &str| declared.get(mode).is_some_and(Value::is_object);
    match params.get("mode").and_then(Value::as_str) {
        None | Some("form") => has("form") || !has("url"),
        Some("url") => has("url"),
        Some(_) => false,
    }
}

/// Where a session is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr, strum::FromRepr)]
#[repr(u8)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub(crate) enum Stage {
    /// Opened, and the client has not said that it is ready.
    Initializing,
    /// At work.
    Ready,
    /// Ending: nothing new is begun.
    Draining,
    /// Ended by its client.
    Deleted,
    /// Ended because its client did not use it.
    Expired,
    /// Ended with the server.
    Closed,
}

impl Stage {
    /// Whether new work is taken on, or will be.
    pub(crate) const fn is_open(self) -> bool {
        matches!(self, Self::Initializing | Self::Ready)
    }
}

/// One session.
pub(crate) struct McpSession {
    /// Its id on the transport. It is a secret of the client, so it stays out of receipts.
    pub(crate) id: String,
    /// The principal that it belongs to, see [`Principal::owner_id`].
    pub(crate) owner: String,
    /// The session as the kernel knows it.
    pub(crate) kernel_session: Session,
    /// The version of the protocol.
    pub(crate) version: Version,
    /// What the client can do, as it says itself.
    pub(crate) client: Map<String, Value>,
    pub(crate) outlet: Outlet,
    pub(crate) shared: Arc<EdgeState>,
    pub(crate) pending: PendingRequests,
    pub(crate) tasks: TaskTable,
    stage: AtomicU8,
    tokens: Mutex<Tokens>,
    running: Mutex<HashMap<RequestId, CancellationToken>>,
    /// What the client calls resources that it watches, by server and URI, where that is another name.
    watched: Mutex<HashMap<(String, String), String>>,
    log_level: Mutex<Option<usize>>,
    last_used: Mutex<Instant>,
    /// Cancelled when the session ends.
    pub(crate) ended: CancellationToken,
}

/// The capabilities of a session.
struct Tokens {
    held: Arc<[PresentedToken]>,
    /// The capability that was last presented and verified; none when capabilities are issued.
    presented: Option<PresentedToken>,
}

/// What is known of a session when it is opened.
pub(crate) struct Handshake {
    pub(crate) id: String,
    pub(crate) owner: String,
    pub(crate) kernel_session: Session,
    pub(crate) version: Version,
    pub(crate) client: Map<String, Value>,
    pub(crate) outlet: Outlet,
    /// The capability that the client presented, if any.
    pub(crate) presented: Option<PresentedToken>,
    pub(crate) tokens: Vec<PresentedToken>,
}

/// Log levels, from the least to the most urgent.
const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// The place of a level among the levels.
fn level(name: &str) -> Option<usize> {
    LEVELS.iter().position(|level| *level == name)
}

impl McpSession {
    pub(crate) fn new(shared: &Arc<EdgeState>, handshake: Handshake) -> Arc<Self> {
        Arc::new(Self {
            id: handshake.id,
            owner: handshake.owner,
            kernel_session: handshake.kernel_session,
            version: handshake.version,
            client: handshake.client,
            outlet: handshake.outlet,
            shared: Arc::clone(shared),
            pending: PendingRequests::default(),
            tasks: TaskTable::new(TableLimits::default()),
            stage: AtomicU8::new(0),
            tokens: Mutex::new(Tokens {
                held: handshake.tokens.into(),
                presented: handshake.presented,
            }),
            running: Mutex::default(),
            watched: Mutex::default(),
            log_level: Mutex::default(),
            last_used: Mutex::new(Instant::now()),
            ended: CancellationToken::new(),
        })
    }

    /// How events are written for the client.
    pub(crate) fn form(&self, priming: Priming) -> Priming {
        if self.version.primes() { priming } else { Priming::Absent }
    }

    pub(crate) fn stage(&self) -> Stage {
        Stage::from_repr(self.stage.load(Ordering::Acquire)).unwrap_or(Stage::Closed)
    }

    /// The client is ready.
    pub(crate) fn become_ready(&self) {
        let (from, to) = (Stage::Initializing as u8, Stage::Ready as u8);
        let _ = self.stage.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
    }

    /// The session ends so: what runs is cancelled.
    pub(crate) fn finish(&self, stage: Stage) {
        if self.stage().is_open() || self.stage() == Stage::Draining {
            self.stage.store(stage as u8, Ordering::Release);
        }
        self.cancel_all();
        ParkedCalls::leave(self);
    }

    /// Cancels what runs for the session, and what waits for its client.
    pub(crate) fn cancel_all(&self) {
        self.ended.cancel();
        for token in self.running.lock().values() {
            token.cancel();
        }
    }

    /// Nothing new is begun.
    pub(crate) fn drain(&self) {
        if self.stage().is_open() {
            self.stage.store(Stage::Draining as u8, Ordering::Release);
        }
    }

    /// Notes that the client uses the session.
    pub(crate) fn touch(&self) {
        *self.last_used.lock() = Instant::now();
    }

    /// When the client last used the session.
    pub(crate) fn last_used(&self) -> Instant {
        *self.last_used.lock()
    }

    /// Whether the client has not used the session for so long: nothing runs, and nothing listens.
    pub(crate) fn is_idle(&self, now: Instant, idle: Duration) -> bool {
        let listens = match &self.outlet {
            Outlet::Events(events) => events.is_watched(),
            Outlet::Lines(_) => true,
        };
        !listens
            && self.running.lock().is_empty()
            && !self.tasks.any_running()
            && now.duration_since(*self.last_used.lock()) >= idle
    }

    /// Whether this is the capability that was verified last.
    pub(crate) fn has_verified(&self, capability: &PresentedToken) -> bool {
        self.tokens.lock().presented.as_ref() == Some(capability)
    }

    /// Goes on with a capability of the same subject that was verified.
    pub(crate) fn refresh(&self, capability: PresentedToken) {
        let held = Arc::from([capability.clone()]);
        *self.tokens.lock() = Tokens { held, presented: Some(capability) };
    }

    /// The tokens that the session has, renewed in time.
    pub(crate) async fn tokens(&self) -> Result<Arc<[PresentedToken]>, Refused> {
        let (held, is_presented) = {
            let tokens = self.tokens.lock();
            (Arc::clone(&tokens.held), tokens.presented.is_some())
        };
        let now = self.shared.orchestrator.now();
        // What was presented is for the client to refresh.
        if is_presented || held.iter().all(|token| token.expires_at > now.saturating_add(RENEW)) {
            return Ok(held);
        }
        let renewed = self.shared.admission.tokens(&self.kernel_session.principal).await?;
        let renewed: Arc<[PresentedToken]> = renewed.into();
        self.tokens.lock().held = Arc::clone(&renewed);
        Ok(renewed)
    }

    /// Begins a request: it can be cancelled by its id.
    pub(crate) fn begin(
        self: &Arc<Self>,
        id: &RequestId,
    ) -> Result<(CancellationToken, Running), RpcError> {
        let mut running = self.running.lock();
        if running.contains_key(id) {
            return Err(invalid("expected an id that no running request of this session has"));
        }
        let max = self.shared.options.limits.running;
        if running.len() >= max {
            return Err(invalid(format!("expected at most {max} requests at once, found more")));
        }
        // Not the session's own: a call that waits for an approval may outlive its request.
        let token = CancellationToken::new();
        running.insert(id.clone(), token.clone());
        if self.ended.is_cancelled() {
            token.cancel();
        }
        Ok((token, Running { session: Arc::clone(self), id: id.clone() }))
    }

    /// Cancels a running request.
    pub(crate) fn cancel(&self, id: &RequestId) {
        if let Some(token) = self.running.lock().get(id) {
            token.cancel();
        }
    }

    /// Waits until nothing runs.
    pub(crate) async fn idle(&self) {
        while !self.running.lock().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Notes what the client calls a resource that it watches; or that it does no longer.
    pub(crate) fn watch(&self, resource: (String, String), public: Option<String>) {
        let mut watched = self.watched.lock();
        match public {
            Some(public) => watched.insert(resource, public),
            None => watched.remove(&resource),
        };
    }

    /// What the client calls a resource of a server.
    pub(crate) fn public_uri(&self, server: &str, uri: &str) -> Option<String> {
        self.watched.lock().get(&(server.to_owned(), uri.to_owned())).cloned()
    }

    /// From which level on the client wants to read logs.
    pub(crate) fn set_log_level(&self, name: &str) -> bool {
        let level = level(name);
        if level.is_some() {
            *self.log_level.lock() = level;
        }
        level.is_some()
    }

    fn wants_log(&self, params: &Map<String, Value>) -> bool {
        let least = *self.log_level.lock();
        let found = params.get("level").and_then(Value::as_str).and_then(level);
        least.is_none_or(|least| found.is_some_and(|found| found >= least))
    }

    /// Sends the client a notification.
    pub(crate) fn notify(&self, stream: StreamId, notification: ServerNotification) {
        let ServerNotification { method, mut params } = notification;
        if method == "notifications/message" && !self.wants_log(&params) {
            return;
        }
        if !fit_notification(self.version, &method, &mut params) {
            return;
        }
        let params = if params.is_empty() { Params::Absent } else { Params::Object(params) };
        let text = Notification { method, params }.to_text();
        self.outlet.send(stream, text, true);
    }

    /// Whether the client takes the chunks of a stream one by one.
    pub(crate) fn takes_chunks(&self) -> bool {
        let experimental = self.client.get("experimental");
        experimental.and_then(|it| it.get("chioToolStreaming")).is_some()
    }

    /// The method and the params of a question, if the client takes such questions.
    fn taken(&self, question: Question) -> Option<(String, Value)> {
        let Question { kind, mut params } = question;
        if kind == OperationKind::ToolCall {
            // One that is no part of the protocol says its own method.
            let Value::String(method) = params.get_mut("method")?.take() else { return None };
            let params = params.get_mut("params")?.take();
            return EXTENSIONS
                .iter()
                .any(|name| self.client.contains_key(*name))
                .then_some((method, params));
        }
        let (_, method, capability) = QUESTIONS.iter().find(|(known, ..)| *known == kind)?;
        let declared = self.client.get(*capability)?;
        let takes = kind != OperationKind::CreateElicitation || takes_mode(declared, &params);
        takes.then(|| ((*method).to_owned(), params))
    }

    /// Whether the client knows what to do with a server's error of this code.
    pub(crate) fn takes_error(&self, code: i64) -> bool {
        let takes_urls = || {
            let declared = self.client.get("elicitation");
            declared.is_some_and(|declared| takes_mode(declared, &json!({"mode": "url"})))
        };
        code != URL_ELICITATION_REQUIRED || takes_urls()
    }

    /// Asks the client something, on the stream of the request that it is asked for.
    pub(crate) async fn ask(
        &self,
        stream: StreamId,
        question: Question,
    ) -> Result<Value, AskError> {
        let (method, params) = self.taken(question).ok_or(AskError::Unsupported)?;
        let params = match params {
            Value::Object(mut params) if !params.is_empty() => {
                if !fit_question(self.version, &method, &mut params) {
                    return Err(AskError::Unsupported);
                }
                Params::Object(params)
            }
            _ => Params::Absent,
        };
        let too_many = || AskError::Failed("too many questions wait for the client".to_owned());
        let (id, answer) = self.pending.register().ok_or_else(too_many)?;
        let asked = PendingQuestion { session: self, stream, id: id.clone() };
        let request = Request { id, method, params };
        self.outlet.send(stream, request.to_text(), false);
        let answer = tokio::select! {
            answer = answer => answer.unwrap_or(Err(AskError::Gone)),
            () = self.ended.cancelled() => Err(AskError::Gone),
        };
        drop(asked);
        answer
    }

    /// Lets every server end what it keeps for the session, after what ran for it was cancelled.
    pub(crate) async fn leave_servers(&self) {
        let _ = tokio::time::timeout(CANCEL_TIMEOUT, self.idle()).await;
        for server in self.shared.names.servers() {
            self.shared.orchestrator.end_session(server, &self.kernel_session.id).await;
        }
    }
}

/// A question that waits. When no call waits for its answer any more, the client is told.
struct PendingQuestion<'a> {
    session: &'a McpSession,
    stream: StreamId,
    id: RequestId,
}

impl Drop for PendingQuestion<'_> {
    fn drop(&mut self) {
        if self.session.pending.remove(&self.id) {
            let params = json!({"requestId": self.id, "reason": "nobody waits for the answer"});
            let Value::Object(params) = params else { return };
            let method = "notifications/cancelled".to_owned();
            self.session.notify(self.stream, ServerNotification { method, params });
        }
    }
}

/// A request that runs.
pub(crate) struct Running {
    session: Arc<McpSession>,
    id: RequestId,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.session.running.lock().remove(&self.id);
        self.session.touch();
    }
}
