//! `chio up`.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use chio_testkit::process::{Run, Server};

use crate::support::World;

/// Starts `chio up` and reads what it prints, up to its last line.
pub(crate) fn up(world: &World, words: &[&str]) -> (Server, String) {
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = world.command(&[&["up", "--listen", "127.0.0.1:0"], words].concat());
    let server = Server::spawn(command.stdout(Stdio::from(writer)));
    // So that a process that ends ends its output.
    drop(command);
    let mut printed = String::new();
    for line in BufReader::new(reader).lines().map_while(Result::ok) {
        printed.push_str(&line);
        printed.push('\n');
        if line.starts_with("Ctrl-C") {
            break;
        }
    }
    (server, printed)
}

/// The commands that were printed, run in a shell as they stand: an allowed call, a denied one, and
/// the receipts of both.
#[track_caller]
fn shell(world: &World, printed: &str) {
    let commands: Vec<_> = printed.lines().filter(|line| line.starts_with("  /")).collect();
    assert_eq!(commands.len(), 3, "{printed}");
    let run = |line: &str| {
        let mut shell = Command::new("sh");
        Run::of(shell.arg("-c").arg(line).current_dir(world.folder.root()), b"")
    };
    let allowed = run(commands[0]).ends(0).says("{\"text\":\"hello\"}").complains("receipt: ");
    let denied = run(commands[1]).ends(1).complains("Denied by secret-leak").complains("receipt: ");
    let listed = run(commands[2]).ends(0);
    for call in [allowed, denied] {
        let receipt = call.stderr.lines().find_map(|line| line.strip_prefix("receipt: "));
        assert!(listed.stdout.contains(receipt.unwrap().get(..12).unwrap()), "{listed:#?}");
    }
}

// covers: WIRE-085
#[test]
fn the_first_run_just_works_and_its_commands_work_as_printed() {
    let world = World::new();
    let (mut server, printed) = up(&world, &[]);
    assert!(printed.contains("tools       demo: echo, now, note_put"), "{printed}");
    assert!(printed.contains("native.sock (chio-wire-v1)\n"), "{printed}");
    shell(&world, &printed);
    server.signal("INT");
    assert!(server.wait().success(), "{}", server.stderr());
    assert!(!world.folder.path(".chio/native.sock").exists());
    let audit = world.line("log audit --json").ends(0).json();
    assert_eq!(
        (audit["receipts"].as_u64(), audit["logs"][0]["pending"].as_u64()),
        (Some(2), Some(0))
    );
    let mode = |name: &str| {
        use std::os::unix::fs::PermissionsExt;
        let found = std::fs::metadata(world.folder.path(name)).unwrap();
        found.permissions().mode() & 0o777
    };
    assert_eq!(mode(".chio"), 0o700);
    for name in ["authority.key", "demo/agent.key", "demo/token.json", "kernels/0/key", "store.db"]
    {
        assert_eq!(mode(&format!(".chio/{name}")), 0o600, "{name}");
    }

    // The next time, everything is still there.
    let token = world.folder.read(".chio/demo/token.json");
    let (mut server, printed) = up(&world, &[]);
    shell(&world, &printed);
    assert_eq!(world.folder.read(".chio/demo/token.json"), token);
    server.end();
    let audit = world.line("log audit --json").ends(0).json();
    assert_eq!(audit["receipts"], 4);
}

#[test]
fn its_state_can_be_kept_elsewhere_and_the_commands_say_so() {
    let world = World::new();
    let (_server, printed) = up(&world, &["--data", "elsewhere"]);
    shell(&world, &printed);
    assert!(!world.folder.path(".chio").exists());
}

#[test]
fn a_second_one_in_the_same_folder_says_that_the_first_runs() {
    let world = World::new();
    let (_server, printed) = up(&world, &[]);
    let run = world.line("up --listen 127.0.0.1:0");
    assert!(run.code == 1 || run.code == 2, "{run:#?}");
    let run = run.complains("the chio that runs here already, process ");
    assert!(run.stderr.contains("works on .chio"), "{run:#?}");
    shell(&world, &printed);
}

#[test]
fn other_kernels_work_beside_it() {
    let world = World::new();
    let (server, printed) = up(&world, &[]);
    let socket = world.folder.path("b.sock");
    let words = ["native", "serve", "--data", ".chio", "--unix", socket.to_str().unwrap()];
    let second = Server::start(&mut world.command(&words));
    assert!(!printed.contains(&second.kernel_key()), "{printed}");
    let token = ".chio/demo/token.json";
    let call = ["native", "call", "--unix", "b.sock", "--token", token, "demo", "now"];
    world.run(&call).ends(0);
    let audit = world.line("log audit --json").ends(0).json();
    assert_eq!(audit["logs"].as_array().unwrap().len(), 2);
    drop(server);
}

#[test]
fn the_commands_work_as_printed_also_where_the_folder_has_a_blank_in_its_name() {
    let world = World::new();
    let (_server, printed) = up(&world, &["--data", "my data"]);
    shell(&world, &printed);
}

#[test]
fn a_second_one_that_is_refused_leaves_no_kernel_behind() {
    let world = World::new();
    let (_server, _) = up(&world, &[]);
    assert_ne!(world.line("up --listen 127.0.0.1:0").code, 0);
    let listed = world.line("kernel list --json").ends(0).json();
    assert_eq!(listed["kernels"].as_array().unwrap().len(), 1);
}

#[test]
fn a_demo_token_that_was_revoked_is_replaced() {
    let world = World::new();
    let (mut server, _) = up(&world, &[]);
    server.end();
    let token: serde_json::Value =
        serde_json::from_str(&world.folder.read(".chio/demo/token.json")).unwrap();
    world.line(&format!("capability revoke {}", token["id"].as_str().unwrap())).ends(0);
    let (_server, printed) = up(&world, &[]);
    shell(&world, &printed);
}
