//! Calls that wait for an approval, and what else their connection can do meanwhile.

use chio_core::frame;
use chio_core::message::{AgentMessage, KernelMessage, ToolCallResult};
use chio_testkit::kernel::store::ApprovalState;
use serde_json::json;

use super::ok;
use crate::parked::MAX_PARKED;
use crate::world::{Agent, World, options, request, token_of};

/// How many calls of one subject the inbox takes.
const MAX_OF_SUBJECT: usize = 64;

/// An agent that may have this many calls run at once, and has parked this many.
async fn parked(world: &World, max_in_flight: usize, calls: usize) -> Agent {
    let mut options = options(None);
    options.limits.max_in_flight = max_in_flight;
    let mut agent = Agent::connect(world, options, 64 * 1024);
    for number in 0..calls {
        let mut request = request(&format!("park-{number}"), "park", json!(number));
        let holder = 2 + u8::try_from(number / MAX_OF_SUBJECT).unwrap();
        request.capability_token = token_of(holder, &format!("cap-of-{holder}"));
        agent.send_call(request).await;
    }
    agent
}

#[tokio::test]
async fn parked_calls_take_no_place() {
    let world = World::new().await;
    let mut agent = parked(&world, 2, 2).await;
    agent.send(&AgentMessage::Heartbeat).await;
    assert_eq!(agent.next().await, Some(KernelMessage::Heartbeat));
    agent.call("run", "echo", json!(1)).await;
    assert_eq!(agent.responses(1).await, [("run".to_owned(), ok(json!(1)))]);
    // They are not forgotten.
    world.approve(2).await;
    world.tools.release(2);
    assert_eq!(agent.responses(2).await.len(), 2);
}

#[tokio::test]
async fn what_waits_for_a_place_is_begun_as_soon_as_a_call_parks() {
    let world = World::new().await;
    let mut agent = parked(&world, 1, 0).await;
    // They arrive at once: nothing but the call before it lets one of them begin.
    let mut bytes = Vec::new();
    for number in 0..20 {
        let request = request(&number.to_string(), "park", json!({}));
        bytes.extend(frame::encode(&AgentMessage::ToolCallRequest(Box::new(request))).unwrap());
    }
    agent.send_bytes(&bytes).await;
    world.check_begun(20, 0).await;
}

#[tokio::test]
async fn a_call_that_goes_on_takes_a_place_again() {
    let world = World::new().await;
    let mut agent = parked(&world, 1, 1).await;
    world.check_begun(1, 0).await;
    world.approve(1).await;
    world.check_begun(1, 1).await;
    agent.call("next", "echo", json!(2)).await;
    world.check_begun(1, 1).await;
    world.tools.release(1);
    let expected = [("park-0".to_owned(), ok(json!(0))), ("next".to_owned(), ok(json!(2)))];
    assert_eq!(agent.responses(2).await, expected);
}

#[tokio::test]
async fn parked_calls_beyond_their_bound_take_places() {
    let world = World::new().await;
    let mut agent = parked(&world, 2, MAX_PARKED + 2).await;
    agent.call("next", "echo", json!(1)).await;
    world.check_begun(MAX_PARKED + 2, 0).await;
    // One ends, and those beyond the bound are one fewer.
    world.approve(1).await;
    world.tools.release(1);
    let mut ids: Vec<_> = agent.responses(2).await.into_iter().map(|(id, _)| id).collect();
    ids.sort();
    assert_eq!(ids[0], "next");
}

#[tokio::test]
async fn the_messages_of_parked_calls_are_bounded_by_size() {
    let world = World::new().await;
    let text = json!("x".repeat(1000));
    let message = AgentMessage::ToolCallRequest(Box::new(request("0", "park", text.clone())));
    let weight = frame::encode(&message).unwrap().len() - frame::PREFIX_LEN;
    let mut options = options(None);
    options.limits.max_in_flight_bytes = 3 * weight;
    let mut agent = Agent::connect(&world, options, 64 * 1024);
    for number in 0..8 {
        agent.call(&number.to_string(), "park", text.clone()).await;
    }
    // Three take no room, and three take all of it.
    world.check_begun(6, 0).await;
    world.approve(2).await;
    world.tools.release(2);
    world.check_begun(8, 2).await;
    assert_eq!(agent.responses(2).await.len(), 2);
}

#[tokio::test]
async fn a_client_that_goes_away_cancels_its_parked_calls() {
    let world = World::new().await;
    let mut agent = parked(&world, 2, 5).await;
    world.check_begun(5, 0).await;
    agent.send_bytes(&[255; 4]).await;
    for (id, result) in agent.responses(5).await {
        assert!(matches!(result, ToolCallResult::Cancelled { .. }), "{id}: {result:?}");
    }
    assert_eq!(world.cancelled().await, 5);
    assert_eq!(world.inbox(Some(ApprovalState::Cancelled)).await.len(), 5);
    assert_eq!(agent.next().await, None);
}
