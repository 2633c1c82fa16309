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
            "claude-code",
            json!({"mcpServers": {"filesystem": {"type": "stdio", "command": chio, "args": args}}}),
            ".mcp.json",
        ),
        ("windsurf", json!({"mcpServers": plain}), "mcp_config.json"),
        (
            "cline",
            json!({"mcpServers": {"filesystem": {"command": chio, "args": args, "disabled": false}}}),
            "cline_mcp_settings.json",
        ),
        ("jetbrains", json!({"mcpServers": plain}), ".junie/mcp/mcp.json"),
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

#[test]
fn every_path_is_whole_wherever_it_stands() {
    let world = World::new();
    world.folder.write("server.py", "");
    let root = world.folder.root().canonicalize().unwrap().display().to_string();
    let given =
        ["./run.sh", "server.py", "--root=./data", ".", "../x", "-y", "@a/b", "plain", "/w"];
    let words =
        [&["mcp", "config", "--client", "cursor", "--name", "s", "--"], &given[..]].concat();
    let found = world.run(&words).ends(0).json();
    let args = found["mcpServers"]["s"]["args"].as_array().unwrap();
    let behind: Vec<&str> =
        args.iter().rev().take(given.len()).rev().filter_map(Value::as_str).collect();
    let at = |path: &str| format!("{root}/{path}");
    let expected = [
        &at("run.sh"),
        &at("server.py"),
        &format!("--root={root}/data"),
        &root,
        &at("../x"),
        "-y",
        "@a/b",
        "plain",
        "/w",
    ];
    assert_eq!(behind, expected);
}

#[test]
fn a_file_of_a_client_is_changed_in_one_place_and_put_back() {
    let world = World::new();
    let json = "{\n  // mine\n  \"mcpServers\": {\n    \"filesystem\": {\n      \"command\": \"npx\"\n    \
                },\n    \"b\": {}\n  }\n}\n";
    let toml = "# mine\nmodel = \"m\"\n\n[mcp_servers.filesystem]\ncommand = \"npx\"\n";
    for (client, file, before) in
        [("cursor", "c.json", json), ("codex", "c.toml", toml), ("cursor", "n.json", "{}\n")]
    {
        world.folder.write(file, before);
        config(&world, &["--client", client, "--write", file]);
        let written = world.folder.read(file);
        assert!(written.contains("\"serve\"") && written.contains("filesystem"), "{written}");
        assert!(written.contains("mine") == before.contains("mine"), "{written}");
        // To write it once more changes nothing.
        config(&world, &["--client", client, "--write", file]);
        assert_eq!(world.folder.read(file), written);
        config(&world, &["--client", client, "--undo", file]);
        let after = world.folder.read(file);
        if before.contains("npx") {
            assert_eq!(after, before, "{client}");
        } else {
            assert!(!after.contains("filesystem"), "{after}");
        }
        assert!(!world.folder.path(&format!("{file}.filesystem.before-chio")).exists());
        let words = [&["mcp", "config", "--client", client, "--undo", file, "--"], &COMMAND[..]];
        world.run(&words.concat()).ends(1).complains("has no server `filesystem` that starts");
    }
    world.folder.write("broken.json", "{ nonsense");
    let words =
        [&["mcp", "config", "--client", "cursor", "--write", "broken.json", "--"], &COMMAND[..]];
    world.run(&words.concat()).ends(2).complains("was not changed");
    assert_eq!(world.folder.read("broken.json"), "{ nonsense");
}

#[test]
fn each_server_that_was_replaced_is_put_back_and_the_file_stays_as_open_as_it_was() {
    use std::os::unix::fs::PermissionsExt as _;

    let world = World::new();
    let before = "{\"mcpServers\": {\"a\": {\"command\": \"x\"}, \"b\": {\"command\": \"y\"}}}\n";
    world.folder.write("c.json", before);
    let mode = || std::fs::metadata(world.folder.path("c.json")).unwrap().permissions().mode();
    let open = std::fs::Permissions::from_mode(0o640);
    std::fs::set_permissions(world.folder.path("c.json"), open).unwrap();
    for (what, name) in [("--write", "a"), ("--write", "b"), ("--undo", "a"), ("--undo", "b")] {
        config(&world, &["--client", "cursor", "--name", name, what, "c.json"]);
        assert_eq!(mode() & 0o777, 0o640, "{what} {name}");
    }
    assert_eq!(world.folder.read("c.json"), before);
}

#[test]
fn a_client_of_this_user_has_its_file_at_home() {
    let world = World::new();
    let words = [&["mcp", "config", "--client", "codex", "--write", "--"], &COMMAND[..]].concat();
    let mut command = world.command(&words);
    Run::of(command.env("HOME", world.folder.path("home")), b"").ends(0);
    let written = world.folder.read("home/.codex/config.toml");
    assert!(written.starts_with("[mcp_servers.filesystem]\ncommand = \""), "{written}");
}
