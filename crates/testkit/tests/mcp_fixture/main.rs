//! The MCP server for tests does what tests of others rely upon.
#![cfg(test)]

mod client;

use std::collections::BTreeSet;

use chio_testkit::process::Folder;
use serde_json::{Value, json};

use crate::client::{Client, text};

#[test]
fn nothing_but_a_ping_is_answered_before_initialize() {
    let mut client = Client::bare("");
    client.request(1, "ping", json!({}));
    assert_eq!(client.result_of(1), json!({}));
    for method in ["tools/list", "resources/list", "prompts/list"] {
        client.request(2, method, json!({}));
        assert_eq!(client.message()["error"]["code"], -32600, "{method}");
    }
    client.call(3, "echo", json!({"text": "a"}));
    assert_eq!(client.message()["error"]["code"], -32600);
}

#[test]
fn what_is_not_there_is_refused_with_its_own_code() {
    let mut client = Client::new("", json!({}));
    let of_prompt = json!({"ref": {"type": "ref/prompt", "name": "none"}});
    for (method, params, code) in [
        ("tools/call", json!({"name": "none"}), -32602),
        ("tools/call", json!({"name": "grown_1"}), -32602),
        ("resources/read", json!({"uri": "test://none"}), -32002),
        ("resources/read", json!({"uri": "test://template//data"}), -32002),
        ("resources/subscribe", json!({"uri": "test://none"}), -32002),
        ("prompts/get", json!({"name": "none"}), -32602),
        ("prompts/get", json!({"name": "test_prompt_with_arguments"}), -32602),
        ("completion/complete", of_prompt, -32602),
        ("logging/setLevel", json!({"level": "loud"}), -32602),
        ("none", json!({}), -32601),
    ] {
        client.request(1, method, params.clone());
        assert_eq!(client.message()["error"]["code"], code, "{method} {params}");
    }
}

fn listed(client: &mut Client, method: &str, member: &str) -> (Vec<Value>, usize) {
    let (mut items, mut pages, mut params) = (Vec::new(), 0, json!({}));
    loop {
        client.request(1, method, params);
        let result = client.result_of(1);
        items.extend(result[member].as_array().unwrap().clone());
        pages += 1;
        match result.get("nextCursor") {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => return (items, pages),
        }
    }
}

#[test]
fn lists_have_the_same_items_in_one_piece_and_in_pages() {
    let mut whole = Client::new("", json!({}));
    let mut paged = Client::new("--page-size 2", json!({}));
    for (method, member) in [
        ("tools/list", "tools"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
        ("prompts/list", "prompts"),
    ] {
        let (expected, pages) = listed(&mut whole, method, member);
        assert_eq!(pages, 1, "{method}");
        let (items, pages) = listed(&mut paged, method, member);
        assert_eq!(items, expected, "{method}");
        assert_eq!(pages, expected.len().div_ceil(2), "{method}");
    }
    for cursor in [json!("from-9999"), json!("2"), json!(2)] {
        paged.request(1, "tools/list", json!({"cursor": cursor}));
        assert_eq!(paged.message()["error"]["code"], -32602);
    }
}

#[test]
fn every_tool_has_a_name_of_its_own_and_a_schema() {
    let (tools, _) = listed(&mut Client::new("", json!({})), "tools/list", "tools");
    let names: BTreeSet<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), tools.len());
    for tool in &tools {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert!(tool["description"].is_string(), "{tool}");
    }
    let hint = |name: &str| {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        tool["annotations"]["readOnlyHint"].clone()
    };
    assert_eq!(hint("read_file"), true);
    assert_eq!(hint("write_file"), false);
    assert_eq!(hint("crash"), Value::Null);
}

#[test]
fn calls_run_beside_each_other() {
    let mut client = Client::new("", json!({}));
    client.call(1, "hang", json!({}));
    client.call(2, "slow", json!({"ms": 200}));
    client.call(3, "add", json!({"a": 1, "b": 2.5}));
    assert_eq!(client.result_of(3)["structuredContent"], json!({"sum": 3.5}));
    assert_eq!(text(&client.result_of(2)), "This took 200 ms.");
    assert!(client.end().success(), "a call that hangs does not keep the server");
}

