//! Standard input and output as the door.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use chio_core::message::KernelMessage;
use chio_testkit::process::{Server, Wire};
use chio_testkit::token::grant;
use serde_json::json;

use crate::support::{World, written};

/// A kernel that serves one end of a pair of sockets, and the other end.
fn serve(world: &World, options: &str) -> (Server, Wire) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let other = theirs.try_clone().unwrap();
    let mut words = vec!["native", "serve", "--stdio", "--data", "s"];
    words.extend(options.split_whitespace());
    let mut command = world.command(&words);
    command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::from(OwnedFd::from(other)));
    let server = Server::spawn(&mut command);
    // The kernel is known, and so is the store.
    let _ = server.kernel_key();
    (server, Wire::over(ours))
}

#[test]
fn answers_still_come_after_the_input_has_ended() {
    let world = World::new();
    let (mut server, mut wire) = serve(&world, "");
    let token = world.token("stdio-1", vec![grant("sleep"), grant("count_to"), grant("note_put")]);
    wire.send_call("slow", &token, "sleep", json!({"ms": 300}));
    wire.send_call("stream", &token, "count_to", json!({"n": 50}));
    wire.send_call("put", &token, "note_put", json!({"name": "n", "text": "x"}));
    wire.shut();
    let (mut answers, mut chunks) = (Vec::new(), 0);
    // Nothing but frames: whatever else stood there would be none.
    while let Some(message) = wire.message() {
        match message {
            KernelMessage::ToolCallResponse(response) => {
                assert_ne!(written(&response.result)["status"], "err");
                answers.push(response.id);
            }
            KernelMessage::ToolCallChunk { .. } => chunks += 1,
            other => panic!("{other:?}"),
        }
    }
    answers.sort();
    assert_eq!(answers, ["put", "slow", "stream"]);
    assert_eq!(chunks, 50);
    assert!(server.wait().success(), "{}", server.stderr());
    assert_eq!(world.receipts("stdio-1").len(), 3);
    let audit = world.audit();
    assert_eq!(audit["logs"][0]["pending"], 0);
}

#[test]
fn an_empty_input_ends_the_process_well() {
    let world = World::new();
    let (mut server, mut wire) = serve(&world, "");
    wire.shut();
    assert_eq!(wire.message(), None);
    assert!(server.wait().success(), "{}", server.stderr());
}

#[test]
fn garbage_on_standard_input_ends_the_process_without_an_answer() {
    let world = World::new();
    let (mut server, mut wire) = serve(&world, "");
    wire.send_payload(b"garbage");
    assert_eq!(wire.message(), None);
    server.wait();
    assert!(server.stderr().contains("no message of an agent"), "{}", server.stderr());
}

#[test]
fn a_reader_that_is_gone_ends_the_process_and_cancels_what_runs() {
    let world = World::new();
    let (mut server, mut wire) = serve(&world, "");
    let token = world.token("stdio-2", vec![grant("sleep"), grant("count_to")]);
    wire.send_call("1", &token, "sleep", json!({"ms": 60_000}));
    assert!(wire.is_alive());
    wire.send_call("2", &token, "count_to", json!({"n": 1000}));
    drop(wire);
    server.wait();
    assert_eq!(world.receipts("stdio-2").len(), 2);
    assert_eq!(world.rows("--outcome cancelled --tool sleep").len(), 1);
}

#[test]
fn the_peer_of_standard_input_can_be_named() {
    let world = World::new();
    let (_server, mut wire) = serve(&world, "--peer agent.key");
    let theirs = world.token_for(chio_testkit::key(8).public_key(), "x-1", vec![grant("echo")]);
    let response = wire.call("1", &theirs, "echo", json!({"text": "hi"}));
    assert_eq!(written(&response.result)["error"]["code"], "capability_denied");
}

#[test]
fn a_signal_ends_a_kernel_that_waits_for_input() {
    let world = World::new();
    let (mut server, mut wire) = serve(&world, "");
    assert!(wire.is_alive());
    server.end();
    assert_eq!(wire.message(), None);
}
