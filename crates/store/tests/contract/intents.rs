//! Intents: durable before the call, closed once.

use std::sync::Arc;

use chio_kernel::store::{Appended, IntentId};

use crate::support::{closing, entry, free, held, hold, of_one, on_each_store, receipt, refund};

#[tokio::test]
async fn an_open_intent_is_kept_as_it_was_reserved() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        let asked = of_one(hold("cap", Some(3), 2, Some(10)));
        let intent = held(ledger.reserve(asked.clone()).await.unwrap());
        let open = ledger.open_intents().await.unwrap();
        assert_eq!(open.len(), 1);
        assert_eq!((open[0].id, open[0].alternative, open[0].reserved), (intent, 0, true));
        assert_eq!(open[0].reservation, asked);
        ledger.append(closing(1, intent, Vec::new())).await.unwrap();
        assert_eq!(ledger.open_intents().await.unwrap(), []);
    })
    .await;
}

#[tokio::test]
async fn the_second_to_close_an_intent_writes_nothing() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        let one_call = || of_one(hold("cap", Some(1), 0, None));
        let intent = held(ledger.reserve(one_call()).await.unwrap());
        let close = || closing(1, intent, vec![refund("cap", 1, 0)]);
        assert_eq!(ledger.append(close()).await.unwrap(), Appended::At(1));
        held(ledger.reserve(one_call()).await.unwrap());
        // Neither an entry nor a refund.
        assert_eq!(ledger.append(close()).await.unwrap(), Appended::IntentClosed);
        assert!(matches!(
            ledger.reserve(one_call()).await.unwrap(),
            chio_kernel::store::Reserved::Exhausted { .. }
        ));
        assert_eq!(ledger.append(entry(&receipt(2))).await.unwrap(), Appended::At(2));
        let unknown = closing(3, IntentId(i64::MAX), Vec::new());
        assert_eq!(ledger.append(unknown).await.unwrap(), Appended::IntentClosed);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_close_an_intent_at_once_one_does() {
    on_each_store(async |world| {
        let ledgers = [world.ledger().await, world.ledger().await];
        let intent = held(ledgers[0].reserve(free()).await.unwrap());
        let mut tasks = Vec::new();
        for number in 0..16_usize {
            let ledger = Arc::clone(&ledgers[number % 2]);
            tasks.push(tokio::spawn(async move {
                ledger.append(closing(1, intent, Vec::new())).await.unwrap()
            }));
        }
        let mut closed = 0;
        for task in tasks {
            closed += usize::from(task.await.unwrap() != Appended::IntentClosed);
        }
        assert_eq!(closed, 1);
        let entries = world.shared().logs().await.unwrap();
        assert_eq!(entries.iter().map(|log| log.entries).sum::<u64>(), 1);
    })
    .await;
}

#[tokio::test]
async fn numbers_of_intents_are_never_used_again() {
    on_each_store(async |world| {
        let mut seen = std::collections::BTreeSet::new();
        for round in 0..5 {
            let ledger = world.ledger().await;
            let intent = held(ledger.reserve(free()).await.unwrap());
            assert!(seen.insert(intent), "round {round}");
            ledger.append(closing(round, intent, Vec::new())).await.unwrap();
        }
    })
    .await;
}
