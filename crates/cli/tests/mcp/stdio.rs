//! `chio mcp serve` over standard input and output.

use chio_testkit::process::{Run, mcp_fixture, until};
use serde_json::json;

use crate::client::{Client, receipt_of};
use crate::support::World;

/// `chio mcp serve` in front of the fixture, with these options.
fn serve(world: &World, options: &[&str]) -> std::process::Command {
    let fixture = mcp_fixture().to_str().unwrap();
    world.command(&[&["mcp", "serve", "--data", "s"], options, &["--", fixture]].concat())
}

#[test]
fn a_client_lists_and_calls_and_every_call_has_its_receipt() {
    let world = World::new();
    let mut client = Client::new(&mut serve(&world, &[]));
    let tools = client.tools();
    assert!(tools.contains(&"echo".to_owned()), "{tools:?}");
    let result = client.call("echo", &json!({"text": "hello"}));
    assert_ne!(result["isError"], true, "{result}");
    let allowed = receipt_of(&result);
    let result = client.call("echo", &json!({"text": "AKIAQ3EGRT5KLMN2WXYZ"}));
    assert_eq!(result["isError"], true, "{result}");
    assert_eq!(result["_meta"]["chio"]["guard"], "secret-leak", "{result}");
    let denied = receipt_of(&result);
    client.end();
    let receipts = world.receipts("s");
    let found: Vec<_> = receipts.iter().map(|it| (&it["id"], &it["decision"]["verdict"])).collect();
    assert_eq!(found, [(&json!(denied), &json!("deny")), (&json!(allowed), &json!("allow"))]);
    assert!(receipts.iter().all(|it| it["tool_server"] == "fixture"), "{receipts:?}");
    assert!(receipts.iter().all(|it| it["tool_name"] == "echo"), "{receipts:?}");
    world.line("log audit --data s").ends(0);
}

#[test]
fn a_server_that_cannot_run_twice_at_once_works_as_it_does_without_us() {
    let world = World::new();
    let fixture = mcp_fixture().to_str().unwrap();
    // The server that has the folder runs, until its input ends.
    let script = format!("mkdir alone || exit 7; '{fixture}'; rmdir alone");
    let words = ["mcp", "serve", "--data", "s", "--", "sh", "-c", script.as_str()];
    let mut client = Client::new(&mut world.command(&words));
    let result = client.call("echo", &json!({"text": "hello"}));
    assert_ne!(result["isError"], true, "{result}");
    client.end();
    assert_eq!(world.receipts("s").len(), 1);
}

#[test]
fn nothing_but_messages_goes_to_standard_output_and_everything_ends_with_the_input() {
    let world = World::new();
    let wrapper = world.wrapper();
    let words = ["mcp", "serve", "--data", "s", "--", wrapper.as_str()];
    let mut client = Client::new(&mut world.command(&words));
    client.call("echo", &json!({"text": "hello"}));
    // Each line is parsed; whatever else stood there would fail.
    let rest = client.end();
    assert!(rest.iter().all(|message| message["jsonrpc"] == "2.0"), "{rest:?}");
    assert_eq!(world.children_gone(), 1);
}

#[test]
fn a_signal_ends_it_and_the_server_behind_it() {
    let world = World::new();
    let wrapper = world.wrapper();
    let words = ["mcp", "serve", "--data", "s", "--", wrapper.as_str()];
    let mut client = Client::new(&mut world.command(&words));
    client.call("echo", &json!({"text": "hello"}));
    client.server.end();
    world.children_gone();
    assert_eq!(world.receipts("s").len(), 1);
}

#[test]
fn it_works_on_the_same_data_while_up_runs() {
    let world = World::new();
    let (mut up, _) = world.up(&["--data", "s"]);
    let mut client = Client::new(&mut serve(&world, &[]));
    let through = receipt_of(&client.call("echo", &json!({"text": "a"})));
    let called = world.line("call --data s demo echo {\"text\":\"b\"}").ends(0);
    let demo = called.stderr.lines().find_map(|line| line.strip_prefix("receipt: ")).unwrap();
    client.end();
    up.end();
    let receipts = world.receipts("s");
    let ids: Vec<_> = receipts.iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 2);
    assert!(ids.contains(&through.as_str()) && ids.contains(&demo), "{ids:?}");
    let audit = world.line("log audit --data s --json").ends(0).json();
    assert_eq!(audit["logs"].as_array().unwrap().len(), 2);
}

#[test]
fn the_policy_says_which_tools_there_are_and_what_they_may_do() {
    let world = World::new();
    world.folder.write(
        "one.yaml",
        "hushspec: \"0.1.0\"\nextends: default\nchio:\n  capabilities:\n    tools:\n      \
         - {server: files, tool: echo, max_invocations: 1}\n",
    );
    let options = ["--policy", "one.yaml", "--server-id", "files"];
    let mut client = Client::new(&mut serve(&world, &options));
    assert_eq!(client.tools(), ["echo"]);
    assert_ne!(client.call("echo", &json!({"text": "a"}))["isError"], true);
    let result = client.call("echo", &json!({"text": "a"}));
    assert_eq!(result["_meta"]["chio"]["name"], "budget_exhausted", "{result}");
    client.end();
    // A client that starts it again is the same caller, and has no second allowance.
    let mut client = Client::new(&mut serve(&world, &options));
    assert_eq!(client.call("echo", &json!({"text": "a"}))["isError"], true);
    client.end();
}

