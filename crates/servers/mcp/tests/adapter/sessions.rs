//! Which session gets what a child says.

use std::sync::Arc;
use std::time::Duration;

use chio_kernel::{Caller as _, ClientNotification, ReadKind, ReadOutcome, ServerNotification};
use chio_mcp_adapter::{Limits, Sharing};
use chio_testkit::process::Folder;
use serde_json::{Value, json};

use crate::support::{SERVER, TestCaller, World, is_alive, options, until};

async fn shared() -> World {
    shared_and_late(Duration::ZERO).await
}

/// A child that sessions share, and that may speak of a call so long after its end.
async fn shared_and_late(late: Duration) -> World {
    let mut options = options(&[]);
    (options.sharing, options.limits.late) = (Sharing::Shared, late);
    World::with(options).await
}

fn updated(uri: &str) -> ServerNotification {
    let Value::Object(params) = json!({"uri": uri}) else { unreachable!() };
    ServerNotification { method: "notifications/resources/updated".to_owned(), params }
}

#[tokio::test]
async fn children_of_sessions_share_no_state() {
    let world = World::new(&[]).await;
    let (one, other) = (world.open("s1").await, world.open("s2").await);
    let native = Arc::new(TestCaller::of("native"));
    let (first, _) = world.count(&one).await;
    assert_eq!(world.count(&one).await, (first, 2));
    let (second, count) = world.count(&other).await;
    assert_eq!(count, 1);
    let (third, count) = world.count(&native).await;
    assert_eq!(count, 1);
    assert!(first != second && second != third && first != third);
}

#[tokio::test]
async fn sessions_of_a_shared_child_share_it() {
    let world = shared().await;
    let (one, other) = (world.open("s1").await, world.open("s2").await);
    let (pid, _) = world.count(&one).await;
    assert_eq!(world.count(&other).await, (pid, 2));
    world.kernel.close_session(SERVER, "s1").await;
    assert_eq!(world.count(&other).await, (pid, 3));
}

#[tokio::test]
async fn a_session_ends_with_its_child_and_no_other() {
    let world = World::new(&[]).await;
    let (one, other) = (world.open("s1").await, world.open("s2").await);
    let ((first, _), (second, _)) = (world.count(&one).await, world.count(&other).await);
    world.kernel.close_session(SERVER, "s1").await;
    assert!(!is_alive(first) && is_alive(second));
    assert_eq!(world.count(&other).await, (second, 2));
}

#[tokio::test]
async fn a_session_that_is_opened_again_has_a_new_child() {
    let world = World::new(&[]).await;
    let (first, _) = world.count(&world.open("s1").await).await;
    let (second, count) = world.count(&world.open("s1").await).await;
    assert!(!is_alive(first) && second != first);
    assert_eq!(count, 1);
}

#[tokio::test]
async fn a_child_is_told_exactly_what_its_client_can_do() {
    let world = World::new(&[]).await;
    let native = Arc::new(TestCaller::of("native"));
    let introduced = world.seen(&native).await["client"].take();
    assert_eq!(introduced["capabilities"], json!({}));
    assert_eq!(introduced["protocolVersion"], "2025-11-25");
    assert_eq!(introduced["clientInfo"]["name"], "chio");
    let caller = Arc::new(TestCaller::of("s1"));
    let client = json!({
        "elicitation": {"form": {}, "url": {}}, "roots": {"listChanged": true},
        "tasks": {}, "experimental": {"x": 1, "chioToolStreaming": {}},
    });
    let offer = world.try_open(&caller, client).await.unwrap().unwrap();
    assert_eq!(offer.capabilities["x"], json!({"kept": true}));
    assert_eq!(offer.instructions.as_deref(), Some("do as you are told"));
    let announced = world.seen(&caller).await["client"]["capabilities"].take();
    let expected = json!({"elicitation": {"form": {}, "url": {}}, "roots": {"listChanged": true},
        "experimental": {"x": 1}});
    assert_eq!(announced, expected);
    assert_eq!(world.seen(&caller).await["notified"], json!(["notifications/initialized"]));
}

