//! Tasks that are asked for: one, all, or one to be called off.

use std::sync::Arc;
use std::time::Duration;

use chio_core::crypto::PublicKey;
use chio_core::receipt::SealedReceipt;
use chio_cross_protocol::{
    DiscoveryProtocol, Enduring, Presented, TaskError, TaskRefused, TaskState, TaskView,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::about::About;
use crate::account::Account;
use crate::book::Entry;
use crate::caller::A2aCaller;
use crate::convert::ending;
use crate::error::{Fault, Kind};
use crate::guests::Guest;
use crate::message::{Message, Part};
use crate::record::{State, TaskRecord};
use crate::send::{of_task, place};
use crate::service::Shared;

/// How long a call may take to end that was called off.
const CALLED_OFF: Duration = Duration::from_secs(30);

fn owner_of<'a>(guest: &'a Guest, id: &str) -> Result<&'a PublicKey, Fault> {
    guest.owner().ok_or_else(|| Fault::no_task(id))
}

/// A task of this caller: of this process, or as the store has it.
pub(crate) enum Known {
    /// Only this process has it.
    Here(Entry),
    /// The store has it, and these are its messages.
    Stored(Box<TaskView>, Vec<Message>),
}

/// Finds a task of this caller. Nothing is run.
pub(crate) async fn find(shared: &Shared, guest: &Guest, id: &str) -> Result<Known, Fault> {
    let owner = owner_of(guest, id)?;
    let now = shared.orchestrator.now();
    let entry = shared.book.find(id, owner, now);
    if let Some(entry) = entry.as_ref().filter(|entry| !entry.durable) {
        return Ok(Known::Here(entry.clone()));
    }
    let view = shared.deferred.look(id, owner).await;
    let view = view.map_err(|error| of_task(shared, id, &error))?;
    let view = with_context(view, entry.as_ref());
    let history = entry.map(|entry| entry.record.history.clone()).unwrap_or_default();
    if !view.state.is_over() {
        return Ok(Known::Stored(Box::new(view), history));
    }
    let record = of_view(view.clone(), history.clone());
    if record.state != State::InputRequired {
        return Ok(Known::Stored(Box::new(view), history));
    }
    // For the store it is over. Whoever goes on with it takes it out of there.
    Ok(Known::Here(at_rest(shared, owner.clone(), Arc::new(record), true)))
}

/// A page for a task that nobody works on.
fn at_rest(shared: &Shared, owner: PublicKey, record: Arc<TaskRecord>, durable: bool) -> Entry {
    let ended = CancellationToken::new();
    ended.cancel();
    let cancellation = shared.closing.child_token();
    Entry { owner, record, durable, cancellation, ended }
}

/// A task as it is. One that waits is run first.
pub(crate) async fn get(
    shared: &Arc<Shared>,
    guest: &Guest,
    id: &str,
    mut about: About,
) -> Result<Arc<TaskRecord>, Fault> {
    let (view, history) = match find(shared, guest, id).await? {
        Known::Here(entry) => return Ok(entry.record),
        Known::Stored(view, history) => (*view, history),
    };
    if view.state != TaskState::Waiting {
        return Ok(Arc::new(of_view(view, history)));
    }
    let proof = about.proof.take();
    resolve(shared, guest, (view, history), Presented { dpop_proof: proof, approval: None }).await
}

/// Runs a task that waits. It goes on when its client leaves.
async fn resolve(
    shared: &Arc<Shared>,
    guest: &Guest,
    (view, history): (TaskView, Vec<Message>),
    presented: Presented,
) -> Result<Arc<TaskRecord>, Fault> {
    let id = view.id.clone();
    let owner = owner_of(guest, &id)?.clone();
    let place = place(shared, &owner)?;
    let (cancellation, ended) = (shared.closing.child_token(), CancellationToken::new());
    let before = of_view(view, history.clone());
    let entry = Entry {
        owner: owner.clone(),
        record: Arc::new(before),
        durable: true,
        cancellation: cancellation.clone(),
        ended: ended.clone(),
    };
    // Without a page in the book it runs all the same, but cannot be called off.
    let _ = shared.book.insert(entry, None, shared.orchestrator.now());
    let caller = Arc::new(A2aCaller::new(guest.peer.session.clone(), cancellation, place));
    let runner = Arc::clone(shared);
    let work = Enduring::new(async move {
        // Whatever happens in here, nobody waits for it in vain.
        let _ended = ended.drop_guard();
        let view = runner.deferred.result(&id, &owner, presented, caller).await;
        let view = view.map_err(|error| of_task(&runner, &id, &error))?;
        Ok(Arc::new(of_view(view, history)))
    });
    work.await.unwrap_or_else(|_| Err(Fault::unreleased()))
}

