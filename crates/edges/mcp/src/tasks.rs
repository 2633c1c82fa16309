//! Calls as tasks: taken on at once, run in the background, and asked for by the session that they
//! belong to.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chio_core::crypto::PublicKey;
use chio_cross_protocol::jsonrpc::RpcError;
use chio_cross_protocol::{
    DiscoveryProtocol, Evaluation, Notice, Outcome, Presented, TaskError, TaskResult, TaskState,
    TaskView, failed_task,
};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::answer;
use crate::caller::{About, McpCaller, RELATED_TASK};
use crate::error::{invalid_params, unreleased};
use crate::events::NOTIFICATIONS;
use crate::methods::{Arguments, Turn, page};
use crate::session::McpSession;

/// How often a client should ask, in milliseconds.
const POLL_MS: u64 = 500;

/// The tasks of a session.
#[derive(Debug, Default)]
pub(crate) struct TaskTable(Mutex<HashMap<String, Entry>>);

#[derive(Debug, Clone)]
struct Entry {
    id: String,
    owner: PublicKey,
    server: String,
    tool: String,
    created_at: u64,
    ttl: Duration,
    cancellation: CancellationToken,
    /// How far it has come, and since when.
    progress: watch::Receiver<(Status, u64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Working,
    Completed,
    Failed,
    Cancelled,
}

impl Status {
    const fn name(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    const fn is_over(self) -> bool {
        !matches!(self, Self::Working)
    }
}

impl Entry {
    fn status(&self) -> (Status, u64) {
        *self.progress.borrow()
    }

    /// The task as clients see it.
    fn view(&self) -> Value {
        let (status, updated_at) = self.status();
        json!({
            "taskId": self.id,
            "status": status.name(),
            "createdAt": timestamp(self.created_at),
            "lastUpdatedAt": timestamp(updated_at),
            "ttl": u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX),
            "pollInterval": POLL_MS,
        })
    }

