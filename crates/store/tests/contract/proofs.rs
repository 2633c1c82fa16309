//! Proofs of possession: each is accepted once.

use std::sync::Arc;

use chio_kernel::store::{
    ApprovalUse, Exhausted, Opened, Opening, ProofUse, Reservation, Reserved, UseRefused,
};

use crate::support::{
    NOW, closing, exhausted, free, held, hold, of_one, on_each_store, opened, opening, refund,
};

/// A proof made now that holds for ten seconds.
pub(crate) fn proof(key: &str, now: u64) -> ProofUse {
    ProofUse { key: key.to_owned(), issued_at: now, expires_at: now + 10, now }
}

fn with(proof: ProofUse) -> Reservation {
    Reservation { proofs: vec![proof], ..free() }
}

fn waiting_with(proof: ProofUse) -> Opening {
    Opening { proofs: vec![proof], ..opening() }
}

const USED: UseRefused = UseRefused::ProofUsed;

#[tokio::test]
async fn a_proof_is_used_once_by_whichever_call() {
    on_each_store(async |world| {
        let (ledger, other) = (world.ledger().await, world.ledger().await);
        held(ledger.reserve(with(proof("a", NOW))).await.unwrap());
        opened(ledger.open(waiting_with(proof("b", NOW))).await.unwrap());
        for key in ["a", "b"] {
            for ledger in [&ledger, &other] {
                let reserved = ledger.reserve(with(proof(key, NOW + 1))).await.unwrap();
                assert_eq!(reserved, Reserved::Refused(USED), "{key}");
                let open = ledger.open(waiting_with(proof(key, NOW + 1))).await.unwrap();
                assert_eq!(open, Opened::Refused(USED), "{key}");
            }
        }
        assert_eq!(ledger.open_intents().await.unwrap().len(), 2);
        assert_eq!(other.open_intents().await.unwrap().len(), 0);
    })
    .await;
}

#[tokio::test]
async fn several_proofs_are_used_together_or_not_at_all() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        let with = |keys: &[&str]| Reservation {
            proofs: keys.iter().map(|key| proof(key, NOW)).collect(),
            ..free()
        };
        held(ledger.reserve(with(&["a", "b"])).await.unwrap());
        for keys in [["a", "c"], ["c", "b"], ["c", "c"]] {
            let again = ledger.reserve(with(&keys)).await.unwrap();
            assert_eq!(again, Reserved::Refused(USED), "{keys:?}");
            let waiting = Opening { proofs: with(&keys).proofs, ..opening() };
            assert_eq!(ledger.open(waiting).await.unwrap(), Opened::Refused(USED), "{keys:?}");
        }
        held(ledger.reserve(with(&["c", "d"])).await.unwrap());
    })
    .await;
}

#[tokio::test]
async fn a_call_that_is_refused_uses_up_no_proof() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        let one_call = || of_one(hold("cap", Some(1), 0, None));
        let first = held(ledger.reserve(one_call()).await.unwrap());
        let proved = || Reservation { proofs: vec![proof("a", NOW)], ..one_call() };
        let none_left = exhausted("cap", 0, Exhausted::Invocations);
        assert_eq!(ledger.reserve(proved()).await.unwrap(), none_left);
        ledger.append(closing(1, first, vec![refund("cap", 1, 0)])).await.unwrap();
        held(ledger.reserve(proved()).await.unwrap());
        // A used proof counts before an empty budget.
        assert_eq!(ledger.reserve(proved()).await.unwrap(), Reserved::Refused(USED));
    })
    .await;
}

