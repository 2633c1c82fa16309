//! Tasks of the store that run in this process: because their owner asks for them, because a message
//! has just begun them, or because they are due.

use std::sync::{Arc, Weak};
use std::time::Duration;

use chio_core::capability::DpopProof;
use chio_core::crypto::PublicKey;
use chio_cross_protocol::{CapabilityBridge, Denial, DetachOnDrop, Presented, Session, TaskError};
use chio_edge::limits::{CallerWaits, ConcurrencyPermit};
use chio_net::memory::HeldMemory;

use crate::bridge::A2aBridge;
use crate::caller::A2aCaller;
use crate::error::{Fault, Kind};
use crate::record::{TaskEntry, TaskRecord};
use crate::service::EdgeState;
use crate::tasks::task_fault;

/// How often tasks that are due are looked for.
const LOOK: Duration = Duration::from_secs(1);

/// For how many seconds a task that a request is about to begin is not due for anything else.
pub(crate) const HEAD_START: u64 = 2;

/// How many of them are begun at one look.
const MOST_DUE: usize = 1024;

/// A permit to run the call of a task, and what is dropped when the caller leaves.
pub(crate) type Permit = (ConcurrencyPermit, CallerWaits);

/// What comes with the request that runs a task.
pub(crate) enum Brings {
    /// A proof of possession, if there is one.
    Proof(Option<Box<DpopProof>>),
    /// Why it is refused.
    Refusal(Denial),
}

/// A permit for the call of a task.
pub(crate) fn acquire(shared: &EdgeState, entry: &TaskEntry) -> Result<Permit, Fault> {
    let busy = || Fault::new(Kind::Busy, "expected fewer calls at once");
    shared.running.try_acquire(&entry.owner, &entry.cancellation).ok_or_else(busy)
}

/// An entry of the table for a task that begins to run.
pub(crate) fn entry(shared: &EdgeState, owner: &PublicKey, record: &Arc<TaskRecord>) -> TaskEntry {
    TaskEntry::running(owner.clone(), Arc::clone(record), true, &shared.closing)
}

/// Runs a task that waits to its end. It goes on when its client disconnects.
pub(crate) async fn run(
    shared: &Arc<EdgeState>,
    entry: TaskEntry,
    (permit, waits): Permit,
    session: Session,
    brings: Brings,
) -> Result<Arc<TaskRecord>, Fault> {
    let before = Arc::clone(&entry.record);
    if shared.tasks.insert(entry.clone(), shared.orchestrator.now()).is_err() {
        // Another request has just begun it.
        return Ok(before);
    }
    // The request that asks for it is small; the store has the message.
    let held = HeldMemory::of_process(0);
    let TaskEntry { owner, cancellation, ended, .. } = entry;
    let caller = Arc::new(A2aCaller::new(session, cancellation, (Some(permit), held)));
    let runner = Arc::clone(shared);
    let work = DetachOnDrop::new(async move {
        // Also when the call panics, requests that wait for its end continue.
        let _ended = ended.drop_guard();
        let id = &before.id;
        let view = match brings {
            Brings::Refusal(denial) => runner.deferred.refuse(denial, id, &owner, caller).await,
            Brings::Proof(dpop_proof) => {
                let presented = Presented { dpop_proof, approval: None };
                runner.deferred.result(id, &owner, presented, caller).await
            }
        };
        runner.tasks.remove(id);
        let view = view.map_err(|error| task_fault(id, &error))?;
        Ok(Arc::new(TaskRecord::from_view(view)))
    });
    // A task whose client has left can make room for others.
    let _waits = waits;
    work.await.unwrap_or_else(|_| Err(Fault::unreleased()))
}

/// Lets a task that waits begin, if there is room; else it is begun when there is.
pub(crate) fn start(
    shared: &Arc<EdgeState>,
    owner: &PublicKey,
    record: &Arc<TaskRecord>,
    session: Session,
    proof: Option<Box<DpopProof>>,
) -> Result<(), Fault> {
    let entry = entry(shared, owner, record);
    let permit = acquire(shared, &entry)?;
    let shared = Arc::clone(shared);
    // The permit counts it as one whose client waits: what was accepted makes room for nothing.
    let brings = Brings::Proof(proof);
    tokio::spawn(async move { run(&shared, entry, permit, session, brings).await.map(drop) });
    Ok(())
}

/// Begins tasks that are due, for as long as the edge is there: those that an earlier process has
/// accepted, those that there was no room for, and those that cannot be asked for any more.
pub(crate) async fn follow_due(edge: Weak<EdgeState>) {
    loop {
        let closing = {
            let Some(shared) = edge.upgrade() else { return };
            start_due(&shared).await;
            shared.closing.clone()
        };
        tokio::select! {
            () = closing.cancelled() => return,
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

async fn start_due(shared: &Arc<EdgeState>) {
    let due = match shared.deferred.due(A2aBridge.protocol(), MOST_DUE).await {
        Ok(due) => due,
        Err(error) => return tracing::warn!("tasks that are due: {error}"),
    };
    for (id, owner) in due {
        let now = shared.orchestrator.now();
        if shared.tasks.find(&id, &owner, now).is_some_and(|entry| entry.is_running()) {
            continue;
        }
        match begin_due(shared, &id, &owner).await {
            Ok(()) | Err(TaskError::Refused(_) | TaskError::Elsewhere) => {}
            Err(error) => tracing::warn!("task {id}: {error}"),
        }
    }
}

async fn begin_due(shared: &Arc<EdgeState>, id: &str, owner: &PublicKey) -> Result<(), TaskError> {
    let session = shared.deferred.session_of(id, owner).await?;
    let record = Arc::new(TaskRecord::from_view(shared.deferred.look(id, owner).await?));
    // Where there is no room, the next look finds it again.
    let _ = start(shared, owner, &record, session, None);
    Ok(())
}
