//! Entries of a log that are no receipts: they are told of, and hide no others.

use std::sync::Arc;

use chio_kernel::SystemClock;
use chio_kernel::store::Entry;
use chio_store::{OpenStore, StoreUrl};
use chio_testkit::process::Server;
use chio_testkit::token::grant;
use serde_json::{Value, json};

use crate::support::{World, block_on, now};

/// A store with a call, two entries that are no receipts, and another call.
struct Spoilt {
    world: World,
    _server: Server,
    /// What each call's receipt says.
    receipts: [Value; 2],
    /// The log of all four.
    log: String,
}

impl Spoilt {
    /// The second of the entries is of the first call's trace.
    fn new() -> Self {
        let (world, mut server) = World::served();
        let first = call(&world, &server, "before-1");
        // All of it is in one log, so that everything has its place.
        server.end();
        let bad =
            json!({"id": "bad-1", "timestamp": now(), "metadata": {"traceId": trace(&first)}});
        let url = StoreUrl::Sqlite(world.folder.path("s"));
        let store = block_on(OpenStore::open(&url, Arc::new(SystemClock::default()))).unwrap();
        let slot = block_on(store.take_slot(None)).unwrap();
        for body in [b"not JSON".to_vec(), bad.to_string().into_bytes()] {
            block_on(slot.ledger.append(Entry::new(body))).unwrap();
        }
        let log = slot.certificate.log_id.clone();
        drop(slot);
        store.close();
        let server = world.serve("");
        let receipts = [first, call(&world, &server, "after-1")];
        Self { world, _server: server, receipts, log }
    }

    /// How the line of one of the two begins.
    fn told(&self, seq: u64) -> String {
        format!("unreadable  entry {seq} of {} cannot be read as a receipt: ", self.log)
    }

    /// Checks rows of the whole store, oldest first.
    #[track_caller]
    fn check_rows(&self, rows: &[Value]) {
        let ids: Vec<_> = rows.iter().map(|row| row["receipt"]["id"].as_str()).collect();
        let [first, second] = self.receipts.each_ref().map(|receipt| receipt["id"].as_str());
        assert_eq!(ids, [first, None, None, second]);
        for (row, seq) in [(&rows[1], 2), (&rows[2], 3)] {
            assert_eq!((&row["log_id"], &row["seq"]), (&json!(self.log), &json!(seq)));
            let told = format!("unreadable  {}", row["unreadable"].as_str().unwrap());
            assert!(told.starts_with(&self.told(seq)), "{told}");
        }
        assert_eq!(rows[0].get("unreadable"), None);
    }
}

/// The receipt of a call.
fn call(world: &World, server: &Server, token: &str) -> Value {
    let token = world.token(token, vec![grant("echo")]);
    let response = server.connect().call("1", &token, "echo", json!({"text": "hi"}));
    serde_json::to_value(response.receipt).unwrap()
}

fn trace(receipt: &Value) -> &str {
    receipt["metadata"]["chio"]["trace"]["traceId"].as_str().unwrap()
}

#[test]
fn a_list_and_a_tail_show_them_in_their_place_and_go_on() {
    let spoilt = Spoilt::new();
    let world = &spoilt.world;
    spoilt.check_rows(&world.rows("--oldest-first"));
    // Page by page, too.
    let (mut rows, mut cursor) = (Vec::new(), String::new());
    while rows.len() < 4 {
        let line = format!("receipt list --data s --json --oldest-first --limit 1 {cursor}");
        let page = world.line(&line).ends(0).json();
        rows.extend(page["receipts"].as_array().unwrap().clone());
        cursor = format!("--cursor {}", page["nextCursor"]);
    }
    spoilt.check_rows(&rows);
    let tail = world.line("receipt tail --data s --json --count 4").ends(0);
    let rows: Vec<_> =
        tail.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    spoilt.check_rows(&rows);

    for line in ["receipt list --data s", "receipt tail --data s --count 4"] {
        let run = world.line(line).ends(0).says("entry 2 of").says("entry 3 of");
        assert_eq!(run.stdout.matches("unreadable").count(), 2, "{run:#?}");
        assert_eq!(run.stdout.matches("  demo/echo").count(), 2, "{run:#?}");
    }
    // Whether the store holds is another question.
    world.line("log audit --data s").ends(1).complains("entry 2: ");
}

#[test]
fn a_trace_is_drawn_without_them_and_names_them() {
    let spoilt = Spoilt::new();
    let [first, second] = &spoilt.receipts;
    let request = |receipt: &Value| {
        receipt["metadata"]["receipt_context"]["request_id"].as_str().unwrap().to_owned()
    };
    // By its name, by a receipt, by a request, and by what cannot be read itself.
    for id in [trace(first), first["id"].as_str().unwrap(), &request(first), "bad-1"] {
        let found =
            spoilt.world.line(&format!("receipt trace {id} --data s --json")).ends(0).json();
        let lines = found["receipts"].as_array().unwrap();
        assert_eq!((lines.len(), &lines[0]["receipt"]["id"]), (2, &first["id"]), "{id}");
        assert_eq!(
            (&lines[1]["logId"], &lines[1]["seq"], &lines[1]["receipt"]),
            (&json!(spoilt.log), &json!(3), &Value::Null)
        );
        assert!(lines[1]["unreadable"].is_string());
        let drawn = spoilt.world.line(&format!("receipt trace {id} --data s")).ends(0);
        let drawn = drawn.says("demo/echo").says("unreadable").says("entry 3 of");
        assert_eq!(drawn.stdout.matches("demo/echo").count(), 1, "{drawn:#?}");
    }
    // A request is found behind them.
    let line = format!("receipt trace {} --data s --json", request(second));
    let found = spoilt.world.line(&line).ends(0).json();
    assert_eq!(found["traceId"], trace(second));
    assert_eq!(found["receipts"].as_array().unwrap().len(), 1);
}
