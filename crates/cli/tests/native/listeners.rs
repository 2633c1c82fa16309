//! Where a kernel may listen, with which key, on which store.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

use chio_testkit::key;
use chio_testkit::process::Server;
use chio_testkit::token::{grant, token};
use serde_json::json;

use crate::support::{World, agent, now, written};

#[test]
fn an_address_that_others_can_reach_is_refused() {
    let world = World::new();
    for address in ["0.0.0.0:0", "192.0.2.1:9000", "[::]:0", "[2001:db8::1]:9000"] {
        let run = world.run(&["native", "serve", "--data", "s", "--tcp", address]);
        assert!(run.code == 1 || run.code == 2, "{run:#?}");
        run.complains("expected a loopback address").complains(address.trim_end_matches(":0"));
    }
    assert!(!world.folder.path("s").exists(), "nothing was begun");
}

#[test]
fn port_0_takes_a_free_port_and_says_which() {
    let world = World::new();
    let mut servers = Vec::new();
    for address in ["127.0.0.1:0", "127.0.0.1:0", "[::1]:0"] {
        let words = ["native", "serve", "--store", "memory:", "--tcp", address];
        // A machine without IPv6 cannot serve it.
        if address.contains("::1") && std::net::TcpListener::bind(address).is_err() {
            continue;
        }
        servers.push(Server::start(&mut world.command(&words)));
    }
    let mut endpoints: Vec<_> = servers.iter().map(Server::endpoint).collect();
    for server in &servers {
        assert!(server.connect().is_alive());
    }
    assert!(endpoints.iter().all(|endpoint| !endpoint.ends_with(":0")), "{endpoints:?}");
    endpoints.sort();
    endpoints.dedup();
    assert_eq!(endpoints.len(), servers.len());

    let taken = endpoints[0].strip_prefix("tcp:").unwrap();
    let run = world.run(&["native", "serve", "--store", "memory:", "--tcp", taken]).ends(2);
    run.complains("in use");
}

