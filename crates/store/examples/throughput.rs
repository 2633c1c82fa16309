//! How many receipts a second a store takes, and what the hot reads cost, on this machine.
//!
//! `cargo run --release -p chio-store --example throughput [FOLDER [EACH [off|on|calls|one|pair]]]`.
//! Machines are noisy: compare lines of one run.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a command line program on fixed data"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chio_core::canonical::Written;
use chio_core::receipt::{RedactionMode, ToolCallAction};
use chio_kernel::SystemClock;
use chio_kernel::store::{
    Alternative, ApprovalState, Closing, Entry, Hold, Intent, Ledger, ReceiptQuery, Reservation,
    Reserved,
};
use chio_store::{Indexing, OpenStore, StoreUrl};
use serde_json::json;

const BODY: usize = 1800;

#[tokio::main]
async fn main() {
    let folder = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let each = std::env::args().nth(2).and_then(|each| each.parse().ok()).unwrap_or(1000);
    let only = std::env::args().nth(3);
    let is_asked = |name: &str| only.as_deref().is_none_or(|only| only == name);
    for (name, indexing) in [("off", Indexing::Off), ("on", Indexing::On)] {
        if is_asked(name) {
            appends(&folder, name, indexing, each).await;
        }
    }
    if is_asked("calls") {
        calls(&folder, each / 4).await;
    }
    if is_asked("one") {
        writers(&folder, 1, (1, each)).await;
    }
    if is_asked("pair") {
        writers(&folder, 2, (128, each / 4)).await;
    }
}

/// A folder that is gone when dropped.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn scratch(folder: &Path) -> Scratch {
    Scratch(folder.join(format!("chio-throughput-{}", std::process::id())))
}

async fn open(folder: &Path, indexing: Indexing) -> OpenStore {
    let url = StoreUrl::Sqlite(folder.to_owned());
    OpenStore::open_with(&url, Arc::new(SystemClock::default()), indexing).await.unwrap()
}

/// A receipt of an ordinary size; ids and traces are spread like hashes.
fn body(number: u64) -> Vec<u8> {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut body = json!({
        "action": {"parameters": {"path": "x"}, "parameter_hash": "00".repeat(32)},
        "id": format!("{mixed:016x}{}", "0".repeat(48)),
        "capability_id": format!("cap-{}", number % 97), "tool_server": "fs",
        "tool_name": format!("tool-{}", number % 11),
        "decision": {"verdict": if number.is_multiple_of(20) { "deny" } else { "allow" }},
        "timestamp": 1_700_000_000 + number / 1000,
        "metadata": {
            "attribution": {"subject_key": format!("{:064x}", number % 13)},
            "chio": {"bridge": {"trace": {"traceId": format!("{:064x}", mixed.rotate_left(7))}}},
            "financial": {"cost_charged": number % 100, "currency": "USD"},
        },
    });
    let short = BODY.saturating_sub(body.to_string().len());
    if let Some(body) = body.as_object_mut() {
        body.insert("padding".to_owned(), json!("x".repeat(short)));
    }
    body.to_string().into_bytes()
}

/// Runs this many callers at once, and says how many a second and how long each took.
async fn run<F, T>(name: &str, (callers, each): (u64, u64), call: F)
where
    F: Fn(u64) -> T + Send + Sync + 'static,
    T: Future<Output = ()> + Send,
{
    let (call, start) = (Arc::new(call), Instant::now());
    let mut tasks = Vec::new();
    for caller in 0..callers {
        let call = Arc::clone(&call);
        tasks.push(tokio::spawn(async move {
            let mut times = Vec::new();
            for turn in 0..each {
                let begun = Instant::now();
                call(caller * each + turn).await;
                times.push(begun.elapsed());
            }
            times
        }));
    }
    let mut times: Vec<Duration> = Vec::new();
    for task in tasks {
        times.extend(task.await.unwrap());
    }
    let took = start.elapsed().as_secs_f64();
    times.sort_unstable();
    let at = |share: usize| times.get(times.len() * share / 1000).copied().unwrap_or_default();
    let (middle, late, last) = (at(500), at(990), times.last().copied().unwrap_or_default());
    let rate = times.len() as f64 / took;
    println!(
        "{name}: {rate:.0}/s, half within {middle:?}, 99% within {late:?}, all within {last:?}"
    );
}

