//! Logs: entries in order, checkpoints over them, and who writes which.

use std::sync::Arc;

use chio_core::certificate::KernelCertificate;
use chio_core::checkpoint::{Batch, KernelCheckpoint, log_id};
use chio_core::crypto::Keypair;
use chio_core::hash::Hash;
use chio_core::merkle::Frontier;

use crate::support::{append, free, held, on_each_store, receipt};

#[tokio::test]
async fn entries_stand_in_the_order_in_which_they_came() {
    on_each_store(async |world| {
        let slot = world.store.take_slot(None).await.unwrap();
        let log = &slot.certificate.log_id;
        for number in 1..=7 {
            assert_eq!(append(slot.ledger.as_ref(), &receipt(number)).await, number);
        }
        let store = world.shared();
        let found = store.entries(log, 3, 2).await.unwrap();
        assert_eq!(found.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [3, 4]);
        assert_eq!(found[0].body, receipt(3).to_string().into_bytes());
        assert_eq!(store.entries(log, 0, 100).await.unwrap().len(), 7);
        assert_eq!(store.entries(log, 8, 100).await.unwrap(), []);
        assert_eq!(store.entries(log, u64::MAX, 100).await.unwrap(), []);
        assert_eq!(store.entries("another", 1, 100).await.unwrap(), []);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_that_come_at_once_leave_no_gap() {
    on_each_store(async |world| {
        let slot = world.store.take_slot(None).await.unwrap();
        let mut tasks = Vec::new();
        for number in 0..300 {
            let ledger = Arc::clone(&slot.ledger);
            tasks
                .push(tokio::spawn(async move { append(ledger.as_ref(), &receipt(number)).await }));
        }
        let mut places = Vec::new();
        for task in tasks {
            places.push(task.await.unwrap());
        }
        places.sort_unstable();
        assert_eq!(places, (1..=300).collect::<Vec<_>>());
        let found = world.shared().entries(&slot.certificate.log_id, 1, 1000).await.unwrap();
        assert_eq!(found.len(), 300);
    })
    .await;
}

fn checkpoint(
    key: &Keypair,
    chain: &mut Frontier,
    previous: Option<&KernelCheckpoint>,
    (start_seq, end_seq): (u64, u64),
) -> KernelCheckpoint {
    let batch = Batch { start_seq, end_seq, merkle_root: Hash::new([1; 32]) };
    KernelCheckpoint::issue(previous, chain, batch, 9, key).unwrap()
}

#[tokio::test]
async fn checkpoints_are_found_by_number_and_by_what_they_cover() {
    on_each_store(async |world| {
        let slot = world.store.take_slot(None).await.unwrap();
        let mut chain = Frontier::default();
        let first = checkpoint(&slot.key, &mut chain, None, (1, 10));
        let second = checkpoint(&slot.key, &mut chain, Some(&first), (11, 15));
        slot.ledger.checkpoint(first.clone()).await.unwrap();
        slot.ledger.checkpoint(second.clone()).await.unwrap();
        let (store, log) = (world.shared(), &slot.certificate.log_id);
        let all = [first.clone(), second.clone()];
        assert_eq!(store.checkpoints(log, 0, 9).await.unwrap(), all);
        assert_eq!(store.checkpoints(log, 1, 1).await.unwrap(), all[..1]);
        assert_eq!(store.checkpoints(log, 2, 9).await.unwrap(), all[1..]);
        assert_eq!(store.checkpoints(log, 3, 9).await.unwrap(), []);
        let cases =
            [(0, None), (1, Some(&first)), (10, Some(&first)), (11, Some(&second)), (16, None)];
        for (seq, expected) in cases {
            assert_eq!(store.covering(log, seq).await.unwrap().as_ref(), expected, "{seq}");
        }
        // The same again is nothing new; another in its place is refused.
        slot.ledger.checkpoint(first.clone()).await.unwrap();
        let other = checkpoint(&slot.key, &mut Frontier::default(), None, (1, 9));
        assert!(slot.ledger.checkpoint(other).await.is_err());
        let foreign = checkpoint(&Keypair::generate(), &mut Frontier::default(), None, (1, 9));
        assert!(slot.ledger.checkpoint(foreign).await.is_err());
        assert_eq!(store.checkpoints(log, 0, 9).await.unwrap(), all);
    })
    .await;
}

#[tokio::test]
async fn a_summary_counts_what_a_log_has() {
    on_each_store(async |world| {
        let slot = world.store.take_slot(None).await.unwrap();
        let other = world.store.take_slot(None).await.unwrap();
        append(slot.ledger.as_ref(), &receipt(1)).await;
        append(slot.ledger.as_ref(), &receipt(2)).await;
        held(slot.ledger.reserve(free()).await.unwrap());
        let first = checkpoint(&slot.key, &mut Frontier::default(), None, (1, 2));
        slot.ledger.checkpoint(first).await.unwrap();
        let logs = world.shared().logs().await.unwrap();
        assert_eq!(logs.len(), 2);
        let ours = logs.iter().find(|log| log.log_id == slot.certificate.log_id).unwrap();
        assert_eq!((ours.entries, ours.checkpoints, ours.open_intents), (2, 1, 1));
        assert_eq!(&ours.kernel_key, slot.key.public_key());
        assert_eq!(ours.certificates.as_slice(), std::slice::from_ref(&slot.certificate));
        let others = logs.iter().find(|log| log.log_id == other.certificate.log_id).unwrap();
        assert_eq!((others.entries, others.checkpoints, others.open_intents), (0, 0, 0));
    })
    .await;
}

#[tokio::test]
async fn an_admitted_kernel_is_known_by_its_certificate() {
    on_each_store(async |world| {
        let store = world.shared();
        let store_id = store.store_id().await.unwrap();
        let (authority, kernel) = (Keypair::generate(), Keypair::generate());
        let public = kernel.public_key().clone();
        let issued = KernelCertificate::issue(&authority, public.clone(), &store_id, 9).unwrap();
        store.admit(&issued).await.unwrap();
        store.admit(&issued).await.unwrap();
        let logs = store.logs().await.unwrap();
        assert_eq!(logs.len(), 1);
        assert_eq!(logs[0].log_id, log_id(&public));
        assert!(logs[0].certificates.contains(&issued));
        let mut altered = issued;
        altered.issued_at += 1;
        assert!(store.admit(&altered).await.is_err());
    })
    .await;
}
