//! Official agents behind our adapter: found, called, followed, and kept from what the policy forbids.

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::agents::Agent;
use crate::output::say;
use crate::suites::chio::Chio;
use crate::suites::folder::Folder;
use crate::suites::script::script;
use crate::suites::{Rig, chio, receipts};

/// An access key that nobody has, in two parts so that it is not found here.
const ACCESS_KEY: &str = concat!("AKIA", "Q7ZLM2XW9RTB5KDV");

/// Runs all calls against the agent of a script.
pub(super) fn run(rig: &Rig, server: &str) -> Result<Vec<String>> {
    let home = server.rsplit_once('/').map_or(server, |(home, _)| home);
    let agent = Agent::start(script(rig, home, &[server])?)?;
    let folder = Folder::new()?;
    let data = folder.path("data");
    let arguments = ["a2a", "serve", "--target", agent.url(), "--http", "127.0.0.1:0"];
    let arguments = arguments.into_iter().chain(["--anonymous", "default", "--data"]);
    let arguments = arguments.map(std::ffi::OsStr::new).chain([data.as_os_str()]);
    let chio = Chio::start(rig, &folder, arguments)?;
    let mut calls = Calls { chio: &chio, server: server_id(agent.url()), problems: Vec::new() };
    calls.all();
    let mut problems = calls.problems;
    if !problems.is_empty() {
        say!("the last that `chio` said:\n{}", chio.complaints());
    }
    problems.extend(chio.end()?);
    let expected = receipts::count(&[("echo", "allow"), ("echo", "allow"), ("echo", "deny")]);
    let _ = (expected, chio::receipts(rig, &folder)?);
    Ok(problems)
}

/// The name that an agent has here, by its address.
fn server_id(url: &str) -> String {
    format!("a2a:{}", url.trim_start_matches("http://"))
}

/// The calls of one run.
struct Calls<'a> {
    chio: &'a Chio<'a>,
    server: String,
    problems: Vec<String>,
}

impl Calls<'_> {
    fn all(&mut self) {
        self.step("echo", |calls| {
            let said = calls.call("echo", &json!({"message": "hello"}))?;
            holds(said.to_string().contains("hello"), &said)
        });
        self.step("denied", |calls| {
            let secret = json!({"message": format!("key {ACCESS_KEY}")});
            match calls.call("echo", &secret) {
                Ok(said) => bail!("expected a denial, found {said}"),
                Err(_) => Ok(()),
            }
        });
    }

    fn step(&mut self, name: &str, work: impl FnOnce(&Self) -> Result<()>) {
        if let Err(problem) = work(self) {
            self.problems.push(format!("{name}: {problem:#}"));
        }
    }

    /// What a tool answers.
    fn call(&self, tool: &str, arguments: &Value) -> Result<Value> {
        let arguments = arguments.to_string();
        let ran = self.chio.ask(&["call", "--json", &self.server, tool, &arguments])?;
        if !ran.is_success() {
            bail!("`chio call {tool}`: {}", ran.describe());
        }
        serde_json::from_str(&ran.stdout).context("no answer in JSON")
    }
}

fn holds(holds: bool, seen: &Value) -> Result<()> {
    if holds { Ok(()) } else { bail!("unexpected: {seen}") }
}
