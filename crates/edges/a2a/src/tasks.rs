//! Reading, listing and cancelling tasks.

use std::sync::Arc;
use std::time::Duration;

use chio_core::capability::DpopProof;
use chio_core::crypto::PublicKey;
use chio_core::receipt::SealedReceipt;
use chio_cross_protocol::{
    CapabilityBridge, DetachOnDrop, Presented, TaskError, TaskRefused, TaskState, TaskView,
};
use chio_net::memory::HeldMemory;
use serde_json::{Value, json};

use crate::bridge::A2aBridge;
use crate::call_report::CallReport;
use crate::caller::A2aCaller;
use crate::convert::task_outcome;
use crate::error::{Fault, Kind};
use crate::message::{Message, Part};
use crate::principals::AdmittedPrincipal;
use crate::record::{State, TaskEntry, TaskRecord};
use crate::send::{acquire, task_fault};
use crate::service::EdgeState;

/// How long a cancelled call may take to end.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(30);

fn owner_of<'a>(principal: &'a AdmittedPrincipal, id: &str) -> Result<&'a PublicKey, Fault> {
    principal.owner().ok_or_else(|| Fault::no_task(id))
}

/// A task of this caller: of this process, or as the store has it.
pub(crate) enum OwnedTask {
    /// Only this process has it.
    Here(TaskEntry),
    /// The store has it, and these are its messages.
    Stored(Box<TaskView>, Vec<Message>),
}

/// Finds a task of this caller. Nothing is run.
pub(crate) async fn find(
    shared: &EdgeState,
    principal: &AdmittedPrincipal,
    id: &str,
) -> Result<OwnedTask, Fault> {
    let owner = owner_of(principal, id)?;
    let now = shared.orchestrator.now();
    let entry = shared.tasks.find(id, owner, now);
    if let Some(entry) = entry.as_ref().filter(|entry| !entry.durable) {
        return Ok(OwnedTask::Here(entry.clone()));
    }
    let view = shared.deferred.look(id, owner).await;
    let view = view.map_err(|error| task_fault(id, &error))?;
    let view = with_context(view, entry.as_ref());
    let history = entry.map(|entry| entry.record.history.clone()).unwrap_or_default();
    if !view.state.is_over() {
        return Ok(OwnedTask::Stored(Box::new(view), history));
    }
    let record = record_from_view(view.clone(), history.clone());
    if record.state != State::InputRequired {
        return Ok(OwnedTask::Stored(Box::new(view), history));
    }
    // For the store it is over. The message that continues it removes it there.
    Ok(OwnedTask::Here(TaskEntry::idle(owner.clone(), Arc::new(record), true, &shared.closing)))
}

/// The current state of a task. Nothing is run.
pub(crate) async fn look(
    shared: &EdgeState,
    principal: &AdmittedPrincipal,
    id: &str,
) -> Result<Arc<TaskRecord>, Fault> {
    Ok(match find(shared, principal, id).await? {
        OwnedTask::Here(entry) => entry.record,
        OwnedTask::Stored(view, history) => Arc::new(record_from_view(*view, history)),
    })
}

/// The current state of a task. One that waits is run first.
pub(crate) async fn get(
    shared: &Arc<EdgeState>,
    principal: &AdmittedPrincipal,
    id: &str,
    proof: Option<Box<DpopProof>>,
) -> Result<Arc<TaskRecord>, Fault> {
    let (view, history) = match find(shared, principal, id).await? {
        OwnedTask::Here(entry) => return Ok(entry.record),
        OwnedTask::Stored(view, history) => (*view, history),
    };
    if view.state != TaskState::Waiting {
        return Ok(Arc::new(record_from_view(view, history)));
    }
    let presented = Presented { dpop_proof: proof, approval: None };
    run_deferred(shared, principal, view, history, presented).await
}

