//! Approvals: what waits in the inbox, who answers, and that each yes is used once.

use std::sync::Arc;

use chio_core::crypto::{Keypair, PublicKey};
use chio_core::governance::{ApprovalDecision, ApprovalToken, GovernedTransactionIntent};
use chio_core::receipt::ToolCallAction;
use chio_core::signed::Signed;
use chio_kernel::store::{
    Answered, Appended, Approval, ApprovalQuery, ApprovalRequest, ApprovalState, ApprovalUse,
    Entry, Exhausted, IntentId, Ledger, Opened, Opening, Reservation, Reserved, StoreError,
    UseRefused,
};
use serde_json::json;

use crate::support::{
    NOW, World, closing, exhausted, free, held, hold, intent, of_one, on_each_store, opened,
    opening, refund,
};

const DAY: u64 = 24 * 3600;

fn caller() -> PublicKey {
    Keypair::from_seed(&[2; 32]).public_key().clone()
}

/// A request that waits for a minute.
pub(crate) fn request(id: &str) -> ApprovalRequest {
    let governed = json!({"id": "i", "server_id": "fs", "tool_name": "read", "purpose": "work"});
    let governed: GovernedTransactionIntent = serde_json::from_value(governed).unwrap();
    ApprovalRequest {
        id: id.to_owned(),
        request_id: format!("req-{id}"),
        subject: caller(),
        capability_id: "cap".to_owned(),
        server_id: "fs".to_owned(),
        tool_name: "read".to_owned(),
        action: ToolCallAction::new(json!({"path": "a", "share": 0.1})).unwrap(),
        intent: governed,
        intent_hash: "hash".to_owned(),
        asked_by: "guard".to_owned(),
        reason: "it is late".to_owned(),
        requested_at: NOW,
        expires_at: NOW + 60,
        principal: None,
        trace_id: Some("trace".to_owned()),
        approvers: Vec::new(),
    }
}

/// As [`request`], of the subject with this number.
fn request_of(subject: u64, id: &str) -> ApprovalRequest {
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&subject.to_be_bytes());
    let subject = Keypair::from_seed(&seed).public_key().clone();
    ApprovalRequest { subject, ..request(id) }
}

fn token(id: &str, decision: ApprovalDecision) -> ApprovalToken {
    let approver = Keypair::from_seed(&[3; 32]);
    let token = ApprovalToken {
        id: format!("approval-{id}"),
        approver: approver.public_key().clone(),
        subject: caller(),
        governed_intent_hash: "hash".to_owned(),
        request_id: format!("req-{id}"),
        threshold_proposal_hash: None,
        issued_at: NOW,
        expires_at: NOW + 60,
        decision,
        algorithm: None,
        signature: approver.sign(b""),
    };
    token.signed(&approver).unwrap()
}

fn asking(request: ApprovalRequest) -> Opening {
    Opening { waits_for: Some(request), ..opening() }
}

fn using(digest: &str, request_id: &str, now: u64) -> ApprovalUse {
    ApprovalUse {
        digest: digest.to_owned(),
        request_id: request_id.to_owned(),
        intent_hash: "hash".to_owned(),
        issued_at: NOW,
        expires_at: NOW + 60,
        now,
    }
}

/// The reservation of a call that waited for this request.
fn going_on(waited: IntentId, id: &str) -> Reservation {
    let approval = using(&format!("digest-{id}"), &format!("req-{id}"), NOW);
    Reservation { resumes: Some(waited), approval: Some(approval), ..free() }
}

/// A reservation with an approval that the caller brought.
fn approved(digest: &str, request_id: &str, now: u64) -> Reservation {
    Reservation { approval: Some(using(digest, request_id, now)), ..free() }
}

/// Lets a call wait for this request.
async fn ask(ledger: &dyn Ledger, id: &str) -> IntentId {
    opened(ledger.open(asking(request(id))).await.unwrap())
}

async fn answer(world: &World, id: &str, decision: ApprovalDecision) {
    let answered = world.shared().answer(id, &token(id, decision), NOW).await.unwrap();
    assert_eq!(answered, Answered::Recorded);
}

