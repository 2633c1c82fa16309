//! What a server has besides tools.

use std::sync::Arc;

use chio_kernel::{ListKind, ReadKind, ReadOutcome};
use serde_json::{Value, json};

use crate::support::{TestCaller, World, until};

fn value(outcome: ReadOutcome) -> Value {
    match outcome {
        ReadOutcome::Value(value) => value,
        other => panic!("expected a value, found {other:?}"),
    }
}

#[tokio::test]
async fn lists_come_whole_and_as_the_server_wrote_them() {
    let world = World::new(&["--page-size", "2"]).await;
    let caller = world.open("s1").await;
    let expected: Vec<Value> = (0..5)
        .map(|number| json!({"uri": format!("test://{number}"), "name": "r", "_meta": {"k": 1}}))
        .collect();
    assert_eq!(world.list(&caller, ListKind::Resources).await, expected);
    assert_eq!(world.list(&caller, ListKind::Prompts).await, [json!({"name": "greet"})]);
    assert_eq!(world.list(&caller, ListKind::Tools).await.len(), 20, "also what no manifest takes");
    let templates = world.list(&caller, ListKind::ResourceTemplates).await;
    assert!(templates.is_empty(), "the server has no such method");
}

#[tokio::test]
async fn lists_are_remembered_until_they_change() {
    let world = World::new(&[]).await;
    let caller = world.open("s1").await;
    let asked = async |method: &str| {
        let listed = world.seen(&caller).await["listed"].take();
        listed.as_array().unwrap().iter().filter(|it| *it == method).count()
    };
    for _ in 0..3 {
        world.list(&caller, ListKind::Resources).await;
        world.list(&caller, ListKind::Tools).await;
    }
    assert_eq!(asked("resources/list").await, 1);
    assert_eq!(asked("tools/list").await, 1);
    let changed = "notifications/resources/list_changed";
    world.value(&caller, "say", json!({"method": changed, "params": {}})).await;
    world.list(&caller, ListKind::Resources).await;
    assert_eq!(asked("resources/list").await, 2);
    assert_eq!(asked("tools/list").await, 1);
    world.value(&caller, "grow", json!({})).await;
    let tools = async || {
        let tools = world.list(&caller, ListKind::Tools).await;
        (tools.len() == 21).then_some(())
    };
    until("the tool", tools).await;
}

#[tokio::test]
async fn a_server_that_has_nothing_is_not_asked() {
    let world = World::new(&["--bare"]).await;
    let caller = world.open("s1").await;
    for kind in
        [ListKind::Tools, ListKind::Resources, ListKind::ResourceTemplates, ListKind::Prompts]
    {
        assert_eq!(world.list(&caller, kind).await, Vec::<Value>::new());
    }
    assert_eq!(world.tool_names(), Vec::<String>::new());
}

#[tokio::test]
async fn things_are_looked_up_and_errors_keep_their_code() {
    let world = World::new(&[]).await;
    let native = Arc::new(TestCaller::of("native"));
    for caller in [native, world.open("s1").await] {
        let read = world.read(&caller, ReadKind::Resource, json!({"uri": "test://0"})).await;
        assert_eq!(value(read), json!({"contents": [{"uri": "test://0", "text": "zero"}]}));
        let read = world.read(&caller, ReadKind::Resource, json!({"uri": "test://9"})).await;
        let message = "no such resource".to_owned();
        let data = Some(Box::new(json!({"uri": "test://9"})));
        assert_eq!(read, ReadOutcome::Answered { code: -32002, message, data });
        let params = json!({"name": "greet", "arguments": {"who": "me"}});
        let read = world.read(&caller, ReadKind::Prompt, params.clone()).await;
        assert_eq!(value(read)["got"], params);
        let reference = json!({"type": "ref/prompt", "name": "greet"});
        let params = json!({"ref": reference, "argument": {"name": "who", "value": "m"}});
        let read = world.read(&caller, ReadKind::Completion, params.clone()).await;
        assert_eq!(value(read)["completion"]["got"], params);
    }
}
