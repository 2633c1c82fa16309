//! `chio up` and the commands that find it.

use std::net::TcpListener;

use serde_json::Value;

use crate::support::World;

// covers: CROSS-022
#[test]
fn every_call_is_a_line_with_its_receipt() {
    let world = World::new();
    let (mut server, printed) = world.up(&[]);
    let called = world.line("call demo echo {\"text\":\"hello\"}").ends(0).says("hello");
    let receipt = called.stderr.lines().find_map(|line| line.strip_prefix("receipt: ")).unwrap();
    let (short, _) = receipt.split_at(12);
    let line = printed.line("demo/echo");
    assert!(line.contains("  allow  ") && line.contains(short), "{line}");
    assert!(line.contains(" ms  "), "{line}");
    let secret = "{\"name\":\"k\",\"text\":\"AKIAQ3EGRT5KLMN2WXYZ\"}";
    world.run(&["call", "demo", "note_put", secret]).ends(1);
    let line = printed.line("demo/note_put");
    assert!(line.contains("  deny  "), "{line}");
    printed.line("    secret-leak: ");
    // What the line shows is enough to find the receipt.
    world.line(&format!("receipt show {short}")).ends(0).says(receipt);
    world.line(&format!("receipt trace {short}")).ends(0).says("mcp");
    server.end();
    assert!(printed.text().ends_with("ended: everything that ran is in the log\n"));
}

#[test]
fn others_find_it_as_long_as_it_runs() {
    let world = World::new();
    world.line("call demo now").ends(2).complains("start it with `chio up`");
    let (mut server, _) = world.up(&[]);
    assert_eq!(world.mode(".chio/endpoint.json"), 0o600);
    let listed = world.line("tools list --json").ends(0).json();
    let tools = listed["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["name"] == "note_put"), "{listed}");
    world.line("tools list").ends(0).says("demo echo ").says("Gives a text back.");
    let result = world.line("call demo now --json").ends(0).json();
    assert!(result["structuredContent"]["unix_seconds"].is_number(), "{result}");
    world.line("call other now").ends(1).complains("there is no server `other` here");
    world.line("call demo nothing").ends(1).complains("unknown tool");
    world.line("call demo now []").ends(1).complains("this is not a JSON object of arguments");
    server.end();
    assert!(!world.folder.path(".chio/endpoint.json").exists());
}

#[test]
fn what_a_crash_leaves_is_told_apart_from_what_runs() {
    let world = World::new();
    let (mut server, _) = world.up(&[]);
    server.kill();
    let run = world.line("call demo now").ends(2);
    run.complains("no server answers at http://").complains("start it with `chio up`");
    let (_server, _) = world.up(&[]);
    world.line("call demo now").ends(0);
}

#[test]
fn a_call_that_a_crash_cut_off_is_a_line_of_the_next_start() {
    let world = World::new();
    let (mut server, _) = world.up(&[]);
    let words = ["call", "demo", "needs_approval", "{\"text\": \"may I?\"}"];
    let _waiting = chio_testkit::process::Running::start(&mut world.command(&words));
    chio_testkit::process::until("a call to wait", || {
        let listed = world.line("approvals list --json").ends(0).json();
        listed["approvals"][0]["request"]["id"].is_string().then_some(())
    });
    server.kill();
    let (_server, printed) = world.up(&[]);
    let line = printed.line("demo/needs_approval");
    assert!(line.contains("  cancelled  "), "{line}");
    printed.line("the kernel stopped");
}

#[test]
fn a_taken_port_says_whom_to_ask_and_how_to_choose_another() {
    let world = World::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let run = world.line(&format!("up --listen {address}")).ends(2);
    let run = run.complains(&format!("{address} is taken"));
    let run = run.complains(&format!("ss -ltnp 'sport = :{}'", address.port()));
    run.complains("`chio up --listen 127.0.0.1:0` takes a free port");
    assert!(!world.folder.path(".chio").exists(), "nothing was started");
}

#[test]
fn a_second_one_at_the_same_address_says_that_the_first_runs() {
    let world = World::new();
    let (_server, _) = world.up(&[]);
    let endpoint: Value = serde_json::from_str(&world.folder.read(".chio/endpoint.json")).unwrap();
    let url = endpoint["mcp"].as_str().unwrap();
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let run = world.line(&format!("up --listen {address}")).ends(2);
    run.complains(&format!("the chio that runs here already, process {}", endpoint["process"]));
    world.line("call demo now").ends(0);
}

#[test]
fn a_second_start_keeps_the_data() {
    let world = World::new();
    let (mut server, _) = world.up(&[]);
    world.run(&["call", "demo", "note_put", "{\"name\": \"todo\", \"text\": \"read\"}"]).ends(0);
    server.end();
    let (mut server, _) = world.up(&[]);
    world.run(&["call", "demo", "note_get", "{\"name\": \"todo\"}"]).ends(0).says("read");
    server.end();
    let receipts = world.receipts(".chio");
    assert_eq!(receipts.len(), 2);
    assert_eq!(receipts[0]["capability_id"], receipts[1]["capability_id"]);
    world.line("log audit").ends(0);
}

#[test]
fn a_call_that_waits_for_an_approval_says_so_and_goes_on() {
    let world = World::new();
    let (_server, _) = world.up(&[]);
    let words = ["call", "demo", "needs_approval", "{\"text\": \"may I?\"}"];
    let waiting = chio_testkit::process::Running::start(&mut world.command(&words));
    let id = chio_testkit::process::until("a call to wait", || {
        let listed = world.line("approvals list --json").ends(0).json();
        listed["approvals"][0]["request"]["id"].as_str().map(str::to_owned)
    });
    world.line(&format!("approvals approve {id}")).ends(0);
    waiting.end().ends(0).says("may I?").complains("waiting for an approval");
}

#[test]
fn only_this_machine_is_listened_on() {
    let world = World::new();
    world.line("up --listen 0.0.0.0:0").ends(2).complains("expected authentication or a loopback");
    assert!(!world.folder.path(".chio").exists());
}
