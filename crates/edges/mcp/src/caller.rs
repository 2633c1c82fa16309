//! The client as the kernel sees it, while one request runs and outside of requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use chio_core::receipt::OperationKind;
use chio_core::tool_result::ToolResult;
use chio_cross_protocol::{
    ApprovalRequest, AskError, Caller, Gone, Question, ServerNotification, Session,
};
use chio_edge::ChunkCollector;
use chio_net::jsonrpc::{Notification, Params, RequestId};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::answer;
use crate::events::{NOTIFICATIONS, StreamId};
use crate::session::{McpSession, Running};

/// How often a client whose call waits for an approval is reminded: clients that asked for progress
/// end a request of which they hear nothing for longer.
const REMINDER: Duration = Duration::from_secs(5);
const PROGRESS: &str = "notifications/progress";
const UPDATED: &str = "notifications/resources/updated";
/// The member of `_meta` that names a task.
pub(crate) const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
const CHUNK: &str = "notifications/chio/tool_call_chunk";

/// The request that questions and notifications to the client belong to. Outside of requests, it
/// is empty.
#[derive(Default)]
pub(crate) struct RequestScope {
    /// The server that speaks outside of requests.
    pub(crate) server: Option<String>,
    /// The client's id of the request.
    pub(crate) id: Option<RequestId>,
    /// The client's progress token.
    pub(crate) progress: Option<Value>,
    /// The id of the task that the request became.
    pub(crate) task: Option<String>,
    /// Counts as running until the kernel is done, also when the client disconnects.
    pub(crate) _running: Option<Running>,
}

/// A request that waits for a call, and where what the call says goes.
pub(crate) struct WaitingRequest {
    pub(crate) session: Arc<McpSession>,
    pub(crate) stream: StreamId,
    pub(crate) scope: RequestScope,
}

/// The wait of a call for an approval.
struct ApprovalWait {
    approval: Arc<ApprovalRequest>,
    /// Cancelled when the call waits no more.
    over: CancellationToken,
}

/// The client of a session, for one request or outside of requests. A call that waits for an
/// approval can outlive the request that it came with, and a later request can wait for it.
pub(crate) struct McpCaller {
    /// The session that the call belongs to.
    session: Arc<McpSession>,
    cancellation: CancellationToken,
    /// The request that waits for the call now.
    request: Mutex<Option<Arc<WaitingRequest>>>,
    chunks: ChunkCollector,
    /// Whether chunks are collected for the result, because the first request waits no more.
    collects: AtomicBool,
    /// Whether the last chunk reports that the tool failed.
    failed: AtomicBool,
    wait: Mutex<Option<ApprovalWait>>,
    /// Told when the call begins to wait for an approval.
    waits: Notify,
    /// Whether its time was up when it ceased to wait.
    expired: AtomicBool,
}

impl WaitingRequest {
    /// Adds the task that a message belongs to.
    fn relate(&self, params: &mut Map<String, Value>) {
        let Some(task) = &self.scope.task else { return };
        let meta = params.entry("_meta").or_insert_with(|| json!({}));
        if let Value::Object(meta) = meta {
            meta.insert(RELATED_TASK.to_owned(), json!({"taskId": task}));
        }
    }

    fn notify(&self, method: &str, params: Value) {
        let Value::Object(params) = params else { return };
        let method = method.to_owned();
        self.session.notify(self.stream, ServerNotification { method, params });
    }

    /// Says for which approval the call waits; the first time also in the log.
    fn report(&self, step: u32, words: &str) {
        if let Some(token) = &self.scope.progress {
            // Progress has to grow, and the tool has not begun: hardly any.
            let progress = f64::from(step) / 1e6;
            let params = json!({"progressToken": token, "progress": progress, "message": words});
            self.notify(PROGRESS, params);
        }
        if step == 0 {
            let data = json!({"level": "notice", "logger": "chio", "data": words});
            self.notify("notifications/message", data);
        }
    }

