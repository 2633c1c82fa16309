//! What the writer promises when something goes wrong.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use chio_core::canonical::Written;
use chio_core::crypto::{Keypair, PublicKey};
use chio_core::protocol::DiscoveryProtocol;
use chio_core::receipt::{RedactionMode, ToolCallAction};
use chio_kernel::SystemClock;
use chio_kernel::store::{
    Alternative, Appended, ApprovalState, Closing, Entry, Intent, LogStore, NewTask, ProofUse,
    Reservation, Reserved, RevocationStore, StoreError, TaskIndex, TaskQuota, TaskStore,
    UseRefused,
};

use super::SqliteStore;
use super::database::Database;
use super::inbox::OPEN_OF_SUBJECT;
use super::task_index::{BY_MESSAGE, DUE, FOREIGN_CONTEXT, HAS_EXPIRED};
use super::tasks::OPEN_OF_ACCOUNT;
use crate::keys::MemoryKeys;
use crate::{Indexing, Mode, OpenStore, Slot};

/// A folder that is gone when dropped.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("chio-store-{}-{number}", process::id())))
    }

    pub(crate) fn open(&self, indexing: Indexing) -> Arc<SqliteStore> {
        let keys = Arc::new(MemoryKeys::new());
        Arc::new(
            SqliteStore::open(&self.0, keys, &SystemClock::default(), Mode::Made(indexing))
                .unwrap(),
        )
    }
}

