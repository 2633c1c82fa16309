//! `cargo xtask bench`: what things cost, as ratios against floors measured in the same run.

use anyhow::Result;

use crate::Usage;
use crate::shell::{cargo, outcome};
use crate::steps::Outcome;

/// The benchmarks, each a package and its target.
pub(crate) const BENCHES: &[(&str, &str)] = &[
    ("chio-core", "ratios"),
    ("chio-kernel", "road"),
    ("chio-policy", "evaluate"),
    ("chio-policy", "rules"),
    ("chio-cli", "edges"),
];

pub(crate) fn run(arguments: &[String]) -> Result<bool> {
    if let Some(unknown) = arguments.iter().find(|it| it.starts_with('-') && *it != "--quick") {
        return Err(Usage(format!("unknown argument `{unknown}`, expected --quick")).into());
    }
    let parts: Vec<&String> = arguments.iter().filter(|it| !it.starts_with('-')).collect();
    for (package, target) in BENCHES {
        // Only these benchmarks have parts to pick from; a part may also be a target's name.
        let has_parts = matches!(*target, "road" | "edges");
        if !has_parts && !parts.is_empty() && !parts.iter().any(|part| part == target) {
            continue;
        }
        let mut command = cargo(&["bench", "-p", package, "--bench", target, "--"]);
        if *package != "chio-core" {
            command.args(arguments);
        }
        if outcome(command)? != Outcome::Passed {
            return Ok(false);
        }
    }
    Ok(true)
}
