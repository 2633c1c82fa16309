//! `chio mcp config`: what each client reads, to the letter.

use chio_testkit::process::{Run, mcp_fixture};
use serde_json::{Value, json};

use crate::support::World;

const COMMAND: [&str; 4] = ["npx", "-y", "@modelcontextprotocol/server-filesystem", "/work"];

fn config(world: &World, options: &[&str]) -> Run {
    world.run(&[&["mcp", "config"], options, &["--"], &COMMAND].concat()).ends(0)
}

/// The words that start the server through this binary.
fn words(world: &World, more: &[&str]) -> Value {
    let root = world.folder.root().canonicalize().unwrap();
    let data = root.join(".chio").display().to_string();
    let words = [&["mcp", "serve", "--data", &data], more, &["--"], &COMMAND].concat();
    json!(words)
}

#[test]
fn each_client_gets_its_own_format() {
    let world = World::new();
    let chio = env!("CARGO_BIN_EXE_chio");
    let args = words(&world, &[]);
    let plain = json!({"filesystem": {"command": chio, "args": args}});
    for (client, expected, file) in [
        ("claude-desktop", json!({"mcpServers": plain}), "claude_desktop_config.json"),
        ("cursor", json!({"mcpServers": plain}), ".cursor/mcp.json"),
        (
            "vscode",
            json!({"servers": {"filesystem": {"type": "stdio", "command": chio, "args": args}}}),
            ".vscode/mcp.json",
        ),
        (
            "zed",
            json!({"context_servers": {"filesystem": {"command": chio, "args": args, "env": {}}}}),
            "settings.json",
        ),
    ] {
        let run = config(&world, &["--client", client]);
        assert_eq!(run.json(), expected, "{client}");
        assert!(run.stderr.contains(file), "{run:#?}");
    }
}

#[test]
fn a_policy_file_is_named_by_its_whole_path_and_a_built_in_one_by_its_name() {
    let world = World::new();
    world.folder.write("mine.yaml", "hushspec: \"0.1.0\"\n");
    let mine = world.folder.root().canonicalize().unwrap().join("mine.yaml");
    for (policy, expected) in [("mine.yaml", mine.to_str().unwrap()), ("code-agent", "code-agent")]
    {
        let options = ["--client", "cursor", "--name", "fs", "--policy", policy];
        let found = config(&world, &options).json();
        let more = ["--policy", expected, "--server-id", "fs"];
        assert_eq!(found["mcpServers"]["fs"]["args"], words(&world, &more), "{policy}");
    }
}

#[test]
fn the_versions_that_are_named_are_passed_on() {
    let world = World::new();
    let options = ["--client", "cursor", "--protocol-version", "2025-06-18,2024-11-05"];
    let found = config(&world, &options).json();
    let more = ["--protocol-version", "2025-06-18", "--protocol-version", "2024-11-05"];
    assert_eq!(found["mcpServers"]["filesystem"]["args"], words(&world, &more));
}

#[test]
fn what_is_printed_starts_the_server() {
    let world = World::new();
    let fixture = mcp_fixture().to_str().unwrap();
    let run = world.run(&["mcp", "config", "--client", "cursor", "--", fixture]).ends(0).json();
    let server = &run["mcpServers"]["fixture"];
    let mut command = std::process::Command::new(server["command"].as_str().unwrap());
    let args = server["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
    // Clients start it wherever they are.
    command.args(args).current_dir("/");
    let mut client = crate::client::Client::new(&mut command);
    client.call("echo", &json!({"text": "from afar"}));
    client.end();
    assert_eq!(world.receipts(".chio").len(), 1);
}
