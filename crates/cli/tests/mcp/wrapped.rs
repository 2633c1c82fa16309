//! `chio mcp serve --http`.

use chio_testkit::process::{Server, mcp_fixture};
use serde_json::json;

use crate::support::World;

/// Starts `chio mcp serve --http` on a free port, in front of the fixture.
pub(crate) fn serve(world: &World, options: &[&str]) -> Server {
    let fixture = mcp_fixture().to_str().unwrap();
    let words = ["mcp", "serve", "--data", "s", "--http", "127.0.0.1:0"];
    Server::start(&mut world.command(&[&words, options, &["--", fixture]].concat()))
}

#[test]
fn a_token_is_made_and_kept_and_clients_that_send_it_come_in() {
    let world = World::new();
    let mut server = serve(&world, &[]);
    let url = server.endpoint();
    assert!(url.starts_with("http://127.0.0.1:") && url.ends_with("/mcp"), "{url}");
    assert_eq!(world.mode("s/mcp.token"), 0o600);
    let token = world.folder.read("s/mcp.token");
    assert!(server.stderr().contains("the token is in"), "{}", server.stderr());
    assert!(!server.stderr().contains(token.trim()));
    let listed = world.run(&["tools", "list", "--url", &url, "--bearer-file", "s/mcp.token"]);
    listed.ends(0).says("echo");
    let call = |arguments: &str| {
        let place = ["call", "--url", &url, "--bearer-file", "s/mcp.token"];
        world.run(&[&place[..], &["fixture", "echo", arguments]].concat())
    };
    call("{\"text\": \"hello\"}").ends(0).says("hello").complains("receipt: ");
    call("{\"text\": \"AKIAQ3EGRT5KLMN2WXYZ\"}").ends(1).complains("secret-leak");
    assert_eq!(world.receipts("s").len(), 2);
    server.end();
    // The next time the same token holds.
    let server = serve(&world, &[]);
    assert_eq!(world.folder.read("s/mcp.token"), token);
    let url = server.endpoint();
    world.run(&["tools", "list", "--url", &url, "--bearer-file", "s/mcp.token"]).ends(0);
}

#[test]
fn a_tool_that_reports_a_failure_and_a_server_that_dies_are_told_apart() {
    let world = World::new();
    let server = serve(&world, &[]);
    let url = server.endpoint();
    let call = |tool, arguments| {
        let place = ["call", "--url", &url, "--bearer-file", "s/mcp.token", "fixture"];
        world.run(&[&place[..], &[tool, arguments]].concat())
    };
    call("echo", "{\"text\": \"AKIAQ3EGRT5KLMN2WXYZ\"}").ends(1).complains("secret-leak");
    call("test_error_handling", "{}").ends(3);
    call("crash", "{}").ends(4).complains("may have run");
    let receipts = world.receipts("s");
    let said =
        receipts.iter().rev().map(|it| (&it["decision"]["verdict"], &it["metadata"]["execution"]));
    let said: Vec<_> = said.map(|(verdict, it)| (verdict.as_str(), it.as_str())).collect();
    let expected = [("deny", "not_begun"), ("allow", "failed"), ("incomplete", "begun")];
    assert_eq!(said, expected.map(|(verdict, it)| (Some(verdict), Some(it))));
    let list = world.line("receipt list --data s").ends(0).says("the tool reports a failure");
    list.says("secret-leak: ").tells("(it had begun)");
}

#[test]
fn whoever_has_no_token_or_another_is_not_let_in() {
    let world = World::new();
    let server = serve(&world, &[]);
    let url = server.endpoint();
    world.run(&["tools", "list", "--url", &url]).ends(1).complains("--bearer-file");
    world.folder.write("other", "00000000000000000000000000000000\n");
    let other = ["tools", "list", "--url", &url, "--bearer-file", "other"];
    world.run(&other).ends(1).complains("asks for another token");
    assert!(world.receipts("s").is_empty());
}

#[test]
fn a_taken_port_is_refused_before_anything_starts() {
    let world = World::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let words = ["mcp", "serve", "--http", &address, "--", "no-such-program-anywhere"];
    let run = world.run(&words).ends(2).complains("is taken").complains("--http 127.0.0.1:0");
    assert!(run.stderr.contains(&format!("lsof -i :{}", taken.local_addr().unwrap().port())));
    assert!(!world.folder.path(".chio").exists());
}

#[test]
fn others_than_this_machine_need_a_token() {
    let world = World::new();
    let run = world.line("mcp serve --http 0.0.0.0:0 -- no-such-program-anywhere");
    run.ends(2).complains("expected authentication or a loopback address");
    let run = world.line("mcp serve --http 0.0.0.0:0 --anonymous default -- no-such-program");
    run.ends(2).complains("expected authentication or a loopback address");
}

#[test]
fn the_end_of_the_process_ends_the_children_of_all_sessions() {
    let world = World::new();
    let wrapper = world.wrapper();
    let words =
        ["mcp", "serve", "--data", "s", "--http", "127.0.0.1:0", "--anonymous", "default", "--"];
    let words = [&words[..], &[wrapper.as_str()]].concat();
    let mut server = Server::start(&mut world.command(&words));
    let url = server.endpoint();
    for _ in 0..2 {
        world.run(&["call", "--url", &url, "wrapper", "echo", "{\"text\": \"a\"}"]).ends(0);
    }
    server.end();
    // One that told what there is, and one for each session.
    assert_eq!(world.children_gone(), 3);
    let receipts = world.receipts("s");
    assert!(receipts.iter().all(|it| it["action"]["parameters"] == json!({"text": "a"})));
    assert_eq!(receipts.len(), 2);
}

#[test]
fn sessions_that_share_a_child_start_no_other() {
    let world = World::new();
    let wrapper = world.wrapper();
    let words = ["mcp", "serve", "--data", "s", "--http", "127.0.0.1:0", "--anonymous", "default"];
    let words = [&words[..], &["--shared", "--", wrapper.as_str()]].concat();
    let mut server = Server::start(&mut world.command(&words));
    let url = server.endpoint();
    for _ in 0..2 {
        world.run(&["call", "--url", &url, "wrapper", "echo", "{\"text\": \"a\"}"]).ends(0);
    }
    server.end();
    assert_eq!(world.children_gone(), 1);
}