#[test]
fn a_question_inside_of_a_call_stands_below_it_in_the_trace() {
    let world = World::new();
    let mut command = serve(&world, &[]);
    let mut client = Client::with(&mut command, &json!({"elicitation": {}}));
    client.answer =
        Some(json!({"action": "accept", "content": {"username": "a", "email": "a@b.c"}}));
    let result = client.call("test_elicitation", &json!({"message": "who are you?"}));
    assert_ne!(result["isError"], true, "{result}");
    let asked = client.notices.iter().any(|it| it["method"] == "elicitation/create");
    assert!(asked, "{:?}", client.notices);
    client.end();
    let trace = world.line(&format!("receipt trace {} --data s", receipt_of(&result))).ends(0);
    let lines: Vec<&str> = trace.stdout.lines().skip(2).collect();
    assert!(lines[0].contains("fixture/test_elicitation"), "{trace:#?}");
    assert!(lines[2].contains("└─ create elicitation"), "{trace:#?}");
    world.line("receipt list --data s").ends(0).says("    create elicitation");
}

#[test]
fn the_user_of_the_client_approves_only_where_the_policy_lets_them() {
    for (ask, approve) in [(true, true), (true, false), (false, true)] {
        let world = World::new();
        let policy = format!(
            "hushspec: \"0.1.0\"\nextends: default\nchio:\n  approvals:\n    ask_client: {ask}\n    \
             rules: [{{reason: it is a test, tools: [echo]}}]\n"
        );
        world.folder.write("ask.yaml", policy);
        let options = ["--policy", "ask.yaml", "--approval-timeout", "3s"];
        let mut client = Client::with(&mut serve(&world, &options), &json!({"elicitation": {}}));
        client.answer = Some(json!({"action": "accept", "content": {"approve": approve}}));
        let result = client.call("echo", &json!({"text": "please"}));
        let allowed = ask && approve;
        assert_eq!(result["isError"] == true, !allowed, "{ask} {approve}: {result}");
        let asked = client.notices.iter().any(|it| it["method"] == "elicitation/create");
        assert_eq!(asked, ask, "{:?}", client.notices);
        client.end();
        // The user who answered is not taken for the operator.
        let receipt = world.receipts("s").remove(0).to_string();
        let operator = world.folder.read_key("s/approver.key").public_key().to_hex();
        assert!(!receipt.contains(&operator), "{receipt}");
    }
}

#[test]
fn a_read_leaves_a_receipt_that_can_be_read() {
    let world = World::new();
    let mut client = Client::new(&mut serve(&world, &[]));
    let read = client.request("resources/read", &json!({"uri": "test://static-text"}));
    assert!(read["result"]["contents"].is_array(), "{read}");
    client.end();
    let listed = world.line("receipt list --data s").ends(0);
    let listed = listed.says("completed").says("fixture/read_resource test://static-text");
    let row = listed.stdout.lines().find(|line| line.contains("completed")).unwrap();
    let id = row.split_whitespace().nth(2).unwrap();
    world.line(&format!("receipt show {id} --data s")).ends(0).says("read resource");
    let trace = world.line(&format!("receipt trace {id} --data s")).ends(0);
    trace.says("fixture/read_resource test://static-text");
}

#[test]
fn the_server_sees_the_usual_variables_and_those_that_are_named() {
    let world = World::new();
    world.folder.write("env.sh", "#!/bin/sh\nenv > env.txt\n");
    let words = ["mcp", "serve", "--data", "s", "--env", "COLOUR", "--", "sh", "env.sh"];
    let start = |colour: Option<&str>| {
        let mut command = world.command(&words);
        command.env("CHIO_SECRET", "hush").env("CHIO_AUTH_TOKEN", "0123456789abcdef");
        command.env("AWS_SECRET_ACCESS_KEY", "hush").env("LC_ALL", "C").env_remove("COLOUR");
        colour.map(|colour| command.env("COLOUR", colour));
        Run::of(&mut command, b"")
    };
    let run = start(None).ends(2);
    run.complains("is to see the variable `COLOUR`: environment variable not found");
    assert!(!world.folder.path("env.txt").exists(), "it was not started");
    assert_ne!(start(Some("blue")).code, 0, "it is no MCP server");
    until("the variables", || Some(world.folder.read("env.txt")).filter(|it| !it.is_empty()));
    let seen = world.folder.read("env.txt");
    let has = |name: &str| seen.lines().any(|line| line.starts_with(&format!("{name}=")));
    assert!(["PATH", "LC_ALL", "TMPDIR"].into_iter().all(has), "{seen}");
    assert!(seen.contains("COLOUR=blue\n") && !seen.contains("hush"), "{seen}");
    assert!(!has("CHIO_AUTH_TOKEN"), "{seen}");
}

#[test]
fn a_value_on_the_command_line_is_refused_and_not_repeated() {
    let world = World::new();
    let run = world.line("mcp serve --data s --env KEY=hunter2hunter2 -- sh env.sh").ends(2);
    assert!(!run.complains("expected --env NAME").stderr.contains("hunter2"));
}

#[test]
fn a_command_that_is_no_server_is_told_before_anything_is_served() {
    let world = World::new();
    for (command, told) in [
        (&["no-such-program-anywhere"][..], "`no-such-program-anywhere` cannot be started"),
        (&["true"], "is the command an MCP server"),
        (&["echo", "hello"], "is the command an MCP server"),
    ] {
        let run = world.run(&[&["mcp", "serve", "--data", "s", "--"], command].concat());
        let run = run.ends(2).complains(told).complains("the server `");
        assert_eq!(run.stdout, "", "{command:?}");
        assert!(!run.stderr.contains("serving"), "{run:#?}");
    }
}
