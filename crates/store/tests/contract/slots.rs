//! Slots: no kernel writes a log that another holds, and what a kernel left open is found.

use chio_core::checkpoint::log_id;
use chio_core::crypto::Keypair;
use chio_core::signed::Signed;
use chio_kernel::store::{Appended, StoreError};

use crate::support::{append, closing, free, held, on_each_store, receipt};

#[tokio::test]
async fn a_slot_comes_with_the_word_of_the_authority() {
    on_each_store(async |world| {
        let slot = world.store.take_slot(None).await.unwrap();
        let authority = world.store.authority().await.unwrap().unwrap();
        let certificate = &slot.certificate;
        certificate.check_signature().unwrap();
        assert_eq!(&certificate.authority, authority.public_key());
        assert_eq!(&certificate.kernel_key, slot.key.public_key());
        assert_eq!(certificate.store_id, world.shared().store_id().await.unwrap());
    })
    .await;
}

#[tokio::test]
async fn a_held_slot_is_not_given_away_and_a_free_one_is_used_again() {
    on_each_store(async |world| {
        let first = world.store.take_slot(None).await.unwrap();
        let second = world.store.take_slot(None).await.unwrap();
        let first_log = first.certificate.log_id.clone();
        assert_ne!(first_log, second.certificate.log_id);
        append(first.ledger.as_ref(), &receipt(1)).await;
        let certificate = first.certificate.clone();
        drop(first);
        let again = world.store.take_slot(None).await.unwrap();
        assert_eq!(again.certificate, certificate);
        assert_eq!(append(again.ledger.as_ref(), &receipt(2)).await, 2);
        assert_eq!(world.shared().logs().await.unwrap().len(), 2);
    })
    .await;
}

#[tokio::test]
async fn a_key_of_ones_own_has_its_own_slot() {
    on_each_store(async |world| {
        let key = || Keypair::from_seed(&[9; 32]);
        let slot = world.store.take_slot(Some(key())).await.unwrap();
        assert_eq!(slot.certificate.log_id, log_id(key().public_key()));
        let second = world.store.take_slot(Some(key())).await.unwrap_err();
        assert!(
            matches!(&second, StoreError::Refused(text) if text.contains("in use")),
            "{second}"
        );
        append(slot.ledger.as_ref(), &receipt(1)).await;
        drop(slot);
        // The store does not have its secret, so no other kernel gets it.
        let other = world.store.take_slot(None).await.unwrap();
        assert_ne!(other.certificate.log_id, log_id(key().public_key()));
        let again = world.store.take_slot(Some(key())).await.unwrap();
        assert_eq!(append(again.ledger.as_ref(), &receipt(2)).await, 2);
    })
    .await;
}

#[tokio::test]
async fn what_a_kernel_left_open_is_swept_by_another() {
    on_each_store(async |world| {
        let survivor = world.store.take_slot(None).await.unwrap();
        let lost = world.store.take_slot(None).await.unwrap();
        let intent = held(lost.ledger.reserve(free()).await.unwrap());
        let done = held(lost.ledger.reserve(free()).await.unwrap());
        lost.ledger.append(closing(1, done, Vec::new())).await.unwrap();
        // Its kernel runs: there is nothing to sweep.
        assert_eq!(survivor.ledger.abandoned().await.unwrap().len(), 0);
        let lost_log = lost.certificate.log_id.clone();
        drop(lost);
        let abandoned = survivor.ledger.abandoned().await.unwrap();
        assert_eq!(abandoned.len(), 1);
        assert_eq!(abandoned[0].log_id, lost_log);
        let ids: Vec<_> = abandoned[0].intents.iter().map(|intent| intent.id).collect();
        assert_eq!(ids, [intent]);
        // While one kernel sweeps, no other does, and the kernel that left it cannot start.
        assert_eq!(survivor.ledger.abandoned().await.unwrap().len(), 0);
        let meanwhile = world.store.take_slot(None).await.unwrap();
        assert_ne!(meanwhile.certificate.log_id, lost_log);
        let swept = survivor.ledger.append(closing(2, intent, Vec::new())).await.unwrap();
        assert_eq!(swept, Appended::At(1));
        drop(abandoned);
        assert_eq!(survivor.ledger.abandoned().await.unwrap().len(), 0);
        assert_eq!(world.store.take_slot(None).await.unwrap().certificate.log_id, lost_log);
    })
    .await;
}

#[tokio::test]
async fn a_kernel_that_starts_again_finds_what_it_left_open() {
    on_each_store(async |world| {
        let slot = world.store.take_slot(None).await.unwrap();
        let intent = held(slot.ledger.reserve(free()).await.unwrap());
        drop(slot);
        let again = world.store.take_slot(None).await.unwrap();
        let open = again.ledger.open_intents().await.unwrap();
        assert_eq!(open.iter().map(|intent| intent.id).collect::<Vec<_>>(), [intent]);
        assert_eq!(again.ledger.abandoned().await.unwrap().len(), 0);
    })
    .await;
}