async fn found(world: &World, id: &str) -> Approval {
    world.shared().approval(id).await.unwrap().unwrap()
}

const USED: Reserved = Reserved::Refused(UseRefused::ApprovalUsed);

#[tokio::test]
async fn a_call_that_waits_has_an_open_intent_that_has_not_reserved() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        let waiting = ask(ledger.as_ref(), "a").await;
        let expected = Approval {
            request: request("a"),
            state: ApprovalState::Pending,
            answer: None,
            receipt_id: None,
        };
        assert_eq!(found(world, "a").await, expected);
        assert_eq!(world.shared().approval("b").await.unwrap(), None);
        let open = ledger.open_intents().await.unwrap();
        assert_eq!(open.len(), 1);
        assert_eq!((open[0].id, open[0].reserved), (waiting, false));
        assert_eq!(open[0].reservation.intent, intent());
        assert_eq!(open[0].reservation.alternatives, []);
    })
    .await;
}

#[tokio::test]
async fn a_yes_lets_the_call_go_on_and_is_used_with_it() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        let waiting = ask(ledger.as_ref(), "a").await;
        assert_eq!(ledger.reserve(going_on(waiting, "a")).await.unwrap(), USED);
        assert!(!ledger.open_intents().await.unwrap()[0].reserved);
        let before = world.shared().epoch().await.unwrap();
        answer(world, "a", ApprovalDecision::Approved).await;
        // Kernels that wait look at this.
        assert_eq!(world.shared().epoch().await.unwrap(), before + 1);
        assert_eq!(world.shared().revoked_since(0).await.unwrap().epoch, before + 1);
        assert_eq!(found(world, "a").await.state, ApprovalState::Approved);
        assert_eq!(found(world, "a").await.answer, Some(token("a", ApprovalDecision::Approved)));
        assert_eq!(held(ledger.reserve(going_on(waiting, "a")).await.unwrap()), waiting);
        assert_eq!(found(world, "a").await.state, ApprovalState::Used);
        let open = ledger.open_intents().await.unwrap();
        assert_eq!((open.len(), open[0].id, open[0].reserved), (1, waiting, true));
        assert_eq!(open[0].reservation, free());
        ledger.append(closing(1, waiting, Vec::new())).await.unwrap();
        let ended = found(world, "a").await;
        assert_eq!((ended.state, ended.receipt_id), (ApprovalState::Used, Some(receipt_id(1))));
    })
    .await;
}

fn receipt_id(number: u64) -> String {
    format!("{number:064x}")
}

#[tokio::test]
async fn a_no_stays_a_no() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        let waiting = ask(ledger.as_ref(), "a").await;
        answer(world, "a", ApprovalDecision::Denied).await;
        assert_eq!(ledger.reserve(going_on(waiting, "a")).await.unwrap(), USED);
        ledger.append(closing(1, waiting, Vec::new())).await.unwrap();
        let ended = found(world, "a").await;
        assert_eq!((ended.state, ended.receipt_id), (ApprovalState::Denied, Some(receipt_id(1))));
    })
    .await;
}

#[tokio::test]
async fn only_what_is_pending_and_in_time_is_answered() {
    on_each_store(async |world| {
        let (ledger, shared) = (world.ledger().await, world.shared());
        ask(ledger.as_ref(), "a").await;
        let (yes, no) =
            (token("a", ApprovalDecision::Approved), token("a", ApprovalDecision::Denied));
        let epoch = shared.epoch().await.unwrap();
        assert_eq!(shared.answer("b", &yes, NOW).await.unwrap(), Answered::Unknown);
        let late = shared.answer("a", &yes, NOW + 60).await.unwrap();
        assert_eq!(late, Answered::Over(ApprovalState::Expired));
        // Its kernel is the one to close it.
        assert_eq!(found(world, "a").await.state, ApprovalState::Pending);
        assert_eq!(shared.epoch().await.unwrap(), epoch);
        assert_eq!(shared.answer("a", &no, NOW + 59).await.unwrap(), Answered::Recorded);
        let second = shared.answer("a", &yes, NOW).await.unwrap();
        assert_eq!(second, Answered::Over(ApprovalState::Denied));
        assert_eq!(found(world, "a").await.answer, Some(no));
        assert_eq!(shared.epoch().await.unwrap(), epoch + 1);
    })
    .await;
}

