//! The conformance suite, and what each of its scenarios has to come to.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::edge;
use crate::output::say;
use crate::suites::Rig;
use crate::suites::bounded::{self, tail};
use crate::suites::folder::Folder;

const PATIENCE: Duration = Duration::from_secs(300);
/// The suite takes up a stream once: the first has to end before the second that the fixture's
/// `test_reconnection` takes is over, and the next one after it.
const ROTATION: &str = "700ms";
const PROGRAM: &str = "node_modules/@modelcontextprotocol/conformance/dist/index.js";

/// What a scenario comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Pass,
    Warning,
    Failure,
}

/// What every scenario has to come to; none may be missing, and none may be new.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    passes: BTreeSet<String>,
    warnings: BTreeSet<String>,
    failures: BTreeSet<String>,
}

/// One thing that a scenario looked at.
#[derive(Debug, Deserialize)]
struct Check {
    id: String,
    status: String,
    #[serde(rename = "errorMessage")]
    error: Option<String>,
}

/// Each scenario with what it looked at.
type Scenarios = BTreeMap<String, Vec<Check>>;

/// Runs one release of the suite against the fixture behind the edge.
pub(super) fn run(rig: &Rig, release: &str, arguments: &[&str]) -> Result<Vec<String>> {
    run_with(rig, release, arguments, &[])
}

/// The same against a fixture that all sessions share.
pub(super) fn run_shared(rig: &Rig, release: &str, arguments: &[&str]) -> Result<Vec<String>> {
    run_with(rig, release, arguments, &["--shared", "--no-late-messages"])
}

fn run_with(rig: &Rig, release: &str, arguments: &[&str], options: &[&str]) -> Result<Vec<String>> {
    let folder = Folder::new()?;
    let fixture = folder.link(&rig.fixture)?;
    let upstream = [fixture.as_os_str()];
    let chio = edge::serve_with(rig, &folder, options, ("permissive", ROTATION), &upstream)?;
    let mut suite = Command::new(rig.node());
    suite.arg(rig.installed(release).join(PROGRAM));
    suite.args(["server", "--url", &edge::url(&chio)]).args(arguments);
    suite.arg("-o").arg(folder.path("results")).current_dir(folder.root());
    let ran = bounded::run(suite, PATIENCE)?;

    let expected = fs::read_to_string(rig.source(release).join("expected.toml"))?;
    let expected: Expected = toml::from_str(&expected).context("expected.toml")?;
    let scenarios = read(&folder.path("results"))?;
    let mut problems = compare(&scenarios, &expected);
    let checks = scenarios.values().flatten().filter(|check| check.status == "SUCCESS").count();
    say!("{} scenarios, {checks} checks passed", scenarios.len());
    if ran.status.is_none() {
        problems.push(format!("the suite took too long\n{}", tail(&ran.stdout, 10)));
    }
    if !problems.is_empty() {
        say!("the last that `chio` said:\n{}", chio.complaints());
    }
    problems.extend(chio.end()?);
    Ok(problems)
}

/// The suite leaves a folder for each scenario, named `server-NAME-TIME`.
fn read(results: &Path) -> Result<Scenarios> {
    let mut scenarios = Scenarios::new();
    for entry in fs::read_dir(results).into_iter().flatten() {
        let entry = entry?;
        let Some(name) = scenario(&entry.file_name().to_string_lossy()) else { continue };
        let checks = fs::read_to_string(entry.path().join("checks.json"))?;
        let checks = serde_json::from_str(&checks).with_context(|| format!("checks of {name}"))?;
        scenarios.insert(name, checks);
    }
    Ok(scenarios)
}

/// The name of the scenario in the name of a folder: a time with five dashes comes behind it.
fn scenario(folder: &str) -> Option<String> {
    folder.strip_prefix("server-")?.rsplitn(7, '-').nth(6).map(str::to_owned)
}

