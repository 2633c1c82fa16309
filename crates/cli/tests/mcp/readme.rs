//! The first five minutes, as the README has them: what is written there works when it is typed.

use std::process::Command;

use chio_testkit::process::Run;

use crate::support::World;

const README: &str = include_str!("../../../../README.md");
/// What is not typed here: what runs on, what needs the network, and what takes a fixed port.
const LEFT_OUT: [&str; 6] =
    ["cargo install", "chio mcp serve", ":8931", ":9090/", "chio init", "agent.example.com"];

/// The commands of the first minutes, each on one line.
fn commands() -> Vec<String> {
    let (_, rest) = README.split_once("## Five minutes").unwrap();
    let (part, _) = rest.split_once("### Approve a call").unwrap();
    let blocks = part.split("```sh\n").skip(1).map(|rest| rest.split_once("```").unwrap().0);
    let typed = blocks.filter(|block| !LEFT_OUT.iter().any(|it| block.contains(it)));
    let joined = typed.map(|block| block.replace("\\\n", " "));
    joined.flat_map(|block| block.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[test]
fn the_commands_of_the_readme_work_as_they_are_written() {
    let world = World::new();
    let (_server, _) = world.up(&[]);
    let commands = commands();
    assert!(commands.len() >= 15, "{commands:?}");
    for line in commands {
        let script = format!("chio() {{ '{}' \"$@\"; }}\n{line}", env!("CARGO_BIN_EXE_chio"));
        let mut shell = Command::new("sh");
        let run = Run::of(shell.arg("-c").arg(script).current_dir(world.folder.root()), b"");
        let expected = i32::from(line.contains("# denied"));
        assert_eq!(run.code, expected, "{line}: {run:#?}");
    }
    world.line("log audit").ends(0);
}
