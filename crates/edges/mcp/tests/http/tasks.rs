//! Calls as tasks: taken on at once, asked for later, and only by the session that they belong to.

use chio_mcp_adapter::Sharing;
use chio_testkit::mcp::{Request, Session, receipt_of, text_of};
use chio_testkit::process::until;
use serde_json::{Value, json};

use crate::world::World;

const RELATED: &str = "io.modelcontextprotocol/related-task";

/// Takes a call on as a task; gives its id.
#[track_caller]
fn defer(session: &Session, tool: &str, arguments: &Value) -> String {
    let params = json!({"name": tool, "arguments": arguments, "task": {"ttl": 60_000}});
    let answer = session.request("tools/call", &params);
    let task = &answer["result"]["task"];
    assert_eq!(task["status"], "working", "{answer}");
    assert_eq!(task["ttl"], 60_000, "{answer}");
    assert!(task["createdAt"].is_string() && task["pollInterval"].is_number(), "{answer}");
    task["taskId"].as_str().unwrap().to_owned()
}

#[track_caller]
fn status(session: &Session, id: &str) -> String {
    let answer = session.request("tasks/get", &json!({"taskId": id}));
    assert_eq!(answer["result"]["taskId"], id, "{answer}");
    answer["result"]["status"].as_str().unwrap().to_owned()
}

#[track_caller]
fn listed(session: &Session) -> Vec<String> {
    let answer = session.request("tasks/list", &json!({}));
    let tasks = answer["result"]["tasks"].as_array().unwrap().iter();
    tasks.map(|task| task["taskId"].as_str().unwrap().to_owned()).collect()
}

// covers: WIRE-067
#[test]
fn a_task_works_and_completes_and_its_result_can_be_had_with_its_one_receipt() {
    let world = World::fixture();
    let session = world.door.open();
    let offered = &session.welcome["capabilities"]["tasks"];
    assert_eq!(offered["requests"]["tools"]["call"], json!({}), "{offered}");
    let mut listening = session.listen();
    let id = defer(&session, "slow", &json!({"ms": 300}));
    let answer = session.request("tasks/result", &json!({"taskId": id}));
    let result = &answer["result"];
    assert_eq!(text_of(result), "This took 300 ms.", "{answer}");
    assert_eq!(result["_meta"][RELATED]["taskId"], *id);
    assert_eq!(status(&session, &id), "completed");
    let told = listening.hears("notifications/tasks/status");
    assert_eq!(
        (&told["params"]["taskId"], &told["params"]["status"]),
        (&json!(id), &json!("completed"))
    );
    // Asked again, it is the same and runs no second time.
    let again = session.request("tasks/result", &json!({"taskId": id}));
    assert_eq!(again["result"], *result);
    assert_eq!(listed(&session), [id]);
    world.check_calls(&[("slow", "allow")]);
    assert_eq!(world.receipts()[0]["id"], receipt_of(result));
    world.audit();
}

#[test]
fn a_task_that_is_cancelled_ends_with_a_receipt() {
    let world = World::fixture();
    let session = world.door.open();
    let id = defer(&session, "slow", &json!({"ms": 60_000}));
    assert_eq!(status(&session, &id), "working");
    let answer = session.request("tasks/cancel", &json!({"taskId": id}));
    assert_eq!(answer["result"]["status"], "cancelled", "{answer}");
    assert_eq!(status(&session, &id), "cancelled");
    let again = session.request("tasks/cancel", &json!({"taskId": id}));
    assert_eq!(again["error"]["code"], -32602, "{again}");
    let answer = session.request("tasks/result", &json!({"taskId": id}));
    assert!(answer.get("error").is_some() || answer["result"]["isError"] == true, "{answer}");
    world.check_calls(&[("slow", "cancelled")]);
    world.audit();
}