#[tokio::test]
async fn what_is_unanswered_ends_as_the_receipt_says() {
    let cases = [
        (None, ApprovalState::Expired, ApprovalState::Expired),
        (None, ApprovalState::Cancelled, ApprovalState::Cancelled),
        (None, ApprovalState::Denied, ApprovalState::Denied),
        // Nothing would close it any more.
        (None, ApprovalState::Pending, ApprovalState::Cancelled),
        (Some(ApprovalDecision::Approved), ApprovalState::Expired, ApprovalState::Expired),
        (Some(ApprovalDecision::Denied), ApprovalState::Expired, ApprovalState::Denied),
    ];
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        for (number, (decision, unanswered, expected)) in (1..).zip(cases) {
            let id = number.to_string();
            let waiting = ask(ledger.as_ref(), &id).await;
            if let Some(decision) = decision {
                answer(world, &id, decision).await;
            }
            let Entry { body, closes, .. } = closing(number, waiting, Vec::new());
            let closes = closes.map(|mut closes| {
                closes.unanswered = unanswered;
                closes
            });
            let appended = ledger.append(Entry { closes, ..Entry::new(body) }).await.unwrap();
            assert_eq!(appended, Appended::At(number));
            let ended = found(world, &id).await;
            assert_eq!((ended.state, ended.receipt_id), (expected, Some(receipt_id(number))));
        }
    })
    .await;
}

#[tokio::test]
async fn an_intent_goes_on_only_while_it_waits_and_in_its_own_log() {
    on_each_store(async |world| {
        let (ledger, other) = (world.ledger().await, world.ledger().await);
        let waiting = opened(ledger.open(opening()).await.unwrap());
        let resumed = |intent| Reservation { resumes: Some(intent), ..free() };
        let reopened = |intent| Opening { resumes: Some(intent), ..opening() };
        for (ledger, intent) in [(&other, waiting), (&ledger, IntentId(i64::MAX))] {
            let reserved = ledger.reserve(resumed(intent)).await.unwrap();
            assert_eq!(reserved, Reserved::IntentClosed);
            let open = ledger.open(reopened(intent)).await.unwrap();
            assert_eq!(open, Opened::IntentClosed);
        }
        assert_eq!(opened(ledger.open(reopened(waiting)).await.unwrap()), waiting);
        assert_eq!(held(ledger.reserve(resumed(waiting)).await.unwrap()), waiting);
        // It has reserved.
        assert_eq!(ledger.reserve(resumed(waiting)).await.unwrap(), Reserved::IntentClosed);
        assert_eq!(ledger.open(reopened(waiting)).await.unwrap(), Opened::IntentClosed);
        let waiting = opened(ledger.open(opening()).await.unwrap());
        ledger.append(closing(1, waiting, Vec::new())).await.unwrap();
        assert_eq!(ledger.reserve(resumed(waiting)).await.unwrap(), Reserved::IntentClosed);
    })
    .await;
}

#[tokio::test]
async fn an_approval_is_used_once_by_its_digest_and_by_what_it_approves() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        held(ledger.reserve(approved("d1", "r1", NOW)).await.unwrap());
        for (digest, request_id) in [("d1", "r1"), ("d1", "r2"), ("d2", "r1")] {
            let again = ledger.reserve(approved(digest, request_id, NOW)).await.unwrap();
            assert_eq!(again, USED, "{digest} of {request_id}");
        }
        held(ledger.reserve(approved("d2", "r2", NOW)).await.unwrap());
        // The answer from the inbox is no exception.
        let waiting = ask(ledger.as_ref(), "a").await;
        answer(world, "a", ApprovalDecision::Approved).await;
        held(ledger.reserve(approved("digest-a", "req-a", NOW)).await.unwrap());
        assert_eq!(ledger.reserve(going_on(waiting, "a")).await.unwrap(), USED);
        assert_eq!(found(world, "a").await.state, ApprovalState::Approved);
    })
    .await;
}

