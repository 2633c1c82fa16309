//! Revocations by another process, and the list of what is valid.

use std::time::{Duration, Instant};

use chio_core::capability::Validity;
use chio_core::message::{AgentMessage, KernelMessage};
use chio_native_edge::NativeClient;
use chio_testkit::key;
use chio_testkit::process::{Wire, request};
use chio_testkit::token::{child, grant, token_at};
use serde_json::json;

use crate::support::{World, agent, block_on, now, reason, written};

fn listed(wire: &mut Wire) -> Vec<String> {
    wire.send(&AgentMessage::ListCapabilities);
    match wire.message() {
        Some(KernelMessage::CapabilityList { capabilities }) => {
            let mut ids: Vec<_> = capabilities.into_iter().map(|token| token.id).collect();
            ids.sort();
            ids
        }
        other => panic!("{other:?}"),
    }
}

// covers: WIRE-031, WIRE-042
#[test]
fn a_revocation_by_another_process_is_told_once_and_enforced_within_a_second() {
    let (world, server) = World::served();
    let token = world.token("revoked-1", vec![grant("echo")]);
    let (mut wire, mut bystander) = (server.connect(), server.connect());
    let hi = || json!({"text": "hi"});
    assert_eq!(written(&wire.call("1", &token, "echo", hi()).result)["status"], "ok");

    let revoked = world.line("capability revoke revoked-1 --data s --json").ends(0).json();
    let expected = json!({"capabilityId": "revoked-1", "revoked": true, "newlyRevoked": true});
    assert_eq!(revoked, expected);
    let start = Instant::now();
    let told = wire.message();
    assert_eq!(told, Some(KernelMessage::CapabilityRevoked { id: "revoked-1".to_owned() }));
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());

    let response = wire.call("2", &token, "echo", hi());
    let error = json!({"status": "err", "error": {"code": "capability_revoked"}});
    assert_eq!(written(&response.result), error);
    assert_eq!(reason(&response.receipt), "capability `revoked-1` has been revoked");
    assert_eq!(world.receipts("revoked-1").len(), 2);

    let revoked = world.line("capability revoke revoked-1 --data s --json").ends(0).json();
    assert_eq!(revoked["newlyRevoked"], false);
    let again = wire.call("3", &token, "echo", hi());
    assert_eq!(written(&again.result), error);
    // Once, and only to those whom it concerns: the next frames are the answers to these.
    assert!(wire.is_alive() && bystander.is_alive());
}

