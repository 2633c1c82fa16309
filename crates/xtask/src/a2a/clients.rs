//! The official clients, and the checks of ours that use none: what they say, and what receipts are
//! left.

use std::process::Command;

use anyhow::Result;

use super::edge::{self, Door, Skills};
use super::expected::Expected;
use crate::output::say;
use crate::suites::drive::drive;
use crate::suites::folder::Folder;
use crate::suites::script::script;
use crate::suites::{Rig, chio, receipts};

/// What a program is run against.
struct At {
    skills: Skills,
    door: Door,
    mount: &'static str,
}

/// Where the clients go.
const CLIENTS: At = At { skills: Skills::Several, door: Door::Token, mount: "" };

/// A client in Python.
pub(super) fn python(rig: &Rig, client: &str) -> Result<Vec<String>> {
    let program = script(rig, client, &["a2a/steps.py", &format!("{client}/client.py")])?;
    run(rig, program, client.trim_start_matches("a2a/"), &CLIENTS)
}

/// A client in JavaScript.
pub(super) fn javascript(rig: &Rig, client: &str) -> Result<Vec<String>> {
    let program = script(rig, client, &["a2a/steps.mjs", &format!("{client}/client.mjs")])?;
    run(rig, program, client.trim_start_matches("a2a/"), &CLIENTS)
}

/// What the official test kit demands, which has nothing to show at the door.
pub(super) fn strict(rig: &Rig, python: &str) -> Result<Vec<String>> {
    let program = script(rig, python, &["a2a/wire.py", "a2a/strict.py"])?;
    let at = At { skills: Skills::One, door: Door::Anyone, mount: "/strict" };
    run(rig, program, "strict", &at)
}

/// What the seed documents say.
pub(super) fn seed(rig: &Rig, python: &str) -> Result<Vec<String>> {
    let program = script(rig, python, &["a2a/wire.py", "a2a/seed.py"])?;
    run(rig, program, "seed", &At { skills: Skills::Several, door: Door::Anyone, mount: "" })
}

/// Runs a program against an edge.
fn run(rig: &Rig, mut program: Command, part: &str, at: &At) -> Result<Vec<String>> {
    let expected = Expected::of(rig, part)?;
    let folder = Folder::new()?;
    let chio = edge::serve(rig, &folder, (at.skills, at.door))?;
    program.arg(format!("{}{}", edge::url(&chio), at.mount));
    if at.door == Door::Token {
        program.env("CHIO_BEARER", edge::token(&folder)?);
    }
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