#[tokio::test]
async fn a_used_approval_is_remembered_for_an_hour_after_its_end() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        let (end, reserve) = (NOW + 60, async |digest: &str, now| {
            ledger.reserve(approved(digest, digest, now)).await.unwrap()
        });
        held(reserve("d", NOW).await);
        held(reserve("e", end + 3600).await);
        assert_eq!(reserve("d", end + 3600).await, USED);
        // Not for ever. From then on it is refused by its age, also by a clock that went back.
        held(reserve("f", end + 3601).await);
        let forgotten = Reserved::Refused(UseRefused::ApprovalForgotten);
        for now in [end + 3601, NOW] {
            assert_eq!(reserve("d", now).await, forgotten, "{now}");
        }
    })
    .await;
}

#[tokio::test]
async fn what_refuses_a_call_uses_up_nothing_of_it() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        let one_call = || of_one(hold("cap", Some(1), 0, None));
        let first = held(ledger.reserve(one_call()).await.unwrap());
        let waiting = ask(ledger.as_ref(), "a").await;
        answer(world, "a", ApprovalDecision::Approved).await;
        let Reservation { resumes, approval, .. } = going_on(waiting, "a");
        let both = Reservation { resumes, approval, ..one_call() };
        let none_left = exhausted("cap", 0, Exhausted::Invocations);
        assert_eq!(ledger.reserve(both.clone()).await.unwrap(), none_left);
        assert_eq!(found(world, "a").await.state, ApprovalState::Approved);
        world.shared().stop(Some("fire".to_owned())).await.unwrap();
        let stopped = ledger.reserve(both.clone()).await.unwrap();
        assert_eq!(stopped, Reserved::Stopped("fire".to_owned()));
        world.shared().stop(None).await.unwrap();
        ledger.append(closing(1, first, vec![refund("cap", 1, 0)])).await.unwrap();
        assert_eq!(held(ledger.reserve(both).await.unwrap()), waiting);
        // A used approval counts before an empty budget, and a revocation before both.
        let Reservation { approval, .. } = going_on(waiting, "a");
        let again = Reservation { approval, ..one_call() };
        assert_eq!(ledger.reserve(again.clone()).await.unwrap(), USED);
        world.shared().revoke("cap", NOW).await.unwrap();
        let revoked = ledger.reserve(again).await.unwrap();
        assert_eq!(revoked, Reserved::Revoked("cap".to_owned()));
    })
    .await;
}

