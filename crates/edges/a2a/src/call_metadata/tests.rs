//! What may stand in `metadata.chio`, and what may not.

use serde_json::json;

use super::*;
use crate::error::Kind;

fn read(params: Value, message: Value) -> Result<CallMetadata, Fault> {
    let metadata = |chio: Value| Map::from_iter([(CHIO.to_owned(), chio)]);
    super::read(Some(&metadata(params)), Some(&metadata(message)))
}

#[test]
fn nothing_said_is_nothing_and_so_is_null() {
    assert!(super::read(None, None).unwrap().target.is_none());
    let about = read(json!(null), json!({"targetSkillId": null})).unwrap();
    assert!(about.target.is_none() && about.presented.is_none());
}

#[test]
fn both_places_may_say_the_same_and_not_two_things() {
    let one = || json!({"targetSkillId": "a"});
    assert_eq!(read(one(), json!({})).unwrap().target.as_deref(), Some("a"));
    assert_eq!(read(json!({}), one()).unwrap().target.as_deref(), Some("a"));
    assert_eq!(read(one(), one()).unwrap().target.as_deref(), Some("a"));
    let two = read(one(), json!({"targetSkillId": "b"}));
    assert_eq!(two.unwrap_err().kind, Kind::Params);
}

#[test]
fn an_error_never_repeats_what_was_sent() {
    for chio in [
        json!({"capability": "s3cret"}),
        json!({"capability": {"id": "s3cret"}}),
        json!({"dpop": "s3cret"}),
        json!({"governedIntent": {"id": "s3cret"}}),
        json!({"callChain": {"s3cret": 1}}),
        json!({"executionNonce": "s3cret"}),
        json!({"targetSkillId": " s3cret"}),
        json!("s3cret"),
    ] {
        let error = read(chio, json!({})).unwrap_err();
        assert_eq!(error.kind, Kind::Params);
        assert!(!error.message.contains("s3cret"), "{}", error.message);
    }
}

// covers: A2A-072
#[test]
fn where_a_call_comes_from_becomes_an_intent_of_the_task() {
    let chain = json!({
        "chainId": "c", "parentRequestId": "p", "originSubject": "o", "delegatorSubject": "d",
    });
    let mut metadata = read(json!({"callChain": chain}), json!({})).unwrap();
    let take_intent = |metadata: &mut CallMetadata, task: &str| {
        metadata.take_intent(format!("a2a-{task}"), "srv", "read", String::new(), |_| true)
    };
    let intent = take_intent(&mut metadata, "a2a-task-7").unwrap();
    assert_eq!(intent.id, "a2a-a2a-task-7");
    assert_eq!((&*intent.server_id, &*intent.tool_name), ("srv", "read"));
    assert_eq!(intent.call_chain.unwrap().chain_id, "c");
    assert_eq!(intent.context, None);
    let mut nothing = read(json!({}), json!({})).unwrap();
    assert!(take_intent(&mut nothing, "t").is_none());
}
