//! What goes along to another organisation: whose call it is, and our word for it.

use chio_core::checkpoint::log_id;
use chio_core::crypto::PublicKey;
use chio_core::governance::{CallChainContext, ContinuationToken};
use chio_core::receipt::{ChioReceipt, ContentHash};
use chio_core::signed::Signed as _;
use chio_kernel::Outcome;
use chio_testkit::{key, token};
use serde_json::{Value, json};

use crate::agent::{ALL, RPC, params};
use crate::server::Server;
use crate::support::{NOW, World, begin, config, with_model};

/// What came in `metadata.chio` with the last request.
fn came(server: &Server, speaks: crate::agent::Speaks) -> Value {
    params(&server.last(), speaks)["metadata"]["chio"].clone()
}

// covers: CROSS-033
#[tokio::test]
async fn a_message_says_which_call_it_is_made_for() {
    for speaks in ALL {
        let (server, world) = with_model(speaks).await;
        for arguments in [json!({"message": "x"}), json!({"message": "x", "stream": true})] {
            let done = world.run("research", arguments).await;
            let chio = came(&server, speaks);
            let chain: CallChainContext =
                serde_json::from_value(chio["callChain"].clone()).unwrap();
            let metadata = done.receipt.metadata.as_ref().unwrap();
            let request = serde_json::to_string(metadata).unwrap();
            assert!(request.contains(&chain.parent_request_id), "{request}");
            assert_eq!(chain.origin_subject, key(2).public_key().to_hex());
            let reference = &chio["capabilityRef"];
            assert_eq!(reference["chioCapabilityId"], "cap-1");
            let hash = chio_core::canonical::hash(&world.cap()).unwrap();
            assert_eq!(reference["parentCapabilityHash"], hash);
            assert_eq!(chio.get("continuation"), None, "nobody is known as whom we call");
            assert_eq!(server.last().header("x-chio-capability"), None);
        }
    }
}

// covers: A2A-076
#[tokio::test]
async fn with_a_capability_of_theirs_we_sign_where_the_call_comes_from() {
    let server = Server::start(|seen| crate::agent::model(seen, RPC)).await;
    let grant = token::grant("theirs/*");
    let theirs = token::token(&key(8), key(9).public_key(), "their-cap", vec![grant], NOW);
    let world = World::new(config(&server).with_capability(theirs.clone())).await;
    begin(&world).await;
    let header = server.last().header("x-chio-capability").unwrap().to_owned();
    let presented: chio_core::capability::CapabilityToken = serde_json::from_str(&header).unwrap();
    assert_eq!(presented, theirs, "as it was signed");
    let chio = came(&server, RPC);
    assert_eq!(chio["capabilityRef"]["chioCapabilityId"], "their-cap");
    let continuation: ContinuationToken =
        serde_json::from_value(chio["continuation"].clone()).unwrap();
    continuation.check_signature().unwrap();
    let kernel: &PublicKey = world.kernel.public_key();
    assert_eq!(continuation.signer, *kernel);
    assert_eq!(continuation.subject, *key(9).public_key());
    assert_eq!(serde_json::to_value(&continuation.context).unwrap(), chio["callChain"]);
    assert!(
        !server
            .seen()
            .iter()
            .any(|seen| seen.is_card() && seen.header("x-chio-capability").is_some())
    );
    world.value(json!({"get_task": {"id": "task-1"}})).await;
    assert!(server.last().header("x-chio-capability").is_some(), "follow-ups show it, too");
}

// covers: A2A-076
#[tokio::test]
async fn a_receipt_of_theirs_is_passed_on_as_they_signed_it_and_never_becomes_ours() {
    let (_, theirs) = with_model(RPC).await;
    let theirs = theirs.run("research", json!({"message": "x"})).await.receipt;
    let text = serde_json::to_string(&theirs).unwrap();
    let chio = json!({"receiptId": theirs.id, "receipt": text});
    let metadata = json!({"chio": chio});
    let told = metadata.clone();
    let server = Server::start(move |seen| {
        if seen.is_card() {
            return crate::agent::model(seen, RPC);
        }
        let mut task = crate::agent::task("task-1", "TASK_STATE_COMPLETED");
        task["metadata"] = told.clone();
        crate::agent::whole(seen, RPC, &json!({"task": task}))
    })
    .await;
    let world = World::new(config(&server)).await;
    let done = world.run("research", json!({"message": "x"})).await;
    let Outcome::Value(value) = done.outcome else { panic!("expected a value") };
    assert_eq!(value["task"]["metadata"], metadata);
    let passed: ChioReceipt =
        serde_json::from_str(value["task"]["metadata"]["chio"]["receipt"].as_str().unwrap())
            .unwrap();
    passed.verify().unwrap();
    assert_eq!(passed, theirs);
    // Our receipt is another: of our call, by our key, over what came as it came.
    let ours = done.receipt;
    assert_ne!(ours.id, theirs.id);
    assert_ne!(ours.kernel_key, theirs.kernel_key);
    assert_eq!(ours.kernel_key, *world.kernel.public_key());
    assert_eq!(ours.content_hash, ContentHash::of_value(&value).unwrap());
    let log = log_id(world.kernel.public_key());
    let entries = world.kernel.store().entries(&log, 1, 100).await.unwrap();
    assert_eq!(entries.len(), 1);
    assert!(!String::from_utf8(entries[0].body.clone()).unwrap().contains(&theirs.id));
}

#[tokio::test]
async fn a_caller_cannot_say_in_our_name_where_its_call_comes_from() {
    let (server, world) = with_model(RPC).await;
    let forged = json!({
        "targetSkillId": "forged", "targetSkillName": "forged", "capabilityRef": "forged",
        "callChain": "forged", "continuation": "forged", "note": "kept",
    });
    world.value(json!({"message": "x", "metadata": {"chio": forged}})).await;
    let chio = came(&server, RPC);
    assert!(!chio.to_string().contains("forged"), "{chio}");
    assert_eq!(chio["note"], "kept");
    let failure = world.failure(json!({"message": "x", "metadata": {"chio": []}})).await;
    assert!(failure.contains("expected an object as `metadata.chio`"), "{failure}");
    assert_eq!(server.calls().len(), 1);
}