#[tokio::test]
async fn the_inbox_is_read_newest_first_and_in_parts() {
    on_each_store(async |world| {
        let (ledger, shared) = (world.ledger().await, world.shared());
        for id in ["a", "b", "c", "d"] {
            ask(ledger.as_ref(), id).await;
        }
        answer(world, "b", ApprovalDecision::Denied).await;
        let read = async |state, cursor, limit| {
            let rows = shared.approvals(&ApprovalQuery { state, cursor, limit }).await.unwrap();
            let ids: String = rows.iter().map(|(_, row)| row.request.id.as_str()).collect();
            (ids, rows.last().map(|(cursor, _)| *cursor))
        };
        let (ids, cursor) = read(None, None, 3).await;
        assert_eq!(ids, "dcb");
        let (ids, cursor) = read(None, cursor, 3).await;
        assert_eq!(ids, "a");
        assert_eq!(read(None, cursor, 3).await, (String::new(), None));
        let pending = Some(ApprovalState::Pending);
        let (ids, cursor) = read(pending, None, 2).await;
        assert_eq!(ids, "dc");
        assert_eq!(read(pending, cursor, 2).await.0, "a");
        assert_eq!(read(Some(ApprovalState::Denied), None, 9).await.0, "b");
        assert_eq!(read(Some(ApprovalState::Used), None, 9).await.0, "");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_inbox_takes_no_more_until_something_in_it_is_over() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        let mut tasks = Vec::new();
        for number in 0..4096_u64 {
            let ledger = Arc::clone(&ledger);
            let asks = asking(request_of(number % 64, &number.to_string()));
            tasks.push(tokio::spawn(async move { opened(ledger.open(asks).await.unwrap()) }));
        }
        let mut waiting = Vec::new();
        for task in tasks {
            waiting.push(task.await.unwrap());
        }
        let refused = ledger.open(asking(request("one more"))).await.unwrap();
        assert_eq!(refused, Opened::InboxFull);
        assert_eq!(ledger.open_intents().await.unwrap().len(), 4096);
        // What takes the place of another needs no more room.
        let again = Opening { resumes: Some(waiting[7]), ..asking(request_of(7, "again")) };
        assert_eq!(opened(ledger.open(again).await.unwrap()), waiting[7]);
        let refused = ledger.open(asking(request("one more"))).await.unwrap();
        assert_eq!(refused, Opened::InboxFull);
        ledger.append(closing(1, waiting[7], Vec::new())).await.unwrap();
        ask(ledger.as_ref(), "one more").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_subject_does_not_fill_the_inbox() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        let mut waiting = Vec::new();
        for number in 0..64 {
            waiting.push(ask(ledger.as_ref(), &number.to_string()).await);
        }
        // What is approved and not used yet counts as well.
        answer(world, "1", ApprovalDecision::Approved).await;
        let refused = ledger.open(asking(request("one more"))).await.unwrap();
        assert_eq!(refused, Opened::InboxFull);
        assert_eq!(ledger.open_intents().await.unwrap().len(), 64);
        opened(ledger.open(asking(request_of(9, "of another"))).await.unwrap());
        // What takes the place of another needs no more room.
        let again = Opening { resumes: Some(waiting[2]), ..asking(request("again")) };
        assert_eq!(opened(ledger.open(again).await.unwrap()), waiting[2]);
        let refused = ledger.open(asking(request("one more"))).await.unwrap();
        assert_eq!(refused, Opened::InboxFull);
        answer(world, "7", ApprovalDecision::Denied).await;
        ask(ledger.as_ref(), "one more").await;
    })
    .await;
}

#[tokio::test]
async fn one_subject_has_only_so_many_bytes_in_the_inbox() {
    let long = |subject, id: &str, bytes| {
        let reason = "x".repeat(bytes);
        ApprovalRequest { reason, ..request_of(subject, id) }
    };
    let rest = serde_json::to_vec(&long(1, "a", 0)).unwrap().len();
    let half = (8 << 20) - rest;
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        let open = async |request| ledger.open(asking(request)).await.unwrap();
        let first = opened(open(long(1, "a", half)).await);
        assert_eq!(open(long(1, "b", half + 1)).await, Opened::InboxFull);
        opened(open(long(1, "b", half)).await);
        assert_eq!(open(long(1, "c", 0)).await, Opened::InboxFull);
        opened(open(long(2, "c", half)).await);
        let again = Opening { resumes: Some(first), ..asking(long(1, "d", half)) };
        assert_eq!(opened(ledger.open(again).await.unwrap()), first);
        assert_eq!(open(long(1, "e", 0)).await, Opened::InboxFull);
        ledger.append(closing(1, first, Vec::new())).await.unwrap();
        opened(open(long(1, "e", 0)).await);
        assert_eq!(open(long(3, "f", 16 << 20)).await, Opened::InboxFull);
    })
    .await;
}

