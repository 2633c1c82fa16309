//! Revocations and the stop, and the epoch that tells of both.

use chio_kernel::store::Reserved;

use crate::support::{free, held, on_each_store};

#[tokio::test]
async fn a_revocation_moves_the_epoch_once() {
    on_each_store(async |world| {
        let store = world.shared();
        assert_eq!(store.epoch().await.unwrap(), 0);
        assert!(store.revoke("a", 5).await.unwrap());
        assert!(store.revoke("b", 6).await.unwrap());
        assert!(!store.revoke("a", 7).await.unwrap());
        assert_eq!(store.epoch().await.unwrap(), 2);
        assert_eq!(store.revoked_since(0).await.unwrap().ids, ["a", "b"]);
        let later = store.revoked_since(1).await.unwrap();
        assert_eq!((later.epoch, later.ids), (2, vec!["b".to_owned()]));
        assert_eq!(store.revoked_since(2).await.unwrap().ids, Vec::<String>::new());
    })
    .await;
}

#[tokio::test]
async fn a_reservation_sees_the_revocation_of_any_of_its_tokens() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        let mut asked = free();
        asked.authority = vec!["cap".to_owned(), "parent".to_owned(), "root".to_owned()];
        held(ledger.reserve(asked.clone()).await.unwrap());
        world.shared().revoke("root", 5).await.unwrap();
        let refused = ledger.reserve(asked).await.unwrap();
        assert_eq!(refused, Reserved::Revoked("root".to_owned()));
        assert_eq!(ledger.open_intents().await.unwrap().len(), 1);
        held(ledger.reserve(free()).await.unwrap());
    })
    .await;
}

#[tokio::test]
async fn a_stop_refuses_every_reservation_until_it_is_lifted() {
    on_each_store(async |world| {
        let (store, ledger) = (world.shared(), world.ledger().await);
        store.stop(None).await.unwrap();
        assert_eq!(store.epoch().await.unwrap(), 0);
        store.stop(Some("fire".to_owned())).await.unwrap();
        store.stop(Some("fire".to_owned())).await.unwrap();
        let state = store.revoked_since(0).await.unwrap();
        assert_eq!((state.epoch, state.stopped.as_deref()), (1, Some("fire")));
        let refused = ledger.reserve(free()).await.unwrap();
        assert_eq!(refused, Reserved::Stopped("fire".to_owned()));
        store.stop(Some("flood".to_owned())).await.unwrap();
        let refused = ledger.reserve(free()).await.unwrap();
        assert_eq!(refused, Reserved::Stopped("flood".to_owned()));
        store.stop(None).await.unwrap();
        assert_eq!(store.epoch().await.unwrap(), 3);
        assert_eq!(store.revoked_since(0).await.unwrap().stopped, None);
        held(ledger.reserve(free()).await.unwrap());
    })
    .await;
}
