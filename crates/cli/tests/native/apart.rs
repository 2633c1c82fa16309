//! A data directory apart from the store: `--data` and `--store` together.

use chio_testkit::process::Server;
use chio_testkit::token::{self, grant};
use serde_json::json;

use crate::support::{World, agent, now, written};

const APART: &str = "--data a --store sqlite:b";

/// Serves the store `b` with the data directory `a`.
fn serve(world: &World, socket: &str) -> Server {
    let socket = world.folder.path(socket);
    let line = format!("native serve {APART} --unix {}", socket.display());
    Server::start(&mut world.command(&line.split(' ').collect::<Vec<_>>()))
}

#[test]
fn keys_are_in_one_folder_and_receipts_in_another_and_processes_share_both() {
    let world = World::new();
    let (mut first, mut second) = (serve(&world, "a.sock"), serve(&world, "b.sock"));
    assert_ne!(first.kernel_key(), second.kernel_key());
    let authority = world.folder.read_key("a/authority.key");
    let grants = vec![grant("note_put")];
    let token = token::token(&authority, agent().public_key(), "apart-1", grants, now());
    for server in [&first, &second] {
        let note = json!({"name": "n", "text": "x"});
        let response = server.connect().call("1", &token, "note_put", note);
        assert_eq!(written(&response.result)["status"], "ok");
    }
    let listed = world.line(&format!("receipt list {APART} --json")).ends(0).json();
    assert_eq!(listed["receipts"].as_array().unwrap().len(), 2);
    first.end();
    second.end();
    let audit = world.line(&format!("log audit {APART} --json")).ends(0).json();
    assert_eq!((&audit["valid"], &audit["receipts"]), (&json!(true), &json!(2)));
    for (name, is_there) in [
        ("a/authority.key", true),
        ("a/approver.key", true),
        ("a/kernels/1/key", true),
        ("a/notes", true),
        ("b/store.db", true),
        ("a/store.db", false),
        ("a/index.db", false),
        ("b/authority.key", false),
        ("b/kernels", false),
        ("b/notes", false),
    ] {
        assert_eq!(world.folder.path(name).exists(), is_there, "{name}");
    }
    // The authority signs where its key is; what is only read needs no key.
    let issue = "capability issue --subject agent.key --grant demo/echo --out token.json";
    world.line(&format!("{issue} {APART}")).ends(0);
    world.line(&format!("{issue} --store sqlite:b")).ends(2).complains("has no authority key");
    world.line("log audit --store sqlite:b").ends(0).says("clean");
    let third = serve(&world, "a.sock");
    assert_eq!(third.kernel_key(), first.kernel_key(), "it goes on in the first free slot");
}

#[test]
fn a_store_and_a_data_directory_that_do_not_belong_together_are_refused() {
    let world = World::new();
    let own = serve(&world, "a.sock");
    let authority = world.folder.read_key("a/authority.key").public_key().to_hex();
    world.serve_at("b.sock", "").end();
    for (options, words) in [
        // Its own kernel key, which no authority speaks for.
        ("--data c --store sqlite:b", format!("expected the authority key `{authority}`")),
        ("--data a --store sqlite:new", "there are keys of a store in".to_owned()),
        ("--data a", "there are keys of a store in".to_owned()),
        ("--data a --store sqlite:s", "expected the data directory of the store".to_owned()),
        ("--data s --store sqlite:b", "expected the data directory of the store".to_owned()),
    ] {
        let run = world.line(&format!("native serve {options} --unix c.sock")).ends(2);
        run.complains(&words);
    }
    let run =
        world.line("capability issue --data s --store sqlite:b --subject agent.key --grant a/b");
    run.ends(2).complains("expected the data directory of the store");
    for name in ["c/store.id", "a/store.db"] {
        assert!(!world.folder.path(name).exists(), "a refused start leaves no {name}");
    }
    assert!(own.connect().is_alive());
}

#[test]
fn a_store_in_memory_has_a_data_directory_for_sockets() {
    let world = World::new();
    world.folder.write("file", "");
    let refused = world.line("native serve --store memory: --data file --unix f.sock");
    refused.ends(2).complains("expected a folder");
    let socket = world.folder.path("m/m.sock").display().to_string();
    let words = ["native", "serve", "--store", "memory:", "--data", "m", "--unix", &socket];
    let server = Server::start(&mut world.command(&words));
    assert!(server.connect().is_alive());
    assert!(!world.folder.path("m/authority.key").exists());
}
