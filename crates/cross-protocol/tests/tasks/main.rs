//! Deferred tasks, on every kind of store: taken on now, run once when their owner asks, however
//! often and in however many processes.
#![cfg(test)]

mod support;

use std::time::Duration;

use chio_core::capability::{DpopProof, DpopTarget, ToolGrant};
use chio_core::crypto::Signature;
use chio_core::governance::{ApprovalDecision, ApprovalToken};
use chio_core::receipt::Decision;
use chio_core::signed::Signed as _;
use chio_cross_protocol::{
    DiscoveryProtocol, OrchestratedRequest, Outcome, Presented, Principal, TaskError, TaskLimits,
    TaskRefused, TaskState, TaskView,
};
use chio_kernel::store::{Approval, ApprovalQuery};
use chio_store::StoreUrl;
use chio_testkit::process::Folder;
use chio_testkit::{key, token};
use serde_json::json;
use support::{
    Beginning, NOW, Process, Told, approver, cap, decision, granted, on_every_store, owner, request,
};

fn outcome(view: &TaskView) -> &Outcome {
    &view.result.as_ref().unwrap().outcome
}

fn sqlite(folder: &Folder) -> Beginning {
    Beginning::on(StoreUrl::Sqlite(folder.path("store")))
}

#[tokio::test]
async fn a_task_runs_when_its_owner_asks_and_is_over_then() {
    let folder = Folder::new();
    for process in on_every_store(&folder).await {
        let taken = process.defer(request("work", json!({}))).await;
        assert!(taken.id.starts_with("a2a-task-"), "{}", taken.id);
        assert_eq!((taken.state, taken.expires_at), (TaskState::Waiting, NOW + 300));
        assert_eq!(process.look(&taken.id).await, taken, "looking runs nothing");
        assert_eq!(process.told.runs(), 0);
        let done = process.poll(&taken.id).await;
        assert_eq!(done.state, TaskState::Completed);
        assert_eq!(outcome(&done), &Outcome::Value(json!({"run": 1})));
        assert_eq!(decision(&done), Decision::Allow);
        for again in [process.poll(&taken.id).await, process.look(&taken.id).await] {
            assert_eq!(again, done);
        }
        assert_eq!(process.told.runs(), 1);
        let kept = process.kernel.store().task(&taken.id, owner().public_key(), NOW).await;
        assert!(kept.unwrap().unwrap().new.request.is_empty(), "the token is gone");
    }
}

#[tokio::test]
async fn what_a_task_streams_is_kept_with_its_result() {
    let folder = Folder::new();
    for process in on_every_store(&folder).await {
        let chunks = vec![json!("a"), json!({"b": 1})];
        let taken = process.defer(request("stream", json!({"chunks": chunks}))).await;
        let done = process.poll(&taken.id).await;
        assert_eq!(
            (done.state, outcome(&done)),
            (TaskState::Completed, &Outcome::Stream { chunks: 2 })
        );
        assert_eq!(done.result.as_ref().unwrap().chunks, chunks);
        assert_eq!(process.look(&taken.id).await, done);
    }
}

#[tokio::test]
async fn a_stream_that_does_not_fit_into_the_table_breaks_off() {
    let folder = Folder::new();
    for process in on_every_store(&folder).await {
        // Two quotes and this many letters are a mebibyte, and eight of them fit.
        let chunk = json!("x".repeat((1 << 20) - 2));
        for (times, state) in [(8, TaskState::Completed), (9, TaskState::Cancelled)] {
            let arguments = json!({"chunks": [&chunk], "times": times});
            let taken = process.defer(request("stream", arguments)).await;
            let view = process.poll(&taken.id).await;
            assert_eq!((view.state, view.result.as_ref().unwrap().chunks.len()), (state, 8));
            let whole = state == TaskState::Completed;
            assert_eq!(decision(&view) == Decision::Allow, whole);
        }
    }
}

#[tokio::test]
async fn a_task_is_its_owners_alone() {
    let folder = Folder::new();
    for process in on_every_store(&folder).await {
        let id = process.defer(request("work", json!({}))).await.id;
        let (tasks, stranger) = (&process.tasks, key(9));
        let stranger = stranger.public_key();
        let not_theirs = TaskError::Refused(TaskRefused::NotOwner);
        assert_eq!(tasks.look(&id, stranger).await.unwrap_err(), not_theirs);
        assert_eq!(tasks.cancel(&id, stranger).await.unwrap_err(), not_theirs);
        let subject = Some(stranger.clone());
        let principal = Principal { subject, ..Principal::anonymous() };
        let session = chio_cross_protocol::CrossProtocolOrchestrator::new(&process.kernel)
            .open_session(DiscoveryProtocol::A2a, principal);
        let caller = std::sync::Arc::new(chio_cross_protocol::NoCaller::new(session));
        let polled = tasks.result(&id, stranger, Presented::default(), caller).await;
        assert_eq!(polled.unwrap_err(), not_theirs);
        let unknown = tasks.look("a2a-task-x", owner().public_key()).await;
        assert_eq!(unknown.unwrap_err(), TaskError::Refused(TaskRefused::Unknown));
        assert_eq!((process.look(&id).await.state, process.told.runs()), (TaskState::Waiting, 0));
    }
}

