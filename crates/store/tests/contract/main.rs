//! What every store promises, asked of each of them.
#![cfg(test)]

mod approvals;
mod budgets;
mod intents;
mod kept_tasks;
mod logs;
mod proofs;
mod queries;
mod revocations;
mod slots;
mod support;
mod tasks;
mod tokens;
