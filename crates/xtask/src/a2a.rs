//! `cargo xtask a2a`: official A2A clients and agents, and what A2A demands of a server, against the
//! built binary.

mod agents;
mod clients;
mod edge;
mod expected;
mod upstreams;

use anyhow::Result;

use crate::suites::{self, Part};

pub(crate) const PARTS: &[Part] = &[
    Part {
        name: "strict",
        needs: &["a2a/python-1"],
        run: |rig| clients::strict(rig, "a2a/python-1"),
    },
    Part { name: "seed", needs: &["a2a/python-1"], run: |rig| clients::seed(rig, "a2a/python-1") },
    Part {
        name: "python-1",
        needs: &["a2a/python-1"],
        run: |rig| clients::python(rig, "a2a/python-1"),
    },
    Part {
        name: "python-0.3",
        needs: &["a2a/python-0.3"],
        run: |rig| clients::python(rig, "a2a/python-0.3"),
    },
    Part {
        name: "javascript-1",
        needs: &["mcp/node", "a2a/javascript-1"],
        run: |rig| clients::javascript(rig, "a2a/javascript-1"),
    },
    Part {
        name: "javascript-0.3",
        needs: &["mcp/node", "a2a/javascript-0.3"],
        run: |rig| clients::javascript(rig, "a2a/javascript-0.3"),
    },
    Part {
        name: "agent-python-1",
        needs: &["a2a/python-1"],
        run: |rig| upstreams::run(rig, "a2a/python-1/server.py"),
    },
    Part {
        name: "agent-python-0.3",
        needs: &["a2a/python-0.3"],
        run: |rig| upstreams::run(rig, "a2a/python-0.3/server.py"),
    },
    Part {
        name: "agent-javascript-1",
        needs: &["mcp/node", "a2a/javascript-1"],
        run: |rig| upstreams::run(rig, "a2a/javascript-1/server.mjs"),
    },
    Part {
        name: "agent-javascript-0.3",
        needs: &["mcp/node", "a2a/javascript-0.3"],
        run: |rig| upstreams::run(rig, "a2a/javascript-0.3/server.mjs"),
    },
];

pub(crate) fn run(arguments: &[String]) -> Result<bool> {
    suites::run(PARTS, arguments)
}
