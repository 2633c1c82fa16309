//! From a message to the call that it makes.

use std::sync::Arc;

use chio_core::canonical;
use chio_core::crypto::PublicKey;
use chio_cross_protocol::{CapabilityBridge, OrchestratedRequest};
use chio_edge::tokens::token_for;

use crate::arguments::Names;
use crate::bridge::{A2aBridge, A2aEnvelope};
use crate::catalog::Skill;
use crate::error::{Fault, Kind};
use crate::message::{Message, Part, Role};
use crate::principals::AdmittedPrincipal;
use crate::record::TaskRecord;
use crate::send::Sending;
use crate::service::EdgeState;

/// The largest message that is remembered in a history, in bytes.
const MAX_REMEMBERED: usize = 256 << 10;
/// The largest history that is kept, in bytes; of a longer one the oldest messages go.
const MAX_HISTORY: usize = 1 << 20;

/// A message that has become a call.
pub(crate) struct Prepared {
    pub(crate) request: OrchestratedRequest,
    /// The task before anything is decided.
    pub(crate) record: TaskRecord,
    /// Until when the token of the call holds.
    pub(crate) expires_at: u64,
}

/// Makes the call of a message to a skill, as a task of this name.
pub(crate) fn prepare(
    shared: &EdgeState,
    principal: &AdmittedPrincipal,
    sending: &mut Sending,
    skill: &Skill,
    (id, context_id): (String, String),
    asking: Option<&TaskRecord>,
) -> Result<Prepared, Fault> {
    let without_token = || Fault::new(Kind::Request, "there is no capability for this caller");
    let token = token_for(&principal.tokens, &skill.server, &skill.tool);
    let token = token.cloned().ok_or_else(without_token)?;
    let message = &sending.request.message;
    let names = Names { message_id: message.id.as_deref(), context_id: &context_id, task_id: &id };
    let arguments = skill.argument_reader.read(message, &names)?;
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
    let agent =
        principal.session.principal.subject.clone().unwrap_or_else(|| token.subject.clone());
    let (server, tool, expires_at) = (skill.server.clone(), skill.tool.clone(), token.expires_at);
    let mut request = OrchestratedRequest::new(id.clone(), token, server, tool, arguments);
    let reference = A2aBridge.extract(&envelope);
    request.capability_ref = reference.map_err(|error| Fault::params(error.to_string()))?;
    request.protocol_context = A2aBridge.protocol_context(&envelope);
    request.agent = agent;
    request.governed_intent = intent;
    request.model = metadata.model.take();
    request.dpop_proof = metadata.proof.take();
    let message = std::mem::take(&mut sending.request.message);
    let message = remembered(shared, message);
    let mut record = begun(shared.orchestrator.now(), skill, (id, context_id), asking, message);
    record.accepted = sending.request.accepted;
    Ok(Prepared { request, record, expires_at })
}

/// A message as it is kept: what is too large by its size and hash.
pub(crate) fn remembered(shared: &EdgeState, message: Message) -> Message {
    // SECURITY: metadata may hold a capability, which must not be readable in a history.
    let mut message = Message { metadata: None, ..message };
    let (size, parts) = (message.size(), serde_json::to_value(&message.parts).unwrap_or_default());
    if size > MAX_REMEMBERED {
        let hash = canonical::hash(&parts).unwrap_or_default();
        message.parts = vec![Part::text(format!("[a message of {size} bytes, sha256 {hash}]"))];
    } else if let Some(less) = shared.orchestrator.redacted(&parts) {
        // SECURITY: what a guard keeps out of receipts is not kept here either.
        let without = |_| vec![Part::text("[redacted]")];
        message.parts = serde_json::from_value(less).unwrap_or_else(without);
    }
    message
}

/// The task before anything is decided.
fn begun(
    now: u64,
    skill: &Skill,
    (id, context_id): (String, String),
    asking: Option<&TaskRecord>,
    message: Message,
) -> TaskRecord {
    let mut history = Vec::new();
    if let Some(asking) = asking {
        history.clone_from(&asking.history);
        // The question has become part of the conversation.
        let asked = Message::new(Role::Agent, asking.words.clone());
        let named = format!("{id}-question-{}", history.len());
        history.push(Message { id: Some(named), ..asked });
    }
    history.push(message);
    let mut size: usize = history.iter().map(Message::size).sum();
    let oldest = history.iter().take_while(|message| {
        let goes = size > MAX_HISTORY;
        size -= if goes { message.size() } else { 0 };
        goes
    });
    let gone = oldest.count();
    history.drain(..gone);
    TaskRecord::working(id, Some(context_id), skill.id.clone(), history, now)
}

/// The skill that is meant.
pub(crate) async fn resolve(
    shared: &EdgeState,
    sending: &Sending,
    asking: Option<&TaskRecord>,
) -> Result<Arc<Skill>, Fault> {
    let mut named: Option<&str> = None;
    let skill_name = asking.map(|record| record.skill.as_str());
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
