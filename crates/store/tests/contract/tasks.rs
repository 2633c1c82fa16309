//! Deferred tasks: each has one owner and runs once.

use std::sync::Arc;

use chio_core::crypto::{Keypair, PublicKey};
use chio_core::protocol::DiscoveryProtocol;
use chio_kernel::store::{
    ApprovalState, Closing, Entry, IntentId, Ledger, NewTask, Opened, Opening, Reservation,
    Reserved, StoreError, Task, TaskClaim, TaskEnd, TaskQuota, TaskReceipt, TaskRefused, TaskState,
};

use crate::approvals::request;
use crate::proofs::proof;
use crate::support::{NOW, World, closing, free, held, on_each_store, opened, opening, receipt};

/// More tasks than any test has.
const MANY: usize = 100;

pub(crate) fn key(seed: u8) -> PublicKey {
    Keypair::from_seed(&[seed; 32]).public_key().clone()
}

/// A task of the first key that waits for a minute.
pub(crate) fn task(id: &str) -> NewTask {
    NewTask {
        request: b"call with token".to_vec(),
        created_at: NOW,
        expires_at: NOW + 60,
        ..NewTask::new(id, key(1), DiscoveryProtocol::A2a, "fs")
    }
}

pub(crate) fn claim(id: &str) -> TaskClaim {
    TaskClaim { id: id.to_owned(), owner: key(1), now: NOW }
}

pub(crate) fn claiming(claim: TaskClaim) -> Opening {
    Opening { claims: Some(claim), ..opening() }
}

pub(crate) async fn create(world: &World, task: NewTask) {
    assert_eq!(world.shared().create_task(task, TaskQuota::of_open(MANY)).await.unwrap(), Ok(()));
}

pub(crate) async fn run(ledger: &dyn Ledger, id: &str) -> IntentId {
    opened(ledger.open(claiming(claim(id))).await.unwrap())
}

pub(crate) async fn end(ledger: &dyn Ledger, intent: IntentId, number: u64, end: Option<TaskEnd>) {
    end_at(ledger, intent, number, end, NOW).await;
}

pub(crate) async fn end_at(
    ledger: &dyn Ledger,
    intent: IntentId,
    number: u64,
    end: Option<TaskEnd>,
    closed_at: u64,
) {
    let Entry { body, closes, .. } = closing(number, intent, Vec::new());
    let closes = closes.map(|closes| Closing { task: end, closed_at, ..closes });
    ledger.append(Entry { closes, ..Entry::new(body) }).await.unwrap();
}

pub(crate) async fn seen(world: &World, id: &str, now: u64) -> Result<Task, TaskRefused> {
    world.shared().task(id, &key(1), now).await.unwrap()
}

pub(crate) fn ended(state: TaskState) -> TaskEnd {
    TaskEnd { state, result: b"result".to_vec() }
}

#[tokio::test]
async fn a_task_is_kept_as_it_was_taken_on_for_its_owner_alone() {
    on_each_store(async |world| {
        create(world, task("a")).await;
        let new = task("a");
        let state = TaskState::Waiting;
        let expected = Task { new, state, updated_at: NOW, result: None, receipt: None };
        assert_eq!(seen(world, "a", NOW + 59).await, Ok(expected));
        assert_eq!(seen(world, "b", NOW).await, Err(TaskRefused::Unknown));
        let shared = world.shared();
        let other = shared.task("a", &key(2), NOW).await.unwrap();
        assert_eq!(other, Err(TaskRefused::NotOwner));
        let other = shared.cancel_task("a", &key(2), NOW).await.unwrap();
        assert_eq!(other, Err(TaskRefused::NotOwner));
        assert_eq!(seen(world, "a", NOW + 60).await, Err(TaskRefused::Unknown));
        let taken = shared.create_task(task("a"), TaskQuota::of_open(MANY)).await.unwrap();
        assert_eq!(taken, Err(TaskRefused::NameTaken));
    })
    .await;
}

