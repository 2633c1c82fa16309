//! Which revocations an agent is told of.

use chio_core::capability::CapabilityToken;
use chio_core::message::{AgentMessage, KernelMessage};
use serde_json::json;
use tokio::sync::broadcast::error::TryRecvError;

use crate::world::{Agent, NOW, World, child, eventually, options, request, subject, token};

async fn present(agent: &mut Agent, token: CapabilityToken) {
    let mut request = request(&token.id.clone(), "echo", json!({}));
    request.capability_token = token;
    agent.send_call(request).await;
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
    let world = World::new().await;
    let mut agent = Agent::usual(&world);
    present(&mut agent, token("root")).await;
    present(&mut agent, child("child", &token("root"))).await;
    present(&mut agent, token("other")).await;
    world.revoke("stranger").await;
    assert_eq!(announced(&mut agent).await, [""; 0]);
    world.revoke("root").await;
    assert_eq!(announced(&mut agent).await, ["child", "root"]);
    world.revoke("root").await;
    world.revoke("child").await;
    present(&mut agent, token("root")).await;
    assert_eq!(announced(&mut agent).await, [""; 0]);
}

#[tokio::test]
async fn a_token_that_was_never_verified_is_not_announced() {
    let world = World::new().await;
    let mut agent = Agent::usual(&world);
    let forged = CapabilityToken { expires_at: NOW + 1, ..token("forged") };
    present(&mut agent, forged).await;
    world.revoke("forged").await;
    assert_eq!(announced(&mut agent).await, [""; 0]);
}

#[tokio::test]
async fn a_token_is_announced_while_its_call_still_runs() {
    let world = World::new().await;
    let mut agent = Agent::usual(&world);
    agent.call("r", "wait", json!({})).await;
    eventually("a call", async || world.tools.runs() == 1).await;
    assert_eq!(announced(&mut agent).await, [""; 0]);
    world.revoke("cap-1").await;
    assert_eq!(announced(&mut agent).await, ["cap-1"]);
}

#[tokio::test]
async fn tokens_that_a_known_peer_holds_are_announced() {
    let world = World::new().await;
    let held = child("held", &token("root"));
    world.issue(&held).await;
    let mut known = Agent::connect(&world, options(Some(subject(2))), 4096);
    let mut unknown = Agent::usual(&world);
    assert_eq!(announced(&mut known).await, [""; 0]);
    world.revoke("root").await;
    assert_eq!(announced(&mut known).await, ["held"]);
    assert_eq!(announced(&mut unknown).await, [""; 0]);
}

#[tokio::test]
async fn tokens_that_were_listed_are_announced() {
    let world = World::new().await;
    let mut agent = Agent::connect(&world, options(Some(subject(2))), 4096);
    assert_eq!(announced(&mut agent).await, [""; 0]);
    world.issue(&token("later")).await;
    agent.send(&AgentMessage::ListCapabilities).await;
    agent.next().await;
    assert_eq!(announced(&mut agent).await, [""; 0]);
    world.revoke("later").await;
    assert_eq!(announced(&mut agent).await, ["later"]);
}

#[tokio::test]
async fn more_revocations_than_are_kept_lose_none_that_matter() {
    let world = World::new().await;
    let mut agent = Agent::usual(&world);
    present(&mut agent, token("mine")).await;
    let mut news = world.kernel.revocations();
    // All at once: this store never yields, so the connection's receiver lags like this one.
    assert!(world.kernel.store().revoke("mine", NOW).await.unwrap());
    for number in 0..2000 {
        assert!(world.kernel.store().revoke(&number.to_string(), NOW).await.unwrap());
    }
    world.revoke("last").await;
    assert!(matches!(news.try_recv(), Err(TryRecvError::Lagged(_))));
    assert_eq!(announced(&mut agent).await, ["mine"]);
}
