//! Reading: from untrusted text to a message, or to what is answered instead.
//!
//! The checks come in one order, and the first that fails decides: the id, then `jsonrpc`, then
//! `method`, then `params`.

use chio_core::strict::{self, StrictError};
use serde_json::{Map, Value};

use super::{Message, Notification, Params, Request, RequestId, Response, RpcError, VERSION, kind};

/// The most messages that one batch holds: each may cost an answer longer than itself.
pub const MAX_BATCH: usize = 256;

/// What becomes of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Batches {
    /// Read, message by message.
    Taken,
    /// Refused with one error.
    Refused,
    /// Dropped without an answer.
    Dropped,
}

/// What was read.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    /// One message.
    One(Message),
    /// Several, each on its own: one that is broken does not spoil the others.
    Batch(Vec<Result<Message, Rejected>>),
}

/// Why nothing was read, and who is told.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{error}")]
pub struct Rejected {
    /// What is wrong.
    pub error: Box<RpcError>,
    /// The id to answer under; nobody is told when there is none.
    pub answer_to: Option<RequestId>,
}

impl Rejected {
    /// The answer, if one is due.
    #[must_use]
    pub fn into_answer(self) -> Option<Response> {
        self.answer_to.map(|id| Response::err(id, *self.error))
    }

    /// Answered under null, as the sender's id is not known.
    fn nameless(error: RpcError) -> Self {
        Self { error: Box::new(error), answer_to: Some(RequestId::NULL) }
    }

    fn silent(error: RpcError) -> Self {
        Self { error: Box::new(error), answer_to: None }
    }
}

/// A reader, with what its protocol takes.
#[derive(Debug, Clone, Copy)]
pub struct Inbound {
    batches: Batches,
    responses: bool,
    is_known: fn(&str) -> bool,
}

impl Default for Inbound {
    fn default() -> Self {
        Self::new()
    }
}

impl Inbound {
    /// Takes responses and every method, and refuses batches.
    #[must_use]
    pub const fn new() -> Self {
        Self { batches: Batches::Refused, responses: true, is_known: |_| true }
    }

    /// The same with another rule for batches.
    #[must_use]
    pub const fn with_batches(mut self, batches: Batches) -> Self {
        self.batches = batches;
        self
    }

    /// The same for an edge that asks its peer nothing: a response is a message without a method.
    #[must_use]
    pub const fn without_responses(mut self) -> Self {
        self.responses = false;
        self
    }

    /// The same with a list of methods: any other is −32601, whatever its params are.
    #[must_use]
    pub const fn with_methods(mut self, is_known: fn(&str) -> bool) -> Self {
        self.is_known = is_known;
        self
    }

    /// Reads one message or one batch.
    ///
    /// # Errors
    /// When the text is not JSON, repeats a member, nests too deep, or is no message that this
    /// reader takes.
    pub fn read(&self, text: &[u8]) -> Result<Incoming, Rejected> {
        let value = strict::from_slice(text).map_err(|error| Rejected::nameless(unread(&error)))?;
        match value {
            Value::Array(items) => self.batch(items),
            one => self.message(one).map(Incoming::One),
        }
    }

    fn batch(&self, items: Vec<Value>) -> Result<Incoming, Rejected> {
        let refused = RpcError::invalid_request("expected one message, found a batch");
        match self.batches {
            Batches::Dropped => return Err(Rejected::silent(refused)),
            Batches::Refused => return Err(Rejected::nameless(refused)),
            Batches::Taken => {}
        }
        if items.is_empty() || items.len() > MAX_BATCH {
            return Err(Rejected::nameless(RpcError::invalid_request(format!(
                "expected a batch of 1 to {MAX_BATCH} messages, found {}",
                items.len()
            ))));
        }
        Ok(Incoming::Batch(items.into_iter().map(|item| self.message(item)).collect()))
    }

    fn message(&self, value: Value) -> Result<Message, Rejected> {
        let mut members = match value {
            Value::Object(members) => members,
            other => {
                return Err(Rejected::nameless(RpcError::invalid_request(format!(
                    "expected a message that is an object, found {}",
                    kind(&other)
                ))));
            }
        };
        if self.responses && !members.contains_key("method") && answers(&members) {
            // An answer to a broken answer could be taken for the answer to the peer's own request
            // of the same id.
            return response(members).map(Message::Response).map_err(Rejected::silent);
        }
        let id = take_id(&mut members).map_err(Rejected::nameless)?;
        match (self.call(members), id) {
            (Ok((method, params)), Some(id)) => {
                Ok(Message::Request(Request { id, method, params }))
            }
            (Ok((method, params)), None) => {
                Ok(Message::Notification(Notification { method, params }))
            }
            (Err(error), answer_to) => Err(Rejected { error: Box::new(error), answer_to }),
        }
    }

    /// Method and params of a request or notification.
    fn call(&self, mut members: Map<String, Value>) -> Result<(String, Params), RpcError> {
        check_version(&members)?;
        let method = match members.remove("method") {
            Some(Value::String(method)) => method,
            other => {
                return Err(RpcError::invalid_request(format!(
                    "expected a method that is a string, found {}",
                    other.as_ref().map_or("none", kind)
                )));
            }
        };
        // Some readers would take such a message for a response.
        if answers(&members) {
            return Err(RpcError::invalid_request(
                "expected a request or a response, found a method beside a result or an error",
            ));
        }
        if !(self.is_known)(&method) {
            return Err(RpcError::method_not_found());
        }
        let params = members.remove("params").map_or(Ok(Params::Absent), Params::try_from)?;
        Ok((method, params))
    }
}

fn response(mut members: Map<String, Value>) -> Result<Response, RpcError> {
    let id = take_id(&mut members)?;
    check_version(&members)?;
    match (id, members.remove("result"), members.remove("error")) {
        (Some(id), Some(result), None) => Ok(Response::ok(id, result)),
        // Some servers leave the id out where others write null.
        (id, None, Some(error)) => {
            Ok(Response::err(id.unwrap_or(RequestId::NULL), RpcError::read(error)?))
        }
        (None, _, _) => Err(RpcError::invalid_request("expected a result with an id, found none")),
        _ => Err(RpcError::invalid_request("expected a result or an error, found both")),
    }
}

/// Whether an object has what only responses have.
fn answers(members: &Map<String, Value>) -> bool {
    members.contains_key("result") || members.contains_key("error")
}

fn take_id(members: &mut Map<String, Value>) -> Result<Option<RequestId>, RpcError> {
    members.remove("id").map(RequestId::try_from).transpose()
}

fn check_version(members: &Map<String, Value>) -> Result<(), RpcError> {
    let found = match members.get("jsonrpc") {
        Some(Value::String(version)) if version == VERSION => return Ok(()),
        Some(Value::String(_)) => "another string",
        Some(other) => kind(other),
        None => "none",
    };
    Err(RpcError::invalid_request(format!("expected jsonrpc to be \"{VERSION}\", found {found}")))
}

fn unread(error: &StrictError) -> RpcError {
    let message = error.to_string();
    match error {
        StrictError::Syntax { .. } => RpcError::parse_error(message),
        // It is JSON, but two readers could see two messages in it, or none.
        _ => RpcError::invalid_request(message),
    }
}
