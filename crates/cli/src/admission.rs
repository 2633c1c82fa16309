//! Who is at the other end of a connection, and what they may do.

mod principal;
mod reception;
mod same_peer;

pub(crate) use reception::{Anonymous, Reception, everything_of};
pub(crate) use same_peer::SamePeer;