fn compare(scenarios: &Scenarios, expected: &Expected) -> Vec<String> {
    let lists = [
        (&expected.passes, Verdict::Pass),
        (&expected.warnings, Verdict::Warning),
        (&expected.failures, Verdict::Failure),
    ];
    let mut problems = Vec::new();
    for (name, wanted) in
        lists.iter().flat_map(|(list, it)| list.iter().map(move |name| (name, *it)))
    {
        match scenarios.get(name) {
            None => problems.push(format!("{name}: expected to run, did not")),
            Some(checks) if verdict(checks) == wanted => {}
            Some(checks) => {
                let (found, said) = (verdict(checks), complaints(checks));
                problems.push(format!("{name}: expected {wanted:?}, found {found:?}{said}"));
            }
        }
    }
    let listed = |name: &String| lists.iter().any(|(list, _)| list.contains(name));
    let new = scenarios.keys().filter(|name| !listed(name));
    problems.extend(new.map(|name| format!("{name}: ran and is not in expected.toml")));
    problems
}

/// A scenario that looked at nothing has not passed.
fn verdict(checks: &[Check]) -> Verdict {
    let has = |status: &str| checks.iter().any(|check| check.status == status);
    if has("FAILURE") {
        Verdict::Failure
    } else if has("WARNING") || has("SKIPPED") {
        Verdict::Warning
    } else if has("SUCCESS") {
        Verdict::Pass
    } else {
        Verdict::Failure
    }
}

fn complaints(checks: &[Check]) -> String {
    let bad = checks.iter().filter(|check| !matches!(check.status.as_str(), "SUCCESS" | "INFO"));
    let line = |check: &Check| {
        format!("\n    {} {}: {}", check.status, check.id, check.error.as_deref().unwrap_or("-"))
    };
    bad.map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::{Check, Expected, Scenarios, Verdict, compare, scenario, verdict};

    fn checks(statuses: &str) -> Vec<Check> {
        let check = |status: &str| Check {
            id: "c".to_owned(),
            status: status.to_owned(),
            error: Some("why".to_owned()),
        };
        statuses.split_whitespace().map(check).collect()
    }

    #[test]
    fn a_scenario_is_as_good_as_its_worst_check() {
        for (statuses, expected) in [
            ("SUCCESS INFO", Verdict::Pass),
            ("SUCCESS WARNING", Verdict::Warning),
            ("SUCCESS SKIPPED", Verdict::Warning),
            ("WARNING FAILURE SUCCESS", Verdict::Failure),
            ("INFO", Verdict::Failure),
            ("", Verdict::Failure),
        ] {
            assert_eq!(verdict(&checks(statuses)), expected, "{statuses}");
        }
    }

    #[test]
    fn better_worse_missing_and_new_scenarios_are_all_found() {
        let expected: Expected =
            toml::from_str("passes = ['a', 'b', 'gone']\nwarnings = []\nfailures = ['c', 'd']")
                .unwrap();
        let scenarios: Scenarios = [
            ("a", "SUCCESS"),
            ("b", "SUCCESS FAILURE"),
            ("c", "SUCCESS"),
            ("d", "FAILURE"),
            ("new", "SUCCESS"),
        ]
        .map(|(name, statuses)| (name.to_owned(), checks(statuses)))
        .into();
        assert_eq!(
            compare(&scenarios, &expected),
            [
                "b: expected Pass, found Failure\n    FAILURE c: why",
                "gone: expected to run, did not",
                "c: expected Failure, found Pass",
                "new: ran and is not in expected.toml",
            ]
        );
    }

    #[test]
    fn the_name_of_a_scenario_is_read_from_its_folder() {
        let folder = "server-server-sse-polling-2026-11-15T22-02-44-528Z";
        assert_eq!(scenario(folder).as_deref(), Some("server-sse-polling"));
        assert_eq!(scenario("server-ping-2026-11-15T22-02-44-528Z").as_deref(), Some("ping"));
        assert_eq!(scenario("notes"), None);
    }
}
