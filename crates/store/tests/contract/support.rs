//! The list of stores, and what tests put into them.

use std::fs;
use std::path::PathBuf;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use chio_core::canonical::Written;
use chio_core::receipt::{RedactionMode, ToolCallAction};
use chio_kernel::Clock;
use chio_kernel::store::{
    Alternative, Appended, ApprovalState, Closing, Entry, Exhausted, Hold, Intent, IntentId,
    Ledger, Opened, Opening, Refund, Reservation, Reserved, SharedStore,
};
use chio_store::{OpenStore, StoreUrl};
use serde_json::{Value, json};

/// Every kind of store; a new one is a line here.
async fn stores() -> [World; 2] {
    [World::memory().await, World::sqlite().await]
}

/// A store of its own for one test.
pub(crate) struct World {
    pub(crate) name: &'static str,
    pub(crate) store: OpenStore,
    _folder: Option<Folder>,
}

impl World {
    async fn memory() -> Self {
        Self { name: "memory", store: open(&StoreUrl::Memory).await, _folder: None }
    }

    async fn sqlite() -> Self {
        let folder = Folder::new();
        let store = open(&StoreUrl::Sqlite(folder.0.join("data"))).await;
        Self { name: "sqlite", store, _folder: Some(folder) }
    }

    pub(crate) fn shared(&self) -> SharedStore {
        self.store.shared()
    }

    pub(crate) async fn ledger(&self) -> Arc<dyn Ledger> {
        self.store.take_slot(None).await.unwrap().ledger
    }
}

async fn open(url: &StoreUrl) -> OpenStore {
    OpenStore::open(url, Arc::new(Still)).await.unwrap()
}

/// The second in which every store is opened.
pub(crate) const NOW: u64 = 1_700_000_000;

/// A clock that stands still.
#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn unix_millis(&self) -> u64 {
        NOW * 1000
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

/// Says on a failure which store it was.
struct Named(&'static str);

impl Drop for Named {
    #[expect(clippy::print_stderr, reason = "the message of a failing test")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the store was: {}", self.0);
        }
    }
}

/// Asks every store the same.
pub(crate) async fn on_each_store(test: impl AsyncFn(&World)) {
    for world in stores().await {
        let named = Named(world.name);
        test(&world).await;
        drop(named);
    }
}

/// A folder that is gone when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("chio-contract-{}-{number}", process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn hold(capability_id: &str, calls: Option<u32>, units: u64, most: Option<u64>) -> Hold {
    let capability_id = capability_id.to_owned();
    Hold { capability_id, grant_index: 0, max_invocations: calls, units, max_units: most }
}

pub(crate) fn alternative(grant_index: u32, holds: Vec<Hold>) -> Alternative {
    Alternative { grant_index, holds, price: None }
}

/// A call under the token `cap`.
pub(crate) fn intent() -> Intent {
    Intent {
        request_id: "req-1".to_owned(),
        capability_id: "cap".to_owned(),
        tool_server: "fs".to_owned(),
        tool_name: "read".to_owned(),
        action: ToolCallAction::new(json!({"path": "a"})).unwrap(),
        redaction: RedactionMode::None,
        policy_hash: "p".to_owned(),
        evidence: Vec::new(),
        metadata: Written::of(&json!({"n": 1})).unwrap(),
        tenant_id: None,
        started_at: 7,
        parked: true,
    }
}

/// A reservation under the token `cap`.
pub(crate) fn reservation(alternatives: Vec<Alternative>) -> Reservation {
    Reservation {
        intent: intent(),
        alternatives,
        authority: vec!["cap".to_owned()],
        resumes: None,
        proofs: Vec::new(),
        approval: None,
        task: None,
    }
}

/// A call that waits for nothing.
pub(crate) fn opening() -> Opening {
    Opening { intent: intent(), resumes: None, proofs: Vec::new(), waits_for: None, claims: None }
}

/// The intent of what was opened.
#[track_caller]
pub(crate) fn opened(opened: Opened) -> IntentId {
    match opened {
        Opened::At(intent) => intent,
        other => panic!("{other:?}"),
    }
}

/// A reservation with one hold.
pub(crate) fn of_one(hold: Hold) -> Reservation {
    reservation(vec![alternative(0, vec![hold])])
}

/// A reservation that counts nothing.
pub(crate) fn free() -> Reservation {
    of_one(hold("cap", None, 0, None))
}

/// The intent of what was held.
#[track_caller]
pub(crate) fn held(reserved: Reserved) -> IntentId {
    match reserved {
        Reserved::Held { intent, .. } => intent,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn exhausted(capability_id: &str, grant_index: u32, what: Exhausted) -> Reserved {
    Reserved::Exhausted { capability_id: capability_id.to_owned(), grant_index, what }
}

pub(crate) fn refund(capability_id: &str, invocations: u32, units: u64) -> Refund {
    Refund { capability_id: capability_id.to_owned(), grant_index: 0, invocations, units }
}

/// The body of a receipt, different for each number.
pub(crate) fn receipt(number: u64) -> Value {
    json!({
        "id": format!("{number:064x}"),
        "capability_id": "cap", "tool_server": "fs", "tool_name": "read",
        "decision": {"verdict": "allow"}, "timestamp": 1000 + number,
        "receipt_kind": "mediated_decision",
        "metadata": {"attribution": {"subject_key": "aa"}},
    })
}

pub(crate) fn entry(body: &Value) -> Entry {
    Entry::new(body.to_string().into_bytes())
}

pub(crate) fn closing(number: u64, intent: IntentId, refunds: Vec<Refund>) -> Entry {
    let receipt_id = format!("{number:064x}");
    let unanswered = ApprovalState::Cancelled;
    let closing = Closing { intent, refunds, receipt_id, unanswered, task: None, closed_at: NOW };
    Entry { closes: Some(closing), ..entry(&receipt(number)) }
}

/// Appends an entry that must find its place.
pub(crate) async fn append(ledger: &dyn Ledger, body: &Value) -> u64 {
    match ledger.append(entry(body)).await.unwrap() {
        Appended::At(seq) => seq,
        Appended::IntentClosed => panic!("there is no intent to be closed"),
    }
}
