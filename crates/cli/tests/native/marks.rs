//! Marks: a store that was put back, or that something was taken from, is noticed.

use std::fs;

use chio_core::capability::ToolGrant;
use chio_testkit::process::{Server, until};
use chio_testkit::token::grant;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::World;

const LISTEN: &str = "native serve --unix b.sock --data s";

fn text(number: usize) -> Value {
    json!({"text": number.to_string()})
}

/// Calls with a token of its own; what one of each answers with is checked by the receipt.
fn call(world: &World, server: &Server, id: &str, calls: usize) {
    let token = world.token(id, vec![grant("echo")]);
    let mut wire = server.connect();
    for number in 0..calls {
        wire.call(&format!("{id}-{number}"), &token, "echo", text(number));
    }
}

/// A store of eight receipts under two checkpoints, that no process serves any more.
fn closed() -> World {
    let world = World::new();
    for turn in ["a", "b"] {
        let mut server = world.serve("");
        call(&world, &server, turn, 4);
        server.end();
    }
    let audit = world.audit();
    assert_eq!((&audit["receipts"], &audit["checkpoints"]), (&json!(8), &json!(2)));
    world
}

fn database(world: &World) -> Connection {
    Connection::open(world.folder.path("s/store.db")).unwrap()
}

/// Checks that the store is refused, by the audit and by every start.
#[track_caller]
fn check_refused(world: &World, words: &[&str]) {
    let run = world.line("log audit --data s").ends(1).says("NOT CLEAN");
    for word in words {
        assert!(run.stderr.contains(word), "expected {word:?} in {run:#?}");
    }
    let report = world.line("log audit --data s --json").ends(1).json();
    assert_eq!(report["valid"], false);
    let mut start = world.line(LISTEN).ends(2).complains("internal_error (6100)");
    start = start.complains("the store is behind what its kernels have signed");
    for word in words {
        start = start.complains(word);
    }
    // A second start does not forget.
    world.line(LISTEN).ends(2).complains("accept-restore");
}

#[test]
fn the_end_of_a_log_that_was_taken_away_is_noticed() {
    let words = ["expected checkpoint 2 over 8 receipts, found 1 checkpoints"];
    // One entry of the middle goes with the checkpoint, and the rest moves up: nothing is missing.
    for moves_up in [false, true] {
        let world = closed();
        let database = database(&world);
        let sixth = (1_i64 << 40) + 6;
        database.execute("DELETE FROM checkpoints WHERE seq = 2", []).unwrap();
        assert_eq!(database.execute("DELETE FROM entries WHERE id = ?1", [sixth]).unwrap(), 1);
        if moves_up {
            let sql = "UPDATE entries SET id = id - 1 WHERE id > ?1";
            assert_eq!(database.execute(sql, [sixth]).unwrap(), 2);
        } else {
            let run = world.line("log audit --data s").ends(1);
            run.complains("entries 6 to 6 are missing");
        }
        drop(database);
        check_refused(&world, &words);
    }
}

#[test]
fn an_emptied_log_is_noticed() {
    let world = closed();
    database(&world).execute_batch("DELETE FROM entries; DELETE FROM checkpoints").unwrap();
    check_refused(&world, &["expected checkpoint 2 over 8 receipts, found 0 checkpoints, and 0"]);
}

#[test]
fn a_kernel_that_was_removed_from_the_store_is_noticed_whichever_slot_starts() {
    let world = World::new();
    let mut servers = [world.serve_at("a.sock", ""), world.serve_at("c.sock", "")];
    for (id, server) in ["one", "two"].into_iter().zip(&mut servers) {
        call(&world, server, id, 2);
        server.end();
    }
    let gone = "DELETE FROM entries WHERE id >> 40 = 2; DELETE FROM checkpoints WHERE log = 2;
                DELETE FROM certificates WHERE log = 2; DELETE FROM logs WHERE number = 2";
    database(&world).execute_batch(gone).unwrap();
    check_refused(&world, &["expected the kernel's log in the store, found none"]);
}

#[test]
fn another_checkpoint_under_the_same_number_is_noticed() {
    let world = closed();
    // What a kernel would have signed that began again with the fifth receipt.
    let database = database(&world);
    database.execute("UPDATE checkpoints SET seq = 3 WHERE seq = 2", []).unwrap();
    let sql = "INSERT INTO checkpoints SELECT log, 2, end_seq, body FROM checkpoints WHERE seq = 1";
    database.execute(sql, []).unwrap();
    drop(database);
    check_refused(&world, &["expected checkpoint 2 over 8 receipts"]);
}

