//! Real children behind a real kernel.
#![cfg(test)]

mod calls;
mod faults;
mod library;
mod processes;
mod questions;
mod sessions;
mod support;
