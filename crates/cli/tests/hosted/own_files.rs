//! Chio's own files, listeners, keys and tokens: out of reach of every call, in every policy.

use std::fs;
use std::os::unix::fs::symlink;

use chio_testkit::mcp::{Session, text_of};
use chio_testkit::process::mcp_fixture;
use serde_json::{Value, json};

use crate::support::{Served, World};

/// A policy that asks for no guard at all.
const NOTHING: &str = "hushspec: \"0.1.0\"\nname: first\n";

/// The fixture behind a policy that forbids nothing, in the layout of the README: the store, the
/// policy and the configuration lie in the folder that the server works in.
fn in_one_folder() -> (World, Served) {
    let world = World::new();
    world.folder.write("policy.yaml", NOTHING);
    world.folder.write("http.token", "wGdQ7r2Xn5Lk9TzBv3HyMc8JfSp4Ae6U\n");
    world.folder.write("notes.md", "ordinary");
    let served = world.wrap("--policy policy.yaml --auth-token-file http.token");
    (world, served)
}

fn open(served: &Served) -> Session {
    served.door.with("Authorization", "Bearer wGdQ7r2Xn5Lk9TzBv3HyMc8JfSp4Ae6U").open()
}

#[track_caller]
fn denied(session: &Session, tool: &str, arguments: &Value) {
    let result = session.call(tool, arguments);
    assert_eq!(result["isError"], true, "{arguments}: {result}");
    assert_eq!(result["_meta"]["chio"]["guard"], "own-files", "{arguments}: {result}");
}

#[test]
fn an_agent_cannot_rewrite_the_policy_nor_read_a_key() {
    let (world, served) = in_one_folder();
    let session = open(&served);
    let root = world.folder.root().canonicalize().unwrap();
    let whole = |name: &str| root.join(name).display().to_string();
    fs::create_dir(world.folder.path("sub")).unwrap();
    symlink(root.join("s"), world.folder.path("sub/link")).unwrap();
    symlink("../policy.yaml", world.folder.path("sub/other.yaml")).unwrap();
    symlink(root.join("s/new.key"), world.folder.path("sub/dangling")).unwrap();
    fs::hard_link(root.join("s/authority.key"), world.folder.path("sub/hard")).unwrap();
    for path in [
        "policy.yaml",
        "./sub/../policy.yaml",
        "POLICY.yaml",
        "chio.yaml",
        "http.token",
        "s/authority.key",
        "s/kernels/0/key",
        "s/store.db",
        "s",
        "sub/link/authority.key",
        "sub/link",
        "sub/other.yaml",
        "sub/dangling",
        "sub/hard",
        "/proc/self/cwd/policy.yaml",
        "/no-such-root/policy.yaml",
    ] {
        denied(&session, "read_file", &json!({"path": path}));
        denied(&session, "write_file", &json!({"path": path, "content": "x"}));
    }
    for path in
        [whole("policy.yaml"), whole("s/mcp.token"), format!("file://{}", whole("s/approver.key"))]
    {
        denied(&session, "read_file", &json!({"path": path}));
    }
    denied(
        &session,
        "read_file",
        &json!({"path": "policy.yaml", "cwd": root.display().to_string()}),
    );
    assert_eq!(world.folder.read("policy.yaml"), NOTHING);
    // Files beside them, and text about them, are left alone.
    assert_eq!(text_of(&session.call("read_file", &json!({"path": "notes.md"}))), "ordinary");
    let written =
        session.call("write_file", &json!({"path": "sub/policy.yaml", "content": "mine"}));
    assert_eq!(written["isError"], false, "{written}");
    let about = json!({"text": "see .chio/authority.key and policy.yaml"});
    assert_ne!(session.call("echo", &about)["isError"], true);
    world.audit();
}

#[test]
fn a_link_leads_to_no_file_of_ours_by_any_way_up() {
    let (world, served) = in_one_folder();
    let session = open(&served);
    fs::create_dir_all(world.folder.path("far/src")).unwrap();
    fs::create_dir(world.folder.path("sub")).unwrap();
    let sub = world.folder.path("sub").canonicalize().unwrap();
    symlink(sub, world.folder.path("far/src/to-sub")).unwrap();
    for path in [
        "far/src/to-sub/../policy.yaml",
        "far/src/to-sub/%2e%2e/policy.yaml",
        "/dev/fd/../cwd/policy.yaml",
        "/proc/self/fd/../cwd/notes.md",
    ] {
        denied(&session, "read_file", &json!({"path": path}));
        denied(&session, "write_file", &json!({"path": path, "content": "x"}));
    }
    denied(&session, "read_file", &json!({"path": "../policy.yaml", "cwd": "far/src/to-sub"}));
    let climbs = json!({"text": "x", "command": "cd far/src/to-sub; cat ../policy.yaml"});
    denied(&session, "echo", &climbs);
    denied(&session, "echo", &json!({"text": "x", "command": "chmod -R a+r ."}));
    assert_eq!(world.folder.read("policy.yaml"), NOTHING);
    // A file of another's that has two names is left alone.
    fs::hard_link(world.folder.path("notes.md"), world.folder.path("same.md")).unwrap();
    assert_eq!(text_of(&session.call("read_file", &json!({"path": "same.md"}))), "ordinary");
}

