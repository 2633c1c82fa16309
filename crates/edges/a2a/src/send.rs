//! Messages to skills: each is one call, and goes through the orchestrator.

use std::sync::Arc;

use chio_cross_protocol::{
    CapabilityBridge, DetachOnDrop, Evaluation, MessageQuery, OrchestratedRequest, TaskError,
    TaskNames, TaskRefused,
};
use chio_edge::call_metadata::CallMetadata;
use chio_net::memory::HeldMemory;
use serde_json::Value;

use crate::bridge::A2aBridge;
use crate::call::{Prepared, prepare, remembered, resolve};
use crate::call_report::CallReport;
use crate::caller::A2aCaller;
use crate::contexts::{check_references, claimed, foreign_context};
use crate::convert::task_outcome;
use crate::error::{Fault, Kind};
use crate::message::SendRequest;
use crate::principals::AdmittedPrincipal;
use crate::record::{State, TaskRecord};
use crate::running::{Brings, HEAD_START, acquire, entry, run, start};
use crate::sent::{Arrives, OnItsWay};
use crate::service::EdgeState;
use crate::tasks::{fault_of, look, settled};

/// A message to a skill, on its way.
pub(crate) struct Sending {
    pub(crate) request: SendRequest,
    pub(crate) metadata: CallMetadata,
    /// The skill whose own address was used.
    pub(crate) mounted: Option<String>,
    pub(crate) wanted: Wanted,
    /// The memory that the message takes.
    pub(crate) held: HeldMemory,
}

/// When a message is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// When its call has ended.
    Result,
    /// At once, with a task that runs when it is asked for.
    Task,
    /// At once, with a task that begins now.
    Begun,
}

/// Sends a message to a skill. Gives the task that it came to.
pub(crate) async fn send_message(
    shared: &Arc<EdgeState>,
    principal: &Arc<AdmittedPrincipal>,
    sending: Sending,
) -> Result<Arc<TaskRecord>, Fault> {
    check_references(shared, principal, &sending.request.message).await?;
    match sending.request.message.task_id.clone() {
        Some(id) => continue_task(shared, principal, sending, &id).await,
        None => begin_task(shared, principal, sending).await,
    }
}

/// Sends a message that begins a task, unless it has begun one already.
async fn begin_task(
    shared: &Arc<EdgeState>,
    principal: &Arc<AdmittedPrincipal>,
    mut sending: Sending,
) -> Result<Arc<TaskRecord>, Fault> {
    let skill = resolve(shared, &sending, None).await?;
    let no_owner = || Fault::new(Kind::Request, "there is no capability for this caller");
    let owner = principal.owner().ok_or_else(no_owner)?;
    let id = shared.task_ids.next(&shared.orchestrator).await;
    let id = id.map_err(|error| fault_of("a task's number", &error))?;
    let message = &sending.request.message;
    let arrives = match shared.sent.begin(owner, message.id.as_deref(), &id) {
        Ok(arrives) => arrives,
        Err(known) => {
            return on_its_way(shared, principal, &sending, (known, Some(&skill.id))).await;
        }
    };
    let query = MessageQuery {
        owner,
        account: &principal.account,
        message: message.id.as_deref(),
        context: message.context_id.as_deref(),
        now: shared.orchestrator.now(),
    };
    let standing = shared.deferred.standing_of(query).await;
    let standing = standing.map_err(|error| fault_of("a message", &error))?;
    if let Some(known) = standing.known {
        return sent_before(shared, principal, &sending, (&known, Some(&skill.id))).await;
    }
    if standing.foreign_context {
        return Err(foreign_context());
    }
    if standing.open >= shared.options.limits.open_tasks {
        return Err(too_many());
    }
    let context_id = claimed(shared, principal, message.context_id.clone())?;
    let message_id = message.id.clone();
    let prepared = prepare(shared, principal, &mut sending, &skill, (id, context_id), None)?;
    let begun = Begun { message_id, wanted: sending.wanted, held: sending.held, arrives };
    let (shared, principal) = (Arc::clone(shared), Arc::clone(principal));
    if begun.wanted == Wanted::Result {
        return call_tool(&shared, &principal, prepared, begun).await;
    }
    // It is stored also when the client disconnects.
    let work = async move { defer(&shared, &principal, prepared, begun).await };
    DetachOnDrop::new(work).await.unwrap_or_else(|_| Err(Fault::unreleased()))
}

/// What a message that begins a task brings along.
struct Begun {
    message_id: Option<String>,
    wanted: Wanted,
    held: HeldMemory,
    arrives: Arrives,
}