#[test]
fn a_denied_task_and_a_failed_one_tell_why() {
    let world = World::judged();
    let session = world.door.open();
    for (tool, arguments, words, verdict) in [
        ("read_file", json!({"path": "/etc/shadow"}), "forbidden-path", "deny"),
        ("test_error_handling", json!({}), "intentionally returns an error", "allow"),
    ] {
        let id = defer(&session, tool, &arguments);
        let answer = session.request("tasks/result", &json!({"taskId": id}));
        let result = &answer["result"];
        assert_eq!(result["isError"], true, "{answer}");
        assert!(text_of(result).contains(words), "{answer}");
        let receipt = world.receipt(receipt_of(result));
        assert_eq!(receipt["decision"]["verdict"], verdict, "{receipt}");
    }
    assert_eq!(world.calls().len(), 2);
}

#[test]
fn a_task_whose_result_is_an_error_has_failed() {
    let world = World::judged();
    let session = world.door.open();
    for (tool, arguments) in
        [("read_file", json!({"path": "/etc/shadow"})), ("test_error_handling", json!({}))]
    {
        let id = defer(&session, tool, &arguments);
        session.request("tasks/result", &json!({"taskId": id}));
        assert_eq!(status(&session, &id), "failed", "{tool}");
    }
}

#[test]
fn what_a_task_asks_and_tells_names_the_task() {
    let world = World::fixture();
    let session = world.door.open_with(&json!({"elicitation": {"form": {}}}));
    let mut listening = session.listen();
    let id = defer(&session, "test_elicitation", &json!({"message": "Your name?"}));
    let question = listening.hears("elicitation/create");
    session.reply(&question, &json!({"action": "decline"}));
    let answer = session.request("tasks/result", &json!({"taskId": id}));
    assert!(text_of(&answer["result"]).contains("action=decline"), "{answer}");
    world.check_calls(&[("test_elicitation", "allow")]);
    assert_eq!(question["params"]["_meta"][RELATED]["taskId"], *id, "{question}");
}

#[test]
fn a_list_of_tasks_has_no_place_that_nobody_gave() {
    let world = World::fixture();
    let session = world.door.open();
    let answer = session.request("tasks/list", &json!({"cursor": "far away"}));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}

// covers: WIRE-067, WIRE-069
#[test]
fn a_task_of_another_session_is_not_there_and_goes_on() {
    for sharing in [Sharing::PerSession, Sharing::Shared] {
        let world = World::sharing(sharing);
        let (session, other) = (world.door.open(), world.door.open());
        let id = defer(&session, "slow", &json!({"ms": 1000}));
        assert!(listed(&other).is_empty());
        for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
            let foreign = other.request(method, &json!({"taskId": id}));
            let unknown = other.request(method, &json!({"taskId": "made-up"}));
            assert_eq!(foreign["error"]["code"], -32602, "{method}: {foreign}");
            assert_eq!(foreign["error"], unknown["error"], "{method} tells nothing");
        }
        assert_eq!(status(&session, &id), "working");
        let answer = session.request("tasks/result", &json!({"taskId": id}));
        assert_eq!(text_of(&answer["result"]), "This took 1000 ms.", "{answer}");
        world.check_calls(&[("slow", "allow")]);
    }
}

// covers: WIRE-067, WIRE-071
#[test]
fn a_task_ends_with_its_session_and_no_other_finds_it() {
    let world = World::fixture();
    let session = world.door.open();
    let id = defer(&session, "slow", &json!({"ms": 60_000}));
    session.send(Request::delete()).is(204);
    until("a receipt", || (!world.calls().is_empty()).then_some(()));
    world.check_calls(&[("slow", "cancelled")]);
    let answer = world.door.open().request("tasks/get", &json!({"taskId": id}));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}

#[test]
fn what_is_no_task_is_refused() {
    let world = World::fixture();
    let session = world.door.open();
    for task in [json!(true), json!("x"), json!({"ttl": -1}), json!({"ttl": "1"})] {
        let params = json!({"name": "echo", "arguments": {"text": "x"}, "task": task});
        let answer = session.request("tools/call", &params);
        assert_eq!(answer["error"]["code"], -32602, "{task}: {answer}");
    }
    let params = json!({"name": "no_such_tool", "arguments": {}, "task": {}});
    assert_eq!(session.request("tools/call", &params)["error"]["code"], -32602);
    assert!(world.receipts().is_empty());
}
