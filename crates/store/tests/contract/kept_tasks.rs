//! Tasks that stay: those that ask, those that are over, and how they are found.

use std::sync::Arc;

use chio_core::protocol::DiscoveryProtocol;
use chio_kernel::store::{
    Appended, CallTask, Closing, EndedTask, Entry, Ledger, MAX_LISTED, MessageQuery,
    MessageStanding, NEVER, NewTask, Opened, Reservation, Task, TaskClaim, TaskEnd, TaskQuery,
    TaskQuota, TaskReceipt, TaskRefused, TaskState,
};

use crate::support::{NOW, World, closing, entry, free, held, on_each_store, receipt};
use crate::tasks::{claiming, create, end, end_at, ended, key, run, seen, task};

/// A task that is there until it has ended, and ten seconds longer.
fn lasting(id: &str) -> NewTask {
    NewTask { expires_at: NEVER, kept_for: 10, record: b"what was said".to_vec(), ..task(id) }
}

/// A task of a call that runs at once.
fn of_call(id: &str, quota: TaskQuota) -> Arc<CallTask> {
    Arc::new(CallTask { new: NewTask { request: Vec::new(), ..lasting(id) }, quota })
}

const QUOTA: TaskQuota = TaskQuota::of_open(100);

/// Appends the receipt of a call whose task was stored by nothing before.
async fn ends(ledger: &dyn Ledger, task: Arc<CallTask>, number: u64, at: u64, state: TaskState) {
    let receipt_id = format!("{number:064x}");
    let task = EndedTask { task, end: ended(state), receipt_id, ended_at: at };
    let entry = Entry { task: Some(Box::new(task)), ..entry(&receipt(number)) };
    assert!(matches!(ledger.append(entry).await.unwrap(), Appended::At(_)));
}

async fn asking(world: &World, ledger: &dyn Ledger, id: &str, number: u64) {
    create(world, lasting(id)).await;
    let intent = run(ledger, id).await;
    end(ledger, intent, number, Some(ended(TaskState::Asking))).await;
}

fn query() -> TaskQuery {
    TaskQuery {
        owner: key(1),
        protocol: DiscoveryProtocol::A2a,
        context: None,
        states: None,
        since: 0,
        after: None,
        now: NOW,
        limit: 100,
    }
}

async fn listed(world: &World, query: TaskQuery) -> (Vec<String>, usize) {
    let page = world.shared().tasks_of(query).await.unwrap();
    (page.tasks.into_iter().map(|task| task.new.id).collect(), page.total)
}

#[tokio::test]
async fn a_task_is_there_until_it_has_ended_and_for_its_time_after_that() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        let (long, end_of) = (NOW + 1_000_000, NOW + 1_000_009);
        create(world, lasting("waits")).await;
        create(world, lasting("cancelled")).await;
        asking(world, ledger.as_ref(), "asks", 1).await;
        create(world, lasting("ends")).await;
        let intent = run(ledger.as_ref(), "ends").await;
        end_at(ledger.as_ref(), intent, 2, Some(ended(TaskState::Rejected)), long).await;
        world.shared().cancel_task("cancelled", &key(1), long).await.unwrap().unwrap();
        for (id, state) in [
            ("waits", TaskState::Waiting),
            ("asks", TaskState::Asking),
            ("ends", TaskState::Rejected),
            ("cancelled", TaskState::Cancelled),
        ] {
            assert_eq!(seen(world, id, end_of).await.unwrap().state, state, "{id}");
            let gone = seen(world, id, end_of + 1).await == Err(TaskRefused::Unknown);
            assert_eq!(gone, state.is_over(), "{id}");
        }
        assert_eq!(world.shared().forget_expired(end_of + 1).await.unwrap(), 2);
        assert_eq!(world.shared().forget_expired(NEVER - 1).await.unwrap(), 0);
    })
    .await;
}

#[tokio::test]
async fn a_task_that_asks_goes_on_with_one_answer() {
    on_each_store(async |world| {
        let (ledger, shared) = (world.ledger().await, world.shared());
        asking(world, ledger.as_ref(), "a", 1).await;
        let asks = seen(world, "a", NOW).await.unwrap();
        assert_eq!((asks.new.request.len(), asks.result), (0, Some(b"result".to_vec())));
        let claimed =
            ledger.open(claiming(TaskClaim { id: "a".to_owned(), owner: key(1), now: NOW }));
        assert_eq!(claimed.await.unwrap(), Opened::NotClaimed(TaskRefused::Asking));
        let answer = NewTask {
            request: b"the answer".to_vec(),
            record: b"all that was said".to_vec(),
            due_at: Some(NOW + 5),
            created_at: NOW + 5,
            ..lasting("a")
        };
        let theirs = NewTask { owner: key(2), ..answer.clone() };
        assert_eq!(shared.answer_task(theirs).await.unwrap(), Err(TaskRefused::NotOwner));
        let unknown = NewTask { id: "b".to_owned(), ..answer.clone() };
        assert_eq!(shared.answer_task(unknown).await.unwrap(), Err(TaskRefused::Unknown));
        assert_eq!(shared.answer_task(answer.clone()).await.unwrap(), Ok(()));
        let again = shared.answer_task(answer.clone()).await.unwrap();
        assert_eq!(again, Err(TaskRefused::Running), "one answer is taken");
        let receipt = asks.receipt.clone();
        let new = NewTask { created_at: NOW, ..answer.clone() };
        let (state, updated_at) = (TaskState::Waiting, NOW + 5);
        let expected = Task { new, state, updated_at, result: None, receipt };
        assert_eq!(seen(world, "a", NOW).await, Ok(expected));
        let intent = run(ledger.as_ref(), "a").await;
        end(ledger.as_ref(), intent, 2, Some(ended(TaskState::Completed))).await;
        let over = shared.answer_task(answer).await.unwrap();
        assert_eq!(over, Err(TaskRefused::Over(TaskState::Completed)));
        let done = seen(world, "a", NOW).await.unwrap();
        assert_eq!(done.new.record, b"all that was said");
        assert_eq!(done.receipt.map(|receipt| receipt.id), Some(format!("{:064x}", 2)));
    })
    .await;
}

