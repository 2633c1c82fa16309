//! What the tests of every crate share: golden data, generators, decoders to fuzz.
#![expect(clippy::expect_used, reason = "a broken fixture must fail the test that asked for it")]

pub mod decoders;
#[cfg(feature = "edge")]
pub mod edge;
#[cfg(feature = "kernel")]
pub mod embedded;
pub mod generate;
pub mod golden;
#[cfg(feature = "kernel")]
pub mod guard;
#[cfg(feature = "policy")]
mod judging;
pub mod log;
pub mod mcp;
pub mod mutate;
pub mod process;
pub mod receipts;
mod skips;
pub mod tamper;
pub mod token;

/// The kernel, for tests of crates that must not depend on it.
#[cfg(feature = "kernel")]
pub use chio_kernel as kernel;

pub use skips::skip;

use chio_core::crypto::Keypair;

/// The key of the seed that repeats one byte, as the golden data name them.
#[must_use]
pub fn key(seed: u8) -> Keypair {
    Keypair::from_seed(&[seed; 32])
}
