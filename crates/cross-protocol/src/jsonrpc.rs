//! The JSON-RPC 2.0 envelope that the protocol edges share: what a message is, and what is answered
//! to one that is none.
//!
//! [`Inbound`] reads; it says who gets an answer to a broken message, so that no edge decides that
//! for itself. What a method means, and which params it takes, is the edge's.
//!
//! ```
//! use chio_cross_protocol::jsonrpc::{Inbound, Incoming, Message, Response};
//! use serde_json::json;
//!
//! let answer = match Inbound::new().read(br#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#) {
//!     Ok(Incoming::One(Message::Request(request))) => Some(Response::ok(request.id, json!({}))),
//!     Ok(_) => None,
//!     Err(rejected) => rejected.into_answer(),
//! };
//! let text = answer.map(|answer| answer.to_text());
//! assert_eq!(text.as_deref(), Some(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#));
//! ```

mod body;
mod error;
mod id;
mod inbound;
mod message;
mod write;

pub use body::Body;
pub use error::RpcError;
pub use id::RequestId;
pub use inbound::{Batches, Inbound, Incoming, MAX_BATCH, Rejected};
pub use message::{Message, Notification, Params, Request, Response};

use serde_json::Value;

/// The one value of the member `jsonrpc`.
const VERSION: &str = "2.0";

/// What kind of thing a value is, for errors that do not repeat it.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests;
