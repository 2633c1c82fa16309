//! The hosted MCP transport from outside: the built binary, bytes on sockets, and everything that
//! clients and servers do wrong.
#![cfg(test)]

mod approvals;
mod cancel;
mod capability;
mod chunks;
mod client_faults;
mod http;
mod identity;
mod initialize;
mod lifecycle;
mod nested;
mod notices;
mod receipts;
mod requests;
mod session;
mod shutdown;
mod streams;
mod support;
mod tasks;
mod upstream_faults;
