//! What results say about their receipts, and what receipts say about calls.

use std::thread;

use chio_testkit::mcp::{Session, receipt_of, text_of};
use serde_json::{Value, json};

use crate::world::World;

/// Something that looks like a secret, and is none.
const SECRET: &str = concat!("AKIA", "Q3EGRT5KLMN2WXYZ");

// covers: BRIDGE-002
#[test]
fn a_denial_is_a_result_that_a_model_can_act_on_and_names_its_receipt() {
    let world = World::judged();
    let session = world.door.open();
    let cases = [
        ("echo", json!({"text": SECRET}), "secret-leak", (3100, "guard_denied")),
        ("read_file", json!({"path": "/etc/shadow"}), "forbidden-path", (3100, "guard_denied")),
        ("echo", json!({"text": [7]}), "argument-schema", (1002, "invalid_request_shape")),
        ("echo", json!({}), "argument-schema", (1002, "invalid_request_shape")),
    ];
    for (tool, arguments, guard, (code, name)) in &cases {
        let result = session.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result}");
        let account = &result["_meta"]["chio"];
        assert_eq!((&account["code"], &account["name"]), (&json!(code), &json!(name)));
        assert_eq!(account["guard"], *guard, "{result}");
        assert_eq!((&account["transient"]), (&json!(false)));
        assert_eq!(account["retry"]["strategy"], "do_not_retry");
        let guidance = account["retry"]["guidance"].as_str().unwrap();
        let text = text_of(&result);
        assert!(text.contains(guard) && text.contains(guidance), "{text}");
        assert_eq!(text.contains("policy"), *code == 3100, "{text}");
        assert!(!result.to_string().contains(SECRET), "{result}");
        let receipt = world.receipt(receipt_of(&result));
        assert_eq!(receipt["decision"]["verdict"], "deny");
        assert_eq!(receipt["decision"]["guard"], *guard);
        assert!(!receipt.to_string().contains(SECRET), "{receipt}");
    }
    assert_eq!(world.calls().len(), cases.len());
    world.audit();
}

#[test]
fn secrets_in_what_a_tool_gives_do_not_reach_the_client() {
    let world = World::judged();
    let result = world.door.open().call("secret", &json!({}));
    let text = result.to_string();
    assert!(!text.contains("Q7ZLM2XW9RTB5KDV") && !text.contains("Jd9LmVh3PcGe6TaQo5Wi"), "{text}");
    receipt_of(&result);
    world.check_calls(&[("secret", "allow")]);
}

#[test]
fn a_tools_own_failure_is_its_own_word_with_a_receipt() {
    let world = World::fixture();
    let session = world.door.open();
    let result = session.call("test_error_handling", &json!({}));
    assert_eq!(result["isError"], true);
    assert_eq!(text_of(&result), "This tool intentionally returns an error for testing");
    receipt_of(&result);
    assert_eq!(world.calls().len(), 1);
}

/// The receipt of a call with this `_meta`.
#[track_caller]
fn receipt_with(world: &World, session: &Session, meta: &Value) -> Value {
    let params = json!({"name": "echo", "arguments": {"text": "x"}, "_meta": meta});
    let answer = session.request("tools/call", &params);
    world.receipt(receipt_of(&answer["result"]))
}

// covers: WIRE-081, WIRE-082, WIRE-083, WIRE-084
#[test]
fn what_a_client_says_about_its_model_is_asserted_whatever_it_claims() {
    let world = World::fixture();
    let session = world.door.open();
    for member in ["modelMetadata", "chioModelMetadata"] {
        for claimed in [None, Some("asserted"), Some("verified")] {
            let mut model = json!({"model_id": "m-1", "safety_tier": "high", "provider": "p"});
            if let Some(claimed) = claimed {
                model["provenance_class"] = json!(claimed);
            }
            let receipt = receipt_with(&world, &session, &json!({ member: model }));
            let told = &receipt["metadata"]["model_metadata"];
            assert_eq!(told["model_id"], "m-1", "{receipt}");
            assert_eq!(told["provenance_class"], "asserted", "{member} {claimed:?}: {told}");
            assert!(!receipt.to_string().contains("verified"), "{receipt}");
        }
    }
    let plain = receipt_with(&world, &session, &json!({}));
    assert_eq!(plain["metadata"].get("model_metadata"), None);
    assert_eq!(world.calls().len(), 7);
}

