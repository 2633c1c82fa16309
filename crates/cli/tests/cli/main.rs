//! The commands end to end, through the built binary.
#![cfg(test)]

mod canonicalize;
mod capability;
mod delegation;
mod golden;
mod keys;
mod manifest;
mod messages;
mod policy;
mod receipt;
mod support;
mod tour;
mod usage;
