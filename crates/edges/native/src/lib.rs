//! The native transport: length-prefixed canonical JSON over standard input and output, Unix
//! sockets and loopback TCP.
//!
//! [`serve_connection`] serves one connection over any pair of byte streams, [`EDGE`] is the entry in
//! the list of edges, and [`NativeClient`] is the other end. Calls of one
//! connection run side by side and are answered by id. Whatever cannot be read, and whatever the
//! kernel cannot answer, ends that connection and no other.

mod bridge;
mod caller;
mod client;
mod connection;
mod error;
mod frames;
mod known_tokens;
mod outbox;
mod parked;
mod result;
mod service;
#[cfg(test)]
mod world;

pub use client::{ClientError, NativeClient};
pub use connection::{ConnectionOptions, Limits, OnEof, serve_connection};
pub use error::NativeError;
pub use service::{EDGE, NativeService};
