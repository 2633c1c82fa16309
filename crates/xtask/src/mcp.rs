//! `cargo xtask mcp`: the official MCP suites, clients and servers against the built binary.

mod bounded;
mod chio;
mod clients;
mod conformance;
mod folder;
mod install;
mod receipts;
mod upstreams;

use std::path::PathBuf;

use anyhow::Result;

use crate::output::say;
use crate::shell::cargo;
use crate::steps::{Outcome, Steps};
use crate::{Usage, tree};

const BUILD: &[&str] =
    &["build", "-p", "chio-cli", "-p", "chio-testkit", "--bin", "chio", "--bin", "mcp-fixture"];

/// Where everything is.
struct Rig {
    chio: PathBuf,
    fixture: PathBuf,
    /// Where clients and suites are installed, each in a folder of its own.
    clients: PathBuf,
    target: PathBuf,
}

/// One thing to run.
struct Part {
    name: &'static str,
    /// What has to be installed for it.
    needs: &'static [&'static str],
    /// Answers what went wrong.
    run: fn(&Rig) -> Result<Vec<String>>,
}

const PARTS: &[Part] = &[
    Part {
        name: "conformance-0.2",
        needs: &["node", "conformance-0.2"],
        run: |rig| conformance::run(rig, "conformance-0.2", &["--requirements", "2025-11-25"]),
    },
    Part {
        name: "conformance-0.1",
        needs: &["node", "conformance-0.1"],
        run: |rig| conformance::run(rig, "conformance-0.1", &["--suite", "all"]),
    },
    Part {
        name: "typescript-1",
        needs: &["node", "typescript-1"],
        run: |rig| clients::run(rig, "typescript-1"),
    },
    Part {
        name: "typescript-2",
        needs: &["node", "typescript-2"],
        run: |rig| clients::run(rig, "typescript-2"),
    },
    Part { name: "python-1", needs: &["python-1"], run: |rig| clients::run(rig, "python-1") },
    Part { name: "python-2", needs: &["python-2"], run: |rig| clients::run(rig, "python-2") },
    Part { name: "rmcp", needs: &[], run: |rig| clients::run(rig, "rmcp") },
    Part {
        name: "server-everything",
        needs: &["node", "servers", "typescript-2"],
        run: upstreams::everything,
    },
    Part {
        name: "server-filesystem",
        needs: &["node", "servers", "python-2"],
        run: upstreams::filesystem,
    },
];

pub(crate) fn run(arguments: &[String]) -> Result<bool> {
    let known: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
    if let Some(unknown) = arguments.iter().find(|it| !known.contains(&it.as_str())) {
        let known = known.join(", ");
        return Err(Usage(format!("unknown part `{unknown}`, expected some of {known}")).into());
    }
    let steps = run_parts(|part| arguments.is_empty() || arguments.iter().any(|it| it == part));
    say!("\nsummary");
    for row in steps.table() {
        say!("  {row}");
    }
    Ok(steps.count().1 == 0)
}

/// All parts, as one step of a longer run.
pub(crate) fn suites() -> Result<Outcome> {
    let steps = run_parts(|_| true);
    for row in steps.table() {
        say!("  {row}");
    }
    Ok(judge(&steps))
}

fn judge(steps: &Steps) -> Outcome {
    let (passed, failed, skipped) = steps.count();
    if failed > 0 {
        Outcome::Failed(format!("{failed} of {} parts failed", passed + failed + skipped))
    } else if skipped > 0 {
        Outcome::Skipped(steps.skipped().join("; "))
    } else {
        Outcome::Passed
    }
}

fn run_parts(wanted: impl Fn(&str) -> bool) -> Steps {
    let mut steps = Steps::default();
    if !steps.command("build for mcp", cargo(BUILD)) {
        return steps;
    }
    let rig = Rig::new();
    for part in PARTS.iter().filter(|part| wanted(part.name)) {
        steps.run(part.name, || part.outcome(&rig));
    }
    steps
}

impl Part {
    fn outcome(&self, rig: &Rig) -> Result<Outcome> {
        for need in self.needs {
            if let Some(reason) = install::ready(rig, need)? {
                return Ok(Outcome::Skipped(reason));
            }
        }
        let problems = (self.run)(rig).unwrap_or_else(|error| vec![format!("{error:#}")]);
        for problem in &problems {
            say!("  {problem}");
        }
        Ok(match problems.as_slice() {
            [] => Outcome::Passed,
            [only] => Outcome::Failed(only.lines().next().unwrap_or_default().to_owned()),
            several => Outcome::Failed(format!("{} problems", several.len())),
        })
    }
}

impl Rig {
    fn new() -> Self {
        let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
        // Cargo takes a relative folder from where it runs, which for our steps is the root.
        let target = tree::root().join(target);
        Self {
            chio: target.join("debug/chio"),
            fixture: target.join("debug/mcp-fixture"),
            clients: tree::root().join(".clients/mcp"),
            target,
        }
    }

    fn node(&self) -> PathBuf {
        self.clients.join("node/node_modules/node/bin/node")
    }

    /// A file of ours about a client or a suite.
    fn source(&self, path: &str) -> PathBuf {
        tree::root().join("clients/mcp").join(path)
    }
}

#[cfg(test)]
mod tests {
    use super::{PARTS, judge};
    use crate::steps::{Outcome, Steps};

    fn outcome(outcomes: Vec<Outcome>) -> Outcome {
        let mut steps = Steps::default();
        for outcome in outcomes {
            steps.run("part", || Ok(outcome));
        }
        judge(&steps)
    }

    #[test]
    fn a_failure_counts_more_than_a_skip_and_a_skip_more_than_a_pass() {
        let skipped = || Outcome::Skipped("no npm".to_owned());
        let failed = || Outcome::Failed("a".to_owned());
        assert_eq!(outcome(vec![Outcome::Passed, Outcome::Passed]), Outcome::Passed);
        let expected = Outcome::Skipped("part: no npm".to_owned());
        assert_eq!(outcome(vec![Outcome::Passed, skipped()]), expected);
        let expected = Outcome::Failed("1 of 3 parts failed".to_owned());
        assert_eq!(outcome(vec![skipped(), failed(), Outcome::Passed]), expected);
    }

    #[test]
    fn whatever_a_part_needs_has_a_folder_here() {
        for need in PARTS.iter().flat_map(|part| part.needs) {
            assert!(crate::tree::root().join("clients/mcp").join(need).is_dir(), "{need}");
        }
    }
}
