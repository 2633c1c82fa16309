//! A folder for each test.

use std::fs;
use std::path::PathBuf;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chio_kernel::SystemClock;
use chio_kernel::store::{Appended, Entry, Ledger, StoreResult};
use chio_store::{Indexing, OpenStore, StoreUrl};
use serde_json::{Value, json};

/// A folder that is gone when dropped; the store in it is to be made.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("chio-sqlite-{}-{number}", process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// The folder of the store.
    pub(crate) fn path(&self) -> PathBuf {
        self.0.join("a").join("b")
    }

    pub(crate) fn url(&self) -> StoreUrl {
        StoreUrl::Sqlite(self.path())
    }

    pub(crate) fn try_open(&self) -> StoreResult<OpenStore> {
        OpenStore::open(&self.url(), clock())
    }

    pub(crate) fn open(&self) -> OpenStore {
        self.try_open().unwrap()
    }

    pub(crate) fn open_without_indexing(&self) -> OpenStore {
        OpenStore::open_with(&self.url(), clock(), Indexing::Off).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn clock() -> Arc<SystemClock> {
    Arc::new(SystemClock::default())
}

/// The body of a receipt, different for each number.
pub(crate) fn receipt(number: u64) -> Value {
    json!({
        "id": format!("{number:064x}"),
        "capability_id": format!("cap-{}", number % 7), "tool_server": "fs", "tool_name": "read",
        "decision": {"verdict": "allow"}, "timestamp": 1000 + number / 50,
        "metadata": {"financial": {"cost_charged": number % 10, "currency": "USD"}},
    })
}

pub(crate) async fn append(ledger: &dyn Ledger, number: u64) -> u64 {
    let body = receipt(number).to_string().into_bytes();
    match ledger.append(Entry { body, closes: None }).await.unwrap() {
        Appended::At(seq) => seq,
        Appended::IntentClosed => panic!("there is no intent to be closed"),
    }
}

/// Appends receipts with these numbers, many at once, in whatever order.
pub(crate) async fn append_many(ledger: &Arc<dyn Ledger>, numbers: std::ops::Range<u64>) {
    let mut tasks = Vec::new();
    for number in numbers {
        let ledger = Arc::clone(ledger);
        tasks.push(tokio::spawn(async move { append(ledger.as_ref(), number).await }));
    }
    for task in tasks {
        task.await.unwrap();
    }
}
