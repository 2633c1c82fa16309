//! Every way to send a message goes through the guards, whatever they come to.

use chio_core::receipt::{ChioReceipt, Decision};
use chio_testkit::guard::{CountingGuard, Way};
use serde_json::{Value, json};

use crate::world::{Beginning, World, message, unique};

/// A message sent in each dialect and over each binding, and the task that comes of it.
async fn sent(world: &World) -> Vec<(&'static str, Value)> {
    let old = |kind: &str| json!({kind: "text", "text": "x"});
    let seed = json!({"message": {"role": "user", "parts": [old("type")]}});
    let v03 = json!({"message": {
        "kind": "message", "messageId": unique("old"), "role": "user", "parts": [old("kind")],
    }});
    let rpc = async |method: &str, params: &Value| {
        world.rpc(method, params.clone()).send().await.result()
    };
    let waiting = rpc("message/stream", &seed).await;
    let rest = world.ask("POST", "/rest/message:send").with("A2A-Version", "1.0");
    let rest = rest.json(&message("x")).send().await.is(200).value();
    vec![
        ("1.0", rpc("SendMessage", &message("x")).await["task"].clone()),
        ("HTTP+JSON", rest["task"].clone()),
        ("0.3", rpc("message/send", &v03).await),
        ("seed", rpc("message/send", &seed).await),
        ("seed, deferred", rpc("task/get", &json!({"taskId": waiting["id"]})).await),
    ]
}

/// The receipt that a task carries, as text or as an object.
fn receipt_of(task: &Value) -> ChioReceipt {
    let receipt = &task["metadata"]["chio"]["receipt"];
    let text = receipt.as_str().map_or_else(|| receipt.to_string(), str::to_owned);
    serde_json::from_str(&text).unwrap()
}

// covers: BRIDGE-001, BRIDGE-002, BRIDGE-109, BRIDGE-111, BRIDGE-161
#[tokio::test]
async fn no_message_reaches_a_tool_but_through_the_guards() {
    for way in Way::ALL {
        let with_rest =
            Beginning { options: |options| options.http_json = true, ..Beginning::default() };
        let world = with_rest.start().await;
        let asked = CountingGuard::alone_in(&world.kernel, way);
        let card = world.ask("GET", "/.well-known/agent-card.json").send().await.is(200).value();
        assert!(card["skills"][0]["bridgeFidelity"]["kind"].is_string(), "{card}");
        let tasks = sent(&world).await;
        assert_eq!(asked.count(), tasks.len(), "{way:?}");
        assert_eq!(world.told.runs(), if way == Way::Allows { tasks.len() } else { 0 });
        for (dialect, task) in tasks {
            let receipt = receipt_of(&task);
            receipt.verify().unwrap();
            let (decision, states) = match way.reason() {
                None => (Decision::Allow, ["TASK_STATE_COMPLETED", "completed", "completed"]),
                Some(reason) => {
                    let (reason, guard) = (reason.to_owned(), CountingGuard::NAME.to_owned());
                    (
                        Decision::Deny { reason, guard },
                        ["TASK_STATE_REJECTED", "rejected", "failed"],
                    )
                }
            };
            assert_eq!(receipt.decision, Some(decision), "{way:?} {dialect}");
            let verdict = if way == Way::Allows { "allow" } else { "deny" };
            assert_eq!(task["metadata"]["chio"]["decision"], verdict, "{way:?} {dialect}");
            let status = &task["status"];
            let state = status.as_str().or_else(|| status["state"].as_str()).unwrap();
            let expected = match dialect {
                "1.0" | "HTTP+JSON" => states[0],
                "0.3" => states[1],
                _ => states[2],
            };
            assert_eq!(state, expected, "{way:?} {dialect}");
        }
    }
}
