//! A store that does not answer: nothing is released that is not recorded.

use std::time::Duration;

use chio_testkit::token::grant;
use rusqlite::Connection;
use serde_json::json;

use crate::support::{World, written};

/// Takes the right to write away from everybody else.
fn lock(world: &World) -> Connection {
    let database = Connection::open(world.folder.path("s/store.db")).unwrap();
    database.busy_timeout(Duration::from_secs(5)).unwrap();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    database
}

#[test]
fn an_answer_waits_for_its_receipt() {
    let (world, server) = World::served();
    let token = world.token("late-1", vec![grant("echo")]);
    let mut wire = server.connect();
    wire.call("1", &token, "echo", json!({"text": "hi"}));
    let database = lock(&world);
    wire.send_call("2", &token, "echo", json!({"text": "hi"}));
    let mut other = server.connect();
    for _ in 0..20 {
        // It is alive, and it is the only one that answers.
        assert!(other.is_alive());
        std::thread::sleep(Duration::from_millis(10));
    }
    database.execute_batch("ROLLBACK").unwrap();
    let response = wire.response();
    assert_eq!(written(&response.result)["status"], "ok");
    assert_eq!(world.receipts("late-1").len(), 2);
}

#[test]
fn a_call_whose_receipt_cannot_be_kept_has_no_answer_and_runs_no_tool_with_effects() {
    let (world, mut server) = World::served();
    let token = world.token("lost-1", vec![grant("echo"), grant("note_put")]);
    let mut wire = server.connect();
    wire.call("1", &token, "echo", json!({"text": "hi"}));
    let database = lock(&world);
    let mut putting = server.connect();
    wire.send_call("2", &token, "echo", json!({"text": "hi"}));
    putting.send_call("3", &token, "note_put", json!({"name": "n", "text": "x"}));
    assert_eq!(wire.message(), None);
    assert_eq!(putting.message(), None);
    assert!(server.connect().is_alive());
    database.execute_batch("ROLLBACK").unwrap();
    drop(database);
    let response =
        server.connect().call("4", &token, "note_put", json!({"name": "n", "text": "y"}));
    assert_eq!(written(&response.result)["value"]["puts"], 1, "the other one was never put");
    server.end();
    // What ran without a receipt has none; nothing else is missing.
    let receipts = world.receipts("lost-1").len();
    assert!((2..=4).contains(&receipts), "{receipts}");
    world.audit();
}