#[test]
fn what_was_revoked_while_no_kernel_ran_is_not_taken_back_by_an_older_copy() {
    for command in ["capability revoke late --anyway", "kernel stop --reason why"] {
        let world = closed();
        fs::copy(world.folder.path("s/store.db"), world.folder.path("older.db")).unwrap();
        world.line(&format!("{command} --data s")).ends(0);
        world.audit();
        restore(&world);
        check_refused(&world, &["expected at least 1 as epoch of revocations, found 0"]);
    }
}

/// A store with a spent budget and a revoked token, and a copy of it from before.
fn put_back() -> World {
    let world = World::new();
    let mut server = world.serve("");
    call(&world, &server, "kept", 1);
    server.end();
    fs::copy(world.folder.path("s/store.db"), world.folder.path("older.db")).unwrap();
    let once = ToolGrant { max_invocations: Some(1), ..grant("echo") };
    let (spent, revoked) = (world.token("spent", vec![once]), world.token("revoked", vec![]));
    let mut server = world.serve("");
    assert_eq!(verdict(&server, &spent), "allow");
    assert_eq!(verdict(&server, &spent), "deny");
    world.line("capability revoke revoked --anyway --data s").ends(0);
    server.end();
    world.write_token("spent.json", &spent);
    world.write_token("revoked.json", &revoked);
    restore(&world);
    world
}

/// Puts the older copy of the store in place.
fn restore(world: &World) {
    for suffix in ["-wal", "-shm"] {
        let _ = fs::remove_file(world.folder.path(&format!("s/store.db{suffix}")));
    }
    fs::copy(world.folder.path("older.db"), world.folder.path("s/store.db")).unwrap();
}

fn verdict(server: &Server, token: &chio_core::capability::CapabilityToken) -> Value {
    let answer = server.connect().call("1", token, "echo", json!({"text": "hi"}));
    serde_json::to_value(answer.receipt.decision).unwrap()["verdict"].clone()
}

#[test]
fn an_older_copy_of_the_store_revives_neither_spent_nor_revoked_tokens() {
    let world = put_back();
    check_refused(
        &world,
        &[
            "expected checkpoint 2 over 3 receipts, found 1 checkpoints, and 1 receipts",
            "expected at least 1 debits of budgets, found 0",
            "expected at least 1 as epoch of revocations, found 0",
            "expected at least 1 revoked tokens, found 0",
        ],
    );
}

#[test]
fn a_restore_that_is_accepted_closes_the_logs_and_begins_new_ones() {
    let world = put_back();
    let before = world.line("kernel list --data s --json").ends(0).json();
    let accepted = world.line("store accept-restore --data s --json").ends(0).json();
    let (report, receipt) = (&accepted["restore"], accepted["receipt"].as_str().unwrap());
    let old = before["kernels"][0]["log_id"].as_str().unwrap();
    assert_eq!(report["logs"][0]["log_id"], old);
    assert_eq!(report["logs"][0]["checkpoint"]["checkpoint_seq"], 1);
    assert_eq!(report["marks"][0]["checkpoint"]["checkpoint_seq"], 2);
    assert_eq!(report["missing"].as_array().unwrap().len(), 4, "{report}");
    // The receipt says all of it, in a log of a new kernel.
    let shown = world.line(&format!("receipt show {receipt} --data s --json")).ends(0).json();
    assert_eq!(shown["tool_server"], "chio_control");
    assert_eq!(shown["tool_name"], "accept_restore");
    assert_eq!(&shown["action"]["parameters"], report);
    let audit = world.audit();
    assert_eq!(audit["logs"].as_array().unwrap().len(), 2);
    let mut server = world.serve("");
    let key = server.kernel_key();
    assert_eq!(key, audit["logs"][1]["kernel_key"], "the new kernel's place is taken again");
    call(&world, &server, "goes-on", 2);
    // Two at once: the closed slot is not taken either.
    let mut second = world.serve_at("c.sock", "");
    call(&world, &second, "second", 1);
    second.end();
    server.end();
    let audit = world.audit();
    let entries: Vec<_> =
        audit["logs"].as_array().unwrap().iter().map(|it| &it["entries"]).collect();
    assert_eq!(entries, [1, 3, 1]);
    assert_eq!(audit["logs"][0]["log_id"], old);
    // The closed log is watched as well.
    let database = database(&world);
    database
        .execute_batch(
            "DELETE FROM entries WHERE id >> 40 = 1; DELETE FROM checkpoints WHERE log = 1",
        )
        .unwrap();
    drop(database);
    check_refused(&world, &["expected checkpoint 1 over 1 receipts"]);
}

#[test]
fn a_restore_is_accepted_only_while_no_kernel_runs() {
    let world = put_back();
    let accept = "store accept-restore --data s";
    let accepted = world.line(accept).ends(0);
    accepted.says("missing").says("closed").says("receipt");
    let _server = world.serve("");
    world.line(accept).ends(1).complains("expected no kernel to run");
}

