//! Whom the commands believe: an auditor's own keys, and nothing that a store says for itself.

use chio_testkit::token::grant;
use serde_json::json;

use crate::support::World;

/// A store with a few receipts, closed.
fn closed(name: &str) -> World {
    let (world, mut server) = World::served();
    let token = world.token(name, vec![grant("echo"), grant("note_put")]);
    server.connect().call("1", &token, "echo", json!({"text": "hi"}));
    server.end();
    world
}

fn kernel_of(world: &World) -> String {
    world.rows("")[0]["receipt"]["kernel_key"].as_str().unwrap().to_owned()
}

#[test]
fn a_store_that_vouches_for_itself_is_not_clean_to_who_pins_another_kernel() {
    let (real, fake) = (closed("real"), closed("fake"));
    let pinned = format!("log audit --data s --trusted-key {}", kernel_of(&real));
    real.line(&pinned).ends(0).says("clean");
    fake.line(&pinned).ends(1).says("NOT CLEAN");
}

#[test]
fn a_store_whose_authority_key_is_kept_elsewhere_serves_and_is_audited() {
    let world = closed("away");
    std::fs::remove_file(world.folder.path("s/authority.key")).unwrap();
    let mut server = world.serve("");
    assert!(server.connect().is_alive());
    server.end();
    world.line("log audit --data s").ends(0).says("clean");
    let line = "capability issue --data s --subject agent.key --grant demo/echo";
    world.line(line).ends(2).complains("no authority key");
}

#[test]
fn the_authority_is_no_kernel() {
    let world = closed("both");
    let line = "native serve --unix b.sock --data s --kernel-key s/authority.key";
    world.line(line).ends(1).complains("key of its own");
}

#[test]
fn keys_without_their_database_do_not_begin_anew() {
    let world = closed("lost");
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(world.folder.path(&format!("s/store.db{suffix}")));
    }
    let line = "native serve --unix b.sock --data s";
    world.line(line).ends(2).complains("put the database back");
    // Nor does an empty file pass for a store.
    world.folder.write("s/store.db", "");
    world.line(line).ends(2).complains("put the database back");
    world.line("log audit --data s").ends(2).complains("found nothing in");
    world.line("capability revoke x --data s").ends(2).complains("found nothing in");
}

#[test]
fn an_auditor_who_kept_an_export_notices_what_was_taken_away() {
    let world = closed("kept");
    world.line("receipt export --data s --out kept.json").ends(0);
    world.line("log audit --data s --extends kept.json").ends(0).says("clean");
    let database = rusqlite::Connection::open(world.folder.path("s/store.db")).unwrap();
    database.execute_batch("DELETE FROM entries; DELETE FROM checkpoints").unwrap();
    drop(database);
    // By itself an empty log is a clean one: only the kernel's own mark says otherwise.
    world.line("log audit --data s").ends(1).complains("expected checkpoint");
    std::fs::remove_file(world.folder.path("s/kernels/0/mark")).unwrap();
    world.line("log audit --data s").ends(0);
    let run = world.line("log audit --data s --extends kept.json").ends(1);
    run.complains("it is in the export, and not in the store");
}
