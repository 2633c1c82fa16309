//! Calls that wait for an approval, and what else their connection can do meanwhile.

use std::sync::atomic::Ordering;
use std::time::Duration;

use chio_core::frame;
use chio_core::message::{AgentMessage, KernelMessage, ToolCallResult};
use serde_json::json;

use super::ok;
use crate::parked::MAX_PARKED;
use crate::script::{Agent, Script, eventually, options, request};

/// Checks that this many calls are begun, and no more.
async fn check_begun(road: &Script, calls: usize) {
    eventually("calls", || road.started.load(Ordering::SeqCst) >= calls).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(road.started.load(Ordering::SeqCst), calls);
}

/// An agent that may have this many calls run at once, and has parked this many.
async fn parked(road: &std::sync::Arc<Script>, max_in_flight: usize, calls: usize) -> Agent {
    let mut options = options(None);
    options.limits.max_in_flight = max_in_flight;
    let mut agent = Agent::connect(road, options, 64 * 1024);
    for number in 0..calls {
        agent.call(&format!("park-{number}"), "park", json!(number)).await;
    }
    agent
}

#[tokio::test]
async fn parked_calls_take_no_place() {
    let road = Script::new();
    let mut agent = parked(&road, 2, 2).await;
    agent.send(&AgentMessage::Heartbeat).await;
    assert_eq!(agent.next().await, Some(KernelMessage::Heartbeat));
    agent.call("run", "echo", json!(1)).await;
    assert_eq!(agent.responses(1).await, [("run".to_owned(), ok(json!(1)))]);
    // They are not forgotten.
    road.approve(2);
    road.release(2);
    assert_eq!(agent.responses(2).await.len(), 2);
}

#[tokio::test]
async fn what_waits_for_a_place_is_begun_as_soon_as_a_call_parks() {
    let road = Script::new();
    let mut agent = parked(&road, 1, 0).await;
    // They arrive at once: nothing but the call before it lets one of them begin.
    let mut bytes = Vec::new();
    for number in 0..20 {
        let request = request(&number.to_string(), "park", json!({}));
        bytes.extend(frame::encode(&AgentMessage::ToolCallRequest(Box::new(request))).unwrap());
    }
    agent.send_bytes(&bytes).await;
    check_begun(&road, 20).await;
}

#[tokio::test]
async fn a_call_that_goes_on_takes_a_place_again() {
    let road = Script::new();
    let mut agent = parked(&road, 1, 1).await;
    check_begun(&road, 1).await;
    road.approve(1);
    eventually("it to go on", || road.approved.load(Ordering::SeqCst) == 1).await;
    agent.call("next", "echo", json!(2)).await;
    check_begun(&road, 1).await;
    road.release(1);
    let expected = [("park-0".to_owned(), ok(json!(0))), ("next".to_owned(), ok(json!(2)))];
    assert_eq!(agent.responses(2).await, expected);
}

#[tokio::test]
async fn parked_calls_beyond_their_bound_take_places() {
    let road = Script::new();
    let mut agent = parked(&road, 2, MAX_PARKED + 2).await;
    agent.call("next", "echo", json!(1)).await;
    check_begun(&road, MAX_PARKED + 2).await;
    // One ends, and those beyond the bound are one fewer.
    road.approve(1);
    road.release(1);
    let mut ids: Vec<_> = agent.responses(2).await.into_iter().map(|(id, _)| id).collect();
    ids.sort();
    assert_eq!(ids[0], "next");
}

#[tokio::test]
async fn the_messages_of_parked_calls_are_bounded_by_size() {
    let road = Script::new();
    let text = json!("x".repeat(1000));
    let message = AgentMessage::ToolCallRequest(Box::new(request("0", "park", text.clone())));
    let weight = frame::encode(&message).unwrap().len() - frame::PREFIX_LEN;
    let mut options = options(None);
    options.limits.max_in_flight_bytes = 3 * weight;
    let mut agent = Agent::connect(&road, options, 64 * 1024);
    for number in 0..8 {
        agent.call(&number.to_string(), "park", text.clone()).await;
    }
    // Three take no room, and three take all of it.
    check_begun(&road, 6).await;
    road.approve(2);
    road.release(2);
    check_begun(&road, 8).await;
    assert_eq!(agent.responses(2).await.len(), 2);
}

#[tokio::test]
async fn whoever_goes_away_calls_off_parked_calls() {
    let road = Script::new();
    let mut agent = parked(&road, 2, 5).await;
    check_begun(&road, 5).await;
    agent.send_bytes(&[255; 4]).await;
    for (id, result) in agent.responses(5).await {
        assert!(matches!(result, ToolCallResult::Cancelled { .. }), "{id}: {result:?}");
    }
    assert_eq!(road.cancelled.load(Ordering::SeqCst), 5);
    assert_eq!(agent.next().await, None);
}
