//! Calls as tasks: accepted at once, run in the background, and read by the session that they
//! belong to.

use std::sync::Arc;
use std::time::Duration;

use chio_core::calendar::rfc3339;
use chio_core::crypto::PublicKey;
use chio_core::receipt::Execution;
use chio_core::tool_result::ToolResult;
use chio_cross_protocol::{
    CapabilityBridge, Evaluation, OrchestratedRequest, Outcome, Presented, ServerNotification,
    TaskError, TaskResult, TaskState, TaskView,
};
use chio_edge::tasks::{self, Record};
use chio_net::jsonrpc::RpcError;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::answer;
use crate::bridge::McpBridge;
use crate::caller::{McpCaller, RELATED_TASK, RequestScope};
use crate::error::{invalid_params, unreleased};
use crate::events::NOTIFICATIONS;
use crate::methods::{RequestContext, page};
use crate::session::McpSession;

/// How often a client should poll, in milliseconds.
const POLL_MS: u64 = 500;

/// The tasks of a session: each session has its own table, so they have no other owner.
pub(crate) type TaskTable = tasks::TaskTable<(), Task>;
type TaskEntry = tasks::TaskEntry<(), Task>;

/// A call that runs as a task.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    id: String,
    /// The key that the store has the task for.
    subject: PublicKey,
    server: String,
    tool: String,
    created_at: u64,
    ttl: Duration,
    /// The status, and the Unix second since when it has it.
    progress: watch::Receiver<(Status, u64)>,
}

impl Record for Task {
    fn id(&self) -> &str {
        &self.id
    }

