//! Connections, driven by an agent, in front of a kernel.

mod bounds;
mod ends;
mod parked;
mod revocation;

use chio_core::message::{AgentMessage, KernelMessage, ToolCallError, ToolCallResult};
use serde_json::{Map, json};

use crate::world::{Agent, World, options, request, subject, token, token_of};

fn ok(value: serde_json::Value) -> ToolCallResult {
    ToolCallResult::Ok { value }
}

// covers: WIRE-002, WIRE-024, WIRE-027, WIRE-029
#[tokio::test]
async fn calls_are_answered_by_id_as_they_end() {
    let world = World::new().await;
    let mut agent = Agent::usual(&world);
    agent.call("slow", "wait", json!({"a": 1})).await;
    agent.call("quick", "echo", json!([null])).await;
    let first = agent.response().await;
    assert_eq!((first.id.as_str(), first.result), ("quick", ok(json!([null]))));
    assert!(first.receipt.verify().is_ok());
    world.tools.release(1);
    assert_eq!(agent.responses(1).await, [("slow".to_owned(), ok(json!({"a": 1})))]);
}

// covers: WIRE-028, WIRE-035
#[tokio::test]
async fn chunks_come_in_order_and_before_the_response() {
    let mut agent = Agent::usual(&World::new().await);
    agent.call("r", "count", json!(3)).await;
    for index in 0..3 {
        let data = json!({"n": index, "padding": ""});
        let expected =
            KernelMessage::ToolCallChunk { id: "r".to_owned(), chunk_index: index, data };
        assert_eq!(agent.next().await, Some(expected));
    }
    let expected = ToolCallResult::StreamComplete { total_chunks: 3 };
    assert_eq!(agent.responses(1).await, [("r".to_owned(), expected)]);
}

// covers: WIRE-023, WIRE-032
#[tokio::test]
async fn a_heartbeat_is_answered_while_calls_run() {
    let mut agent = Agent::usual(&World::new().await);
    agent.call("slow", "wait", json!({})).await;
    agent.send(&AgentMessage::Heartbeat).await;
    assert_eq!(agent.next().await, Some(KernelMessage::Heartbeat));
}

// covers: WIRE-022, WIRE-030
#[tokio::test]
async fn capabilities_are_listed_for_a_known_peer_only() {
    let world = World::new().await;
    world.issue(&token("held")).await;
    for (peer, expected) in [(None, 0), (Some(subject(2)), 1), (Some(subject(3)), 0)] {
        let mut agent = Agent::connect(&world, options(peer), 4096);
        agent.send(&AgentMessage::ListCapabilities).await;
        let Some(KernelMessage::CapabilityList { capabilities }) = agent.next().await else {
            panic!("expected a list");
        };
        assert_eq!(capabilities.len(), expected);
    }
}

#[tokio::test]
async fn a_known_peer_calls_as_itself_and_others_as_their_tokens_subject() {
    let world = World::new().await;
    for (peer, holder, may) in [(None, 2, true), (Some(9), 9, true), (Some(9), 2, false)] {
        let mut agent = Agent::connect(&world, options(peer.map(subject)), 4096);
        let mut request = request("r", "echo", json!({}));
        request.capability_token = token_of(holder, &format!("cap-of-{holder}"));
        agent.send_call(request).await;
        let result = agent.response().await.result;
        if may {
            assert_eq!(result, ok(json!({})));
            continue;
        }
        let ToolCallResult::Err { error: ToolCallError::CapabilityDenied(reason) } = result else {
            panic!("expected a denial, found {result:?}");
        };
        assert!(reason.contains("expected the token's subject as caller"), "{reason}");
    }
}

#[tokio::test]
async fn an_id_that_is_in_use_is_denied_and_the_first_call_goes_on() {
    let world = World::new().await;
    let mut agent = Agent::usual(&world);
    agent.call("r", "wait", json!(1)).await;
    agent.call("r", "echo", json!(2)).await;
    let (_, ToolCallResult::Err { error: ToolCallError::PolicyDenied { guard, .. } }) =
        agent.responses(1).await.remove(0)
    else {
        panic!("expected a denial");
    };
    assert_eq!(guard, "native.request_id");
    // Still in use: the denial has not freed it.
    agent.call("r", "echo", json!(3)).await;
    assert!(matches!(agent.response().await.result, ToolCallResult::Err { .. }));
    world.tools.release(1);
    assert_eq!(agent.responses(1).await, [("r".to_owned(), ok(json!(1)))]);
    agent.call("r", "echo", json!(4)).await;
    assert_eq!(agent.responses(1).await, [("r".to_owned(), ok(json!(4)))]);
}

#[tokio::test]
async fn an_id_is_free_as_soon_as_its_answer_is_there() {
    let mut agent = Agent::usual(&World::new().await);
    for number in 0..500 {
        agent.call("r", "echo", json!(number)).await;
        assert_eq!(agent.responses(1).await, [("r".to_owned(), ok(json!(number)))]);
    }
}

#[tokio::test]
async fn approval_members_that_contradict_each_other_are_denied() {
    let mut agent = Agent::usual(&World::new().await);
    let mut request = request("r", "echo", json!({}));
    request.threshold_approval_proposal = Some(Map::new());
    agent.send_call(request).await;
    let ToolCallResult::Err { error: ToolCallError::PolicyDenied { guard, reason } } =
        agent.response().await.result
    else {
        panic!("expected a denial");
    };
    assert_eq!(guard, "session_authorization");
    assert!(reason.contains("`approval_tokens`"), "{reason}");
}
