//! The shapes of JSON-RPC.

use serde_json::{Value, json};

/// What the parameters of a request are not.
pub(crate) const INVALID_PARAMS: i64 = -32602;
/// A request that does not fit the state of the session.
pub(crate) const INVALID_REQUEST: i64 = -32600;
/// A method that does not exist.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
/// A resource that does not exist.
pub(crate) const RESOURCE_NOT_FOUND: i64 = -32002;

/// Why a request has no result.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

impl Fault {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }
}

/// The answer to a request.
pub(crate) fn response(id: &Value, answer: Result<Value, Fault>) -> Value {
    match answer {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(Fault { code, message, data: None }) => {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
        }
        Err(Fault { code, message, data: Some(data) }) => json!({
            "jsonrpc": "2.0",
            "id": id,
            "error": {"code": code, "message": message, "data": data},
        }),
    }
}

/// A text among the parameters.
pub(crate) fn text<'a>(params: &'a Value, name: &str) -> Result<&'a str, Fault> {
    let found = params.get(name).and_then(Value::as_str);
    found.ok_or_else(|| Fault::new(INVALID_PARAMS, format!("expected a text `{name}`")))
}
