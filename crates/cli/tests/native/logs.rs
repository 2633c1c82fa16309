//! The log of a process that serves: one JSON document a line, which names its call and says
//! nothing of what was asked.

use chio_testkit::process::{Server, Wire, until};
use chio_testkit::token::grant;
use serde_json::{Value, json};

use crate::support::World;

/// What no line may have.
const SECRET: &str = "hunter2-in-the-clear";

#[test]
fn each_line_of_the_json_log_parses_and_the_end_of_each_call_names_it() {
    let world = World::new();
    let socket = world.folder.path("a.sock");
    let socket = socket.to_str().unwrap();
    let log = ["--log-format", "json", "--log-level", "debug"];
    let words = [&["native", "serve", "--data", "s", "--unix", socket][..], &log].concat();
    let mut server = Server::spawn(&mut world.command(&words));
    until("a server to listen", || server.stderr().contains("listening on ").then_some(()));
    let token = world.token(&format!("cap-{SECRET}"), vec![grant("echo")]);
    let mut wire = Wire::connect(&format!("unix:{socket}"));
    let expected = [
        ("allow", wire.call("1", &token, "echo", json!({"text": SECRET}))),
        ("deny", wire.call("2", &token, "now", json!({"text": SECRET}))),
        ("deny", wire.call("3", &token, "echo", json!({SECRET: SECRET}))),
    ];
    let strange = wire.call("4", &token, "a\u{9b}31m\u{202e}", json!({})).receipt;
    drop(wire);
    server.end();
    let log = server.stderr();
    assert!(!log.contains(SECRET), "{log}");
    assert!(!log.contains(['\u{9b}', '\u{202e}']), "no character that a terminal obeys: {log}");
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ends: Vec<_> = lines.iter().filter(|line| line["receipt_id"].is_string()).collect();
    assert_eq!(ends.len(), expected.len() + 1, "{log}");
    assert_eq!(ends[expected.len()]["spans"][0]["tool"], strange.tool_name);
    for ((verdict, response), end) in expected.iter().zip(ends) {
        let (receipt, call) = (&response.receipt, &end["spans"][0]);
        assert_eq!(end["level"], "DEBUG");
        assert_eq!((&end["verdict"], &end["receipt_id"]), (&json!(verdict), &json!(receipt.id)));
        let metadata = receipt.metadata.as_ref().unwrap();
        assert_eq!(call["request_id"], metadata["receipt_context"]["request_id"]);
        assert_eq!(call["server"], receipt.tool_server);
        assert_eq!(call["tool"], receipt.tool_name);
        assert_eq!(call["trace_id"], metadata["chio"]["trace"]["traceId"]);
    }
}
