//! `cargo xtask faithful`: real servers, asked directly and through the built binary over both of its
//! transports. Whatever they answer has to come through as it is.

mod compare;
mod run;

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

use crate::suites::{self, Part};
use crate::tree;

/// What all of them need.
const NEEDS: &[&str] = &[
    "mcp/node",
    "mcp/servers",
    "mcp/registry-servers",
    "mcp/python-servers",
    "mcp/python-servers-2",
    "mcp/python-servers-3",
];

/// What is known of a server, see `clients/mcp/faithful.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Server {
    command: Vec<String>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    volatile: Vec<String>,
    #[serde(default)]
    calls: Vec<(String, Value)>,
    #[serde(default)]
    reads: Vec<String>,
    #[serde(default)]
    prompts: Vec<(String, Value)>,
    #[serde(default)]
    methods: Vec<String>,
}

macro_rules! part {
    ($name:literal) => {
        Part { name: $name, needs: NEEDS, run: |rig| run::compared(rig, $name) }
    };
}

pub(crate) const PARTS: &[Part] = &[
    part!("server-everything"),
    part!("server-filesystem"),
    part!("server-memory"),
    part!("server-sequential-thinking"),
    part!("mcp-hello-world"),
    part!("mcp-taskmanager"),
    part!("mcp-server-commands"),
    part!("mcp-server-code-runner"),
    part!("mcp-server-chart"),
    part!("context7"),
    part!("mcp-server-time"),
    part!("mcp-server-git"),
    part!("mcp-server-fetch"),
    part!("mcp-server-sqlite"),
    part!("mcp-text-editor"),
    part!("mcp-server-calculator"),
];

pub(crate) fn run(arguments: &[String]) -> Result<bool> {
    suites::run(PARTS, arguments)
}

fn servers() -> Result<BTreeMap<String, Server>> {
    let text = fs::read_to_string(tree::root().join("clients/mcp/faithful.toml"))?;
    toml::from_str(&text).context("clients/mcp/faithful.toml")
}

#[cfg(test)]
mod tests {
    use super::{PARTS, servers};

    #[test]
    fn each_server_is_a_part_and_has_a_script() {
        let servers = servers().unwrap();
        let mut names: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
        names.sort_unstable();
        assert_eq!(servers.keys().map(String::as_str).collect::<Vec<_>>(), names);
    }
}
