//! What cargo says about the packages that we build on.

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::output::say;
use crate::shell::{self, cargo};

/// Every package of the lock file.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    /// The ids of our own packages.
    pub(crate) workspace_members: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) license: Option<String>,
    /// `None` for a package on this disk.
    pub(crate) source: Option<String>,
    pub(crate) dependencies: Vec<Dependency>,
}

/// A dependency as a manifest declares it, of whatever kind.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    /// The real name, also when the manifest renames it.
    pub(crate) name: String,
    /// `None` for a package on this disk.
    pub(crate) source: Option<String>,
}

impl Metadata {
    /// Asks cargo. Without a network it may know only the packages that are built here.
    pub(crate) fn read() -> Result<Self> {
        const QUESTION: [&str; 4] = ["metadata", "--format-version", "1", "--locked"];
        let answer = shell::read(cargo(&QUESTION)).or_else(|error| {
            say!("only the packages of this platform are looked at: {error:#}");
            let host = host()?;
            let mut question = cargo(&QUESTION);
            question.args(["--offline", "--filter-platform", &host]);
            shell::read(question)
        })?;
        serde_json::from_str(&answer).context("in the answer of `cargo metadata`")
    }
}

/// The platform that we run on.
fn host() -> Result<String> {
    let version = shell::read(shell::command("rustc", &["-vV"]))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("`rustc -vV` names no host")?.to_owned())
}
