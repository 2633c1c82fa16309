//! A process that is killed: what it was told is durable is there, and its place is free.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use chio_kernel::store::{ApprovalState, Opened, Opening, TaskQuota, TaskState};
use chio_store::{OpenStore, StoreUrl};

use crate::support::{Scratch, append, caller, claiming, clock, closing, request, task};

/// Names the folder in which the other process writes.
const FOLDER: &str = "CHIO_TEST_CRASH_FOLDER";

/// Not a test of its own: what the other process runs. It writes until it is killed.
#[tokio::test]
async fn the_process_that_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let store = OpenStore::open(&StoreUrl::Sqlite(folder.into()), clock()).await.unwrap();
    let slot = store.take_slot(None).await.unwrap();
    for number in 1.. {
        let seq = append(slot.ledger.as_ref(), number).await;
        writeln!(std::io::stdout(), "durable {seq}").unwrap();
    }
}

/// Runs the other process until it has told of this many entries, and kills it. Gives the last that
/// it told of.
fn run_and_kill(scratch: &Scratch, entries: usize) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::the_process_that_is_killed", "--nocapture"])
        .env(FOLDER, scratch.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut told = lines.filter_map(|line| line.strip_prefix("durable ")?.parse().ok());
    let last = told.nth(entries).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    // What it had told before the end came counts as well.
    told.last().unwrap_or(last)
}

#[tokio::test]
async fn what_was_durable_survives_and_the_slot_is_taken_again() {
    let scratch = Scratch::new();
    let mut told = 0;
    for round in 1..=3 {
        let last = run_and_kill(&scratch, 40);
        assert!(last > told, "round {round}");
        told = last;
    }
    let store = scratch.open().await;
    let logs = store.shared().logs().await.unwrap();
    assert_eq!(logs.len(), 1, "each took the slot of the one before");
    assert!(logs[0].entries >= told, "{} of {told}", logs[0].entries);
    let entries = store.shared().entries(&logs[0].log_id, 1, 10_000).await.unwrap();
    let places: Vec<u64> = entries.iter().map(|entry| entry.seq).collect();
    assert_eq!(places, (1..=logs[0].entries).collect::<Vec<_>>());
    let slot = store.take_slot(None).await.unwrap();
    assert_eq!(append(slot.ledger.as_ref(), 1).await, logs[0].entries + 1);
}

/// Names the folder in which the other process claims a task.
const CLAIM_FOLDER: &str = "CHIO_TEST_CLAIM_FOLDER";

/// Not a test of its own: what the other process runs. It claims a task, asks for an approval, and
/// waits to be killed.
#[tokio::test]
async fn the_process_that_is_killed_while_it_waits() {
    let Some(folder) = std::env::var_os(CLAIM_FOLDER) else { return };
    let store = OpenStore::open(&StoreUrl::Sqlite(folder.into()), clock()).await.unwrap();
    let slot = store.take_slot(None).await.unwrap();
    let all = Opening { waits_for: Some(request("r")), ..claiming("a") };
    let opened = slot.ledger.open(all).await.unwrap();
    assert!(matches!(opened, Opened::At(_)));
    writeln!(std::io::stdout(), "claimed").unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn a_task_that_was_claimed_by_a_killed_process_is_swept() {
    let scratch = Scratch::new();
    let store = scratch.open().await;
    let survivor = store.take_slot(None).await.unwrap().ledger;
    let shared = store.shared();
    shared.create_task(task("a"), TaskQuota::of_open(1)).await.unwrap().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::the_process_that_is_killed_while_it_waits", "--nocapture"])
        .env(CLAIM_FOLDER, scratch.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.ends_with("claimed")));
    assert_eq!(survivor.abandoned().await.unwrap().len(), 0, "its kernel runs");
    child.kill().unwrap();
    child.wait().unwrap();
    let abandoned = survivor.abandoned().await.unwrap();
    let left: Vec<_> = abandoned.iter().flat_map(|found| &found.intents).collect();
    assert_eq!((left.len(), left[0].reserved), (1, false));
    survivor.append(closing(1, left[0].id)).await.unwrap();
    let swept = shared.task("a", &caller(), 1).await.unwrap().unwrap();
    assert_eq!((swept.state, swept.result), (TaskState::Failed, None));
    let asked = shared.approval("r").await.unwrap().unwrap();
    let swept_receipt = swept.receipt.map(|receipt| receipt.id);
    assert_eq!((asked.state, asked.receipt_id), (ApprovalState::Cancelled, swept_receipt));
}
