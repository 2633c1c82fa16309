//! Servers that fail, hang, flood and lie.

use std::sync::Arc;
use std::time::Duration;

use chio_core::receipt::{Execution, LoggedReceipt};
use chio_kernel::{Caller as _, ClientNotification, KernelConfig, Limits, Outcome, ReadKind};
use chio_mcp_adapter::{McpError, McpServer, McpServerOptions};
use chio_testkit::key;
use serde_json::{Value, json};

use crate::support::{SERVER, TestCaller, World, options, until};

/// A server whose children are started again at once.
fn eager(arguments: &[&str]) -> McpServerOptions {
    let mut options = options(arguments);
    options.limits.settled_after = Duration::ZERO;
    options
}

fn native() -> Arc<TestCaller> {
    Arc::new(TestCaller::of("native"))
}

#[tokio::test]
async fn a_call_that_is_cancelled_is_cancelled_at_the_server() {
    let world = World::new(&[]).await;
    let (caller, other) = (native(), native());
    let (outcome, ()) = tokio::join!(world.call(&caller, "hang", json!({})), async {
        until("the call", async || world.seen(&other).await["hanging"][0].as_u64()).await;
        caller.cancel();
    });
    assert!(matches!(outcome, Outcome::Cancelled { .. }), "{outcome:?}");
    let seen = until("the word", async || {
        let seen = world.seen(&other).await;
        seen.get("cancelled").is_some().then_some(seen)
    });
    let seen = seen.await;
    assert_eq!(seen["cancelled"], seen["hanging"], "the same request");
}