// covers: WIRE-081
#[test]
fn what_a_client_says_twice_or_wrongly_about_its_model_is_refused_and_nothing_runs() {
    let world = World::fixture();
    let session = world.door.open();
    let model = json!({"model_id": "m-1"});
    for meta in [
        json!({"modelMetadata": model, "chioModelMetadata": model}),
        json!({"modelMetadata": "m-1"}),
        json!({"chioModelMetadata": {"safety_tier": "high"}}),
        json!({"modelMetadata": {"model_id": "m-1", "provenance_class": "certain"}}),
        json!({"executionNonce": "n"}),
    ] {
        let params = json!({"name": "echo", "arguments": {"text": "x"}, "_meta": meta});
        let answer = session.request("tools/call", &params);
        assert_eq!(answer["error"]["code"], -32602, "{meta}: {answer}");
    }
    assert!(world.receipts().is_empty());
}

// covers: WIRE-048
#[test]
fn meta_is_no_argument() {
    let world = World::fixture();
    let session = world.door.open();
    let plain = receipt_with(&world, &session, &json!({}));
    let meta = json!({"progressToken": 7, "chioRequestId": "my-own-name", "other": "thing"});
    let named = receipt_with(&world, &session, &meta);
    assert_eq!(plain["action"]["parameter_hash"], named["action"]["parameter_hash"]);
    let hops = &named["metadata"]["chio"]["bridge"]["trace"]["hops"];
    assert_eq!(hops[0]["requestId"], "my-own-name", "{hops}");
}

#[test]
fn of_many_calls_at_once_each_has_a_receipt_of_its_own() {
    let world = World::demo();
    let mut told: Vec<String> = thread::scope(|scope| {
        let work = |_| {
            let session = world.door.open();
            let call = move |number: usize| {
                let result = session.call("echo", &json!({"text": number.to_string()}));
                assert_eq!(result["structuredContent"]["text"], number.to_string());
                receipt_of(&result).to_owned()
            };
            scope.spawn(move || (0..20).map(call).collect::<Vec<_>>())
        };
        let workers: Vec<_> = (0..8).map(work).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let receipts = world.receipts();
    let mut found: Vec<&str> = receipts.iter().map(|it| it["id"].as_str().unwrap()).collect();
    told.sort_unstable();
    found.sort_unstable();
    assert_eq!(told, found);
    assert_eq!(found.len(), 160);
    world.audit();
}

// covers: BRIDGE-002, CROSS-001
#[test]
fn everything_that_is_read_leaves_a_receipt_and_names_it() {
    let world = World::fixture();
    let session = world.door.open();
    let prompt = json!({"type": "ref/prompt", "name": "test_prompt_with_arguments"});
    let reads = [
        ("resources/read", json!({"uri": "test://static-text"})),
        ("resources/subscribe", json!({"uri": "test://watched-resource"})),
        ("resources/unsubscribe", json!({"uri": "test://watched-resource"})),
        ("prompts/get", json!({"name": "test_simple_prompt"})),
        ("completion/complete", json!({"ref": prompt, "argument": {"name": "arg1", "value": "t"}})),
    ];
    for (number, (method, params)) in reads.iter().enumerate() {
        let answer = session.request(method, params);
        let told = receipt_of(&answer["result"]).to_owned();
        let receipts = world.receipts();
        assert_eq!(receipts.len(), number + 1, "{method}");
        let receipt = receipts.last().unwrap();
        assert_eq!(receipt["id"], told, "{method}: {receipt}");
        assert_eq!(receipt["terminal_state"]["state"], "completed", "{method}: {receipt}");
    }
    // What is not there has one too, and lists have none.
    let answer = session.request("resources/read", &json!({"uri": "test://nothing"}));
    assert_eq!(answer["error"]["code"], -32002, "{answer}");
    assert!(answer["error"]["data"]["chio"]["receiptId"].is_string(), "{answer}");
    session.request("resources/list", &json!({}));
    assert_eq!(world.receipts().len(), reads.len() + 1);
    world.audit();
}
