//! MCP servers that run as child processes, as tool servers.
//!
//! ```text
//! kernel ─► McpServer ─► slot ─► child ─► conversation ─► stdio ─► process
//!           which slot    one     one      ids, routes     lines,
//!                         after   life                     signals
//!                         another
//! ```
//!
//! A *slot* is where one child at a time works: one slot is shared, and each session may have its
//! own. What a child says in the course of a call reaches that call; what else it says reaches the
//! session that the child belongs to; what the shared child says reaches only sessions that asked.
//! Entries, schemas and results pass through as the server wrote them.

mod backoff;
mod call;
mod child;
mod child_slot;
mod conversation;
mod error;
mod list;
mod manifest;
mod options;
mod outbox;
mod outside;
mod provider;
mod schema;
mod server;
mod stdio;
mod subscriptions;
mod wire;

pub use error::McpError;
pub use options::{ComingClient, Limits, McpServerOptions, Sharing};
pub use server::McpServer;