#[test]
fn a_call_that_is_cancelled_is_never_answered() {
    let mut client = Client::new("", json!({"sampling": {}}));
    client.call(1, "slow", json!({"ms": 3_600_000}));
    client.call(2, "test_sampling", json!({"prompt": "a"}));
    let question = client.message();
    assert_eq!(question["method"], "sampling/createMessage");
    for id in [1, 2] {
        let params = json!({"requestId": id, "reason": "enough"});
        client
            .send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    }
    let cancelled = client.message();
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], question["id"]);
    // An answer that comes too late is dropped.
    client.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": {}}));
    assert_eq!(client.text_of("echo", json!({"text": "next"})), "next");
}

#[test]
fn questions_are_asked_and_their_answers_are_in_the_result() {
    let can = json!({"sampling": {}, "elicitation": {}, "roots": {}});
    let mut client = Client::new("", can);
    let accepted = json!({"action": "accept", "content": {"a": 1}});
    let told = "action=accept, content={\"a\":1}";
    let sampled =
        json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "hi"}});
    let roots = json!({"roots": [{"uri": "file:///a"}]});
    for (tool, arguments, method, answer, expected) in [
        (
            "test_sampling",
            json!({"prompt": "p"}),
            "sampling/createMessage",
            &sampled,
            "LLM response: hi",
        ),
        ("test_elicitation", json!({"message": "m"}), "elicitation/create", &accepted, told),
        ("test_elicitation_sep1034_defaults", json!({}), "elicitation/create", &accepted, told),
        ("test_elicitation_sep1330_enums", json!({}), "elicitation/create", &accepted, told),
        ("ask_roots", json!({}), "roots/list", &roots, "file:///a"),
    ] {
        client.call(1, tool, arguments);
        let question = client.message();
        assert_eq!(question["method"], method, "{tool}");
        client.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": answer}));
        let said = text(&client.result_of(1));
        assert!(said.contains(expected), "{tool}: {said}");
    }
}

#[test]
fn a_client_that_cannot_or_will_not_answer_makes_the_tool_fail() {
    let mut client = Client::new("", json!({"sampling": {}}));
    client.call(1, "test_elicitation", json!({"message": "m"}));
    assert_eq!(client.result_of(1)["isError"], true);
    client.call(2, "test_sampling", json!({"prompt": "p"}));
    let error = json!({"code": -1, "message": "User rejected"});
    let id = client.message()["id"].clone();
    client.send(json!({"jsonrpc": "2.0", "id": id, "error": error}));
    let result = client.result_of(2);
    assert_eq!(result["isError"], true);
    assert_eq!(text(&result), "the client refused: User rejected");
}

#[test]
fn notifications_come_before_the_answer() {
    let mut client = Client::new("", json!({}));
    for (tool, arguments, token, count) in [
        ("test_tool_with_progress", json!({}), "mine", 3),
        ("flood", json!({"count": 100}), "mine", 100),
    ] {
        let params =
            json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": token}});
        client.request(1, "tools/call", params);
        for _ in 0..count {
            let message = client.message();
            assert_eq!(message["method"], "notifications/progress");
            assert_eq!(message["params"]["progressToken"], token);
        }
        client.result_of(1);
    }
    client.call(2, "flood", json!({"count": 1}));
    assert_eq!(client.message()["params"]["progressToken"], "nobody-gave-this");
    client.result_of(2);
    client.call(3, "test_tool_with_progress", json!({}));
    client.result_of(3);
}

#[test]
fn log_messages_below_the_level_are_left_out() {
    let mut client = Client::new("", json!({}));
    client.call(1, "test_tool_with_logging", json!({}));
    for _ in 0..3 {
        assert_eq!(client.message()["params"]["level"], "info");
    }
    client.result_of(1);
    client.request(2, "logging/setLevel", json!({"level": "notice"}));
    client.result_of(2);
    assert_eq!(client.text_of("log_flood", json!({"count": 50})), "50 messages were sent.");
}