/// The task of a message that is on its way already.
async fn on_its_way(
    shared: &EdgeState,
    principal: &AdmittedPrincipal,
    sending: &Sending,
    (known, skill): (OnItsWay, Option<&str>),
) -> Result<Arc<TaskRecord>, Fault> {
    if sending.wanted != Wanted::Result
        && let Ok(record) = look(shared, principal, &known.task_id).await
        && is_said_in(shared, sending, skill, &record)
    {
        return Ok(record);
    }
    known.arrived.cancelled().await;
    sent_before(shared, principal, sending, (&known.task_id, skill)).await
}

/// Whether a message is a part of a task: it says the same, and to the same skill where it begins one.
fn is_said_in(
    shared: &EdgeState,
    sending: &Sending,
    skill: Option<&str>,
    record: &TaskRecord,
) -> bool {
    let SendRequest { message, accepted, .. } = &sending.request;
    skill.is_none_or(|skill| record.is_for(skill, *accepted))
        && record.has_said(&remembered(shared, message.clone()))
}

/// The task that the same message has begun. A message is the same only if it says the same.
async fn sent_before(
    shared: &EdgeState,
    principal: &AdmittedPrincipal,
    sending: &Sending,
    (id, skill): (&str, Option<&str>),
) -> Result<Arc<TaskRecord>, Fault> {
    let record = match sending.wanted {
        Wanted::Result => settled(shared, principal, id).await?,
        Wanted::Task | Wanted::Begun => look(shared, principal, id).await?,
    };
    if record.history.is_empty() || is_said_in(shared, sending, skill, &record) {
        return Ok(record);
    }
    let message = "expected a `messageId` that names no other message of this caller";
    Err(Fault::params(message))
}

/// Sends a message that answers what a task asks, unless it has been given already.
async fn continue_task(
    shared: &Arc<EdgeState>,
    principal: &Arc<AdmittedPrincipal>,
    mut sending: Sending,
    id: &str,
) -> Result<Arc<TaskRecord>, Fault> {
    let message = &sending.request.message;
    let owner = principal.owner().ok_or_else(|| Fault::no_task(id))?;
    let arrives = match shared.sent.begin(owner, message.id.as_deref(), id) {
        Ok(arrives) => arrives,
        Err(known) => return on_its_way(shared, principal, &sending, (known, None)).await,
    };
    let asking = look(shared, principal, id).await?;
    if message.context_id.is_some() && message.context_id != asking.context_id {
        return Err(Fault::params("expected the `contextId` of the task, found another"));
    }
    if message.id.is_some() && is_said_in(shared, &sending, None, &asking) {
        return sent_before(shared, principal, &sending, (id, None)).await;
    }
    match asking.state {
        State::InputRequired => {}
        State::Working => return Err(takes_none("not asking for anything")),
        _ => return Err(takes_none("over")),
    }
    let skill = resolve(shared, &sending, Some(&asking)).await?;
    let context_id = asking.context_id.clone().unwrap_or_default();
    let names = (id.to_owned(), context_id);
    let prepared = prepare(shared, principal, &mut sending, &skill, names, Some(&asking))?;
    let (shared, principal) = (Arc::clone(shared), Arc::clone(principal));
    // The answer is stored also when the client disconnects.
    let work = async move {
        let _arrives = arrives;
        answer(&shared, &principal, prepared, sending.wanted).await
    };
    DetachOnDrop::new(work).await.unwrap_or_else(|_| Err(Fault::unreleased()))
}

/// Stores an answer, which runs now or when the task is asked for.
async fn answer(
    shared: &Arc<EdgeState>,
    principal: &AdmittedPrincipal,
    prepared: Prepared,
    wanted: Wanted,
) -> Result<Arc<TaskRecord>, Fault> {
    let Prepared { mut request, record, expires_at } = prepared;
    let (record, owner) = (Arc::new(record), request.agent.clone());
    // An answer that is refused is refused now.
    let refused = shared.orchestrator.check_token(&request.token).await.err();
    let entry = entry(shared, &owner, &record);
    let waits = wanted == Wanted::Result || refused.is_some();
    // Without room, the question stands.
    let permit = if waits { Some(acquire(shared, &entry)?) } else { None };
    let proof = request.dpop_proof.take();
    let due_at = match wanted {
        Wanted::Task if refused.is_none() => expires_at,
        _ => shared.orchestrator.now().saturating_add(HEAD_START),
    };
    let names = names_of(principal, &record, None, Some(due_at));
    let answered = shared.deferred.answer(names, request, A2aBridge.protocol()).await;
    answered.map_err(|error| not_stored(&error))?;
    let session = principal.session.clone();
    if let Some(permit) = permit {
        let brings = refused.map_or(Brings::Proof(proof), Brings::Refusal);
        return run(shared, entry, permit, session, brings).await;
    }
    if wanted == Wanted::Begun {
        // Where there is no room, it begins when there is.
        let _ = start(shared, &owner, &record, session, proof);
    }
    Ok(record)
}