#[tokio::test]
async fn a_used_proof_counts_before_a_used_approval() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        let approval = |digest: &str| ApprovalUse {
            digest: digest.to_owned(),
            request_id: digest.to_owned(),
            intent_hash: "hash".to_owned(),
            issued_at: NOW,
            expires_at: NOW + 60,
            now: NOW,
        };
        let both = |key: &str, digest: &str| Reservation {
            approval: Some(approval(digest)),
            ..with(proof(key, NOW))
        };
        let refused = |why| Reserved::Refused(why);
        held(ledger.reserve(both("p1", "d1")).await.unwrap());
        assert_eq!(ledger.reserve(both("p1", "d1")).await.unwrap(), refused(USED));
        let used = refused(UseRefused::ApprovalUsed);
        assert_eq!(ledger.reserve(both("p2", "d1")).await.unwrap(), used);
        assert_eq!(ledger.reserve(both("p1", "d2")).await.unwrap(), refused(USED));
        // Neither of the refused has used up what was new in it.
        held(ledger.reserve(both("p2", "d2")).await.unwrap());
    })
    .await;
}

#[tokio::test]
async fn a_proof_is_remembered_until_nobody_accepts_it() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        held(ledger.reserve(with(proof("a", NOW))).await.unwrap());
        let (last, over) = (NOW + 9, NOW + 10);
        held(ledger.reserve(with(proof("b", last))).await.unwrap());
        let again = ledger.reserve(with(proof("a", last))).await.unwrap();
        assert_eq!(again, Reserved::Refused(USED));
        // The next reservation makes room for it.
        held(ledger.reserve(with(proof("c", over))).await.unwrap());
        held(ledger.reserve(with(proof("a", over))).await.unwrap());
    })
    .await;
}

#[tokio::test]
async fn a_proof_that_is_forgotten_is_refused_by_a_clock_that_went_back() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        held(ledger.reserve(with(proof("a", NOW))).await.unwrap());
        // The first is forgotten with this.
        held(ledger.reserve(with(proof("b", NOW + 10))).await.unwrap());
        let again = || ProofUse { now: NOW + 5, ..proof("a", NOW) };
        let refused = UseRefused::ProofForgotten;
        let reserved = ledger.reserve(with(again())).await.unwrap();
        assert_eq!(reserved, Reserved::Refused(refused));
        let open = ledger.open(waiting_with(again())).await.unwrap();
        assert_eq!(open, Opened::Refused(refused));
        // Those that are not forgotten are known, and those that end later are taken.
        let known = ledger.reserve(with(ProofUse { now: NOW + 5, ..proof("b", NOW + 10) })).await;
        assert_eq!(known.unwrap(), Reserved::Refused(USED));
        held(ledger.reserve(with(proof("c", NOW + 1))).await.unwrap());
    })
    .await;
}

#[tokio::test]
async fn a_store_that_forgets_takes_no_proof_from_before_its_time() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        let before = || ProofUse { issued_at: NOW - 1, ..proof("a", NOW) };
        let (reserved, open) = (
            ledger.reserve(with(before())).await.unwrap(),
            ledger.open(waiting_with(before())).await.unwrap(),
        );
        if world.name == "memory" {
            assert_eq!(reserved, Reserved::Refused(UseRefused::ProofTooOld));
            assert_eq!(open, Opened::Refused(UseRefused::ProofTooOld));
        } else {
            held(reserved);
            assert_eq!(open, Opened::Refused(USED));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_bring_a_proof_at_once_one_is_accepted() {
    on_each_store(async |world| {
        let ledgers = [world.ledger().await, world.ledger().await];
        let mut tasks = Vec::new();
        for number in 0..32_usize {
            let ledger = Arc::clone(&ledgers[number % 2]);
            tasks.push(tokio::spawn(async move {
                if number % 4 < 2 {
                    let reserved = ledger.reserve(with(proof("a", NOW))).await.unwrap();
                    matches!(reserved, Reserved::Held { .. })
                } else {
                    let open = ledger.open(waiting_with(proof("a", NOW))).await.unwrap();
                    matches!(open, Opened::At(_))
                }
            }));
        }
        let mut accepted = 0;
        for task in tasks {
            accepted += usize::from(task.await.unwrap());
        }
        assert_eq!(accepted, 1);
    })
    .await;
}
