//! A folder for each test.

use std::fs;
use std::path::PathBuf;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chio_core::canonical::Written;
use chio_core::crypto::{Keypair, PublicKey};
use chio_core::governance::GovernedTransactionIntent;
use chio_core::protocol::DiscoveryProtocol;
use chio_core::receipt::{RedactionMode, ToolCallAction};
use chio_kernel::SystemClock;
use chio_kernel::store::{
    Alternative, Appended, ApprovalRequest, ApprovalState, Closing, Entry, Hold, Intent, IntentId,
    Ledger, NewTask, Opening, Reservation, StoreResult, TaskClaim,
};
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

    pub(crate) async fn try_open(&self) -> StoreResult<OpenStore> {
        OpenStore::open(&self.url(), clock()).await
    }

    pub(crate) async fn open(&self) -> OpenStore {
        self.try_open().await.unwrap()
    }

    pub(crate) async fn open_without_indexing(&self) -> OpenStore {
        OpenStore::open_with(&self.url(), clock(), Indexing::Off).await.unwrap()
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
    match ledger.append(Entry::new(body)).await.unwrap() {
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

/// A call under the token `cap`.
pub(crate) fn intent() -> Intent {
    Intent {
        request_id: "req".to_owned(),
        capability_id: "cap".to_owned(),
        tool_server: "fs".to_owned(),
        tool_name: "read".to_owned(),
        action: ToolCallAction::new(json!({})).unwrap(),
        redaction: RedactionMode::None,
        policy_hash: "p".to_owned(),
        evidence: Vec::new(),
        metadata: Written::of(&json!({})).unwrap(),
        tenant_id: None,
        started_at: 7,
        parked: true,
    }
}

/// A reservation that counts nothing.
pub(crate) fn free() -> Reservation {
    let hold = Hold {
        capability_id: "cap".to_owned(),
        grant_index: 0,
        max_invocations: None,
        units: 0,
        max_units: None,
    };
    Reservation {
        intent: intent(),
        alternatives: vec![Alternative { grant_index: 0, holds: vec![hold], price: None }],
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

/// The end of a call that its kernel did not finish.
pub(crate) fn closing(number: u64, intent: IntentId) -> Entry {
    let closes = Closing {
        intent,
        refunds: Vec::new(),
        receipt_id: format!("{number:064x}"),
        unanswered: ApprovalState::Cancelled,
        task: None,
        closed_at: 1,
    };
    Entry { closes: Some(closes), ..Entry::new(receipt(number).to_string().into_bytes()) }
}

/// Who calls and who has tasks.
pub(crate) fn caller() -> PublicKey {
    Keypair::from_seed(&[2; 32]).public_key().clone()
}

/// A request for approval that waits until the second 100.
pub(crate) fn request(id: &str) -> ApprovalRequest {
    let governed = json!({"id": "i", "server_id": "fs", "tool_name": "read", "purpose": "work"});
    let governed: GovernedTransactionIntent = serde_json::from_value(governed).unwrap();
    ApprovalRequest {
        id: id.to_owned(),
        request_id: "req".to_owned(),
        subject: caller(),
        capability_id: "cap".to_owned(),
        server_id: "fs".to_owned(),
        tool_name: "read".to_owned(),
        action: ToolCallAction::new(json!({})).unwrap(),
        intent: governed,
        intent_hash: "hash".to_owned(),
        asked_by: "guard".to_owned(),
        reason: "it is late".to_owned(),
        requested_at: 1,
        expires_at: 100,
        principal: None,
        trace_id: None,
        approvers: Vec::new(),
    }
}

/// A task that expires in the second 100.
pub(crate) fn task(id: &str) -> NewTask {
    NewTask {
        request: b"call with token".to_vec(),
        created_at: 1,
        expires_at: 100,
        ..NewTask::new(id, caller(), DiscoveryProtocol::Acp, "fs")
    }
}

/// A call that runs a task.
pub(crate) fn claiming(id: &str) -> Opening {
    Opening { claims: Some(TaskClaim { id: id.to_owned(), owner: caller(), now: 1 }), ..opening() }
}
