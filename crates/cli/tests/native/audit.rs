//! Audits of stores that were changed.

use chio_testkit::key;
use chio_testkit::process::until;
use chio_testkit::token::grant;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::World;

/// A store of eight receipts under two checkpoints, that no process serves any more.
fn closed() -> World {
    let world = World::new();
    for turn in ["a", "b"] {
        let mut server = world.serve("");
        let token = world.token(&format!("audit-{turn}"), vec![grant("echo")]);
        let mut wire = server.connect();
        for number in 1..=4 {
            let text = format!("{turn}{number}");
            wire.call(&text, &token, "echo", json!({"text": text}));
        }
        server.end();
    }
    let audit = world.audit();
    assert_eq!((&audit["receipts"], &audit["checkpoints"]), (&json!(8), &json!(2)));
    world
}

/// Changes the store and audits it; gives the problems that are told.
#[track_caller]
fn problems(change: impl FnOnce(&Connection)) -> Vec<String> {
    let world = closed();
    let database = Connection::open(world.folder.path("s/store.db")).unwrap();
    change(&database);
    drop(database);
    let report = world.line("log audit --data s --json").ends(1).json();
    assert_eq!(report["valid"], false);
    let told = report["logs"][0]["problems"].as_array().unwrap();
    let told: Vec<_> = told.iter().map(|it| it.as_str().unwrap().to_owned()).collect();
    assert_eq!(report["problems"], told.len());
    let run = world.line("log audit --data s").ends(1).says("NOT CLEAN");
    for problem in &told {
        assert!(run.stderr.contains(problem), "{run:#?}");
    }
    told
}

/// The number of the entry at this place.
fn number(database: &Connection, place: i64) -> i64 {
    let sql = "SELECT id FROM entries ORDER BY id LIMIT 1 OFFSET ?1";
    database.query_row(sql, [place - 1], |row| row.get(0)).unwrap()
}

fn body(database: &Connection, number: i64) -> Vec<u8> {
    let sql = "SELECT body FROM entries WHERE id = ?1";
    database.query_row(sql, [number], |row| row.get(0)).unwrap()
}

fn set_body(database: &Connection, number: i64, body: &[u8]) {
    let sql = "UPDATE entries SET body = ?2 WHERE id = ?1";
    assert_eq!(database.execute(sql, rusqlite::params![number, body]).unwrap(), 1);
}

/// The same text with something else in place of a part of it.
fn replaced(body: &[u8], from: &str, to: &str) -> Vec<u8> {
    let text = std::str::from_utf8(body).unwrap();
    assert!(text.contains(from), "{text}");
    text.replacen(from, to, 1).into_bytes()
}

#[test]
fn a_changed_receipt_is_named() {
    let told = problems(|database| {
        let entry = number(database, 3);
        let body = replaced(&body(database, entry), "\"a3\"", "\"z3\"");
        set_body(database, entry, &body);
    });
    assert!(told.iter().any(|it| it.starts_with("entry 3: receipt ")), "{told:?}");
    let root = "checkpoint 1: its root is not that of the entries it covers";
    assert!(told.iter().any(|it| it == root), "{told:?}");
    assert_eq!(told.len(), 2, "and nothing else: {told:?}");
}

#[test]
fn a_flipped_bit_anywhere_in_a_receipt_is_found() {
    let told = problems(|database| {
        let entry = number(database, 7);
        let mut body = body(database, entry);
        let middle = body.len() / 2;
        body[middle] ^= 1;
        set_body(database, entry, &body);
    });
    assert!(told.iter().any(|it| it.starts_with("entry 7: ")), "{told:?}");
    assert!(told.iter().any(|it| it.starts_with("checkpoint 2: its root")), "{told:?}");
}

#[test]
fn a_receipt_in_another_than_its_canonical_form_is_found() {
    let told = problems(|database| {
        let entry = number(database, 2);
        let body = replaced(&body(database, entry), "{", "{ ");
        set_body(database, entry, &body);
    });
    assert!(told.iter().any(|it| it.contains("entry 2: ") && it.contains("canonical form")));
}

#[test]
fn a_missing_receipt_is_found_in_the_middle_and_at_the_end() {
    for (place, expected) in [(3, "entries 3 to 3 are missing"), (8, "checkpoints cover entries")] {
        let told = problems(|database| {
            let entry = number(database, place);
            database.execute("DELETE FROM entries WHERE id = ?1", [entry]).unwrap();
        });
        assert!(told.iter().any(|it| it.contains(expected)), "{told:?}");
    }
}

