//! Reading, listing and cancelling tasks.

use std::sync::Arc;
use std::time::Duration;

use chio_core::capability::{ChioScope, DpopProof};
use chio_core::crypto::PublicKey;
use chio_cross_protocol::{
    CapabilityBridge, KernelError, OrchestratedRequest, Presented, TaskError, TaskNames, TaskQuery,
    TaskRefused, TaskState, TaskView,
};
use chio_edge::tokens::token_for;
use chio_net::memory::HeldMemory;
use serde_json::json;

use crate::bridge::A2aBridge;
use crate::caller::A2aCaller;
use crate::error::{Fault, Kind};
use crate::principals::AdmittedPrincipal;
use crate::record::{TaskEntry, TaskRecord};
use crate::running::{Brings, HEAD_START, acquire, entry, run, start};
use crate::service::EdgeState;

/// How long a cancelled call may take to end.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(30);

fn owner_of<'a>(principal: &'a AdmittedPrincipal, id: &str) -> Result<&'a PublicKey, Fault> {
    principal.owner().ok_or_else(|| Fault::no_task(id))
}

/// A task that runs in this process.
fn running(shared: &EdgeState, owner: &PublicKey, id: &str) -> Option<TaskEntry> {
    shared.tasks.find(id, owner, shared.orchestrator.now()).filter(TaskEntry::is_running)
}

/// A task as the store has it.
async fn stored(shared: &EdgeState, owner: &PublicKey, id: &str) -> Result<TaskView, Fault> {
    shared.deferred.look(id, owner).await.map_err(|error| task_fault(id, &error))
}

/// The current state of a task. Nothing is run.
pub(crate) async fn look(
    shared: &EdgeState,
    principal: &AdmittedPrincipal,
    id: &str,
) -> Result<Arc<TaskRecord>, Fault> {
    let owner = owner_of(principal, id)?;
    match running(shared, owner, id) {
        Some(entry) => Ok(entry.record),
        None => Ok(Arc::new(TaskRecord::from_view(stored(shared, owner, id).await?))),
    }
}

/// The state of a task once nothing of this process runs for it.
pub(crate) async fn settled(
    shared: &EdgeState,
    principal: &AdmittedPrincipal,
    id: &str,
) -> Result<Arc<TaskRecord>, Fault> {
    if let Some(entry) = running(shared, owner_of(principal, id)?, id) {
        entry.ended.cancelled().await;
    }
    look(shared, principal, id).await
}

/// The current state of a task. One that waits begins; whether it is waited for depends.
pub(crate) async fn get(
    shared: &Arc<EdgeState>,
    principal: &AdmittedPrincipal,
    id: &str,
    (proof, waits): (Option<Box<DpopProof>>, bool),
) -> Result<Arc<TaskRecord>, Fault> {
    let owner = owner_of(principal, id)?;
    if let Some(entry) = running(shared, owner, id) {
        return Ok(entry.record);
    }
    let view = stored(shared, owner, id).await?;
    let state = view.state;
    let record = Arc::new(TaskRecord::from_view(view));
    if state != TaskState::Waiting {
        return Ok(record);
    }
    let session = principal.session.clone();
    if waits {
        let entry = entry(shared, owner, &record);
        let permit = acquire(shared, &entry)?;
        return run(shared, entry, permit, session, Brings::Proof(proof)).await;
    }
    // Where there is no room, it begins when there is.
    let _ = start(shared, owner, &record, session, proof);
    Ok(record)
}

/// Cancels a task. With `again`, one that is cancelled already may be.
pub(crate) async fn cancel(
    shared: &EdgeState,
    principal: &AdmittedPrincipal,
    id: &str,
    again: bool,
) -> Result<Arc<TaskRecord>, Fault> {
    let owner = owner_of(principal, id)?;
    if let Some(entry) = running(shared, owner, id) {
        cancel_and_wait(&entry).await;
        return cancelled(stored(shared, owner, id).await?);
    }
    let view = stored(shared, owner, id).await?;
    match view.state {
        TaskState::Waiting => {}
        TaskState::Asking => answer_with_nothing(shared, principal, owner, view).await?,
        // Another process runs it.
        TaskState::Running => return Err(not_cancelable()),
        TaskState::Cancelled if again => {}
        _ => return Err(not_cancelable()),
    }
    // What has not begun is run by a caller that has cancelled it: so its end has a receipt.
    let (session, cancellation) = (principal.session.clone(), shared.closing.child_token());
    let caller = A2aCaller::new(session, cancellation, (None, HeldMemory::of_process(0)));
    caller.cancel();
    let presented = Presented::default();
    let view = shared.deferred.result(id, owner, presented, Arc::new(caller)).await;
    let view = match view {
        // No kernel has its tool server any more.
        Err(TaskError::Elsewhere) => shared.deferred.cancel(id, owner).await,
        view => view,
    };
    cancelled(view.map_err(|error| task_fault(id, &error))?)
}