#[tokio::test]
async fn the_task_of_a_call_is_stored_with_its_receipt() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        ends(ledger.as_ref(), of_call("a", QUOTA), 1, NOW + 3, TaskState::Completed).await;
        let body = Some(receipt(1).to_string().into_bytes());
        let expected = Task {
            new: NewTask { expires_at: NOW + 13, ..of_call("a", QUOTA).new.clone() },
            state: TaskState::Completed,
            updated_at: NOW + 3,
            result: Some(b"result".to_vec()),
            receipt: Some(TaskReceipt { id: format!("{:064x}", 1), body }),
        };
        assert_eq!(seen(world, "a", NOW).await, Ok(expected));
        // One that asks stays, and no receipt fails because a name is taken.
        ends(ledger.as_ref(), of_call("b", QUOTA), 2, NOW, TaskState::Asking).await;
        assert_eq!(seen(world, "b", NEVER - 1).await.unwrap().state, TaskState::Asking);
        ends(ledger.as_ref(), of_call("a", QUOTA), 3, NOW, TaskState::Failed).await;
        assert_eq!(seen(world, "a", NOW).await.unwrap().state, TaskState::Completed);
    })
    .await;
}

#[tokio::test]
async fn the_task_of_a_call_with_an_intent_is_there_from_then_on_and_ends_with_it() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        for (number, end) in [(1, Some(ended(TaskState::Completed))), (2, None)] {
            let id = number.to_string();
            let reservation = Reservation { task: Some(of_call(&id, QUOTA)), ..free() };
            let intent = held(ledger.reserve(reservation).await.unwrap());
            let running = seen(world, &id, NOW).await.unwrap();
            assert_eq!((running.state, running.receipt), (TaskState::Running, None));
            let Entry { body, closes, .. } = closing(number, intent, Vec::new());
            let state = end.as_ref().map_or(TaskState::Failed, |end: &TaskEnd| end.state);
            let closes = closes.map(|closes| Closing { task: end, ..closes });
            ledger.append(Entry { closes, ..Entry::new(body) }).await.unwrap();
            let over = seen(world, &id, NOW).await.unwrap();
            assert_eq!((over.state, over.new.expires_at), (state, NOW + 10));
            assert!(over.receipt.is_some_and(|receipt| receipt.body.is_some()));
        }
    })
    .await;
}

#[tokio::test]
async fn the_oldest_that_are_over_make_room_and_nothing_else_does() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        asking(world, ledger.as_ref(), "asks", 1).await;
        let few = TaskQuota { ended: 3, ..QUOTA };
        for number in 2..=9 {
            let task = of_call(&number.to_string(), few);
            ends(ledger.as_ref(), task, number, NOW + number, TaskState::Completed).await;
        }
        assert_eq!(listed(world, query()).await.0, ["9", "8", "7", "asks"]);
        // By their bytes: each has thirteen of its record and six of its result.
        let small = TaskQuota { bytes: 40, ..QUOTA };
        for number in 10..=12 {
            let task = of_call(&number.to_string(), small);
            ends(ledger.as_ref(), task, number, NOW + number, TaskState::Completed).await;
        }
        assert_eq!(listed(world, query()).await.0, ["12", "11", "asks"]);
    })
    .await;
}

