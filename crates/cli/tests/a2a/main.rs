//! A2A end to end: the built binary on both sides of the protocol, and between it and MCP.
#![cfg(test)]

mod agent;
mod edge;
mod hostile;
mod killed;
mod lineage;
mod support;
mod surfaces;
