//! Clients and checks of ours that print a line for each step: what they say is held against what
//! they should.

use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use serde::Deserialize;
use serde_json::{Value, json};

use super::bounded;
use crate::output::say;

const PATIENCE: Duration = Duration::from_secs(180);
/// The step that tells how many calls there were.
const CALLS: &str = "calls";

/// One line of a client.
#[derive(Debug, Deserialize)]
struct Line {
    step: String,
    ok: bool,
    #[serde(default)]
    detail: Value,
}

/// Runs a client; answers what it did not do as it should.
pub(crate) fn drive(program: Command, steps: &[&str], calls: Option<u64>) -> Result<Vec<String>> {
    let ran = bounded::run(program, PATIENCE)?;
    let mut problems = judge(&ran.stdout, steps, calls);
    // Whatever goes wrong in a step is said by that step, unless the client itself is broken.
    if problems.is_empty() && !ran.is_success() || ran.status.is_none() {
        problems.push(format!("the client: {}", ran.describe()));
    }
    say!("{} steps", ran.stdout.lines().count());
    Ok(problems)
}

fn judge(stdout: &str, steps: &[&str], calls: Option<u64>) -> Vec<String> {
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
    let counted = seen.iter().find(|line| line.step == CALLS).map(|line| &line.detail);
    if counted != calls.map(|calls| json!(calls)).as_ref() {
        problems.push(format!("expected {calls:?} calls, found {counted:?}"));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::judge;

    const GOOD: &str = r#"{"step":"echo","ok":true}
{"step":"calls","ok":true,"detail":1}"#;

    #[test]
    fn every_step_has_to_be_there_and_well() {
        let steps = ["echo", "calls"];
        assert!(judge(GOOD, &steps, Some(1)).is_empty());
        for (said, expected) in [
            (GOOD.replacen("true", "false", 1), "echo: null"),
            (GOOD.replace("echo", "ping"), "expected the steps echo, calls, found ping, calls"),
            (format!("{GOOD}\nTraceback"), "expected a step, found `Traceback`"),
            (GOOD.replace(":1", ":2"), "expected Some(1) calls, found Some(Number(2))"),
        ] {
            assert_eq!(judge(&said, &steps, Some(1)), [expected], "{said}");
        }
        assert_eq!(judge("", &steps, Some(1)).len(), 2);
        assert_eq!(judge(GOOD, &steps, None).len(), 1);
    }
}
