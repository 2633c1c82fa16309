//! The error object of a response.

use chio_core::strict::kind;
use serde::Serialize;
use serde_json::Value;

/// Why a request was not done. The message never repeats a value of the params.
#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// What kind of error; protocols have codes of their own beside the five here.
    pub code: i64,
    /// One sentence for a person.
    pub message: String,
    /// What a program may want to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl RpcError {
    /// The code of a text that is not JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// The code of JSON that is no message.
    pub const INVALID_REQUEST: i64 = -32600;
    /// The code of an unknown method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The code of params that do not fit the method.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The code of a fault on our side.
    pub const INTERNAL_ERROR: i64 = -32603;

    /// An error with a protocol's own code.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The text is not JSON.
    pub fn parse_error(message: impl Into<String>) -> Self {
        Self::new(Self::PARSE_ERROR, message)
    }

    /// The JSON is no message.
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_REQUEST, message)
    }

    /// The method is unknown.
    pub fn method_not_found() -> Self {
        Self::new(Self::METHOD_NOT_FOUND, "method not found")
    }

    /// The params do not fit the method.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_PARAMS, message)
    }

    /// The same with `data`.
    #[must_use]
    pub fn with_data(mut self, data: impl Into<Value>) -> Self {
        self.data = Some(data.into());
        self
    }

    /// Reads the error that a peer answered with.
    pub(super) fn read(value: Value) -> Result<Self, Self> {
        let mut members = match value {
            Value::Object(members) => members,
            other => return Err(misread("error", "an object", Some(&other))),
        };
        let code = members.get("code");
        let Some(code) = code.and_then(Value::as_i64) else {
            return Err(misread("error code", "an integer", code));
        };
        let message = match members.remove("message") {
            Some(Value::String(message)) => message,
            other => return Err(misread("error message", "a string", other.as_ref())),
        };
        // A null is data, too.
        Ok(Self { code, message, data: members.remove("data") })
    }
}

fn misread(what: &str, expected: &str, found: Option<&Value>) -> RpcError {
    let found = found.map_or("none", kind);
    RpcError::invalid_request(format!("expected {what} to be {expected}, found {found}"))
}
