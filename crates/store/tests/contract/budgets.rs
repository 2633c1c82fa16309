//! Money and counts: never more than granted, however many callers ask at once.

use std::sync::Arc;

use chio_kernel::store::{Appended, Exhausted, Ledger, Reserved};

use crate::support::{
    alternative, closing, exhausted, held, hold, of_one, on_each_store, refund, reservation,
};

#[tokio::test]
async fn calls_are_counted_up_to_the_bound_and_given_back() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        let one_call = || of_one(hold("cap", Some(1), 0, None));
        let intent = held(ledger.reserve(one_call()).await.unwrap());
        let none_left = exhausted("cap", 0, Exhausted::Invocations);
        assert_eq!(ledger.reserve(one_call()).await.unwrap(), none_left);
        let settled = ledger.append(closing(1, intent, vec![refund("cap", 1, 0)])).await;
        assert_eq!(settled.unwrap(), Appended::At(1));
        held(ledger.reserve(one_call()).await.unwrap());
        assert_eq!(ledger.reserve(one_call()).await.unwrap(), none_left);
    })
    .await;
}

#[tokio::test]
async fn money_is_held_whole_and_settled_to_what_it_cost() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        let of = |units| of_one(hold("cap", None, units, Some(100)));
        let intent = held(ledger.reserve(of(100)).await.unwrap());
        let none_left = exhausted("cap", 0, Exhausted::Cost);
        assert_eq!(ledger.reserve(of(1)).await.unwrap(), none_left);
        ledger.append(closing(1, intent, vec![refund("cap", 0, 60)])).await.unwrap();
        assert_eq!(ledger.reserve(of(61)).await.unwrap(), none_left);
        held(ledger.reserve(of(60)).await.unwrap());
    })
    .await;
}

#[tokio::test]
async fn a_refund_of_more_than_was_held_gives_no_credit() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        let of = |units| of_one(hold("cap", Some(2), units, Some(100)));
        let intent = held(ledger.reserve(of(10)).await.unwrap());
        let refunds = vec![refund("cap", 9, u64::MAX), refund("other", 1, 1)];
        ledger.append(closing(1, intent, refunds)).await.unwrap();
        assert_eq!(ledger.reserve(of(101)).await.unwrap(), exhausted("cap", 0, Exhausted::Cost));
        held(ledger.reserve(of(100)).await.unwrap());
        held(ledger.reserve(of(0)).await.unwrap());
        let none_left = exhausted("cap", 0, Exhausted::Invocations);
        assert_eq!(ledger.reserve(of(0)).await.unwrap(), none_left);
    })
    .await;
}

#[tokio::test]
async fn the_first_alternative_of_which_all_fits_is_taken() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        let ways = || {
            reservation(vec![
                alternative(
                    0,
                    vec![hold("cap", Some(9), 0, None), hold("parent", Some(1), 0, None)],
                ),
                alternative(1, vec![hold("aunt", None, 5, Some(7))]),
            ])
        };
        let taken = |reserved: Reserved| match reserved {
            Reserved::Held { alternative, .. } => alternative,
            other => panic!("{other:?}"),
        };
        assert_eq!(taken(ledger.reserve(ways()).await.unwrap()), 0);
        assert_eq!(taken(ledger.reserve(ways()).await.unwrap()), 1);
        let none_left = exhausted("aunt", 0, Exhausted::Cost);
        assert_eq!(ledger.reserve(ways()).await.unwrap(), none_left);
        // What did not fit as a whole was not debited in part: 8 of 9 calls are left.
        for _ in 0..8 {
            held(ledger.reserve(of_one(hold("cap", Some(9), 0, None))).await.unwrap());
        }
        let none_left = exhausted("cap", 0, Exhausted::Invocations);
        let ninth = ledger.reserve(of_one(hold("cap", Some(9), 0, None))).await.unwrap();
        assert_eq!(ninth, none_left);
    })
    .await;
}

#[tokio::test]
async fn two_holds_on_one_grant_both_count() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        let twice = || {
            let one = hold("cap", Some(3), 0, None);
            reservation(vec![alternative(0, vec![one.clone(), one])])
        };
        held(ledger.reserve(twice()).await.unwrap());
        let none_left = exhausted("cap", 0, Exhausted::Invocations);
        assert_eq!(ledger.reserve(twice()).await.unwrap(), none_left);
        held(ledger.reserve(of_one(hold("cap", Some(3), 0, None))).await.unwrap());
    })
    .await;
}

#[tokio::test]
async fn grants_of_one_token_are_counted_apart() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        let mut second = hold("cap", Some(1), 0, None);
        second.grant_index = 1;
        held(ledger.reserve(of_one(hold("cap", Some(1), 0, None))).await.unwrap());
        held(ledger.reserve(of_one(second.clone())).await.unwrap());
        let none_left = exhausted("cap", 1, Exhausted::Invocations);
        assert_eq!(ledger.reserve(of_one(second)).await.unwrap(), none_left);
    })
    .await;
}

#[tokio::test]
async fn sums_beyond_any_integer_do_not_fit() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        let huge = of_one(hold("cap", None, u64::MAX, Some(u64::MAX)));
        let none_left = exhausted("cap", 0, Exhausted::Cost);
        assert_eq!(ledger.reserve(huge).await.unwrap(), none_left);
        assert!(ledger.reserve(reservation(Vec::new())).await.is_err());
    })
    .await;
}

async fn take_many(ledgers: [Arc<dyn Ledger>; 2], each: usize) -> usize {
    let mut tasks = Vec::new();
    for number in 0..64 {
        let ledger = Arc::clone(&ledgers[number % 2]);
        tasks.push(tokio::spawn(async move {
            let mut taken = 0;
            for _ in 0..each {
                let of = of_one(hold("cap", Some(100), 3, Some(1_000_000)));
                match ledger.reserve(of).await.unwrap() {
                    Reserved::Held { .. } => taken += 1,
                    Reserved::Exhausted { .. } => {}
                    other => panic!("{other:?}"),
                }
            }
            taken
        }));
    }
    let mut taken = 0;
    for task in tasks {
        taken += task.await.unwrap();
    }
    taken
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_are_exact_when_many_ask_at_once() {
    on_each_store(async |world| {
        let ledgers = [world.ledger().await, world.ledger().await];
        assert_eq!(take_many(ledgers.clone(), 3).await, 100);
        let open: usize = [
            ledgers[0].open_intents().await.unwrap().len(),
            ledgers[1].open_intents().await.unwrap().len(),
        ]
        .iter()
        .sum();
        assert_eq!(open, 100);
        // 300 units are spent, to the unit.
        let rest = of_one(hold("cap", None, 999_701, Some(1_000_000)));
        let none_left = exhausted("cap", 0, Exhausted::Cost);
        assert_eq!(ledgers[0].reserve(rest).await.unwrap(), none_left);
        held(
            ledgers[0].reserve(of_one(hold("cap", None, 999_700, Some(1_000_000)))).await.unwrap(),
        );
    })
    .await;
}
