//! A store that does not answer: nothing is released that is not recorded.

use std::time::Duration;

use chio_testkit::token::grant;
use rusqlite::Connection;
use serde_json::json;

use crate::support::{World, written};

/// Takes the right to write away from every other process.
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
    // A process that only reads does not wait for those that write.
    assert_eq!(world.receipts("late-1").len(), 1);
    database.execute_batch("ROLLBACK").unwrap();
    let response = wire.response();
    assert_eq!(written(&response.result)["status"], "ok");
    assert_eq!(world.receipts("late-1").len(), 2);
}

#[test]
fn a_call_whose_receipt_cannot_be_kept_has_no_answer_and_none_with_effects_begins() {
    let (world, mut server) = World::served();
    let token = world.token("lost-1", vec![grant("echo"), grant("note_put")]);
    let mut wire = server.connect();
    wire.call("1", &token, "echo", json!({"text": "hi"}));
    let database = lock(&world);
    let mut putting = server.connect();
    wire.send_call("2", &token, "echo", json!({"text": "hi"}));
    putting.send_call("3", &token, "note_put", json!({"name": "n", "text": "x"}));
    // The store gives up, and so do the connections; others go on.
    assert_eq!(wire.message(), None);
    assert_eq!(putting.message(), None);
    assert!(server.connect().is_alive());
    assert_eq!(world.folder.read("s/notes/notes.jsonl"), "", "no intent, no effect");
    database.execute_batch("ROLLBACK").unwrap();
    drop(database);
    let note = json!({"name": "n", "text": "y"});
    let response = server.connect().call("4", &token, "note_put", note);
    assert_eq!(written(&response.result)["value"]["puts"], 1, "the other one was never put");
    server.end();
    let receipts = world.receipts("lost-1").len();
    assert!((2..=4).contains(&receipts), "{receipts}");
    world.audit();
}
