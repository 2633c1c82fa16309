//! The edge in front of an MCP server.

use std::ffi::OsStr;

use anyhow::Result;

use crate::suites::Rig;
use crate::suites::chio::Chio;
use crate::suites::folder::Folder;

/// Starts `chio mcp serve --http` in front of a server. Streams are closed after `rotation`, so that
/// clients have to take them up again.
pub(crate) fn serve<'a>(
    rig: &'a Rig,
    folder: &'a Folder,
    policy: &str,
    rotation: &str,
    upstream: &[&OsStr],
) -> Result<Chio<'a>> {
    serve_with(rig, folder, &[], (policy, rotation), upstream)
}

/// The same with these options.
pub(crate) fn serve_with<'a>(
    rig: &'a Rig,
    folder: &'a Folder,
    options: &[&str],
    (policy, rotation): (&str, &str),
    upstream: &[&OsStr],
) -> Result<Chio<'a>> {
    let first = ["mcp", "serve", "--http", "127.0.0.1:0", "--policy", policy];
    // No client has to wait long until it is told to ask again.
    let soon = ["--approval-wait", "500ms"];
    let second = ["--anonymous", "default", "--rotate-streams", rotation, "--data"];
    let data = folder.path("data");
    let mut arguments: Vec<&OsStr> =
        first.iter().chain(&soon).chain(options).chain(&second).map(OsStr::new).collect();
    arguments.extend([data.as_os_str(), OsStr::new("--")]);
    arguments.extend(upstream);
    Chio::start(rig, folder, arguments)
}

/// Where it listens, by the one name that the conformance suite takes for this machine.
pub(crate) fn url(chio: &Chio<'_>) -> String {
    format!("http://localhost:{}/mcp", chio.port())
}