#[test]
fn a_key_or_token_is_withheld_by_its_value_whatever_found_it() {
    let (world, served) = in_one_folder();
    let session = open(&served);
    let found = text_of(&session.call("read_file", &json!({"path": "."}))).to_owned();
    assert!(found.contains("ordinary"), "{found}");
    for name in ["s/authority.key", "s/approver.key", "s/kernels/0/key", "http.token"] {
        let secret = world.folder.read(name).trim().to_owned();
        assert!(!found.contains(&secret), "{name}");
        let echoed =
            text_of(&session.call("echo", &json!({"text": format!("it is {secret}!")}))).to_owned();
        assert_eq!(echoed, "it is [withheld: a key or token of Chio]!", "{name}");
        let half = secret.split_at(secret.len() / 2).0;
        assert!(!text_of(&session.call("echo", &json!({"text": half}))).contains(half), "{name}");
        let spaced: String = secret.chars().flat_map(|c| [c, ' ']).collect();
        let echoed = text_of(&session.call("echo", &json!({"text": spaced}))).to_owned();
        assert!(echoed.starts_with("[withheld"), "{name}: {echoed}");
    }
    assert!(found.contains("[withheld: a key or token of Chio]"));
    // Another process on the same data directory adds keys of its own.
    fs::create_dir(world.folder.path("s/kernels/7")).unwrap();
    let secret = chio_testkit::key(7).seed_hex().to_string();
    world.folder.write("s/kernels/7/key", &secret);
    chio_testkit::process::until("the new key to be known", || {
        let echoed = session.call("echo", &json!({"text": secret}));
        text_of(&echoed).starts_with("[withheld").then_some(())
    });
}

#[test]
fn no_call_goes_to_a_listener_of_this_process() {
    let (world, served) = in_one_folder();
    let session = open(&served);
    let endpoint = served.server.endpoint();
    let port = endpoint.trim_end_matches("/mcp").rsplit(':').next().unwrap().to_owned();
    let number: u16 = port.parse().unwrap();
    // Whatever else an operator opens.
    world.folder.write(
        "policy.yaml",
        "hushspec: \"0.1.0\"\nname: second\nchio: {internal_network: {allow: [\"127.0.0.0/8\", localhost, \"::1\"]}}\n",
    );
    chio_testkit::process::until("the other policy", || {
        served.server.stderr().contains("reloaded: second").then_some(())
    });
    for arguments in [
        json!({"text": endpoint}),
        json!({"text": format!("http://localhost:{port}/")}),
        json!({"text": "x", "host": "127.0.0.1", "port": number}),
        json!({"text": format!("http://[::ffff:127.0.0.1]:{port}/")}),
    ] {
        let arguments = if arguments.get("host").is_some() {
            arguments
        } else {
            json!({"text": "x", "url": arguments["text"]})
        };
        denied(&session, "echo", &arguments);
    }
    let other = json!({"text": "x", "url": "http://127.0.0.1:1/"});
    assert_ne!(session.call("echo", &other)["isError"], true);
    // A policy that replaces another is as far out of reach.
    denied(&session, "write_file", &json!({"path": "policy.yaml", "content": "x"}));
}

#[test]
fn a_policy_that_changed_while_a_tool_ran_waits_for_the_operator() {
    let world = World::new();
    let named = |name: &str| {
        format!("hushspec: \"0.1.0\"\nname: {name}\nrules:\n  tool_access: {{block: [x-{name}]}}\n")
    };
    world.folder.write("policy.yaml", named("first"));
    fs::create_dir(world.folder.path("other")).unwrap();
    world.folder.write("other/policy.yaml", named("theirs"));
    let command = [mcp_fixture().to_str().unwrap(), "--also", "checkout"];
    let options = "--policy policy.yaml --anonymous default";
    let served = world.wrap_at("127.0.0.1:0", options, &command);
    let session = served.door.open();
    let says = |served: &Served, text: &str| {
        chio_testkit::process::until(text, || served.server.stderr().contains(text).then_some(()));
    };
    // A change while nothing runs is taken.
    world.folder.write("policy.yaml", named("second"));
    says(&served, "policy reloaded: second");
    let result = session.call("checkout", &json!({"branch": "other"}));
    assert_eq!(result["isError"], false, "{result}");
    assert_eq!(world.folder.read("policy.yaml"), named("theirs"));
    says(&served, "policy not reloaded, second");
    says(&served, "its files changed while a tool ran that may have done it");
    // Nor is a change on top of it, which has it in it.
    world.folder.write("policy.yaml", named("theirs-too"));
    chio_testkit::process::until("both to be told", || {
        let told = served.server.stderr().matches("policy not reloaded, second").count();
        (told == 2).then_some(())
    });
    assert!(!served.server.stderr().contains("reloaded: theirs"), "{}", served.server.stderr());
    served.server.signal("HUP");
    says(&served, "policy reloaded: theirs-too");
}