#[tokio::test]
async fn a_session_whose_child_does_not_start_is_not_opened() {
    let folder = Folder::new();
    let flag = folder.path("closed");
    let world = World::new(&["--unless", flag.to_str().unwrap()]).await;
    folder.write("closed", "");
    let caller = Arc::new(TestCaller::of("s1"));
    let error = world.try_open(&caller, json!({})).await.unwrap_err();
    assert_eq!(error.to_string(), "the tool server failed: the server ended: exit status 7");
}

#[tokio::test]
async fn what_a_child_logs_reaches_the_call_or_else_its_session() {
    let world = World::new(&[]).await;
    let (one, other) = (world.open("s1").await, world.open("s2").await);
    let call = Arc::new(TestCaller::of("s1"));
    world.value(&call, "log", json!({"count": 3})).await;
    assert_eq!(call.told("notifications/message"), 3);
    assert_eq!(one.notices(), []);
    let level = ClientNotification::LogLevel("debug".to_owned());
    world.kernel.tell(SERVER, one.session(), level).await.unwrap();
    let told = || (one.told("notifications/message") == 1).then_some(());
    until("the log", async || told()).await;
    assert_eq!(world.seen(&one).await["levels"], json!(["debug"]));
    assert_eq!(other.notices(), []);
}

// covers: WIRE-067
#[tokio::test]
async fn a_shared_child_is_never_fanned_out() {
    never_fanned_out(shared().await, (4, 1)).await;
    // Where it may speak late of a call of one, nothing of that reaches the other.
    never_fanned_out(shared_and_late(Limits::default().late).await, (0, 0)).await;
}

async fn never_fanned_out(world: World, (messages, unknown): (usize, usize)) {
    let (one, other) = (world.open("s1").await, world.open("s2").await);
    let level = ClientNotification::LogLevel("debug".to_owned());
    world.kernel.tell(SERVER, one.session(), level).await.unwrap();
    world.kernel.tell(SERVER, one.session(), ClientNotification::RootsChanged).await.unwrap();
    for method in [
        "notifications/tools/list_changed",
        "notifications/resources/list_changed",
        "notifications/prompts/list_changed",
        "notifications/elicitation/complete",
        "notifications/tasks/status",
    ] {
        world.value(&one, "say", json!({"method": method, "params": {"uri": "test://1"}})).await;
    }
    // What it says in a call, while no other session has one, is for that.
    world.value(&other, "log", json!({"count": 3})).await;
    for method in ["notifications/message", "notifications/unknown"] {
        world.value(&other, "say", json!({"method": method, "params": {"uri": "test://1"}})).await;
    }
    world.value(&one, "touch", json!({"uri": "test://1"})).await;
    // What is on its way has arrived when a tool that came later is known.
    world.value(&one, "grow", json!({})).await;
    until("the tool", async || world.tool_names().contains(&"grown_1".to_owned()).then_some(()))
        .await;
    assert_eq!(one.notices(), []);
    assert_eq!(other.told("notifications/message"), messages);
    assert_eq!(other.told("notifications/unknown"), unknown);
    let seen = world.seen(&one).await;
    assert_eq!(seen["levels"], Value::Null, "one session does not decide for all");
    assert_eq!(seen["roots"], Value::Null);
}