fn takes_none(what: &str) -> Fault {
    Fault::new(Kind::Unsupported, format!("the task takes no message: it is {what}"))
}

fn too_many() -> Fault {
    let message = "expected fewer tasks of one caller that are not over: answer or cancel some";
    Fault::new(Kind::Busy, message)
}

/// What the store is to call a task.
fn names_of(
    principal: &AdmittedPrincipal,
    record: &TaskRecord,
    message: Option<String>,
    due_at: Option<u64>,
) -> TaskNames {
    TaskNames {
        id: record.id.clone(),
        account: principal.account.clone(),
        context: record.context_id.clone(),
        message,
        record: record.kept(),
        due: due_at.map(|due_at| (due_at, Arc::clone(&principal.session.principal))),
    }
}

/// Runs a call to its end. It continues when its client disconnects.
async fn call_tool(
    shared: &Arc<EdgeState>,
    principal: &AdmittedPrincipal,
    prepared: Prepared,
    begun: Begun,
) -> Result<Arc<TaskRecord>, Fault> {
    let Prepared { request, record, .. } = prepared;
    let record = Arc::new(record);
    let entry = entry(shared, &request.agent, &record);
    let (permit, _waits) = acquire(shared, &entry)?;
    let inserted = shared.tasks.insert(entry.clone(), shared.orchestrator.now());
    inserted.map_err(|_| Fault::unreleased())?;
    let Begun { message_id, held, arrives, .. } = begun;
    let names = names_of(principal, &record, message_id, None);
    let session = principal.session.clone();
    let caller = Arc::new(A2aCaller::new(session, entry.cancellation, (Some(permit), held)));
    let runner = Arc::clone(shared);
    let work = DetachOnDrop::new(async move {
        // Also when the call panics, requests that wait for its end continue.
        let _ended = (arrives, entry.ended.drop_guard());
        let ran = runner.deferred.run(names, request, caller).await;
        runner.tasks.remove(&record.id);
        match ran {
            Ok(ran) => Ok(finished(&runner, &record, ran.call.evaluation, &ran.chunks)),
            Err(_) => Err(Fault::unreleased()),
        }
    });
    work.await.unwrap_or_else(|_| Err(Fault::unreleased()))
}

/// The task after its call.
fn finished(
    shared: &EdgeState,
    before: &TaskRecord,
    evaluation: Evaluation,
    chunks: &[Value],
) -> Arc<TaskRecord> {
    let ending = task_outcome(&evaluation.outcome, chunks);
    Arc::new(TaskRecord {
        state: ending.state,
        output: before.accepted.tailored(ending.output),
        words: ending.words,
        replies: ending.replies,
        report: CallReport::new(&evaluation.outcome, evaluation.receipt),
        updated_at: shared.orchestrator.now(),
        ..before.clone()
    })
}

/// Stores a call, which begins now or when it is asked for.
async fn defer(
    shared: &Arc<EdgeState>,
    principal: &AdmittedPrincipal,
    prepared: Prepared,
    begun: Begun,
) -> Result<Arc<TaskRecord>, Fault> {
    let Prepared { mut request, record, expires_at } = prepared;
    let proof = request.dpop_proof.take();
    let due_at = match begun.wanted {
        // What nobody has asked for while its capability held ends with that.
        Wanted::Task => expires_at,
        Wanted::Begun | Wanted::Result => shared.orchestrator.now().saturating_add(HEAD_START),
    };
    let owner = request.agent.clone();
    let retained = request.clone();
    let names = names_of(principal, &record, begun.message_id.clone(), Some(due_at));
    match shared.deferred.defer_as(names, request, A2aBridge.protocol()).await {
        Ok(_) => {}
        Err(TaskError::Denied(denial)) => {
            // Nothing runs, and the refusal leaves a receipt.
            let request =
                OrchestratedRequest { refusal: Some(denial), dpop_proof: proof, ..retained };
            let prepared = Prepared { request, record, expires_at };
            return call_tool(shared, principal, prepared, begun).await;
        }
        Err(error) => return Err(not_stored(&error)),
    }
    let record = Arc::new(record);
    if begun.wanted == Wanted::Begun {
        // Where there is no room, it begins when there is.
        let _ = start(shared, &owner, &record, principal.session.clone(), proof);
    }
    Ok(record)
}

fn not_stored(error: &TaskError) -> Fault {
    match error {
        // Another message was faster.
        TaskError::Refused(TaskRefused::Unknown | TaskRefused::NotOwner) => takes_none("gone"),
        TaskError::Refused(TaskRefused::TooMany) => too_many(),
        TaskError::Refused(_) => takes_none("not asking for anything"),
        TaskError::TooLarge(_) => Fault::params("the message is too large to be kept for later"),
        error => fault_of("a task", error),
    }
}
