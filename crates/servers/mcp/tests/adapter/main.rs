//! Real children behind a real kernel.
#![cfg(test)]

mod calls;
mod faults;
mod processes;
mod provider;
mod questions;
mod sessions;
mod support;