/// Takes a kernel's place in the store.
async fn take_slot(store: &Arc<SqliteStore>) -> Slot {
    let (keys, clock) = (Arc::clone(&store.keys), Arc::new(SystemClock::default()));
    let open = OpenStore { backend: Arc::<SqliteStore>::clone(store), keys, clock };
    open.take_slot(None).await.unwrap()
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn entry(text: &str) -> Entry {
    Entry::new(text.as_bytes().to_vec())
}

/// Keeps the writer busy, so that what follows becomes one group.
fn busy(_: &mut Database) -> Result<(), StoreError> {
    thread::sleep(Duration::from_millis(30));
    Ok(())
}

#[tokio::test]
async fn a_member_that_fails_half_way_does_not_fail_its_neighbours() {
    let scratch = Scratch::new();
    let store = scratch.open(Indexing::Off);
    let slot = take_slot(&store).await;
    let log = store.logs().await.unwrap().len();
    assert_eq!(log, 1);
    let half = store.writer.run(|database| {
        database.append(1, &entry("half"))?;
        database.revoke("half", 1)?;
        Err::<(), _>(StoreError::Refused("half-way".to_owned()))
    });
    let broken = store.writer.run(|database| {
        let sql = "INSERT INTO entries(id, body) VALUES (1, NULL)";
        database.connection().execute(sql, []).map_err(super::failed)
    });
    let (_, first, half, second, broken, third) = tokio::join!(
        store.writer.run(busy),
        slot.ledger.append(entry("first")),
        half,
        slot.ledger.append(entry("second")),
        broken,
        slot.ledger.append(entry("third")),
    );
    assert_eq!(first.unwrap(), Appended::At(1));
    assert_eq!(half, Err(StoreError::Refused("half-way".to_owned())));
    assert_eq!(second.unwrap(), Appended::At(2));
    assert!(matches!(broken, Err(StoreError::Damaged(_))));
    assert_eq!(third.unwrap(), Appended::At(3));
    let entries = store.entries(&slot.certificate.log_id, 1, 10).await.unwrap();
    let bodies: Vec<_> = entries.iter().map(|entry| entry.body.as_slice()).collect();
    assert_eq!(bodies, [b"first".as_slice(), b"second", b"third"]);
    assert_eq!(store.epoch().await.unwrap(), 0);
}

/// Lets the database grow to this many pages.
async fn set_room(store: &SqliteStore, pages: i64) {
    let set = move |database: &mut Database| {
        let pragma = format!("PRAGMA max_page_count = {pages}");
        database
            .connection()
            .query_row(&pragma, [], |row| row.get::<_, i64>(0))
            .map_err(super::failed)
    };
    store.writer.run(set).await.unwrap();
}

#[tokio::test]
async fn a_full_disk_refuses_and_service_resumes_when_there_is_room() {
    let scratch = Scratch::new();
    let store = scratch.open(Indexing::Off);
    let slot = take_slot(&store).await;
    let large = "x".repeat(100_000);
    assert_eq!(slot.ledger.append(entry(&large)).await.unwrap(), Appended::At(1));
    set_room(&store, 1).await;
    let tries = [slot.ledger.append(entry(&large)), slot.ledger.append(entry(&large))];
    let (_, [first, second]) = tokio::join!(store.writer.run(busy), async {
        let [first, second] = tries;
        let (first, second) = tokio::join!(first, second);
        [first, second]
    });
    for refused in [first, second] {
        let error = refused.unwrap_err();
        assert!(
            matches!(&error, StoreError::Unavailable(text) if text.contains("full")),
            "{error}"
        );
    }
    assert_eq!(store.epoch().await.unwrap(), 0);
    assert_eq!(store.entries(&slot.certificate.log_id, 1, 10).await.unwrap().len(), 1);
    set_room(&store, 1 << 20).await;
    assert_eq!(slot.ledger.append(entry(&large)).await.unwrap(), Appended::At(2));
    assert!(store.revoke("a", 1).await.unwrap());
}

#[tokio::test]
async fn nobody_hangs_when_the_writer_is_gone() {
    let scratch = Scratch::new();
    let store = scratch.open(Indexing::Off);
    let slot = take_slot(&store).await;
    let die = store.writer.run(|_| -> Result<(), StoreError> { panic!("a test of the end") });
    let (died, queued) = tokio::join!(die, slot.ledger.append(entry("queued")));
    assert!(matches!(died, Err(StoreError::Unavailable(_))));
    assert!(matches!(queued, Err(StoreError::Unavailable(_))));
    let later = slot.ledger.append(entry("later")).await;
    assert!(matches!(later, Err(StoreError::Unavailable(_))));
}

#[tokio::test]
async fn closing_finishes_what_is_queued_and_answers_those_who_come_later() {
    let scratch = Scratch::new();
    let store = scratch.open(Indexing::On);
    let slot = take_slot(&store).await;
    let queued = tokio::spawn({
        let ledger = Arc::clone(&slot.ledger);
        async move { ledger.append(entry("queued")).await }
    });
    tokio::task::yield_now().await;
    store.close();
    assert_eq!(queued.await.unwrap().unwrap(), Appended::At(1));
    let later = slot.ledger.append(entry("later")).await;
    assert!(matches!(later, Err(StoreError::Unavailable(_))));
}

#[tokio::test]
async fn the_write_ahead_log_does_not_grow_without_bound() {
    let scratch = Scratch::new();
    let store = scratch.open(Indexing::Off);
    let slot = take_slot(&store).await;
    let large = "x".repeat(4 << 20);
    for _ in 0..64 {
        slot.ledger.append(entry(&large)).await.unwrap();
    }
    let length = fs::metadata(scratch.0.join("store.db-wal")).unwrap().len();
    assert!(length < 160 << 20, "{length}");
}

#[tokio::test]
async fn the_write_ahead_log_leaves_room_on_a_small_disk() {
    let scratch = Scratch::new();
    fs::create_dir(&scratch.0).unwrap();
    let mount =
        |options: &[&str]| process::Command::new("mount").args(options).arg(&scratch.0).status();
    let mounted = mount(&["-t", "tmpfs", "-o", "size=48m,mode=700", "tmpfs"]);
    if !mounted.is_ok_and(|status| status.success()) {
        // As in the tests of crashes: another user cannot show it.
        writeln!(std::io::stderr(), "skipped: no file system can be mounted").unwrap();
        return;
    }
    let store = scratch.open(Indexing::Off);
    let slot = take_slot(&store).await;
    let large = "x".repeat(1 << 20);
    let mut written = 0;
    while written < 36 && slot.ledger.append(entry(&large)).await.is_ok() {
        written += 1;
    }
    let length = fs::metadata(scratch.0.join("store.db-wal")).unwrap().len();
    drop((store, slot));
    let _ = process::Command::new("umount").arg("-l").arg(&scratch.0).status();
    assert_eq!(written, 36);
    assert!(length < 8 << 20, "{length}");
}

fn reservation() -> Reservation {
    let intent = Intent {
        request_id: "req".to_owned(),
        capability_id: "cap".to_owned(),
        tool_server: "fs".to_owned(),
        tool_name: "read".to_owned(),
        action: ToolCallAction::new(serde_json::json!({})).unwrap(),
        redaction: RedactionMode::None,
        policy_hash: "p".to_owned(),
        evidence: Vec::new(),
        metadata: Written::of(&serde_json::json!({})).unwrap(),
        tenant_id: None,
        started_at: 7,
        parked: false,
    };
    Reservation {
        intent,
        alternatives: vec![Alternative { grant_index: 0, holds: Vec::new(), price: None }],
        authority: vec!["cap".to_owned()],
        resumes: None,
        proofs: Vec::new(),
        approval: None,
        task: None,
    }
}

#[tokio::test]
async fn a_plain_call_asks_nothing_of_the_tables_that_others_need() {
    let scratch = Scratch::new();
    let store = scratch.open(Indexing::Off);
    let slot = take_slot(&store).await;
    // A call that looked into one of these would fail.
    let drop_them = |database: &mut Database| {
        let tables = ["proofs", "approval_uses", "approvals", "tasks"];
        let sql: String = tables.map(|table| format!("DROP TABLE {table};")).concat();
        database.connection().execute_batch(&sql).map_err(super::failed)
    };
    store.writer.run(drop_them).await.unwrap();
    let Reserved::Held { intent, .. } = slot.ledger.reserve(reservation()).await.unwrap() else {
        panic!("nothing refuses it")
    };
    let closes = Closing {
        intent,
        refunds: Vec::new(),
        receipt_id: "rcpt".to_owned(),
        unanswered: ApprovalState::Cancelled,
        task: None,
        closed_at: 1,
    };
    let closed = Entry { closes: Some(closes), ..entry("closed") };
    assert_eq!(slot.ledger.append(closed).await.unwrap(), Appended::At(1));
    assert_eq!(slot.ledger.open_intents().await.unwrap(), []);
}

#[tokio::test]
async fn a_full_table_of_proofs_refuses_until_something_in_it_has_expired() {
    let scratch = Scratch::new();
    let store = scratch.open(Indexing::Off);
    let slot = take_slot(&store).await;
    let limit = |database: &mut Database| {
        database.most_proofs = 2;
        Ok(())
    };
    store.writer.run(limit).await.unwrap();
    let reserve = async |key: &str, now| {
        let (key, expires_at) = (key.to_owned(), now + 10);
        let proof = ProofUse { key, issued_at: now, expires_at, now };
        let reserved = slot.ledger.reserve(Reservation { proofs: vec![proof], ..reservation() });
        match reserved.await.unwrap() {
            Reserved::Held { .. } => None,
            Reserved::Refused(refused) => Some(refused),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(reserve("a", 1).await, None);
    assert_eq!(reserve("b", 1).await, None);
    assert_eq!(reserve("c", 10).await, Some(UseRefused::ProofsFull));
    assert_eq!(reserve("a", 10).await, Some(UseRefused::ProofUsed));
    assert_eq!(reserve("c", 11).await, None);
    let kept = |database: &mut Database| {
        let sql = "SELECT (SELECT count(*) FROM proofs), value FROM meta WHERE key = 'proofs'";
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
        database.connection().query_row(sql, [], read).map_err(super::failed)
    };
    assert_eq!(store.writer.run(kept).await.unwrap(), (1, 1));
}

fn owner() -> PublicKey {
    Keypair::from_seed(&[1; 32]).public_key().clone()
}

/// A task with a request of this size that expires in the second 100.
async fn create_task(store: &SqliteStore, id: &str, size: usize) {
    let task = NewTask {
        request: vec![7; size],
        created_at: 1,
        expires_at: 100,
        ..NewTask::new(id, owner(), DiscoveryProtocol::A2a, "fs")
    };
    store.create_task(task, TaskQuota::of_open(9)).await.unwrap().unwrap();
}

#[tokio::test]
async fn nobody_writes_when_there_is_no_task_to_forget() {
    let scratch = Scratch::new();
    let store = scratch.open(Indexing::Off);
    create_task(&store, "a", 10).await;
    store.writer.stop();
    assert_eq!(store.forget_expired(99).await, Ok(0));
    // A write is refused now.
    assert!(matches!(store.forget_expired(100).await, Err(StoreError::Unavailable(_))));
}

#[tokio::test]
async fn large_tasks_are_forgotten_a_few_at_a_time() {
    let scratch = Scratch::new();
    let store = scratch.open(Indexing::Off);
    for (id, mebibytes) in [("a", 7), ("b", 7), ("c", 7), ("d", 17)] {
        create_task(&store, id, mebibytes << 20).await;
    }
    for expected in [2, 1, 1, 0] {
        assert_eq!(store.forget_expired(100).await, Ok(expected));
    }
}

#[tokio::test]
async fn what_is_asked_often_is_found_by_an_index() {
    let scratch = Scratch::new();
    let store = scratch.open(Indexing::Off);
    let cases = [
        (HAS_EXPIRED, "SEARCH tasks USING INDEX tasks_by_end (expires_at<?)"),
        (OPEN_OF_ACCOUNT, "SEARCH tasks USING INDEX tasks_open (account=?)"),
        (BY_MESSAGE, "SEARCH tasks USING INDEX tasks_by_message (message=?)"),
        (FOREIGN_CONTEXT, "SEARCH tasks USING INDEX tasks_by_context (context=?)"),
        (DUE, "SEARCH tasks USING INDEX tasks_due (protocol=? AND due_at>? AND due_at<?)"),
        (OPEN_OF_SUBJECT, "SEARCH approvals USING INDEX approvals_by_subject (subject=?)"),
    ];
    let explain = move |database: &mut Database| {
        let plan = |sql: &str| {
            let mut statement =
                database.connection().prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
            let mut rows = statement.raw_query();
            rows.next()?.map(|row| row.get::<_, String>(3)).transpose()
        };
        for (sql, expected) in cases {
            assert_eq!(plan(sql).map_err(super::failed)?.as_deref(), Some(expected));
        }
        Ok(())
    };
    store.writer.run(explain).await.unwrap();
}
