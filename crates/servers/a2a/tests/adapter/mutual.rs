//! TLS: authorities of our own, and certificates of ours.

use serde_json::json;

use crate::agent::{RPC, card, model, with};
use crate::server::{Reply, Seen, Server};
use crate::support::{World, config};
use crate::tls::Authority;

/// An agent that declares mutual TLS, if told.
fn agent(seen: &Seen, declares: bool) -> Reply {
    if !seen.is_card() || !declares {
        return model(seen, RPC);
    }
    let scheme = json!({"cert": {"mtlsSecurityScheme": {}}});
    let card = with(card(&seen.base, RPC), "/securitySchemes", scheme);
    Reply::json(&with(card, "/securityRequirements", json!([{"schemes": {"cert": {}}}])))
}

// covers: A2A-036
#[tokio::test]
async fn an_agent_of_our_own_authority_is_believed_and_no_other() {
    let (ca, other) = (Authority::new(), Authority::new());
    let server = Server::start_with(Some(ca.acceptor(None)), |seen| agent(seen, false)).await;
    let world = World::new(config(&server).with_tls_root_ca_pem(ca.pem())).await;
    crate::support::begin(&world).await;
    for config in [config(&server), config(&server).with_tls_root_ca_pem(other.pem())] {
        let error = World::try_new(config).await.map(drop).unwrap_err().to_string();
        assert!(error.starts_with("remote request failed: the agent card: no TLS"), "{error}");
    }
    let both = config(&server).with_tls_root_ca_pem(other.pem()).with_tls_root_ca_pem(ca.pem());
    World::new(both).await;
}

// covers: A2A-024, A2A-036
#[tokio::test]
async fn our_certificate_is_shown_where_the_card_asks_for_it() {
    let (servers, clients) = (Authority::new(), Authority::new());
    let acceptor = servers.acceptor(Some(&clients));
    let server = Server::start_with(Some(acceptor), |seen| agent(seen, true)).await;
    let (chain, key) = clients.client();
    let config =
        config(&server).with_tls_root_ca_pem(servers.pem()).with_mtls_client_auth_pem(chain, key);
    let world = World::new(config).await;
    crate::support::begin(&world).await;
    let done = world.run("research", json!({"message": "x", "stream": true})).await;
    assert_eq!(done.chunks.len(), 2);
    assert_eq!(server.calls().len(), 2);
}

#[tokio::test]
async fn a_certificate_of_somebody_else_or_none_opens_nothing() {
    let (servers, clients, others) = (Authority::new(), Authority::new(), Authority::new());
    let acceptor = servers.acceptor(Some(&clients));
    let server = Server::start_with(Some(acceptor), |seen| agent(seen, true)).await;
    let trusting = || config(&server).with_tls_root_ca_pem(servers.pem());
    let (chain, key) = others.client();
    for config in [trusting(), trusting().with_mtls_client_auth_pem(chain, key)] {
        let error = World::try_new(config).await.map(drop).unwrap_err().to_string();
        assert!(error.contains("the agent card"), "{error}");
    }
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn a_card_that_asks_for_a_certificate_that_we_lack_is_not_called() {
    let ca = Authority::new();
    let server = Server::start_with(Some(ca.acceptor(None)), |seen| agent(seen, true)).await;
    let world = World::new(config(&server).with_tls_root_ca_pem(ca.pem())).await;
    let failure = world.failure(json!({"message": "x"})).await;
    assert!(failure.contains("scheme `cert`: expected a client certificate"), "{failure}");
    assert!(server.calls().is_empty());
}

#[tokio::test]
async fn a_certificate_that_no_card_asks_for_is_not_shown_with_calls() {
    let (servers, clients) = (Authority::new(), Authority::new());
    let acceptor = servers.acceptor(Some(&clients));
    let server = Server::start_with(Some(acceptor), |seen| agent(seen, false)).await;
    let (chain, key) = clients.client();
    let config =
        config(&server).with_tls_root_ca_pem(servers.pem()).with_mtls_client_auth_pem(chain, key);
    // The card comes before anything can be declared, so there it is shown.
    let world = World::new(config).await;
    let failure = world.failure(json!({"message": "x"})).await;
    assert!(failure.starts_with("remote request failed"), "{failure}");
    assert!(server.calls().is_empty());
}

#[tokio::test]
async fn material_that_cannot_be_used_is_refused_before_anything_is_sent() {
    let ca = Authority::new();
    let server = Server::start(|seen| agent(seen, false)).await;
    let (chain, _) = ca.client();
    let (_, other_key) = ca.client();
    for (config, expected) in [
        (config(&server).with_tls_root_ca_pem("hunter2"), "the root authorities"),
        (config(&server).with_mtls_client_auth_pem("hunter2", "hunter2"), "the client identity"),
        (config(&server).with_mtls_client_auth_pem(chain, other_key), "the TLS material"),
    ] {
        let error = World::try_new(config).await.map(drop).unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains("hunter2"), "{error}");
    }
    assert!(server.seen().is_empty());
}
