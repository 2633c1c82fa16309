//! `chio init` and `chio serve`.

use chio_testkit::process::{Running, Server, mcp_fixture, until};
use serde_json::Value;

use crate::support::World;

/// Replaces the address of a configuration by a free one.
fn on_a_free_port(world: &World) {
    let text = world.folder.read("chio.yaml").replace("127.0.0.1:9090", "127.0.0.1:0");
    world.folder.write("chio.yaml", text);
}

fn serve(world: &World) -> Server {
    Server::start(&mut world.command(&["serve"]))
}

#[test]
fn what_init_writes_works_as_it_is_and_is_never_overwritten() {
    let world = World::new();
    world.line("init").ends(0).says("chio.yaml").says(" serve");
    world.line("init").ends(2).complains("exists already");
    on_a_free_port(&world);
    world.line("doctor").ends(0).says("everything is in order");
    let mut server = serve(&world);
    world.line("tools list").ends(0).says("demo echo");
    world.line("call demo echo {\"text\":\"hello\"}").ends(0).says("hello");
    // The native socket is there as well, and MCP asks for the token that was made.
    assert!(world.folder.path(".chio/native.sock").exists());
    let url = server.endpoint();
    world.run(&["tools", "list", "--url", &url]).ends(1).complains("asks for another token");
    world.run(&["tools", "list", "--url", &url, "--bearer-file", ".chio/mcp.token"]).ends(0);
    server.end();
    assert_eq!(world.receipts(".chio").len(), 1);
    assert!(!world.folder.path(".chio/endpoint.json").exists());
}

#[test]
fn init_writes_into_another_folder_and_its_paths_begin_there() {
    let world = World::new();
    let run = world.line("init agents/mine").ends(0);
    let run = run.says("serve --config agents/mine/chio.yaml");
    assert!(run.stdout.contains("doctor --config agents/mine/chio.yaml"), "{run:#?}");
    let file = "agents/mine/chio.yaml";
    let text = world.folder.read(file).replace("127.0.0.1:9090", "127.0.0.1:0");
    world.folder.write(file, text);
    let _server = Server::start(&mut world.command(&["serve", "--config", file]));
    assert!(world.folder.path("agents/mine/.chio/native.sock").exists());
    world.line("call --data agents/mine/.chio demo now").ends(0);
}

#[test]
fn several_servers_are_told_apart_by_their_names() {
    let world = World::new();
    world.folder.write("alice.token", "alice-0123456789abcdef\n");
    world.folder.write("bob.token", "bob-0123456789abcdef\n");
    let fixture = mcp_fixture().display();
    world.folder.write(
        "chio.yaml",
        format!(
            "servers:\n  - id: demo\n  - id: tests\n    command: [\"{fixture}\"]\nlisteners:\n  http:\n    \
             listen: 127.0.0.1:0\n    tokens:\n      - {{name: alice, file: alice.token}}\n      \
             - {{name: bob, file: bob.token}}\nedges: {{mcp: {{}}}}\n"
        ),
    );
    let mut server = serve(&world);
    world.line("tools list").ends(0).says("demo echo ").says("tests echo ");
    let listed = world.line("tools list --server tests").ends(0).says("tests echo ");
    assert!(!listed.stdout.contains("demo "), "{listed:#?}");
    world.line("call demo echo {\"text\":\"one\"}").ends(0).says("one");
    world.line("call tests echo {\"text\":\"two\"}").ends(0).says("two");
    let url = server.endpoint();
    let bob = ["call", "--url", &url, "--bearer-file", "bob.token"];
    world.run(&[&bob[..], &["tests", "echo", "{\"text\": \"three\"}"]].concat()).ends(0);
    server.end();
    let receipts = world.receipts(".chio");
    let servers: Vec<_> = receipts.iter().map(|it| it["tool_server"].as_str().unwrap()).collect();
    assert_eq!(servers, ["tests", "tests", "demo"]);
    let subject = |it: &Value| it["metadata"]["attribution"]["subject_key"].clone();
    assert_ne!(subject(&receipts[0]), subject(&receipts[1]), "bob is not alice");
    assert_eq!(subject(&receipts[1]), subject(&receipts[2]));
}