async fn appends(folder: &Path, name: &str, indexing: Indexing, each: u64) {
    let scratch = scratch(folder);
    let store = open(&scratch.0, indexing).await;
    let ledger = store.take_slot(None).await.unwrap().ledger;
    // Made beforehand: what is measured is the store.
    let bodies: Arc<Vec<Vec<u8>>> = Arc::new((0..10_000).map(body).collect());
    run(&format!("append, indexing {name}"), (256, each), move |number| {
        let (ledger, bodies) = (Arc::clone(&ledger), Arc::clone(&bodies));
        async move {
            let body = bodies.get(usize::try_from(number).unwrap() % 10_000).cloned();
            ledger.append(Entry::new(body.unwrap())).await.unwrap();
        }
    })
    .await;
    let shared = store.shared();
    let start = Instant::now();
    let query = ReceiptQuery { limit: 50, newest_first: true, ..ReceiptQuery::default() };
    shared.query(&query).await.unwrap();
    println!("  first query: {:?}", start.elapsed());
    let start = Instant::now();
    let query = ReceiptQuery { capability_id: Some("cap-5".to_owned()), ..query };
    for _ in 0..100 {
        shared.query(&query).await.unwrap();
    }
    println!("  a query of 50 rows by capability: {:?}", start.elapsed() / 100);
    let start = Instant::now();
    for _ in 0..10_000 {
        shared.epoch().await.unwrap();
    }
    println!("  epoch: {:?}", start.elapsed() / 10_000);
    let wal = std::fs::metadata(scratch.0.join("store.db-wal")).map_or(0, |file| file.len());
    let database = std::fs::metadata(scratch.0.join("store.db")).map_or(0, |file| file.len());
    let index = std::fs::metadata(scratch.0.join("index.db")).map_or(0, |file| file.len());
    println!("  files: {} MB, log {} MB, index {} MB", database >> 20, wal >> 20, index >> 20);
}

fn reservation(number: u64) -> Reservation {
    let capability_id = format!("cap-{}", number % 97);
    let intent = Intent {
        request_id: format!("req-{number}"),
        capability_id: capability_id.clone(),
        tool_server: "fs".to_owned(),
        tool_name: "read".to_owned(),
        action: ToolCallAction::new(json!({"path": "x".repeat(300)})).unwrap(),
        redaction: RedactionMode::None,
        policy_hash: "00".repeat(32),
        evidence: Vec::new(),
        metadata: Written::of(&json!({})).unwrap(),
        tenant_id: None,
        started_at: 7,
        parked: false,
    };
    let hold = Hold {
        capability_id: capability_id.clone(),
        grant_index: 0,
        max_invocations: Some(u32::MAX),
        units: 1,
        max_units: Some(u64::MAX),
    };
    let alternative = Alternative { grant_index: 0, holds: vec![hold], price: None };
    Reservation {
        intent,
        alternatives: vec![alternative],
        authority: vec![capability_id],
        resumes: None,
        proofs: Vec::new(),
        approval: None,
        task: None,
    }
}

async fn reserve_and_close(ledger: &dyn Ledger, number: u64) {
    let reserved = ledger.reserve(reservation(number)).await.unwrap();
    let Reserved::Held { intent, .. } = reserved else { return };
    let closes = Some(Closing {
        intent,
        refunds: Vec::new(),
        receipt_id: format!("rcpt-{number}"),
        unanswered: ApprovalState::Cancelled,
        task: None,
        closed_at: 1,
    });
    ledger.append(Entry { closes, ..Entry::new(body(number)) }).await.unwrap();
}

async fn calls(folder: &Path, each: u64) {
    let scratch = scratch(folder);
    let store = open(&scratch.0, Indexing::Off).await;
    let ledger = store.take_slot(None).await.unwrap().ledger;
    run("reserve and append, indexing off", (256, each), move |number| {
        let ledger = Arc::clone(&ledger);
        async move { reserve_and_close(ledger.as_ref(), number).await }
    })
    .await;
}

/// This many stores on one folder, as this many processes have them.
async fn writers(folder: &Path, stores: usize, callers: (u64, u64)) {
    let scratch = scratch(folder);
    let mut runs = Vec::new();
    for number in 0..stores {
        let store = open(&scratch.0, Indexing::Off).await;
        let ledger = store.take_slot(None).await.unwrap().ledger;
        runs.push(tokio::spawn(async move {
            let name = format!("append, {} callers, store {} of {stores}", callers.0, number + 1);
            run(&name, callers, move |number| {
                let ledger = Arc::clone(&ledger);
                async move {
                    ledger.append(Entry::new(body(number))).await.unwrap();
                }
            })
            .await;
            store
        }));
    }
    for run in runs {
        run.await.unwrap().close();
    }
}
