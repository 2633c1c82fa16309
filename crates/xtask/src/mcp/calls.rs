//! Clients that are told which calls to make, and what each has to come to.

use std::ffi::OsStr;
use std::process::Command;

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::{clients, edge};
use crate::output::say;
use crate::suites::drive::drive;
use crate::suites::folder::Folder;
use crate::suites::{Rig, chio, receipts};

/// One call that a client is told to make.
pub(super) struct Call {
    name: &'static str,
    tool: &'static str,
    arguments: Value,
    /// What the answer has to contain; none when the call has to be denied.
    contains: Option<&'static str>,
    /// Whether it has to be approved before it runs, and asked for again.
    approved: bool,
}

/// A call that a person has to approve, which the client does with the command that it is given.
pub(super) fn approved(
    name: &'static str,
    tool: &'static str,
    arguments: Value,
    contains: &'static str,
) -> Call {
    Call { approved: true, ..call(name, tool, arguments, Some(contains)) }
}

pub(super) const fn call(
    name: &'static str,
    tool: &'static str,
    arguments: Value,
    contains: Option<&'static str>,
) -> Call {
    Call { name, tool, arguments, contains, approved: false }
}

/// Runs a client against a server behind the edge; `task` has what it is told besides.
pub(super) fn over_http(
    rig: &Rig,
    folder: &Folder,
    program: Command,
    upstream: &[&OsStr],
    mut task: Map<String, Value>,
    calls: &[Call],
) -> Result<Vec<String>> {
    let chio = edge::serve(rig, folder, "default", clients::ROTATION, upstream)?;
    task.insert("url".to_owned(), json!(edge::url(&chio)));
    let mut problems = make(rig, program, task, calls)?;
    if !problems.is_empty() {
        say!("the last that `chio` said:\n{}", chio.complaints());
    }
    problems.extend(chio.end()?);
    problems.extend(unexpected(rig, folder, calls)?);
    Ok(problems)
}

/// Runs a client that starts the edge by this command, with state in the folder.
pub(super) fn over_stdio(
    rig: &Rig,
    folder: &Folder,
    program: Command,
    command: &[&OsStr],
    calls: &[Call],
) -> Result<Vec<String>> {
    let command: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    let task = Map::from_iter([("command".to_owned(), json!(command))]);
    let mut problems = make(rig, program, task, calls)?;
    problems.extend(unexpected(rig, folder, calls)?);
    Ok(problems)
}

/// Lets a client make the calls; answers what it did not do as it should.
fn make(
    rig: &Rig,
    mut program: Command,
    mut task: Map<String, Value>,
    calls: &[Call],
) -> Result<Vec<String>> {
    let told = calls.iter().map(|it| {
        json!({
            "name": it.name,
            "tool": it.tool,
            "arguments": it.arguments,
            "contains": it.contains.unwrap_or_default(),
            "denied": it.contains.is_none(),
            "approve": it.approved.then(|| rig.chio.to_string_lossy()),
        })
    });
    task.insert("calls".to_owned(), told.collect());
    let mut steps = vec!["connect", "tools"];
    steps.extend(calls.iter().map(|it| it.name));
    steps.extend(["close", "calls"]);
    program.arg(Value::Object(task).to_string());
    drive(program, &steps, Some(u64::try_from(calls.len())?))
}

/// What the receipts do not agree with.
fn unexpected(rig: &Rig, folder: &Folder, calls: &[Call]) -> Result<Vec<String>> {
    let verdict = |it: &Call| if it.contains.is_some() { "allow" } else { "deny" };
    let expected: Vec<(&str, &str)> = calls.iter().map(|it| (it.tool, verdict(it))).collect();
    Ok(receipts::problems(&chio::receipts(rig, folder)?, &receipts::count(&expected)))
}
