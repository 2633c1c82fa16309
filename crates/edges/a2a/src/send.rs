//! Messages to skills: each is one call, and goes through the orchestrator.

use std::sync::Arc;

use chio_core::crypto::PublicKey;
use chio_cross_protocol::{
    CapabilityBridge, DetachOnDrop, Evaluation, KernelError, OrchestratedRequest, TaskError,
    TaskRefused,
};
use chio_edge::call_metadata::CallMetadata;
use chio_edge::limits::{CallerWaits, ConcurrencyPermit};
use chio_edge::tasks::InsertError;
use chio_edge::tokens::token_for;
use chio_net::memory::HeldMemory;
use serde_json::Value;

use crate::arguments::Names;
use crate::bridge::{A2aBridge, A2aEnvelope};
use crate::call_report::CallReport;
use crate::caller::A2aCaller;
use crate::catalog::Skill;
use crate::contexts::{check_references, claimed};
use crate::convert::task_outcome;
use crate::error::{Fault, Kind};
use crate::message::{Message, Role, SendRequest};
use crate::principals::AdmittedPrincipal;
use crate::record::{State, TaskEntry, TaskRecord};
use crate::service::EdgeState;
use crate::tasks::{OwnedTask, find, get};

/// The largest message that is remembered in a history, in bytes.
const MAX_REMEMBERED: usize = 256 << 10;

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
    mut sending: Sending,
) -> Result<Arc<TaskRecord>, Fault> {
    let continued = continued(shared, principal, &sending.request.message).await?;
    check_references(shared, principal, &sending.request.message).await?;
    let skill = resolve(shared, &sending, continued.as_ref()).await?;
    let without_token = || Fault::new(Kind::Request, "there is no capability for this caller");
    let token = token_for(&principal.tokens, &skill.server, &skill.tool);
    let token = token.cloned().ok_or_else(without_token)?;
    let agent =
        principal.session.principal.subject.clone().unwrap_or_else(|| token.subject.clone());
    let message = &sending.request.message;
    let context_id = match &continued {
        Some(entry) => entry.record.context_id.clone().unwrap_or_default(),
        None => claimed(shared, principal, message.context_id.clone())?,
    };
    let id = match &continued {
        Some(entry) => entry.record.id.clone(),
        None => {
            let next = shared.task_ids.next(&shared.orchestrator).await;
            next.map_err(|error| fault_of("a task's number", &error))?
        }
    };
    let names = Names { message_id: message.id.as_deref(), context_id: &context_id, task_id: &id };
    let check_modes = shared.options.check_input_modes;
    let arguments = skill.argument_reader.read(message, &names, check_modes)?;
    let metadata = &mut sending.metadata;
    let reference = metadata.capability_ref.take();
    // A caller whose capability was issued here may refer to one of its own organisation.
    let is_foreign = principal.presented.is_none()
        && reference.as_ref().is_some_and(|it| it.chio_capability_id != token.id);
    let envelope = A2aEnvelope { skill_id: &skill.id, names: &names, reference, is_foreign };
    let last = token.delegation_chain.last().map(|link| link.delegator.clone());
    let is_trusted = |signer: &PublicKey| {
        last.as_ref() == Some(signer) || shared.orchestrator.trusts_kernel(signer)
    };
    let purpose = format!("A2A message to `{}`", skill.tool);
    let intent_id = format!("a2a-{id}");
    let intent = metadata.take_intent(intent_id, &skill.server, &skill.tool, purpose, is_trusted);
    let (server, tool) = (skill.server.clone(), skill.tool.clone());
    let mut request = OrchestratedRequest::new(id.clone(), token, server, tool, arguments);
    let reference = A2aBridge.extract(&envelope);
    request.capability_ref = reference.map_err(|error| Fault::params(error.to_string()))?;
    request.protocol_context = A2aBridge.protocol_context(&envelope);
    request.agent = agent.clone();
    request.governed_intent = intent;
    request.model = metadata.model.take();
    request.dpop_proof = metadata.proof.take();
    let before = continued.as_ref().map(|entry| Arc::clone(&entry.record));
    let stored = continued.clone().filter(|entry| entry.durable);
    let record = begun(shared, &skill, id, context_id, continued, sending.request.message);
    if let Some(asking) = stored {
        take_question(shared, asking, &request.agent).await?;
    }
    let (records, held) = ((record, before), sending.held);
    if sending.wanted == Wanted::Result {
        return call_tool(shared, principal, request, records, held).await;
    }
    let begins = sending.wanted == Wanted::Begun;
    let (shared, principal) = (Arc::clone(shared), Arc::clone(principal));
    // It is stored also when the client disconnects.
    let work = async move { task(&shared, &principal, request, records, (begins, held)).await };
    DetachOnDrop::new(work).await.unwrap_or_else(|_| Err(Fault::unreleased()))
}

