//! The handle itself: names, servers, lists.

use std::collections::HashSet;
use std::sync::Arc;

use chio_core::protocol::DiscoveryProtocol;
use chio_kernel::{KernelError, NoCaller, Outcome, Session, ToolProtocols};
use serde_json::json;

use crate::support::tokens::token;
use crate::support::tools::TestTools;
use crate::support::{SERVER, World, grant};

#[tokio::test]
async fn names_of_calls_are_unique() {
    let world = World::new().await;
    let names: HashSet<String> = (0..1000).map(|_| world.kernel.new_request_id()).collect();
    assert_eq!(names.len(), 1000);
    assert!(names.iter().all(|name| name.starts_with("req-")));
}

#[tokio::test]
async fn a_server_has_its_name_to_itself() {
    let world = World::new().await;
    let again = Box::new(TestTools::new(SERVER, &world.journal, &world.gate));
    let expected = Err(KernelError::DuplicateServer(SERVER.to_owned()));
    assert_eq!(world.kernel.register_tool_server(again), expected);
    let other = Box::new(TestTools::new("another", &world.journal, &world.gate));
    world.kernel.register_tool_server(other).unwrap();
    let names: Vec<_> = world.kernel.manifests().into_iter().map(|it| it.server_id).collect();
    assert_eq!(names, ["another", SERVER]);
    let native = DiscoveryProtocol::Native;
    let expected = Some(ToolProtocols { target: native, spoken: native });
    assert_eq!(world.kernel.protocols_of("another", "echo"), expected);
    assert_eq!(world.kernel.protocols_of("nobody", "echo"), None);
}

#[tokio::test]
async fn every_handle_is_on_the_same_kernel() {
    let world = World::new().await;
    let other = world.kernel.clone();
    let call = world.call(&token("cap-1", &[grant("echo")]), "echo", json!(1));
    let ended = other.evaluate(call, Arc::new(world.caller())).await.unwrap();
    assert_eq!((ended.seq, world.logged().await.len()), (1, 1));
    assert_eq!(other.public_key(), world.kernel.public_key());
}

#[tokio::test]
async fn a_caller_that_takes_nothing_is_no_hindrance() {
    let world = World::new().await;
    let session = Session::anonymous("s", DiscoveryProtocol::Http);
    let token = token("cap-1", &[grant("*")]);
    for (tool, expected) in [
        ("stream", Outcome::Stream { chunks: 2 }),
        (
            "ask",
            Outcome::Value(json!({"no_answer": "the caller does not take this kind of question"})),
        ),
    ] {
        let call = world.call(&token, tool, json!({"chunks": [1, 2]}));
        let ended = world.run_for(call, Arc::new(NoCaller::new(session.clone()))).await;
        assert_eq!(ended.outcome, expected);
        assert_eq!(ended.receipt.tenant_id, None);
    }
}
