//! Servers that crash, hang and babble: each call has its answer and its one receipt.

use std::thread;
use std::time::Duration;

use chio_edge::{SettingValue, Settings};
use chio_mcp_adapter::Sharing;
use chio_testkit::mcp::{Request, Session, initialize, receipt_of, text_of};
use chio_testkit::process::{Folder, mcp_fixture, until};
use serde_json::{Value, json};

use crate::world::{Beginning, Tools, World};

/// Checks that a session works.
#[track_caller]
fn check_works(session: &Session) {
    assert_eq!(text_of(&session.call("echo", &json!({"text": "still here"}))), "still here");
}

/// Checks that the answer to a call was lost, with a receipt of its own that says so.
#[track_caller]
fn check_failed(world: &World, result: &Value) {
    assert_eq!(result["isError"], true, "{result}");
    let about = &result["_meta"]["chio"];
    assert_eq!((&about["decision"], &about["execution"]), (&json!("incomplete"), &json!("begun")));
    assert!(result["content"].to_string().contains("may have run"), "{result}");
    assert!(about.get("retry").is_none(), "{result}");
    let receipt = world.receipt(receipt_of(result));
    assert_eq!(receipt["decision"]["verdict"], "incomplete", "{receipt}");
}

#[test]
fn a_server_that_crashes_in_a_call_fails_that_call_and_is_started_again() {
    let world = World::fixture();
    let (session, other) = (world.door.open(), world.door.open());
    let result = session.call("crash", &json!({}));
    check_failed(&world, &result);
    let mut tries = 1;
    until("the server to be back", || {
        let result = session.call("echo", &json!({"text": "back"}));
        tries += 1;
        (result["isError"] != true).then(|| assert_eq!(text_of(&result), "back"))
    });
    // A session with a server of its own has not noticed.
    check_works(&other);
    let calls = world.calls();
    assert_eq!(calls.len(), tries + 1, "{calls:?}");
    assert_eq!(calls.iter().filter(|(tool, _)| tool == "crash").count(), 1);
    world.audit();
}

#[test]
fn a_crash_fails_every_call_that_ran_and_each_has_its_receipt() {
    for sharing in [Sharing::PerSession, Sharing::Shared] {
        let world = World::sharing(sharing);
        let session = world.door.open();
        let mut slow: Vec<_> =
            (0..5).map(|_| session.start_call("slow", &json!({"ms": 60_000}))).collect();
        for call in &mut slow {
            call.event().unwrap();
        }
        check_failed(&world, &session.call("crash", &json!({})));
        for call in &mut slow {
            check_failed(&world, &call.result());
        }
        let calls = world.calls();
        assert_eq!(calls.len(), 6, "{calls:?}");
        assert!(calls.iter().all(|(_, end)| end != "allow"), "{calls:?}");
        world.audit();
    }
}

#[test]
fn a_restarted_server_is_told_again_what_the_session_watches() {
    let world = World::fixture();
    let session = world.door.open();
    let mut listening = session.listen();
    session.request("resources/subscribe", &json!({"uri": "test://watched-resource"}));
    session.call("crash", &json!({}));
    until("the server to be back", || {
        (session.call("touch_watched", &json!({}))["isError"] != true).then_some(())
    });
    // A server that was told of no watch would not say so.
    listening.hears("notifications/resources/updated");
}

#[test]
fn lines_that_are_no_messages_are_passed_over() {
    let world = World::fixture();
    let session = world.door.open();
    for _ in 0..3 {
        let mut call = session.start_call("garbage", &json!({}));
        assert_eq!(text_of(&call.result()), "There was garbage before this.");
        // One of them is a notification that is no part of MCP.
        assert_eq!(call.heard("notifications/nobody_knows").len(), 1);
        assert_eq!(call.before.len(), 1, "{:?}", call.before);
    }
    check_works(&session);
    assert_eq!(world.calls().len(), 4);
}

#[test]
fn large_answers_that_come_at_once_all_arrive() {
    let world = World::fixture();
    let session = world.door.open();
    let answers: Vec<Option<usize>> = thread::scope(|scope| {
        let call = || {
            let mut call = session.start_call("huge", &json!({"megabytes": 3}));
            call.try_answer().map(|answer| text_of(&answer["result"]).len())
        };
        let calls: Vec<_> = (0..24).map(|_| scope.spawn(call)).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert_eq!(answers, [Some(3 << 20); 24], "each has its own");
    assert_eq!(world.calls().len(), 24);
}

#[test]
fn a_server_that_is_loud_on_standard_error_is_not_in_the_way() {
    let world = World::fixture();
    let session = world.door.open();
    for _ in 0..5 {
        assert_eq!(text_of(&session.call("noisy_stderr", &json!({}))), "1000 lines were written.");
    }
    assert_eq!(world.calls().len(), 5);
}

#[test]
fn a_tool_that_never_answers_holds_up_nobody_and_its_session_can_be_ended() {
    let world = World::fixture();
    let session = world.door.open();
    let mut hanging: Vec<_> = (0..8).map(|_| session.start_call("hang", &json!({}))).collect();
    for call in &mut hanging {
        call.event().unwrap();
    }
    check_works(&session);
    session.send(Request::delete()).is(204);
    for call in &mut hanging {
        assert_eq!(call.answer()["error"]["code"], -32800);
    }
    let calls = world.calls();
    let cancelled = calls.iter().filter(|(_, end)| end == "cancelled").count();
    assert_eq!((calls.len(), cancelled), (9, 8));
    world.audit();
}

#[test]
fn a_server_that_cannot_be_started_is_told_and_the_session_is_not_opened() {
    let folder = Folder::new();
    folder.write("there", "");
    let script = format!("test -e there && exec '{}'", mcp_fixture().display());
    let command = ["sh", "-c", &script].map(str::to_owned).to_vec();
    let tools = Tools::Fixture {
        command,
        sharing: Sharing::PerSession,
        folder: Some(folder.root().to_owned()),
        late: Duration::ZERO,
    };
    let settings = Settings::default().with("max_sessions", Some(SettingValue::Number(1)));
    let world = Beginning { tools, settings, ..Beginning::default() }.start();
    std::fs::remove_file(folder.path("there")).unwrap();
    let hello = Request::post(&initialize(&json!({})));
    for _ in 0..3 {
        let mut answer = world.door.send(hello.clone()).is(502);
        assert_eq!(answer.header("mcp-session-id"), None);
        let message = answer.json();
        assert_eq!(message["id"], 0, "{message}");
        assert_eq!(message["error"]["data"]["chioError"]["name"], "tool_server_error", "{message}");
    }
    // Those took no place away.
    folder.write("there", "");
    check_works(&world.door.open());
    assert_eq!(world.calls().len(), 1);
}
