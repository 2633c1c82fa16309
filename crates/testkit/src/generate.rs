//! Random but lawful objects, for property tests.
//!
//! Names come from small sets, so that grants, patterns and constraints meet often enough.

mod json;
mod manifest;
mod receipt;
mod scope;
mod token;

use proptest::test_runner::{Config, RngSeed};

pub use json::{json, text};
pub use manifest::{manifest, sample_manifest};
pub use receipt::{child_receipt, receipt};
pub use scope::{narrower, near, scope, steps, tool_grant};
pub use token::token;

/// The seed of every run, unless `CHIO_TEST_SEED` gives another or says `random`: a test that
/// passed passes again.
const SEED: u64 = 2026;

/// How a property test is run: on this many cases, from the seed.
#[must_use]
pub fn cases(cases: u32) -> Config {
    let rng_seed = match std::env::var("CHIO_TEST_SEED").as_deref() {
        Ok("random") => RngSeed::Random,
        Ok(seed) => RngSeed::Fixed(seed.parse().unwrap_or(SEED)),
        Err(_) => RngSeed::Fixed(SEED),
    };
    // A condition that hardly ever holds makes a property empty: then the run fails.
    let max_global_rejects = cases.saturating_mul(8);
    Config { cases, rng_seed, max_global_rejects, failure_persistence: None, ..Config::default() }
}
