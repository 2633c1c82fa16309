//! The three kinds of message.

use chio_core::strict::kind;
use serde_json::{Map, Value};

use super::{Body, RequestId, RpcError};

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// A request, which gets a response.
    Request(Request),
    /// A notification, which gets none.
    Notification(Notification),
    /// A response to a request.
    Response(Response),
}

/// A message that wants an answer. Its id may be null.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Repeated by the answer.
    pub id: RequestId,
    /// The method to run.
    pub method: String,
    /// The params of the method.
    pub params: Params,
}

/// A message that is never answered, not even when it fails.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    /// The method that names what happened.
    pub method: String,
    /// The params of the method.
    pub params: Params,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// The request's id, or null when it could not be told.
    pub id: RequestId,
    /// The result, or why there is none.
    pub outcome: Result<Body, RpcError>,
}

impl Response {
    /// A result.
    pub fn ok(id: RequestId, result: impl Into<Body>) -> Self {
        Self { id, outcome: Ok(result.into()) }
    }

    /// An error.
    pub const fn err(id: RequestId, error: RpcError) -> Self {
        Self { id, outcome: Err(error) }
    }
}

/// What a method is called with.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Params {
    /// Nothing was sent.
    #[default]
    Absent,
    /// By name.
    Object(Map<String, Value>),
    /// By position.
    Array(Vec<Value>),
}

impl Params {
    /// The params by name; absent ones are empty.
    ///
    /// # Errors
    /// When they come by position: −32602.
    pub fn into_object(self) -> Result<Map<String, Value>, RpcError> {
        match self {
            Self::Absent => Ok(Map::new()),
            Self::Object(members) => Ok(members),
            Self::Array(_) => {
                Err(RpcError::invalid_params("expected params as an object, found an array"))
            }
        }
    }
}

impl TryFrom<Value> for Params {
    type Error = RpcError;

    fn try_from(value: Value) -> Result<Self, RpcError> {
        match value {
            Value::Object(members) => Ok(Self::Object(members)),
            Value::Array(items) => Ok(Self::Array(items)),
            other => Err(RpcError::invalid_params(format!(
                "expected params as an object or an array, found {}",
                kind(&other)
            ))),
        }
    }
}
