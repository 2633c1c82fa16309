//! The official clients: what they are told to do, what they say, and what receipts are left.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Rig;
use super::bounded;
use super::chio::{self, Chio};
use super::folder::Folder;
use super::receipts;
use crate::output::say;
use crate::shell::{self, cargo};
use crate::steps::Outcome;

const PATIENCE: Duration = Duration::from_secs(180);
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

/// One line of a client.
#[derive(Debug, Deserialize)]
struct Line {
    step: String,
    ok: bool,
    #[serde(default)]
    detail: Value,
}

/// Runs a client against the fixture behind the edge, under the policy that users begin with.
pub(super) fn run(rig: &Rig, client: &str) -> Result<Vec<String>> {
    let program = program(rig, client)?;
    let folder = Folder::new()?;
    let fixture = folder.link(&rig.fixture)?;
    let chio = Chio::start(rig, &folder, "default", ROTATION, &[fixture.as_os_str()])?;
    let task = json!({
        "url": chio.url(),
        "denied": {"tool": "read_file", "arguments": {"path": "/etc/shadow"}},
    });
    let mut problems = drive(program, &task, &STEPS, CALLS)?;
    if !problems.is_empty() {
        say!("the last that `chio` said:\n{}", chio.complaints());
    }
    problems.extend(chio.end()?);
    problems.extend(receipts::problems(&chio::receipts(rig, &folder)?, &RECEIPTS));
    Ok(problems)
}

/// The command that runs a client, with what it is made of in place.
pub(super) fn program(rig: &Rig, client: &str) -> Result<Command> {
    if client == "rmcp" {
        return rmcp(rig);
    }
    let (program, shared, script) = match client.split_once('-') {
        Some(("typescript", _)) => (rig.node(), "steps.mjs", "client.mjs"),
        _ => (rig.clients.join(client).join("venv/bin/python"), "steps.py", "client.py"),
    };
    // Beside what was installed, since that is where the scripts look for it.
    let place = rig.clients.join(client);
    std::fs::copy(rig.source(shared), place.join(shared))?;
    std::fs::copy(rig.source(client).join(script), place.join(script))?;
    let mut command = Command::new(program);
    command.env("PYTHONDONTWRITEBYTECODE", "1").arg(place.join(script));
    Ok(command)
}

fn rmcp(rig: &Rig) -> Result<Command> {
    let target = rig.target.join("clients");
    let mut build = cargo(&["build", "--locked", "--manifest-path"]);
    build.arg(rig.source("rmcp/Cargo.toml")).arg("--target-dir").arg(&target);
    if shell::outcome(build)? != Outcome::Passed {
        bail!("the client cannot be built");
    }
    let program: PathBuf = target.join("debug/chio-rmcp-client");
    Ok(Command::new(program))
}

/// Gives a client its task; answers what it did not do as it should.
pub(super) fn drive(
    mut program: Command,
    task: &Value,
    steps: &[&str],
    calls: u64,
) -> Result<Vec<String>> {
    program.arg(task.to_string());
    let ran = bounded::run(program, PATIENCE)?;
    let mut problems = judge(&ran.stdout, steps, calls);
    // Whatever goes wrong in a step is said by that step, unless the client itself is broken.
    if problems.is_empty() && !ran.is_success() || ran.status.is_none() {
        problems.push(format!("the client: {}", ran.describe()));
    }
    say!("{} steps", ran.stdout.lines().count());
    Ok(problems)
}

fn judge(stdout: &str, steps: &[&str], calls: u64) -> Vec<String> {
    let mut problems = Vec::new();
    let mut seen = Vec::new();
    for line in stdout.lines() {
        match serde_json::from_str::<Line>(line) {
            Ok(line) => seen.push(line),
            Err(_) => problems.push(format!("expected a step, found `{line}`")),
        }
    }
    let names: Vec<&str> = seen.iter().map(|line| line.step.as_str()).collect();
    if names != steps {
        problems.push(format!(
            "expected the steps {}, found {}",
            steps.join(", "),
            names.join(", ")
        ));
    }
    let bad = seen.iter().filter(|line| !line.ok);
    problems.extend(bad.map(|line| format!("{}: {}", line.step, line.detail)));
    let counted = seen.iter().find(|line| line.step == "calls").map(|line| &line.detail);
    if counted != Some(&json!(calls)) {
        problems.push(format!("expected {calls} calls, found {counted:?}"));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::{CALLS, RECEIPTS, judge};

    const GOOD: &str = r#"{"step":"echo","ok":true}
{"step":"calls","ok":true,"detail":1}"#;

    #[test]
    fn every_step_has_to_be_there_and_well() {
        let steps = ["echo", "calls"];
        assert!(judge(GOOD, &steps, 1).is_empty());
        for (said, expected) in [
            (GOOD.replacen("true", "false", 1), "echo: null"),
            (GOOD.replace("echo", "ping"), "expected the steps echo, calls, found ping, calls"),
            (format!("{GOOD}\nTraceback"), "expected a step, found `Traceback`"),
            (GOOD.replace(":1", ":2"), "expected 1 calls, found Some(Number(2))"),
        ] {
            assert_eq!(judge(&said, &steps, 1), [expected], "{said}");
        }
        assert_eq!(judge("", &steps, 1).len(), 2);
    }

    #[test]
    fn the_receipts_of_calls_are_as_many_as_the_calls() {
        let verdicts = ["allow", "deny", "cancelled"];
        let calls = RECEIPTS.iter().filter(|(_, how)| verdicts.contains(how)).count();
        assert_eq!(calls as u64, CALLS);
    }
}
