//! Official clients as they were, each of an earlier version of the protocol: a list, calls, one of
//! which is answered in a stream, one of which is denied and one approved, and an end.

use std::ffi::OsStr;

use anyhow::Result;
use serde_json::{Map, json};

use super::calls::{self, Call, approved, call};
use crate::suites::Rig;
use crate::suites::folder::Folder;
use crate::suites::script::script;

fn calls() -> [Call; 5] {
    [
        call("echo", "echo", json!({"text": "hello"}), Some("hello")),
        call("stream", "slow", json!({"ms": 400}), Some("This took 400 ms.")),
        call("structured", "add", json!({"a": 1, "b": 2}), Some("3")),
        call("denied", "read_file", json!({"path": "/etc/shadow"}), None),
        approved("approved", "delete_everything", json!({}), "Everything is still there."),
    ]
}

/// The files of ours that are the client.
fn sources(client: &str) -> [&'static str; 2] {
    if client.starts_with("mcp/python") {
        ["mcp/steps.py", "mcp/old.py"]
    } else {
        ["mcp/steps.mjs", "mcp/typescript-1/client.mjs"]
    }
}

/// Runs a client against the fixture behind the edge.
pub(super) fn over_http(rig: &Rig, client: &str) -> Result<Vec<String>> {
    let folder = Folder::new()?;
    let fixture = folder.link(&rig.fixture)?;
    let program = script(rig, client, &sources(client))?;
    calls::over_http(rig, &folder, program, &[fixture.as_os_str()], Map::new(), &calls())
}

/// The same for one that starts the edge itself.
pub(super) fn over_stdio(rig: &Rig, client: &str) -> Result<Vec<String>> {
    let folder = Folder::new()?;
    let (fixture, data) = (folder.link(&rig.fixture)?, folder.path("data"));
    let [mcp, serve, wait, soon, option, end] =
        ["mcp", "serve", "--approval-wait", "500ms", "--data", "--"].map(OsStr::new);
    let (chio, data, fixture) = (rig.chio.as_os_str(), data.as_os_str(), fixture.as_os_str());
    let command = [chio, mcp, serve, wait, soon, option, data, end, fixture];
    let program = script(rig, client, &sources(client))?;
    calls::over_stdio(rig, &folder, program, &command, &calls())
}