/// Runs a task that waits. It continues when its client disconnects.
async fn run_deferred(
    shared: &Arc<EdgeState>,
    principal: &AdmittedPrincipal,
    view: TaskView,
    history: Vec<Message>,
    presented: Presented,
) -> Result<Arc<TaskRecord>, Fault> {
    let id = view.id.clone();
    let owner = owner_of(principal, &id)?.clone();
    let before = Arc::new(record_from_view(view, history.clone()));
    let entry = TaskEntry::running(owner.clone(), before, true, &shared.closing);
    let (permit, _waits) = acquire(shared, &entry)?;
    // Without an entry in the table it runs all the same, but cannot be cancelled.
    let _ = shared.tasks.insert(entry.clone(), None, shared.orchestrator.now());
    let session = principal.session.clone();
    // The request that asks for it is small; the store has the message.
    let held = HeldMemory::of_process(0);
    let caller = Arc::new(A2aCaller::new(session, entry.cancellation, (permit, held)));
    let runner = Arc::clone(shared);
    let work = DetachOnDrop::new(async move {
        // Also when the call panics, tasks that wait for its end continue.
        let _ended = entry.ended.drop_guard();
        let view = runner.deferred.result(&id, &owner, presented, caller).await;
        let view = view.map_err(|error| task_fault(&id, &error))?;
        Ok(Arc::new(record_from_view(view, history)))
    });
    work.await.unwrap_or_else(|_| Err(Fault::unreleased()))
}

/// Cancels a task. With `again`, one that is cancelled already may be.
pub(crate) async fn cancel(
    shared: &EdgeState,
    principal: &AdmittedPrincipal,
    id: &str,
    again: bool,
) -> Result<Arc<TaskRecord>, Fault> {
    let (mut view, history) = match find(shared, principal, id).await? {
        OwnedTask::Here(entry) => return cancel_here(shared, &entry, again).await,
        OwnedTask::Stored(view, history) => (*view, history),
    };
    let is_over = view.state.is_over() && !(again && view.state == TaskState::Cancelled);
    if is_over {
        return Err(not_cancelable());
    }
    let owner = owner_of(principal, id)?;
    let context = view.context.take();
    let mut cancelled = match shared.deferred.cancel(id, owner).await {
        Ok(view) => view,
        Err(TaskError::Refused(TaskRefused::Running)) => {
            let running = shared.tasks.find(id, owner, shared.orchestrator.now());
            cancel_and_wait(running.as_ref()).await;
            let view = shared.deferred.look(id, owner).await;
            view.map_err(|error| task_fault(id, &error))?
        }
        Err(TaskError::Refused(TaskRefused::Over(_))) => return Err(not_cancelable()),
        Err(error) => return Err(task_fault(id, &error)),
    };
    if cancelled.state != TaskState::Cancelled {
        return Err(not_cancelable());
    }
    // The store has removed the context with the task.
    cancelled.context = cancelled.context.or(context);
    let record = Arc::new(record_from_view(cancelled, history));
    // The table, if it has the task, retains what the store has removed.
    shared.tasks.update(Arc::clone(&record), record.updated_at);
    Ok(record)
}

/// Cancels what this process runs for a task, and waits until that has ended.
async fn cancel_and_wait(entry: Option<&TaskEntry>) {
    let Some(entry) = entry else { return };
    entry.cancellation.cancel();
    let _ = tokio::time::timeout(CANCEL_TIMEOUT, entry.ended.cancelled()).await;
}

fn not_cancelable() -> Fault {
    Fault::new(Kind::TaskNotCancelable, "the task cannot be called off any more")
}

