//! `chio doctor`.

use std::net::TcpListener;

use chio_testkit::process::{Server, mcp_fixture};
use serde_json::Value;

use crate::support::World;

/// The states of the checks of a report, by what they are about.
fn state_of<'a>(report: &'a Value, check: &str) -> (&'a str, &'a str, &'a str) {
    let checks = report["checks"].as_array().unwrap();
    let found = checks.iter().find(|it| it["check"] == check);
    let found = found.unwrap_or_else(|| panic!("{check}: {report}"));
    let text = |name: &str| found[name].as_str().unwrap_or_default();
    (text("state"), text("found"), text("todo"))
}

#[test]
fn what_is_in_order_is_told_line_by_line() {
    let world = World::new();
    let fixture = mcp_fixture().display();
    world.folder.write(
        "chio.yaml",
        format!(
            "servers: [{{id: demo}}, {{id: tests, command: [\"{fixture}\"]}}]\n\
             listeners: {{http: {{listen: \"127.0.0.1:0\"}}}}\nedges: {{mcp: {{}}, native: {{}}}}\n"
        ),
    );
    let run = world.line("doctor").ends(0).says("everything is in order");
    for line in ["ok     policy: default holds", "ok     server tests: ", "ok     mcp: 127.0.0.1:0"]
    {
        assert!(run.stdout.contains(line), "{line} in {run:#?}");
    }
    assert!(!world.folder.path(".chio").exists(), "nothing is changed");
    let report = world.line("doctor --json").ends(0).json();
    assert_eq!(report["healthy"], true);
    let (state, found, _) = state_of(&report, "server tests");
    assert!(state == "ok" && found.contains(" tools"), "{found}");
}

#[test]
fn everything_that_is_wrong_is_told_with_what_to_do() {
    let world = World::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    world.folder.write("broken.yaml", "hushspec: \"0.1.0\"\nrules: {egres: {}}\n");
    world.folder.write("short.token", "short\n");
    world.folder.write(
        "chio.yaml",
        format!(
            "policy: broken.yaml\n\
             servers:\n  - {{id: gone, command: [no-such-program-anywhere]}}\n  \
             - {{id: mute, command: [sh, -c, \"echo what is wrong >&2\"]}}\n\
             listeners:\n  http: {{listen: \"{address}\", tokens: [{{name: a, file: short.token}}]}}\n  \
             socket: {{socket: no/such/folder.sock}}\nedges: {{mcp: {{}}, native: {{}}}}\n"
        ),
    );
    std::fs::create_dir(world.folder.path(".chio")).unwrap();
    let report = world.line("doctor --json").ends(1).json();
    assert_eq!(report["healthy"], false);
    for (check, found, to_do) in [
        ("policy", "did you mean `egress`?", "chio policy check broken.yaml"),
        ("server gone", "`no-such-program-anywhere` is not found", "install it"),
        ("server mute", "what is wrong", "run its command by hand"),
        ("mcp", "is taken", "lsof -i :"),
        ("access", "at least 16 characters", ""),
        ("native", "there is no folder for the socket", "make it"),
        ("folder", "others can look into", "chmod 700"),
    ] {
        let (state, told, way_out) = state_of(&report, check);
        assert_eq!(state, "wrong", "{check}: {told}");
        assert!(told.contains(found) && way_out.contains(to_do), "{check}: {told} {way_out}");
    }
    let run = world.line("doctor").ends(1).says("WRONG  server gone").says("NOT IN ORDER");
    assert!(!run.stdout.contains("short\n"), "{run:#?}");
}

#[test]
fn what_cannot_be_read_is_told_to_the_column() {
    let world = World::new();
    world.folder.write("chio.yaml", "servers: [{id: demo}]\nedge: {}\n");
    world
        .line("doctor")
        .ends(1)
        .says("chio.yaml:2:1: the document: there is no `edge`; did you mean");
    world.line("doctor --config missing.yaml").ends(1).says("cannot read `missing.yaml`");
}

#[test]
fn without_a_file_what_up_uses_is_checked() {
    let world = World::new();
    let report = world.line("doctor --json").json();
    let (state, _, to_do) = state_of(&report, "chio.yaml");
    assert_eq!((state, to_do), ("note", "`chio init` writes one"));
    assert_eq!(state_of(&report, "policy").0, "ok");
    assert_eq!(state_of(&report, "store").0, "note");
}

#[test]
fn what_runs_already_is_no_problem() {
    let world = World::new();
    world.line("init").ends(0);
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let text = world.folder.read("chio.yaml").replace("127.0.0.1:9090", &free.to_string());
    world.folder.write("chio.yaml", text);
    let _server = Server::start(&mut world.command(&["serve"]));
    let report = world.line("doctor --json").ends(0).json();
    let (state, found, _) = state_of(&report, "mcp");
    assert!(state == "note" && found.contains("chio runs already"), "{found}");
}