#[tokio::test]
async fn a_call_that_waits_for_an_approval_does_not_go_on_without() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        let decisions = [None, Some(ApprovalDecision::Approved), Some(ApprovalDecision::Denied)];
        for (number, decision) in (1..).zip(decisions) {
            let id = number.to_string();
            let waiting = ask(ledger.as_ref(), &id).await;
            if let Some(decision) = decision {
                answer(world, &id, decision).await;
            }
            let without = Reservation { resumes: Some(waiting), ..free() };
            assert_eq!(ledger.reserve(without).await.unwrap(), USED, "{decision:?}");
            let open = ledger.open_intents().await.unwrap();
            assert_eq!((open[0].id, open[0].reserved), (waiting, false));
            ledger.append(closing(number, waiting, Vec::new())).await.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn a_store_that_forgets_takes_no_approval_from_before_its_time() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        let before = || {
            let approval = ApprovalUse { issued_at: NOW - 1, ..using("d", "r", NOW) };
            Reservation { approval: Some(approval), ..free() }
        };
        if world.name == "memory" {
            let too_old = Reserved::Refused(UseRefused::ApprovalTooOld);
            assert_eq!(ledger.reserve(before()).await.unwrap(), too_old);
            // It was not taken for used.
            held(ledger.reserve(approved("d", "r", NOW)).await.unwrap());
            assert_eq!(ledger.reserve(before()).await.unwrap(), too_old);
        } else {
            held(ledger.reserve(before()).await.unwrap());
            assert_eq!(ledger.reserve(before()).await.unwrap(), USED);
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_over_is_forgotten_after_thirty_days() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        let over = ask(ledger.as_ref(), "over").await;
        ask(ledger.as_ref(), "open").await;
        ledger.append(closing(1, over, Vec::new())).await.unwrap();
        let later = async |id: &str, after: u64| {
            let later = ApprovalRequest { requested_at: NOW + after, ..request(id) };
            opened(ledger.open(asking(later)).await.unwrap());
        };
        later("a", 30 * DAY - 1).await;
        assert!(world.shared().approval("over").await.unwrap().is_some());
        later("b", 30 * DAY).await;
        assert!(world.shared().approval("over").await.unwrap().is_none());
        assert!(world.shared().approval("open").await.unwrap().is_some());
    })
    .await;
}

#[tokio::test]
async fn a_call_that_asks_again_waits_for_the_last_answer_alone() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        let waiting = ask(ledger.as_ref(), "a").await;
        answer(world, "a", ApprovalDecision::Approved).await;
        let again = Opening { resumes: Some(waiting), ..asking(request("b")) };
        assert_eq!(opened(ledger.open(again).await.unwrap()), waiting);
        assert_eq!(found(world, "a").await.state, ApprovalState::Cancelled);
        assert_eq!(ledger.reserve(going_on(waiting, "a")).await.unwrap(), USED);
        answer(world, "b", ApprovalDecision::Approved).await;
        assert_eq!(held(ledger.reserve(going_on(waiting, "b")).await.unwrap()), waiting);
        ledger.append(closing(1, waiting, Vec::new())).await.unwrap();
        for (id, state) in [("a", ApprovalState::Cancelled), ("b", ApprovalState::Used)] {
            let ended = found(world, id).await;
            assert_eq!((ended.state, ended.receipt_id), (state, Some(receipt_id(1))));
        }
    })
    .await;
}

#[tokio::test]
async fn the_name_of_a_request_is_taken_once() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        ask(ledger.as_ref(), "a").await;
        let refused = ledger.open(asking(request("a"))).await.unwrap_err();
        assert!(matches!(&refused, StoreError::Refused(text) if text.contains("in use")));
        assert_eq!(ledger.open_intents().await.unwrap().len(), 1);
    })
    .await;
}

#[tokio::test]
async fn an_approver_has_a_key_of_its_own() {
    on_each_store(async |world| {
        let approver = world.store.approver().await.unwrap().unwrap();
        let public = world.store.approver_public().await.unwrap();
        assert_eq!(public.as_ref(), Some(approver.public_key()));
        assert_ne!(public, world.store.authority_public().await.unwrap());
        let again = world.store.approver().await.unwrap().unwrap();
        assert_eq!(again.public_key(), approver.public_key());
    })
    .await;
}