#[tokio::test]
async fn an_owner_has_only_so_many_tasks_that_are_not_over() {
    on_each_store(async |world| {
        let (ledger, shared) = (world.ledger().await, world.shared());
        let create = async |task| shared.create_task(task, TaskQuota::of_open(2)).await.unwrap();
        assert_eq!(create(task("a")).await, Ok(()));
        assert_eq!(create(task("b")).await, Ok(()));
        assert_eq!(create(task("c")).await, Err(TaskRefused::TooMany));
        // One that runs counts, even beyond its time; one that is over or has expired does not.
        let running = run(ledger.as_ref(), "a").await;
        assert_eq!(create(task("c")).await, Err(TaskRefused::TooMany));
        let other = NewTask { account: "another".to_owned(), ..task("d") };
        assert_eq!(create(other).await, Ok(()));
        let later = |id: &str| NewTask { created_at: NOW + 60, expires_at: NOW + 120, ..task(id) };
        assert_eq!(create(later("c")).await, Ok(()));
        assert_eq!(create(later("e")).await, Err(TaskRefused::TooMany));
        end(ledger.as_ref(), running, 1, None).await;
        assert_eq!(create(later("e")).await, Ok(()));
        assert_eq!(create(later("f")).await, Err(TaskRefused::TooMany));
        shared.cancel_task("e", &key(1), NOW + 60).await.unwrap().unwrap();
        assert_eq!(create(later("f")).await, Ok(()));
    })
    .await;
}

#[tokio::test]
async fn what_has_expired_makes_room_and_its_name_is_not_remembered() {
    on_each_store(async |world| {
        create(world, task("a")).await;
        let later = NewTask { created_at: NOW + 60, expires_at: NOW + 120, ..task("b") };
        create(world, later).await;
        assert_eq!(seen(world, "a", NOW).await, Err(TaskRefused::Unknown));
        create(world, task("a")).await;
    })
    .await;
}

#[tokio::test]
async fn a_task_is_claimed_by_its_owner_while_it_waits() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        for id in ["waits", "runs", "failed", "cancelled"] {
            create(world, task(id)).await;
        }
        run(ledger.as_ref(), "runs").await;
        let failed = run(ledger.as_ref(), "failed").await;
        end(ledger.as_ref(), failed, 1, None).await;
        world.shared().cancel_task("cancelled", &key(1), NOW).await.unwrap().unwrap();
        let open = ledger.open_intents().await.unwrap().len();
        let cases = [
            (claim("none"), TaskRefused::Unknown),
            (TaskClaim { owner: key(2), ..claim("waits") }, TaskRefused::NotOwner),
            (TaskClaim { now: NOW + 60, ..claim("waits") }, TaskRefused::Unknown),
            (claim("runs"), TaskRefused::Running),
            (TaskClaim { now: NOW + 60, ..claim("runs") }, TaskRefused::Running),
            (claim("failed"), TaskRefused::Over(TaskState::Failed)),
            (claim("cancelled"), TaskRefused::Over(TaskState::Cancelled)),
        ];
        for (claim, refused) in cases {
            let claimed = ledger.open(claiming(claim.clone())).await.unwrap();
            assert_eq!(claimed, Opened::NotClaimed(refused), "{claim:?}");
        }
        assert_eq!(ledger.open_intents().await.unwrap().len(), open);
        let runs = run(ledger.as_ref(), "waits").await;
        assert_eq!(seen(world, "waits", NOW).await.unwrap().state, TaskState::Running);
        let intents = ledger.open_intents().await.unwrap();
        assert!(intents.iter().any(|open| open.id == runs && !open.reserved));
    })
    .await;
}

