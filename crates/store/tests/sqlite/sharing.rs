//! Two that have opened one folder, as two processes do.

use std::sync::Arc;

use chio_core::crypto::Keypair;
use chio_kernel::store::{Ledger, ReceiptQuery, Reservation, Reserved, StoreError};

use crate::support::{Scratch, append, append_many, free};

/// A call that takes one of this many.
fn one_of(most: u32) -> Reservation {
    let mut reservation = free();
    for hold in reservation.alternatives.iter_mut().flat_map(|way| &mut way.holds) {
        hold.max_invocations = Some(most);
    }
    reservation
}

async fn take(ledger: Arc<dyn Ledger>, tries: usize) -> usize {
    let mut taken = 0;
    for _ in 0..tries {
        taken +=
            usize::from(matches!(ledger.reserve(one_of(50)).await.unwrap(), Reserved::Held { .. }));
    }
    taken
}

#[tokio::test(flavor = "multi_thread")]
async fn budgets_are_exact_across_processes() {
    let scratch = Scratch::new();
    let stores = [scratch.open().await, scratch.open().await];
    let mut tasks = Vec::new();
    for store in &stores {
        let ledger = store.take_slot(None).await.unwrap().ledger;
        for _ in 0..10 {
            tasks.push(tokio::spawn(take(Arc::clone(&ledger), 4)));
        }
    }
    let mut taken = 0;
    for task in tasks {
        taken += task.await.unwrap();
    }
    assert_eq!(taken, 50);
}

#[tokio::test]
async fn a_revocation_and_a_stop_are_seen_at_once_by_the_other() {
    let scratch = Scratch::new();
    let (one, other) = (scratch.open().await, scratch.open().await);
    let ledger = one.take_slot(None).await.unwrap().ledger;
    assert!(matches!(ledger.reserve(one_of(9)).await.unwrap(), Reserved::Held { .. }));
    assert!(other.shared().revoke("cap", 5).await.unwrap());
    assert_eq!(one.shared().epoch().await.unwrap(), 1);
    assert_eq!(ledger.reserve(one_of(9)).await.unwrap(), Reserved::Revoked("cap".to_owned()));
    other.shared().stop(Some("fire".to_owned())).await.unwrap();
    assert_eq!(one.shared().epoch().await.unwrap(), 2);
    assert_eq!(ledger.reserve(one_of(9)).await.unwrap(), Reserved::Stopped("fire".to_owned()));
}

#[tokio::test]
async fn a_slot_is_never_shared() {
    let scratch = Scratch::new();
    let (one, other) = (scratch.open().await, scratch.open().await);
    let mut logs = std::collections::BTreeSet::new();
    let mut slots = Vec::new();
    for store in [&one, &other, &one, &other] {
        let slot = store.take_slot(None).await.unwrap();
        assert!(logs.insert(slot.certificate.log_id.clone()));
        slots.push(slot);
    }
    let key = || Keypair::from_seed(&[9; 32]);
    let held = one.take_slot(Some(key())).await.unwrap();
    assert!(matches!(other.take_slot(Some(key())).await, Err(StoreError::Refused(_))));
    append(held.ledger.as_ref(), 1).await;
    drop(held);
    // The other goes on where the first has ended.
    let slot = other.take_slot(Some(key())).await.unwrap();
    assert_eq!(append(slot.ledger.as_ref(), 2).await, 2);
    drop(slot);
    let slot = one.take_slot(Some(key())).await.unwrap();
    assert_eq!(append(slot.ledger.as_ref(), 3).await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_that_are_taken_at_once_are_different() {
    let scratch = Scratch::new();
    let stores = [scratch.open().await, scratch.open().await];
    let mut tasks = Vec::new();
    for number in 0..12_usize {
        let store = stores[number % 2].clone();
        tasks.push(tokio::spawn(async move { store.take_slot(None).await.unwrap() }));
    }
    let (mut logs, mut slots) = (std::collections::BTreeSet::new(), Vec::new());
    for task in tasks {
        let slot = task.await.unwrap();
        assert!(logs.insert(slot.certificate.log_id.clone()));
        slots.push(slot);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn both_write_and_each_finds_what_the_other_wrote() {
    let scratch = Scratch::new();
    let stores = [scratch.open().await, scratch.open().await];
    let ledgers = [
        stores[0].take_slot(None).await.unwrap().ledger,
        stores[1].take_slot(None).await.unwrap().ledger,
    ];
    tokio::join!(append_many(&ledgers[0], 0..500), append_many(&ledgers[1], 500..1000));
    for store in &stores {
        let shared = store.shared();
        let query = ReceiptQuery { limit: 5000, ..ReceiptQuery::default() };
        assert_eq!(shared.query(&query).await.unwrap().len(), 1000);
        assert!(shared.find(&format!("{:064x}", 777)).await.unwrap().is_some());
    }
}
