//! Calls that wait for an approval: the client hears of it, and an approver answers.

use std::time::Duration;

use chio_edge::{SettingValue, Settings};
use chio_testkit::kernel::store::Answered;
use chio_testkit::mcp::{Session, Stream, text_of};
use serde_json::{Value, json};

use crate::world::{Beginning, World};

const TOOL: &str = "delete_everything";

/// A server whose clients' users may be asked, or not.
fn asking(may_ask: bool) -> World {
    let (policy, asks_users) = ("default", Some(may_ask));
    Beginning { policy, asks_users, ..Beginning::default() }.start()
}

/// Begins a call that waits, whose progress is told.
#[track_caller]
fn start(session: &Session) -> Stream {
    let params = json!({"name": TOOL, "arguments": {}, "_meta": {"progressToken": "p"}});
    session.start("tools/call", &params)
}

/// What the client is told about the call that waits, in both forms.
#[track_caller]
fn told(call: &mut Stream) -> String {
    let progress = call.hears("notifications/progress");
    assert_eq!(progress["params"]["progressToken"], "p");
    let log = call.hears("notifications/message");
    let words = log["params"]["data"].as_str().unwrap();
    assert_eq!(progress["params"]["message"], words);
    words.to_owned()
}

#[test]
fn an_operator_who_says_no_denies_the_call_with_a_receipt() {
    let world = World::judged();
    let session = world.door.open();
    let mut call = start(&session);
    world.answer_waiting(false);
    let result = call.result();
    assert_eq!(result["isError"], true, "{result}");
    assert_eq!(result["_meta"]["chio"]["name"], "guard_denied", "{result}");
    world.check_calls(&[(TOOL, "deny")]);
}

#[test]
fn a_call_that_is_cancelled_waits_no_more() {
    let world = World::judged();
    let session = world.door.open();
    let mut call = start(&session);
    let request = world.waiting();
    session.cancel(&call.id);
    assert_eq!(call.try_answer(), None);
    assert_ne!(world.answer(&request, true), Answered::Recorded, "it is too late");
    world.check_calls(&[(TOOL, "cancelled")]);
}

#[test]
fn the_clients_user_is_not_asked_unless_policy_says_so() {
    let world = asking(false);
    let session = world.door.open_with(&json!({"elicitation": {"form": {}}}));
    let mut call = start(&session);
    told(&mut call);
    world.answer_waiting(false);
    assert_eq!(call.result()["isError"], true);
    assert!(call.heard("elicitation/create").is_empty(), "{:?}", call.before);
}

/// The question that the client's user is asked, which need not come first.
#[track_caller]
fn question(call: &mut Stream) -> Value {
    loop {
        let message = call.message().expect("a question");
        if message["method"] == "elicitation/create" {
            return message;
        }
    }
}

#[test]
fn where_policy_says_so_the_clients_user_answers() {
    for (answer, runs) in [
        (json!({"action": "accept", "content": {"approve": true}}), true),
        (json!({"action": "accept", "content": {"approve": false}}), false),
        (json!({"action": "accept", "content": {}}), false),
        (json!({"action": "decline"}), false),
    ] {
        let world = asking(true);
        let session = world.door.open_with(&json!({"elicitation": {"form": {}}}));
        let mut call = start(&session);
        let question = question(&mut call);
        let words = question["params"]["message"].as_str().unwrap();
        assert!(words.contains(TOOL), "{words}");
        session.reply(&question, &answer);
        let result = call.result();
        assert_eq!(result["isError"] != true, runs, "{answer}: {result}");
        world.check_calls(&[(TOOL, if runs { "allow" } else { "deny" })]);
        world.audit();
    }
}

#[test]
fn a_user_who_closes_the_question_leaves_it_to_an_operator() {
    let world = asking(true);
    let session = world.door.open_with(&json!({"elicitation": {"form": {}}}));
    let mut call = start(&session);
    let question = question(&mut call);
    session.reply(&question, &json!({"action": "cancel"}));
    world.answer_waiting(true);
    assert_eq!(text_of(&call.result()), "Everything is still there.");
    world.check_calls(&[(TOOL, "allow")]);
}

#[test]
fn a_task_can_wait_for_an_approval_too() {
    let world = World::judged();
    let session = world.door.open();
    let params = json!({"name": TOOL, "arguments": {}, "task": {}});
    let answer = session.request("tools/call", &params);
    let task = answer["result"]["task"]["taskId"].clone();
    world.answer_waiting(true);
    let answer = session.request("tasks/result", &json!({"taskId": task}));
    assert_eq!(text_of(&answer["result"]), "Everything is still there.", "{answer}");
    world.check_calls(&[(TOOL, "allow")]);
}

// covers: WIRE-064
#[test]
fn a_client_whose_stream_is_closed_while_its_call_waits_comes_back_for_the_result() {
    let rotate = SettingValue::Duration(Duration::from_millis(150));
    let settings = Settings::default().with("rotate_streams", Some(rotate));
    let policy = "default";
    let world = Beginning { policy, settings, ..Beginning::default() }.start();
    let session = world.door.open();
    let mut call = start(&session);
    told(&mut call);
    while let Some(message) = call.message() {
        assert!(message.get("id").is_none(), "{message}");
    }
    world.answer_waiting(true);
    let answer = session.go_on(call);
    assert_eq!(text_of(&answer["result"]), "Everything is still there.");
    world.check_calls(&[(TOOL, "allow")]);
}