    /// Notifies the client repeatedly that its call waits, for as long as both do.
    fn remind(self: &Arc<Self>, wait: &ApprovalWait) {
        let ApprovalWait { approval, over } = wait;
        let how = answer::how_to_approve(self.session.shared.approve_command(approval).as_deref());
        let words = format!("waiting for an approval ({}): {how}", approval.reason);
        let (request, over) = (Arc::downgrade(self), over.clone());
        tokio::spawn(async move {
            for step in 0.. {
                let Some(request) = request.upgrade() else { return };
                request.report(step, &words);
                drop(request);
                tokio::select! {
                    () = over.cancelled() => return,
                    () = tokio::time::sleep(REMINDER) => {}
                }
            }
        });
    }
}

impl McpCaller {
    /// The client while a request runs.
    pub(crate) fn for_request(
        session: &Arc<McpSession>,
        stream: StreamId,
        cancellation: CancellationToken,
        scope: RequestScope,
    ) -> Arc<Self> {
        let request = WaitingRequest { session: Arc::clone(session), stream, scope };
        Arc::new(Self {
            session: Arc::clone(session),
            cancellation,
            request: Mutex::new(Some(Arc::new(request))),
            chunks: ChunkCollector::default(),
            collects: AtomicBool::default(),
            failed: AtomicBool::default(),
            wait: Mutex::default(),
            waits: Notify::new(),
            expired: AtomicBool::default(),
        })
    }

    /// The client outside of requests, for a server.
    pub(crate) fn for_session(session: &Arc<McpSession>, server: &str) -> Arc<Self> {
        let scope = RequestScope { server: Some(server.to_owned()), ..RequestScope::default() };
        Self::for_request(session, NOTIFICATIONS, session.ended.clone(), scope)
    }

    /// From now on this request waits for the call.
    pub(crate) fn attach(&self, request: WaitingRequest) {
        let request = Arc::new(request);
        *self.request.lock() = Some(Arc::clone(&request));
        if let Some(wait) = &*self.wait.lock() {
            request.remind(wait);
        }
    }

    /// No request waits for the call any more; it goes on.
    pub(crate) fn detach(&self) {
        self.collects.store(true, Ordering::Release);
        *self.request.lock() = None;
    }

    /// Cancels the call.
    pub(crate) fn cancel(&self) {
        self.cancellation.cancel();
    }

    /// Resolves when the call has waited for an approval for this long, and still does.
    pub(crate) async fn outwaited(&self, patience: Duration) -> Arc<ApprovalRequest> {
        let waiting = || {
            let wait = self.wait.lock();
            wait.as_ref().map(|wait| (Arc::clone(&wait.approval), wait.over.clone()))
        };
        let (approval, over) = loop {
            let waits = self.waits.notified();
            if let Some(waiting) = waiting() {
                break waiting;
            }
            waits.await;
        };
        tokio::select! {
            // A call waits once.
            () = over.cancelled() => std::future::pending().await,
            () = tokio::time::sleep(patience) => approval,
        }
    }

    /// Whether no approver has answered in time.
    pub(crate) fn has_expired(&self) -> bool {
        self.expired.load(Ordering::Acquire)
    }

    fn request(&self) -> Option<Arc<WaitingRequest>> {
        self.request.lock().clone()
    }

    /// Whether the client is given the chunks of a stream one by one.
    pub(crate) fn takes_chunks(&self) -> bool {
        !self.collects.load(Ordering::Acquire) && self.session.takes_chunks()
    }

    /// The chunks of a streaming tool.
    pub(crate) fn take_chunks(&self) -> Vec<Value> {
        self.chunks.take()
    }

    /// Whether a stream ended with a chunk that reports that the tool failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// The client is told that its call waits, and its user is asked where policy allows that.
    fn wait(&self, approval: &ApprovalRequest) {
        let (approval, over) = (Arc::new(approval.clone()), self.cancellation.child_token());
        let wait = ApprovalWait { approval, over };
        if let Some(request) = self.request() {
            request.remind(&wait);
            // The user may still answer when the request waits no more.
            let (session, stream) = (Arc::clone(&request.session), request.stream);
            let (approval, over) = (Arc::clone(&wait.approval), wait.over.clone());
            tokio::spawn(async move {
                tokio::select! {
                    () = over.cancelled() => {}
                    () = ask_user(&session, stream, &approval) => {}
                }
            });
        }
        *self.wait.lock() = Some(wait);
        self.waits.notify_waiters();
    }