#[test]
fn calls_go_over_tcp_too() {
    let world = World::new();
    let words = ["native", "serve", "--data", "s", "--tcp", "127.0.0.1:0"];
    let server = Server::start(&mut world.command(&words));
    let token = world.token("tcp-1", vec![grant("echo"), grant("count_to")]);
    let response = server.connect().call("1", &token, "echo", json!({"text": "hi"}));
    assert_eq!(written(&response.result)["status"], "ok");
    world.check_receipt(&response);
    world.write_token("t.json", &token);
    let endpoint = server.endpoint();
    let address = endpoint.strip_prefix("tcp:").unwrap();
    let call = ["native", "call", "--tcp", address, "--token", "t.json", "demo", "count_to"];
    let run = world.run(&[&call[..], &[r#"{"n": 1}"#]].concat()).ends(0);
    assert_eq!(run.stdout, "{\"n\":1}\n");
}

#[test]
fn a_stale_socket_is_replaced_and_a_live_one_is_left_alone() {
    let world = World::new();
    let socket = world.folder.path("a.sock");
    // No process listens any more, but the file is still there.
    drop(UnixListener::bind(&socket).unwrap());
    let server = world.serve("");
    assert!(server.connect().is_alive());
    let mode = socket.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let words = ["native", "serve", "--data", "other", "--unix", socket.to_str().unwrap()];
    let run = world.run(&words).ends(2);
    run.complains("another process already answers on the socket").complains("a.sock");
    assert!(server.connect().is_alive());
}

#[test]
fn a_socket_is_gone_after_its_server_and_taken_over_after_a_crash() {
    let world = World::new();
    let socket = world.folder.path("a.sock");
    let mut server = world.serve("");
    server.kill();
    assert!(socket.exists(), "a crash leaves it behind");
    let mut server = world.serve("");
    assert!(server.connect().is_alive());
    server.end();
    assert!(!socket.exists());
}

#[test]
fn a_file_that_is_no_socket_is_left_alone() {
    let world = World::new();
    world.folder.write("a.sock", "precious");
    let socket = world.folder.path("a.sock");
    let words = ["native", "serve", "--data", "s", "--unix", socket.to_str().unwrap()];
    world.run(&words).ends(2).complains("expected a socket or nothing at");
    assert_eq!(world.folder.read("a.sock"), "precious");
    let words = ["native", "serve", "--data", "s", "--unix", "missing/a.sock"];
    world.run(&words).ends(2);
}

#[test]
fn a_memory_store_leaves_nothing_behind() {
    let world = World::new();
    let issuer = key(5);
    world.folder.write_key("issuer.key", &issuer);
    let socket = world.folder.path("m.sock");
    let words = ["native", "serve", "--store", "memory:", "--trusted-issuer", "issuer.key"];
    let words = [&words[..], &["--unix", socket.to_str().unwrap()]].concat();
    let mut server = Server::start(&mut world.command(&words));
    let subject = agent();
    let token = token(&issuer, subject.public_key(), "memory-1", vec![grant("note_put")], now());
    let note = json!({"name": "n", "text": "x"});
    let response = server.connect().call("1", &token, "note_put", note);
    assert_eq!(written(&response.result)["value"]["puts"], 1);
    response.receipt.verify().unwrap();
    server.end();
    let mut left: Vec<_> = std::fs::read_dir(world.folder.root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["agent.key", "issuer.key"]);
}

#[test]
fn another_issuer_is_trusted_when_named() {
    let world = World::new();
    let issuer = key(5);
    let server = world.serve(&format!("--trusted-issuer {}", issuer.public_key()));
    let subject = agent();
    let theirs = token(&issuer, subject.public_key(), "other-1", vec![grant("echo")], now());
    let own = world.token("own-1", vec![grant("echo")]);
    let stranger = token(&key(6), subject.public_key(), "stranger-1", vec![grant("echo")], now());
    let mut wire = server.connect();
    for (token, status) in [(&theirs, "ok"), (&own, "ok"), (&stranger, "err")] {
        let response = wire.call("1", token, "echo", json!({"text": "hi"}));
        assert_eq!(written(&response.result)["status"], status, "{}", token.id);
    }
}

#[test]
fn receipts_are_signed_with_the_key_that_is_given_and_nobody_else_uses_it_meanwhile() {
    let world = World::new();
    let kernel = key(3);
    world.folder.write_key("kernel.key", &kernel);
    let mut server = world.serve("--kernel-key kernel.key");
    assert_eq!(server.kernel_key(), kernel.public_key().to_hex());
    let token = world.token("key-1", vec![grant("echo")]);
    let response = server.connect().call("1", &token, "echo", json!({"text": "hi"}));
    assert_eq!(response.receipt.kernel_key, *kernel.public_key());
    world.check_receipt(&response);

    let socket = world.folder.path("b.sock");
    let second = ["native", "serve", "--data", "s", "--kernel-key", "kernel.key", "--unix"];
    let second = [&second[..], &[socket.to_str().unwrap()]].concat();
    let run = world.run(&second);
    assert!(run.code == 1 || run.code == 2, "{run:#?}");
    assert!(run.stderr.contains("kernel") || run.stderr.contains("key"), "{run:#?}");
    assert!(!socket.exists());

    server.end();
    let server = Server::start(&mut world.command(&second));
    let response = server.connect().call("2", &token, "echo", json!({"text": "hi"}));
    assert_eq!(response.receipt.kernel_key, *kernel.public_key());
    let audit = world.audit();
    assert_eq!(audit["logs"].as_array().unwrap().len(), 1, "one key, one log");
    assert_eq!(audit["receipts"], 2);
    let kept = std::fs::read_dir(world.folder.path("s/kernels/0")).unwrap();
    for file in kept.map(|entry| entry.unwrap().path()) {
        let content = std::fs::read_to_string(&file).unwrap();
        assert!(!content.contains(&*kernel.seed_hex()), "the secret stays where it was");
    }
}

#[test]
fn a_restart_goes_on_with_the_same_kernel_and_log() {
    let world = World::new();
    let mut keys = Vec::new();
    for turn in ["1", "2", "3"] {
        let mut server = world.serve("");
        keys.push(server.kernel_key());
        let token = world.token(&format!("turn-{turn}"), vec![grant("echo")]);
        server.connect().call(turn, &token, "echo", json!({"text": "hi"}));
        server.end();
    }
    keys.dedup();
    assert_eq!(keys.len(), 1);
    let audit = world.audit();
    assert_eq!((&audit["receipts"], &audit["checkpoints"]), (&json!(3), &json!(3)));
    assert_eq!(audit["logs"][0]["pending"], 0);
}

#[test]
fn the_client_says_clearly_that_nobody_is_there() {
    let world = World::new();
    let run = world.line("native list").ends(2);
    run.complains("no kernel runs here: start one with `chio up`");
    let run = world.line("native list --unix nobody.sock").ends(2);
    run.complains("cannot connect to `unix:").complains("nobody.sock");
}

#[test]
fn what_is_no_store_is_refused_and_left_as_it_was() {
    let world = World::new();
    world.folder.write("file", "precious");
    let run = world.line("native serve --unix a.sock --data file").ends(2);
    run.complains("expected a folder for the store");
    std::fs::create_dir(world.folder.path("s")).unwrap();
    let foreign = rusqlite::Connection::open(world.folder.path("s/store.db")).unwrap();
    foreign.execute_batch("CREATE TABLE precious(x); INSERT INTO precious VALUES (1);").unwrap();
    drop(foreign);
    let before = std::fs::read(world.folder.path("s/store.db")).unwrap();
    let run = world.line("native serve --unix a.sock --data s").ends(2);
    assert!(run.stderr.contains("store.db") || run.stderr.contains("database"), "{run:#?}");
    assert_eq!(std::fs::read(world.folder.path("s/store.db")).unwrap(), before);
    world.folder.write("s/store.db", "this is no database at all, whatever its name says");
    let run = world.line("native serve --unix a.sock --data s").ends(2);
    assert!(!run.stderr.contains("panicked"), "{run:#?}");
    assert!(!world.folder.path("a.sock").exists());
}

#[test]
fn a_socket_path_that_nobody_could_connect_to_is_refused() {
    let world = World::new();
    let name = "x".repeat(120);
    let run = world.run(&["native", "serve", "--data", "s", "--unix", &name]).ends(2);
    run.complains("shorter");
}
