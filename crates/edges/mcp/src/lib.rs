//! The Model Context Protocol, as a server: sessions over HTTP (`POST`, `GET` and `DELETE` on
//! `/mcp`) and over standard input and output, of every version that has sessions.
//!
//! A session belongs to the identity that opened it. What it may do is said by the tokens that
//! [`chio_cross_protocol::Admission`] gives for it; every `tools/call` goes through the
//! orchestrator, and reads of resources, prompts and completions take the same checks. What a
//! server asks its client during a call is forwarded, and answered through the session.

mod answer;
mod bridge;
mod caller;
mod error;
mod events;
mod http;
mod limits;
mod methods;
mod names;
mod negotiation;
mod outlet;
mod parked;
mod service;
mod session;
mod sessions;
mod stdio;
mod tasks;
mod version;
mod wire_form;

pub use names::server_prefix;
pub use negotiation::SUPPORTED;
pub use service::EDGE;