    fn wait_no_more(&self) {
        let Some(ApprovalWait { approval, over }) = self.wait.lock().take() else { return };
        let now = self.session.shared.orchestrator.now();
        self.expired.store(now >= approval.expires_at, Ordering::Release);
        over.cancel();
    }
}

/// Asks the client's user to approve, where policy allows that.
async fn ask_user(session: &McpSession, stream: StreamId, request: &ApprovalRequest) {
    let Some(approvals) = &session.shared.options.user_approvals else { return };
    if !approvals.may_ask(request) {
        return;
    }
    let (server, tool) = (&request.server_id, &request.tool_name);
    let message = format!("Allow `{tool}` of `{server}`? It needs an approval: {}", request.reason);
    let params = json!({
        "mode": "form",
        "message": message,
        "requestedSchema": {
            "type": "object",
            "properties": {
                "approve": {"type": "boolean", "title": "Allow this call", "default": false},
            },
            "required": ["approve"],
        },
    });
    let question = Question { kind: OperationKind::CreateElicitation, params };
    let Ok(answer) = session.ask(stream, question).await else { return };
    let approved = match answer.get("action").and_then(Value::as_str) {
        Some("accept") => answer.pointer("/content/approve") == Some(&Value::Bool(true)),
        Some("decline") => false,
        // A user who closed the question has not answered it.
        _ => return,
    };
    if let Err(problem) = approvals.answer(request, approved).await {
        tracing::error!("a user's answer was not kept: {problem}");
    }
}

#[async_trait]
impl Caller for McpCaller {
    fn session(&self) -> &Session {
        &self.session.kernel_session
    }

    async fn chunk(&self, index: u64, data: Value) -> Result<(), Gone> {
        self.failed.store(ToolResult::new(&data).failed_task().is_some(), Ordering::Release);
        let request = self.request().filter(|_| self.takes_chunks());
        if let Some(request) = request
            && let Some(id) = &request.scope.id
        {
            let params = json!({"requestId": id, "chunkIndex": index, "chunk": data});
            let Value::Object(params) = params else { return Err(Gone) };
            let params = Params::Object(params);
            let notification = Notification { method: CHUNK.to_owned(), params };
            // The result does not repeat it, so it is not one to lose.
            let text = notification.to_text();
            let sent = self.session.outlet.send_in_time(request.stream, text).await;
            return if sent { Ok(()) } else { Err(Gone) };
        }
        self.chunks.push(data)
    }

    async fn ask(&self, question: Question) -> Result<Value, AskError> {
        let request = self.request().ok_or(AskError::Gone)?;
        let Question { kind, mut params } = question;
        if let Value::Object(params) = &mut params
            && kind != OperationKind::ToolCall
        {
            request.relate(params);
        }
        request.session.ask(request.stream, Question { kind, params }).await
    }

    fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }

    fn parked(&self, waits_for: Option<&ApprovalRequest>) {
        match waits_for {
            Some(approval) => self.wait(approval),
            None => self.wait_no_more(),
        }
    }

    async fn notice(&self, notification: ServerNotification) {
        let Some(request) = self.request() else { return };
        let ServerNotification { method, mut params } = notification;
        if method == PROGRESS {
            // Progress is only for clients that asked for it.
            let Some(token) = &request.scope.progress else { return };
            let mut named = Map::new();
            named.insert("progressToken".to_owned(), token.clone());
            params.remove("progressToken");
            named.extend(params);
            params = named;
        }
        if let (UPDATED, Some(server)) = (method.as_str(), &request.scope.server)
            && let Some(Value::String(uri)) = params.get_mut("uri")
            && let Some(public) = request.session.public_uri(server, uri)
        {
            *uri = public;
        }
        request.relate(&mut params);
        request.session.notify(request.stream, ServerNotification { method, params });
    }

    fn wants_progress(&self) -> bool {
        self.request().is_some_and(|request| request.scope.progress.is_some())
    }
}