#[test]
fn a_tool_can_grow_and_a_watched_resource_is_told_of() {
    let mut client = Client::new("", json!({}));
    client.call(1, "grow", json!({}));
    assert_eq!(client.message()["method"], "notifications/tools/list_changed");
    assert_eq!(text(&client.result_of(1)), "grown_1");
    assert_eq!(client.text_of("grown_1", json!({})), "This is grown_1.");
    let (tools, _) = listed(&mut client, "tools/list", "tools");
    assert_eq!(tools.last().unwrap()["name"], "grown_1");

    assert_eq!(client.text_of("touch_watched", json!({})), "Nobody watches.");
    let watched = json!({"uri": "test://watched-resource"});
    client.request(2, "resources/subscribe", watched.clone());
    assert_eq!(client.result_of(2), json!({}));
    client.call(3, "touch_watched", json!({}));
    let told = client.message();
    assert_eq!(told["method"], "notifications/resources/updated");
    assert_eq!(told["params"], watched);
    client.result_of(3);
    client.request(4, "resources/unsubscribe", watched);
    assert_eq!(client.result_of(4), json!({}));
    assert_eq!(client.text_of("touch_watched", json!({})), "Nobody watches.");
}

#[test]
fn faults_are_as_bad_as_they_say() {
    let mut client = Client::new("", json!({}));
    client.call(1, "garbage", json!({}));
    let mut unreadable = 0;
    let answer = loop {
        match serde_json::from_slice::<Value>(&client.line()) {
            Ok(message) if message["result"]["content"].is_array() => break message,
            Ok(_) => {}
            Err(_) => unreadable += 1,
        }
    };
    assert_eq!(answer["id"], 1);
    assert!(unreadable >= 3, "{unreadable}");
    assert_eq!(client.text_of("huge", json!({"megabytes": 2})).len(), 2 << 20);
    assert_eq!(client.text_of("noisy_stderr", json!({})), "1000 lines were written.");
    client.call(2, "crash", json!({}));
    assert_eq!(client.wait().code(), Some(3));
}

#[test]
fn files_are_written_and_read() {
    let folder = Folder::new();
    let path = folder.path("a.txt");
    let mut client = Client::new("", json!({}));
    client.call(1, "read_file", json!({"path": path}));
    assert_eq!(client.result_of(1)["isError"], true);
    client.text_of("write_file", json!({"path": path, "content": "b"}));
    assert_eq!(folder.read("a.txt"), "b");
    assert_eq!(client.text_of("read_file", json!({"path": path})), "b");
}

#[test]
fn the_environment_is_told_by_names_alone() {
    let mut client = Client::new("", json!({}));
    let names = client.text_of("env", json!({}));
    assert!(names.lines().any(|name| name == "CHIO_FIXTURE_SEEN"), "{names}");
    assert!(!names.contains("not-this-value"));
}

#[test]
fn tck_answers_as_the_id_of_the_message_asks_for() {
    let mut client = Client::new("--only tck", json!({}));
    let (tools, _) = listed(&mut client, "tools/list", "tools");
    assert_eq!(tools.iter().map(|tool| &tool["name"]).collect::<Vec<_>>(), ["tck"]);
    for (message, path, expected) in [
        ("tck-complete-task-1", "/content/0/text", json!("Done.")),
        ("tck-artifact-text", "/content/0/text", json!("Generated text content")),
        ("tck-artifact-file-url", "/content/0/name", json!("output.txt")),
        ("tck-artifact-file", "/content/0/resource/mimeType", json!("text/plain")),
        ("tck-artifact-data", "/structuredContent", json!({"key": "value", "count": 42})),
        ("tck-message-response", "/_meta/chio/a2a/reply", json!("message")),
        ("tck-input-required-2", "/_meta/chio/a2a/reply", json!("input_required")),
    ] {
        let meta = json!({"chio": {"a2a": {"messageId": message}}});
        client.request(1, "tools/call", json!({"name": "tck", "_meta": meta}));
        assert_eq!(client.result_of(1).pointer(path), Some(&expected), "{message}");
    }
    client.call(2, "echo", json!({"text": "a"}));
    assert_eq!(client.message()["error"]["code"], -32602, "the only tool is the only one");
}
