//! Calls that wait for an approval, which another process gives.

use std::process::Command;

use chio_testkit::mcp::{Session, Stream, receipt_of, text_of};
use chio_testkit::process::{Run, until};
use serde_json::json;

use crate::support::World;

const TOOL: &str = "delete_everything";

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

#[test]
fn a_client_that_cannot_wait_is_given_a_command_that_works_in_any_folder_and_asks_again() {
    let world = World::new();
    let served = world.wrap("--anonymous default --approval-wait 1ms");
    let session = served.door.open();
    let told = session.call(TOOL, &json!({}));
    let about = &told["_meta"]["chio"];
    assert_eq!(told["isError"], true, "{told}");
    let command = about["command"].as_str().unwrap();
    assert!(text_of(&told).contains(command), "{told}");
    let mut words = command.split(' ');
    assert_eq!(words.next(), Some("chio"));
    let mut chio = Command::new(env!("CARGO_BIN_EXE_chio"));
    Run::of(chio.args(words).current_dir("/"), b"").ends(0).says("approved");
    let result = until("a result", || {
        let again = session.call(TOOL, &json!({}));
        let waits = &again["_meta"]["chio"]["approvalId"];
        assert!(waits.is_null() || waits == &about["approvalId"], "{again}");
        waits.is_null().then_some(again)
    });
    assert_eq!(text_of(&result), "Everything is still there.");
    world.check_calls(&[(TOOL, "allow")]);
    assert_eq!(world.receipt(receipt_of(&result))["decision"]["verdict"], "allow");
    world.audit();
}
