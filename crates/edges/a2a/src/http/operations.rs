//! What both bindings do: one operation at a time, for somebody who was let in.

use chio_cross_protocol::jsonrpc::Body;
use serde_json::{Map, Value};

use super::door::{Arrival, Entrance};
use super::list;
use super::reply::Refusal;
use crate::about::About;
use crate::card::Mount;
use crate::dialect::{Dialect, Operation};
use crate::error::{Fault, Kind};
use crate::send::{Sending, send};
use crate::tasks;

/// Why there is no answer.
pub(super) enum Stopped {
    /// They were not let in.
    Refused(Refusal),
    /// It was not done.
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

/// Does what is asked for.
pub(super) async fn perform(
    entrance: &Entrance,
    arrival: Arrival,
    (dialect, operation): (Dialect, Operation),
    params: Map<String, Value>,
    mount: Mount,
) -> Result<Body, Stopped> {
    let shared = &entrance.shared;
    let mounted = match mount {
        Mount::Skill(skill) => Some(skill),
        Mount::Root | Mount::Strict => None,
    };
    match operation {
        Operation::Send | Operation::Stream => {
            let streams = operation == Operation::Stream;
            if streams && dialect != Dialect::Seed {
                entrance.require(&arrival)?;
                return Err(no_streams().into());
            }
            let sent = dialect.read_send(params)?;
            let metadata = (sent.metadata.as_ref(), sent.message.metadata.as_ref());
            let mut about = About::read(metadata.0, metadata.1)?;
            // Whoever goes on with a task reads it as well.
            let goes_on = sent.message.task_id.is_some();
            let guest = entrance.admit(arrival, &mut about, goes_on).await?;
            let (history, deferred) = (sent.history, streams || sent.at_once);
            let sending = Sending { send: sent, about, mounted, deferred };
            let record = send(shared, &guest, sending).await?;
            Ok(match streams {
                true => dialect.write_task(&record, history),
                false => dialect.write_sent(&record, history),
            })
        }
        Operation::Get | Operation::Cancel => {
            let task = dialect.read_task(params)?;
            let mut about = About::read(task.metadata.as_ref(), None)?;
            let guest = entrance.admit(arrival, &mut about, true).await?;
            let record = if operation == Operation::Get {
                tasks::get(shared, &guest, &task.id, about).await?
            } else {
                let again = dialect == Dialect::Seed;
                tasks::cancel(shared, &guest, &task.id, again).await?
            };
            Ok(dialect.write_task(&record, task.history))
        }
        Operation::List => {
            let (wanted, metadata) = list::read(params)?;
            let about = &mut About::read(metadata.as_ref(), None)?;
            let guest = entrance.admit(arrival, about, true).await?;
            let records = tasks::list(shared, &guest).await?;
            Ok(list::write(records, &wanted))
        }
        Operation::Subscribe => {
            entrance.require(&arrival)?;
            Err(no_streams().into())
        }
        Operation::Push => {
            entrance.require(&arrival)?;
            Err(no_pushes().into())
        }
        Operation::ExtendedCard => {
            entrance.require(&arrival)?;
            let message = "there is no card but the one for everybody";
            Err(Fault::new(Kind::Unsupported, message).into())
        }
    }
}

fn no_pushes() -> Fault {
    Fault::new(Kind::PushNotSupported, "push notifications are not supported")
}

fn no_streams() -> Fault {
    Fault::new(Kind::Unsupported, "answers are not streamed: `capabilities.streaming` is false")
}
