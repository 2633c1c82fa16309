//! Official servers behind the edge: listed, called, and kept from what the policy forbids.

use std::ffi::OsStr;
use std::fs;

use anyhow::Result;
use serde_json::{Value, json};

use super::{clients, edge};
use crate::output::say;
use crate::suites::drive::drive;
use crate::suites::folder::Folder;
use crate::suites::{Rig, chio, receipts};

/// One call that a client is told to make.
struct Call {
    name: &'static str,
    tool: &'static str,
    arguments: Value,
    /// What the answer has to contain; none when the call has to be denied.
    contains: Option<&'static str>,
}

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

fn call(
    name: &'static str,
    tool: &'static str,
    arguments: Value,
    contains: Option<&'static str>,
) -> Call {
    Call { name, tool, arguments, contains }
}

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
    let mut program = clients::program(rig, client)?;
    let chio = edge::serve(rig, folder, "default", clients::ROTATION, &upstream)?;

    let told = calls.iter().map(|it| {
        json!({
            "name": it.name,
            "tool": it.tool,
            "arguments": it.arguments,
            "contains": it.contains.unwrap_or_default(),
            "denied": it.contains.is_none(),
        })
    });
    // The only root that makes sense to a server of files: the one that it was started with.
    let root = format!("file://{}", folder.path(FILES).display());
    let task = json!({"url": edge::url(&chio), "root": root, "calls": told.collect::<Vec<_>>()});
    let mut steps = vec!["connect", "tools"];
    steps.extend(calls.iter().map(|it| it.name));
    steps.extend(["close", "calls"]);
    program.arg(task.to_string());
    let mut problems = drive(program, &steps, Some(u64::try_from(calls.len())?))?;
    if !problems.is_empty() {
        say!("the last that `chio` said:\n{}", chio.complaints());
    }
    problems.extend(chio.end()?);
    let verdict = |it: &Call| if it.contains.is_some() { "allow" } else { "deny" };
    let expected: Vec<(&str, &str)> = calls.iter().map(|it| (it.tool, verdict(it))).collect();
    problems.extend(receipts::problems(&chio::receipts(rig, folder)?, &receipts::count(&expected)));
    Ok(problems)
}