/// Cancels a task that only this process has.
async fn cancel_here(
    shared: &EdgeState,
    entry: &TaskEntry,
    again: bool,
) -> Result<Arc<TaskRecord>, Fault> {
    match entry.record.state {
        State::Working => {
            cancel_and_wait(Some(entry)).await;
            let now = shared.orchestrator.now();
            let after = shared.tasks.find(&entry.record.id, &entry.owner, now);
            match after.map(|entry| entry.record) {
                Some(record) if record.state == State::Canceled => Ok(record),
                _ => Err(not_cancelable()),
            }
        }
        State::InputRequired => {
            let record = Arc::new(TaskRecord {
                state: State::Canceled,
                words: vec![Part::text("called off by the caller")],
                updated_at: shared.orchestrator.now(),
                ..(*entry.record).clone()
            });
            if !entry.durable {
                shared.tasks.update(Arc::clone(&record), record.updated_at);
                return Ok(record);
            }
            let removed = shared.deferred.forget(&record.id, &entry.owner).await;
            if !removed.map_err(|error| task_fault(&record.id, &error))? {
                return Err(not_cancelable());
            }
            shared.tasks.remove(&record.id);
            let owner = entry.owner.clone();
            let entry = TaskEntry::idle(owner, Arc::clone(&record), false, &shared.closing);
            let _ = shared.tasks.insert(entry, None, record.updated_at);
            Ok(record)
        }
        State::Canceled if again => Ok(Arc::clone(&entry.record)),
        _ => Err(not_cancelable()),
    }
}

/// The tasks of a caller: those of this process, and those that the store has.
pub(crate) async fn list(
    shared: &EdgeState,
    principal: &AdmittedPrincipal,
) -> Result<Vec<Arc<TaskRecord>>, Fault> {
    let Some(owner) = principal.owner() else { return Ok(Vec::new()) };
    let mut known = shared.tasks.list(owner, shared.orchestrator.now());
    let limit = shared.options.limits.tasks_per_owner;
    let views = shared.deferred.list(owner, A2aBridge.protocol(), limit).await;
    let views = views.map_err(|error| task_fault("", &error))?;
    let mut records: Vec<Arc<TaskRecord>> = Vec::with_capacity(views.len());
    for view in views {
        let entry = known.iter().find(|entry| entry.record.id == view.id);
        if entry.is_some_and(|entry| !entry.durable) {
            continue;
        }
        let history = entry.map(|entry| entry.record.history.clone()).unwrap_or_default();
        records.push(Arc::new(record_from_view(with_context(view, entry), history)));
    }
    known.retain(|entry| !entry.durable);
    records.extend(known.into_iter().map(|entry| entry.record));
    Ok(records)
}

/// A task of the store, with the context that only the table still has.
fn with_context(mut view: TaskView, entry: Option<&TaskEntry>) -> TaskView {
    let Some(record) = entry.map(|entry| &entry.record) else { return view };
    let context = || json!({"contextId": record.context_id, "skillId": record.skill});
    view.context.get_or_insert_with(context);
    view
}

/// When a receipt was signed.
fn signed_at(receipt: &SealedReceipt) -> Option<u64> {
    let receipt: Value = serde_json::from_slice(&receipt.bytes).ok()?;
    receipt.get("timestamp")?.as_u64()
}

/// A task of the store, as every dialect encodes it.
fn record_from_view(view: TaskView, history: Vec<Message>) -> TaskRecord {
    let named = |name: &str| {
        let value = view.context.as_ref().and_then(|context| context.get(name));
        value.and_then(Value::as_str).map(str::to_owned)
    };
    let context_id = named("contextId");
    let skill = named("skillId").unwrap_or_default();
    let updated_at = view.receipt.as_ref().and_then(signed_at).unwrap_or(view.created_at);
    let mut record = TaskRecord::working(view.id, context_id, skill, history, updated_at);
    match (view.state, view.result, view.receipt) {
        (TaskState::Waiting | TaskState::Running, ..) => {}
        (_, Some(result), Some(receipt)) => {
            let ending = task_outcome(&result.outcome, &result.chunks);
            record.state = ending.state;
            record.output = ending.output;
            record.words = ending.words;
            record.report = CallReport::new(&result.outcome, receipt);
        }
        (TaskState::Cancelled, ..) => {
            record.state = State::Canceled;
            record.words = vec![Part::text("called off by the caller")];
            record.report = CallReport::cancelled();
        }
        (_, _, receipt) => {
            record.state = State::Failed;
            record.words = vec![Part::text("the kernel stopped while the task ran")];
            record.report = CallReport::interrupted(receipt);
        }
    }
    record
}
