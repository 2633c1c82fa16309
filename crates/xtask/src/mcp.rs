//! `cargo xtask mcp`: the official MCP suites, clients and servers against the built binary.

mod calls;
mod clients;
mod conformance;
pub(crate) mod edge;
mod old;
mod upstreams;

use anyhow::Result;

use crate::suites::{self, Part};

pub(crate) const PARTS: &[Part] = &[
    Part {
        name: "conformance-0.2",
        needs: &["mcp/node", "mcp/conformance-0.2"],
        run: |rig| conformance::run(rig, "mcp/conformance-0.2", &["--requirements", "2025-11-25"]),
    },
    Part {
        name: "conformance-0.2-shared",
        needs: &["mcp/node", "mcp/conformance-0.2"],
        run: |rig| {
            let arguments = ["--requirements", "2025-11-25"];
            conformance::run_shared(rig, "mcp/conformance-0.2", &arguments)
        },
    },
    Part {
        name: "conformance-0.1",
        needs: &["mcp/node", "mcp/conformance-0.1"],
        run: |rig| conformance::run(rig, "mcp/conformance-0.1", &["--suite", "all"]),
    },
    Part {
        name: "typescript-1",
        needs: &["mcp/node", "mcp/typescript-1"],
        run: |rig| clients::run(rig, "mcp/typescript-1"),
    },
    Part {
        name: "typescript-2",
        needs: &["mcp/node", "mcp/typescript-2"],
        run: |rig| clients::run(rig, "mcp/typescript-2"),
    },
    Part {
        name: "python-1",
        needs: &["mcp/python-1"],
        run: |rig| clients::run(rig, "mcp/python-1"),
    },
    Part {
        name: "python-2",
        needs: &["mcp/python-2"],
        run: |rig| clients::run(rig, "mcp/python-2"),
    },
    Part { name: "rmcp", needs: &[], run: |rig| clients::run(rig, clients::RMCP) },
    Part {
        name: "typescript-1.10",
        needs: &["mcp/node", "mcp/typescript-1.10"],
        run: |rig| old::over_http(rig, "mcp/typescript-1.10"),
    },
    Part {
        name: "typescript-1.12",
        needs: &["mcp/node", "mcp/typescript-1.12"],
        run: |rig| old::over_http(rig, "mcp/typescript-1.12"),
    },
    Part {
        name: "typescript-1.17",
        needs: &["mcp/node", "mcp/typescript-1.17"],
        run: |rig| old::over_http(rig, "mcp/typescript-1.17"),
    },
    Part {
        name: "typescript-1.24",
        needs: &["mcp/node", "mcp/typescript-1.24"],
        run: |rig| old::over_http(rig, "mcp/typescript-1.24"),
    },
    Part {
        name: "python-1.22",
        needs: &["mcp/python-1.22"],
        run: |rig| old::over_http(rig, "mcp/python-1.22"),
    },
    Part {
        name: "python-1.8",
        needs: &["mcp/python-1.8"],
        run: |rig| old::over_http(rig, "mcp/python-1.8"),
    },
    Part {
        name: "python-0.9",
        needs: &["mcp/python-0.9"],
        run: |rig| old::over_stdio(rig, "mcp/python-0.9"),
    },
    Part {
        name: "server-everything",
        needs: &["mcp/node", "mcp/servers", "mcp/typescript-2"],
        run: upstreams::everything,
    },
    Part {
        name: "server-filesystem",
        needs: &["mcp/node", "mcp/servers", "mcp/python-2"],
        run: upstreams::filesystem,
    },
];

pub(crate) fn run(arguments: &[String]) -> Result<bool> {
    suites::run(PARTS, arguments)
}