#[tokio::test]
async fn a_server_that_never_answers_is_left_at_the_deadline() {
    let limits = Limits { deadline: Duration::from_millis(200), ..Limits::default() };
    let config = KernelConfig { limits, ..KernelConfig::default() };
    let world = World::within(options(&[]), config).await;
    let outcome = world.call(&native(), "hang", json!({})).await;
    let Outcome::Incomplete { reason, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(reason, "the call took longer than its deadline");
    let caller = native();
    let cancelled =
        until("the word", async || world.seen(&caller).await["cancelled"].as_array().map(Vec::len));
    assert_eq!(cancelled.await, 1);
}

#[tokio::test]
async fn a_child_that_ends_in_the_middle_fails_its_calls_and_is_started_again() {
    let world = World::with(eager(&[])).await;
    let caller = world.open("s1").await;
    let (first, _) = world.count(&caller).await;
    let (hanging, crashed) = tokio::join!(world.loss(&caller, "hang", json!({})), async {
        let other = Arc::new(TestCaller::of("s1"));
        until("the call", async || world.seen(&other).await["hanging"][0].as_u64()).await;
        world.loss(&other, "crash", json!({"code": 3})).await
    });
    assert_eq!(hanging, "the server ended: exit status 3");
    assert_eq!(crashed, hanging);
    let (second, count) = world.count(&caller).await;
    assert!(second != first);
    assert_eq!(count, 1, "it begins anew");
}

#[tokio::test]
async fn a_child_that_was_killed_says_so() {
    let world = World::with(eager(&[])).await;
    let caller = native();
    let (pid, _) = world.count(&caller).await;
    let (reason, ()) = tokio::join!(world.loss(&caller, "hang", json!({})), async {
        let other = native();
        until("the call", async || world.seen(&other).await["hanging"][0].as_u64()).await;
        let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    });
    assert_eq!(reason, "the server ended: signal 9");
    assert_eq!(world.count(&caller).await.1, 1);
}

#[tokio::test]
async fn a_child_that_keeps_failing_is_left_alone_for_a_while() {
    let mut options = options(&[]);
    options.limits.first_pause = Duration::from_secs(1000);
    options.limits.longest_pause = Duration::from_secs(1000);
    let world = World::with(options).await;
    let (one, other) = (world.open("s1").await, world.open("s2").await);
    world.loss(&one, "crash", json!({"code": 1})).await;
    let reason = world.failure(&one, "echo", json!({"text": "a"})).await;
    let words = "the server failed and is started again in ";
    assert!(reason.starts_with(words), "{reason}");
    world.value(&other, "echo", json!({"text": "a"})).await;
}

#[tokio::test]
async fn a_receipt_says_whether_the_server_had_the_call() {
    let mut options = options(&[]);
    options.limits.first_pause = Duration::from_secs(1000);
    options.limits.longest_pause = Duration::from_secs(1000);
    let world = World::with(options).await;
    let caller = world.open("s1").await;
    for (tool, arguments, verdict, execution) in [
        ("fail", json!({}), "deny", Execution::Failed),
        ("echo", json!({"text": "a"}), "allow", Execution::Completed),
        ("crash", json!({"code": 1}), "incomplete", Execution::Begun),
        ("echo", json!({"text": "a"}), "deny", Execution::NotBegun),
    ] {
        let _ = world.call(&caller, tool, arguments).await;
        let Some(LoggedReceipt::Call(receipt)) = world.logged().await.pop() else {
            panic!("expected a receipt of {tool}");
        };
        let decision = serde_json::to_value(&receipt.decision).unwrap();
        assert_eq!(decision["verdict"], verdict, "{tool}");
        assert_eq!(receipt.execution(), Some(execution), "{tool}");
    }
}

#[tokio::test]
async fn after_a_pause_the_next_call_works_again() {
    let world = World::new(&[]).await;
    let caller = native();
    world.loss(&caller, "crash", json!({"code": 1})).await;
    until("the server", async || match world.call(&caller, "count", json!({})).await {
        Outcome::Value(value) => Some(value),
        _ => None,
    })
    .await;
}

#[tokio::test]
async fn a_new_child_is_told_what_the_old_one_was() {
    let world = World::with(eager(&[])).await;
    let caller = world.open("s1").await;
    let level = ClientNotification::LogLevel("error".to_owned());
    world.kernel.tell(SERVER, caller.session(), level).await.unwrap();
    world.read(&caller, ReadKind::Subscribe, json!({"uri": "test://1"})).await;
    world.loss(&caller, "crash", json!({"code": 1})).await;
    let seen = world.seen(&caller).await;
    assert_eq!(seen["subscribed"], json!(["test://1"]));
    assert_eq!(seen["levels"], json!(["error"]));
    assert_eq!(seen["client"]["capabilities"]["roots"], json!({"listChanged": true}));
}

#[tokio::test]
async fn lines_that_are_no_messages_are_skipped() {
    let world = World::new(&[]).await;
    let caller = native();
    let (first, _) = world.count(&caller).await;
    world.value(&caller, "garbage", json!({"lines": 99})).await;
    world.value(&caller, "garbage", json!({"lines": 99})).await;
    assert_eq!(world.count(&caller).await, (first, 2), "none in a row with the next");
    let noted = world.log().iter().filter(|line| line.ends_with("is no message")).count();
    assert_eq!(noted, 198);
    assert!(!world.log().concat().contains("this is no message"), "not what they say");
}

#[tokio::test]
async fn a_child_that_writes_nothing_but_garbage_is_ended() {
    let world = World::with(eager(&[])).await;
    let caller = native();
    let reason = world.loss(&caller, "garbage", json!({"lines": 1_000})).await;
    assert_eq!(reason, "the server ended: it wrote 100 lines in a row that are no messages");
    world.value(&caller, "count", json!({})).await;
}

#[tokio::test]
async fn a_line_that_is_too_long_fails_every_call_that_waits() {
    let mut options = options(&[]);
    options.limits.max_line_bytes = 1 << 20;
    let world = World::with(options).await;
    let caller = native();
    let (pid, _) = world.count(&caller).await;
    let other = native();
    let (hanging, huge) = tokio::join!(world.call(&caller, "hang", json!({})), async {
        until("the call", async || world.seen(&other).await["hanging"][0].as_u64()).await;
        let huge = world.loss(&other, "huge", json!({"megabytes": 100})).await;
        caller.cancel();
        huge
    });
    assert_eq!(huge, "the server sent a line longer than 1048576 bytes");
    assert!(matches!(hanging, Outcome::Cancelled { .. }), "it was another's answer: {hanging:?}");
    assert_eq!(world.count(&other).await, (pid, 2), "and the server works on");
    let cancelled = world.seen(&other).await["cancelled"].as_array().unwrap().len();
    assert_eq!(cancelled, 1);
}

#[tokio::test]
async fn a_large_line_that_fits_passes() {
    let world = World::new(&[]).await;
    let result = world.value(&native(), "huge", json!({"megabytes": 4})).await;
    assert_eq!(result["text"].as_str().unwrap().len(), 4 << 20);
}

#[tokio::test]
async fn a_child_that_does_not_read_fails_its_calls_and_holds_up_nobody() {
    let mut options = options(&[]);
    options.limits.max_queued_bytes = 1 << 20;
    let world = World::with(options).await;
    let (one, other) = (world.open("s1").await, world.open("s2").await);
    world.value(&one, "deaf", json!({})).await;
    let large = json!({"text": "x".repeat(1 << 20)});
    let call = || Box::pin(world.call(&one, "echo", large.clone()));
    // One line is read and one fills the queue, whichever they are.
    let outcome = tokio::select! {
        outcome = call() => outcome,
        outcome = call() => outcome,
        outcome = call() => outcome,
    };
    let Outcome::Denied(denial) = outcome else { panic!("{outcome:?}") };
    assert_eq!(denial.reason, "the server does not read what it is sent");
    one.cancel();
    world.value(&other, "echo", json!({"text": "a"})).await;
}

/// Why a server does not start.
async fn start_error(options: McpServerOptions) -> McpError {
    McpServer::start(options).await.unwrap_err()
}

#[tokio::test]
async fn a_server_that_does_not_introduce_itself_is_not_started() {
    let command = |command: &[&str]| {
        McpServerOptions::new(SERVER, command.iter().copied(), key(5).public_key().clone())
    };
    assert_eq!(start_error(command(&[])).await, McpError::NoCommand);
    let missing = start_error(command(&["no-such-program", "--secret"])).await.to_string();
    assert!(missing.starts_with("`no-such-program` cannot be started: "), "{missing}");
    assert!(!missing.contains("secret"));
    let ended = McpError::Ended("exit status 0".to_owned());
    assert_eq!(start_error(command(&["true"])).await, ended);
    let version = start_error(options(&["--version", "2026-07-28"])).await;
    let found = "2026-07-28".to_owned();
    assert_eq!(version, McpError::Version { expected: "2025-11-25", found });
    let mut silent = options(&["--silent"]);
    silent.limits.initialize = Duration::from_millis(100);
    let within = silent.limits.initialize;
    let expected = McpError::Silent { method: "initialize", within };
    assert_eq!(start_error(silent).await, expected);
    let mut endless = options(&["--endless"]);
    endless.limits.max_pages = 5;
    let expected = McpError::TooMany { what: "pages in a list", max: 5 };
    assert_eq!(start_error(endless).await, expected);
    let mut many = options(&[]);
    many.limits.max_entries = 5;
    let expected = McpError::TooMany { what: "entries in a list", max: 5 };
    assert_eq!(start_error(many).await, expected);
}

#[tokio::test]
async fn older_versions_are_spoken_too_and_early_notices_are_no_answer() {
    for arguments in
        [["--version", "2025-03-26", "--early"], ["--version", "2024-11-05", "--early"]]
    {
        let world = World::new(&arguments).await;
        assert_eq!(world.tool_names().len(), 19);
        world.value(&native(), "echo", json!({"text": "a"})).await;
    }
}

#[tokio::test]
async fn a_tool_that_a_child_does_not_have_is_its_error() {
    let world = World::new(&[]).await;
    let one = world.open("s1").await;
    world.value(&one, "grow", json!({})).await;
    until("the tool", async || world.tool_names().contains(&"grown_1".to_owned()).then_some(()))
        .await;
    // The shared child has not grown.
    assert_eq!(world.failure(&native(), "grown_1", Value::Null).await, "unknown tool grown_1");
}
