//! The official clients, and the checks of ours that use none: what they say, and what receipts are
//! left.

use std::process::Command;

use anyhow::Result;

use super::edge::{self, Skills};
use super::expected::Expected;
use crate::output::say;
use crate::suites::drive::drive;
use crate::suites::folder::Folder;
use crate::suites::script::script;
use crate::suites::{Rig, chio, receipts};

/// A client in Python.
pub(super) fn python(rig: &Rig, client: &str) -> Result<Vec<String>> {
    let program = script(rig, client, &["a2a/steps.py", &format!("{client}/client.py")])?;
    run(rig, program, client.trim_start_matches("a2a/"), (Skills::Several, ""))
}

/// A client in JavaScript.
pub(super) fn javascript(rig: &Rig, client: &str) -> Result<Vec<String>> {
    let program = script(rig, client, &["a2a/steps.mjs", &format!("{client}/client.mjs")])?;
    run(rig, program, client.trim_start_matches("a2a/"), (Skills::Several, ""))
}

/// What the official test kit demands.
pub(super) fn strict(rig: &Rig, python: &str) -> Result<Vec<String>> {
    let program = script(rig, python, &["a2a/wire.py", "a2a/strict.py"])?;
    run(rig, program, "strict", (Skills::One, "/strict"))
}

/// What the seed documents say.
pub(super) fn seed(rig: &Rig, python: &str) -> Result<Vec<String>> {
    let program = script(rig, python, &["a2a/wire.py", "a2a/seed.py"])?;
    run(rig, program, "seed", (Skills::Several, ""))
}

/// Runs a program against an edge with these skills, at one of its mounts.
fn run(
    rig: &Rig,
    mut program: Command,
    part: &str,
    (skills, mount): (Skills, &str),
) -> Result<Vec<String>> {
    let expected = Expected::of(rig, part)?;
    let folder = Folder::new()?;
    let chio = edge::serve(rig, &folder, skills)?;
    program.arg(format!("{}{mount}", edge::url(&chio)));
    let steps: Vec<&str> = expected.steps.iter().map(String::as_str).collect();
    let mut problems = drive(program, &steps, expected.calls)?;
    if !problems.is_empty() {
        say!("the last that `chio` said:\n{}", chio.complaints());
    }
    problems.extend(chio.end()?);
    if let Some(wanted) = expected.receipts() {
        problems.extend(receipts::problems(&chio::receipts(rig, &folder)?, &wanted));
    }
    Ok(problems)
}
