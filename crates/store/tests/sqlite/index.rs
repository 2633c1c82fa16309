//! The index: it can be lost, damaged or behind, and every answer is still whole.

use std::fs;
use std::path::Path;

use chio_kernel::store::{ReceiptQuery, SharedStore};
use chio_store::OpenStore;

use crate::support::{Scratch, append_many};

fn queries() -> Vec<ReceiptQuery> {
    let ask = || ReceiptQuery { limit: 300, ..ReceiptQuery::default() };
    vec![
        ask(),
        ReceiptQuery { capability_id: Some("cap-3".to_owned()), ..ask() },
        ReceiptQuery { since: Some(1100), until: Some(1105), ..ask() },
        ReceiptQuery { min_cost: Some(9), newest_first: true, ..ask() },
    ]
}

/// The receipts that each query finds.
async fn answers(store: &OpenStore) -> Vec<Vec<Vec<u8>>> {
    let (shared, mut answers) = (store.shared(), Vec::new());
    for query in queries() {
        let rows = shared.query(&query).await.unwrap();
        answers.push(rows.into_iter().map(|row| row.body).collect());
    }
    answers
}

type Damage = fn(&Path);

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_is_lost_or_damaged_is_made_again() {
    let scratch = Scratch::new();
    let store = scratch.open().await;
    let slot = store.take_slot(None).await.unwrap();
    append_many(&slot.ledger, 0..6000).await;
    let expected = answers(&store).await;
    assert!(expected.iter().all(|rows| rows.len() == 300), "every query finds something");
    drop((slot, store));
    let path = scratch.path().join("index.db");
    let damages: [(&str, Damage); 5] = [
        ("lost", |path| fs::remove_file(path).unwrap()),
        ("no database", |path| fs::write(path, "x".repeat(9000)).unwrap()),
        ("cut short", |path| {
            let bytes = fs::read(path).unwrap();
            fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
        }),
        ("of another store", |path| {
            let index = rusqlite::Connection::open(path).unwrap();
            index.execute("UPDATE meta SET store_id = 'another'", []).unwrap();
        }),
        ("of another schema", |path| {
            let index = rusqlite::Connection::open(path).unwrap();
            index.execute_batch("DROP TABLE zones; PRAGMA user_version = 77").unwrap();
        }),
    ];
    for (name, damage) in damages {
        damage(&path);
        assert_eq!(answers(&scratch.open().await).await, expected, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_with_broken_pages_is_made_again() {
    let scratch = Scratch::new();
    let store = scratch.open_without_indexing().await;
    let slot = store.take_slot(None).await.unwrap();
    append_many(&slot.ledger, 0..3000).await;
    let expected = answers(&store).await;
    drop((slot, store));
    let path = scratch.path().join("index.db");
    let mut bytes = fs::read(&path).unwrap();
    let length = bytes.len();
    // All but the first page, which says that it is ours.
    bytes[4096..length].fill(0x5a);
    fs::write(&path, bytes).unwrap();
    assert_eq!(answers(&scratch.open().await).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_is_ahead_of_the_store_is_made_again() {
    let scratch = Scratch::new();
    let store = scratch.open_without_indexing().await;
    let slot = store.take_slot(None).await.unwrap();
    append_many(&slot.ledger, 0..100).await;
    assert_eq!(answers(&store).await[0].len(), 100);
    drop((slot, store));
    // As after a backup was put back.
    let database = rusqlite::Connection::open(scratch.path().join("store.db")).unwrap();
    database.execute("DELETE FROM entries WHERE id & 0xffffffffff > 60", []).unwrap();
    drop(database);
    let store = scratch.open_without_indexing().await;
    let slot = store.take_slot(None).await.unwrap();
    append_many(&slot.ledger, 100..105).await;
    assert_eq!(answers(&store).await[0].len(), 65);
}

/// Every receipt's number, page by page.
async fn pages(store: &SharedStore, mut query: ReceiptQuery) -> Vec<u64> {
    let mut numbers = Vec::new();
    loop {
        let rows = store.query(&query).await.unwrap();
        let Some(last) = rows.last() else { return numbers };
        query.cursor = Some(last.cursor);
        numbers.extend(rows.iter().map(|row| {
            let body: serde_json::Value = serde_json::from_slice(&row.body).unwrap();
            u64::from_str_radix(body["id"].as_str().unwrap(), 16).unwrap()
        }));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_over_a_long_log_are_complete_in_both_directions() {
    const ALL: u64 = 20_000;
    let scratch = Scratch::new();
    let store = scratch.open().await;
    let slot = store.take_slot(None).await.unwrap();
    for start in (0..ALL).step_by(1000) {
        append_many(&slot.ledger, start..start + 1000).await;
    }
    let ask = || ReceiptQuery { limit: 700, ..ReceiptQuery::default() };
    type Matches = fn(u64) -> bool;
    let cases: Vec<(ReceiptQuery, Matches)> = vec![
        (ReceiptQuery { since: Some(1390), ..ask() }, |n| n / 50 >= 390),
        (ReceiptQuery { until: Some(1010), ..ask() }, |n| n / 50 <= 10),
        (ReceiptQuery { since: Some(1100), until: Some(1180), ..ask() }, |n| {
            (100..=180).contains(&(n / 50))
        }),
        (ReceiptQuery { since: Some(9999), ..ask() }, |_| false),
        // Too many to be sorted, and few enough to be.
        (ReceiptQuery { min_cost: Some(3), ..ask() }, |n| n % 10 >= 3),
        (ReceiptQuery { min_cost: Some(4), max_cost: Some(4), ..ask() }, |n| n % 10 == 4),
        (
            ReceiptQuery {
                capability_id: Some("cap-2".to_owned()),
                since: Some(1200),
                max_cost: Some(8),
                ..ask()
            },
            |n| n % 7 == 2 && n / 50 >= 200 && n % 10 <= 8,
        ),
    ];
    for (query, matches) in cases {
        let expected: Vec<u64> = (0..ALL).filter(|number| matches(*number)).collect();
        for newest_first in [false, true] {
            let query = ReceiptQuery { newest_first, ..query.clone() };
            let mut found = pages(&store.shared(), query.clone()).await;
            found.sort_unstable();
            assert_eq!(found, expected, "{query:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_does_not_index_still_finds_everything() {
    let scratch = Scratch::new();
    let store = scratch.open_without_indexing().await;
    let slot = store.take_slot(None).await.unwrap();
    append_many(&slot.ledger, 0..10_000).await;
    assert!(!scratch.path().join("index.db").exists());
    let query = ReceiptQuery {
        capability_id: Some("cap-0".to_owned()),
        limit: 9000,
        ..ReceiptQuery::default()
    };
    assert_eq!(store.shared().query(&query).await.unwrap().len(), 1429);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_is_taken_away_under_its_writer_is_made_again_and_cursors_tell() {
    let scratch = Scratch::new();
    let store = scratch.open().await;
    let slot = store.take_slot(None).await.unwrap();
    append_many(&slot.ledger, 0..50).await;
    let ask = || ReceiptQuery { limit: 10, ..ReceiptQuery::default() };
    let first = store.shared().query(&ask()).await.unwrap();
    let next = ReceiptQuery { cursor: Some(first[9].cursor), ..ask() };
    assert_eq!(store.shared().query(&next).await.unwrap().len(), 10);
    for suffix in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(scratch.path().join(format!("index.db{suffix}")));
    }
    append_many(&slot.ledger, 50..60).await;
    let all = ReceiptQuery { limit: 100, ..ReceiptQuery::default() };
    assert_eq!(store.shared().query(&all).await.unwrap().len(), 60);
    // Places in the old index say nothing about the new one.
    let error = store.shared().query(&next).await.unwrap_err().to_string();
    assert!(error.contains("begin anew"), "{error}");
}
