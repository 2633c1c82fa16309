//! MCP over HTTP: a real listener, a real kernel with a tool server, and nothing between them but the
//! edge.
#![cfg(test)]

mod approvals;
mod batches;
mod cancel;
mod capability;
mod chunks;
mod client_faults;
mod fidelity;
mod guards;
mod identity;
mod initialize;
mod lifecycle;
mod nested;
mod notices;
mod pages;
mod receipts;
mod requests;
mod streams;
mod tasks;
mod through;
mod upstream_faults;
mod versions;
mod world;
