//! What one connection cannot do: grow.

use std::time::Duration;

use chio_core::frame::{self, MAX_PAYLOAD};
use chio_core::message::{AgentMessage, KernelMessage, ToolCallError, ToolCallResult};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use crate::world::{Agent, World, eventually, options, request};

#[tokio::test]
async fn at_the_limit_nothing_more_is_read_until_a_call_ends() {
    let world = World::new().await;
    let mut options = options(None);
    options.limits.max_in_flight = 2;
    let mut agent = Agent::connect(&world, options, 1024);
    let mut bytes = Vec::new();
    for number in 0..200 {
        let request = request(&number.to_string(), "wait", json!("x".repeat(1000)));
        let message = AgentMessage::ToolCallRequest(Box::new(request));
        bytes.extend(frame::encode(&message).unwrap());
    }
    let blocked = timeout(Duration::from_millis(200), agent.stream.write_all(&bytes)).await;
    assert!(blocked.is_err(), "all {} bytes were taken", bytes.len());
    world.check_begun(0, 2).await;
    world.tools.release(1);
    world.check_begun(0, 3).await;
}

#[tokio::test]
async fn calls_in_flight_are_bounded_by_size_too() {
    let world = World::new().await;
    let mut options = options(None);
    options.limits.max_in_flight_bytes = 100;
    let mut agent = Agent::connect(&world, options, 64 * 1024);
    for id in ["a", "b", "c"] {
        agent.call(id, "wait", json!({})).await;
    }
    for calls in 1..=3 {
        world.check_begun(0, calls).await;
        world.tools.release(1);
    }
    assert_eq!(agent.responses(3).await.len(), 3);
}

#[tokio::test]
async fn a_slow_reader_holds_up_the_stream_and_loses_nothing() {
    let world = World::new().await;
    let mut options = options(None);
    options.limits.max_queued_bytes = 4096;
    let mut agent = Agent::connect(&world, options, 2048);
    agent.call("r", "count", json!(2000)).await;
    // The tool goes on until the queue is full, and then no further.
    eventually("a full queue", async || {
        let before = world.tools.chunks();
        tokio::time::sleep(Duration::from_millis(100)).await;
        before > 0 && before == world.tools.chunks()
    })
    .await;
    let waiting = world.tools.chunks();
    assert!(waiting < 200, "{waiting} chunks are somewhere");
    for index in 0..2000 {
        let Some(KernelMessage::ToolCallChunk { chunk_index, .. }) = agent.next().await else {
            panic!("expected a chunk");
        };
        assert_eq!(chunk_index, index);
    }
    agent.response().await;
}

#[tokio::test]
async fn heartbeats_that_nobody_reads_stop_being_read() {
    let world = World::new().await;
    let mut options = options(None);
    options.limits.max_queued_bytes = 1024;
    let mut agent = Agent::connect(&world, options, 1024);
    let heartbeats = frame::encode(&AgentMessage::Heartbeat).unwrap().repeat(20_000);
    let blocked = timeout(Duration::from_millis(300), agent.stream.write_all(&heartbeats)).await;
    assert!(blocked.is_err());
}

// covers: WIRE-008
#[tokio::test]
async fn a_result_that_fits_no_frame_is_told_of_and_keeps_its_receipt() {
    let mut agent = Agent::usual(&World::new().await);
    agent.call("r", "large", json!({})).await;
    let response = agent.response().await;
    let ToolCallResult::Err { error: ToolCallError::InternalError(detail) } = response.result
    else {
        panic!("expected an error");
    };
    assert!(detail.contains(&MAX_PAYLOAD.to_string()), "{detail}");
    assert!(response.receipt.verify().is_ok());
}

#[tokio::test]
async fn a_chunk_that_fits_no_frame_ends_the_stream() {
    let world = World::new().await;
    let mut agent = Agent::usual(&world);
    agent.call("r", "burst", json!({})).await;
    let result = agent.response().await.result;
    assert!(matches!(result, ToolCallResult::Cancelled { chunks_received: 0, .. }), "{result:?}");
    assert_eq!(world.tools.chunks(), 0);
}

// covers: WIRE-007
#[tokio::test]
async fn the_largest_message_is_taken() {
    let mut agent = Agent::usual(&World::new().await);
    let mut request = request("r", "count", json!(0));
    let bare = frame::encode(&AgentMessage::ToolCallRequest(Box::new(request.clone()))).unwrap();
    let padding = MAX_PAYLOAD - (bare.len() - frame::PREFIX_LEN);
    request.server_id.push_str(&"x".repeat(padding));
    agent.send_call(request).await;
    assert_eq!(agent.response().await.id, "r");
    agent.send(&AgentMessage::Heartbeat).await;
    assert_eq!(agent.next().await, Some(KernelMessage::Heartbeat));
}
