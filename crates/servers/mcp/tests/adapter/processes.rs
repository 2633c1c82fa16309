//! The processes themselves: what they are given, and that nothing of them is left.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use chio_mcp_adapter::{McpServerOptions, Sharing};
use chio_testkit::key;
use chio_testkit::process::Folder;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::support::{SERVER, TestCaller, World, fixture, is_alive, options, until};

fn native() -> Arc<TestCaller> {
    Arc::new(TestCaller::of("native"))
}

/// Set where the tests run once more inside themselves.
const SECRET: &str = "CHIO_ADAPTER_TEST_SECRET";
const PLAIN: &str = "ADAPTER_TEST_PLAIN";

#[tokio::test]
async fn children_see_the_usual_variables_and_those_that_are_named() {
    if std::env::var_os(SECRET).is_none() {
        // A process cannot change its own environment, so another one has it.
        let program = std::env::current_exe().unwrap();
        let mut again = Command::new(program);
        again.args([
            "--exact",
            "processes::children_see_the_usual_variables_and_those_that_are_named",
        ]);
        again.env(SECRET, "hidden").env(PLAIN, "plain");
        let output = again.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
        return;
    }
    let folder = Folder::new();
    let mut options = options(&[]);
    options.env.insert("ADAPTER_TEST_ADDED".to_owned(), "added".to_owned());
    options.cwd = Some(folder.root().to_owned());
    let world = World::with(options).await;
    for caller in [native(), world.open("s1").await] {
        let found = world.data(&caller, "env", json!({})).await;
        let names: Vec<&str> =
            found["names"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        assert!(names.contains(&"PATH") && names.contains(&"ADAPTER_TEST_ADDED"), "{names:?}");
        assert!(!names.contains(&SECRET) && !names.contains(&PLAIN), "{names:?}");
        let folder = folder.root().canonicalize().unwrap();
        assert_eq!(found["cwd"].as_str(), folder.to_str());
    }
}

#[tokio::test]
async fn standard_error_goes_to_the_log_harmless_and_cut() {
    let world = World::new(&[]).await;
    world.value(&native(), "stderr", json!({})).await;
    let cut = format!("srv: {}…", "x".repeat(4096));
    let expected = ["srv: plain", "srv: \\u{1b}[31mred", &cut];
    for expected in expected {
        let found = || world.log().iter().any(|line| line == expected).then_some(());
        until(expected, async || found()).await;
    }
}

#[tokio::test]
async fn a_stop_ends_every_child_and_nothing_is_started_again() {
    let world = World::new(&[]).await;
    let (one, other) = (world.open("s1").await, world.open("s2").await);
    let callers = [one, other, native()];
    let mut pids = Vec::new();
    for caller in &callers {
        pids.push(world.count(caller).await.0);
    }
    world.server.stop().await;
    for pid in pids {
        assert!(!is_alive(pid));
    }
    for caller in &callers {
        assert_eq!(world.failure(caller, "count", json!({})).await, "the server was stopped");
    }
}

/// A fixture that does not end when its input does, nor when it is told to.
fn stubborn(folder: &Folder) -> McpServerOptions {
    let script = r#"sleep 1000 & echo $! > "$0"; trap "" TERM; exec "$@""#;
    let file = folder.path("helper").to_str().unwrap().to_owned();
    let mut command: Vec<String> = ["sh", "-c", script].map(str::to_owned).into();
    command.push(file);
    command.extend(fixture(&["--stay"]));
    let mut options = McpServerOptions::new(SERVER, command, key(5).public_key().clone());
    options.limits.stop = Duration::from_millis(50);
    options
}

#[tokio::test]
async fn a_child_that_does_not_want_to_end_is_killed_with_all_that_it_started() {
    let folder = Folder::new();
    let world = World::with(stubborn(&folder)).await;
    let (pid, _) = world.count(&native()).await;
    let helper: u32 = folder.read("helper").trim().parse().unwrap();
    assert!(is_alive(pid) && is_alive(helper));
    world.server.stop().await;
    assert!(!is_alive(pid));
    until("the helper's end", async || (!is_alive(helper)).then_some(())).await;
}

#[tokio::test]
async fn what_a_child_started_ends_with_it() {
    let folder = Folder::new();
    let world = World::with(stubborn(&folder)).await;
    let helper: u32 = folder.read("helper").trim().parse().unwrap();
    let reason = world.loss(&native(), "crash", json!({"code": 4})).await;
    assert_eq!(reason, "the server ended: exit status 4");
    until("the helper's end", async || (!is_alive(helper)).then_some(())).await;
}

#[tokio::test]
async fn children_end_with_the_last_handle() {
    let world = World::new(&["--stay"]).await;
    let caller = world.open("s1").await;
    let (shared, _) = world.count(&native()).await;
    let (own, _) = world.count(&caller).await;
    drop(world);
    until("their end", async || (!is_alive(shared) && !is_alive(own)).then_some(())).await;
}

#[test]
fn children_end_with_the_runtime() {
    let folder = Folder::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (world, pid) = runtime.block_on(async {
        let world = World::with(stubborn(&folder)).await;
        let (pid, _) = world.count(&native()).await;
        (world, pid)
    });
    let helper: u32 = folder.read("helper").trim().parse().unwrap();
    drop(runtime);
    chio_testkit::process::until("their end", || {
        (!is_alive(pid) && !is_alive(helper)).then_some(())
    });
    drop(world);
}

/// A server with one session, whose client is known before to be able to do this.
fn expecting(client: &Value) -> McpServerOptions {
    let mut options = options(&[]);
    options.sharing = Sharing::Single;
    options.client = Some(watch::channel(client.as_object().cloned()).1);
    options
}

#[tokio::test]
async fn the_first_session_has_the_child_that_was_started_for_it() {
    let client = json!({"sampling": {}, "elicitation": {}, "roots": {"listChanged": true}});
    let world = World::with(expecting(&client)).await;
    let (pid, _) = world.count(&native()).await;
    let caller = world.open("s1").await;
    assert_eq!(world.count(&caller).await.0, pid);
    let other = world.open("s2").await;
    assert_ne!(world.count(&other).await.0, pid);
    assert!(is_alive(pid));
    world.server.stop().await;
}

#[tokio::test]
async fn a_session_of_another_client_than_was_told_has_a_child_of_its_own() {
    let world = World::with(expecting(&json!({"roots": {}}))).await;
    let (pid, _) = world.count(&native()).await;
    let caller = world.open("s1").await;
    assert_ne!(world.count(&caller).await.0, pid);
    assert!(!is_alive(pid), "there are never two");
    world.server.stop().await;
}
