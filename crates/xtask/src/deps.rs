//! `cargo xtask deps`: may we use what we use, and is it written down why.

mod advisories;
mod metadata;
mod spdx;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::output::say;
use crate::steps::Outcome;
use crate::{no_arguments, tree};
pub(crate) use advisories::check as advisories;
use metadata::{Metadata, Package};

/// The lists, in the form that cargo-deny reads.
const LISTS: &str = "deny.toml";
/// A table with a row for each direct dependency.
const REASONS: &str = "docs/dependencies.md";
/// The only place that code may come from.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";
/// The published implementations of what we build ourselves.
const OURS: [&str; 2] = ["chio-", "ckp-"];

pub(crate) fn run(arguments: &[String]) -> Result<bool> {
    no_arguments(arguments)?;
    let mut good = true;
    for (name, outcome) in [("dependencies", check()?), ("advisories", advisories()?)] {
        good &= !matches!(outcome, Outcome::Failed(_));
        match outcome.describe() {
            (word, "") => say!("{word}: {name}"),
            (word, remark) => say!("{word}: {name} ({remark})"),
        }
    }
    Ok(good)
}

/// Checks everything but advisories, and prints what it finds.
pub(crate) fn check() -> Result<Outcome> {
    let root = tree::root();
    let metadata = Metadata::read()?;
    let report = Report::new(&metadata, &Lists::read(&root)?, &reasons(&root)?);
    report.print();
    Ok(match report.violations.len() {
        0 => Outcome::Passed,
        count => Outcome::Failed(format!("{count} violations")),
    })
}

/// What cargo-deny and we are told.
#[derive(Debug, Deserialize)]
struct Lists {
    licenses: Licenses,
    bans: Bans,
}

#[derive(Debug, Deserialize)]
struct Licenses {
    allow: BTreeSet<String>,
}

#[derive(Debug, Deserialize)]
struct Bans {
    deny: Vec<Ban>,
}

#[derive(Debug, Deserialize)]
struct Ban {
    #[serde(rename = "crate")]
    name: String,
}

impl Lists {
    fn read(root: &Path) -> Result<Self> {
        let text = fs::read_to_string(root.join(LISTS)).with_context(|| format!("no `{LISTS}`"))?;
        toml::from_str(&text).with_context(|| format!("in `{LISTS}`"))
    }
}

/// The crates that have a row in the table of reasons.
fn reasons(root: &Path) -> Result<BTreeSet<String>> {
    let text = fs::read_to_string(root.join(REASONS)).with_context(|| format!("no `{REASONS}`"))?;
    let cells = text.lines().filter_map(|line| line.strip_prefix('|')?.split('|').next());
    Ok(cells.map(|cell| cell.trim().trim_matches('`').to_owned()).collect())
}

/// What there is to say about the dependencies.
#[derive(Debug, Default)]
struct Report {
    packages: usize,
    direct: usize,
    violations: Vec<String>,
    /// Crates that are there in several versions: worth knowing, not forbidden.
    repeated: Vec<String>,
}

impl Report {
    fn new(metadata: &Metadata, lists: &Lists, reasons: &BTreeSet<String>) -> Self {
        let is_ours = |package: &&Package| metadata.workspace_members.contains(&package.id);
        let (ours, foreign): (Vec<&Package>, Vec<&Package>) =
            metadata.packages.iter().partition(is_ours);
        let mut violations: Vec<String> =
            foreign.iter().flat_map(|package| violations(package, lists)).collect();
        let direct = direct(&ours);
        for (name, users) in &direct {
            if !reasons.contains(*name) {
                let users = users.join(", ");
                violations.push(format!("{name}: used by {users}, without a row in `{REASONS}`"));
            }
        }
        let repeated = repeated(&foreign);
        Self { packages: foreign.len(), direct: direct.len(), violations, repeated }
    }

    fn print(&self) {
        say!("{} third-party packages, {} of them direct", self.packages, self.direct);
        for repeated in &self.repeated {
            say!("several versions: {repeated}");
        }
        for violation in &self.violations {
            say!("violation: {violation}");
        }
    }
}

/// What is wrong with a package that is not ours.
fn violations(package: &Package, lists: &Lists) -> Vec<String> {
    let mut found = Vec::new();
    if package.source.as_deref() != Some(REGISTRY) {
        let source = package.source.as_deref().unwrap_or("a path outside the workspace");
        found.push(format!("expected crates.io as its source, found {source}"));
    }
    if lists.bans.deny.iter().any(|ban| ban.name == package.name) {
        found.push(format!("banned by `{LISTS}`"));
    }
    if OURS.iter().any(|prefix| package.name.starts_with(prefix)) {
        found.push("banned: we do not build on the published implementations".to_owned());
    }
    let allowed = |licence: &str| lists.licenses.allow.contains(licence);
    match &package.license {
        None => found.push("names no licence".to_owned()),
        Some(expression) => match spdx::is_satisfied(expression, &allowed) {
            Ok(true) => {}
            Ok(false) => found.push(format!("licence `{expression}` is not allowed by `{LISTS}`")),
            Err(error) => found.push(format!("licence `{expression}` cannot be read: {error}")),
        },
    }
    let Package { name, version, .. } = package;
    found.into_iter().map(|problem| format!("{name} {version}: {problem}")).collect()
}

/// The third-party crates that our manifests name, and which of our packages do.
fn direct<'p>(ours: &[&'p Package]) -> BTreeMap<&'p str, Vec<&'p str>> {
    let mut direct: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in ours {
        let foreign = package.dependencies.iter().filter(|one| one.source.is_some());
        for dependency in foreign {
            let users = direct.entry(&dependency.name).or_default();
            if !users.contains(&package.name.as_str()) {
                users.push(&package.name);
            }
        }
    }
    direct
}

/// `name 1.0.0, 2.0.0` for each crate that is there more than once.
fn repeated(packages: &[&Package]) -> Vec<String> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().push(&package.version);
    }
    versions.retain(|_, versions| versions.len() > 1);
    versions.iter().map(|(name, versions)| format!("{name} {}", versions.join(", "))).collect()
}

#[cfg(test)]
mod tests;