/// Calls a task off. `again` tells whether one may be that was called off before.
pub(crate) async fn cancel(
    shared: &Shared,
    guest: &Guest,
    id: &str,
    again: bool,
) -> Result<Arc<TaskRecord>, Fault> {
    let (mut view, history) = match find(shared, guest, id).await? {
        Known::Here(entry) => return cancel_here(shared, &entry, again).await,
        Known::Stored(view, history) => (*view, history),
    };
    let is_over = view.state.is_over() && !(again && view.state == TaskState::Cancelled);
    if is_over {
        return Err(not_cancelable());
    }
    let owner = owner_of(guest, id)?;
    let context = view.context.take();
    let mut called_off = match shared.deferred.cancel(id, owner).await {
        Ok(view) => view,
        Err(TaskError::Refused(TaskRefused::Running)) => {
            let running = shared.book.find(id, owner, shared.orchestrator.now());
            wait_for(running.as_ref()).await;
            let view = shared.deferred.look(id, owner).await;
            view.map_err(|error| of_task(shared, id, &error))?
        }
        Err(TaskError::Refused(TaskRefused::Over(_))) => return Err(not_cancelable()),
        Err(error) => return Err(of_task(shared, id, &error)),
    };
    if called_off.state != TaskState::Cancelled {
        return Err(not_cancelable());
    }
    // What was kept went with the task.
    called_off.context = called_off.context.or(context);
    let record = Arc::new(of_view(called_off, history));
    // The page in the book, if there is one, keeps what the store has forgotten.
    shared.book.update(Arc::clone(&record));
    Ok(record)
}

/// Calls off what this process runs, and waits until that has ended.
async fn wait_for(entry: Option<&Entry>) {
    let Some(entry) = entry else { return };
    entry.cancellation.cancel();
    let _ = tokio::time::timeout(CALLED_OFF, entry.ended.cancelled()).await;
}

fn not_cancelable() -> Fault {
    Fault::new(Kind::TaskNotCancelable, "the task cannot be called off any more")
}

/// Calls off a task that only this process knows.
async fn cancel_here(
    shared: &Shared,
    entry: &Entry,
    again: bool,
) -> Result<Arc<TaskRecord>, Fault> {
    match entry.record.state {
        State::Working => {
            wait_for(Some(entry)).await;
            let now = shared.orchestrator.now();
            let after = shared.book.find(&entry.record.id, &entry.owner, now);
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
                shared.book.update(Arc::clone(&record));
                return Ok(record);
            }
            let taken = shared.deferred.forget(&record.id, &entry.owner).await;
            if !taken.map_err(|error| of_task(shared, &record.id, &error))? {
                return Err(not_cancelable());
            }
            shared.book.forget(&record.id);
            let page = at_rest(shared, entry.owner.clone(), Arc::clone(&record), false);
            let _ = shared.book.insert(page, None, record.updated_at);
            Ok(record)
        }
        State::Canceled if again => Ok(Arc::clone(&entry.record)),
        _ => Err(not_cancelable()),
    }
}

/// The tasks of a caller: those of this process, and those that the store has.
pub(crate) async fn list(shared: &Shared, guest: &Guest) -> Result<Vec<Arc<TaskRecord>>, Fault> {
    let Some(owner) = guest.owner() else { return Ok(Vec::new()) };
    let mut known = shared.book.of(owner, shared.orchestrator.now());
    let most = shared.options.limits.tasks_per_owner;
    let views = shared.deferred.list(owner, DiscoveryProtocol::A2a, most).await;
    let views = views.map_err(|error| of_task(shared, "", &error))?;
    let mut records: Vec<Arc<TaskRecord>> = Vec::with_capacity(views.len());
    for view in views {
        let entry = known.iter().find(|entry| entry.record.id == view.id);
        if entry.is_some_and(|entry| !entry.durable) {
            continue;
        }
        let history = entry.map(|entry| entry.record.history.clone()).unwrap_or_default();
        records.push(Arc::new(of_view(with_context(view, entry), history)));
    }
    known.retain(|entry| !entry.durable);
    records.extend(known.into_iter().map(|entry| entry.record));
    Ok(records)
}

/// A task of the store, with what it has forgotten and its page in the book knows.
fn with_context(mut view: TaskView, entry: Option<&Entry>) -> TaskView {
    let Some(record) = entry.map(|entry| &entry.record) else { return view };
    let of_page = || json!({"contextId": record.context_id, "skillId": record.skill});
    view.context.get_or_insert_with(of_page);
    view
}

/// When a receipt was signed.
fn signed_at(receipt: &SealedReceipt) -> Option<u64> {
    let receipt: Value = serde_json::from_slice(&receipt.bytes).ok()?;
    receipt.get("timestamp")?.as_u64()
}

/// A task of the store, as every dialect encodes it.
fn of_view(view: TaskView, history: Vec<Message>) -> TaskRecord {
    let named = |name: &str| {
        let value = view.context.as_ref().and_then(|context| context.get(name));
        value.and_then(Value::as_str).map(str::to_owned)
    };
    let mut record = TaskRecord {
        context_id: named("contextId"),
        skill: named("skillId").unwrap_or_default(),
        id: view.id,
        state: State::Working,
        output: Vec::new(),
        words: Vec::new(),
        history,
        account: Account::pending(),
        replies: false,
        updated_at: view.receipt.as_ref().and_then(signed_at).unwrap_or(view.created_at),
    };
    match (view.state, view.result, view.receipt) {
        (TaskState::Waiting | TaskState::Running, ..) => {}
        (_, Some(result), Some(receipt)) => {
            let ending = ending(&result.outcome, &result.chunks);
            (record.state, record.output, record.words) =
                (ending.state, ending.output, ending.words);
            record.account = Account::of(&result.outcome, receipt);
        }
        (TaskState::Cancelled, ..) => {
            record.state = State::Canceled;
            record.words = vec![Part::text("called off by the caller")];
            record.account = Account::called_off();
        }
        (_, _, receipt) => {
            record.state = State::Failed;
            record.words = vec![Part::text("the kernel stopped while the task ran")];
            record.account = Account::broken_off(receipt);
        }
    }
    record
}