#[tokio::test]
async fn a_shared_child_is_subscribed_once_and_tells_only_who_asked() {
    let world = shared().await;
    let (one, other) = (world.open("s1").await, world.open("s2").await);
    let third = world.open("s3").await;
    for caller in [&one, &other, &one] {
        let answer = world.read(caller, ReadKind::Subscribe, json!({"uri": "test://1"})).await;
        assert_eq!(answer, ReadOutcome::Value(json!({})));
    }
    let seen = world.seen(&one).await;
    assert_eq!(seen["resources/subscribe"], json!(["test://1"]), "once for all");
    world.value(&third, "touch", json!({"uri": "test://2"})).await;
    world.value(&third, "touch", json!({"uri": "test://1"})).await;
    for caller in [&one, &other] {
        until("the change", async || (!caller.notices().is_empty()).then_some(())).await;
        assert_eq!(caller.notices(), [updated("test://1")]);
    }
    assert_eq!(third.notices(), []);
    let answer = world.read(&one, ReadKind::Unsubscribe, json!({"uri": "test://1"})).await;
    assert_eq!(answer, ReadOutcome::Value(json!({})));
    assert_eq!(world.seen(&one).await["resources/unsubscribe"], Value::Null, "one is left");
    world.value(&third, "touch", json!({"uri": "test://1"})).await;
    until("the change", async || (other.notices().len() == 2).then_some(())).await;
    assert_eq!(one.notices().len(), 1);
    world.kernel.close_session(SERVER, "s2").await;
    let left = async || world.seen(&one).await.get("resources/unsubscribe").cloned();
    assert_eq!(until("the end", left).await, json!(["test://1"]));
}

#[tokio::test]
async fn only_a_session_that_was_opened_can_be_told_of_changes() {
    let world = World::new(&[]).await;
    let native = Arc::new(TestCaller::of("native"));
    let answer = world.read(&native, ReadKind::Subscribe, json!({"uri": "test://1"})).await;
    let ReadOutcome::Denied(denial) = answer else { panic!("{answer:?}") };
    assert_eq!(denial.reason, "expected a session that was opened with the server, found another");
}

#[tokio::test]
async fn changes_in_a_sessions_child_reach_the_session_and_the_manifest() {
    let world = World::new(&[]).await;
    let (one, other) = (world.open("s1").await, world.open("s2").await);
    assert!(!world.tool_names().contains(&"grown_1".to_owned()));
    world.value(&one, "grow", json!({})).await;
    let changed = "notifications/tools/list_changed";
    until("the change", async || (one.told(changed) == 1).then_some(())).await;
    assert!(world.tool_names().contains(&"grown_1".to_owned()), "the manifest is there first");
    for method in ["notifications/prompts/list_changed", "notifications/resources/list_changed"] {
        world.value(&one, "say", json!({"method": method, "params": {}})).await;
        until("the change", async || (one.told(method) == 1).then_some(())).await;
    }
    for method in ["notifications/elicitation/complete", "notifications/tasks/status"] {
        world.value(&one, "say", json!({"method": method, "params": {"k": 1}})).await;
        until("the notice", async || (one.told(method) == 1).then_some(())).await;
    }
    assert_eq!(other.notices(), []);
    world.kernel.close_session(SERVER, "s1").await;
    assert!(!world.tool_names().contains(&"grown_1".to_owned()), "nobody has it any more");
}

#[tokio::test]
async fn a_subscription_of_a_session_is_its_childs() {
    let world = World::new(&[]).await;
    let (one, other) = (world.open("s1").await, world.open("s2").await);
    world.read(&one, ReadKind::Subscribe, json!({"uri": "test://1"})).await;
    assert_eq!(world.seen(&one).await["subscribed"], json!(["test://1"]));
    assert_eq!(world.seen(&other).await["subscribed"], json!([]));
    world.value(&one, "touch", json!({"uri": "test://1"})).await;
    until("the change", async || (one.notices().len() == 1).then_some(())).await;
    assert_eq!(one.notices(), [updated("test://1")]);
    world.read(&one, ReadKind::Unsubscribe, json!({"uri": "test://1"})).await;
    assert_eq!(world.seen(&one).await["subscribed"], json!([]));
    assert_eq!(other.notices(), []);
}

#[tokio::test]
async fn subscriptions_of_a_session_are_bounded() {
    let mut options = options(&[]);
    options.limits.max_subscriptions = 1;
    let world = World::with(options).await;
    let caller = world.open("s1").await;
    world.read(&caller, ReadKind::Subscribe, json!({"uri": "test://1"})).await;
    let answer = world.read(&caller, ReadKind::Subscribe, json!({"uri": "test://2"})).await;
    let ReadOutcome::Denied(denial) = answer else { panic!("{answer:?}") };
    assert_eq!(denial.reason, "expected at most 1 subscriptions, found more");
}