    fn lifetime(&self) -> Option<Duration> {
        Some(self.ttl)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase", const_into_str)]
enum Status {
    Working,
    Completed,
    Failed,
    Cancelled,
}

impl Status {
    const fn is_over(self) -> bool {
        !matches!(self, Self::Working)
    }
}

impl Task {
    fn status(&self) -> (Status, u64) {
        *self.progress.borrow()
    }

    /// The task as clients see it.
    fn view(&self) -> Value {
        let (status, updated_at) = self.status();
        json!({
            "taskId": self.id,
            "status": status.into_str(),
            "createdAt": rfc3339(self.created_at),
            "lastUpdatedAt": rfc3339(updated_at),
            "ttl": u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX),
            "pollInterval": POLL_MS,
        })
    }
}

/// Accepts a call as a task.
pub(crate) async fn create(
    session: &Arc<McpSession>,
    mut request: OrchestratedRequest,
    wanted: &Value,
    progress: Option<Value>,
) -> Result<Value, RpcError> {
    let limits = &session.shared.options.limits;
    let now = session.shared.orchestrator.now();
    if session.tasks.count(&(), now) >= limits.tasks {
        return Err(invalid_params(format!(
            "expected at most {} tasks of a session",
            limits.tasks
        )));
    }
    let ttl = ttl(wanted, limits.task_ttl, limits.max_task_ttl)?;
    let deferred = session.shared.deferred(ttl);
    let presented =
        Presented { dpop_proof: request.dpop_proof.take(), approval: request.approval.take() };
    let subject = request.agent.clone();
    let server = request.server_id.clone();
    let tool = request.tool_name.clone();
    let stored = deferred.defer(request, McpBridge.protocol()).await;
    let id = stored.map_err(|error| refused(&error))?.id;
    let (sender, receiver) = watch::channel((Status::Working, now));
    let task =
        Arc::new(Task { id, subject, server, tool, created_at: now, ttl, progress: receiver });
    let accepted = json!({"task": task.view()});
    let entry = TaskEntry::running((), Arc::clone(&task), true, &session.ended);
    // The table of a session has no limits of its own, and the store issues no id twice.
    let _ = session.tasks.insert(entry.clone(), now);
    let runner = Arc::clone(session);
    tokio::spawn(async move {
        // Also when the call panics, requests that wait for its end continue.
        let ended = entry.ended.drop_guard();
        let scope =
            RequestScope { task: Some(task.id.clone()), progress, ..RequestScope::default() };
        let caller = McpCaller::for_request(&runner, NOTIFICATIONS, entry.cancellation, scope);
        let view = deferred.result(&task.id, &task.subject, presented, caller).await;
        let status = match view {
            Ok(view) => status(&view),
            Err(error) => {
                tracing::error!("task {}: {error}", task.id);
                Status::Failed
            }
        };
        sender.send_replace((status, runner.shared.orchestrator.now()));
        drop(ended);
        if let Value::Object(params) = task.view() {
            let method = "notifications/tasks/status".to_owned();
            runner.notify(NOTIFICATIONS, ServerNotification { method, params });
        }
    });
    Ok(accepted)
}

fn ttl(wanted: &Value, usual: Duration, max: Duration) -> Result<Duration, RpcError> {
    let Value::Object(wanted) = wanted else {
        return Err(invalid_params("expected `task` to be an object"));
    };
    match wanted.get("ttl") {
        None | Some(Value::Null) => Ok(usual),
        Some(ttl) => {
            let expected = || invalid_params("expected `task.ttl` in milliseconds");
            let ttl =
                ttl.as_f64().filter(|ttl| *ttl > 0.0 && ttl.is_finite()).ok_or_else(expected)?;
            // The store has whole seconds.
            let seconds = Duration::try_from_secs_f64((ttl / 1000.0).ceil()).unwrap_or(max);
            Ok(seconds.min(max))
        }
    }
}

fn status(view: &TaskView) -> Status {
    match view.state {
        TaskState::Waiting
        | TaskState::Running
        | TaskState::Asking
        | TaskState::Failed
        | TaskState::Rejected => Status::Failed,
        // A tool that says that it failed has.
        TaskState::Completed if says_error(view) => Status::Failed,
        TaskState::Completed => Status::Completed,
        TaskState::Cancelled => Status::Cancelled,
    }
}

/// Whether a task came to a result that is an error.
fn says_error(view: &TaskView) -> bool {
    match &view.result {
        Some(TaskResult { outcome: Outcome::Value(value), .. }) => {
            ToolResult::new(value).is_error()
        }
        Some(TaskResult { outcome: Outcome::Stream { .. }, chunks, .. }) => {
            ToolResult::failed_task_of(chunks).is_some()
        }
        _ => false,
    }
}

/// The same for a task that does not exist and for one of another session.
fn unknown() -> RpcError {
    invalid_params("task not found: expected the id of a task of this session")
}

fn refused(error: &TaskError) -> RpcError {
    match error {
        TaskError::Refused(_) => unknown(),
        TaskError::Denied(denial) => {
            invalid_params(answer::words(denial, Some(Execution::NotBegun)))
        }
        TaskError::TooLarge(_) => invalid_params(error.to_string()),
        _ => {
            tracing::error!("task: {error}");
            unreleased()
        }
    }
}

/// The task that the params name, if it is this session's.
fn find(context: &RequestContext<'_>) -> Result<TaskEntry, RpcError> {
    let id = context.params.get("taskId").and_then(Value::as_str).unwrap_or_default();
    let now = context.session.shared.orchestrator.now();
    context.session.tasks.find(id, &(), now).ok_or_else(unknown)
}

/// Handles `tasks/get`.
pub(crate) async fn get(context: RequestContext<'_>) -> Result<Value, RpcError> {
    Ok(find(&context)?.record.view())
}

/// Handles `tasks/list`.
pub(crate) fn list(context: &RequestContext<'_>) -> Result<Value, RpcError> {
    let mut entries = context.session.tasks.list(&(), context.session.shared.orchestrator.now());
    entries.sort_by(|one, other| {
        let (one, other) = (&one.record, &other.record);
        (one.created_at, &one.id).cmp(&(other.created_at, &other.id))
    });
    let views: Vec<Value> = entries.iter().map(|entry| entry.record.view()).collect();
    page(&context.params, "tasks", views, context.session.shared.options.limits.page)
}

/// Handles `tasks/result`: waits for the end of the task.
pub(crate) async fn result(context: RequestContext<'_>) -> Result<Value, RpcError> {
    let entry = find(&context)?;
    tokio::select! {
        () = entry.ended.cancelled() => {}
        () = context.cancellation.cancelled() => {
            return Err(RpcError::new(crate::error::CANCELLED, "called off by the caller"));
        }
    }
    let session = context.session;
    let task = entry.record;
    let view = session.shared.deferred(task.ttl).look(&task.id, &task.subject).await;
    let view = view.map_err(|error| refused(&error))?;
    let mut result = match (view.result, view.receipt) {
        (Some(result), Some(receipt)) => {
            let evaluation =
                Evaluation { outcome: result.outcome, receipt, seq: 0, cost: None, answered: None };
            let named = (task.id.as_str(), task.server.as_str(), task.tool.as_str());
            answer::call_result(evaluation, named, &result.chunks)?
        }
        _ => {
            let words = "The task came to no result: its kernel stopped, or it was called off.";
            json!({"content": [{"type": "text", "text": words}], "isError": true})
        }
    };
    if let Value::Object(members) = &mut result {
        answer::insert_meta(members, RELATED_TASK, json!({"taskId": task.id}));
    }
    Ok(result)
}

/// Handles `tasks/cancel`.
pub(crate) async fn cancel(context: RequestContext<'_>) -> Result<Value, RpcError> {
    let entry = find(&context)?;
    let (status, _) = entry.record.status();
    if status.is_over() {
        let message =
            format!("expected a task that is not over, found one that is {}", status.into_str());
        return Err(invalid_params(message));
    }
    entry.cancellation.cancel();
    tokio::select! {
        () = entry.ended.cancelled() => {}
        () = context.cancellation.cancelled() => {}
    }
    Ok(entry.record.view())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_kept_for_as_long_as_asked_within_bounds() {
        let (usual, max) = (Duration::from_secs(300), Duration::from_secs(3600));
        let kept = |wanted: Value| ttl(&wanted, usual, max).map(|ttl| ttl.as_secs()).ok();
        for (wanted, expected) in [
            (json!({}), Some(300)),
            (json!({"ttl": null}), Some(300)),
            (json!({"ttl": 1}), Some(1)),
            (json!({"ttl": 60_000}), Some(60)),
            (json!({"ttl": 1e300}), Some(3600)),
            (json!({"ttl": 0}), None),
            (json!({"ttl": -1}), None),
            (json!({"ttl": "1"}), None),
            (json!(true), None),
        ] {
            assert_eq!(kept(wanted.clone()), expected, "{wanted}");
        }
    }
}