#[test]
fn the_logs_of_a_store_that_is_not_behind_are_closed_only_when_that_is_said() {
    let world = closed();
    let before = world.line("kernel list --data s --json").ends(0).json();
    let run = world.line("store accept-restore --data s").ends(1);
    run.complains("expected a store that is behind what its kernels have signed")
        .complains("--anyway");
    assert_eq!(world.line("kernel list --data s --json").ends(0).json(), before);
    world.serve("").end();
    assert_eq!(world.audit()["logs"].as_array().unwrap().len(), 1);
    world.line("store accept-restore --data s --anyway").ends(0).says("closed");
    world.serve("").end();
    assert_eq!(world.audit()["logs"].as_array().unwrap().len(), 2);
}

#[test]
fn a_key_of_ones_own_is_not_used_again_once_its_log_is_closed() {
    let world = World::new();
    world.folder.write_key("own.key", &chio_testkit::key(77));
    let own = "--kernel-key own.key";
    let mut server = world.serve(own);
    call(&world, &server, "own", 1);
    server.end();
    world.line("store accept-restore --data s --anyway").ends(0);
    world.line(&format!("{LISTEN} {own}")).ends(2).complains("whose log was closed");
    world.serve("").end();
    world.audit();
}

#[test]
fn a_kernel_that_was_killed_before_its_mark_was_kept_starts() {
    let world = World::new();
    let mut server = world.serve("");
    call(&world, &server, "first", 1);
    server.end();
    let mark = fs::read(world.folder.path("s/kernels/0/mark")).unwrap();
    let mut server = world.serve("");
    call(&world, &server, "second", 3);
    server.kill();
    // As if it had ended right after the checkpoint.
    fs::write(world.folder.path("s/kernels/0/mark"), mark).unwrap();
    let mut server = world.serve("");
    call(&world, &server, "third", 1);
    server.end();
    assert_eq!(world.audit()["receipts"], 5);
}

#[test]
fn a_mark_that_was_changed_or_is_another_kernels_is_refused_until_it_is_accepted() {
    let (world, other) = (closed(), closed());
    let path = world.folder.path("s/kernels/0/mark");
    let mark = fs::read_to_string(&path).unwrap();
    let changed = mark.replace("\"checkpoint_seq\":2", "\"checkpoint_seq\":1");
    assert_ne!(mark, changed);
    let others = fs::read(other.folder.path("s/kernels/0/mark")).unwrap();
    for (written, why) in [
        (changed.as_bytes(), "signature"),
        (b"{}", "this is not a mark"),
        (b"\xff", "valid UTF-8"),
        (&others, "expected the mark of this slot's kernel"),
        (b"", "this is not a mark"),
    ] {
        fs::write(&path, written).unwrap();
        check_refused(&world, &["the mark of kernel 0 cannot be read", why]);
    }
    // What makes things safer is written all the same, and leaves the mark to be looked at.
    for command in ["capability revoke late --anyway", "kernel stop --reason why"] {
        let run = world.line(&format!("{command} --data s")).ends(0);
        run.complains("the mark of kernel 0 cannot be read");
        assert_eq!(fs::read(&path).unwrap(), b"");
    }
    let accepted = world.line("store accept-restore --data s --json").ends(0).json();
    let missing = accepted["restore"]["missing"].to_string();
    assert!(missing.contains("the mark of kernel 0 cannot be read"), "{missing}");
    world.line("kernel resume --data s").ends(0);
    let mut server = world.serve("");
    call(&world, &server, "goes-on", 1);
    server.end();
    assert_eq!(world.audit()["logs"].as_array().unwrap().len(), 2);
}

#[test]
fn the_audit_says_what_it_cannot_show() {
    let world = closed();
    let said = world.line("log audit --data s").ends(0).says("1 kernel");
    said.tells("shows only with --extends");
    fs::remove_file(world.folder.path("s/kernels/0/mark")).unwrap();
    world.line("log audit --data s").ends(0).says("none here");
    // The next start makes one, and says that nothing before it is shown by it.
    let mut server = world.serve("");
    server.end();
    assert!(server.stderr().contains("there was no mark of local-log-"), "{}", server.stderr());
    world.line("log audit --data s").ends(0).says("1 kernel");
}

