//! A capability that a command issues and another revokes, in front of a server that runs.

use chio_testkit::key;
use chio_testkit::mcp::{Request, initialize, text_of};
use serde_json::{Value, json};

use crate::support::World;

#[test]
fn a_capability_that_was_issued_opens_a_session_until_it_is_revoked() {
    let world = World::new();
    world.folder.write_key("agent.key", &key(9));
    world.folder.write("t", "0123456789abcdef\n");
    let served = world.wrap("--policy permissive --auth-token-file t");
    let issue = "capability issue --data s --subject agent.key --id cap-1 --grant fixture/echo";
    let mut token = world.line(issue).ends(0).json();
    let showing = |token: &Value| served.door.with("X-Chio-Capability", &token.to_string());
    let hello = || Request::post(&initialize(&json!({})));
    let session = showing(&token).open();
    assert_eq!(session.tools(), ["echo"]);
    assert_eq!(text_of(&session.call("echo", &json!({"text": "mine"}))), "mine");
    assert_eq!(session.call("secret", &json!({}))["_meta"]["chio"]["name"], "capability_denied");
    world.line("capability revoke cap-1 --data s").ends(0);
    let denied = session.call("echo", &json!({"text": "after"}));
    assert_eq!(denied["_meta"]["chio"]["name"], "capability_revoked", "{denied}");
    showing(&token).send(hello()).is(401);
    token["id"] = json!("cap-forged");
    showing(&token).send(hello()).is(401);
    world.check_calls(&[("echo", "allow"), ("secret", "deny"), ("echo", "deny")]);
}
