//! Official servers behind the edge: listed, called, and kept from what the policy forbids.

use std::ffi::OsStr;
use std::fs;

use anyhow::Result;
use serde_json::{Map, json};

use super::calls::{self, Call, call};
use super::clients;
use crate::suites::Rig;
use crate::suites::folder::Folder;

/// The folder with files.
const FILES: &str = "files";
/// A made-up access key, in two parts so that it is not found here.
const ACCESS_KEY: &str = concat!("AKIA", "Q7ZLM2XW9RTB5KDV");

/// `server-everything`, with the TypeScript client.
pub(super) fn everything(rig: &Rig) -> Result<Vec<String>> {
    let folder = Folder::new()?;
    let calls = [
        call("echo", "echo", json!({"message": "hello"}), Some("Echo: hello")),
        call("sum", "get-sum", json!({"a": 2, "b": 3}), Some("5")),
        call("denied", "echo", json!({"message": format!("key {ACCESS_KEY}")}), None),
    ];
    run(rig, &folder, "mcp/typescript-2", ("server-everything", OsStr::new("stdio")), &calls)
}

/// `server-filesystem`, with the Python client.
pub(super) fn filesystem(rig: &Rig) -> Result<Vec<String>> {
    let folder = Folder::new()?;
    let files = folder.path(FILES);
    fs::create_dir_all(&files)?;
    fs::write(files.join("note.txt"), "a note to read\n")?;
    let path = |name: &str| json!({"path": files.join(name)});
    let keys = json!({"path": files.join(".ssh/authorized_keys"), "content": "a key"});
    let calls = [
        call("list", "list_directory", path("."), Some("note.txt")),
        call("read", "read_text_file", path("note.txt"), Some("a note to read")),
        call("denied", "read_text_file", json!({"path": "/etc/shadow"}), None),
        call("denied write", "write_file", keys, None),
    ];
    run(rig, &folder, "mcp/python-2", ("server-filesystem", files.as_os_str()), &calls)
}

/// Runs a client against one of the official servers.
fn run(
    rig: &Rig,
    folder: &Folder,
    client: &str,
    (server, argument): (&str, &OsStr),
    calls: &[Call],
) -> Result<Vec<String>> {
    let node = folder.link(&rig.node())?;
    let script = format!("node_modules/@modelcontextprotocol/{server}/dist/index.js");
    let script = rig.installed("mcp/servers").join(script);
    let upstream = [node.as_os_str(), script.as_os_str(), argument];
    // The only root that makes sense to a server of files: the one that it was started with.
    let root = json!(format!("file://{}", folder.path(FILES).display()));
    let root = Map::from_iter([("root".to_owned(), root)]);
    calls::over_http(rig, folder, clients::program(rig, client)?, &upstream, root, calls)
}
