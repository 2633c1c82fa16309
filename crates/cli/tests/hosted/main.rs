//! The hosted MCP transport from outside: the built binary, its processes and their memory, its
//! options and its commands. What the edge itself does is tested in its own crate.
#![cfg(test)]

mod approvals;
mod capability;
mod client_faults;
mod identity;
mod lifecycle;
mod long_judgements;
mod options;
mod own_files;
mod receipts;
mod requests;
mod server_words;
mod shutdown;
mod support;
mod through;
mod unknown_clients;
mod upstream_faults;
