//! `cargo xtask check`: what to run before every commit.

use anyhow::Result;

use crate::no_arguments;
use crate::output::say;
use crate::shell::cargo;
use crate::steps::Steps;

pub(crate) const FORMAT: &[&str] = &["fmt", "--all", "--check"];
pub(crate) const CLIPPY: &[&str] =
    &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
const UNIT_TESTS: &[&str] = &["test", "--workspace", "--lib", "--bins"];

pub(crate) fn run(arguments: &[String]) -> Result<bool> {
    no_arguments(arguments)?;
    let mut steps = Steps::default();
    for (name, step) in [("format", FORMAT), ("clippy", CLIPPY), ("unit tests", UNIT_TESTS)] {
        if !steps.command(name, cargo(step)) {
            say!("\nstopped at {name}");
            return Ok(false);
        }
    }
    say!("\nall is well");
    Ok(true)
}
