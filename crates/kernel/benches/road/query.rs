//! A store with many receipts: memory while it grows, audit, and queries against a small one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chio_kernel::audit::{AuditTrust, audit};
use chio_kernel::store::{ReceiptOutcome, ReceiptQuery, SharedStore};
use tokio::task::JoinSet;

use crate::rig::{Place, Rig, Tool};
use crate::throughput::THREADS;
use crate::{Scale, median};

/// Callers at once while the store is filled.
const CALLERS: usize = 256;

pub(crate) fn large_store(scale: Scale) {
    let small = Rig::new(Place::Indexed, THREADS);
    fill(&small, scale.large / 100);
    let large = Rig::new(Place::Indexed, THREADS);
    // The database's caches fill at first; after that, nothing grows with the log.
    let mut filled = 0;
    let mut sizes = Vec::new();
    for tenths in [1, 4, 7, 10] {
        let until = scale.large * tenths / 10;
        fill(&large, until - filled);
        filled = until;
        sizes.push(format!("{} MiB after {filled}", resident()));
    }
    println!("resident memory: {} calls", sizes.join(", "));
    let start = Instant::now();
    let shared = large.store.shared();
    let authority = large.runtime.block_on(large.store.authority_public()).unwrap();
    let authorities = authority.into_iter().collect();
    let trust = AuditTrust { authorities, ..AuditTrust::default() };
    let report = large.runtime.block_on(audit(&*shared, &trust, |_| ())).unwrap();
    assert!(report.is_clean(), "{report:?}");
    let rate = scale.large as f64 / start.elapsed().as_secs_f64();
    println!("audit: {rate:.0} receipts a second");
    let (small_store, large_store) = (small.store.shared(), large.store.shared());
    for (name, query) in queries(&large) {
        let few = small.runtime.block_on(time(&small_store, &query));
        let many = large.runtime.block_on(time(&large_store, &query));
        println!(
            "query by {name:<11} {few:>6.0} µs in {} receipts, {many:>6.0} µs in {}",
            scale.large / 100,
            scale.large
        );
    }
}

fn fill(rig: &Rig, calls: u64) {
    rig.runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for number in 0..calls {
            if tasks.len() >= CALLERS {
                tasks.join_next().await.unwrap().unwrap();
            }
            let (tool, arguments) = if number % 100 == 0 {
                ("paid", serde_json::json!({}))
            } else {
                Tool::Echo.arguments(0)
            };
            let (kernel, call) = (rig.kernel.clone(), rig.call(tool, arguments));
            let caller = Arc::clone(&rig.caller);
            tasks.spawn(async move { drop(kernel.evaluate(call, caller).await.unwrap()) });
        }
        while tasks.join_next().await.is_some() {}
    });
}

fn queries(rig: &Rig) -> Vec<(&'static str, ReceiptQuery)> {
    let all = || ReceiptQuery { newest_first: true, limit: 50, ..ReceiptQuery::default() };
    let subject = Some(rig.token.subject.to_hex());
    vec![
        ("nothing", all()),
        ("capability", ReceiptQuery { capability_id: Some(rig.token.id.clone()), ..all() }),
        ("subject", ReceiptQuery { subject, ..all() }),
        ("server", ReceiptQuery { tool_server: Some("demo".to_owned()), ..all() }),
        ("tool", ReceiptQuery { tool_name: Some("paid".to_owned()), ..all() }),
        ("outcome", ReceiptQuery { outcome: Some(ReceiptOutcome::Deny), ..all() }),
        ("time", ReceiptQuery { since: Some(1), until: Some(u64::MAX / 4), ..all() }),
        ("cost", ReceiptQuery { min_cost: Some(1), ..all() }),
        ("trace", ReceiptQuery { trace_id: Some("0".repeat(64)), ..all() }),
    ]
}

async fn time(store: &SharedStore, query: &ReceiptQuery) -> f64 {
    let mut times = Vec::new();
    // Once to warm up: the first query may bring the index up to date.
    store.query(query).await.unwrap();
    for _ in 0..50 {
        let start = Instant::now();
        store.query(query).await.unwrap();
        times.push(start.elapsed().as_secs_f64() * 1e6);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    median(times)
}

/// Resident memory of this process, in MiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    let kilobytes = line.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok());
    kilobytes.unwrap_or_default() / 1024
}
