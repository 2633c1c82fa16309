//! What a policy issues to a peer that connects.

use chio_core::capability::CapabilityToken;
use chio_testkit::process::until;
use serde_json::Value;

use crate::support::World;

const HAND: &str = "\
hushspec: \"0.1.0\"
chio:
  capabilities:
    ttl: 1h
    tools:
      - {server: demo, tool: echo}
      - {server: demo, tool: now, max_invocations: 2}
";

/// The capabilities that the kernel knows the caller by.
#[track_caller]
fn listed(world: &World) -> Vec<CapabilityToken> {
    let told = world.line("native list --unix a.sock --json").ends(0).json();
    serde_json::from_value(told["capabilities"].clone()).unwrap()
}

fn ids(tokens: &[CapabilityToken]) -> Vec<String> {
    tokens.iter().map(|token| token.id.clone()).collect()
}

#[test]
fn a_peer_is_handed_what_the_policy_says_once() {
    let world = World::new();
    world.folder.write("hand.yaml", HAND);
    let mut server = world.serve("--policy hand.yaml --peer agent.key");
    let tokens = listed(&world);
    assert_eq!(tokens.len(), 1);
    let scope: Value = serde_json::to_value(&tokens[0].scope).unwrap();
    assert_eq!(scope["grants"][1]["max_invocations"], 2);
    assert_eq!(tokens[0].expires_at - tokens[0].issued_at, 3600);
    assert_eq!(tokens[0].subject, *crate::support::agent().public_key());
    // It can be used.
    let call = |tool: &str, arguments: &str| {
        world.start_call("a.sock", &tokens[0], &["demo", tool, arguments]).end()
    };
    call("echo", r#"{"text": "hi"}"#).ends(0);
    call("now", "{}").ends(0);
    call("now", "{}").ends(0);
    call("now", "{}").ends(1).complains("invocation budget exhausted");
    call("note_count", "{}").ends(1).complains("[capability_denied");
    // A client that connects again, even after a restart, has the same.
    assert_eq!(ids(&listed(&world)), ids(&tokens));
    server.end();
    let _server = world.serve("--policy hand.yaml --peer agent.key");
    assert_eq!(ids(&listed(&world)), ids(&tokens));
}

#[test]
fn many_connections_at_once_are_handed_the_same() {
    let world = World::new();
    world.folder.write("hand.yaml", HAND);
    let server = world.serve("--policy hand.yaml --peer agent.key");
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| assert!(server.connect().is_alive()));
        }
    });
    assert_eq!(listed(&world).len(), 1);
}

#[test]
fn what_was_revoked_is_not_handed_out_again() {
    let world = World::new();
    world.folder.write("hand.yaml", HAND);
    let _server = world.serve("--policy hand.yaml --peer agent.key");
    let tokens = listed(&world);
    world.line(&format!("capability revoke {} --data s", tokens[0].id)).ends(0);
    assert_eq!(ids(&listed(&world)), Vec::<String>::new());
    assert_eq!(ids(&listed(&world)), Vec::<String>::new());
}

#[test]
fn nobody_is_handed_anything_without_a_word_in_the_policy_or_without_a_name() {
    let world = World::new();
    world.folder.write("hand.yaml", HAND);
    for options in ["--peer agent.key", "--policy hand.yaml"] {
        let mut server = world.serve(options);
        assert!(listed(&world).is_empty(), "{options}");
        server.end();
    }
}

#[test]
fn a_policy_that_changes_hands_out_what_it_says_then() {
    let world = World::new();
    world.folder.write("hand.yaml", HAND);
    let server = world.serve("--policy hand.yaml --peer agent.key");
    let tokens = listed(&world);
    world.folder.write("hand.yaml", HAND.replace("tool: echo", "tool: sleep"));
    until("the change", || server.stderr().contains("policy reloaded").then_some(()));
    let more = listed(&world);
    assert_eq!(more.len(), 2);
    assert!(ids(&more).contains(&tokens[0].id), "what was given is not taken back");
}
