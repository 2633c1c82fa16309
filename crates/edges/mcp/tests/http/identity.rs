//! Whose a session is: only the client that opened it may use it.

use chio_testkit::key;
use chio_testkit::mcp::{Request, initialize, receipt_of};
use serde_json::{Value, json};

use crate::world::{Beginning, World, capability, now, scope};

#[test]
fn whoever_shows_no_token_or_another_is_told_what_is_missing() {
    let token = Some("right-0123456789abcdef");
    let world = Beginning { token, ..Beginning::default() }.start();
    let session = world.door.with("Authorization", "Bearer right-0123456789abcdef").open();
    let hello = initialize(&json!({}));
    let echo = json!({"name": "echo", "arguments": {"text": "x"}});
    for (shown, status) in [
        (None, 401),
        (Some("Bearer wrong-0123456789abcdef"), 401),
        (Some("Bearer right-0123456789abcde"), 401),
        (Some("Bearer "), 400),
        (Some("Basic right-0123456789abcdef"), 401),
        (Some("right-0123456789abcdef"), 401),
    ] {
        for request in [
            Request::post(&hello),
            session.of(session.asks("tools/call", &echo).1),
            session.of(Request::get()),
            session.of(Request::delete()),
        ] {
            let request = match shown {
                Some(shown) => request.with("Authorization", shown),
                None => request,
            };
            let mut answer = world.door.send(request).check_for(status, &format!("{shown:?}"));
            let challenge = answer.header("www-authenticate").unwrap().to_owned();
            assert!(challenge.starts_with("Bearer"), "{challenge}");
            assert_eq!(answer.header("mcp-session-id"), None);
            let message = answer.json();
            assert_eq!(message["error"]["data"]["chioError"]["code"], 1100, "{message}");
            assert!(!message.to_string().contains("0123456789abcdef"), "no token is repeated");
        }
    }
    assert!(world.receipts().is_empty());
    session.call("echo", &json!({"text": "still here"}));
    world.check_calls(&[("echo", "allow")]);
}

#[test]
fn a_session_is_for_the_subject_whose_capability_opened_it() {
    let world = World::demo();
    let issue = |id: &str, subject: u8| {
        let token = capability(id, key(subject).public_key(), scope(&["demo/echo"], &[]), now());
        serde_json::to_value(token).unwrap()
    };
    let with = |token: &Value| world.door.with("X-Chio-Capability", &token.to_string());
    let (one, other) = (issue("cap-one", 9), issue("cap-other", 8));
    let (first, second) = (with(&one).open(), world.door.open());
    first.check_refused_to(&with(&other));
    first.check_refused_to(&world.door);
    second.check_refused_to(&with(&one));
    first.call("echo", &json!({"text": "mine"}));
    // A forged capability of the same subject does not get in, and spoils nothing.
    let mut forged = one.clone();
    forged["id"] = json!("cap-forged");
    first.check_refused_to(&with(&forged));
    // A refreshed capability does, and is the one that is used from then on.
    let refreshed = issue("cap-refreshed", 9);
    let mut session = first;
    session.door = with(&refreshed);
    let result = session.call("echo", &json!({"text": "still mine"}));
    assert_eq!(world.receipt(receipt_of(&result))["capability_id"], "cap-refreshed");
    world.check_calls(&[("echo", "allow"), ("echo", "allow")]);
}