#[test]
fn budgets_and_revocations_that_were_reset_contradict_receipts() {
    let world = World::new();
    let mut server = world.serve("");
    let twice = ToolGrant { max_invocations: Some(2), ..grant("echo") };
    let token = world.token("twice", vec![twice]);
    assert_eq!(verdict(&server, &token), "allow");
    assert_eq!(verdict(&server, &token), "allow");
    world.line("capability revoke twice --anyway --data s").ends(0);
    assert_eq!(verdict(&server, &token), "deny");
    server.end();
    world.audit();
    let database = database(&world);
    database.execute("UPDATE budgets SET invocations = 1", []).unwrap();
    let run = world.line("log audit --data s").ends(1);
    run.complains("expected 2 calls debited from grant 0 of `twice`, found 1");
    database.execute("DELETE FROM revocations", []).unwrap();
    let run = world.line("log audit --data s").ends(1);
    run.complains("expected `twice` to be revoked, as a receipt says, found it valid");
    let start = world.line(LISTEN).ends(2);
    start.complains("expected at least 1 revoked tokens, found 0");
    database.execute("UPDATE tokens SET body = CAST(replace(body, '2', '9') AS BLOB)", []).unwrap();
    world.line("log audit --data s").ends(1).complains("token `twice`");
    database.execute("DELETE FROM tokens", []).unwrap();
    world
        .line("log audit --data s")
        .ends(1)
        .complains("expected the token `twice`, which was used");
}

#[test]
fn a_store_that_is_removed_under_a_running_kernel_ends_it_with_an_error() {
    let (world, mut server) = World::served();
    call(&world, &server, "before", 1);
    // It may write a file meanwhile.
    until("the folder to be gone", || fs::remove_dir_all(world.folder.path("s")).ok());
    let status = server.wait();
    assert!(!status.success(), "{status}");
    let said = server.stderr();
    assert!(said.contains("was removed or replaced while it was in use"), "{said}");
}

#[test]
fn what_is_taken_from_a_store_in_use_ends_its_kernel_and_is_not_signed() {
    let gone = [
        ("DELETE FROM checkpoints", "expected checkpoint 1 over 1 receipts"),
        ("DELETE FROM revocations", "expected at least 1 revoked tokens, found 0"),
        (
            "UPDATE budgets SET debits = 0, invocations = 0",
            "expected at least 1 debits of budgets, found 0",
        ),
        (
            "UPDATE meta SET value = 0 WHERE key = 'epoch'",
            "expected at least 1 as epoch of revocations, found 0",
        ),
    ];
    for (sql, words) in gone {
        let (world, mut server) = World::served();
        let once = ToolGrant { max_invocations: Some(1), ..grant("echo") };
        assert_eq!(verdict(&server, &world.token("spent", vec![once])), "allow");
        world.line("capability revoke late --anyway --data s").ends(0);
        let path = world.folder.path("s/kernels/0/mark");
        until("a mark with all of it", || {
            let mark = fs::read_to_string(&path).ok()?;
            let parts = ["\"checkpoint_seq\":1", "\"debits\":1", "\"epoch\":1", "\"revoked\":1"];
            parts.iter().all(|part| mark.contains(part)).then_some(())
        });
        assert!(database(&world).execute(sql, []).unwrap() > 0);
        // A checkpoint more, which a mark is due for.
        call(&world, &server, "after", 1);
        let status = server.wait();
        assert!(!status.success(), "{status}");
        let said = server.stderr();
        assert!(said.contains("no call runs any more") && said.contains(words), "{said}");
        check_refused(&world, &[words]);
    }
}

#[test]
fn a_copy_of_a_live_store_is_noticed_when_it_starts_beside_the_original() {
    let (world, mut server) = World::served();
    call(&world, &server, "original", 2);
    until("a mark with a checkpoint", || {
        let mark = fs::read_to_string(world.folder.path("s/kernels/0/mark")).ok()?;
        mark.contains("checkpoint_seq").then_some(())
    });
    let copied = std::process::Command::new("cp")
        .args(["-r", "s", "copy"])
        .current_dir(world.folder.root())
        .status();
    assert!(copied.unwrap().success());
    let socket = world.folder.path("b.sock");
    let words = ["native", "serve", "--data", "copy", "--unix", socket.to_str().unwrap()];
    let noticed = "one store is a copy of the other";
    let mut copy = Server::start(&mut world.command(&words));
    assert_eq!(copy.kernel_key(), server.kernel_key());
    assert!(copy.stderr().contains(noticed), "{}", copy.stderr());
    copy.end();
    // It may go on with logs of its own.
    world.line("store accept-restore --data copy").ends(0);
    let mut copy = Server::start(&mut world.command(&words));
    assert_ne!(copy.kernel_key(), server.kernel_key());
    assert!(!copy.stderr().contains(noticed), "{}", copy.stderr());
    copy.end();
    world.line("log audit --data copy").ends(0);
    call(&world, &server, "goes-on", 1);
    server.end();
    world.audit();
}
