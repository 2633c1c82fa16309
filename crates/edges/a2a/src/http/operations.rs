//! The operations that both bindings have.

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
use crate::send::{Sending, send_message};
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

/// Runs an operation for a caller, once it is admitted. Its params take this memory.
pub(super) async fn dispatch_operation(
    endpoint: &Endpoint,
    request: RequestHead,
    dialect: Dialect,
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
            let sent = dialect.read_send(params)?;
            let mut metadata =
                call_metadata::read(sent.metadata.as_ref(), sent.message.metadata.as_ref())?;
            // A client that continues a task reads it as well.
            let continues = sent.message.task_id.is_some();
            let principal = endpoint.admit(request, &mut metadata, continues).await?;
            let (history, deferred) = (sent.history, streams || sent.at_once);
            let sending = Sending { request: sent, metadata, mounted, deferred, held };
            let record = send_message(shared, &principal, sending).await?;
            Ok(match streams {
                true => dialect.write_task(&record, history),
                false => dialect.write_sent(&record, history),
            })
        }
        Operation::Get | Operation::Cancel => {
            let task = dialect.read_task(params)?;
            let mut metadata = call_metadata::read(task.metadata.as_ref(), None)?;
            let principal = endpoint.admit(request, &mut metadata, true).await?;
            let record = if operation == Operation::Get {
                tasks::get(shared, &principal, &task.id, metadata.proof).await?
            } else {
                let again = dialect == Dialect::Seed;
                tasks::cancel(shared, &principal, &task.id, again).await?
            };
            Ok(dialect.write_task(&record, task.history))
        }
        Operation::List => {
            let (wanted, metadata) = list::read(params)?;
            let mut metadata = call_metadata::read(metadata.as_ref(), None)?;
            let principal = endpoint.admit(request, &mut metadata, true).await?;
            let records = tasks::list(shared, &principal).await?;
            Ok(list::write(records, &wanted))
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

fn no_streams() -> Fault {
    Fault::new(Kind::Unsupported, "answers are not streamed: `capabilities.streaming` is false")
}
