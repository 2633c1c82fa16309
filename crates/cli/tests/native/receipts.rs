//! Receipts from the shell: found, read, followed, exported, checked elsewhere.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use chio_core::capability::ToolGrant;
use chio_testkit::key;
use chio_testkit::process::Server;
use chio_testkit::token::grant;
use serde_json::{Value, json};

use crate::support::{World, agent};

/// A store with receipts of every kind.
///
/// `list-1` has allow echo ×2, deny now, tool error note_get; `list-2` of another subject has
/// paid ×2 and a cancelled sleep.
fn stocked() -> (World, Server) {
    let (world, server) = World::served();
    let one = world.token("list-1", vec![grant("echo"), grant("note_get")]);
    let paid = ToolGrant {
        max_total_cost: Some(chio_core::money::MonetaryAmount::new(1000, "USD")),
        ..grant("paid")
    };
    let other = key(8);
    let two = world.token_for(other.public_key(), "list-2", vec![paid, grant("sleep")]);
    let mut wire = server.connect();
    wire.call("1", &one, "echo", json!({"text": "a"}));
    wire.call("2", &one, "echo", json!({"text": "b"}));
    wire.call("3", &one, "now", json!({}));
    wire.call("4", &one, "note_get", json!({"name": "none"}));
    wire.call("5", &two, "paid", json!({"text": "c"}));
    wire.call("6", &two, "paid", json!({"text": "d"}));
    wire.send_call("7", &two, "sleep", json!({"ms": 60_000}));
    wire.shut();
    wire.response();
    (world, server)
}

#[test]
fn receipts_are_found_by_every_filter() {
    let (world, _server) = stocked();
    let (agent, other) = (agent().public_key().to_hex(), key(8).public_key().to_hex());
    world.folder.write_key("other.key", &key(8));
    let trace = world.rows("--tool now")[0]["receipt"]["metadata"]["chio"]["trace"]["traceId"]
        .as_str()
        .unwrap()
        .to_owned();
    for (filter, expected) in [
        (String::new(), 7),
        ("--capability list-1".to_owned(), 4),
        ("--capability nobody".to_owned(), 0),
        (format!("--subject {agent}"), 4),
        (format!("--subject {other}"), 3),
        ("--subject other.key".to_owned(), 3),
        ("--server demo".to_owned(), 7),
        ("--server moon".to_owned(), 0),
        ("--tool echo".to_owned(), 2),
        ("--outcome allow".to_owned(), 4),
        ("--outcome deny".to_owned(), 1),
        ("--outcome failed".to_owned(), 1),
        ("--outcome cancelled".to_owned(), 1),
        ("--outcome incomplete".to_owned(), 0),
        ("--since 1h".to_owned(), 7),
        ("--until 1h".to_owned(), 0),
        ("--since 1700000000 --until 1700000001".to_owned(), 0),
        ("--min-cost 25".to_owned(), 2),
        ("--min-cost 26".to_owned(), 0),
        ("--max-cost 25 --min-cost 1".to_owned(), 2),
        ("--currency USD".to_owned(), 2),
        ("--currency EUR".to_owned(), 0),
        (format!("--trace {trace}"), 1),
        ("--capability list-1 --tool echo --outcome allow --since 1h".to_owned(), 2),
        ("--capability list-1 --tool paid".to_owned(), 0),
    ] {
        assert_eq!(world.rows(&filter).len(), expected, "{filter}");
    }
    let run = world.line("receipt list --data s --outcome deny").ends(0);
    assert_eq!(run.stdout.matches("  deny  ").count(), 1, "{run:#?}");
    run.says("demo/now").says("not in the token's scope");
    let run = world.line("receipt list --data s --outcome failed").ends(0);
    assert_eq!(run.stdout.matches("  failed  ").count(), 1, "{run:#?}");
    run.says("  failed  ").says("there is no note of this name");
    world.line("receipt list --data s --tool fly").ends(0).says("none");
}

