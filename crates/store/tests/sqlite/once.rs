//! What two that have opened one folder want at the same moment: one gets it.

use std::fs;
use std::sync::Arc;

use chio_core::crypto::Keypair;
use chio_core::governance::{ApprovalDecision, ApprovalToken};
use chio_core::signed::Signed;
use chio_kernel::store::{
    Answered, ApprovalState, ApprovalUse, Ledger, NewTask, Opened, Opening, ProofUse, Reservation,
    Reserved, TaskQuota, TaskRefused, UseRefused,
};

use crate::support::{Scratch, caller, claiming, closing, free, opening, request, task};

const ROUNDS: usize = 60;

/// Two ledgers of two stores on one folder race in each round. Tells how many won in each.
async fn race<W, F>(ledgers: &[Arc<dyn Ledger>; 2], rounds: usize, wins: W)
where
    W: Fn(Arc<dyn Ledger>, usize) -> F,
    F: Future<Output = bool> + Send + 'static,
{
    for round in 0..rounds {
        let runs = ledgers.each_ref().map(|ledger| tokio::spawn(wins(Arc::clone(ledger), round)));
        let [one, other] = runs;
        let won = [one.await.unwrap(), other.await.unwrap()];
        assert_eq!(won.iter().filter(|won| **won).count(), 1, "round {round}: {won:?}");
    }
}

async fn ledgers(scratch: &Scratch) -> [Arc<dyn Ledger>; 2] {
    let (one, other) = (scratch.open().await, scratch.open().await);
    [one.take_slot(None).await.unwrap().ledger, other.take_slot(None).await.unwrap().ledger]
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_is_used_by_one() {
    let scratch = Scratch::new();
    race(&ledgers(&scratch).await, ROUNDS, async |ledger, round| {
        let approval = ApprovalUse {
            digest: format!("digest-{round}"),
            request_id: format!("req-{round}"),
            intent_hash: "hash".to_owned(),
            issued_at: 1,
            expires_at: 100,
            now: 1,
        };
        let reservation = Reservation { approval: Some(approval), ..free() };
        match ledger.reserve(reservation).await.unwrap() {
            Reserved::Held { .. } => true,
            refused => {
                assert_eq!(refused, Reserved::Refused(UseRefused::ApprovalUsed));
                false
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proof_is_used_by_one() {
    let scratch = Scratch::new();
    race(&ledgers(&scratch).await, ROUNDS, async |ledger, round| {
        let proof =
            ProofUse { key: format!("proof-{round}"), issued_at: 1, expires_at: 100, now: 1 };
        match ledger.open(Opening { proofs: vec![proof], ..opening() }).await.unwrap() {
            Opened::At(_) => true,
            refused => {
                assert_eq!(refused, Opened::Refused(UseRefused::ProofUsed));
                false
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_claimed_by_one() {
    let scratch = Scratch::new();
    let shared = scratch.open().await.shared();
    for round in 0..ROUNDS {
        shared
            .create_task(task(&round.to_string()), TaskQuota::of_open(ROUNDS))
            .await
            .unwrap()
            .unwrap();
    }
    race(&ledgers(&scratch).await, ROUNDS, async |ledger, round| {
        match ledger.open(claiming(&round.to_string())).await.unwrap() {
            Opened::At(_) => true,
            refused => {
                assert_eq!(refused, Opened::NotClaimed(TaskRefused::Running));
                false
            }
        }
    })
    .await;
}

#[tokio::test]
async fn an_answer_is_seen_at_once_by_the_other() {
    let scratch = Scratch::new();
    let (one, other) = (scratch.open().await, scratch.open().await);
    let ledger = one.take_slot(None).await.unwrap().ledger;
    let waits = Opening { waits_for: Some(request("r")), ..opening() };
    assert!(matches!(ledger.open(waits).await.unwrap(), Opened::At(_)));
    let approver = Keypair::from_seed(&[3; 32]);
    let token = ApprovalToken {
        id: "yes".to_owned(),
        approver: approver.public_key().clone(),
        subject: caller(),
        governed_intent_hash: "hash".to_owned(),
        request_id: "req".to_owned(),
        threshold_proposal_hash: None,
        issued_at: 1,
        expires_at: 100,
        decision: ApprovalDecision::Approved,
        algorithm: None,
        signature: approver.sign(b""),
    };
    let token = token.signed(&approver).unwrap();
    let before = one.shared().epoch().await.unwrap();
    assert_eq!(other.shared().answer("r", &token, 2).await.unwrap(), Answered::Recorded);
    assert_eq!(one.shared().epoch().await.unwrap(), before + 1);
    let found = one.shared().approval("r").await.unwrap().unwrap();
    assert_eq!((found.state, found.answer), (ApprovalState::Approved, Some(token)));
}

/// Whether a file of the store still has these bytes.
fn is_in_folder(scratch: &Scratch, bytes: &[u8]) -> bool {
    let files = fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap().path());
    let mut contents = files.filter(|path| path.is_file()).map(|path| fs::read(path).unwrap());
    contents.any(|content| content.windows(bytes.len()).any(|found| found == bytes))
}

#[tokio::test]
async fn no_token_of_a_task_that_is_over_lies_about_in_the_database() {
    // Some fit a page, some do not.
    for size in [100, 7_000, 40_000] {
        let scratch = Scratch::new();
        let store = scratch.open_without_indexing().await;
        let (shared, ledger) = (store.shared(), store.take_slot(None).await.unwrap().ledger);
        let secret = b"-token-that-nobody-may-find-";
        let request: Vec<u8> = secret.iter().copied().cycle().take(size).collect();
        for (id, expires_at) in
            [("cancelled", 100), ("ended", 100), ("expired", 100), ("forgotten", 150)]
        {
            let task = NewTask { request: request.clone(), expires_at, ..task(id) };
            shared.create_task(task, TaskQuota::of_open(9)).await.unwrap().unwrap();
        }
        shared.cancel_task("cancelled", &caller(), 1).await.unwrap().unwrap();
        let Opened::At(intent) = ledger.open(claiming("ended")).await.unwrap() else {
            panic!("the task waits")
        };
        ledger.append(closing(1, intent)).await.unwrap();
        let later = NewTask { created_at: 100, expires_at: 200, ..task("later") };
        shared.create_task(later, TaskQuota::of_open(9)).await.unwrap().unwrap();
        assert_eq!(shared.forget_expired(150).await.unwrap(), 1);
        assert!(is_in_folder(&scratch, secret), "it was there");
        drop((shared, ledger));
        store.close();
        assert!(!is_in_folder(&scratch, secret), "{size} bytes");
    }
}