    async fn over(&self) -> Status {
        let mut progress = self.progress.clone();
        match progress.wait_for(|(status, _)| status.is_over()).await {
            Ok(progress) => progress.0,
            // Whoever ran it is gone.
            Err(_) => Status::Failed,
        }
    }
}

impl TaskTable {
    fn entries(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn any_running(&self) -> bool {
        self.entries().values().any(|entry| !entry.status().0.is_over())
    }

    /// Forgets what the store has forgotten, and tells how many are left.
    fn sweep(&self, now: u64) -> usize {
        let mut entries = self.entries();
        entries.retain(|_, entry| {
            let gone_at = entry.created_at.saturating_add(entry.ttl.as_secs());
            gone_at > now || !entry.status().0.is_over()
        });
        entries.len()
    }
}

/// Takes a call on as a task.
pub(crate) async fn create(
    session: &Arc<McpSession>,
    arguments: Arguments,
    wanted: &Value,
    progress: Option<Value>,
) -> Result<Value, RpcError> {
    let (limits, now) = (&session.shared.options.limits, session.shared.orchestrator.now());
    if session.tasks.sweep(now) >= limits.tasks {
        return Err(invalid_params(format!(
            "expected at most {} tasks of a session",
            limits.tasks
        )));
    }
    let ttl = ttl(wanted, limits.task_ttl, limits.max_task_ttl)?;
    let deferred = session.shared.deferred(ttl);
    let mut request = arguments.request;
    let presented =
        Presented { dpop_proof: request.dpop_proof.take(), approval: request.approval.take() };
    let (owner, server, tool) =
        (request.agent.clone(), request.server_id.clone(), request.tool_name.clone());
    let taken = deferred.defer(request, DiscoveryProtocol::Mcp).await;
    let id = taken.map_err(|error| refused(session, &error))?.id;
    let (sender, receiver) = watch::channel((Status::Working, now));
    let cancellation = session.ended.child_token();
    let entry = Entry {
        id: id.clone(),
        owner: owner.clone(),
        server,
        tool,
        created_at: now,
        ttl,
        cancellation: cancellation.clone(),
        progress: receiver,
    };
    session.tasks.entries().insert(id.clone(), entry.clone());
    let (runner, ended) = (Arc::clone(session), entry.clone());
    tokio::spawn(async move {
        let about = About { task: Some(id.clone()), progress, ..About::default() };
        let caller = McpCaller::for_request(&runner, NOTIFICATIONS, cancellation, about);
        let view = deferred.result(&id, &owner, presented, caller).await;
        let status = match view {
            Ok(view) => status(&view),
            Err(error) => {
                runner.shared.options.log.line(&format!("task {id}: {error}"));
                Status::Failed
            }
        };
        sender.send_replace((status, runner.shared.orchestrator.now()));
        if let Value::Object(params) = ended.view() {
            let method = "notifications/tasks/status".to_owned();
            runner.notify(NOTIFICATIONS, Notice { method, params });
        }
    });
    Ok(json!({"task": entry.view()}))
}

fn ttl(wanted: &Value, usual: Duration, most: Duration) -> Result<Duration, RpcError> {
    let Value::Object(wanted) = wanted else {
        return Err(invalid_params("expected `task` to be an object"));
    };
    match wanted.get("ttl") {
        None | Some(Value::Null) => Ok(usual),
        Some(ttl) => {
            let expected = || invalid_params("expected `task.ttl` in milliseconds");
            let ttl =
                ttl.as_f64().filter(|ttl| *ttl > 0.0 && ttl.is_finite()).ok_or_else(expected)?;
            // The store keeps whole seconds.
            let seconds = Duration::try_from_secs_f64((ttl / 1000.0).ceil()).unwrap_or(most);
            Ok(seconds.min(most))
        }
    }
}

fn status(view: &TaskView) -> Status {
    match view.state {
        TaskState::Waiting | TaskState::Running | TaskState::Failed => Status::Failed,
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
            value.get("isError") == Some(&Value::Bool(true))
        }
        Some(TaskResult { outcome: Outcome::Stream { .. }, chunks, .. }) => {
            chunks.last().and_then(failed_task).is_some()
        }
        _ => false,
    }
}

/// Tells no more than that there is no such task, unless it is the caller's.
fn unknown() -> RpcError {
    invalid_params("task not found: expected the id of a task of this session")
}

fn refused(session: &McpSession, error: &TaskError) -> RpcError {
    match error {
        TaskError::Refused(_) => unknown(),
        TaskError::Denied(denial) => invalid_params(answer::words(denial)),
        TaskError::TooLarge(_) => invalid_params(error.to_string()),
        _ => {
            session.shared.options.log.line(&format!("task: {error}"));
            unreleased()
        }
    }
}

/// The task that the params name, if it is this session's.
fn find(turn: &Turn<'_>) -> Result<Entry, RpcError> {
    let id = turn.params.get("taskId").and_then(Value::as_str).unwrap_or_default();
    turn.session.tasks.sweep(turn.session.shared.orchestrator.now());
    turn.session.tasks.entries().get(id).cloned().ok_or_else(unknown)
}

/// Answers `tasks/get`.
pub(crate) async fn get(turn: Turn<'_>) -> Result<Value, RpcError> {
    Ok(find(&turn)?.view())
}

/// Answers `tasks/list`.
pub(crate) fn list(turn: &Turn<'_>) -> Result<Value, RpcError> {
    turn.session.tasks.sweep(turn.session.shared.orchestrator.now());
    let mut entries: Vec<Entry> = turn.session.tasks.entries().values().cloned().collect();
    entries.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
    let views: Vec<Value> = entries.iter().map(Entry::view).collect();
    page(&turn.params, "tasks", views, turn.session.shared.options.limits.page)
}

/// Answers `tasks/result`: waits for the end of the task.
pub(crate) async fn result(turn: Turn<'_>) -> Result<Value, RpcError> {
    let entry = find(&turn)?;
    tokio::select! {
        _ = entry.over() => {}
        () = turn.cancellation.cancelled() => {
            return Err(RpcError::new(crate::error::CANCELLED, "called off by the caller"));
        }
    }
    let session = turn.session;
    let view = session.shared.deferred(entry.ttl).look(&entry.id, &entry.owner).await;
    let view = view.map_err(|error| refused(session, &error))?;
    let mut result = match (view.result, view.receipt) {
        (Some(result), Some(receipt)) => {
            let evaluation = Evaluation { outcome: result.outcome, receipt, seq: 0, cost: None };
            let named = (entry.id.as_str(), entry.server.as_str(), entry.tool.as_str());
            answer::of_call(evaluation, named, &result.chunks)?
        }
        _ => {
            let words = "The task came to no result: its kernel stopped, or it was called off.";
            json!({"content": [{"type": "text", "text": words}], "isError": true})
        }
    };
    if let Value::Object(members) = &mut result {
        let meta = members.entry("_meta").or_insert_with(|| json!({}));
        if let Value::Object(meta) = meta {
            let related = json!({"taskId": entry.id});
            meta.insert(RELATED_TASK.to_owned(), related);
        }
    }
    Ok(result)
}

/// Answers `tasks/cancel`.
pub(crate) async fn cancel(turn: Turn<'_>) -> Result<Value, RpcError> {
    let entry = find(&turn)?;
    let (status, _) = entry.status();
    if status.is_over() {
        let message =
            format!("expected a task that is not over, found one that is {}", status.name());
        return Err(invalid_params(message));
    }
    entry.cancellation.cancel();
    tokio::select! {
        _ = entry.over() => {}
        () = turn.cancellation.cancelled() => {}
    }
    Ok(entry.view())
}

/// A time in Unix seconds, as ISO 8601 writes it.
fn timestamp(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days since 1 March of year 0, in eras of 400 years.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest % 3600 / 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_iso_8601_writes_them() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_700_000_000, "2023-11-14T22:13:20Z"),
            (4_102_444_800, "2100-01-01T00:00:00Z"),
        ] {
            assert_eq!(timestamp(seconds), text);
        }
    }

    #[test]
    fn a_task_is_kept_for_as_long_as_asked_within_bounds() {
        let (usual, most) = (Duration::from_secs(300), Duration::from_secs(3600));
        let kept = |wanted: Value| ttl(&wanted, usual, most).map(|ttl| ttl.as_secs()).ok();
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