/// Stores a call as a task, which begins now or when it is asked for.
async fn task(
    shared: &Arc<EdgeState>,
    principal: &Arc<AdmittedPrincipal>,
    request: OrchestratedRequest,
    records: (TaskRecord, Option<Arc<TaskRecord>>),
    (begins, held): (bool, HeldMemory),
) -> Result<Arc<TaskRecord>, Fault> {
    let proof = request.dpop_proof.clone().filter(|_| begins);
    let task = defer(shared, principal, request, records, held).await?;
    if begins {
        let (shared, principal) = (Arc::clone(shared), Arc::clone(principal));
        let id = task.id.clone();
        tokio::spawn(async move { get(&shared, &principal, &id, proof).await.map(drop) });
    }
    Ok(task)
}

/// Takes a question that the store has, for the message that answers it.
async fn take_question(
    shared: &EdgeState,
    asking: TaskEntry,
    owner: &PublicKey,
) -> Result<(), Fault> {
    let id = &asking.record.id;
    // Of several messages, the one that removes it from the store continues it.
    let removed = shared.deferred.forget(id, owner).await;
    if !removed.map_err(|error| task_fault(id, &error))? {
        return Err(takes_none("not asking for anything"));
    }
    // Until the answer is accepted, the question stands: another one may have to be given.
    let asking = TaskEntry { durable: false, ..asking };
    let _ = shared.tasks.insert(asking, None, shared.orchestrator.now());
    Ok(())
}

/// The task that a message continues.
async fn continued(
    shared: &EdgeState,
    principal: &AdmittedPrincipal,
    message: &Message,
) -> Result<Option<TaskEntry>, Fault> {
    let Some(id) = &message.task_id else { return Ok(None) };
    let entry = match find(shared, principal, id).await? {
        OwnedTask::Here(entry) => entry,
        OwnedTask::Stored(view, _) => {
            let what = if view.state.is_over() { "over" } else { "not asking for anything" };
            return Err(takes_none(what));
        }
    };
    let context_id = &entry.record.context_id;
    if message.context_id.is_some() && message.context_id != *context_id {
        return Err(Fault::params("expected the `contextId` of the task, found another"));
    }
    match entry.record.state {
        State::InputRequired => Ok(Some(entry)),
        state if state.is_over() => Err(takes_none("over")),
        _ => Err(takes_none("not asking for anything")),
    }
}

fn takes_none(what: &str) -> Fault {
    Fault::new(Kind::Unsupported, format!("the task takes no message: it is {what}"))
}

/// The skill that is meant.
async fn resolve(
    shared: &EdgeState,
    sending: &Sending,
    continued: Option<&TaskEntry>,
) -> Result<Arc<Skill>, Fault> {
    let mut named: Option<&str> = None;
    let skill_name = continued.map(|entry| entry.record.skill.as_str());
    for name in [sending.mounted.as_deref(), skill_name, sending.metadata.target.as_deref()] {
        match (named, name) {
            (Some(one), Some(other)) if one != other => {
                return Err(Fault::params("expected one skill, found two that differ"));
            }
            (None, Some(_)) => named = name,
            _ => {}
        }
    }
    shared.catalogs.find(named, &shared.orchestrator, &shared.options).await
}

/// The task before anything is decided.
fn begun(
    shared: &EdgeState,
    skill: &Skill,
    id: String,
    context_id: String,
    continued: Option<TaskEntry>,
    message: Message,
) -> TaskRecord {
    let mut history = Vec::new();
    if let Some(entry) = continued {
        history.clone_from(&entry.record.history);
        // The question has become part of the conversation.
        let asked = Message::new(Role::Agent, entry.record.words.clone());
        let named = format!("{id}-question-{}", history.len());
        history.push(Message { id: Some(named), ..asked });
    }
    // SECURITY: metadata may hold a capability, which must not be readable in a history.
    let message = Message { metadata: None, ..message };
    if message.size() <= MAX_REMEMBERED {
        history.push(message);
    }
    let now = shared.orchestrator.now();
    TaskRecord::working(id, Some(context_id), skill.id.clone(), history, now)
}

/// A permit to run the call of a task, and what is dropped when the caller leaves.
pub(crate) fn acquire(
    shared: &EdgeState,
    entry: &TaskEntry,
) -> Result<(ConcurrencyPermit, CallerWaits), Fault> {
    let busy = || Fault::new(Kind::Busy, "expected fewer calls at once");
    shared.running.try_acquire(&entry.owner, &entry.cancellation).ok_or_else(busy)
}