/// The task, if it is cancelled.
fn cancelled(view: TaskView) -> Result<Arc<TaskRecord>, Fault> {
    match view.state {
        TaskState::Cancelled => Ok(Arc::new(TaskRecord::from_view(view))),
        _ => Err(not_cancelable()),
    }
}

/// Lets a task that asks go on, with a call of nothing that is cancelled before it runs.
async fn answer_with_nothing(
    shared: &EdgeState,
    principal: &AdmittedPrincipal,
    owner: &PublicKey,
    view: TaskView,
) -> Result<(), Fault> {
    let record = TaskRecord::from_view(view);
    let skill = shared.catalogs.find(Some(&record.skill), &shared.orchestrator, &shared.options);
    let skill = skill.await.ok();
    let (server, tool) = match &skill {
        Some(skill) => (skill.server.clone(), skill.tool.clone()),
        None => (record.skill.clone(), record.skill.clone()),
    };
    let no_token = || Fault::no_task(&record.id);
    let token = token_for(&principal.tokens, &server, &tool).cloned().ok_or_else(no_token)?;
    let mut request = OrchestratedRequest::new(&record.id, token, server, tool, json!({}));
    request.agent = owner.clone();
    // Should this process end before it is cancelled, it is denied in the next.
    request.scope = Some(ChioScope::default());
    let due_at = shared.orchestrator.now().saturating_add(HEAD_START);
    let due = Some((due_at, Arc::clone(&principal.session.principal)));
    let (id, record_bytes) = (record.id.clone(), record.kept());
    let names = TaskNames { id, record: record_bytes, due, ..TaskNames::default() };
    let answered = shared.deferred.answer(names, request, A2aBridge.protocol()).await;
    answered.map_err(|error| task_fault(&record.id, &error))
}

/// Cancels what this process runs for a task, and waits until that has ended.
async fn cancel_and_wait(entry: &TaskEntry) {
    entry.cancellation.cancel();
    let _ = tokio::time::timeout(CANCEL_TIMEOUT, entry.ended.cancelled()).await;
}

fn not_cancelable() -> Fault {
    Fault::new(Kind::TaskNotCancelable, "the task cannot be called off any more")
}

/// Some tasks of a caller, in the order of the query, and how many there are in all: those of the
/// store, and those that run and are not there yet.
pub(crate) async fn list(
    shared: &EdgeState,
    principal: &AdmittedPrincipal,
    query: impl FnOnce(&PublicKey, u64) -> TaskQuery,
    fits: impl Fn(&TaskRecord) -> bool,
) -> Result<(Vec<Arc<TaskRecord>>, usize), Fault> {
    let Some(owner) = principal.owner() else { return Ok((Vec::new(), 0)) };
    let now = shared.orchestrator.now();
    let mut records = Vec::new();
    for entry in shared.tasks.list(owner, now) {
        let is_stored = shared.deferred.look(&entry.record.id, owner).await.is_ok();
        if entry.is_running() && !is_stored && fits(&entry.record) {
            records.push(entry.record);
        }
    }
    let (views, total) =
        shared.deferred.list(query(owner, now)).await.map_err(|error| task_fault("", &error))?;
    let total = total + records.len();
    records.extend(views.into_iter().map(|view| Arc::new(TaskRecord::from_view(view))));
    Ok((records, total))
}

/// The fault that answers for an error of a task.
pub(crate) fn task_fault(id: &str, error: &TaskError) -> Fault {
    match error {
        TaskError::Refused(TaskRefused::Over(_) | TaskRefused::Running | TaskRefused::Asking) => {
            not_cancelable()
        }
        TaskError::Refused(_) | TaskError::Kernel(KernelError::NotClaimed(_)) => Fault::no_task(id),
        TaskError::Elsewhere => {
            Fault::new(Kind::Unsupported, "no tool server of this process can run the task")
        }
        // The kernel says so itself.
        TaskError::Kernel(KernelError::NotNow(_)) => Fault::unreleased(),
        error => fault_of("a task", error),
    }
}

/// What is answered when something did not work that is for the operator to know.
pub(crate) fn fault_of(what: &str, error: &dyn std::fmt::Display) -> Fault {
    tracing::error!("{what}: {error}");
    Fault::unreleased()
}
