//! One server, asked three times.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::compare::differences;
use super::{Server, servers};
use crate::mcp::edge;
use crate::output::say;
use crate::suites::Rig;
use crate::suites::bounded;
use crate::suites::folder::Folder;

/// How long one run of a script may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// Longer than any run: streams are not closed on the way.
const NO_ROTATION: &str = "1h";
/// The places of the answers that come before those of the script.
const LISTS: [&str; 5] =
    ["initialize", "tools/list", "resources/list", "resources/templates/list", "prompts/list"];

/// One thing to ask: what it is called, and the request.
struct Step {
    name: String,
    method: String,
    params: Value,
    is_volatile: bool,
}

/// Asks a server directly, and through the binary; answers what is not the same.
pub(super) fn compared(rig: &Rig, name: &str) -> Result<Vec<String>> {
    let server = servers()?.remove(name).context("no such server")?;
    let folder = Folder::new()?;
    let node = folder.link(&rig.node())?;
    let work = folder.path("work");
    let place = |words: &str| place(rig, &node, &work, words);
    let command: Vec<String> = server.command.iter().map(|word| place(word)).collect();
    let steps = steps(&server, &place);
    let ask = |target: Value| -> Result<Vec<Value>> {
        make(&work, &server)?;
        drive(rig, &target, &steps)
    };

    let direct = ask(json!({"command": command}))?;
    let (chio, data) = (rig.chio.display().to_string(), folder.path("data-lines"));
    let data = data.display().to_string();
    let first = [&*chio, "mcp", "serve", "--policy", "permissive", "--data", &data, "--"];
    let wrapped: Vec<&str> = first.into_iter().chain(command.iter().map(String::as_str)).collect();
    let lines = ask(json!({"command": wrapped}))?;
    let words: Vec<&OsStr> = command.iter().map(OsStr::new).collect();
    make(&work, &server)?;
    let served = edge::serve(rig, &folder, "permissive", NO_ROTATION, &words)?;
    let http = ask(json!({"url": edge::url(&served)}))?;

    let mut problems = served.end()?;
    let names: Vec<(&str, bool)> = LISTS
        .into_iter()
        .map(|name| (name, false))
        .chain(steps.iter().map(|step| (step.name.as_str(), step.is_volatile)))
        .collect();
    for (way, found) in [("stdio", &lines), ("HTTP", &http)] {
        let different = differences(&names, &direct, found);
        problems.extend(different.into_iter().map(|it| format!("over {way}: {it}")));
    }
    let asked = direct.iter().filter(|answer| !answer.is_null()).count();
    say!("{asked} answers, compared over both transports");
    Ok(problems)
}

fn place(rig: &Rig, node: &Path, work: &Path, words: &str) -> String {
    let packages = |name: &str| rig.installed(name).join("node_modules").display().to_string();
    let python = |name: &str| rig.installed(name).join("venv/bin").display().to_string();
    words
        .replace("{node}", &node.display().to_string())
        .replace("{npm}", &packages("mcp/servers"))
        .replace("{npm-2}", &packages("mcp/registry-servers"))
        .replace("{python}", &python("mcp/python-servers"))
        .replace("{python-2}", &python("mcp/python-servers-2"))
        .replace("{python-3}", &python("mcp/python-servers-3"))
        .replace("{work}", &work.display().to_string())
}

/// The folder of a run, as it is at its beginning.
fn make(work: &Path, server: &Server) -> Result<()> {
    if work.exists() {
        fs::remove_dir_all(work)?;
    }
    fs::create_dir_all(work)?;
    for (name, text) in &server.files {
        fs::write(work.join(name), text)?;
    }
    Ok(())
}

fn steps(server: &Server, place: &impl Fn(&str) -> String) -> Vec<Step> {
    let filled = |value: &Value| -> Value {
        // The places are plain paths, which need no escapes.
        serde_json::from_str(&place(&value.to_string())).unwrap_or_default()
    };
    let calls = server.calls.iter().map(|(tool, arguments)| Step {
        name: format!("tools/call {tool}"),
        method: "tools/call".to_owned(),
        params: json!({"name": tool, "arguments": filled(arguments)}),
        is_volatile: server.volatile.contains(tool),
    });
    let reads = server.reads.iter().map(|uri| Step {
        name: format!("resources/read {uri}"),
        method: "resources/read".to_owned(),
        params: json!({"uri": uri}),
        is_volatile: server.volatile.contains(uri),
    });
    let prompts = server.prompts.iter().map(|(prompt, arguments)| Step {
        name: format!("prompts/get {prompt}"),
        method: "prompts/get".to_owned(),
        params: json!({"name": prompt, "arguments": filled(arguments)}),
        is_volatile: server.volatile.contains(prompt),
    });
    let methods = server.methods.iter().map(|method| Step {
        name: method.clone(),
        method: method.clone(),
        params: json!({}),
        is_volatile: false,
    });
    calls.chain(reads).chain(prompts).chain(methods).collect()
}

fn drive(rig: &Rig, target: &Value, steps: &[Step]) -> Result<Vec<Value>> {
    let script = steps.iter().map(|step| json!({"method": step.method, "params": step.params}));
    let mut task = target.clone();
    if let Value::Object(members) = &mut task {
        members.insert("script".to_owned(), script.collect());
    }
    let mut program = Command::new(rig.python("mcp/python-servers"));
    program.arg(rig.source("mcp/faithful.py")).arg(task.to_string());
    let ran = bounded::run(program, PATIENCE)?;
    if !ran.is_success() {
        bail!("{target}: {}", ran.describe());
    }
    let answers: Vec<Value> = serde_json::from_str(&ran.stdout).context("no answers")?;
    if answers.len() != LISTS.len() + steps.len() {
        bail!("expected {} answers, found {}", LISTS.len() + steps.len(), answers.len());
    }
    Ok(answers)
}
