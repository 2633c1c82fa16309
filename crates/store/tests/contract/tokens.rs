//! Tokens that were issued, presented or imported.

use chio_core::capability::{CapabilityToken, ChioScope, Validity};
use chio_core::crypto::Keypair;
use chio_core::signed::Signed;

use crate::support::on_each_store;

fn token(id: &str, subject: &Keypair, issued_at: u64, expires_at: u64) -> CapabilityToken {
    let issuer = Keypair::from_seed(&[1; 32]);
    let (public, subject) = (issuer.public_key().clone(), subject.public_key().clone());
    let validity = Validity { issued_at, expires_at };
    CapabilityToken::draft(id, public, subject, ChioScope::default(), validity)
        .signed(&issuer)
        .unwrap()
}

#[tokio::test]
async fn a_token_is_remembered_and_another_with_its_id_is_not() {
    on_each_store(async |world| {
        let (store, subject) = (world.shared(), Keypair::generate());
        let first = token("a", &subject, 10, 20);
        assert!(store.remember(&first).await.unwrap());
        assert!(store.remember(&first).await.unwrap());
        assert!(!store.remember(&token("a", &subject, 10, 21)).await.unwrap());
        let asked = ["b".to_owned(), "a".to_owned()];
        assert_eq!(store.tokens(&asked).await.unwrap(), [first]);
    })
    .await;
}

#[tokio::test]
async fn a_subject_holds_the_tokens_that_are_in_their_window() {
    on_each_store(async |world| {
        let store = world.shared();
        let (subject, other) = (Keypair::generate(), Keypair::generate());
        for (id, issued_at, expires_at) in
            [("a", 10, 20), ("b", 12, 30), ("c", 15, 16), ("d", 99, 100)]
        {
            assert!(store.remember(&token(id, &subject, issued_at, expires_at)).await.unwrap());
        }
        store.remember(&token("e", &other, 10, 20)).await.unwrap();
        let held = async |now, limit| {
            let held = store.held_by(subject.public_key(), now, limit).await.unwrap();
            held.into_iter().map(|token| token.id).collect::<String>()
        };
        assert_eq!(held(9, 9).await, "");
        assert_eq!(held(10, 9).await, "a");
        assert_eq!(held(15, 9).await, "cba");
        assert_eq!(held(15, 2).await, "cb");
        assert_eq!(held(16, 9).await, "ba");
        assert_eq!(held(20, 9).await, "b");
    })
    .await;
}

#[tokio::test]
async fn known_tokens_are_read_page_by_page_in_the_order_of_their_ids() {
    on_each_store(async |world| {
        let (store, subject) = (world.shared(), Keypair::generate());
        for id in ["cap-2", "cap-1", "other", "cap-3"] {
            store.remember(&token(id, &subject, 10, 20)).await.unwrap();
        }
        let page = async |after, limit| {
            let page = store.known_after(after, limit).await.unwrap();
            page.into_iter().map(|token| token.id).collect::<Vec<_>>()
        };
        assert_eq!(page("", 2).await, ["cap-1", "cap-2"]);
        assert_eq!(page("cap-2", 2).await, ["cap-3", "other"]);
        assert_eq!(page("cap-", 1).await, ["cap-1"]);
        assert!(page("other", 2).await.is_empty());
    })
    .await;
}
