//! Real agents on ports of their own, behind a real kernel.
#![cfg(test)]

mod agent;
mod auth;
mod discovery;
mod hostile;
mod lineage;
mod mutual;
mod oauth;
mod operations;
mod partner;
mod provider;
mod server;
mod streams;
mod support;
mod tasks;
mod tls;