#[test]
fn a_long_list_is_read_page_by_page_in_either_direction() {
    let (world, server) = stocked();
    let place = |row: &Value| (row["log_id"].to_string(), row["seq"].as_u64().unwrap());
    let newest: Vec<_> = world.rows("").iter().map(place).collect();
    let mut oldest: Vec<_> = world.rows("--oldest-first").iter().map(place).collect();
    oldest.reverse();
    assert_eq!(newest, oldest);
    for order in ["", "--oldest-first"] {
        let (mut read, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
        loop {
            let line = format!("receipt list --data s --json --limit 3 {order} {cursor}");
            let page = world.line(&line).ends(0).json();
            read.extend(page["receipts"].as_array().unwrap().iter().map(place));
            pages += 1;
            let Some(next) = page["nextCursor"].as_u64() else { break };
            cursor = format!("--cursor {next}");
            // What is signed meanwhile is newer than the pages that are left.
            if order.is_empty() && pages == 1 {
                let token = world.token("meanwhile", vec![grant("echo")]);
                server.connect().call("m", &token, "echo", json!({"text": "m"}));
            }
        }
        if !order.is_empty() {
            // The one that was signed meanwhile is the last.
            read.pop();
            read.reverse();
        }
        assert_eq!(read, newest, "{order}");
    }
    let run = world.line("receipt list --data s --limit 1").ends(0).says("more: add --cursor ");
    let cursor = run.stdout.trim().rsplit(' ').next().unwrap().to_owned();
    let next = world.line(&format!("receipt list --data s --limit 1 --cursor {cursor}")).ends(0);
    assert_ne!(next.stdout, run.stdout);
}

#[test]
fn a_receipt_is_shown_by_its_id() {
    let (world, _server) = stocked();
    let row = &world.rows("--tool now")[0];
    let id = row["receipt"]["id"].as_str().unwrap();
    let run = world.line(&format!("receipt show {id} --data s")).ends(0);
    run.says("demo/now").says("denied by kernel").says("list-1").says("content     nothing");
    let shown = world.line(&format!("receipt show {id} --data s --json")).ends(0).json();
    assert_eq!(shown["id"], id);
    let unknown = "0".repeat(64);
    let run = world.line(&format!("receipt show {unknown} --data s")).ends(1);
    run.complains("there is no receipt");
}

#[test]
fn receipts_are_followed_as_they_are_signed() {
    let (world, server) = stocked();
    let run = world.line("receipt tail --data s --count 2 --last 2 --json").ends(0);
    let rows: Vec<Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[1]["receipt"]["tool_name"], "sleep");

    let words = ["receipt", "tail", "--data", "s", "--last", "1", "--tool", "echo", "--json"];
    let words = [&words[..], &["--count", "3"]].concat();
    let mut tail = world.command(&words).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(tail.stdout.take().unwrap()).lines();
    let text = |line: Option<Result<String, std::io::Error>>| {
        let row: Value = serde_json::from_str(&line.unwrap().unwrap()).unwrap();
        row["receipt"]["action"]["parameters"]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(text(lines.next()), "b");
    let token = world.token("tail-1", vec![grant("echo"), grant("now")]);
    let mut wire = server.connect();
    for (id, tool, params) in [
        ("1", "echo", json!({"text": "new-1"})),
        ("2", "now", json!({})),
        ("3", "echo", json!({"text": "new-2"})),
    ] {
        wire.call(id, &token, tool, params);
    }
    assert_eq!(text(lines.next()), "new-1");
    assert_eq!(text(lines.next()), "new-2");
    assert!(lines.next().is_none());
    assert!(tail.wait().unwrap().success());
}

#[test]
fn an_export_verifies_from_the_authoritys_public_key_alone() {
    let (world, server) = stocked();
    world.line("receipt export --data s --out all.json").ends(0).says("7 receipts");
    let authority = world.authority().public_key().to_hex();
    // Somewhere else, with nothing but the bundle.
    let elsewhere = World::new();
    elsewhere.folder.write("all.json", world.folder.read("all.json"));
    let verify = format!("receipt verify --bundle all.json --authority {authority}");
    let run = elsewhere.line(&verify).ends(0);
    run.says("receipts    7").says("in the log  7").says("result      valid");
    let report = elsewhere.line(&format!("{verify} --json")).ends(0).json();
    assert_eq!((&report["valid"], &report["included"]), (&json!(true), &json!(7)));

    let kernel = server.kernel_key();
    elsewhere.line(&format!("receipt verify --bundle all.json --trusted-key {kernel}")).ends(0);
    // A reader that trusts no authority, or another one, is not convinced.
    let run = elsewhere.line("receipt verify --bundle all.json").ends(1);
    run.complains("no trusted authority vouches");
    let stranger = key(66).public_key().to_hex();
    let line = format!("receipt verify --bundle all.json --authority {stranger}");
    elsewhere.line(&line).ends(1).complains("no trusted authority vouches");
}

#[test]
fn some_receipts_are_exported_by_filter_or_by_id() {
    let (world, _server) = stocked();
    let bundle = world.line("receipt export --data s --tool echo").ends(0).json();
    assert_eq!(bundle["entries"].as_array().unwrap().len(), 2);
    let id = bundle["entries"][1]["receipt"]["id"].as_str().unwrap();
    let one = world.line(&format!("receipt export --data s --id {id} --out one.json")).ends(0);
    one.says("1 receipt");
    world.line("receipt verify --bundle one.json --authority s/authority.key").ends(0);
    let run = world.line("receipt export --data s --limit 3").ends(0);
    run.complains("there are more: only the newest 3 are written");
    world.line("receipt export --data s --tool fly").ends(1).complains("no such receipt");
    world.line("receipt export --data s --id nobody").ends(1).complains("`nobody`");
}

#[test]
fn a_bundle_says_what_it_covers_and_a_verifier_warns_of_gaps_and_of_what_nothing_signs() {
    let (world, _server) = stocked();
    let all = world.line("receipt export --data s --out all.json").ends(0);
    all.says("coverage").says("places 1 to 7 without gaps");
    let verify = |file: &str, options: &str| {
        let line = "receipt verify --authority s/authority.key --bundle";
        world.line(&format!("{line} {file} {options}")).ends(0)
    };
    let run = verify("all.json", "").says("places 1 to 7 without gaps");
    assert!(!run.stdout.contains("WARNING"), "{run:#?}");
    assert_eq!(verify("all.json", "--json").json()["coverage"][0]["receipts"], 7);

    let rows = world.rows("");
    let id = |seq: u64| {
        let row = rows.iter().find(|row| row["seq"] == seq).unwrap();
        row["receipt"]["id"].as_str().unwrap().to_owned()
    };
    let line = format!("receipt export --data s --id {} --id {} --out some.json", id(7), id(1));
    world.line(&line).ends(0).says("places 1 to 7 without 5 of them");
    let bundle: Value = serde_json::from_str(&world.folder.read("some.json")).unwrap();
    let coverage = &bundle["coverage"][0];
    assert_eq!((&coverage["receipts"], &coverage["gaps"]), (&json!(2), &json!([[2, 6]])));
    let missing = "5 of the places from 1 to 7 are not in the bundle";
    verify("some.json", "").says("WARNING").says(missing);
    let warned = verify("some.json", "--json").json()["warnings"].to_string();
    assert!(warned.contains(missing), "{warned}");

    // What it says of itself must be so.
    let mut other = bundle.clone();
    other["coverage"][0].as_object_mut().unwrap().remove("gaps");
    world.folder.write("other.json", other.to_string());
    let line = "receipt verify --authority s/authority.key --bundle other.json";
    world.line(line).ends(1).complains("what it says of its coverage");

    // A member that nothing signs could mislead a reader of the file.
    let mut extra = bundle;
    extra["entries"][0]["receipt"]["approved_by"] = json!("the board");
    extra["entries"][0]["receipt"]["action"]["note"] = json!("harmless");
    world.folder.write("extra.json", extra.to_string());
    verify("extra.json", "").says("nothing signs its members `action`, `approved_by`");
}

#[test]
fn a_child_and_a_call_are_found_by_the_beginnings_of_their_ids() {
    let (world, _server) = stocked();
    for row in world.rows("") {
        let id = row["receipt"]["id"].as_str().unwrap();
        for length in [12, 20, id.len() - 1] {
            let line = format!("receipt show {} --data s --json", id.get(..length).unwrap());
            let run = world.line(&line);
            // Children of one moment begin alike.
            if run.code == 0 {
                assert_eq!(run.json()["id"], id);
            } else {
                assert!(id.starts_with("child-rcpt-") && length < 32, "{run:#?}");
                run.complains("several receipts begin with");
            }
        }
    }
}

/// Something that is done to a bundle.
type Change = fn(&mut Value);

#[test]
fn an_export_that_was_tampered_with_is_refused_and_the_reason_is_named() {
    let (world, _server) = stocked();
    world.line("receipt export --data s --out all.json").ends(0);
    let bundle: Value = serde_json::from_str(&world.folder.read("all.json")).unwrap();
    let id = bundle["entries"][0]["receipt"]["id"].as_str().unwrap().to_owned();
    let changes: [(Change, String); 9] = [
        (|it| it["entries"][0]["receipt"]["tool_name"] = json!("other"), format!("receipt {id}: ")),
        (
            |it| it["entries"][0]["receipt"]["action"]["parameters"] = json!({"text": "z"}),
            format!("receipt {id}: "),
        ),
        (|it| it["entries"][0]["seq"] = json!(2), "it is not entry 2 under checkpoint".to_owned()),
        (
            |it| {
                let other = it["entries"][1]["inclusion"].clone();
                it["entries"][0]["inclusion"] = other;
            },
            "it is not entry 1 under checkpoint".to_owned(),
        ),
        (
            |it| it["checkpoints"][0]["body"]["issued_at"] = json!(5),
            "checkpoint 1 of local-log-".to_owned(),
        ),
        (|it| it["checkpoints"] = json!([]), "is not in the bundle".to_owned()),
        (|it| it["certificates"] = json!([]), "no trusted authority vouches".to_owned()),
        (|it| it["store_id"] = json!("another"), "it is for another store".to_owned()),
        (
            |it| it["certificates"][0]["issued_at"] = json!(5),
            "certificate of local-log-".to_owned(),
        ),
    ];
    for (number, (change, expected)) in changes.into_iter().enumerate() {
        let mut changed = bundle.clone();
        change(&mut changed);
        assert_ne!(changed, bundle, "{number}");
        world.folder.write("changed.json", changed.to_string());
        let verify = "receipt verify --bundle changed.json --authority s/authority.key";
        let run = world.line(verify).ends(1).says("NOT VALID").complains(&expected);
        assert!(!run.stderr.contains("panicked"));
        let report = world.line(&format!("{verify} --json")).ends(1).json();
        assert_eq!(report["valid"], false);
        assert!(!report["errors"].as_array().unwrap().is_empty());
    }
    world.folder.write("changed.json", "{}");
    let verify = "receipt verify --bundle changed.json --authority s/authority.key";
    world.line(verify).ends(1).complains("not a bundle of receipts");
}

#[test]
fn a_store_that_is_not_there_is_named() {
    let world = World::new();
    world.line("receipt list --data nowhere").ends(2).complains("expected a store in");
    world.line("receipt list").ends(2).complains(".chio");
    assert!(!world.folder.path("nowhere").exists() && !world.folder.path(".chio").exists());
}
