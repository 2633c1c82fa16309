//! The inbox as people and scripts read it.

use chio_testkit::process::Wire;
use chio_testkit::token::grant;
use serde_json::{Value, json};

use crate::support::World;

/// This many calls that wait, newest last.
fn waiting(world: &World, wire: &mut Wire, count: usize) -> Vec<String> {
    (0..count)
        .map(|number| {
            let name = format!("wait-{number}");
            let token = world.token(&name, vec![grant("needs_approval")]);
            wire.send_call(&name, &token, "needs_approval", json!({"text": number.to_string()}));
            world.waiting(&name)
        })
        .collect()
}

#[test]
fn requests_come_newest_first_and_page_by_page() {
    let (world, server) = World::served();
    world.line("approvals list --data s").ends(0).says("none");
    let mut wire = server.connect();
    let mut expected = waiting(&world, &mut wire, 3);
    expected.reverse();
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let line = format!("approvals list --data s --limit 2 --json {cursor}");
        let page = world.line(&line).ends(0).json();
        let rows = page["approvals"].as_array().unwrap();
        found.extend(rows.iter().map(|row| row["request"]["id"].as_str().unwrap().to_owned()));
        if page["nextCursor"] == Value::Null {
            break;
        }
        cursor = format!("--cursor {}", page["nextCursor"]);
    }
    assert_eq!(found, expected);
    let line = "approvals list --data s --limit 2";
    world.line(line).ends(0).says("more: add --cursor ");
    world.line("approvals list --data s --state denied").ends(0).says("none");
    world.line(&format!("approvals deny {} --data s", found[0])).ends(0);
    world.line("approvals list --data s --state denied").ends(0).says(found[0].get(..18).unwrap());
    let any = world.line("approvals list --data s --state any").ends(0);
    assert_eq!(any.stdout.matches("demo/needs_approval").count(), 3);
}

#[test]
fn the_beginning_of_an_id_will_do_where_only_one_request_has_it() {
    let (world, server) = World::served();
    let mut wire = server.connect();
    let ids = waiting(&world, &mut wire, 2);
    let common = ids[0].bytes().zip(ids[1].bytes()).take_while(|(one, other)| one == other).count();
    for beginning in [ids[0].get(..common).unwrap(), "appr-0", "0"] {
        let run = world.line(&format!("approvals approve {beginning} --data s")).ends(1);
        run.complains("found more than one");
    }
    for unknown in ["appr-", "appr-x", "nothing", "APPR-0"] {
        for command in ["show", "approve", "deny"] {
            let run = world.line(&format!("approvals {command} {unknown} --data s")).ends(1);
            run.complains("there is no request");
        }
    }
    let enough = ids[1].get(..=common).unwrap();
    world.line(&format!("approvals show {enough} --data s")).ends(0).says(&ids[1]);
    let without = enough.strip_prefix("appr-").unwrap();
    world.line(&format!("approvals deny {without} --data s")).ends(0).says(&ids[1]);
    // One that is over still has its name.
    let run = world.line(&format!("approvals approve {enough} --data s")).ends(1);
    run.complains("was denied already");
    world.line(&format!("approvals show {} --data s", ids[0])).ends(0).says("state       pending");
}

#[test]
fn what_a_caller_sends_does_not_steer_a_terminal() {
    let (world, server) = World::served();
    let token = world.token("esc-1", vec![grant("needs_approval")]);
    let mut wire = server.connect();
    let text = "\u{1b}[2J\u{202e}approved\r\n";
    wire.send_call("1", &token, "needs_approval", json!({"text": text}));
    let id = world.waiting("esc-1");
    for line in ["list", "list --json", &format!("show {id}"), &format!("show {id} --json")] {
        let run = world.line(&format!("approvals {line} --data s")).ends(0);
        assert!(!run.stdout.contains(['\u{1b}', '\u{202e}', '\r']), "{run:#?}");
    }
}

#[test]
fn a_request_that_was_changed_in_the_store_is_not_signed() {
    let (world, server) = World::served();
    let mut wire = server.connect();
    let ids = waiting(&world, &mut wire, 1);
    let database = rusqlite::Connection::open(world.folder.path("s/store.db")).unwrap();
    let changed = database.execute(
        "UPDATE approvals SET body = CAST(replace(CAST(body AS TEXT), '\"text\":\"0\"',
         '\"text\":\"1\"') AS BLOB)",
        [],
    );
    assert_eq!(changed, Ok(1));
    for command in ["show", "approve"] {
        let run = world.line(&format!("approvals {command} {} --data s", ids[0])).ends(2);
        run.complains("was changed since it was made");
    }
}
