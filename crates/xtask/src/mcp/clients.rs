//! The official clients: what they are told to do, what they say, and what receipts are left.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};
use serde_json::json;

use super::edge;
use crate::output::say;
use crate::shell::{self, cargo};
use crate::steps::Outcome;
use crate::suites::drive::drive;
use crate::suites::folder::Folder;
use crate::suites::script::script;
use crate::suites::{Rig, chio, receipts};

/// The client in Rust, which is built and not installed.
pub(super) const RMCP: &str = "mcp/rmcp";
/// Short enough for a call of a second to lose its stream more than once.
pub(super) const ROTATION: &str = "300ms";

/// What every client does with the fixture, in this order.
const STEPS: [&str; 16] = [
    "connect",
    "tools",
    "echo",
    "structured",
    "denied",
    "sampling",
    "elicitation",
    "roots",
    "progress",
    "cancel",
    "after cancel",
    "reconnect",
    "resources",
    "prompts",
    "close",
    "calls",
];

/// The receipts that this leaves: of calls, then of what was asked and read on the way.
const RECEIPTS: [(&str, &str); 15] = [
    ("echo", "allow"),
    ("add", "allow"),
    ("read_file", "deny"),
    ("test_sampling", "allow"),
    ("test_elicitation", "allow"),
    ("ask_roots", "allow"),
    ("test_tool_with_progress", "allow"),
    ("slow", "cancelled"),
    ("echo", "allow"),
    ("test_reconnection", "allow"),
    ("create_message", "completed"),
    ("create_elicitation", "completed"),
    ("list_roots", "completed"),
    ("read_resource", "completed"),
    ("get_prompt", "completed"),
];
/// How many of them are of calls.
const CALLS: u64 = 10;

/// Runs a client against the fixture behind the edge, under the policy that users begin with.
pub(super) fn run(rig: &Rig, client: &str) -> Result<Vec<String>> {
    let mut program = program(rig, client)?;
    let folder = Folder::new()?;
    let fixture = folder.link(&rig.fixture)?;
    let chio = edge::serve(rig, &folder, "default", ROTATION, &[fixture.as_os_str()])?;
    let task = json!({
        "url": edge::url(&chio),
        "denied": {"tool": "read_file", "arguments": {"path": "/etc/shadow"}},
    });
    program.arg(task.to_string());
    let mut problems = drive(program, &STEPS, Some(CALLS))?;
    if !problems.is_empty() {
        say!("the last that `chio` said:\n{}", chio.complaints());
    }
    problems.extend(chio.end()?);
    problems
        .extend(receipts::problems(&chio::receipts(rig, &folder)?, &receipts::count(&RECEIPTS)));
    Ok(problems)
}

/// The command that runs a client, with what it is made of in place.
pub(super) fn program(rig: &Rig, client: &str) -> Result<Command> {
    if client == RMCP {
        return rmcp(rig);
    }
    let is_python = client.starts_with("mcp/python");
    let (shared, own) =
        if is_python { ("mcp/steps.py", "client.py") } else { ("mcp/steps.mjs", "client.mjs") };
    script(rig, client, &[shared, &format!("{client}/{own}")])
}

fn rmcp(rig: &Rig) -> Result<Command> {
    let target = rig.target.join("clients");
    let mut build = cargo(&["build", "--locked", "--manifest-path"]);
    build.arg(rig.source(RMCP).join("Cargo.toml")).arg("--target-dir").arg(&target);
    if shell::outcome(build)? != Outcome::Passed {
        bail!("the client cannot be built");
    }
    let program: PathBuf = target.join("debug/chio-rmcp-client");
    Ok(Command::new(program))
}

#[cfg(test)]
mod tests {
    use super::{CALLS, RECEIPTS};

    #[test]
    fn the_receipts_of_calls_are_as_many_as_the_calls() {
        let verdicts = ["allow", "deny", "cancelled"];
        let calls = RECEIPTS.iter().filter(|(_, how)| verdicts.contains(how)).count();
        assert_eq!(calls as u64, CALLS);
    }
}
