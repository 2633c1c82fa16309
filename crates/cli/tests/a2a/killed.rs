//! Tasks of a process that is killed: each ends once, its receipts say how, and it can still be read.

use chio_testkit::process::{mcp_fixture, until};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::{Agent, World, message};

/// Serves the MCP fixture, with room for so many calls at once.
fn start(world: &World, most: u32) -> Agent {
    let config = format!(
        "store: s\npolicy: permissive\nservers: [{{id: fixture, command: [\"{}\"]}}]\nlisteners:\n  \
         http: {{listen: \"127.0.0.1:0\", anonymous: default}}\nedges: {{mcp: {{}}, a2a: \
         {{max_running: {most}, keep_tasks: 1h}}}}\n",
        mcp_fixture().display()
    );
    world.folder.write("chio.yaml", config);
    world.start(&["serve"], "s")
}

/// Sends a message by this name to the tool that answers as its name asks for.
fn send(agent: &Agent, id: &str, task: Option<&Value>, at_once: bool) -> Value {
    let mut params = message(&json!([{"text": "go"}]));
    params["message"]["messageId"] = json!(id);
    if let Some(task) = task {
        params["message"]["taskId"] = task["id"].clone();
    }
    params["configuration"] = json!({"returnImmediately": at_once});
    let answer = agent.call("/skills/tck", "SendMessage", &params);
    assert!(answer["result"]["task"].is_object(), "{answer}");
    answer["result"]["task"].clone()
}

fn get(agent: &Agent, task: &Value) -> Value {
    agent.call("/", "GetTask", &json!({"id": task["id"]}))["result"].clone()
}

/// How far a task has come, as the store has it.
fn stored(world: &World, task: &Value) -> Option<String> {
    let database = Connection::open(world.folder.path("s/store.db")).ok()?;
    let sql = "SELECT state FROM tasks WHERE id = ?1";
    database.query_row(sql, [task["id"].as_str()?], |row| row.get(0)).ok()
}

/// The verdict of the receipt that a task carries.
fn verdict(task: &Value) -> Value {
    let receipt = task["metadata"]["chio"]["receipt"].as_str().unwrap();
    serde_json::from_str::<Value>(receipt).unwrap()["decision"]["verdict"].clone()
}

#[test]
fn a_task_of_a_killed_process_ends_once_and_its_receipts_say_how() {
    let world = World::new();
    let agent = start(&world, 1);
    let done = send(&agent, "tck-complete-task-1", None, false);
    let [asking, answered, answering] = ["a", "b", "c"].map(|name| {
        let task = send(&agent, &format!("tck-input-required-{name}"), None, false);
        assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{task}");
        task
    });
    // It takes the only place there is, so what follows is accepted and does not run yet.
    send(&agent, "tck-wait-1", Some(&answering), true);
    until("a call", || (stored(&world, &answering)? == "running").then_some(()));
    let accepted = send(&agent, "tck-complete-task-2", None, true);
    send(&agent, "tck-complete-task-3", Some(&answered), true);
    let states =
        [&done, &asking, &accepted, &answered, &answering].map(|task| stored(&world, task));
    let expected = ["completed", "asking", "waiting", "waiting", "running"];
    assert_eq!(states, expected.map(|state| Some(state.to_owned())));
    // A server that is dropped is killed.
    drop(agent);

    let agent = start(&world, 8);
    let over = |task: &Value| {
        until("an end", || {
            let found = get(&agent, task);
            (found["status"]["state"] != "TASK_STATE_WORKING").then_some(found)
        })
    };
    assert_eq!(get(&agent, &done), done, "it is as it was");
    for task in [&accepted, &answered] {
        let found = over(task);
        assert_eq!(found["status"]["state"], "TASK_STATE_COMPLETED", "{found}");
        assert_eq!(verdict(&found), "allow");
    }
    let cut = over(&answering);
    assert_eq!(cut["status"]["state"], "TASK_STATE_FAILED", "{cut}");
    assert_eq!(verdict(&cut), "incomplete");
    assert_eq!(get(&agent, &asking), asking, "the question stands");
    let given = send(&agent, "tck-complete-task-4", Some(&asking), false);
    assert_eq!(given["status"]["state"], "TASK_STATE_COMPLETED", "{given}");
    // One of each call: four at first, two that were accepted, one that was cut off, one answer.
    let receipts = world.receipts("s");
    assert_eq!(receipts.len(), 8);
    let allowed = receipts.iter().filter(|receipt| receipt["decision"]["verdict"] == "allow");
    assert_eq!(allowed.count(), 7);
    let seen = [&done, &asking, &accepted, &answered, &answering].map(|task| get(&agent, task));
    drop(agent);

    let agent = start(&world, 8);
    for task in &seen {
        assert_eq!(get(&agent, task), *task, "each is still there, and nothing ran again");
    }
    let mut same = message(&json!([{"text": "go"}]));
    same["message"]["messageId"] = json!("tck-complete-task-1");
    let again = agent.call("/skills/tck", "SendMessage", &same);
    assert_eq!(again["result"]["task"]["id"], done["id"], "the same message is sent once");
    assert_eq!(world.receipts("s").len(), 8);
    drop(agent);
    world.audit("s");
}