#[tokio::test]
async fn a_task_is_cancelled_while_nobody_runs_it() {
    let folder = Folder::new();
    for process in on_every_store(&folder).await {
        let (tasks, owner) = (&process.tasks, owner());
        let id = process.defer(request("work", json!({}))).await.id;
        let off = tasks.cancel(&id, owner.public_key()).await.unwrap();
        assert_eq!((off.state, &off.result, &off.receipt), (TaskState::Cancelled, &None, &None));
        assert_eq!(tasks.cancel(&id, owner.public_key()).await.unwrap(), off, "twice is no error");
        assert_eq!(process.poll(&id).await, off, "and it never runs");
        assert_eq!(process.told.runs(), 0);
        let id = process.defer(request("work", json!({}))).await.id;
        process.poll(&id).await;
        let late = tasks.cancel(&id, owner.public_key()).await.unwrap_err();
        assert_eq!(late, TaskError::Refused(TaskRefused::Over(TaskState::Completed)));
    }
}

#[tokio::test]
async fn a_task_that_has_expired_is_gone() {
    let folder = Folder::new();
    for process in on_every_store(&folder).await {
        let waiting = process.defer(request("work", json!({}))).await.id;
        let done = process.defer(request("work", json!({}))).await.id;
        process.poll(&done).await;
        process.clock.set(NOW + 299);
        assert_eq!(process.look(&waiting).await.state, TaskState::Waiting);
        process.clock.set(NOW + 300);
        let gone = TaskError::Refused(TaskRefused::Unknown);
        for id in [&waiting, &done] {
            let polled = process.poll_with(id, Presented::default()).await;
            assert_eq!(polled.unwrap_err(), gone);
            let off = process.tasks.cancel(id, owner().public_key()).await;
            assert_eq!(off.unwrap_err(), gone);
        }
        assert_eq!(process.told.runs(), 1);
    }
}

#[tokio::test]
async fn an_owner_has_only_so_many_tasks_that_are_not_over() {
    let folder = Folder::new();
    for url in [StoreUrl::Memory, StoreUrl::Sqlite(folder.path("store"))] {
        let limits = TaskLimits { most_open: 2, ..TaskLimits::default() };
        let process = Beginning { limits, ..Beginning::on(url) }.start().await;
        let first = process.defer(request("work", json!({}))).await.id;
        process.defer(request("work", json!({}))).await;
        let defer = || process.tasks.defer(request("work", json!({})), DiscoveryProtocol::A2a);
        assert_eq!(defer().await.unwrap_err(), TaskError::Refused(TaskRefused::TooMany));
        process.poll(&first).await;
        defer().await.unwrap();
    }
}

#[tokio::test]
async fn a_call_that_fails_or_is_denied_fails_its_task_with_its_receipt() {
    let folder = Folder::new();
    for process in on_every_store(&folder).await {
        let narrow = granted(token::grant("srv/work"));
        let cases = [
            (request("fail", json!({})), "no such row", 1),
            (
                OrchestratedRequest { token: narrow.into(), ..request("gate", json!({})) },
                "scope",
                1,
            ),
        ];
        for (request, words, runs) in cases {
            let request = OrchestratedRequest { token: token_of(&request, words), ..request };
            let id = process.defer(request).await.id;
            let failed = process.poll(&id).await;
            let Outcome::Denied(denial) = outcome(&failed) else { panic!("{failed:?}") };
            assert!(denial.reason.contains(words), "{denial}");
            assert!(matches!(decision(&failed), Decision::Deny { .. }));
            assert_eq!((failed.state, process.told.runs()), (TaskState::Failed, runs));
            assert_eq!(process.poll(&id).await, failed);
        }
    }
}

