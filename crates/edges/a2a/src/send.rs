//! Messages to skills: each is one call, and goes through the orchestrator.

use std::sync::Arc;

use chio_core::crypto::PublicKey;
use chio_cross_protocol::{
    CrossProtocolCapabilityRef, DiscoveryProtocol, Enduring, Evaluation, KernelError,
    OrchestratedRequest, TaskError, TaskRefused,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::about::About;
use crate::account::Account;
use crate::arguments::Names;
use crate::book::{Entry, NotTaken};
use crate::caller::A2aCaller;
use crate::catalog::Skill;
use crate::convert::ending;
use crate::error::{Fault, Kind};
use crate::guests::Guest;
use crate::message::{Message, Role, Send};
use crate::places::Place;
use crate::record::{State, TaskRecord};
use crate::service::Shared;
use crate::tasks::{Known, find};

/// The largest message that is remembered in a history, in bytes.
const MAX_REMEMBERED: usize = 256 << 10;

/// A message to a skill, on its way.
pub(crate) struct Sending {
    pub(crate) send: Send,
    pub(crate) about: About,
    /// The skill whose own address was used.
    pub(crate) mounted: Option<String>,
    /// Whether a task is wanted that runs when it is asked for.
    pub(crate) deferred: bool,
}

/// Sends a message to a skill. Gives the task that it came to.
pub(crate) async fn send(
    shared: &Arc<Shared>,
    guest: &Arc<Guest>,
    mut sending: Sending,
) -> Result<Arc<TaskRecord>, Fault> {
    let continued = continued(shared, guest, &sending.send.message).await?;
    let skill = resolve(shared, &sending, continued.as_ref())?;
    let nobody = || Fault::new(Kind::Request, "there is no capability for this caller");
    let token = guest.token_for(&skill.server, &skill.tool).cloned().ok_or_else(nobody)?;
    let agent = guest.peer.subject.clone().unwrap_or_else(|| token.subject.clone());
    let message = &sending.send.message;
    let context_id = match &continued {
        Some(entry) => entry.record.context_id.clone().unwrap_or_default(),
        None => message.context_id.clone().unwrap_or_else(|| Uuid::now_v7().to_string()),
    };
    let id = match &continued {
        Some(entry) => entry.record.id.clone(),
        None => {
            let next = shared.numbers.next(&shared.orchestrator).await;
            next.map_err(|error| fault_of(shared, "a task's number", &error))?
        }
    };
    let names = Names { message_id: message.id.as_deref(), context_id: &context_id, task_id: &id };
    let check_modes = shared.options.check_input_modes;
    let arguments = skill.intake.arguments(message, &names, check_modes)?;
    let about = &mut sending.about;
    // Whoever was handed a capability here refers to one of their own organisation's.
    let foreign =
        about.capability_ref.take_if(|it| !guest.brought && it.chio_capability_id != token.id);
    let last = token.delegation_chain.last().map(|link| link.delegator.clone());
    let counts = |signer: &PublicKey| {
        last.as_ref() == Some(signer) || shared.orchestrator.trusts_kernel(signer)
    };
    let intent = about.take_intent(&id, (&skill.server, &skill.tool), counts);
    let mut request = OrchestratedRequest::new(
        id.clone(),
        token,
        skill.server.clone(),
        skill.tool.clone(),
        arguments,
    );
    request.agent = agent.clone();
    request.protocol_context = Some(context(&skill, &names, foreign));
    request.governed_intent = intent;
    request.capability_ref = about.capability_ref.take();
    request.model = about.model.take();
    request.dpop_proof = about.proof.take();
    let expected = continued.as_ref().map(|entry| Arc::clone(&entry.record));
    let stored = continued.clone().filter(|entry| entry.durable);
    let record = begun(shared, &skill, (id, context_id), continued, sending.send.message);
    if let Some(asking) = stored {
        // Whoever takes it out of the store is the only one who goes on with it.
        let taken = shared.deferred.forget(&record.id, &request.agent).await;
        if !taken.map_err(|error| of_task(shared, &record.id, &error))? {
            return Err(takes_none("not asking for anything"));
        }
        // Until this answer is taken, the question stands: another one may have to be given.
        let asking = Entry { durable: false, ..asking };
        let _ = shared.book.insert(asking, None, shared.orchestrator.now());
    }
    if sending.deferred {
        return keep(shared, guest, request, (record, expected)).await;
    }
    run(shared, guest, request, (record, expected)).await
}

/// The task that a message goes on with.
async fn continued(
    shared: &Shared,
    guest: &Guest,
    message: &Message,
) -> Result<Option<Entry>, Fault> {
    let Some(id) = &message.task_id else { return Ok(None) };
    let entry = match find(shared, guest, id).await? {
        Known::Here(entry) => entry,
        Known::Stored(view, _) => {
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
fn resolve(
    shared: &Shared,
    sending: &Sending,
    continued: Option<&Entry>,
) -> Result<Arc<Skill>, Fault> {
    let mut named: Option<&str> = None;
    let of_task = continued.map(|entry| entry.record.skill.as_str());
    for name in [sending.mounted.as_deref(), of_task, sending.about.skill.as_deref()] {
        match (named, name) {
            (Some(one), Some(other)) if one != other => {
                return Err(Fault::params("expected one skill, found two that differ"));
            }
            (None, Some(_)) => named = name,
            _ => {}
        }
    }
    shared.catalogs.find(named, &shared.orchestrator, &shared.options)
}

/// What tools are told about the message that calls them.
fn context(skill: &Skill, names: &Names<'_>, foreign: Option<CrossProtocolCapabilityRef>) -> Value {
    let mut context =
        json!({"skillId": skill.id, "contextId": names.context_id, "taskId": names.task_id});
    if let (Some(id), Value::Object(members)) = (names.message_id, &mut context) {
        members.insert("messageId".to_owned(), json!(id));
    }
    if let (Some(foreign), Value::Object(members)) = (foreign, &mut context) {
        members.insert("foreignCapabilityRef".to_owned(), json!(foreign));
    }
    context
}

/// The task before anything is decided.
fn begun(
    shared: &Shared,
    skill: &Skill,
    (id, context_id): (String, String),
    continued: Option<Entry>,
    message: Message,
) -> TaskRecord {
    let mut history = Vec::new();
    if let Some(entry) = continued {
        history.clone_from(&entry.record.history);
        // What was asked has become part of the talk.
        let asked = Message::new(Role::Agent, entry.record.words.clone());
        let named = format!("{id}-question-{}", history.len());
        history.push(Message { id: Some(named), ..asked });
    }
    // SECURITY: a capability may stand there, which nobody should find in a history.
    let message = Message { metadata: None, ..message };
    if message.size() <= MAX_REMEMBERED {
        history.push(message);
    }
    TaskRecord {
        id,
        context_id: Some(context_id),
        skill: skill.id.clone(),
        state: State::Working,
        output: Vec::new(),
        words: Vec::new(),
        history,
        account: Account::pending(),
        replies: false,
        updated_at: shared.orchestrator.now(),
    }
}

/// A place among the calls that run.
pub(crate) fn place(shared: &Shared, owner: &PublicKey) -> Result<Place, Fault> {
    let busy = || Fault::new(Kind::Busy, "expected fewer calls at once");
    shared.places.take(owner).ok_or_else(busy)
}

/// Runs a call to its end. It goes on when its client leaves.
async fn run(
    shared: &Arc<Shared>,
    guest: &Guest,
    request: OrchestratedRequest,
    (record, before): (TaskRecord, Option<Arc<TaskRecord>>),
) -> Result<Arc<TaskRecord>, Fault> {
    let place = place(shared, &request.agent)?;
    let (cancellation, ended) = (shared.closing.child_token(), CancellationToken::new());
    let record = Arc::new(record);
    let entry = Entry {
        owner: request.agent.clone(),
        record: Arc::clone(&record),
        durable: false,
        cancellation: cancellation.clone(),
        ended: ended.clone(),
    };
    let taken = shared.book.insert(entry, before.as_ref(), shared.orchestrator.now());
    taken.map_err(not_taken)?;
    let caller = Arc::new(A2aCaller::new(guest.peer.session.clone(), cancellation, place));
    let runner = Arc::clone(shared);
    let work = Enduring::new(async move {
        // Whatever happens in here, nobody waits for it in vain.
        let _ended = ended.drop_guard();
        let what = format!("{}/{}", request.server_id, request.tool_name);
        match runner.orchestrator.run(request, Arc::clone(&caller) as _).await {
            Ok(ran) => Ok(finish(&runner, &record, ran.evaluation, &caller.take_chunks())),
            Err(error) => {
                runner.book.forget(&record.id);
                Err(fault_of(&runner, &what, &error))
            }
        }
    });
    work.await.unwrap_or_else(|_| Err(Fault::unreleased()))
}

fn not_taken(why: NotTaken) -> Fault {
    match why {
        NotTaken::Full => Fault::new(Kind::Busy, "expected fewer tasks of one caller at once"),
        // Another message was faster.
        NotTaken::Runs => takes_none("not asking for anything"),
    }
}

/// Writes down what a call came to.
fn finish(
    shared: &Shared,
    before: &TaskRecord,
    evaluation: Evaluation,
    chunks: &[Value],
) -> Arc<TaskRecord> {
    let ending = ending(&evaluation.outcome, chunks);
    let record = Arc::new(TaskRecord {
        state: ending.state,
        output: ending.output,
        words: ending.words,
        replies: ending.replies,
        account: Account::of(&evaluation.outcome, evaluation.receipt),
        updated_at: shared.orchestrator.now(),
        ..before.clone()
    });
    if record.replies && before.history.len() < 2 {
        // There is no task to come back to; one that was gone on with, its client knows.
        shared.book.forget(&record.id);
    } else {
        shared.book.update(Arc::clone(&record));
    }
    record
}

/// Keeps a call for when it is asked for, also when its client leaves.
async fn keep(
    shared: &Arc<Shared>,
    guest: &Arc<Guest>,
    request: OrchestratedRequest,
    records: (TaskRecord, Option<Arc<TaskRecord>>),
) -> Result<Arc<TaskRecord>, Fault> {
    let (shared, guest) = (Arc::clone(shared), Arc::clone(guest));
    let work = Enduring::new(async move { defer(&shared, &guest, request, records).await });
    work.await.unwrap_or_else(|_| Err(Fault::unreleased()))
}

/// Has the store keep a call.
async fn defer(
    shared: &Arc<Shared>,
    guest: &Guest,
    mut request: OrchestratedRequest,
    (record, before): (TaskRecord, Option<Arc<TaskRecord>>),
) -> Result<Arc<TaskRecord>, Fault> {
    let (owner, proof) = (request.agent.clone(), request.dpop_proof.take());
    let (record, now) = (Arc::new(record), shared.orchestrator.now());
    let page = |record: &Arc<TaskRecord>, durable: bool, runs: bool| {
        let (cancellation, ended) = (shared.closing.child_token(), CancellationToken::new());
        if !runs {
            ended.cancel();
        }
        Entry { owner: owner.clone(), record: Arc::clone(record), durable, cancellation, ended }
    };
    if before.is_some() {
        // Of several answers to one question, the first has it while it is being kept.
        let taken = shared.book.insert(page(&record, false, true), before.as_ref(), now);
        taken.map_err(not_taken)?;
    }
    let kept = request.clone();
    let taken = shared.deferred.defer_as(record.id.clone(), request, DiscoveryProtocol::A2a).await;
    // The store has it, and the book only knows the messages; or the question stands as before.
    shared.book.forget(&record.id);
    let (after, durable) = match (&taken, &before) {
        (Ok(_), _) => (Some(&record), true),
        (Err(_), before) => (before.as_ref(), false),
    };
    let _ = after.map(|after| shared.book.insert(page(after, durable, false), None, now));
    match taken {
        Ok(_) => Ok(record),
        Err(TaskError::Denied(denial)) => {
            // Nothing runs, and the refusal leaves a receipt.
            let refused = OrchestratedRequest { refusal: Some(denial), dpop_proof: proof, ..kept };
            run(shared, guest, refused, ((*record).clone(), before)).await
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
        Err(error) => Err(fault_of(shared, "a deferred task", &error)),
    }
}

/// What is answered when there is no task to tell of.
pub(crate) fn of_task(shared: &Shared, id: &str, error: &TaskError) -> Fault {
    match error {
        TaskError::Refused(_) | TaskError::Kernel(KernelError::NotClaimed(_)) => Fault::no_task(id),
        TaskError::Elsewhere => {
            Fault::new(Kind::Unsupported, "no tool server of this process can run the task")
        }
        error => fault_of(shared, "a deferred task", error),
    }
}

/// What is answered when something did not work that is for the operator to know.
pub(crate) fn fault_of(shared: &Shared, what: &str, error: &dyn std::fmt::Display) -> Fault {
    shared.options.log.line(&format!("{what}: {error}"));
    Fault::unreleased()
}
