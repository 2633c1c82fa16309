//! The operations that both bindings have.

use chio_core::crypto::PublicKey;
use chio_edge::Refusal;
use chio_edge::auth::RequestHead;
use chio_net::jsonrpc::Body;
use chio_net::memory::HeldMemory;
use serde_json::{Map, Value};

use super::endpoint::{Endpoint, authenticated};
use super::list;
use crate::call_metadata;
use crate::card::Mount;
use crate::dialect::v1::no_push;
use crate::dialect::{Dialect, Operation};
use crate::error::{Fault, Kind};
use crate::record::TaskRecord;
use crate::send::{Sending, Wanted, send_message};
use crate::tasks;

/// Why there is no result.
pub(super) enum Stopped {
    /// The caller was not admitted.
    Refused(Refusal),
    /// The operation failed.
    Failed(Fault),
}

impl From<Fault> for Stopped {
    fn from(fault: Fault) -> Self {
        Self::Failed(fault)
    }
}

impl From<Refusal> for Stopped {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// How requests are put into HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binding {
    /// Every operation is a POST.
    JsonRpc,
    /// Tasks are read by GET, which must start nothing.
    HttpJson,
}

/// Runs an operation for a caller, once it is admitted. Its params take this memory.
pub(super) async fn dispatch_operation(
    endpoint: &Endpoint,
    request: RequestHead,
    (binding, dialect): (Binding, Dialect),
    operation: Operation,
    (params, held): (Map<String, Value>, HeldMemory),
    mount: Mount,
) -> Result<Body, Stopped> {
    let shared = &endpoint.shared;
    let mounted = match mount {
        Mount::Skill(skill) => Some(skill),
        Mount::Root | Mount::Strict => None,
    };
    match operation {
        Operation::Send | Operation::Stream => {
            let streams = operation == Operation::Stream;
            if streams && dialect != Dialect::Seed {
                authenticated(&request.principal)?;
                return Err(no_streams().into());
            }
            let sent = (params, held);
            send(endpoint, request, dialect, sent, (mounted, streams)).await
        }
        Operation::Get | Operation::Cancel => {
            let task = dialect.read_task(params)?;
            let mut metadata = call_metadata::read(task.metadata.as_ref(), None)?;
            let principal = endpoint.admit(request, &mut metadata, true).await?;
            let (id, again) = (&*task.id, dialect == Dialect::Seed);
            let record = match (operation, binding) {
                (Operation::Cancel, _) => tasks::cancel(shared, &principal, id, again).await?,
                (_, Binding::HttpJson) => tasks::look(shared, &principal, id).await?,
                (_, Binding::JsonRpc) => {
                    // Only Chio's own dialect waits for a task that it has asked for.
                    let asked = (metadata.proof, dialect == Dialect::Seed);
                    tasks::get(shared, &principal, id, asked).await?
                }
            };
            Ok(dialect.write_task(&record, task.history))
        }
        Operation::List => {
            let (wanted, metadata) = list::read(params)?;
            let mut metadata = call_metadata::read(metadata.as_ref(), None)?;
            let principal = endpoint.admit(request, &mut metadata, true).await?;
            let query = |owner: &PublicKey, now| wanted.query(owner, now);
            let fits = |record: &TaskRecord| wanted.fits(record);
            let (records, total) = tasks::list(shared, &principal, query, fits).await?;
            Ok(list::write(records, total, &wanted))
        }
        Operation::Subscribe => {
            authenticated(&request.principal)?;
            Err(no_streams().into())
        }
        Operation::Push => {
            authenticated(&request.principal)?;
            Err(no_push().into())
        }
        Operation::ExtendedCard => {
            authenticated(&request.principal)?;
            let message = "there is no card but the one for everybody";
            Err(Fault::new(Kind::Unsupported, message).into())
        }
    }
}

/// Sends a message to a skill.
async fn send(
    endpoint: &Endpoint,
    request: RequestHead,
    dialect: Dialect,
    (params, held): (Map<String, Value>, HeldMemory),
    (mounted, streams): (Option<String>, bool),
) -> Result<Body, Stopped> {
    let sent = dialect.read_send(params)?;
    let mut metadata = call_metadata::read(sent.metadata.as_ref(), sent.message.metadata.as_ref())?;
    // A client that continues a task reads it as well.
    let continues = sent.message.task_id.is_some();
    let principal = endpoint.admit(request, &mut metadata, continues).await?;
    let history = sent.history;
    let wanted = match (streams, sent.at_once) {
        (true, _) => Wanted::Task,
        (false, true) => Wanted::Begun,
        (false, false) => Wanted::Result,
    };
    let sending = Sending { request: sent, metadata, mounted, wanted, held };
    let record = send_message(&endpoint.shared, &principal, sending).await?;
    Ok(match streams {
        true => dialect.write_task(&record, history),
        false => dialect.write_sent(&record, history),
    })
}

fn no_streams() -> Fault {
    Fault::new(Kind::Unsupported, "answers are not streamed: `capabilities.streaming` is false")
}
