//! MCP end to end: the built binary, real clients' messages, a real server behind it.
#![cfg(test)]

mod access;
mod client;
mod config;
mod credentials;
mod doctor;
mod messages;
mod readme;
mod serve;
mod starts;
mod stdio;
mod support;
mod up;
mod wrapped;
