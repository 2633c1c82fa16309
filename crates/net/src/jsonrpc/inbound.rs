//! Reading: from untrusted text to a message, or to what is answered instead.
//!
//! The checks come in one order, and the first that fails decides: the id, then `jsonrpc`, then
//! `method`, then `params`.

use chio_core::strict::{self, StrictError, kind};
use serde_json::{Map, Value};

use super::{
    Envelope, Message, Notification, Params, Request, RequestId, Response, RpcError, VERSION,
};

/// Why a message was rejected, and whether its sender gets a response.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{error}")]
pub struct Rejected {
    /// What is wrong.
    pub error: Box<RpcError>,
    /// The id of the response; without one no response is sent.
    pub answer_to: Option<RequestId>,
}

impl Rejected {
    /// The response, if one is due.
    pub fn into_answer(self) -> Option<Response> {
        self.answer_to.map(|id| Response::err(id, *self.error))
    }

    /// Answered with the id `null`, because the sender's is not known.
    fn with_null_id(error: RpcError) -> Self {
        Self { error: Box::new(error), answer_to: Some(RequestId::NULL) }
    }

    fn unanswered(error: RpcError) -> Self {
        Self { error: Box::new(error), answer_to: None }
    }

    /// A batch, where the protocol has none.
    pub fn batch() -> Self {
        Self::with_null_id(RpcError::invalid_request("expected one message, found a batch"))
    }
}

/// What one text holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    /// One message.
    One(Message),
    /// Several, each read by itself, in the order in which they came.
    Batch(Vec<Result<Message, Rejected>>),
}

/// A reader, with what its protocol accepts.
#[derive(Debug, Clone, Copy)]
pub struct Inbound {
    responses: bool,
    is_known: fn(&str) -> bool,
}

impl Default for Inbound {
    fn default() -> Self {
        Self::new()
    }
}

impl Inbound {
    /// Accepts responses and every method.
    pub const fn new() -> Self {
        Self { responses: true, is_known: |_| true }
    }

    /// The same for an edge that sends no requests: a response is a message without a method.
    #[must_use]
    pub const fn without_responses(mut self) -> Self {
        self.responses = false;
        self
    }

    /// The same with a list of methods: any other is −32601, whatever its params are.
    pub const fn with_methods(mut self, is_known: fn(&str) -> bool) -> Self {
        self.is_known = is_known;
        self
    }

    /// Reads one message. A batch is refused.
    ///
    /// # Errors
    /// When the text is not JSON, repeats a member, nests too deep, or is not a message that this
    /// reader accepts.
    pub fn read(&self, text: &[u8]) -> Result<Message, Rejected> {
        match value_of(text)? {
            Value::Array(_) => Err(Rejected::batch()),
            value => self.message(value),
        }
    }

    /// Reads one message, or a batch of at most `most` messages.
    ///
    /// # Errors
    /// As [`Self::read`], and when a batch has no message or too many. What is wrong with one message
    /// of a batch is told in its place.
    pub fn read_all(&self, text: &[u8], most: usize) -> Result<Incoming, Rejected> {
        match value_of(text)? {
            Value::Array(messages) if (1..=most).contains(&messages.len()) => {
                let messages = messages.into_iter().map(|message| self.message(message));
                Ok(Incoming::Batch(messages.collect()))
            }
            Value::Array(messages) => {
                let found = messages.len();
                let expected = format!("expected a batch of 1 to {most} messages, found {found}");
                Err(Rejected::with_null_id(RpcError::invalid_request(expected)))
            }
            value => self.message(value).map(Incoming::One),
        }
    }

    fn message(&self, value: Value) -> Result<Message, Rejected> {
        let Value::Object(mut members) = value else {
            let message = format!("expected a message that is an object, found {}", kind(&value));
            return Err(Rejected::with_null_id(RpcError::invalid_request(message)));
        };
        if self.responses && !members.contains_key("method") && answers(&members) {
            // An answer to a broken answer could be taken for the answer to the peer's own request
            // of the same id.
            return response(members).map(Message::Response).map_err(Rejected::unanswered);
        }
        let id = take_id(&mut members).map_err(Rejected::with_null_id)?;
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

fn value_of(text: &[u8]) -> Result<Value, Rejected> {
    let value = strict::from_slice(text).map_err(|error| unread(text, &error))?;
    strict::check_integers(text).map_err(|error| unread(text, &error))?;
    Ok(value)
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

fn unread(text: &[u8], error: &StrictError) -> Rejected {
    let message = error.to_string();
    if matches!(error, StrictError::Syntax { .. }) {
        return Rejected::with_null_id(RpcError::parse_error(message));
    }
    // It is JSON, but two readers could see two messages in it, or none. Its sender waits for an answer
    // by its id all the same.
    let Envelope { id, is_call, .. } = Envelope::of(text);
    let id = id.filter(|_| is_call).unwrap_or(RequestId::NULL);
    Rejected { error: Box::new(RpcError::invalid_request(message)), answer_to: Some(id) }
}
