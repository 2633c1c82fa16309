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
use tokio_util::sync::CancellationToken;

use crate::events::{NOTIFICATIONS, StreamId};
use crate::session::{McpSession, Running};

/// How often a client whose call waits for an approval is reminded.
const REMINDER: Duration = Duration::from_secs(10);
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

/// The client of a session, for one request or outside of requests.
pub(crate) struct McpCaller {
    session: Arc<McpSession>,
    stream: StreamId,
    cancellation: CancellationToken,
    request: RequestScope,
    chunks: ChunkCollector,
    /// Whether the last chunk reports that the tool failed.
    failed: AtomicBool,
    /// Cancelled when the call waits for no approval.
    waiting: Mutex<Option<CancellationToken>>,
}

impl McpCaller {
    /// The client while a request runs.
    pub(crate) fn for_request(
        session: &Arc<McpSession>,
        stream: StreamId,
        cancellation: CancellationToken,
        request: RequestScope,
    ) -> Arc<Self> {
        Arc::new(Self {
            session: Arc::clone(session),
            stream,
            cancellation,
            request,
            chunks: ChunkCollector::default(),
            failed: AtomicBool::default(),
            waiting: Mutex::default(),
        })
    }

    /// The client outside of requests, for a server.
    pub(crate) fn for_session(session: &Arc<McpSession>, server: &str) -> Arc<Self> {
        let scope = RequestScope { server: Some(server.to_owned()), ..RequestScope::default() };
        Self::for_request(session, NOTIFICATIONS, session.ended.clone(), scope)
    }

    /// Adds the task that a message belongs to.
    fn relate(&self, params: &mut Map<String, Value>) {
        let Some(task) = &self.request.task else { return };
        let meta = params.entry("_meta").or_insert_with(|| json!({}));
        if let Value::Object(meta) = meta {
            meta.insert(RELATED_TASK.to_owned(), json!({"taskId": task}));
        }
    }

    /// The chunks of a streaming tool.
    pub(crate) fn take_chunks(&self) -> Vec<Value> {
        self.chunks.take()
    }

    /// Whether a stream ended with a chunk that reports that the tool failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    fn report(
        session: &McpSession,
        stream: StreamId,
        progress: Option<(&Value, u32)>,
        words: &str,
    ) {
        let message = |method: &str, params: Value| {
            let Value::Object(params) = params else { return };
            session.notify(stream, ServerNotification { method: method.to_owned(), params });
        };
        if let Some((token, step)) = progress {
            // Progress has to grow, and the tool has not begun: hardly any.
            let progress = f64::from(step) / 1e6;
            let params = json!({"progressToken": token, "progress": progress, "message": words});
            message(PROGRESS, params);
        }
        let data = json!({"level": "notice", "logger": "chio", "data": words});
        message("notifications/message", data);
    }

    /// Notifies the client repeatedly that its call waits, and asks its user where policy allows
    /// that.
    fn wait(&self, request: &ApprovalRequest) {
        let waiting = self.cancellation.child_token();
        let mut current = self.waiting.lock();
        *current = Some(waiting.clone());
        drop(current);
        let (session, stream) = (Arc::clone(&self.session), self.stream);
        let (progress, request) = (self.request.progress.clone(), request.clone());
        tokio::spawn(async move {
            let words = format!(
                "waiting for an approval ({}): an operator answers with `chio approvals approve {}`",
                request.reason, request.id
            );
            let remind = async {
                for step in 0.. {
                    let progress = progress.as_ref().map(|token| (token, step));
                    Self::report(&session, stream, progress, &words);
                    tokio::time::sleep(REMINDER).await;
                }
            };
            let asked = ask_user(&session, stream, &request);
            tokio::select! {
                () = waiting.cancelled() => {}
                () = async { tokio::join!(remind, asked); } => {}
            }
        });
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
        if let Some(request) = self.request.id.as_ref().filter(|_| self.session.takes_chunks()) {
            let params = json!({"requestId": request, "chunkIndex": index, "chunk": data});
            let Value::Object(params) = params else { return Err(Gone) };
            let params = Params::Object(params);
            let notification = Notification { method: CHUNK.to_owned(), params };
            // The result does not repeat it, so it is not one to lose.
            let text = notification.to_text();
            let sent = self.session.outlet.send_in_time(self.stream, text).await;
            return if sent { Ok(()) } else { Err(Gone) };
        }
        self.chunks.push(data)
    }

    async fn ask(&self, question: Question) -> Result<Value, AskError> {
        let Question { kind, mut params } = question;
        if let Value::Object(params) = &mut params
            && kind != OperationKind::ToolCall
        {
            self.relate(params);
        }
        self.session.ask(self.stream, Question { kind, params }).await
    }

    fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }

    fn parked(&self, waits_for: Option<&ApprovalRequest>) {
        match waits_for {
            Some(request) => self.wait(request),
            None => {
                let mut waiting = self.waiting.lock();
                if let Some(waiting) = waiting.take() {
                    waiting.cancel();
                }
            }
        }
    }

    async fn notice(&self, notification: ServerNotification) {
        let ServerNotification { method, mut params } = notification;
        if method == PROGRESS {
            // Progress is only for clients that asked for it.
            let Some(token) = &self.request.progress else { return };
            let mut named = Map::new();
            named.insert("progressToken".to_owned(), token.clone());
            params.remove("progressToken");
            named.extend(params);
            params = named;
        }
        if let (UPDATED, Some(server)) = (method.as_str(), &self.request.server)
            && let Some(Value::String(uri)) = params.get_mut("uri")
            && let Some(public) = self.session.public_uri(server, uri)
        {
            *uri = public;
        }
        self.relate(&mut params);
        self.session.notify(self.stream, ServerNotification { method, params });
    }

    fn wants_progress(&self) -> bool {
        self.request.progress.is_some()
    }
}
