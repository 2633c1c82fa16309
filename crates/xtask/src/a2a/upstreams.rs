//! Official agents behind our adapter: found, called, followed, and kept from what the policy forbids.

use std::ffi::OsStr;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::agents::Agent;
use crate::output::say;
use crate::suites::chio::Chio;
use crate::suites::folder::Folder;
use crate::suites::script::script;
use crate::suites::{Rig, chio, receipts};

/// A made-up access key, in two parts so that it is not found here.
const ACCESS_KEY: &str = concat!("AKIA", "Q7ZLM2XW9RTB5KDV");
/// Where no notification is sent: the task that it is about is over.
const HOOK: &str = "https://example.com/hook";

/// The agent that can neither list nor remove configurations of push notifications by HTTP+JSON.
const HALF_PUSH: &str = "a2a/python-0.3/server.py";

/// What the calls leave behind, without those of [`Calls::push`].
const RECEIPTS: &[(&str, &str)] = &[
    ("echo", "allow"),
    ("echo", "allow"),
    ("echo", "deny"),
    ("slow", "allow"),
    ("slow", "allow"),
    ("slow", "allow"),
    ("echo", "deny"),
    ("slow", "deny"),
    ("slow", "allow"),
    ("slow", "allow"),
];

/// One thing to do.
type Step<'a> = fn(&Calls<'a>) -> Result<()>;

/// Runs all calls against the agent of a script, by both of its bindings.
pub(super) fn run(rig: &Rig, server: &str) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for (binding, flag) in [("JSON-RPC", None), ("HTTP+JSON", Some("--rest"))] {
        let found = by_binding(rig, server, flag).with_context(|| binding.to_owned())?;
        problems.extend(found.into_iter().map(|problem| format!("{binding}: {problem}")));
    }
    Ok(problems)
}

fn by_binding(rig: &Rig, server: &str, flag: Option<&str>) -> Result<Vec<String>> {
    let home = server.rsplit_once('/').map_or(server, |(home, _)| home);
    let mut program = script(rig, home, &[server])?;
    program.args(flag);
    let agent = Agent::start(program)?;
    let folder = Folder::new()?;
    let data = folder.path("data");
    let arguments = ["a2a", "serve", "--target", agent.url(), "--http", "127.0.0.1:0"];
    let arguments = arguments.into_iter().chain(["--anonymous", "default", "--data"]);
    let chio = Chio::start(rig, &folder, arguments.map(OsStr::new).chain([data.as_os_str()]))?;
    let whole_push = server != HALF_PUSH || flag.is_none();
    let calls = Calls { chio: &chio, server: server_id(agent.url()), whole_push };
    let mut problems = calls.problems();
    if !problems.is_empty() {
        say!("the last that `chio` said:\n{}", chio.complaints());
    }
    problems.extend(chio.end()?);
    let push = vec![("echo", "allow"); if whole_push { 6 } else { 3 }];
    let expected = receipts::count(&[RECEIPTS, &push].concat());
    problems.extend(receipts::problems(&chio::receipts(rig, &folder)?, &expected));
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
    /// Whether configurations of push notifications can be listed and removed.
    whole_push: bool,
}