#[tokio::test]
async fn a_task_ends_with_the_receipt_of_its_call() {
    let cases = [
        (Some(ended(TaskState::Completed)), TaskState::Completed),
        (Some(ended(TaskState::Failed)), TaskState::Failed),
        (Some(ended(TaskState::Cancelled)), TaskState::Cancelled),
        // Nothing would end it any more.
        (Some(ended(TaskState::Running)), TaskState::Failed),
        (None, TaskState::Failed),
    ];
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        for (number, (ending, state)) in (1..).zip(cases.clone()) {
            let id = number.to_string();
            create(world, task(&id)).await;
            let intent = run(ledger.as_ref(), &id).await;
            let result = ending.as_ref().map(|end| end.result.clone());
            let reserve = Reservation { resumes: Some(intent), ..free() };
            assert_eq!(held(ledger.reserve(reserve).await.unwrap()), intent);
            end(ledger.as_ref(), intent, number, ending).await;
            let new = NewTask { request: Vec::new(), expires_at: NOW + 300, ..task(&id) };
            let body = Some(receipt(number).to_string().into_bytes());
            let receipt = Some(TaskReceipt { id: format!("{number:064x}"), body });
            let expected = Task { new, state, updated_at: NOW, result, receipt };
            assert_eq!(seen(world, &id, NOW).await, Ok(expected));
        }
    })
    .await;
}

#[tokio::test]
async fn a_task_does_not_expire_while_it_runs() {
    on_each_store(async |world| {
        let (ledger, late) = (world.ledger().await, NOW + 1000);
        create(world, task("a")).await;
        let intent = run(ledger.as_ref(), "a").await;
        create(world, NewTask { created_at: late, expires_at: late + 60, ..task("b") }).await;
        let running = seen(world, "a", late).await.unwrap();
        assert_eq!((running.state, running.new), (TaskState::Running, task("a")));
        assert_eq!(world.shared().forget_expired(late).await.unwrap(), 0);
        end_at(ledger.as_ref(), intent, 1, Some(ended(TaskState::Completed)), late).await;
        assert_eq!(seen(world, "a", late).await.unwrap().state, TaskState::Completed);
    })
    .await;
}

#[tokio::test]
async fn a_task_that_has_ended_keeps_its_result_for_five_minutes_whatever_its_time_was() {
    // Seconds after now: its own time, the end of its call, and when it is gone.
    let cases = [(60, 59, 359), (60, 60, 360), (60, 1000, 1300), (600, 299, 600), (600, 301, 601)];
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        for (number, (time, closed, gone)) in (1..).zip(cases) {
            let id = number.to_string();
            create(world, NewTask { expires_at: NOW + time, ..task(&id) }).await;
            let intent = run(ledger.as_ref(), &id).await;
            // Also when it is unknown how it ended.
            let ending = (number % 2 == 0).then(|| ended(TaskState::Completed));
            let (state, result) = match &ending {
                Some(end) => (TaskState::Completed, Some(end.result.clone())),
                None => (TaskState::Failed, None),
            };
            end_at(ledger.as_ref(), intent, number, ending, NOW + closed).await;
            let kept = seen(world, &id, NOW + gone - 1).await.unwrap();
            assert_eq!((kept.state, kept.result), (state, result), "{id}");
            assert_eq!(kept.new.expires_at, NOW + gone, "{id}");
            assert_eq!(seen(world, &id, NOW + gone).await, Err(TaskRefused::Unknown), "{id}");
        }
    })
    .await;
}

