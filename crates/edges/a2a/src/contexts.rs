//! Whose a context is: that of the caller who named it first, or was given it.

use std::sync::Arc;

use chio_core::crypto::PublicKey;
use chio_edge::tasks::{self, Record, TableLimits, TaskEntry};
use uuid::Uuid;

use crate::error::Fault;
use crate::limits::A2aLimits;
use crate::message::Message;
use crate::principals::AdmittedPrincipal;
use crate::service::EdgeState;
use crate::tasks::look;

/// The most tasks that a message may refer to.
const MAX_REFERENCES: usize = 32;

/// The name of a context.
#[derive(Debug, Clone)]
pub(crate) struct Context(String);

impl Record for Context {
    fn id(&self) -> &str {
        &self.0
    }
}

/// The contexts that this process has heard of, by the keys of their callers. They stay until their
/// owner has too many newer ones; the store knows those of its tasks.
pub(crate) type ContextTable = tasks::TaskTable<PublicKey, Context>;

/// An empty table.
pub(crate) fn table(limits: &A2aLimits) -> ContextTable {
    ContextTable::new(TableLimits {
        tasks_per_owner: limits.contexts_per_owner,
        tasks: limits.contexts,
        ..TableLimits::default()
    })
}

/// The context that a message names, taken for this caller if it is no other one's; a new one when
/// it names none.
pub(crate) fn claimed(
    shared: &EdgeState,
    principal: &AdmittedPrincipal,
    named: Option<String>,
) -> Result<String, Fault> {
    let (owner, now) = (principal.owner().ok_or_else(foreign_context)?, shared.orchestrator.now());
    let context_id = match named {
        Some(named) if shared.contexts.find(&named, owner, now).is_some() => return Ok(named),
        Some(named) => named,
        None => Uuid::now_v7().to_string(),
    };
    let context = Arc::new(Context(context_id.clone()));
    let entry = TaskEntry::idle(owner.clone(), context, false, &shared.closing);
    shared.contexts.insert(entry, now).map_err(|_| foreign_context())?;
    Ok(context_id)
}

/// The fault of a message in a context of another caller.
pub(crate) fn foreign_context() -> Fault {
    // SECURITY: a tool may remember by it what was said before.
    Fault::params("there is no such `contextId` for this caller")
}

/// Checks that the tasks that a message refers to are this caller's.
pub(crate) async fn check_references(
    shared: &EdgeState,
    principal: &AdmittedPrincipal,
    message: &Message,
) -> Result<(), Fault> {
    let ids = &message.reference_task_ids;
    if ids.len() > MAX_REFERENCES {
        let found = ids.len();
        let message =
            format!("expected at most {MAX_REFERENCES} `referenceTaskIds`, found {found}");
        return Err(Fault::params(message));
    }
    for id in ids {
        look(shared, principal, id).await?;
    }
    Ok(())
}
