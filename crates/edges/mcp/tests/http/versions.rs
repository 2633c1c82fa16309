//! Sessions of each version: what a client gets that knows no more than its version.

use chio_mcp_edge::SUPPORTED;
use chio_testkit::mcp::{Session, text_of};
use serde_json::{Value, json};

use crate::world::{Beginning, Tools, World};

const NOV_2025: &str = "2025-11-25";
const JUN_2025: &str = "2025-06-18";
const MAR_2025: &str = "2025-03-26";
const NOV_2024: &str = "2024-11-05";

/// A fixture with tools that say more than older versions can.
fn world() -> World {
    Beginning { tools: Tools::also("link,members"), ..Beginning::default() }.start()
}

/// Checks which members the objects of a list have, of those that not every version has.
#[track_caller]
fn check_members(version: &str, session: &Session, list: &str, some: &[&str], expected: &[&str]) {
    let listed = session.request(&format!("{list}/list"), &json!({}))["result"].clone();
    let member = if list == "resources/templates" { "resourceTemplates" } else { list };
    let entries = listed[member].as_array().unwrap();
    assert!(!entries.is_empty(), "{version} {list}");
    for name in some {
        let has = entries.iter().any(|entry| entry.get(*name).is_some());
        assert_eq!(has, expected.contains(name), "{version} {list} {name}");
    }
}

// covers: WIRE-075, WIRE-076, WIRE-078, WIRE-079
#[test]
fn each_version_has_its_own_members_and_no_later_ones() {
    let world = world();
    let tool = ["annotations", "outputSchema", "_meta", "execution"];
    let other = ["title"];
    for (version, capabilities, title, of_tool, of_other) in [
        (NOV_2025, &["completions", "tasks"][..], true, &tool[..], &other[..]),
        (JUN_2025, &["completions"], true, &tool[..3], &other),
        (MAR_2025, &["completions"], false, &tool[..1], &[]),
        (NOV_2024, &[], false, &[], &[]),
    ] {
        let session = world.door.open_as(version, &json!({}));
        assert_eq!(session.welcome["protocolVersion"], version);
        for name in ["completions", "tasks"] {
            let has = session.welcome["capabilities"].get(name).is_some();
            assert_eq!(has, capabilities.contains(&name), "{version} {name}");
        }
        assert_eq!(session.welcome["serverInfo"].get("title").is_some(), title, "{version}");
        let chosen = &session.welcome["capabilities"]["experimental"]["chioProtocol"];
        assert_eq!(chosen["selectedProtocolVersion"], version);
        check_members(version, &session, "tools", &tool, of_tool);
        for list in ["resources", "resources/templates", "prompts"] {
            check_members(version, &session, list, &other, of_other);
        }
    }
}

#[test]
fn results_say_what_the_version_cannot_in_its_own_way() {
    let world = world();
    for version in SUPPORTED {
        let session = world.door.open_as(version, &json!({}));
        let is_new = version >= JUN_2025;
        let audio = session.call("test_audio_content", &json!({}))["content"][0].clone();
        if version == NOV_2024 {
            assert_eq!(audio["type"], "resource", "{audio}");
            assert_eq!(audio["resource"]["mimeType"], "audio/wav", "{audio}");
            assert!(audio["resource"]["blob"].as_str().is_some_and(|it| !it.is_empty()));
        } else {
            assert_eq!(audio["type"], "audio", "{version} {audio}");
        }
        let sum = session.call("add", &json!({"a": 1, "b": 2}));
        let structured = is_new.then(|| json!({"sum": 3.0}));
        assert_eq!(sum.get("structuredContent"), structured.as_ref(), "{version}");
        assert!(sum["_meta"]["chio"]["receiptId"].is_string(), "every version has it");
        let members = session.call("members", &json!({}));
        assert_eq!(members.get("structuredContent").is_some(), is_new, "{version}");
        match is_new {
            true => assert_eq!(members["content"], json!([])),
            false => assert_eq!(text_of(&members), r#"{"sum":3}"#),
        }
        let link = session.call("link", &json!({}))["content"].clone();
        assert_eq!(link[1].get("_meta").is_some(), is_new, "{link}");
        match is_new {
            true => assert_eq!(link[0]["type"], "resource_link"),
            false => assert_eq!(link[0]["text"], "A text\ntest://static-text\ntext/plain"),
        }
    }
    world.audit();
}

#[test]
fn tasks_are_of_the_version_that_has_them() {
    let world = World::fixture();
    for version in SUPPORTED {
        let session = world.door.open_as(version, &json!({}));
        let has_tasks = version == NOV_2025;
        for method in ["tasks/list", "tasks/get", "tasks/result", "tasks/cancel"] {
            let code = session.request(method, &json!({"taskId": "t"}))["error"]["code"].clone();
            assert_eq!(code == -32601, !has_tasks, "{version} {method} {code}");
        }
        let echo = json!({"name": "echo", "arguments": {"text": "x"}, "task": {"ttl": 1000}});
        let called = session.request("tools/call", &echo)["result"].clone();
        assert_eq!(called.get("task").is_some(), has_tasks, "{version} {called}");
    }
}

#[test]
fn progress_has_words_where_the_version_has_them() {
    let world = Beginning { policy: "default", ..Beginning::default() }.start();
    for (version, has_words) in [(NOV_2024, false), (MAR_2025, true)] {
        let session = world.door.open_as(version, &json!({}));
        let params = json!({"name": "delete_everything", "arguments": {},
            "_meta": {"progressToken": "p"}});
        let mut call = session.start("tools/call", &params);
        let progress = call.hears("notifications/progress");
        assert_eq!(progress["params"].get("message").is_some(), has_words, "{version} {progress}");
        let log = call.hears("notifications/message");
        assert!(log["params"]["data"].is_string(), "{log}");
        world.answer_waiting(false);
        call.result();
    }
}

#[test]
fn a_client_is_asked_what_its_version_knows() {
    let tools = Tools::also("ask_with_mode");
    let world = Beginning { tools, ..Beginning::default() }.start();
    let capabilities = json!({"elicitation": {}});
    for (version, mode) in [(JUN_2025, None), (NOV_2025, Some(json!("form")))] {
        let session = world.door.open_as(version, &capabilities);
        let mut call = session.start_call("ask_with_mode", &json!({}));
        let question = call.hears("elicitation/create");
        assert_eq!(question["params"].get("mode"), mode.as_ref(), "{version} {question}");
        session.reply(&question, &json!({"action": "decline"}));
        call.result();
    }
    // What it says that it can do is of a later version, and means nothing.
    let session = world.door.open_as(MAR_2025, &capabilities);
    let mut call = session.start_call("test_elicitation", &json!({"message": "Who?"}));
    assert_eq!(call.result()["isError"], true);
    assert!(call.before.is_empty(), "{:?}", call.before);
}

// covers: WIRE-059
#[test]
fn the_version_may_be_left_out_of_requests_and_may_not_be_another() {
    let world = World::demo();
    for version in SUPPORTED {
        let session = world.door.open_as(version, &json!({}));
        let ping = || session.asks("ping", &json!({})).1;
        let send = |request: chio_testkit::mcp::Request| session.door.send(request);
        send(session.of(ping())).is(200);
        send(session.of(ping()).without("MCP-Protocol-Version")).is(200);
        for other in SUPPORTED.into_iter().filter(|other| *other != version) {
            let mut answer = send(session.of(ping()).with("MCP-Protocol-Version", other)).is(400);
            let error: Value = answer.json()["error"].clone();
            assert_eq!(error["data"]["chioError"]["name"], "protocol_version_unsupported");
        }
    }
}