#[tokio::test]
async fn what_has_expired_and_does_not_run_is_forgotten_with_its_token() {
    on_each_store(async |world| {
        let (ledger, shared) = (world.ledger().await, world.shared());
        for id in ["waits", "runs", "completed", "cancelled"] {
            create(world, task(id)).await;
        }
        create(world, NewTask { expires_at: NOW + 400, ..task("later") }).await;
        run(ledger.as_ref(), "runs").await;
        let completed = run(ledger.as_ref(), "completed").await;
        end(ledger.as_ref(), completed, 1, Some(ended(TaskState::Completed))).await;
        shared.cancel_task("cancelled", &key(1), NOW).await.unwrap().unwrap();
        for (after, forgotten) in [(59, 0), (60, 2), (60, 0), (299, 0), (300, 1), (400, 1)] {
            let found = shared.forget_expired(NOW + after).await.unwrap();
            assert_eq!(found, forgotten, "after {after}");
        }
        // They are not merely hidden: in their time there is nothing either.
        for id in ["waits", "completed", "cancelled", "later"] {
            assert_eq!(seen(world, id, NOW).await, Err(TaskRefused::Unknown), "{id}");
        }
        let running = seen(world, "runs", NOW + 400).await.unwrap();
        assert_eq!((running.state, running.new), (TaskState::Running, task("runs")));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_that_have_expired_are_forgotten_in_parts() {
    on_each_store(async |world| {
        let mut tasks = Vec::new();
        for number in 0..300 {
            let shared = world.shared();
            let new = task(&number.to_string());
            tasks.push(tokio::spawn(async move {
                shared.create_task(new, TaskQuota::of_open(300)).await.unwrap()
            }));
        }
        for task in tasks {
            task.await.unwrap().unwrap();
        }
        for expected in [256, 44, 0] {
            let forgotten = world.shared().forget_expired(NOW + 60).await.unwrap();
            assert_eq!(forgotten, expected);
        }
    })
    .await;
}

#[tokio::test]
async fn a_task_is_cancelled_while_it_waits() {
    on_each_store(async |world| {
        let (ledger, shared) = (world.ledger().await, world.shared());
        for id in ["waits", "runs", "completed"] {
            create(world, task(id)).await;
        }
        run(ledger.as_ref(), "runs").await;
        let completed = run(ledger.as_ref(), "completed").await;
        end(ledger.as_ref(), completed, 1, Some(ended(TaskState::Completed))).await;
        let cases = [
            ("none", NOW, Err(TaskRefused::Unknown)),
            ("waits", NOW + 60, Err(TaskRefused::Unknown)),
            ("waits", NOW, Ok(())),
            ("waits", NOW, Ok(())),
            ("runs", NOW, Err(TaskRefused::Running)),
            ("completed", NOW, Err(TaskRefused::Over(TaskState::Completed))),
        ];
        for (id, now, expected) in cases {
            let cancelled = shared.cancel_task(id, &key(1), now).await.unwrap();
            assert_eq!(cancelled, expected, "{id} at {now}");
        }
        let cancelled = seen(world, "waits", NOW).await.unwrap();
        assert_eq!((cancelled.state, cancelled.receipt), (TaskState::Cancelled, None));
        assert!(cancelled.new.request.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_task_that_waits_for_an_approval_stays_with_its_call() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        create(world, task("a")).await;
        let intent = run(ledger.as_ref(), "a").await;
        let waiting = || Opening { waits_for: Some(request("r")), ..opening() };
        let asks = Opening { resumes: Some(intent), ..waiting() };
        assert_eq!(opened(ledger.open(asks).await.unwrap()), intent);
        assert_eq!(seen(world, "a", NOW).await.unwrap().state, TaskState::Running);
        assert_eq!(ledger.open_intents().await.unwrap().len(), 1);
        end(ledger.as_ref(), intent, 1, Some(ended(TaskState::Failed))).await;
        let (task, asked) = (
            seen(world, "a", NOW).await.unwrap(),
            world.shared().approval("r").await.unwrap().unwrap(),
        );
        assert_eq!((task.state, asked.state), (TaskState::Failed, ApprovalState::Cancelled));
        assert!(asked.receipt_id.is_some());
        assert_eq!(task.receipt.map(|receipt| receipt.id), asked.receipt_id);
    })
    .await;
}

#[tokio::test]
async fn a_task_stays_with_a_call_that_is_written_again_for_nothing_new() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        create(world, task("a")).await;
        let intent = run(ledger.as_ref(), "a").await;
        let again = Opening { resumes: Some(intent), ..opening() };
        assert_eq!(opened(ledger.open(again).await.unwrap()), intent);
        end(ledger.as_ref(), intent, 1, Some(ended(TaskState::Completed))).await;
        assert_eq!(seen(world, "a", NOW).await.unwrap().state, TaskState::Completed);
    })
    .await;
}

#[tokio::test]
async fn an_opening_that_is_refused_leaves_nothing_behind() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        create(world, task("a")).await;
        opened(ledger.open(Opening { waits_for: Some(request("r")), ..opening() }).await.unwrap());
        let before = ledger.open_intents().await.unwrap();
        let fresh = || vec![proof("p", NOW)];
        // Each is refused at another step, and all that came before could have been done.
        let no_task = Opening { proofs: fresh(), ..claiming(claim("none")) };
        let refused = ledger.open(no_task).await.unwrap();
        assert_eq!(refused, Opened::NotClaimed(TaskRefused::Unknown));
        let taken =
            Opening { proofs: fresh(), waits_for: Some(request("r")), ..claiming(claim("a")) };
        assert!(matches!(ledger.open(taken).await, Err(StoreError::Refused(_))));
        assert_eq!(seen(world, "a", NOW).await.unwrap().state, TaskState::Waiting);
        assert_eq!(ledger.open_intents().await.unwrap(), before);
        let all =
            Opening { proofs: fresh(), waits_for: Some(request("s")), ..claiming(claim("a")) };
        opened(ledger.open(all.clone()).await.unwrap());
        // The proof is the first that is looked at.
        let refused = ledger.open(all).await.unwrap();
        assert_eq!(refused, Opened::Refused(chio_kernel::store::UseRefused::ProofUsed));
    })
    .await;
}

