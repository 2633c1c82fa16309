//! What is logged of calls: which call each line is about, and nothing that was asked or answered.

use std::sync::Arc;
use std::time::Duration;

use chio_core::capability::Constraint;
use chio_kernel::Verdict;
use chio_testkit::log::CapturedLog;
use serde_json::json;

use crate::support::tokens::{constrained, token};
use crate::support::{Setup, World, grant, guard};

/// What no line may have.
const SECRET: &str = "hunter2-in-the-clear";

/// The lines with this in them.
fn lines_with(log: &CapturedLog, text: &str) -> Vec<String> {
    log.lines().into_iter().filter(|line| line.contains(text)).collect()
}

#[tokio::test]
async fn what_is_logged_while_a_call_runs_names_the_call() {
    let log = CapturedLog::start();
    let world = World::new().await;
    let token = token("cap-1", &[grant("log")]);
    let mut ids = Vec::new();
    for _ in 0..2 {
        let call = world.call(&token, "log", json!({}));
        ids.push(call.request_id.clone());
        world.run(call).await;
    }
    tracing::info!("after");
    for id in &ids {
        let lines = lines_with(&log, &format!("request_id=\"{id}\" "));
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].ends_with("before") && lines[1].ends_with("in a task of its own"));
        let named = r#"server="srv" tool="log""#;
        assert!(lines.iter().all(|line| line.contains(named)), "{lines:?}");
    }
    let after = lines_with(&log, "after");
    assert!(!after[0].contains("request_id"), "{after:?}");
}

#[tokio::test]
async fn a_call_that_no_task_waits_for_is_still_named() {
    let log = CapturedLog::start();
    let world = World::new().await;
    let call = world.call(&token("cap-1", &[grant("log")]), "log", json!({}));
    let (id, caller) = (call.request_id.clone(), Arc::new(world.caller()));
    // Dropped before it began: it goes on in a task of its own.
    drop(tokio::time::timeout(Duration::ZERO, world.kernel.evaluate(call, caller)).await);
    while world.kernel.in_flight() > 0 || world.receipts_of(&id).await.is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(lines_with(&log, &id).len(), 2, "{:?}", log.lines());
}

#[tokio::test]
async fn a_call_without_a_receipt_is_logged_by_its_name() {
    let log = CapturedLog::start();
    let world = World::new().await;
    world.ledger.appending.fail(true);
    let call = world.call(&token("cap-1", &[grant("echo")]), "echo", json!({}));
    let id = call.request_id.clone();
    let caller = Arc::new(world.caller());
    assert!(world.kernel.evaluate(call, caller).await.is_err());
    let lines = lines_with(&log, &id);
    assert!(matches!(&*lines, [line] if line.ends_with("told to fail")), "{lines:?}");
}

#[tokio::test]
async fn the_end_of_each_call_is_logged_and_nothing_that_was_asked_or_answered() {
    let log = CapturedLog::everything();
    let secret = json!({"detail": SECRET, SECRET: [SECRET], "chunks": [SECRET]});
    let picky = guard("picky").checks(|input| {
        let is_denied = input.tool_name == "big";
        let verdict = if is_denied { Verdict::Deny(SECRET.to_owned()) } else { Verdict::Allow };
        Ok(verdict.into())
    });
    let world = Setup::default().guard(picky).start().await;
    let tools = ["echo", "big", "now", "fail", "panic", "hang", "stream"];
    let unused = Constraint::Custom(SECRET.to_owned(), SECRET.to_owned());
    let grants = [grant("*"), constrained("other", unused)];
    let (token, mut verdicts) = (token(&format!("cap-{SECRET}"), &grants), Vec::new());
    for tool in tools {
        let call = world.call(&token, tool, secret.clone());
        let id = call.request_id.clone();
        let caller = Arc::new(world.caller());
        let running = world.spawn(call, &caller);
        if tool == "hang" {
            world.until("run hang").await;
            caller.cancel();
        }
        let receipt = running.await.unwrap().unwrap().receipt;
        let lines = lines_with(&log, &id);
        let end = lines.last().unwrap();
        assert!(end.contains(&format!("receipt_id=\"{}\"", receipt.id)), "{end}");
        verdicts.push(end.split("verdict=").nth(1).unwrap().split('"').nth(1).unwrap().to_owned());
    }
    let expected = ["allow", "deny", "deny", "deny", "incomplete", "cancelled", "allow"];
    assert_eq!(verdicts, expected);
    assert!(lines_with(&log, SECRET).is_empty(), "{:?}", lines_with(&log, SECRET));
    let signature = token.signature.to_hex();
    assert!(lines_with(&log, &signature).is_empty());
}