#[test]
fn a_revocation_is_enforced_on_the_very_next_call() {
    let (world, server) = World::served();
    let token = world.token("revoked-2", vec![grant("echo"), grant("note_put")]);
    let mut wire = server.connect();
    wire.call("1", &token, "echo", json!({"text": "hi"}));
    world.line("capability revoke revoked-2 --data s").ends(0).says("revoked-2");
    // Another connection, that was not told.
    let mut fresh = server.connect();
    let note = json!({"name": "n", "text": "x"});
    for (id, tool, params) in [("2", "echo", json!({"text": "hi"})), ("3", "note_put", note)] {
        fresh.send_call(id, &token, tool, params);
        let response = loop {
            match fresh.message().unwrap() {
                KernelMessage::ToolCallResponse(response) => break response,
                KernelMessage::CapabilityRevoked { id } => assert_eq!(id, "revoked-2"),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(written(&response.result)["error"]["code"], "capability_revoked");
    }
    assert_eq!(world.receipts("revoked-2").len(), 3);
}

#[test]
fn a_token_whose_ancestor_is_revoked_is_revoked_too() {
    let (world, server) = World::served();
    let authority = world.authority();
    let parent = world.token("root-1", vec![grant("echo")]);
    let middle = child(&authority, &parent, &agent(), key(8).public_key(), "middle-1");
    let leaf = child(&authority, &middle, &key(8), key(7).public_key(), "leaf-1");
    let mut wire = server.connect();
    for (id, token) in [("1", &parent), ("2", &middle), ("3", &leaf)] {
        let response = wire.call(id, token, "echo", json!({"text": "hi"}));
        assert_eq!(written(&response.result)["status"], "ok", "{}", token.id);
    }
    world.line("capability revoke middle-1 --data s").ends(0);
    let mut told = Vec::new();
    for _ in 0..2 {
        match wire.message() {
            Some(KernelMessage::CapabilityRevoked { id }) => told.push(id),
            other => panic!("{other:?}"),
        }
    }
    told.sort();
    assert_eq!(told, ["leaf-1", "middle-1"]);
    let response = wire.call("4", &leaf, "echo", json!({"text": "hi"}));
    assert_eq!(written(&response.result)["error"]["code"], "capability_revoked");
    assert_eq!(reason(&response.receipt), "ancestor capability `middle-1` has been revoked");
    let response = wire.call("5", &parent, "echo", json!({"text": "hi"}));
    assert_eq!(written(&response.result)["status"], "ok");
    assert!(wire.is_alive());
}

#[test]
fn a_token_that_was_revoked_before_anybody_met_it_is_denied() {
    let (world, server) = World::served();
    world.line("capability revoke unseen-1 --anyway --data s").ends(0);
    let token = world.token("unseen-1", vec![grant("echo")]);
    let mut wire = server.connect();
    wire.send_call("1", &token, "echo", json!({"text": "hi"}));
    let response = loop {
        if let KernelMessage::ToolCallResponse(response) = wire.message().unwrap() {
            break response;
        }
    };
    assert_eq!(written(&response.result)["error"]["code"], "capability_revoked");
    world.check_receipt(&response);
}

// covers: WIRE-022, WIRE-030
#[test]
fn the_peer_is_shown_its_own_tokens_that_are_valid_now() {
    let world = World::new();
    let server = world.serve("--peer agent.key");
    let issue = |words: &[&str]| {
        let words = [&["capability", "issue", "--data", "s", "--grant", "demo/echo"], words];
        world.run(&words.concat()).ends(0);
    };
    issue(&["--subject", "agent.key", "--id", "mine-1"]);
    issue(&["--subject", "agent.key", "--id", "mine-2"]);
    issue(&["--subject", "agent.key", "--id", "old-1", "--at", "1700000000", "--ttl", "1h"]);
    let later = (now() + 1000).to_string();
    issue(&["--subject", "agent.key", "--id", "early-1", "--at", &later]);
    issue(&["--subject", &key(8).public_key().to_hex(), "--id", "theirs-1"]);
    let mut wire = server.connect();
    assert_eq!(listed(&mut wire), ["mine-1", "mine-2"]);

    world.line("capability revoke mine-1 --data s").ends(0);
    // Told unasked, because it holds it.
    let told = wire.message();
    assert_eq!(told, Some(KernelMessage::CapabilityRevoked { id: "mine-1".to_owned() }));
    assert_eq!(listed(&mut wire), ["mine-2"]);

    let endpoint = server.endpoint();
    let socket = endpoint.strip_prefix("unix:").unwrap();
    let listing = world.run(&["native", "list", "--unix", socket, "--json"]).ends(0).json();
    let tokens = listing["capabilities"].as_array().unwrap();
    assert_eq!(tokens.len(), 1);
    world.folder.write("listed.json", tokens[0].to_string());
    world.line("capability verify listed.json --trusted-issuer s/authority.key").ends(0);
    world.run(&["native", "list", "--unix", socket]).ends(0).says("mine-2");
    assert!(world.rows("").is_empty());
}

#[test]
fn a_token_that_a_call_made_known_is_listed_and_one_of_an_untrusted_issuer_is_not() {
    let world = World::new();
    let server = world.serve("--peer agent.key");
    let token = world.token("met-1", vec![grant("echo")]);
    let validity = Validity { issued_at: now(), expires_at: now() + 60 };
    let subject = agent();
    let strange =
        token_at(&key(66), subject.public_key(), "strange-1", vec![grant("echo")], validity);
    let mut wire = server.connect();
    assert_eq!(listed(&mut wire), [""; 0]);
    for token in [&token, &strange] {
        wire.call("1", token, "echo", json!({"text": "hi"}));
    }
    assert_eq!(listed(&mut wire), ["met-1"]);
}

#[test]
fn somebody_unknown_has_nothing_to_be_listed() {
    let (world, server) = World::served();
    let words = "capability issue --data s --grant demo/echo --subject agent.key --id mine-1";
    world.line(words).ends(0);
    assert_eq!(listed(&mut server.connect()), [""; 0]);
    let endpoint = server.endpoint();
    let socket = endpoint.strip_prefix("unix:").unwrap();
    world.run(&["native", "list", "--unix", socket]).ends(0).says("none");
}

#[test]
fn the_client_hears_of_revocations_while_it_calls() {
    let (world, server) = World::served();
    let token = world.token("heard-1", vec![grant("echo")]);
    block_on(async {
        let endpoint = server.endpoint().parse().unwrap();
        let client = NativeClient::connect(&endpoint).await.unwrap();
        let mut revocations = client.revocations();
        let call =
            |id: &str| client.call(request(id, &token, "echo", json!({"text": "x"})), |_, _| ());
        assert_eq!(written(&call("1").await.unwrap().result)["status"], "ok");
        world.line("capability revoke heard-1 --data s").ends(0);
        assert_eq!(revocations.recv().await.unwrap(), "heard-1");
        let denied = call("2").await.unwrap();
        assert_eq!(written(&denied.result)["error"]["code"], "capability_revoked");
        assert!(revocations.try_recv().is_err(), "told once");
    });
}