#[tokio::test]
async fn what_a_kernel_left_waiting_is_swept_with_all_that_belongs_to_it() {
    on_each_store(async |world| {
        let (survivor, lost) = (world.ledger().await, world.ledger().await);
        create(world, task("a")).await;
        let all = Opening { waits_for: Some(request("r")), ..claiming(claim("a")) };
        let intent = opened(lost.open(all).await.unwrap());
        drop(lost);
        let abandoned = survivor.abandoned().await.unwrap();
        assert_eq!(abandoned.len(), 1);
        let left = &abandoned[0].intents;
        assert_eq!((left.len(), left[0].id, left[0].reserved), (1, intent, false));
        end(survivor.as_ref(), intent, 1, None).await;
        let swept = seen(world, "a", NOW).await.unwrap();
        assert_eq!((swept.state, swept.result), (TaskState::Failed, None));
        let asked = world.shared().approval("r").await.unwrap().unwrap();
        assert_eq!(asked.state, ApprovalState::Cancelled);
        assert_eq!(asked.receipt_id, swept.receipt.map(|receipt| receipt.id));
        assert!(asked.receipt_id.is_some());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_claim_a_task_at_once_one_runs_it() {
    on_each_store(async |world| {
        let ledgers = [world.ledger().await, world.ledger().await];
        create(world, task("a")).await;
        let mut tasks = Vec::new();
        for number in 0..32_usize {
            let ledger = Arc::clone(&ledgers[number % 2]);
            tasks.push(tokio::spawn(
                async move { ledger.open(claiming(claim("a"))).await.unwrap() },
            ));
        }
        let mut claimed = 0;
        for task in tasks {
            match task.await.unwrap() {
                Opened::At(_) => claimed += 1,
                refused => assert_eq!(refused, Opened::NotClaimed(TaskRefused::Running)),
            }
        }
        assert_eq!(claimed, 1);
    })
    .await;
}

#[tokio::test]
async fn a_task_that_was_swept_cannot_reserve_any_more() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        create(world, task("a")).await;
        let intent = run(ledger.as_ref(), "a").await;
        end(world.ledger().await.as_ref(), intent, 1, None).await;
        let reserve = Reservation { resumes: Some(intent), ..free() };
        assert_eq!(ledger.reserve(reserve).await.unwrap(), Reserved::IntentClosed);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_gets_a_number_that_somebody_had() {
    on_each_store(async |world| {
        let mut taking = Vec::new();
        for count in 1..=20_u32 {
            let store = world.shared();
            let taken = async move { (store.take_numbers(count).await.unwrap(), count) };
            taking.push(tokio::spawn(taken));
        }
        let mut all = Vec::new();
        for taken in taking {
            let (first, count) = taken.await.unwrap();
            all.extend(first..first + u64::from(count));
        }
        all.sort_unstable();
        assert_eq!(all, (1..=210).collect::<Vec<u64>>());
    })
    .await;
}