/// Runs a call to its end. It continues when its client disconnects.
async fn call_tool(
    shared: &Arc<EdgeState>,
    principal: &AdmittedPrincipal,
    request: OrchestratedRequest,
    (record, before): (TaskRecord, Option<Arc<TaskRecord>>),
    held: HeldMemory,
) -> Result<Arc<TaskRecord>, Fault> {
    let record = Arc::new(record);
    let owner = request.agent.clone();
    let entry = TaskEntry::running(owner, Arc::clone(&record), false, &shared.closing);
    let (permit, _waits) = acquire(shared, &entry)?;
    let inserted = shared.tasks.insert(entry.clone(), before.as_ref(), shared.orchestrator.now());
    inserted.map_err(not_inserted)?;
    let session = principal.session.clone();
    let caller = Arc::new(A2aCaller::new(session, entry.cancellation, (permit, held)));
    let runner = Arc::clone(shared);
    let work = DetachOnDrop::new(async move {
        // Also when the call panics, tasks that wait for its end continue.
        let _ended = entry.ended.drop_guard();
        match runner.orchestrator.run(request, Arc::clone(&caller) as _).await {
            Ok(ran) => Ok(finish(&runner, &record, ran.evaluation, &caller.take_chunks())),
            Err(_) => {
                runner.tasks.remove(&record.id);
                Err(Fault::unreleased())
            }
        }
    });
    work.await.unwrap_or_else(|_| Err(Fault::unreleased()))
}

fn not_inserted(error: InsertError) -> Fault {
    match error {
        InsertError::Full => Fault::new(Kind::Busy, "expected fewer tasks of one caller at once"),
        // Another message was faster.
        InsertError::Taken => takes_none("not asking for anything"),
    }
}

/// Records the outcome of a call.
fn finish(
    shared: &EdgeState,
    before: &TaskRecord,
    evaluation: Evaluation,
    chunks: &[Value],
) -> Arc<TaskRecord> {
    let ending = task_outcome(&evaluation.outcome, chunks);
    let record = Arc::new(TaskRecord {
        state: ending.state,
        output: ending.output,
        words: ending.words,
        replies: ending.replies,
        report: CallReport::new(&evaluation.outcome, evaluation.receipt),
        updated_at: shared.orchestrator.now(),
        ..before.clone()
    });
    if record.replies && before.history.len() < 2 {
        // There is no task to return to; one that was continued is known to its client.
        shared.tasks.remove(&record.id);
    } else {
        shared.tasks.update(Arc::clone(&record), record.updated_at);
    }
    record
}

/// Stores a call until it is asked for.
async fn defer(
    shared: &Arc<EdgeState>,
    principal: &AdmittedPrincipal,
    mut request: OrchestratedRequest,
    (record, before): (TaskRecord, Option<Arc<TaskRecord>>),
    held: HeldMemory,
) -> Result<Arc<TaskRecord>, Fault> {
    let owner = request.agent.clone();
    let proof = request.dpop_proof.take();
    let record = Arc::new(record);
    let now = shared.orchestrator.now();
    if before.is_some() {
        // Of several answers to one question, the first has it while it is being stored.
        let entry = TaskEntry::running(owner.clone(), Arc::clone(&record), false, &shared.closing);
        shared.tasks.insert(entry, before.as_ref(), now).map_err(not_inserted)?;
    }
    let retained = request.clone();
    let stored = shared.deferred.defer_as(record.id.clone(), request, A2aBridge.protocol()).await;
    // The store has it, and the table only its messages; or the question stands as before.
    shared.tasks.remove(&record.id);
    let after = if stored.is_ok() { Some(&record) } else { before.as_ref() };
    if let Some(after) = after {
        let entry = TaskEntry::idle(owner, Arc::clone(after), stored.is_ok(), &shared.closing);
        let _ = shared.tasks.insert(entry, None, now);
    }
    match stored {
        Ok(_) => Ok(record),
        Err(TaskError::Denied(denial)) => {
            // Nothing runs, and the refusal leaves a receipt.
            let refused =
                OrchestratedRequest { refusal: Some(denial), dpop_proof: proof, ..retained };
            call_tool(shared, principal, refused, ((*record).clone(), before), held).await
        }
        // Another message was faster.
        Err(TaskError::Refused(TaskRefused::NameTaken)) => {
            Err(takes_none("not asking for anything"))
        }
        Err(TaskError::Refused(TaskRefused::TooMany)) => {
            Err(Fault::new(Kind::Busy, "expected fewer tasks of one caller at once"))
        }
        Err(TaskError::TooLarge(_)) => {
            Err(Fault::params("the message is too large to be kept for later"))
        }
        Err(error) => Err(fault_of("a deferred task", &error)),
    }
}

/// The fault that answers for an error of the task table.
pub(crate) fn task_fault(id: &str, error: &TaskError) -> Fault {
    match error {
        TaskError::Refused(_) | TaskError::Kernel(KernelError::NotClaimed(_)) => Fault::no_task(id),
        TaskError::Elsewhere => {
            Fault::new(Kind::Unsupported, "no tool server of this process can run the task")
        }
        error => fault_of("a deferred task", error),
    }
}

/// What is answered when something did not work that is for the operator to know.
pub(crate) fn fault_of(what: &str, error: &dyn std::fmt::Display) -> Fault {
    tracing::error!("{what}: {error}");
    Fault::unreleased()
}
