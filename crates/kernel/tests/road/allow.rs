//! Calls that run: what comes back, and what their receipts say.

use std::sync::Arc;

use chio_core::canonical;
use chio_core::canonical::Written;
use chio_core::capability::{CapabilityToken, ToolGrant};
use chio_core::governance::ModelMetadata;
use chio_core::hash::sha256_hex;
use chio_core::receipt::{
    BoundaryClass, NO_OUTPUT_HASH, ReceiptKind, RedactionMode, ToolOrigin, TrustLevel,
};
use chio_kernel::Outcome;
use serde_json::json;

use crate::support::tokens::{agent, child, counted, issuer, scope, token};
use crate::support::world::{metadata, value};
use crate::support::{NOW, SERVER, World, grant};

#[tokio::test]
async fn a_receipt_tells_all_that_is_known_of_the_call() {
    let world = World::new().await;
    let token = token("cap-1", &[grant("echo")]);
    let arguments = json!({"text": "hello", "n": [1, 2.5, null]});
    let ended = world.run(world.call(&token, "echo", arguments.clone())).await;
    assert_eq!(*value(&ended), arguments);
    assert_eq!(ended.cost, None);
    let receipt = &ended.receipt;
    assert_eq!(receipt.action.parameters, arguments);
    assert_eq!(receipt.action.parameter_hash, canonical::hash(&arguments).unwrap());
    assert_eq!(receipt.content_hash, canonical::hash(&arguments).unwrap());
    let named = (&*receipt.capability_id, &*receipt.tool_server, &*receipt.tool_name);
    assert_eq!(named, ("cap-1", SERVER, "echo"));
    assert_eq!((receipt.timestamp, receipt.tenant_id.as_deref()), (NOW, Some("tenant-1")));
    assert_eq!(receipt.receipt_kind, ReceiptKind::MediatedDecision);
    assert_eq!(receipt.boundary_class, BoundaryClass::Prevent);
    assert_eq!(receipt.trust_level, TrustLevel::Mediated);
    assert_eq!(receipt.tool_origin, ToolOrigin::CallerExecuted);
    assert_eq!(receipt.redaction_mode, RedactionMode::None);
    let attribution = json!({
        "delegation_depth": 0,
        "grant_index": 0,
        "issuer_key": issuer().public_key().to_hex(),
        "subject_key": agent().public_key().to_hex(),
    });
    assert_eq!(*metadata(&ended, "attribution"), attribution);
    assert!(metadata(&ended, "chio_receipt_signing_nonce").as_str().unwrap().starts_with("rcpt-"));
    assert!(metadata(&ended, "financial").is_null() && metadata(&ended, "stream").is_null());
}

#[tokio::test]
async fn receipts_are_numbered_from_one() {
    let world = World::new().await;
    for expected in 1..=5 {
        let tool = if expected % 2 == 0 { "effect" } else { "echo" };
        assert_eq!(world.run_tool(tool, json!({"n": expected})).await.seq, expected);
    }
    assert_eq!(world.runs("effect"), 2);
    assert_eq!(world.logged().await.len(), 5);
}

#[tokio::test]
async fn the_content_hash_is_that_of_what_came_back() {
    let world = World::new().await;
    let stream_hash = |chunks: &[serde_json::Value]| {
        let hashes = chunks.iter().map(|chunk| canonical::hash(chunk).unwrap());
        sha256_hex(hashes.collect::<String>().as_bytes())
    };
    let chunks = [json!({"b": 1, "a": 2}), json!("two"), json!(3.0)];
    let cases = [
        ("echo", json!({"z": 1, "a": "é"}), sha256_hex("{\"a\":\"é\",\"z\":1}".as_bytes())),
        ("echo", json!(null), NO_OUTPUT_HASH.to_owned()),
        ("fail", json!({}), NO_OUTPUT_HASH.to_owned()),
        ("stream", json!({"chunks": chunks}), stream_hash(&chunks)),
        ("stream", json!({"chunks": [], "value": 7}), canonical::hash(&7).unwrap()),
        ("stream", json!({"chunks": []}), stream_hash(&[])),
    ];
    for (tool, arguments, expected) in cases {
        let ended = world.run_tool(tool, arguments.clone()).await;
        assert_eq!(ended.receipt.content_hash, expected, "{tool} {arguments}");
    }
}

#[tokio::test]
async fn a_null_result_is_a_value() {
    let world = World::new().await;
    let ended = world.run_tool("echo", json!(null)).await;
    assert_eq!(ended.outcome, Outcome::Value(json!(null)));
}