#[tokio::test]
async fn tasks_are_listed_the_latest_first_by_what_is_asked_for() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        let states = [TaskState::Completed, TaskState::Failed, TaskState::Asking];
        for (number, state) in (1..=12).zip(states.into_iter().cycle()) {
            let mut task = (*of_call(&number.to_string(), QUOTA)).clone();
            task.new.context = Some(format!("ctx-{}", number % 2));
            ends(ledger.as_ref(), Arc::new(task), number, NOW + number / 4, state).await;
        }
        create(world, NewTask { owner: key(2), ..task("theirs") }).await;
        create(world, NewTask { protocol: DiscoveryProtocol::Mcp, ..task("mcp") }).await;
        let all = ["12", "11", "10", "9", "8", "7", "6", "5", "4", "3", "2", "1"];
        assert_eq!(listed(world, query()).await, (all.map(str::to_owned).to_vec(), 12));
        for (asked, expected, total) in [
            (TaskQuery { limit: 2, ..query() }, &["12", "11"][..], 12),
            (TaskQuery { after: Some((NOW + 1, "6".to_owned())), ..query() }, &all[7..], 12),
            (TaskQuery { after: Some((NOW + 2, "10".to_owned())), ..query() }, &all[3..], 12),
            (TaskQuery { context: Some("ctx-1".to_owned()), limit: 2, ..query() }, &["11", "9"], 6),
            (
                TaskQuery { states: Some(vec![TaskState::Failed]), ..query() },
                &["11", "8", "5", "2"],
                4,
            ),
            (TaskQuery { states: Some(Vec::new()), ..query() }, &[], 0),
            (TaskQuery { since: NOW + 3, ..query() }, &["12"], 1),
            // What is over has expired, and what asks has not.
            (TaskQuery { now: NOW + 100, ..query() }, &["12", "9", "6", "3"], 4),
        ] {
            let found = listed(world, asked.clone()).await;
            assert_eq!(
                (found.0, found.1),
                (expected.iter().map(|id| (*id).to_owned()).collect(), total),
                "{asked:?}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn a_list_leaves_out_what_is_long() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        create(world, lasting("a")).await;
        let intent = run(ledger.as_ref(), "a").await;
        let (state, result) = (TaskState::Completed, vec![b'x'; MAX_LISTED + 1]);
        let ending = TaskEnd { state, result: result.clone() };
        end(ledger.as_ref(), intent, 1, Some(ending)).await;
        create(world, lasting("b")).await;
        let page = world.shared().tasks_of(query()).await.unwrap();
        let left = page.tasks.iter().map(|task| (task.new.request.len(), task.result.clone()));
        assert_eq!(left.collect::<Vec<_>>(), [(0, None), (0, None)]);
        assert_eq!(seen(world, "a", NOW).await.unwrap().result, Some(result), "it is there");
    })
    .await;
}

#[tokio::test]
async fn a_message_is_known_by_its_owner_and_a_context_by_others() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        let named = NewTask {
            message: Some("m".to_owned()),
            context: Some("ctx".to_owned()),
            account: "one".to_owned(),
            ..lasting("a")
        };
        create(world, named).await;
        ends(ledger.as_ref(), of_call("over", QUOTA), 1, NOW, TaskState::Completed).await;
        let asked = async |owner: u8, account: &str, message: &str, context: &str| {
            let owner = key(owner);
            let (message, context) = (Some(message), Some(context));
            let query = MessageQuery { owner: &owner, account, message, context, now: NOW };
            world.shared().standing_of(query).await.unwrap()
        };
        let known = Some("a".to_owned());
        for (owner, account, message, context, expected) in [
            (1, "one", "m", "ctx", MessageStanding { known, foreign_context: false, open: 1 }),
            (1, "one", "n", "none", MessageStanding { open: 1, ..Default::default() }),
            (
                2,
                "other",
                "m",
                "ctx",
                MessageStanding { foreign_context: true, ..Default::default() },
            ),
        ] {
            assert_eq!(
                asked(owner, account, message, context).await,
                expected,
                "{owner} {message}"
            );
        }
        // Once it is gone, nothing is known of it.
        world.shared().cancel_task("a", &key(1), NOW).await.unwrap().unwrap();
        let owner = key(1);
        let query = MessageQuery {
            owner: &owner,
            account: "one",
            message: Some("m"),
            context: None,
            now: NOW + 10,
        };
        let standing = world.shared().standing_of(query).await.unwrap();
        assert_eq!(standing, MessageStanding::default());
    })
    .await;
}

#[tokio::test]
async fn what_waits_and_is_due_is_found_the_earliest_first() {
    on_each_store(async |world| {
        let ledger = world.ledger().await;
        for (id, due_at) in
            [("b", Some(NOW + 2)), ("a", Some(NOW + 1)), ("c", None), ("d", Some(NOW + 9))]
        {
            create(world, NewTask { due_at, ..lasting(id) }).await;
        }
        create(world, NewTask { due_at: Some(NOW), ..lasting("runs") }).await;
        run(ledger.as_ref(), "runs").await;
        let due = async |now, most| {
            let found = world.shared().due_tasks(DiscoveryProtocol::A2a, now, most).await.unwrap();
            assert!(found.iter().all(|(_, owner)| *owner == key(1)));
            found.into_iter().map(|(id, _)| id).collect::<Vec<_>>()
        };
        assert_eq!(due(NOW, 9).await, Vec::<String>::new());
        assert_eq!(due(NOW + 2, 9).await, ["a", "b"]);
        assert_eq!(due(NOW + 9, 2).await, ["a", "b"]);
        let found = world.shared().due_tasks(DiscoveryProtocol::Mcp, NOW + 9, 9).await.unwrap();
        assert_eq!(found, []);
    })
    .await;
}
