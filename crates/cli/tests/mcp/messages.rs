//! What a person at a terminal is told while something runs: as whom they act, what is near, what to
//! do next.

use std::net::TcpListener;
use std::process::Stdio;

use chio_testkit::process::{Run, Running, Server, until};
use serde_json::Value;

use crate::support::World;

/// A port that was free a moment ago.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The id of the only call that waits for an approval.
fn waiting(world: &World) -> String {
    until("a call to wait", || {
        let listed = world.line("approvals list --json").ends(0).json();
        listed["approvals"][0]["request"]["id"].as_str().map(str::to_owned)
    })
}

#[test]
fn a_call_says_as_whom_it_acts_and_which_tools_are_near() {
    let world = World::new();
    let (_server, _) = world.up(&[]);
    world.line("call demo now").ends(0).complains("as: the demo agent");
    let run = world.line("call demo ecko").ends(1).complains("unknown tool: `demo` has no `ecko`");
    run.complains("did you mean `echo`?");
    let run = world.line("call demo note_pet").ends(1);
    run.complains("did you mean `note_put`, `note_get` or `note_count`?");
    world.line("call demo zzzzzz").ends(1).complains("`chio tools list`");
    world.line("call dmo now").ends(1).complains("did you mean `demo`?");
    world.line("tools list --server dmo").ends(1).complains("did you mean `demo`?");
    world.line("tools list").ends(0).says("TOOL").says("ABOUT");
}

#[test]
fn an_interrupted_call_that_waits_is_cancelled() {
    let world = World::new();
    let (_server, _) = world.up(&[]);
    let words = ["call", "demo", "needs_approval", "{\"text\": \"may I?\"}"];
    let mut command = world.command(&words);
    let mut call = Server::spawn(command.stdout(Stdio::null()));
    let id = waiting(&world);
    call.signal("INT");
    assert_eq!(call.wait().code(), Some(5), "{}", call.stderr());
    until("the server to be told", || call.stderr().contains("cancelled: ").then_some(()));
    let run = world.line(&format!("approvals approve {id}")).ends(1);
    run.complains("was cancelled");
    until("its receipt", || {
        let listed = world.line("receipt list --outcome cancelled").ends(0).stdout;
        listed.contains("demo/needs_approval").then_some(())
    });
}

#[test]
fn an_address_may_be_a_port_alone() {
    for form in ["PORT", ":PORT", "localhost:PORT"] {
        let world = World::new();
        let port = free_port();
        let listen = form.replace("PORT", &port.to_string());
        let (reader, writer) = std::io::pipe().unwrap();
        let mut command = world.command(&["up", "--listen", &listen]);
        let _server = Server::spawn(command.stdout(Stdio::from(writer)));
        let endpoint = until("it to listen", || {
            let file = world.folder.path(".chio/endpoint.json");
            serde_json::from_slice::<Value>(&std::fs::read(file).ok()?).ok()
        });
        assert_eq!(endpoint["mcp"], format!("http://127.0.0.1:{port}/mcp"), "{form}");
        drop(reader);
    }
    let world = World::new();
    world.line("up --listen here:1").ends(2).complains("`localhost:9090` or `9090`");
    world.line("mcp serve --http npx").ends(2).complains("a command stands after `--`");
    world.folder.write("chio.yaml", "servers: [{id: demo}]\nlisteners: {http: {listen: 0}}\n");
    world.line("doctor").ends(0).says("127.0.0.1:0 is free");
}

#[test]
fn a_second_one_is_told_what_works() {
    let world = World::new();
    let (_server, _) = world.up(&[]);
    // Another address alone does not help: both would have the same socket.
    let run = world.line("up --listen 127.0.0.1:0").ends(2);
    let run = run.complains("the chio that runs here already, process ");
    run.complains("`chio call`").complains("`chio up --data DIR --listen 127.0.0.1:0`");
    // What it says works.
    let mut command = world.command(&["up", "--data", "other", "--listen", "127.0.0.1:0"]);
    let _other = Server::spawn(command.stdout(Stdio::null()));
    until("the other one", || world.folder.path("other/endpoint.json").exists().then_some(()));
    world.line("call --data other demo now").ends(0);
}

