//! The one road, end to end, on a store in memory: every way that a call can end, what its receipt
//! says then, and what is durable at each step.
#![cfg(test)]

mod allow;
mod approvals;
mod audit;
mod budgets;
mod bundle;
mod cache;
mod call_chain;
mod delegation;
mod denials;
mod endings;
mod governed;
mod guards;
mod handle;
mod intents;
mod log;
mod logged;
mod money;
mod named;
mod onward;
mod permit;
mod policy_change;
mod possession;
mod presented;
mod questions;
mod reads;
mod recovery;
mod redaction;
mod review;
mod streams;
mod subscribers;
mod support;
mod tasks;
