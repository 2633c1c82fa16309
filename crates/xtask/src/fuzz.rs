//! `cargo xtask fuzz`: runs the fuzzer of `chio-testkit`, which knows the targets and the flags.

use anyhow::Result;

use crate::shell::cargo;
use crate::steps::Outcome;

/// Two seconds for each target, built as the tests are: enough to see that all of them still run.
pub(crate) const SMOKE: &[&str] =
    &["run", "-p", "chio-testkit", "--bin", "fuzz", "--", "--seconds", "2"];

pub(crate) fn run(arguments: &[String]) -> Result<bool> {
    let mut command = cargo(&["run", "--release", "-p", "chio-testkit", "--bin", "fuzz", "--"]);
    command.args(arguments);
    Ok(crate::shell::outcome(command)? == Outcome::Passed)
}