#[test]
fn a_token_is_listed_checked_and_revoked_in_the_store_beside_it() {
    let world = World::new();
    let (_server, _) = world.up(&[]);
    world.line("key new --out agent.key").ends(0);
    let issue = "capability issue --subject agent.key --grant demo/note_put --max-invocations 3 \
                 --id cap-notes --out token.json";
    world.line(issue).ends(0);
    let listed = world.line("capability list").ends(0);
    let listed = listed.says("UNTIL").says("HOLDER").says("cap-notes").says("demo/note_put x3");
    assert!(listed.stdout.lines().all(|line| line.chars().count() <= 80), "{}", listed.stdout);
    let verified = world.line("capability verify token.json").ends(0);
    verified.says("it is the authority of the store").says("revocation  none");
    // A store that is not where we are may have come with the token: it is asked, and not trusted.
    std::fs::create_dir(world.folder.path("elsewhere")).unwrap();
    let mut command = world.command(&["capability", "verify", "../token.json"]);
    let run = Run::of(command.current_dir(world.folder.path("elsewhere")), b"").ends(1);
    run.says("revocation  none").complains("no issuer is trusted");
    let words = ["native", "call", "--token", "token.json", "demo", "note_put"];
    world.run(&[&words[..], &["{\"name\": \"a\", \"text\": \"b\"}"]].concat()).ends(0);
    world.line("capability inspect token.json").ends(0).says("1 of 3 calls").says("revoked     no");

    // What is no token that is known is refused, and changes nothing.
    let run = world.line("capability revoke cap-nots").ends(1).complains("no token `cap-nots`");
    run.complains("chio capability list");
    let run = world.line("capability revoke token.json").ends(1);
    run.complains("found the file `token.json`: its token is `cap-notes`");
    world.line("capability revoke cap-note").ends(0).says("revoked     cap-notes");
    let run = world.line("capability verify token.json").ends(1).says("revocation  INVALID");
    run.complains("the token was revoked [capability_revoked");
    world.line("capability inspect token.json").ends(0).says("revoked     YES");
    assert!(!world.line("capability list").ends(0).stdout.contains("cap-notes"));
    world.line("capability list --all").ends(0).says("revoked").says("cap-notes");
    world.line("capability revoke cap-to-come --anyway").ends(0);
    let found = world.line("capability verify token.json --json").ends(1).json();
    assert_eq!(found["revoked"], true);
}

#[test]
fn a_token_that_has_ended_says_since_when() {
    let world = World::new();
    let (_server, _) = world.up(&[]);
    world.line("key new --out agent.key").ends(0);
    let issue = "capability issue --subject agent.key --grant demo/now --at 2023-11-14T22:15:00Z \
                 --ttl 1h --out token.json";
    world.line(issue).ends(0);
    let run = world.line("native call --token token.json demo now").ends(1);
    run.complains("it expired 2023-11-14T23:15:00Z, ");
    world.line("receipt list --outcome deny").ends(0).tells("it expired 2023-11-14T23:15:00Z");
    world.line("capability list --all").ends(0).says("expired");
}

#[test]
fn an_authority_that_vouches_for_nothing_here_is_one_line_that_names_the_one_that_does() {
    let world = World::new();
    let (_server, _) = world.up(&[]);
    for _ in 0..3 {
        world.line("call demo now").ends(0);
    }
    world.line("key public --out authority.pub").ends(0);
    world.line("key new --out other.key").ends(0);
    world.line("receipt export --out all.json").ends(0);
    let verify = "receipt verify --bundle all.json --authority";
    world.line(&format!("{verify} authority.pub")).ends(0).says("result      valid");
    let run = world.line(&format!("{verify} other.key")).ends(1);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    let authority = world.folder.read("authority.pub");
    run.complains(authority.trim().strip_prefix("chio-public-key ").unwrap());
    let run = world.line("log audit --authority other.key").ends(1);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    run.complains(authority.trim().strip_prefix("chio-public-key ").unwrap());
}

