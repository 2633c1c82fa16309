//! Audits: a clean store is clean, and whatever is changed in its database is found.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chio_core::canonical;
use chio_core::certificate::KernelCertificate;
use chio_core::checkpoint::KernelCheckpoint;
use chio_core::receipt::LoggedReceipt;
use chio_core::signed::Signed;
use chio_kernel::audit::{AuditReport, AuditTrust, audit};
use chio_store::{OpenStore, StoreUrl};
use chio_testkit::key;
use chio_testkit::process::Folder;
use rusqlite::{Connection, params};
use serde_json::json;

use crate::support::clock::ManualClock;
use crate::support::{Setup, World};

/// A world whose store is in a folder.
struct Kept {
    world: World,
    folder: Folder,
}

impl std::ops::Deref for Kept {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

/// A kernel with a log of seven receipts: two full batches of three, and one more.
async fn seven(setup: Setup) -> World {
    let world = setup.config(|it| it.checkpoint_size = 3).start().await;
    for n in 0..7 {
        world.run_tool(["echo", "effect", "fail"][n % 3], json!({"n": n})).await;
    }
    for _ in 0..5000 {
        if world.checkpoints().await.len() == 2 {
            return world;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("expected two checkpoints");
}

async fn world() -> Kept {
    let folder = Folder::new();
    Kept { world: seven(Setup::in_folder(&folder, 1)).await, folder }
}

/// A world with a second kernel and its log.
async fn world_of_two() -> (Kept, World) {
    let one = world().await;
    let two = seven(Setup::in_folder(&one.folder, 2)).await;
    (one, two)
}

fn trust(world: &World) -> AuditTrust {
    AuditTrust { authorities: vec![world.authority()], kernels: Vec::new() }
}

/// The database in a copy of the store, and the copy's folder.
fn copy(world: &Kept) -> (Connection, PathBuf) {
    let copy = world.folder.path("copy");
    let _ = std::fs::remove_dir_all(&copy);
    std::fs::create_dir(&copy).unwrap();
    let database = copy.join("store.db");
    let original = Connection::open(world.folder.path("store").join("store.db")).unwrap();
    original.execute("VACUUM INTO ?1", [database.to_str().unwrap()]).unwrap();
    (Connection::open(database).unwrap(), copy)
}

async fn open(copy: PathBuf) -> OpenStore {
    let clock = Arc::<ManualClock>::default();
    OpenStore::open_existing(&StoreUrl::Sqlite(copy), clock).await.unwrap()
}

/// Audits a copy of the store that was tampered with.
async fn examine(world: &Kept, tamper: impl FnOnce(&Connection)) -> AuditReport {
    let (database, copy) = copy(world);
    tamper(&database);
    drop(database);
    audit(&*open(copy).await.shared(), &trust(world), |_| {}).await.unwrap()
}

/// Checks that an audit says this, once the database was tampered with like that.
async fn finds(world: &Kept, words: &str, tamper: impl FnOnce(&Connection)) {
    says(&examine(world, tamper).await, 0, words);
}

fn says(report: &AuditReport, log: usize, words: &str) {
    let problems = &report.logs[log].problems;
    assert!(!report.is_clean(), "expected `{words}`, found nothing");
    assert!(problems.iter().any(|it| it.contains(words)), "expected `{words}`, found {problems:?}");
}

/// Where the database has an entry of a log, both from 1.
const fn place(log: i64, seq: i64) -> i64 {
    (log << 40) + seq
}

/// An entry of the first log.
fn body(database: &Connection, seq: i64) -> Vec<u8> {
    let sql = "SELECT body FROM entries WHERE id = ?1";
    database.query_row(sql, [place(1, seq)], |row| row.get(0)).unwrap()
}

fn set_body(database: &Connection, seq: i64, body: &[u8]) {
    put(database, place(1, seq), body);
}

fn put(database: &Connection, place: i64, body: &[u8]) {
    let sql = "INSERT OR REPLACE INTO entries(id, body) VALUES (?1, ?2)";
    database.execute(sql, params![place, body]).unwrap();
}

/// Removes entries of a log from this one on.
fn cut(database: &Connection, log: i64, from: i64) {
    let range = [place(log, from), place(log, 1000)];
    let cut = database.execute("DELETE FROM entries WHERE id BETWEEN ?1 AND ?2", range).unwrap();
    assert!(cut > 0);
}

/// Changes a checkpoint of the first log.
fn change(database: &Connection, seq: i64, change: impl FnOnce(&mut KernelCheckpoint)) {
    let sql = "SELECT body FROM checkpoints WHERE log = 1 AND seq = ?1";
    let body: Vec<u8> = database.query_row(sql, [seq], |row| row.get(0)).unwrap();
    let mut checkpoint = serde_json::from_slice(&body).unwrap();
    change(&mut checkpoint);
    let body = canonical::to_vec(&checkpoint).unwrap();
    let sql = "UPDATE checkpoints SET body = ?2 WHERE log = 1 AND seq = ?1";
    assert_eq!(database.execute(sql, params![seq, body]).unwrap(), 1);
}

/// Changes the certificate of the first log.
fn certify(database: &Connection, certificate: &KernelCertificate) {
    let body = canonical::to_vec(certificate).unwrap();
    assert_eq!(database.execute("UPDATE certificates SET body = ?1", [body]).unwrap(), 1);
}

/// The entry as the holder of another key would write it.
fn resigned(body: &[u8]) -> Vec<u8> {
    let LoggedReceipt::Call(mut receipt) = LoggedReceipt::from_slice(body).unwrap() else {
        panic!("expected a call")
    };
    receipt.kernel_key = key(9).public_key().clone();
    canonical::to_vec(&receipt.signed(&key(9)).unwrap()).unwrap()
}

#[tokio::test]
async fn a_store_that_nobody_changed_is_clean() {
    let world = world().await;
    let mut progress = Vec::new();
    let report = audit(&*world.store, &trust(&world), |at| progress.push(at)).await.unwrap();
    assert!(report.is_clean(), "{report:?}");
    let log = &report.logs[0];
    assert_eq!((log.entries, log.checkpoints, log.pending), (7, 2, 1));
    assert_eq!((log.certified, log.open_intents), (true, 0));
    let last = progress.last().unwrap();
    assert_eq!((last.done, last.total), (7, 7));
    assert!(examine(&world, |_| {}).await.is_clean(), "a copy that nobody tampered with");
}

#[tokio::test]
async fn several_logs_of_one_store_are_audited_together() {
    let (one, two) = world_of_two().await;
    two.kernel.drain(Duration::ZERO).await.unwrap();
    let report = one.audit().await;
    assert!(report.is_clean() && report.logs.len() == 2, "{report:?}");
    assert_ne!(report.logs[0].log_id, report.logs[1].log_id);
}

#[tokio::test]
async fn a_changed_body_is_found() {
    let world = world().await;
    // In a batch that a checkpoint covers, and in the rest that none does yet.
    for n in [1, 6] {
        finds(&world, &format!("entry {}: receipt", n + 1), |database| {
            let text = String::from_utf8(body(database, n + 1)).unwrap();
            let changed = text.replace(&format!("\"n\":{n}"), "\"n\":99");
            assert_ne!(text, changed);
            set_body(database, n + 1, changed.as_bytes());
        })
        .await;
    }
    finds(&world, "this is not a receipt", |database| set_body(database, 3, b"{}")).await;
    // The same receipt in another form.
    finds(&world, "expected the canonical form", |database| {
        set_body(database, 3, &[body(database, 3), b" ".to_vec()].concat());
    })
    .await;
}

#[tokio::test]
async fn a_receipt_of_another_kernel_is_found() {
    let world = world().await;
    let tampered = examine(&world, |database| {
        set_body(database, 4, &resigned(&body(database, 4)));
    })
    .await;
    says(&tampered, 0, "entry 4: it is signed by another kernel");
    says(&tampered, 0, "checkpoint 2: its root is not that of the entries it covers");
}

#[tokio::test]
async fn a_missing_entry_is_found() {
    let world = world().await;
    let remove = |database: &Connection| {
        database.execute("DELETE FROM entries WHERE id = ?1", [place(1, 3)]).unwrap();
    };
    finds(&world, "entries 3 to 3 are missing", remove).await;
    // Renumbered, so that no number is missing.
    finds(&world, "root is not that of the entries", |database| {
        remove(database);
        for seq in 4..8 {
            let sql = "UPDATE entries SET id = id - 1 WHERE id = ?1";
            assert_eq!(database.execute(sql, [place(1, seq)]).unwrap(), 1);
        }
    })
    .await;
    finds(&world, "1 checkpoints cover entries that are not there", |database| {
        cut(database, 1, 5);
    })
    .await;
}

/// What the store had when the audit began, and has no more when the audit comes to it.
#[tokio::test]
async fn what_vanishes_while_the_audit_runs_is_found() {
    let (one, _two) = world_of_two().await;
    type Vanish = fn(&Connection);
    let cases: [(&str, Vanish); 3] = [
        // The end of the log, of which the last entry has no checkpoint yet.
        ("expected 7 entries, found 6", |database| cut(database, 2, 7)),
        ("expected 7 entries, found 0", |database| cut(database, 2, 1)),
        ("1 checkpoints cover entries", |database| {
            let sql = "DELETE FROM checkpoints WHERE log = 2 AND seq = 2";
            assert_eq!(database.execute(sql, []).unwrap(), 1);
        }),
    ];
    for (words, vanish) in cases {
        let (database, copy) = copy(&one);
        let shared = open(copy).await.shared();
        let mut vanish = Some(vanish);
        // The first log has been read by then, and the second has not.
        let during = move |_| {
            if let Some(vanish) = vanish.take() {
                vanish(&database);
            }
        };
        says(&audit(&*shared, &trust(&one), during).await.unwrap(), 1, words);
    }
}

#[tokio::test]
async fn swapped_entries_are_found() {
    let world = world().await;
    for (one, other) in [(1, 2), (2, 5)] {
        finds(&world, "root is not that of the entries", |database| {
            let bodies = (body(database, one), body(database, other));
            set_body(database, one, &bodies.1);
            set_body(database, other, &bodies.0);
        })
        .await;
    }
}

#[tokio::test]
async fn a_doubled_receipt_is_found() {
    let world = world().await;
    finds(&world, "entry 8: its id or its call occurs a second time", |database| {
        set_body(database, 8, &body(database, 2));
    })
    .await;
    finds(&world, "entry 2: its id or its call occurs a second time", |database| {
        set_body(database, 2, &body(database, 1));
    })
    .await;
}

#[tokio::test]
async fn a_receipt_that_is_in_two_logs_is_found() {
    let (one, _two) = world_of_two().await;
    assert!(examine(&one, |_| {}).await.is_clean());
    // Both logs now begin with the first log's first receipt.
    let report = examine(&one, |database| put(database, place(2, 1), &body(database, 1))).await;
    says(&report, 1, "occurs a second time");
}

#[tokio::test]
async fn a_checkpoint_that_is_not_the_kernels_is_found() {
    let world = world().await;
    finds(&world, "checkpoint 1: it is signed by another kernel", |database| {
        change(database, 1, |checkpoint| {
            checkpoint.body.kernel_key = key(9).public_key().clone();
            *checkpoint = checkpoint.clone().signed(&key(9)).unwrap();
        });
    })
    .await;
    finds(&world, "checkpoint 2: ", |database| {
        change(database, 2, |checkpoint| checkpoint.body.issued_at += 1);
    })
    .await;
    finds(&world, "checkpoint 2: ", |database| {
        let mut signature = None;
        change(database, 1, |checkpoint| signature = Some(checkpoint.signature.clone()));
        change(database, 2, |checkpoint| checkpoint.signature = signature.unwrap());
    })
    .await;
}

#[tokio::test]
async fn a_missing_or_doubled_checkpoint_is_found() {
    let world = world().await;
    finds(&world, "expected the first checkpoint", |database| {
        database.execute("DELETE FROM checkpoints WHERE seq = 1", []).unwrap();
    })
    .await;
    finds(&world, "checkpoint 1: ", |database| {
        let sql = "UPDATE checkpoints SET seq = 3 WHERE seq = 2;
                   INSERT INTO checkpoints SELECT log, 2, end_seq, body FROM checkpoints
                   WHERE seq = 1;";
        database.execute_batch(sql).unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_kernel_that_nobody_vouches_for_is_found() {
    let world = world().await;
    finds(&world, "no authority vouches", |database| {
        database.execute("DELETE FROM certificates", []).unwrap();
    })
    .await;
    let known = world.certificate.clone();
    let issue = |store: &str| {
        KernelCertificate::issue(&key(9), known.kernel_key.clone(), store, known.issued_at).unwrap()
    };
    finds(&world, "expected an authority that is trusted, found `", |database| {
        certify(database, &issue(&known.store_id));
    })
    .await;
    finds(&world, "another kernel or store", |database| certify(database, &issue("other"))).await;
    finds(&world, "certificate: ", |database| {
        let issued_at = known.issued_at + 1;
        certify(database, &KernelCertificate { issued_at, ..known.clone() });
    })
    .await;
    finds(&world, "not named after its kernel's key", |database| {
        let other = key(9).public_key().to_hex();
        database.execute("UPDATE logs SET kernel_key = ?1", [other]).unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_pinned_kernel_needs_no_authority() {
    let world = world().await;
    let kernel = world.kernel.public_key().clone();
    let other = key(9).public_key().clone();
    for (authorities, kernels, clean) in [
        (vec![world.authority()], vec![], true),
        (vec![other.clone()], vec![kernel.clone()], true),
        (vec![other.clone()], vec![other], false),
        // An auditor that trusts no key finds nothing clean, whatever vouches for itself.
        (vec![], vec![], false),
        (vec![], vec![key(9).public_key().clone()], false),
    ] {
        let trust = AuditTrust { authorities, kernels };
        let report = audit(&*world.store, &trust, |_| {}).await.unwrap();
        assert_eq!(report.is_clean(), clean, "{trust:?}");
    }
}