#[test]
fn two_receipts_in_each_others_place_are_found() {
    let told = problems(|database| {
        let (one, other) = (number(database, 1), number(database, 2));
        let (first, second) = (body(database, one), body(database, other));
        set_body(database, one, &second);
        set_body(database, other, &first);
    });
    assert_eq!(told, ["checkpoint 1: its root is not that of the entries it covers"]);
}

#[test]
fn a_receipt_that_is_there_twice_is_found() {
    let told = problems(|database| {
        let last = number(database, 8);
        let copy = body(database, number(database, 1));
        let sql = "INSERT INTO entries(id, body) VALUES (?1, ?2)";
        database.execute(sql, rusqlite::params![last + 1, copy]).unwrap();
    });
    assert!(told.iter().any(|it| it.contains("entry 9: its id or its call occurs a second time")));
}

#[test]
fn a_changed_and_a_missing_checkpoint_are_found() {
    let told = problems(|database| {
        let sql = "SELECT body FROM checkpoints WHERE seq = 1";
        let body: Vec<u8> = database.query_row(sql, [], |row| row.get(0)).unwrap();
        let mut checkpoint: Value = serde_json::from_slice(&body).unwrap();
        checkpoint["body"]["issued_at"] = json!(1);
        let sql = "UPDATE checkpoints SET body = ?1 WHERE seq = 1";
        database.execute(sql, [checkpoint.to_string().into_bytes()]).unwrap();
    });
    assert!(told.iter().any(|it| it.starts_with("checkpoint 1: ")), "{told:?}");
    let told = problems(|database| {
        database.execute("DELETE FROM checkpoints WHERE seq = 1", []).unwrap();
    });
    assert!(told.iter().any(|it| it.starts_with("checkpoint 2: ")), "{told:?}");
}

#[test]
fn a_kernel_that_nobody_vouches_for_is_found() {
    let told = problems(|database| {
        database.execute("DELETE FROM certificates", []).unwrap();
    });
    assert_eq!(told, ["no authority vouches for this kernel"]);
}

#[test]
fn a_store_is_audited_from_the_authoritys_public_key_alone() {
    let world = closed();
    let authority = world.authority().public_key().to_hex();
    std::fs::remove_file(world.folder.path("s/authority.key")).unwrap();
    world.line(&format!("log audit --data s --authority {authority}")).ends(0).says("clean");
    let stranger = key(66).public_key().to_hex();
    let run = world.line(&format!("log audit --data s --authority {stranger}")).ends(1);
    run.says("NOT CLEAN").complains("expected an authority that is trusted, found");
    let kernel = world.rows("")[0]["receipt"]["kernel_key"].as_str().unwrap().to_owned();
    world.line(&format!("log audit --data s --trusted-key {kernel}")).ends(0);
}

#[test]
fn a_later_checkpoint_is_proved_to_extend_an_earlier_one() {
    let world = closed();
    let proof = world.line("log consistency --data s --from 1 --to 2").ends(0).json();
    assert_eq!(proof["holds"], true);
    assert_eq!(proof["from"]["body"]["checkpoint_seq"], 1);
    assert_eq!(proof["to"]["body"]["checkpoint_seq"], 2);
    let last = world.line("log consistency --data s --from 1").ends(0).json();
    assert_eq!(last, proof);
    let log = proof["log_id"].as_str().unwrap();
    world.line(&format!("log consistency --data s --from 2 --log {log}")).ends(0);
    let run = world.line("log consistency --data s --from 1 --out proof.json").ends(0);
    run.says("written to");
    let run = world.line("log consistency --data s --from 3").ends(1);
    run.complains("expected a checkpoint from 1 to 2, found 3");
    world.line("log consistency --data s --from 0").ends(1);
    let run = world.line("log consistency --data s --from 2 --to 1").ends(1);
    run.complains("expected --from before --to");
    assert_ne!(world.line("log consistency --data s --from 1 --log nowhere").code, 0);
}

#[test]
fn a_running_kernel_puts_what_it_signs_under_checkpoints_soon() {
    let (world, server) = World::served();
    let token = world.token("soon-1", vec![grant("echo")]);
    let mut wire = server.connect();
    for round in 1..=2 {
        wire.call("1", &token, "echo", json!({"text": "hi"}));
        until("a checkpoint", || {
            let log = &world.audit()["logs"][0];
            let covered = log["entries"] == round && log["pending"] == 0;
            covered.then_some(())
        });
    }
    let proof = world.line("log consistency --data s --from 1 --to 2").ends(0).json();
    assert_eq!(proof["holds"], true);
}
