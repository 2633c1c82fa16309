//! A copy of a store that may not be written: it is read, and nothing in it changes.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use chio_testkit::process::{Run, copy_tree};
use chio_testkit::token::grant;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::World;

/// A user that owns nothing: the mode of a file does not stop root.
const NO_OWNER: u32 = 65_534;

/// Sets the mode of everything in a folder.
fn set_modes(folder: &Path, folders: u32, files: u32) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            set_modes(&path, folders, files);
        } else {
            fs::set_permissions(&path, Permissions::from_mode(files)).unwrap();
        }
    }
    fs::set_permissions(folder, Permissions::from_mode(folders)).unwrap();
}

/// Every file of a folder, with its content.
fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(content(&path));
        } else {
            found.insert(path.clone(), fs::read(path).unwrap());
        }
    }
    found
}

/// Asks a copy as a user that may not write it.
#[track_caller]
fn ask(world: &World, copy: &str, line: &str) -> Run {
    let mut command = Command::new(world.folder.path("chio"));
    command.args(line.split_whitespace()).args(["--data", copy]);
    command.current_dir(world.folder.root());
    command.env("TMPDIR", world.folder.path("tmp"));
    if rustix::process::geteuid().is_root() {
        command.uid(NO_OWNER).gid(NO_OWNER);
    }
    Run::of(&mut command, b"")
}

fn stocked() -> World {
    let (world, mut server) = World::served();
    let token = world.token("copy-1", vec![grant("echo")]);
    let mut wire = server.connect();
    for id in ["1", "2", "3"] {
        wire.call(id, &token, "echo", json!({"text": "hi"}));
    }
    // With a log and shared memory, and without.
    copy_tree(&world.folder.path("s"), &world.folder.path("live"));
    copy_tree(&world.folder.path("s"), &world.folder.path("log only ?#%41"));
    fs::remove_file(world.folder.path("log only ?#%41/store.db-shm")).unwrap();
    for copy in ["live", "log only ?#%41"] {
        let log = world.folder.path(copy).join("store.db-wal");
        assert!(fs::metadata(log).unwrap().len() > 0, "the calls are in the log");
    }
    server.end();
    copy_tree(&world.folder.path("s"), &world.folder.path("closed"));
    assert!(!world.folder.path("closed/store.db-wal").exists());
    fs::copy(env!("CARGO_BIN_EXE_chio"), world.folder.path("chio")).unwrap();
    fs::create_dir(world.folder.path("tmp")).unwrap();
    fs::set_permissions(world.folder.path("tmp"), Permissions::from_mode(0o777)).unwrap();
    world
}

#[test]
fn a_read_only_copy_is_audited_listed_and_exported_and_stays_as_it_is() {
    let world = stocked();
    for copy in ["closed", "live", "log only ?#%41"] {
        let folder = world.folder.path(copy);
        set_modes(&folder, 0o555, 0o444);
        let before = content(&folder);
        let ask = |line: &str| ask(&world, copy, line);
        ask("log audit").ends(0).says("result      clean");
        let mut cursor = String::new();
        let mut ids = Vec::new();
        for _ in 0..3 {
            let page = ask(&format!("receipt list --json --limit 1 {cursor}")).ends(0).json();
            ids.push(page["receipts"][0]["receipt"]["id"].as_str().unwrap().to_owned());
            cursor = page["nextCursor"].as_u64().map_or(cursor, |next| format!("--cursor {next}"));
        }
        let rows = world.rows("");
        let id = |row: &Value| row["receipt"]["id"].as_str().unwrap().to_owned();
        assert_eq!(ids, rows.iter().map(id).collect::<Vec<_>>(), "{copy}");
        ask(&format!("receipt show {}", ids[0])).ends(0).says("demo/echo");
        ask(&format!("receipt trace {}", ids[0])).ends(0).says("demo/echo");
        let bundle = ask("receipt export").ends(0).json();
        assert_eq!(bundle["entries"].as_array().unwrap().len(), 3, "{copy}");
        let refused = ask("kernel stop --reason x");
        assert_ne!(refused.code, 0);
        refused.complains("readonly database");
        assert_eq!(content(&folder), before, "{copy}");
        assert_eq!(fs::read_dir(world.folder.path("tmp")).unwrap().count(), 0, "{copy}");
        set_modes(&folder, 0o755, 0o644);
    }
}

#[test]
fn a_read_only_copy_of_an_older_schema_is_refused_in_clear_words() {
    let world = stocked();
    let folder = world.folder.path("closed");
    let database = Connection::open(folder.join("store.db")).unwrap();
    database.execute_batch("PRAGMA user_version = 2").unwrap();
    drop(database);
    set_modes(&folder, 0o555, 0o444);
    let run = ask(&world, "closed", "log audit");
    assert_ne!(run.code, 0);
    run.complains("made by an older chio").complains("open a copy that it may write");
    set_modes(&folder, 0o755, 0o644);
}
