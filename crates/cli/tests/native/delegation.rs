//! Handing on, out of the box.

use chio_testkit::token::{child, grant};
use chio_testkit::{key, token};
use serde_json::json;

use crate::support::{World, agent, now, reason, written};

#[test]
fn a_token_that_was_handed_on_works_out_of_the_box() {
    let (world, server) = World::served();
    world.line("key new --out sub.key").ends(0);
    let issue = "capability issue --data s --subject agent.key \
        --grant demo/echo:invoke,delegate --grant demo/now --id parent-1 --out parent.json";
    world.line(issue).ends(0);
    let delegate = "capability delegate --parent parent.json --key agent.key --to sub.key \
        --ttl 10m --out delegation.json";
    world
        .run(
            &[
                &delegate.split_whitespace().collect::<Vec<_>>()[..],
                &["--step", r#"{"type":"remove_tool","server_id":"demo","tool_name":"now"}"#],
            ]
            .concat(),
        )
        .ends(0);
    let issue = "capability issue --data s --delegation delegation.json --parent parent.json \
        --id child-1 --out child.json";
    world.line(issue).ends(0);
    let endpoint = server.endpoint();
    let socket = endpoint.strip_prefix("unix:").unwrap();
    let call = ["native", "call", "--unix", socket, "--token", "child.json", "--json", "demo"];
    let run = world.run(&[&call[..], &["echo", r#"{"text":"hi"}"#]].concat()).ends(0).json();
    let attribution = &run["receipt"]["metadata"]["attribution"];
    assert_eq!(attribution["delegation_depth"], 1);
    let run = world.run(&[&call[..], &["now"]].concat()).ends(1).json();
    assert_eq!(run["result"]["error"]["code"], "capability_denied");
    assert_eq!(world.receipts("child-1").len(), 2);
    assert!(world.receipts("parent-1").is_empty());
}

#[test]
fn a_token_of_an_unknown_parent_is_denied_helpfully_until_the_parent_is_imported() {
    let (world, server) = World::served();
    let parent = world.token("parent-2", vec![grant("echo")]);
    let child = child(&world.authority(), &parent, &agent(), key(8).public_key(), "child-2");
    let mut wire = server.connect();
    let response = wire.call("1", &child, "echo", json!({"text": "hi"}));
    assert_eq!(written(&response.result)["error"]["code"], "capability_denied");
    let reason = reason(&response.receipt);
    assert!(reason.contains("`parent-2`") && reason.contains("import it"), "{reason}");

    world.write_token("parent.json", &parent);
    world.line("capability import parent.json --data s").ends(0).says("parent-2");
    let response = wire.call("2", &child, "echo", json!({"text": "hi"}));
    assert_eq!(written(&response.result)["status"], "ok");
    assert_eq!(world.receipts("child-2").len(), 2);
}

#[test]
fn a_parent_that_was_presented_once_is_known() {
    let (world, server) = World::served();
    let parent = world.token("parent-3", vec![grant("echo")]);
    let child = child(&world.authority(), &parent, &agent(), key(8).public_key(), "child-3");
    let mut wire = server.connect();
    for (id, token) in [("1", &parent), ("2", &child)] {
        let response = wire.call(id, token, "echo", json!({"text": "hi"}));
        assert_eq!(written(&response.result)["status"], "ok");
    }
}

#[test]
fn what_is_not_trusted_or_not_whole_is_not_imported() {
    let (world, _server) = World::served();
    let subject = agent();
    let stranger = token::token(&key(66), subject.public_key(), "s-1", vec![grant("echo")], now());
    world.write_token("stranger.json", &stranger);
    world.line("capability import stranger.json --data s").ends(1).complains("s-1");
    let line = format!(
        "capability import stranger.json --data s --trusted-issuer {}",
        key(66).public_key()
    );
    world.line(&line).ends(0);
    let mut changed = world.token("c-1", vec![grant("echo")]);
    changed.expires_at += 1;
    world.write_token("changed.json", &changed);
    world.line("capability import changed.json --data s").ends(1).complains("signature");
    let twin = world.token("s-1", vec![grant("*")]);
    world.write_token("twin.json", &twin);
    world.line("capability import twin.json --data s").ends(1).complains("another token");
}

#[test]
fn a_chain_that_widens_or_is_another_is_denied() {
    let (world, server) = World::served();
    let authority = world.authority();
    let parent = world.token("parent-4", vec![grant("echo")]);
    let mut wire = server.connect();
    wire.call("0", &parent, "echo", json!({"text": "hi"}));
    // The authority itself signs something wider than was handed on.
    let honest = child(&authority, &parent, &agent(), key(8).public_key(), "wide-1");
    let mut wide = honest.clone();
    wide.scope.grants[0].tool_name = "*".to_owned();
    let wide = chio_core::signed::Signed::signed(wide, &authority).unwrap();
    let response = wire.call("1", &wide, "now", json!({}));
    assert_eq!(written(&response.result)["error"]["code"], "capability_denied");
    world.check_receipt(&response);
    // A link that another key signed.
    let mut forged = honest;
    forged.id = "forged-1".to_owned();
    forged.delegation_chain[0].timestamp += 1;
    let forged = chio_core::signed::Signed::signed(forged, &authority).unwrap();
    let response = wire.call("2", &forged, "echo", json!({"text": "hi"}));
    assert_eq!(written(&response.result)["error"]["code"], "capability_denied");
    world.check_receipt(&response);
}
