//! `cargo xtask test`: everything that must hold before a merge.

use std::fs;
use std::path::PathBuf;
use std::thread;

use anyhow::{Context, Result};

use crate::output::say;
use crate::requirements::Coverage;
use crate::shell::{self, cargo};
use crate::steps::{Outcome, Steps};
use crate::{a2a, check, deps, fuzz, mcp, no_arguments, suites, tree};

const BUILD: &[&str] =
    &["test", "--workspace", "--lib", "--bins", "--tests", "--examples", "--no-run"];
const TESTS: &[&str] =
    &["test", "--workspace", "--lib", "--bins", "--tests", "--examples", "--no-fail-fast"];
const DOC_TESTS: &[&str] = &["test", "--workspace", "--doc", "--no-fail-fast"];
const DOCS: &[&str] = &["doc", "--workspace", "--no-deps"];
/// Of the whole workspace, as it was built: a part of it would have other features, and be built anew.
const BENCHES: &[&str] = &[
    "test",
    "--workspace",
    "--bench",
    "ratios",
    "--bench",
    "road",
    "--bench",
    "evaluate",
    "--bench",
    "rules",
    "--",
    "--test",
];

/// Names the file to which a test that cannot run here appends a line `name: reason`.
const SKIPS: &str = "CHIO_TEST_SKIPS";

pub(crate) fn run(arguments: &[String]) -> Result<bool> {
    no_arguments(arguments)?;
    let skips = fresh_skips()?;
    let mut steps = Steps::default();

    steps.command("format", cargo(check::FORMAT));
    steps.run("requirements", requirements);
    steps.run("dependencies", deps::check);
    steps.run("advisories", deps::advisories);
    steps.run("node", node);

    // Packages come over the network while the compiler is at work.
    let installing = thread::spawn(|| suites::install(mcp::PARTS.iter().chain(a2a::PARTS)));
    let built = steps.command("build", cargo(BUILD));
    let mut docs = cargo(DOCS);
    docs.env("RUSTDOCFLAGS", "-D warnings");
    let rest = [
        ("clippy", cargo(check::CLIPPY)),
        ("tests", cargo(TESTS)),
        ("doc tests", cargo(DOC_TESTS)),
        ("docs", docs),
        ("fuzz", fuzz::smoke()),
        ("benches", cargo(BENCHES)),
    ];
    for (name, mut command) in rest {
        if built {
            command.env(SKIPS, &skips);
            steps.command(name, command);
        } else {
            steps.skip(name, "the build failed");
        }
    }
    let _ = installing.join();
    for (name, parts) in [("mcp suites", mcp::PARTS), ("a2a suites", a2a::PARTS)] {
        if built {
            steps.run(name, || Ok(suites::as_step(parts)));
        } else {
            steps.skip(name, "the build failed");
        }
    }
    sum_up(&steps, &fs::read_to_string(&skips)?);
    Ok(steps.count().1 == 0)
}

/// An empty file for the tests that skip.
fn fresh_skips() -> Result<PathBuf> {
    let target = tree::target();
    let skips = target.join("test-skips.txt");
    fs::create_dir_all(&target).and_then(|()| fs::write(&skips, "")).context("no target folder")?;
    Ok(skips)
}

/// The requirements must be readable and known; that some are not covered is not a failure.
fn requirements() -> Result<Outcome> {
    let coverage = Coverage::read(&tree::root())?;
    coverage.print_documents();
    coverage.print_problems();
    Ok(coverage.outcome())
}

/// Some tests ask Node.js what JavaScript would do.
fn node() -> Result<Outcome> {
    if let Some(node) = shell::find("node") {
        say!("found {}", node.display());
        return Ok(Outcome::Passed);
    }
    let skip = |reason: &str| Ok(Outcome::Skipped(format!("Node.js is not installed, {reason}")));
    if shell::find("apt-get").is_none() {
        return skip("and there is no apt-get to install it with");
    }
    if shell::read(shell::command("id", &["-u"]))?.trim() != "0" {
        return skip("and only root can install it");
    }
    say!("Node.js is not installed; installing it with apt-get");
    for arguments in [&["update"][..], &["install", "-y", "--no-install-recommends", "nodejs"]] {
        let mut command = shell::command("apt-get", arguments);
        command.env("DEBIAN_FRONTEND", "noninteractive");
        if shell::outcome(command)? != Outcome::Passed {
            return skip("and apt-get could not install it");
        }
    }
    match shell::find("node") {
        Some(node) => say!("installed {}", node.display()),
        None => return skip("and apt-get installed something without `node`"),
    }
    Ok(Outcome::Passed)
}

/// Prints what ran, what did not, and the totals as the last line.
fn sum_up(steps: &Steps, skips: &str) {
    say!("\nsummary");
    for row in steps.table() {
        say!("  {row}");
    }
    say!("\nskipped");
    let mut skipped = steps.skipped();
    skipped.extend(test_skips(skips));
    if skipped.is_empty() {
        say!("  nothing");
    }
    for line in skipped {
        say!("  {line}");
    }
    let (passed, failed, skipped) = steps.count();
    say!("\n{passed} passed, {failed} failed, {skipped} skipped");
}

/// What the tests wrote, each line once: a test may skip in several runs.
fn test_skips(skips: &str) -> Vec<String> {
    let mut lines: Vec<String> =
        skips.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
    lines.sort();
    lines.dedup();
    lines
}

#[cfg(test)]
mod tests {
    use super::test_skips;

    #[test]
    fn a_test_that_skips_twice_is_listed_once() {
        let lines = test_skips("b: no node\n\na: no store\nb: no node\n");
        assert_eq!(lines, ["a: no store", "b: no node"]);
    }
}
