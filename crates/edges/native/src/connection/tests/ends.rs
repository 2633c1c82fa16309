//! How connections end.

use chio_core::frame;
use chio_core::message::{AgentMessage, ToolCallResult};
use serde_json::json;
use tokio::io::AsyncWriteExt;

use super::ok;
use crate::connection::OnEof;
use crate::world::{Agent, World, eventually, options};

// covers: WIRE-009, WIRE-012, WIRE-014..WIRE-020, WIRE-087
#[tokio::test]
async fn what_is_no_frame_or_no_message_ends_the_connection_without_an_answer() {
    let framed = |payload: &[u8]| frame::encode_payload(payload).unwrap();
    let heartbeat = frame::encode(&AgentMessage::Heartbeat).unwrap();
    let cases: [(Vec<u8>, &str); 10] = [
        (vec![1, 0, 0, 1], "message_too_large"),
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "message_too_large"),
        (heartbeat[..3].to_vec(), "connection_closed: expected 1 more bytes"),
        (heartbeat[..4].to_vec(), "connection_closed: expected 20 more bytes"),
        (heartbeat[..10].to_vec(), "connection_closed: expected 14 more bytes"),
        (framed(b"garbage"), "no message of an agent: not JSON"),
        (framed(b""), "no message of an agent: not JSON"),
        (framed(b"[{\"type\":\"heartbeat\"}]"), "expected a JSON object, found an array"),
        (framed(b"{\"type\":\"capability_list\",\"capabilities\":[]}"), "no message of an agent"),
        (framed(b"{\"type\":\"tool_call_request\",\"id\":\"secret\"}"), "no message of an agent"),
    ];
    for (bytes, expected) in cases {
        let world = World::new().await;
        let mut agent = Agent::usual(&world);
        agent.send_bytes(&bytes).await;
        agent.stream.shutdown().await.unwrap();
        assert_eq!(agent.next().await, None, "{expected}");
        let error = agent.ended().await.unwrap_err();
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("secret"), "{error}");
        assert_eq!(world.begun().await, 0);
    }
}

#[tokio::test]
async fn calls_before_a_broken_frame_are_cancelled() {
    let world = World::new().await;
    let mut agent = Agent::usual(&world);
    agent.call("r", "wait", json!({})).await;
    agent.send_bytes(&[255; 4]).await;
    let result = agent.response().await.result;
    assert!(matches!(result, ToolCallResult::Cancelled { .. }), "{result:?}");
    assert_eq!(agent.next().await, None);
    assert!(agent.ended().await.is_err());
}

// covers: WIRE-036
#[tokio::test]
async fn a_client_that_goes_away_cancels_its_calls() {
    let world = World::new().await;
    let mut agent = Agent::usual(&world);
    for id in ["a", "b", "c"] {
        agent.call(id, "wait", json!({})).await;
    }
    eventually("three calls", async || world.tools.runs() == 3).await;
    let Agent { stream, served, .. } = agent;
    drop(stream);
    eventually("three cancels", async || world.cancelled().await == 3).await;
    assert!(served.await.unwrap().is_ok(), "going away between frames is no error");
}

#[tokio::test]
async fn going_away_is_noticed_at_the_limit_too() {
    let world = World::new().await;
    let mut options = options(None);
    options.limits.max_in_flight = 1;
    let mut agent = Agent::connect(&world, options, 64 * 1024);
    for id in ["a", "b", "c"] {
        agent.call(id, "wait", json!({})).await;
    }
    eventually("one call", async || world.tools.runs() == 1).await;
    drop(agent.stream);
    eventually("a cancel", async || world.cancelled().await == 1).await;
    eventually("its end", async || world.kernel.in_flight() == 0).await;
    assert_eq!(world.begun().await, 1);
}

#[tokio::test]
async fn an_input_that_may_end_is_answered_to_the_end() {
    let world = World::new().await;
    let mut options = options(None);
    options.on_eof = OnEof::Finish;
    options.limits.max_in_flight = 2;
    let mut agent = Agent::connect(&world, options, 64 * 1024);
    for number in 0..5 {
        agent.call(&number.to_string(), "wait", json!(number)).await;
    }
    agent.stream.shutdown().await.unwrap();
    world.tools.release(5);
    assert_eq!(agent.responses(5).await.len(), 5);
    assert_eq!(agent.next().await, None);
    assert_eq!(agent.ended().await, Ok(()));
    assert_eq!(world.cancelled().await, 0);
}

#[tokio::test]
async fn an_input_that_may_end_may_not_end_inside_a_frame() {
    let world = World::new().await;
    let mut options = options(None);
    options.on_eof = OnEof::Finish;
    let mut agent = Agent::connect(&world, options, 4096);
    agent.send_bytes(&[0, 0]).await;
    agent.stream.shutdown().await.unwrap();
    assert!(agent.ended().await.unwrap_err().contains("connection_closed"));
}

#[tokio::test]
async fn a_call_without_an_answer_ends_its_connection_and_no_other() {
    let world = World::new().await;
    let (mut one, mut other) = (Agent::usual(&world), Agent::usual(&world));
    one.call("r", "wait", json!({})).await;
    eventually("a call", async || world.tools.runs() == 1).await;
    world.recover().await;
    world.tools.release(1);
    assert_eq!(one.next().await, None, "nothing is released");
    assert!(one.ended().await.unwrap_err().contains("the kernel has no answer"));
    other.call("r", "echo", json!(1)).await;
    assert_eq!(other.responses(1).await, [("r".to_owned(), ok(json!(1)))]);
}

#[tokio::test]
async fn a_shutdown_answers_what_runs_and_reads_no_more() {
    let world = World::new().await;
    let mut agent = Agent::usual(&world);
    agent.call("r", "wait", json!(1)).await;
    eventually("a call", async || world.tools.runs() == 1).await;
    agent.shutdown.cancel();
    tokio::task::yield_now().await;
    world.tools.release(1);
    assert_eq!(agent.responses(1).await, [("r".to_owned(), ok(json!(1)))]);
    assert_eq!(agent.next().await, None);
    assert_eq!(agent.ended().await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_does_not_wait_for_a_reader_that_never_reads() {
    let world = World::new().await;
    let mut agent = Agent::connect(&world, options(None), 8192);
    agent.call("r", "echo", json!("x".repeat(5000))).await;
    agent.call("s", "echo", json!("x".repeat(5000))).await;
    eventually("two calls", async || world.tools.runs() == 2).await;
    agent.shutdown.cancel();
    assert!(agent.ended().await.unwrap_err().contains("takes nothing more"));
}

#[tokio::test]
async fn a_server_that_stops_serving_cancels_the_calls() {
    let world = World::new().await;
    let mut agent = Agent::usual(&world);
    agent.call("r", "wait", json!({})).await;
    eventually("a call", async || world.tools.runs() == 1).await;
    agent.served.abort();
    assert_eq!(agent.next().await, None);
    eventually("a cancel", async || world.cancelled().await == 1).await;
}
