//! What every store promises, asked of each of them.
#![cfg(test)]

mod budgets;
mod intents;
mod logs;
mod queries;
mod revocations;
mod slots;
mod support;
mod tokens;
