//! `cargo xtask reference`: the reference page of policies, written from the guards themselves.

use anyhow::Result;

use crate::no_arguments;
use crate::shell::{cargo, outcome};
use crate::steps::Outcome;

/// The test that compares the page, and writes it when it is told to.
const TEST: &[&str] = &["test", "-q", "--workspace", "--test", "guards", "reference"];

pub(crate) fn run(arguments: &[String]) -> Result<bool> {
    no_arguments(arguments)?;
    let mut command = cargo(TEST);
    command.env("CHIO_WRITE_REFERENCE", "1");
    Ok(outcome(command)? == Outcome::Passed)
}