#[tokio::test]
async fn a_receipt_says_how_far_the_authority_was_handed_on() {
    let world = World::new().await;
    let parent = token("parent", &[grant("echo")]);
    world.run(world.call(&parent, "echo", json!(1))).await;
    let child = child("child", &parent, &agent(), &chio_testkit::key(3), &[grant("echo")]);
    let ended = world.run(world.call(&child, "echo", json!(1))).await;
    let attribution = metadata(&ended, "attribution");
    assert_eq!(attribution["delegation_depth"], json!(1));
    assert_eq!(attribution["subject_key"], json!(chio_testkit::key(3).public_key().to_hex()));
}

#[tokio::test]
async fn the_most_exact_grant_that_holds_is_used_and_named() {
    use chio_core::capability::Constraint;
    let world = World::new().await;
    let any_server = ToolGrant { server_id: "*".to_owned(), ..grant("*") };
    let long = ToolGrant { constraints: vec![Constraint::MaxLength(100)], ..grant("echo") };
    let short = ToolGrant { constraints: vec![Constraint::MaxLength(3)], ..grant("echo") };
    let cases: [(&[ToolGrant], u32); 6] = [
        (&[any_server.clone(), grant("*"), grant("echo")], 2),
        (&[any_server.clone(), grant("*")], 1),
        (&[any_server, grant("effect")], 0),
        (&[grant("echo"), long.clone()], 1),
        (&[grant("echo"), grant("echo")], 0),
        (&[short, long], 1),
    ];
    for (grants, expected) in cases {
        let ended = world.run_with(grants, "echo", json!({"text": "longer"})).await;
        let index = &metadata(&ended, "attribution")["grant_index"];
        assert_eq!(*index, json!(expected), "{grants:?}");
    }
}

#[tokio::test]
async fn the_way_a_call_came_is_signed_with_it_and_cannot_pose_as_the_kernels_word() {
    let world = World::new().await;
    let token = token("cap-1", &[grant("echo")]);
    let mut call = world.call(&token, "echo", json!(1));
    let request_id = call.request_id.clone();
    for (member, value) in [
        ("route_selection", json!({"decision": "select"})),
        ("attribution", json!({"subject_key": "somebody else"})),
        ("receipt_context", json!({"request_id": "another"})),
    ] {
        call.evidence.push((member, Written::of(&value).unwrap()));
    }
    let ended = world.run(call).await;
    assert_eq!(*metadata(&ended, "route_selection"), json!({"decision": "select"}));
    assert_eq!(metadata(&ended, "attribution")["issuer_key"], issuer().public_key().to_hex());
    assert_eq!(*metadata(&ended, "receipt_context"), json!({"request_id": request_id}));
}

// covers: WIRE-084
#[tokio::test]
async fn what_a_model_says_of_itself_stays_an_assertion() {
    let world = World::new().await;
    let token = token("cap-1", &[grant("echo")]);
    let mut call = world.call(&token, "echo", json!(1));
    let model: ModelMetadata = serde_json::from_value(json!({"model_id": "m-1"})).unwrap();
    call.model = Some(model.into());
    let ended = world.run(call).await;
    let recorded = metadata(&ended, "model_metadata");
    assert_eq!(*recorded, json!({"model_id": "m-1", "provenance_class": "asserted"}));
}

// covers: CROSS-014
#[tokio::test]
async fn the_scope_that_the_route_kept_decides_and_the_presented_grant_is_counted() {
    let world = World::new().await;
    let token = token("cap-1", &[counted("effect", 9), counted("echo", 2)]);
    let kept = |grants: &[ToolGrant]| Some(scope(grants));
    let call = |scope| {
        let mut call = world.call(&token, "echo", json!(1));
        call.scope = scope;
        call
    };
    // In the kept scope the grant is the first; its number is still the presented token's.
    for _ in 0..2 {
        let ended = world.run(call(kept(&[counted("echo", 2)]))).await;
        assert_eq!(metadata(&ended, "attribution")["grant_index"], json!(1));
    }
    // What the route left out is not there, and what was counted is used up for every call.
    for scope in [kept(&[counted("effect", 9)]), kept(&[counted("echo", 2)]), kept(&[]), None] {
        assert!(matches!(world.run(call(scope)).await.outcome, Outcome::Denied(_)));
    }
    assert_eq!(world.runs("echo"), 2);
}

#[tokio::test]
async fn many_calls_at_once_have_a_receipt_each() {
    let world = Arc::new(World::new().await);
    let token: CapabilityToken = token("cap-1", &[grant("*")]);
    let calls = (0..50).map(|n| {
        let (world, token) = (Arc::clone(&world), token.clone());
        let tool = ["echo", "effect", "fail"][n % 3];
        tokio::spawn(async move { world.run(world.call(&token, tool, json!(n))).await.seq })
    });
    let mut seqs = Vec::new();
    for call in calls.collect::<Vec<_>>() {
        seqs.push(call.await.unwrap());
    }
    seqs.sort_unstable();
    assert_eq!(seqs, (1..=50).collect::<Vec<_>>());
}
