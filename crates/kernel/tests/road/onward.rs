//! What a call takes along to another organisation, and what a kernel there makes of it.

use chio_core::capability::CapabilityToken;
use chio_core::governance::{CallChainContext, GovernedTransactionIntent};
use chio_testkit::key;
use serde_json::{Value, json};

use crate::support::authority::intent;
use crate::support::tokens::{agent, child, token};
use crate::support::world::{Ended, metadata, value};
use crate::support::{Setup, World, grant};

/// The word of the first kernel, as its tool was given it.
async fn onward(world: &World, presents: Option<&CapabilityToken>) -> (Value, Ended) {
    let arguments = presents.map_or(json!({}), |token| json!({"presents": token}));
    let mut call = world.call(&token("here", &[grant("*")]), "onward", arguments);
    (call.trace_id, call.context) = (Some("trace-1".to_owned()), Some(json!({"taskId": "t"})));
    let ended = world.run(call).await;
    (value(&ended).clone(), ended)
}

/// Continues a call with what came along.
async fn continues(world: &World, presented: &CapabilityToken, onward: &Value) -> Ended {
    let context: CallChainContext = serde_json::from_value(onward["callChain"].clone()).unwrap();
    let mut call = world.call(presented, "effect", json!(1));
    call.governed_intent = Some(Box::new(GovernedTransactionIntent {
        call_chain: Some(context),
        context: Some(json!({"callChainContinuation": onward["continuation"]})),
        ..intent("effect")
    }));
    world.run(call).await
}

// covers: A2A-073
#[tokio::test]
async fn a_kernel_that_trusts_ours_takes_the_call_for_a_continued_one() {
    let here = World::new().await;
    let there = Setup::default().key(key(8));
    let trusted = vec![here.kernel.public_key().clone()];
    let there = there.config(|it| it.trusted_kernels = trusted).start().await;
    // Names of requests are counted here, and must not be the same in both places.
    for _ in 0..10 {
        let _ = there.kernel.new_request_id();
    }
    let direct = token("there", &[grant("effect")]);
    let parent = token("parent", &[grant("*")]);
    let handed_on = child("child", &parent, &agent(), &key(3), &[grant("effect")]);
    chio_kernel::store::TokenStore::remember(&*there.store, &parent).await.unwrap();
    for presented in [direct, handed_on] {
        let (onward, ended) = onward(&here, Some(&presented)).await;
        let request_id = &metadata(&ended, "receipt_context")["request_id"];
        assert_eq!(onward["callChain"]["parentRequestId"], *request_id);
        assert_eq!(onward["callChain"]["chainId"], json!("trace-1"));
        assert_eq!(onward["capabilityRef"]["chioCapabilityId"], json!(presented.id));
        assert_eq!(onward["context"], json!({"taskId": "t"}));
        let continued = continues(&there, &presented, &onward).await;
        assert_eq!(value(&continued), &json!(1), "{continued:?}");
        let chain = &metadata(&continued, "governed_transaction")["call_chain"];
        assert_eq!(chain["evidenceClass"], json!("verified"), "{}", presented.id);
        assert_eq!(chain["parentRequestId"], *request_id);
    }
}

#[tokio::test]
async fn without_a_capability_for_there_nothing_is_signed_and_ours_is_named() {
    let here = World::new().await;
    let (onward, _) = onward(&here, None).await;
    assert_eq!(onward["continuation"], json!(null));
    assert_eq!(onward["capabilityRef"]["chioCapabilityId"], json!("here"));
    let agent = agent().public_key().to_hex();
    assert_eq!(onward["callChain"]["originSubject"], json!(agent));
    assert_eq!(onward["callChain"]["delegatorSubject"], json!(agent));
}
