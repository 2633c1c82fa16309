//! What the commands share that run official programs against the built binary, part by part.

pub(crate) mod bounded;
pub(crate) mod chio;
pub(crate) mod drive;
pub(crate) mod folder;
mod install;
pub(crate) mod receipts;
pub(crate) mod script;

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Result;

use crate::output::say;
use crate::shell::cargo;
use crate::steps::{Outcome, Steps};
use crate::{Usage, tree};

/// With an example, which makes the features those that tests are built with: nothing is built twice.
const BUILD: &[&str] =
    &["build", "--workspace", "--bin", "chio", "--bin", "mcp-fixture", "--example", "throughput"];

/// Where everything is.
pub(crate) struct Rig {
    pub(crate) chio: PathBuf,
    pub(crate) fixture: PathBuf,
    pub(crate) target: PathBuf,
    root: PathBuf,
}

/// One thing to run.
pub(crate) struct Part {
    pub(crate) name: &'static str,
    /// What has to be installed for it, by the folder below `clients`.
    pub(crate) needs: &'static [&'static str],
    /// Answers what went wrong.
    pub(crate) run: fn(&Rig) -> Result<Vec<String>>,
}

/// Runs the named parts, or all of them; answers whether all is well.
pub(crate) fn run(parts: &[Part], arguments: &[String]) -> Result<bool> {
    let known: Vec<&str> = parts.iter().map(|part| part.name).collect();
    if let Some(unknown) = arguments.iter().find(|it| !known.contains(&it.as_str())) {
        let known = known.join(", ");
        return Err(Usage(format!("unknown part `{unknown}`, expected some of {known}")).into());
    }
    let wanted = |part: &str| arguments.is_empty() || arguments.iter().any(|it| it == part);
    let mut steps = Steps::default();
    if steps.command("build the binaries", cargo(BUILD)) {
        run_parts(&mut steps, parts, wanted);
    }
    say!("\nsummary");
    for row in steps.table() {
        say!("  {row}");
    }
    Ok(steps.count().1 == 0)
}

/// All parts, as one step of a longer run, which has built the binaries with its tests: built by
/// themselves they would have other features, and so would all that they depend on.
pub(crate) fn as_step(parts: &[Part]) -> Outcome {
    let mut steps = Steps::default();
    run_parts(&mut steps, parts, |_| true);
    for row in steps.table() {
        say!("  {row}");
    }
    judge(&steps)
}

/// Installs what parts need, beside other work; the parts tell what could not be installed.
pub(crate) fn install(parts: impl Iterator<Item = &'static Part>) {
    let rig = Rig::new();
    let needs: BTreeSet<&str> = parts.flat_map(|part| part.needs).copied().collect();
    for need in needs {
        let _ = install::ready(&rig, need);
    }
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

fn run_parts(steps: &mut Steps, parts: &[Part], wanted: impl Fn(&str) -> bool) {
    let rig = Rig::new();
    for part in parts.iter().filter(|part| wanted(part.name)) {
        steps.run(part.name, || part.outcome(&rig));
    }
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
        let (root, target) = (tree::root(), tree::target());
        Self { chio: tree::built("chio"), fixture: tree::built("mcp-fixture"), target, root }
    }

    /// The Node.js that runs what is written in JavaScript.
    pub(crate) fn node(&self) -> PathBuf {
        self.installed("mcp/node").join("node_modules/node/bin/node")
    }

    /// The Python that runs what is installed in a folder.
    pub(crate) fn python(&self, name: &str) -> PathBuf {
        self.installed(name).join("venv/bin/python")
    }

    /// Where something of others is installed.
    pub(crate) fn installed(&self, name: &str) -> PathBuf {
        self.root.join(".clients").join(name)
    }

    /// A file of ours about a client or a suite.
    pub(crate) fn source(&self, path: &str) -> PathBuf {
        self.root.join("clients").join(path)
    }
}

#[cfg(test)]
mod tests {
    use super::judge;
    use crate::steps::{Outcome, Steps};
    use crate::{a2a, faithful, mcp};

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
        let parts = mcp::PARTS.iter().chain(a2a::PARTS).chain(faithful::PARTS);
        for need in parts.flat_map(|part| part.needs) {
            assert!(crate::tree::root().join("clients").join(need).is_dir(), "{need}");
        }
    }
}