impl<'a> Calls<'a> {
    /// What did not go as it should.
    fn problems(&self) -> Vec<String> {
        let steps: [(&str, Step<'a>); 7] = [
            ("tools", Self::tools),
            ("text", Self::text),
            ("data", Self::data),
            ("denied", Self::denied),
            ("stream", Self::stream),
            ("followed", Self::followed),
            ("push", Self::push),
        ];
        let problem = |(name, step): (&str, Step<'a>)| {
            step(self).err().map(|error| format!("{name}: {error:#}"))
        };
        steps.into_iter().filter_map(problem).collect()
    }

    /// Each skill is a tool.
    fn tools(&self) -> Result<()> {
        let ran = self.chio.ask(&["tools", "list", "--server", &self.server])?;
        let tools: Vec<&str> =
            ran.stdout.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
        // Behind the names of the columns; what a list has no room for stands below its line.
        holds(
            ["echo", "slow"].iter().all(|tool| tools.contains(tool)),
            &json!([tools, ran.describe()]),
        )
    }

    fn text(&self) -> Result<()> {
        let seen = self.call("echo", &json!({"message": "hello"}))?;
        is_state(&seen, "/task", "COMPLETED")?;
        is(&seen, "/task/artifacts/0/parts/0/text", &json!("hello"))
    }

    fn data(&self) -> Result<()> {
        let seen = self.call("echo", &json!({"data": {"name": "value"}}))?;
        is_state(&seen, "/task", "COMPLETED")?;
        is(&seen, "/task/artifacts/0/parts/0/data", &json!({"name": "value"}))
    }

    /// What the policy forbids does not reach the agent.
    fn denied(&self) -> Result<()> {
        let secret = json!({"message": format!("key {ACCESS_KEY}")});
        self.refused("echo", &secret, "guard_denied")
    }

    /// Each event is a chunk, up to the last.
    fn stream(&self) -> Result<()> {
        let seen = self.call("slow", &json!({"data": {"updates": 2}, "stream": true}))?;
        let chunks = seen.pointer("/chioToolStream/chunks").and_then(Value::as_array);
        let chunks = chunks.with_context(|| format!("no chunks in {seen}"))?;
        let told = |text: &str| chunks.iter().any(|chunk| chunk.to_string().contains(text));
        holds(told("update 1") && told("update 2"), &seen)?;
        let last = chunks.last().context("an empty stream")?;
        is_state(last, "/statusUpdate", "COMPLETED")
    }

    /// A task that goes on is looked at and cancelled, by the tool that began it and by no other.
    fn followed(&self) -> Result<()> {
        let begin = json!({"message": "slow", "return_immediately": true});
        let id = task_id(&self.call("slow", &begin)?)?;
        let get = json!({"get_task": {"id": id}});
        is_state(&self.call("slow", &get)?, "/task", "WORKING")?;
        self.refused("echo", &get, "tool_server_error")?;
        let unknown = json!({"get_task": {"id": "no-such-task"}});
        self.refused("slow", &unknown, "tool_server_error")?;
        let cancel = json!({"cancel_task": {"id": id}});
        is_state(&self.call("slow", &cancel)?, "/task", "CANCELED")?;
        is_state(&self.call("slow", &get)?, "/task", "CANCELED")
    }

    /// A configuration of push notifications is made, read, listed and removed.
    fn push(&self) -> Result<()> {
        let task = task_id(&self.call("echo", &json!({"message": "to be told of"}))?)?;
        let config = json!({"task_id": task, "id": "mine", "url": HOOK});
        let created = self.call("echo", &json!({"create_push_notification_config": config}))?;
        is(&created, "/push_notification_config/url", &json!(HOOK))?;
        let id = created.pointer("/push_notification_config/id").cloned();
        let one = json!({"task_id": task, "id": id});
        let got = self.call("echo", &json!({"get_push_notification_config": one}))?;
        is(&got, "/push_notification_config/url", &json!(HOOK))?;
        if !self.whole_push {
            return Ok(());
        }
        let list = json!({"list_push_notification_configs": {"task_id": task}});
        let listed = self.call("echo", &list)?;
        is(&listed, "/push_notification_configs/0/url", &json!(HOOK))?;
        let deleted = self.call("echo", &json!({"delete_push_notification_config": one}))?;
        is(&deleted, "/deleted", &json!(true))?;
        is(&self.call("echo", &list)?, "/push_notification_configs", &json!([]))
    }

    /// What a tool answers.
    fn call(&self, tool: &str, arguments: &Value) -> Result<Value> {
        let result = self.result(tool, arguments)?;
        let structured = result.get("structuredContent").cloned();
        structured.with_context(|| format!("{tool} {arguments}: no answer in {result}"))
    }

    /// A call that has to be refused in this way.
    fn refused(&self, tool: &str, arguments: &Value, name: &str) -> Result<()> {
        let result = self.result(tool, arguments)?;
        is(&result, "/isError", &json!(true))?;
        is(&result, "/_meta/chio/name", &json!(name))
    }

    fn result(&self, tool: &str, arguments: &Value) -> Result<Value> {
        let arguments = arguments.to_string();
        let ran = self.chio.ask(&["call", "--json", &self.server, tool, &arguments])?;
        serde_json::from_str(&ran.stdout)
            .with_context(|| format!("`chio call {tool}`: {}", ran.describe()))
    }
}

fn task_id(seen: &Value) -> Result<String> {
    let id = seen.pointer("/task/id").and_then(Value::as_str);
    id.map(str::to_owned).with_context(|| format!("no task in {seen}"))
}

fn is_state(seen: &Value, at: &str, state: &str) -> Result<()> {
    is(seen, &format!("{at}/status/state"), &json!(format!("TASK_STATE_{state}")))
}

fn is(seen: &Value, pointer: &str, expected: &Value) -> Result<()> {
    let found = seen.pointer(pointer);
    if found == Some(expected) {
        return Ok(());
    }
    bail!("expected {expected} at {pointer}, found {found:?} in {seen}")
}

fn holds(holds: bool, seen: &Value) -> Result<()> {
    if holds { Ok(()) } else { bail!("unexpected: {seen}") }
}
