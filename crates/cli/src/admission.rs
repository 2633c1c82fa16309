//! Who is at the other end of a connection, and what they may do.

mod mcp;
mod principal;
mod same_peer;

pub(crate) use mcp::{Anonymous, McpAdmission, everything_of};
pub(crate) use same_peer::SamePeer;
