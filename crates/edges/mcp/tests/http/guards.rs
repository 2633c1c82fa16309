//! Calls and reads go through the guards, whatever they come to.

use chio_testkit::guard::{CountingGuard, Way};
use serde_json::{Value, json};

use crate::world::World;

// covers: BRIDGE-001, BRIDGE-002, BRIDGE-161
#[test]
fn nothing_reaches_a_server_but_through_the_guards() {
    for way in Way::ALL {
        let world = World::fixture();
        let session = world.door.open();
        let listed = session.request("tools/list", &json!({}))["result"]["tools"].clone();
        let listed = listed.as_array().unwrap();
        let ratings = listed.iter().map(|tool| &tool["_meta"]["chio"]["bridgeFidelity"]["kind"]);
        assert!(ratings.into_iter().all(Value::is_string), "{listed:?}");
        let guard = CountingGuard::alone_in(world.kernel(), way);
        let echo = json!({"name": "echo", "arguments": {"text": "said"}});
        let requests = [
            ("tools/call", echo),
            ("resources/read", json!({"uri": "test://static-text"})),
            ("prompts/get", json!({"name": "test_simple_prompt"})),
        ];
        let answers: Vec<Value> =
            requests.iter().map(|(method, params)| session.request(method, params)).collect();
        assert_eq!(guard.count(), requests.len(), "{way:?}");
        let receipts = world.receipts();
        assert_eq!(receipts.len(), requests.len(), "{way:?}");
        for (answer, receipt) in answers.iter().zip(&receipts) {
            let result = &answer["result"];
            let is_allowed = result.is_object() && result["isError"] != true;
            assert_eq!(is_allowed, way == Way::Allows, "{way:?}: {answer}");
            let named = [&result["_meta"]["chio"], &answer["error"]["data"]["chio"]];
            assert!(named.iter().any(|it| it["receiptId"] == receipt["id"]), "{way:?}: {answer}");
            if let Some(reason) = way.reason() {
                assert!(receipt.to_string().contains(reason), "{way:?}: {receipt}");
            }
        }
        let decision = &receipts[0]["decision"];
        assert_eq!(decision["guard"].as_str(), way.reason().map(|_| CountingGuard::NAME));
        world.audit();
    }
}
