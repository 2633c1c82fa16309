//! A store that an older program has made.

use std::fs;
use std::path::Path;

use chio_core::checkpoint::log_id;
use chio_core::crypto::Keypair;
use chio_kernel::store::{Appended, Opened, Opening, Reserved, TaskQuota};
use chio_store::{Location, OpenStore};
use rusqlite::{Connection, params};

use crate::support::{Scratch, append, claiming, clock, closing, free, receipt, request, task};

/// The tables of schema 1, as they were.
const FIRST: &str = "
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE logs(
    number INTEGER PRIMARY KEY,
    log_id TEXT NOT NULL UNIQUE,
    kernel_key TEXT NOT NULL,
    intents INTEGER NOT NULL DEFAULT 1
);
CREATE TABLE certificates(
    log INTEGER NOT NULL,
    authority TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY(log, authority)
) WITHOUT ROWID;
CREATE TABLE entries(id INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE intents(id INTEGER PRIMARY KEY, chosen INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE budgets(
    capability_id TEXT NOT NULL,
    grant_index INTEGER NOT NULL,
    invocations INTEGER NOT NULL,
    units INTEGER NOT NULL,
    PRIMARY KEY(capability_id, grant_index)
) WITHOUT ROWID;
CREATE TABLE revocations(
    capability_id TEXT PRIMARY KEY,
    epoch INTEGER NOT NULL,
    at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX revocations_by_epoch ON revocations(epoch);
CREATE TABLE tokens(
    id TEXT PRIMARY KEY,
    subject TEXT NOT NULL,
    issued_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    body BLOB NOT NULL
);
CREATE INDEX tokens_by_subject ON tokens(subject, issued_at, expires_at);
CREATE TABLE checkpoints(
    log INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    end_seq INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY(log, seq)
);
CREATE INDEX checkpoints_by_end ON checkpoints(log, end_seq);
INSERT INTO meta VALUES ('epoch', 1);
INSERT INTO meta VALUES ('store_id', 'old-store');
INSERT INTO revocations VALUES ('revoked', 1, 7);
INSERT INTO budgets VALUES ('cap', 0, 3, 0);
PRAGMA application_id = 0x4368696f;
PRAGMA user_version = 1;
";

fn authority() -> Keypair {
    Keypair::from_seed(&[7; 32])
}

fn kernel() -> Keypair {
    Keypair::from_seed(&[8; 32])
}

fn database(scratch: &Scratch) -> Connection {
    Connection::open(scratch.path().join("store.db")).unwrap()
}

fn version(scratch: &Scratch) -> i64 {
    database(scratch).pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

fn write_key(path: &Path, key: &Keypair) {
    fs::write(path, format!("{}\n", key.seed_hex().as_str())).unwrap();
}

/// A store of schema 1 with a kernel that wrote one entry and left one intent open.
fn old_store() -> Scratch {
    let scratch = Scratch::new();
    let slot = scratch.path().join("kernels/0");
    fs::create_dir_all(&slot).unwrap();
    write_key(&scratch.path().join("authority.key"), &authority());
    write_key(&slot.join("key"), &kernel());
    let old = database(&scratch);
    old.execute_batch(FIRST).unwrap();
    let public = authority().public_key().to_hex();
    old.execute("INSERT INTO meta VALUES ('authority', ?1)", [public]).unwrap();
    let log = params![log_id(kernel().public_key()), kernel().public_key().to_hex()];
    old.execute("INSERT INTO logs VALUES (1, ?1, ?2, 65537)", log).unwrap();
    let place = (1_i64 << 40) + 1;
    let entry = params![place, receipt(1).to_string().into_bytes()];
    old.execute("INSERT INTO entries VALUES (?1, ?2)", entry).unwrap();
    let intent = params![place, serde_json::to_vec(&free()).unwrap()];
    old.execute("INSERT INTO intents VALUES (?1, 0, ?2)", intent).unwrap();
    scratch
}

#[tokio::test]
async fn an_older_store_keeps_everything_and_learns_the_rest() {
    let scratch = old_store();
    let store = scratch.open().await;
    assert_eq!(version(&scratch), 4);
    let shared = store.shared();
    assert_eq!(shared.store_id().await.unwrap(), "old-store");
    assert_eq!(shared.revoked_since(0).await.unwrap().ids, ["revoked"]);
    assert_eq!(shared.epoch().await.unwrap(), 1);
    assert_eq!(store.authority().await.unwrap().unwrap().public_key(), authority().public_key());
    let slot = store.take_slot(None).await.unwrap();
    assert_eq!(slot.key.public_key(), kernel().public_key());
    let log = slot.certificate.log_id.clone();
    let entries = shared.entries(&log, 1, 10).await.unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].body, receipt(1).to_string().into_bytes());
    let open = slot.ledger.open_intents().await.unwrap();
    assert_eq!((open.len(), open[0].reserved, &open[0].reservation), (1, true, &free()));
    let closed = slot.ledger.append(closing(2, open[0].id)).await.unwrap();
    assert_eq!(closed, Appended::At(2));
    // Three of four calls were made.
    let fourth = || {
        let mut last = free();
        last.alternatives[0].holds[0].max_invocations = Some(4);
        last
    };
    assert!(matches!(slot.ledger.reserve(fourth()).await.unwrap(), Reserved::Held { .. }));
    assert!(matches!(slot.ledger.reserve(fourth()).await.unwrap(), Reserved::Exhausted { .. }));
    // What is new works.
    shared.create_task(task("a"), TaskQuota::of_open(1)).await.unwrap().unwrap();
    let all = Opening { waits_for: Some(request("r")), ..claiming("a") };
    assert!(matches!(slot.ledger.open(all).await.unwrap(), Opened::At(_)));
    assert!(shared.approval("r").await.unwrap().is_some());
    let approver = store.approver().await.unwrap().unwrap();
    drop((slot, shared));
    store.close();
    let again = scratch.open().await;
    assert_eq!(again.approver().await.unwrap().unwrap().public_key(), approver.public_key());
    assert_eq!(append(again.take_slot(None).await.unwrap().ledger.as_ref(), 3).await, 3);
}

#[tokio::test]
async fn an_older_store_that_must_exist_learns_the_rest_but_gets_no_key() {
    let scratch = old_store();
    let store = OpenStore::open_existing(&scratch.url(), clock()).await.unwrap();
    assert_eq!(version(&scratch), 4);
    assert!(store.approver().await.unwrap().is_none());
    assert_eq!(store.approver_public().await.unwrap(), None);
    assert!(!scratch.path().join("approver.key").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn many_who_open_an_older_store_at_once_bring_it_up_once() {
    let scratch = old_store();
    let open = || tokio::spawn(OpenStore::open(Location::from(&scratch.url()), clock()));
    let mut stores = Vec::new();
    for opening in std::array::from_fn::<_, 6, _>(|_| open()) {
        stores.push(opening.await.unwrap().unwrap());
    }
    assert_eq!(version(&scratch), 4);
    let first = stores[0].approver_public().await.unwrap();
    assert!(first.is_some());
    for store in &stores {
        assert_eq!(store.approver_public().await.unwrap(), first);
    }
}

#[tokio::test]
async fn a_store_of_the_next_schema_is_refused() {
    let scratch = old_store();
    database(&scratch).pragma_update(None, "user_version", 5).unwrap();
    let refused = scratch.try_open().await.map(drop).unwrap_err().to_string();
    assert!(refused.contains("schema 5, this one knows 4"), "{refused}");
    assert_eq!(version(&scratch), 5);
}