#[test]
fn what_is_wrong_with_the_file_is_told_before_anything_starts() {
    let world = World::new();
    world.line("serve").ends(2).complains("`chio init` writes one");
    world.folder.write("chio.yaml", "servers:\n  - id: demo\n    comand: [x]\npolcy: default\n");
    let run = world.line("serve").ends(2);
    let run =
        run.complains("chio.yaml:3:5: `servers[0]`: there is no `comand`; did you mean `command`?");
    run.complains("chio.yaml:4:1: the document: there is no `polcy`; did you mean `policy`?")
        .complains("2 problems");
    assert!(!world.folder.path(".chio").exists());
}

#[test]
fn servers_of_which_none_starts_start_nothing() {
    let world = World::new();
    world.folder.write(
        "chio.yaml",
        "servers: [{id: gone, command: [no-such-program-anywhere]}, {id: lost, command: [\"false\"]}]\n\
         listeners: {http: {listen: \"127.0.0.1:0\"}}\nedges: {mcp: {}}\n",
    );
    let run = world.line("serve").ends(2).complains("is not there");
    assert!(!run.stderr.contains("listening"), "{run:#?}");
    assert!(!world.folder.path(".chio/endpoint.json").exists());
}

#[test]
fn each_call_is_a_line_and_the_end_a_word() {
    let world = World::new();
    world.line("init").ends(0);
    on_a_free_port(&world);
    let (mut server, printed) = world.start(&["serve"]);
    printed.line("VERDICT");
    world.line("call demo echo {\"text\":\"hello\"}").ends(0);
    assert!(printed.line("demo/echo").contains("  allow  "), "{}", printed.text());
    server.end();
    assert!(printed.text().ends_with("ended: everything that ran is in the log\n"));
}

#[test]
fn a_hangup_has_all_of_the_file_taken_or_nothing() {
    let world = World::new();
    world.line("key new --out alice.key").ends(0);
    world.line("key public alice.key --out alice.pub").ends(0);
    let write = |port: &str, more: &str| {
        let text = format!(
            "servers: [{{id: demo}}]\nlisteners: {{http: {{listen: {port}, anonymous: default}}}}\n\
             edges: {{mcp: {{}}}}\n{more}"
        );
        world.folder.write("chio.yaml", text);
    };
    write("0", "approvals: {timeout: 60s}\n");
    let server = serve(&world);
    let words = ["call", "demo", "needs_approval", "{\"text\": \"may I?\"}"];
    let approve = || {
        let call = Running::start(&mut world.command(&words));
        let id = until("a call to wait", || {
            let listed = world.line("approvals list --json").ends(0).json();
            listed["approvals"][0]["request"]["id"].as_str().map(str::to_owned)
        });
        let run = world.line(&format!("approvals approve {id} --key alice.key"));
        if run.code != 0 {
            world.line(&format!("approvals deny {id}")).ends(0);
        }
        drop(call.end());
        run
    };
    approve().ends(1).complains("the kernel does not trust");
    write("0", "approvals: {approvers: [alice.pub]}\n");
    server.signal("HUP");
    until("the file to be taken", || server.stderr().contains("chio.yaml reloaded").then_some(()));
    approve().ends(0);
    // A policy that is broken, and a listener that is another: nothing of either file is taken.
    for (port, more, problem) in [
        ("0", "policy: none.yaml\n", "none.yaml"),
        ("9", "approvals: {}\n", "`listeners` changed, which takes a new start"),
        ("0", "approval: {}\n", "did you mean `approvals`?"),
    ] {
        write(port, more);
        server.signal("HUP");
        until(problem, || server.stderr().contains(problem).then_some(()));
        approve().ends(0);
    }
    assert_eq!(server.stderr().matches("not reloaded, everything stays as it is").count(), 3);
}
