//! What a request may cost.

use chio_testkit::mcp::Request;
use serde_json::json;

use crate::support::World;

/// One byte more than a body may have.
const TOO_LARGE: usize = (8 << 20) + 1;

// covers: WIRE-048
#[test]
fn a_body_that_is_too_large_is_refused() {
    let (world, served) = World::up();
    let session = served.door.open();
    let before = served.memory();
    let text = "x".repeat(TOO_LARGE);
    let mut answer = session.send(Request::post_bytes(text)).is(413);
    let message = answer.json();
    assert_eq!(message["error"]["code"], -32600, "{message}");
    assert!(message["error"]["message"].as_str().unwrap().len() < 500);
    assert!(served.most_memory() - before < 100, "{before} {}", served.most_memory());
    session.call("echo", &json!({"text": "still here"}));
    world.check_calls(&[("echo", "allow")]);
}
