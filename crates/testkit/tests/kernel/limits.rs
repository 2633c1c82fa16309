//! Limits of one connection: calls at once, their bytes, and answers that the client does not read.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use chio_core::frame;
use chio_core::message::{AgentMessage, KernelMessage};
use chio_testkit::process::{request, until};
use serde_json::json;

use crate::support::{World, ending, written};

#[test]
fn with_one_place_calls_run_one_after_the_other() {
    let world = World::new("--max-in-flight 1");
    let token = world.token("queue-1");
    let mut wire = world.connect();
    for number in 0..5 {
        // The first are the slowest.
        let ms = 100 - number * 20;
        wire.send_call(&number.to_string(), &token, "sleep", json!({"ms": ms}));
    }
    let order: Vec<_> = (0..5).map(|_| wire.response().id).collect();
    assert_eq!(order, ["0", "1", "2", "3", "4"]);
    assert!(wire.is_alive());
    assert_eq!(world.receipts("queue-1").len(), 5);
}

#[test]
fn a_connection_that_is_full_is_still_noticed_when_it_ends() {
    let world = World::new("--max-in-flight 1");
    let token = world.token("full-1");
    let mut wire = world.connect();
    for number in 0..3 {
        wire.send_call(&number.to_string(), &token, "test/hang", json!({}));
    }
    drop(wire);
    // The one that had begun is cancelled; those that were never begun leave nothing.
    until("a receipt", || (world.receipts("full-1").len() == 1).then_some(()));
    world.end();
}

#[test]
fn large_calls_wait_for_one_another_and_one_always_runs() {
    let world = World::new("--max-in-flight-bytes 1000");
    let token = world.token("large-1");
    let mut wire = world.connect();
    for number in 0..4 {
        let ms = 80 - number * 20;
        wire.send_call(&number.to_string(), &token, "sleep", json!({"ms": ms}));
    }
    let order: Vec<_> = (0..4).map(|_| wire.response().id).collect();
    // Each message is more than half of the limit, so that at most two run at once.
    assert_ne!(order[0], "3");
    assert_eq!(order.len(), 4);
}

#[test]
fn answers_wait_for_a_slow_reader_in_little_memory() {
    let world = World::new("--max-queued-bytes 1000 --max-in-flight 4");
    let token = world.token("slow-1");
    let mut wire = world.connect();
    let params = json!({"n": 300, "bytes": 10_000});
    wire.send_call("1", &token, "test/stream", params);
    // Three megabytes fit nowhere: the tool waits until the client reads.
    std::thread::sleep(Duration::from_millis(200));
    assert!(world.receipts("slow-1").is_empty());
    assert!(world.connect().is_alive());
    let (chunks, response) = ending(&mut wire);
    assert_eq!(chunks.len(), 300);
    assert_eq!(written(&response.result)["status"], "stream_complete");
    assert_eq!(world.receipts("slow-1").len(), 1);
    world.end();
}

#[test]
fn a_reader_that_never_reads_is_let_go_and_its_call_is_cancelled() {
    let world = World::new("--max-queued-bytes 1000 --linger-ms 100");
    let token = world.token("never-1");
    let endpoint = world.server.endpoint();
    let mut deaf = UnixStream::connect(endpoint.strip_prefix("unix:").unwrap()).unwrap();
    let call = request("1", &token, "test/stream", json!({"n": 300, "bytes": 10_000}));
    let message = AgentMessage::ToolCallRequest(Box::new(call));
    deaf.write_all(&frame::encode(&message).unwrap()).unwrap();
    deaf.shutdown(std::net::Shutdown::Write).unwrap();
    until("a receipt", || (world.receipts("never-1").len() == 1).then_some(()));
    let decision = serde_json::to_value(&world.receipts("never-1")[0].decision).unwrap();
    assert_eq!(decision["verdict"], "cancelled");
    assert!(world.connect().is_alive());
    drop(deaf);
    world.end();
}

#[test]
fn more_connections_than_allowed_wait_their_turn() {
    let world = World::new("--max-connections 2");
    let (mut one, mut two) = (world.connect(), world.connect());
    assert!(one.is_alive() && two.is_alive());
    let mut three = world.connect();
    three.send(&AgentMessage::Heartbeat);
    assert!(two.is_alive());
    drop(one);
    assert_eq!(three.message(), Some(KernelMessage::Heartbeat));
}

#[test]
fn a_deaf_reader_does_not_keep_a_kernel_from_ending() {
    let mut world = World::new("--max-queued-bytes 1000 --linger-ms 100 --patience-ms 100");
    let token = world.token("deaf-1");
    let mut wire = world.connect();
    wire.send_call("1", &token, "test/stream", json!({"n": 300, "bytes": 10_000}));
    assert!(matches!(wire.message(), Some(KernelMessage::ToolCallChunk { .. })));
    world.server.signal("TERM");
    world.server.wait();
    assert_eq!(world.receipts("deaf-1").len(), 1);
}
