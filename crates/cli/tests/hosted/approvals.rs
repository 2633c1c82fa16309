//! Calls that wait for an approval: the client hears of it, and an approver answers.

use chio_testkit::process::until;
use serde_json::{Value, json};

use crate::session::{Session, Stream, receipt_of, text_of};
use crate::support::World;

const TOOL: &str = "delete_everything";
/// Lets the client's own user answer.
const ASKS: &str =
    "hushspec: \"0.1.0\"\nextends: default\nchio:\n  approvals:\n    ask_client: true\n";

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

/// The request for approval of the only call that waits.
#[track_caller]
fn waiting(world: &World) -> String {
    until("a call to wait", || {
        let listed = world.line("approvals list --data s --json").ends(0).json();
        listed["approvals"][0]["request"]["id"].as_str().map(str::to_owned)
    })
}

#[test]
fn the_client_hears_what_its_call_waits_for_and_an_approval_lets_it_go_on() {
    let world = World::new();
    let served = world.wrap("--anonymous default");
    let session = served.door.open();
    let mut call = start(&session);
    let words = told(&mut call);
    let id = waiting(&world);
    assert!(words.contains(&format!("chio approvals approve {id}")), "{words}");
    assert!(world.calls().is_empty(), "it has not run");
    // Others need not wait with it.
    session.call("echo", &json!({"text": "meanwhile"}));
    world.line(&format!("approvals approve {id} --data s")).ends(0);
    let result = call.result();
    assert_eq!(text_of(&result), "Everything is still there.");
    assert_eq!(world.receipt(receipt_of(&result))["decision"]["verdict"], "allow");
    world.check_calls(&[("echo", "allow"), (TOOL, "allow")]);
    world.audit();
}

#[test]
fn an_operator_who_says_no_denies_the_call_with_a_receipt() {
    let world = World::new();
    let served = world.wrap("--anonymous default");
    let session = served.door.open();
    let mut call = start(&session);
    world.line(&format!("approvals deny {} --data s", waiting(&world))).ends(0);
    let result = call.result();
    assert_eq!(result["isError"], true, "{result}");
    assert_eq!(result["_meta"]["chio"]["name"], "guard_denied", "{result}");
    world.check_calls(&[(TOOL, "deny")]);
}

#[test]
fn a_call_that_is_cancelled_waits_no_more() {
    let world = World::new();
    let served = world.wrap("--anonymous default");
    let session = served.door.open();
    let mut call = start(&session);
    let id = waiting(&world);
    session.cancel(&call.id);
    assert_eq!(call.answer()["error"]["code"], -32800);
    let late = world.line(&format!("approvals approve {id} --data s"));
    assert_ne!(late.code, 0, "{late:?}");
    world.check_calls(&[(TOOL, "cancelled")]);
}

#[test]
fn the_clients_user_is_not_asked_unless_policy_says_so() {
    let world = World::new();
    let served = world.wrap("--anonymous default");
    let session = served.door.open_with(&json!({"elicitation": {"form": {}}}));
    let mut call = start(&session);
    told(&mut call);
    world.line(&format!("approvals deny {} --data s", waiting(&world))).ends(0);
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
        let world = World::new();
        world.folder.write("asks.yaml", ASKS);
        let served = world.wrap("--anonymous default --policy asks.yaml");
        let session = served.door.open_with(&json!({"elicitation": {"form": {}}}));
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
    let world = World::new();
    world.folder.write("asks.yaml", ASKS);
    let served = world.wrap("--anonymous default --policy asks.yaml");
    let session = served.door.open_with(&json!({"elicitation": {"form": {}}}));
    let mut call = start(&session);
    let question = question(&mut call);
    session.reply(&question, &json!({"action": "cancel"}));
    world.line(&format!("approvals approve {} --data s", waiting(&world))).ends(0);
    assert_eq!(text_of(&call.result()), "Everything is still there.");
    world.check_calls(&[(TOOL, "allow")]);
}

#[test]
fn a_task_can_wait_for_an_approval_too() {
    let world = World::new();
    let served = world.wrap("--anonymous default");
    let session = served.door.open();
    let params = json!({"name": TOOL, "arguments": {}, "task": {}});
    let answer = session.request("tools/call", &params);
    let task = answer["result"]["task"]["taskId"].clone();
    world.line(&format!("approvals approve {} --data s", waiting(&world))).ends(0);
    let answer = session.request("tasks/result", &json!({"taskId": task}));
    assert_eq!(text_of(&answer["result"]), "Everything is still there.", "{answer}");
    world.check_calls(&[(TOOL, "allow")]);
}

// covers: WIRE-064
#[test]
fn a_client_whose_stream_is_closed_while_its_call_waits_comes_back_for_the_result() {
    let world = World::new();
    let served = world.wrap("--anonymous default --rotate-streams 150ms");
    let session = served.door.open();
    let mut call = start(&session);
    told(&mut call);
    while let Some(message) = call.message() {
        assert!(message.get("id").is_none(), "{message}");
    }
    world.line(&format!("approvals approve {} --data s", waiting(&world))).ends(0);
    let answer = session.go_on(call);
    assert_eq!(text_of(&answer["result"]), "Everything is still there.");
    world.check_calls(&[(TOOL, "allow")]);
}

#[test]
fn a_call_that_waits_when_the_server_ends_is_cancelled_with_a_receipt() {
    let world = World::new();
    let mut served = world.wrap("--anonymous default");
    let session = served.door.open();
    let mut call = start(&session);
    told(&mut call);
    served.server.end();
    world.check_calls(&[(TOOL, "cancelled")]);
    world.audit();
}