/// The request's token under a name of its own, so that no other of that name is known.
fn token_of(request: &OrchestratedRequest, id: &str) -> chio_core::capability::PresentedToken {
    let mut token = (*request.token).clone();
    token.id = format!("cap-{id}");
    token.signed(&key(1)).unwrap().into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_polls_of_two_processes_run_a_task_once() {
    let (folder, told) = (Folder::new(), Told::default());
    let one = std::sync::Arc::new(sqlite(&folder).told(&told).start().await);
    let two = std::sync::Arc::new(sqlite(&folder).told(&told).start().await);
    for round in 1..=5 {
        let id = one.defer(request("work", json!({}))).await.id;
        let polls = (0..64).map(|number| {
            let process = if number % 2 == 0 { &one } else { &two };
            let (process, id) = (std::sync::Arc::clone(process), id.clone());
            tokio::spawn(async move { until_over(&process, &id).await })
        });
        let mut views = Vec::new();
        for poll in polls.collect::<Vec<_>>() {
            views.push(poll.await.unwrap());
        }
        assert_eq!(told.runs(), round, "exactly once");
        assert_eq!(views[0].state, TaskState::Completed);
        assert_eq!(outcome(&views[0]), &Outcome::Value(json!({"run": round})));
        assert!(views.iter().all(|view| view == &views[0]), "all see the same");
    }
}

/// Polls until the task is over.
async fn until_over(process: &Process, id: &str) -> TaskView {
    for _ in 0..10_000 {
        let view = process.poll(id).await;
        if view.state.is_over() {
            return view;
        }
        assert_eq!(view.state, TaskState::Running);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("the task is never over");
}

/// A runtime of its own, so that a crash is the end of all its tasks.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

#[test]
fn a_process_that_dies_while_a_task_runs_leaves_it_failed_with_an_incomplete_receipt() {
    let (folder, told) = (Folder::new(), Told::default());
    let dying = runtime();
    let (process, id) = dying.block_on(async {
        let process = std::sync::Arc::new(sqlite(&folder).told(&told).start().await);
        let id = process.defer(request("gate", json!({}))).await.id;
        let polling = (std::sync::Arc::clone(&process), id.clone());
        tokio::spawn(async move { polling.0.poll(&polling.1).await });
        while told.runs() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(process.poll(&id).await.state, TaskState::Running);
        (process, id)
    });
    drop(dying);
    drop(process);
    runtime().block_on(async {
        let next = sqlite(&folder).told(&told).start().await;
        let failed = next.poll(&id).await;
        assert_eq!((failed.state, &failed.result), (TaskState::Failed, &None));
        assert!(matches!(decision(&failed), Decision::Incomplete { .. }));
        assert_eq!(told.runs(), 1, "nothing runs again");
    });
}

#[tokio::test]
async fn a_task_outlives_its_process_and_names_differ() {
    let (folder, told) = (Folder::new(), Told::default());
    let mut ids = std::collections::HashSet::new();
    for _ in 0..3 {
        let process = sqlite(&folder).told(&told).start().await;
        for _ in 0..3 {
            assert!(ids.insert(process.defer(request("work", json!({}))).await.id));
        }
        process.kernel.drain(Duration::from_secs(1)).await.unwrap();
    }
    let next = sqlite(&folder).told(&told).start().await;
    for id in ids {
        assert_eq!(next.poll(&id).await.state, TaskState::Completed);
    }
    assert_eq!(told.runs(), 9);
}

#[tokio::test]
async fn a_process_without_the_tool_server_leaves_a_task_to_others() {
    let (folder, told) = (Folder::new(), Told::default());
    let bare = Beginning { has_tools: false, ..sqlite(&folder) }.start().await;
    let id = bare.defer(request("work", json!({}))).await.id;
    let polled = bare.poll_with(&id, Presented::default()).await;
    assert_eq!(polled.unwrap_err(), TaskError::Elsewhere);
    assert_eq!(bare.look(&id).await.state, TaskState::Waiting);
    let other = sqlite(&folder).told(&told).start().await;
    let done = other.poll(&id).await;
    assert_eq!((done.state, told.runs()), (TaskState::Completed, 1));
    assert_eq!(bare.poll(&id).await, done, "its result is there for all");
}

fn proof(nonce: &str) -> Option<Box<DpopProof>> {
    let (token, arguments) = (proven(), json!({}));
    let (tool_server, tool_name) = ("srv", "work");
    let target = DpopTarget { token: &token, tool_server, tool_name, arguments: &arguments };
    Some(Box::new(DpopProof::new(&target, nonce, NOW, &owner()).unwrap()))
}

fn proven() -> chio_core::capability::CapabilityToken {
    granted(ToolGrant { dpop_required: Some(true), ..token::grant("srv/*") })
}

#[tokio::test]
async fn a_proof_of_possession_comes_with_the_poll_and_is_never_kept() {
    let folder = Folder::new();
    for process in on_every_store(&folder).await {
        let asked = || OrchestratedRequest {
            token: proven().into(),
            dpop_proof: proof("early"),
            ..request("work", json!({}))
        };
        let id = process.defer(asked()).await.id;
        // A request without one spoils nothing for the one that has it.
        let waits = process.poll(&id).await;
        assert_eq!((waits.state, process.told.runs()), (TaskState::Waiting, 0));
        let presented = Presented { dpop_proof: proof("late"), approval: None };
        let done = process.poll_with(&id, presented).await.unwrap();
        assert_eq!((done.state, process.told.runs()), (TaskState::Completed, 1));
    }
}

fn yes_to(request_id: &str, intent_hash: &str) -> ApprovalToken {
    let token = ApprovalToken {
        id: "yes".to_owned(),
        approver: approver().public_key().clone(),
        subject: owner().public_key().clone(),
        governed_intent_hash: intent_hash.to_owned(),
        request_id: request_id.to_owned(),
        threshold_proposal_hash: None,
        issued_at: NOW,
        expires_at: NOW + 600,
        decision: ApprovalDecision::Approved,
        algorithm: None,
        signature: Signature::blank(),
    };
    token.signed(&approver()).unwrap()
}

/// What waits in the inbox.
async fn asked(process: &Process) -> Approval {
    let query = ApprovalQuery { limit: 10, ..ApprovalQuery::default() };
    for _ in 0..5000 {
        let mut rows = process.kernel.store().approvals(&query).await.unwrap();
        if let Some((_, approval)) = rows.pop() {
            return approval;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("nobody is asked");
}

#[tokio::test]
async fn a_task_whose_tool_needs_approval_runs_when_somebody_says_yes() {
    let folder = Folder::new();
    for process in on_every_store(&folder).await {
        let id = process.defer(request("approved", json!({}))).await.id;
        let approve = async {
            let request = asked(&process).await.request;
            assert_eq!(process.look(&id).await.state, TaskState::Running);
            assert_eq!(process.told.runs(), 0);
            let yes = yes_to(&request.request_id, &request.intent_hash);
            process.kernel.store().answer(&request.id, &yes, NOW).await.unwrap();
            request.intent_hash
        };
        let (done, hash) = tokio::join!(process.poll(&id), approve);
        assert_eq!((done.state, process.told.runs()), (TaskState::Completed, 1));
        // The next task is the same call under another name: its approval can come with the poll.
        let id = process.defer(request("approved", json!({}))).await.id;
        let approval = Some(Box::new(yes_to(&id, &hash)));
        let presented = Presented { dpop_proof: None, approval };
        let done = process.poll_with(&id, presented).await.unwrap();
        assert_eq!((done.state, process.told.runs()), (TaskState::Completed, 2));
    }
}

#[tokio::test]
async fn a_revoked_token_runs_no_task() {
    let folder = Folder::new();
    for process in on_every_store(&folder).await {
        let id = process.defer(request("work", json!({}))).await.id;
        process.kernel.revoke(&cap().id).await.unwrap();
        let failed = process.poll(&id).await;
        assert_eq!((failed.state, process.told.runs()), (TaskState::Failed, 0));
        assert!(matches!(decision(&failed), Decision::Deny { .. }));
    }
}

#[tokio::test]
async fn a_kernel_that_takes_nothing_on_burns_no_task() {
    let folder = Folder::new();
    for process in on_every_store(&folder).await {
        let id = process.defer(request("work", json!({}))).await.id;
        process.kernel.emergency_stop("drill").await.unwrap();
        let refused = process.poll_with(&id, Presented::default()).await;
        assert!(matches!(refused, Err(TaskError::Kernel(_))), "{refused:?}");
        assert_eq!(process.look(&id).await.state, TaskState::Waiting);
        process.kernel.resume().await.unwrap();
        assert_eq!(process.poll(&id).await.state, TaskState::Completed);
    }
}

#[tokio::test]
async fn a_kernel_that_shuts_down_leaves_tasks_to_others() {
    let folder = Folder::new();
    let (one, other) = (sqlite(&folder).start().await, sqlite(&folder).start().await);
    let id = one.defer(request("work", json!({}))).await.id;
    one.kernel.drain(Duration::from_millis(1)).await.unwrap();
    assert!(one.poll_with(&id, Presented::default()).await.is_err());
    assert_eq!(other.poll(&id).await.state, TaskState::Completed);
}

#[tokio::test]
async fn a_task_that_outlives_its_time_while_it_runs_keeps_its_result() {
    let folder = Folder::new();
    for process in on_every_store(&folder).await {
        let id = process.defer(request("gate", json!({}))).await.id;
        process.clock.set(NOW + 299);
        let poll = process.poll_with(&id, Presented::default());
        tokio::pin!(poll);
        let begun = async {
            while process.told.runs() == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            _ = &mut poll => panic!("it waits at the gate"),
            () = begun => {}
        }
        process.clock.set(NOW + 301);
        process.told.gate.add_permits(1);
        let view = poll.await;
        assert!(matches!(&view, Ok(view) if view.state == TaskState::Completed), "{view:?}");
    }
}
