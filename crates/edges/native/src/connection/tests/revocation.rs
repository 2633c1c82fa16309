//! Which revocations an agent is told of.

use std::sync::Arc;

use chio_core::capability::CapabilityToken;
use chio_core::message::{AgentMessage, KernelMessage};
use serde_json::json;

use crate::script::{Agent, FORGED, Script, key, options, request, token};

async fn present(agent: &mut Agent, token: CapabilityToken) {
    let mut request = request(&token.id.clone(), "echo", json!({}));
    request.capability_token = token;
    agent.send(&AgentMessage::ToolCallRequest(Box::new(request))).await;
    agent.response().await;
}

/// The ids that are announced before the agent's next sign of life is answered.
async fn announced(agent: &mut Agent) -> Vec<String> {
    let mut ids = Vec::new();
    // Two rounds: the first makes sure that the revocations were seen.
    for _ in 0..2 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        agent.send(&AgentMessage::Heartbeat).await;
        loop {
            match agent.next().await {
                Some(KernelMessage::CapabilityRevoked { id }) => ids.push(id),
                Some(KernelMessage::Heartbeat) => break,
                other => panic!("unexpected {other:?}"),
            }
        }
    }
    ids.sort();
    ids
}

// covers: WIRE-031
#[tokio::test]
async fn revoked_tokens_that_were_presented_are_announced_once() {
    let road = Script::new();
    let mut agent = Agent::usual(&road);
    present(&mut agent, token("root", &[])).await;
    present(&mut agent, token("child", &["root"])).await;
    present(&mut agent, token("other", &[])).await;
    road.revoke("stranger");
    assert_eq!(announced(&mut agent).await, [""; 0]);
    road.revoke("root");
    assert_eq!(announced(&mut agent).await, ["child", "root"]);
    road.revoke("root");
    road.revoke("child");
    present(&mut agent, token("root", &[])).await;
    assert_eq!(announced(&mut agent).await, [""; 0]);
}

#[tokio::test]
async fn a_token_that_was_never_verified_is_not_announced() {
    let road = Script::new();
    let mut agent = Agent::usual(&road);
    present(&mut agent, token(FORGED, &[])).await;
    road.revoke(FORGED);
    assert_eq!(announced(&mut agent).await, [""; 0]);
}

#[tokio::test]
async fn a_token_is_announced_while_its_call_still_runs() {
    let road = Script::new();
    let mut agent = Agent::usual(&road);
    agent.call("r", "wait", json!({})).await;
    assert_eq!(announced(&mut agent).await, [""; 0]);
    road.revoke("cap-1");
    assert_eq!(announced(&mut agent).await, ["cap-1"]);
}

#[tokio::test]
async fn tokens_that_a_known_peer_holds_are_announced() {
    let road = Script::new();
    *road.held.lock().unwrap() = vec![token("held", &["root"])];
    let mut known = Agent::connect(&road, options(Some(key(2))), 4096);
    let mut unknown = Agent::usual(&road);
    assert_eq!(announced(&mut known).await, [""; 0]);
    road.revoke("root");
    assert_eq!(announced(&mut known).await, ["held"]);
    assert_eq!(announced(&mut unknown).await, [""; 0]);
}

#[tokio::test]
async fn tokens_that_were_listed_are_announced() {
    let road = Script::new();
    let mut agent = Agent::connect(&road, options(Some(key(2))), 4096);
    assert_eq!(announced(&mut agent).await, [""; 0]);
    *road.held.lock().unwrap() = vec![token("later", &[])];
    agent.send(&AgentMessage::ListCapabilities).await;
    agent.next().await;
    assert_eq!(announced(&mut agent).await, [""; 0]);
    road.revoke("later");
    assert_eq!(announced(&mut agent).await, ["later"]);
}

#[tokio::test]
async fn more_revocations_than_are_kept_lose_none_that_matter() {
    let road: Arc<Script> = Script::new();
    let mut agent = Agent::usual(&road);
    present(&mut agent, token("mine", &[])).await;
    road.revoke("mine");
    // Without a pause, so that the connection cannot look in between.
    for number in 0..100 {
        road.revoke(&number.to_string());
    }
    assert_eq!(announced(&mut agent).await, ["mine"]);
}