#[test]
fn an_export_is_listed_and_shown_as_a_store_is() {
    let world = World::new();
    let (mut server, _) = world.up(&[]);
    world.line("call demo now").ends(0);
    world
        .run(&["call", "demo", "note_put", "{\"name\":\"k\",\"text\":\"AKIAQ3EGRT5KLMN2WXYZ\"}"])
        .ends(1);
    world.line("receipt export --out all.json").ends(0);
    let of_store = world.line("receipt list --json").ends(0).json();
    server.end();
    std::fs::rename(world.folder.path(".chio"), world.folder.path("away")).unwrap();
    let of_bundle = world.line("receipt list --bundle all.json --json").ends(0).json();
    let rows = |listed: &Value| {
        let rows = listed["receipts"].as_array().unwrap().iter();
        rows.map(|row| (row["seq"].clone(), row["log_id"].clone(), row["receipt"].clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(rows(&of_bundle), rows(&of_store));
    let listed = world.line("receipt list --bundle all.json --outcome deny").ends(0);
    let listed = listed.says("VERDICT").says("demo/note_put").says("    secret-leak: ");
    assert!(!listed.stdout.contains("demo/now"), "{}", listed.stdout);
    let id = rows(&of_bundle)[0].2["id"].as_str().unwrap().get(..12).unwrap().to_owned();
    world
        .line(&format!("receipt show {id} --bundle all.json"))
        .ends(0)
        .says("denied by secret-leak");
    let run = world.line("receipt show 000000000000 --bundle all.json").ends(1);
    run.complains("there is no receipt `000000000000`");
    let csv = world.line("receipt list --bundle all.json --format csv").ends(0).stdout;
    let lines: Vec<&str> = csv.split("\r\n").collect();
    assert!(lines[0].starts_with("time,verdict,what,reason,principal,receipt_id,"), "{csv}");
    assert_eq!((lines.len(), lines[2].contains(",allow,demo/now,,")), (4, true), "{csv}");
}

#[test]
fn a_verdict_has_a_colour_on_a_terminal_alone() {
    let world = World::new();
    let (_server, _) = world.up(&[]);
    world.line("call demo now").ends(0);
    let at_terminal = |no_colour: &str| {
        let mut command = std::process::Command::new("script");
        let line = format!("{} receipt list", env!("CARGO_BIN_EXE_chio"));
        command.args(["-qec", &line, "/dev/null"]).current_dir(world.folder.root());
        command.env("TERM", "xterm").env("NO_COLOR", no_colour);
        Run::of(&mut command, b"").ends(0).stdout
    };
    assert!(at_terminal("").contains("\u{1b}[32mallow"), "a terminal");
    assert!(!at_terminal("1").contains('\u{1b}'), "NO_COLOR");
    assert!(!world.line("receipt list").ends(0).stdout.contains('\u{1b}'), "a pipe");
}

#[test]
fn doctor_sees_a_stop_and_a_resume_holds_at_once() {
    let world = World::new();
    let (_server, _) = world.up(&[]);
    world.run(&["kernel", "stop", "--reason", "a drill"]).ends(0);
    let run = world.line("doctor").ends(1).says("WRONG  calls: ").says("a drill");
    run.says("`chio kernel resume` ends the stop");
    world.line("call demo now").ends(1).complains("everything is stopped: a drill");
    for _ in 0..5 {
        world.run(&["kernel", "stop", "--reason", "again"]).ends(0);
        world.line("kernel resume").ends(0);
        world.line("call demo now").ends(0);
    }
    let report = world.line("doctor --json").json();
    let checks = report["checks"].as_array().unwrap();
    assert!(checks.iter().all(|it| it["check"] != "calls"), "{report}");
}

#[test]
fn a_waiting_call_is_not_spent_by_an_approver_whom_the_kernel_does_not_trust() {
    let world = World::new();
    let (_server, _) = world.up(&[]);
    world.line("key new --out mallory.key").ends(0);
    let words = ["call", "demo", "needs_approval", "{\"text\": \"may I?\"}"];
    let call = Running::start(&mut world.command(&words));
    let id = waiting(&world);
    let run = world.line(&format!("approvals deny {id} --key mallory.key")).ends(1);
    run.complains("one that the kernel does not trust");
    let told = world.line(&format!("approvals approve {id} --json")).ends(0).json();
    assert_eq!(told["answer"]["decision"], "approved");
    call.end().ends(0).says("may I?");
}
