//! The JSON-RPC 2.0 envelope that edges and adapters share: messages, and the responses to malformed
//! ones.
//!
//! [`Inbound`] reads; it decides which malformed messages are answered, so that no edge decides that
//! itself. What a method means, and which params it takes, is for the edge.
//!
//! ```
//! use chio_net::jsonrpc::{Inbound, Message, Response};
//! use serde_json::json;
//!
//! let answer = match Inbound::new().read(br#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#) {
//!     Ok(Message::Request(request)) => Some(Response::ok(request.id, json!({}))),
//!     Ok(_) => None,
//!     Err(rejected) => rejected.into_answer(),
//! };
//! let text = answer.map(|answer| answer.to_text());
//! assert_eq!(text.as_deref(), Some(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#));
//! ```

mod body;
mod envelope;
mod error;
mod id;
mod inbound;
mod message;
mod write;

pub use body::Body;
pub use envelope::Envelope;
pub use error::RpcError;
pub use id::RequestId;
pub use inbound::{Inbound, Incoming, Rejected};
pub use message::{Message, Notification, Params, Request, Response};

/// The one value of the member `jsonrpc`.
const VERSION: &str = "2.0";

#[cfg(test)]
mod tests;
