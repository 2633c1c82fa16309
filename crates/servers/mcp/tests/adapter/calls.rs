//! Calls that go as they should.

use std::sync::Arc;

use chio_core::protocol::DiscoveryProtocol;
use chio_core::registry::ErrorCode;
use chio_kernel::{Outcome, ToolServerConnection as _};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{TestCaller, World, until};

#[tokio::test]
async fn a_result_comes_back_as_the_server_wrote_it() {
    let world = World::new(&[]).await;
    let caller = Arc::new(TestCaller::of("native"));
    let result = world.value(&caller, "echo", json!({"text": "hi\n\u{1f600}"})).await;
    let content = json!([{"type": "text", "text": "hi\n\u{1f600}", "_meta": {"kept": 1}}]);
    assert_eq!(result, json!({"content": content, "meta_came": null}));
    assert_eq!(world.server.protocol(), DiscoveryProtocol::Mcp);
}

#[tokio::test]
async fn an_error_answer_is_a_denial_in_the_servers_words() {
    let world = World::new(&[]).await;
    let caller = Arc::new(TestCaller::of("native"));
    let Outcome::Denied(denial) = world.call(&caller, "fail", json!({})).await else {
        panic!("expected a denial");
    };
    assert_eq!(denial.code, ErrorCode::ToolServerError);
    assert_eq!(denial.reason, "no such row");
}

#[tokio::test]
async fn calls_of_one_child_run_side_by_side() {
    let world = Arc::new(World::new(&[]).await);
    let mut calls = JoinSet::new();
    for number in 0..50 {
        let (world, caller) = (Arc::clone(&world), Arc::new(TestCaller::of("native")));
        calls.spawn(async move {
            let result = world.value(&caller, "echo", json!({"text": number})).await;
            assert_eq!(result["content"][0]["text"], number, "its own answer");
        });
    }
    calls.join_all().await;
}

#[tokio::test]
async fn progress_reaches_a_caller_who_wants_it_before_the_result() {
    let world = World::new(&[]).await;
    let quiet = Arc::new(TestCaller::of("native"));
    assert_eq!(world.data(&quiet, "progress", json!({"steps": 3})).await, json!({"wanted": false}));
    assert_eq!(quiet.notices(), []);
    let curious = Arc::new(TestCaller::of("native").with_progress());
    assert_eq!(
        world.data(&curious, "progress", json!({"steps": 3})).await,
        json!({"wanted": true})
    );
    let found: Vec<Value> =
        curious.notices().into_iter().map(|notice| Value::Object(notice.params)).collect();
    let expected: Vec<Value> = (1..=3).map(|step| json!({"progress": step, "total": 3})).collect();
    assert_eq!(found, expected);
    assert_eq!(curious.told("notifications/progress"), 3);
}

#[tokio::test]
async fn a_slow_caller_has_been_told_all_when_the_result_comes() {
    let world = World::new(&[]).await;
    let caller = Arc::new(TestCaller::of("native").with_progress().slowly());
    world.value(&caller, "progress", json!({"steps": 5})).await;
    assert_eq!(caller.told("notifications/progress"), 5);
}

#[tokio::test]
async fn a_flood_of_progress_ends_with_the_result() {
    let mut options = crate::support::options(&[]);
    options.limits.max_notifications = 4;
    let world = World::with(options).await;
    let caller = Arc::new(TestCaller::of("native").with_progress());
    world.value(&caller, "progress", json!({"steps": 20_000})).await;
    let told = caller.told("notifications/progress");
    assert!((1..=20_000).contains(&told), "{told}");
    if told < 20_000 {
        let dropped = format!("srv: {} notices of a call were dropped", 20_000 - told);
        assert!(world.log().iter().any(|line| line.contains(&dropped)), "{:?}", world.log());
    }
}

#[tokio::test]
async fn a_tool_that_runs_only_as_a_task_is_waited_for() {
    let world = World::new(&[]).await;
    let caller = Arc::new(TestCaller::of("native").with_progress());
    let result = world.value(&caller, "research", json!({})).await;
    let related = json!({"io.modelcontextprotocol/related-task": {"taskId": "task-ends"}});
    assert_eq!(result, json!({"content": [], "_meta": related}));
    assert_eq!(caller.told("notifications/progress"), 1);
    let seen = world.seen(&caller).await;
    assert_eq!(seen["tasks_cancelled"], Value::Null);
}

#[tokio::test]
async fn a_task_that_is_cancelled_is_cancelled_at_the_server() {
    let world = World::new(&[]).await;
    let caller = Arc::new(TestCaller::of("native"));
    let other = Arc::new(TestCaller::of("native"));
    let (outcome, ()) =
        tokio::join!(world.call(&caller, "research", json!({"hang": true})), async {
            until("the task", async || world.seen(&other).await["hanging"][0].as_u64()).await;
            caller.cancel();
        });
    assert!(matches!(outcome, Outcome::Cancelled { .. }), "{outcome:?}");
    let cancelled =
        until("its end", async || world.seen(&other).await["tasks_cancelled"].as_array().cloned());
    assert_eq!(cancelled.await, [json!("task-hang")]);
}

#[tokio::test]
async fn the_manifest_is_what_the_server_lists_but_for_what_no_manifest_takes() {
    let world = World::new(&["--page-size", "4"]).await;
    let manifest = world.server.manifest();
    assert_eq!(
        (&*manifest.server_id, &*manifest.name, &*manifest.version),
        ("srv", "Fixture", "1.2.3")
    );
    assert_eq!(manifest.tools.len(), 19);
    let echo = manifest.tools.iter().find(|tool| tool.name == "echo").unwrap();
    assert!(!echo.has_side_effects);
    assert_eq!(echo.description, "T");
    let schema = json!({"type": "object", "$defs": {"a": {"const": 1}}, "x-chio-hint": 1});
    assert_eq!(Value::Object(echo.input_schema.clone()), schema);
    assert!(manifest.tools.iter().find(|tool| tool.name == "count").unwrap().has_side_effects);
    manifest.check().unwrap();
    let left_out = "srv: tool 20 is left out: ";
    assert!(world.log().iter().any(|line| line.starts_with(left_out)), "{:?}", world.log());
}
