//! Approvals: who is asked for, what becomes of a call that waits, and which answers count.

use std::sync::Arc;
use std::time::Duration;

use chio_core::canonical;
use chio_core::capability::{CapabilityToken, Validity};
use chio_core::governance::{ApprovalDecision, ApprovalToken};
use chio_core::receipt::Decision;
use chio_core::registry::ErrorCode as Code;
use chio_core::signed::Signed as _;
use chio_kernel::store::{Answered, ApprovalState as State};
use chio_kernel::{Outcome, Verdict};
use chio_testkit::key;
use serde_json::{Value, json};

use crate::support::authority::{approver, changed, intent, no, yes};
use crate::support::guards::Scripted;
use crate::support::inbox::Parked;
use crate::support::tokens::{agent, child, draft, issuer, token};
use crate::support::world::{assert_denied, assert_denied_by, denial, metadata, runtime, value};
use crate::support::{Journal, NOW, SERVER, Setup, World, grant, guard};

/// A guard that wants everything approved.
fn careful() -> Scripted {
    guard("careful").says(Verdict::AwaitApproval("it is large".to_owned()))
}

/// A world where everything has to be approved.
async fn careful_world() -> World {
    Setup::default().approved().guard(careful()).start().await
}

fn cap() -> CapabilityToken {
    token("cap-1", &[grant("*")])
}

/// Has a call of `effect` wait.
async fn park(world: &World) -> Parked {
    world.park(world.call(&cap(), "effect", json!({"n": 1}))).await
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_is_in_the_inbox_and_holds_nothing() {
    let world = careful_world().await;
    let parked = park(&world).await;
    let request = &parked.approval.request;
    assert_eq!(request.request_id, parked.request_id);
    assert_eq!((&request.subject, &*request.capability_id), (agent().public_key(), "cap-1"));
    assert_eq!((&*request.server_id, &*request.tool_name), (SERVER, "effect"));
    assert_eq!(request.action.parameters, json!({"n": 1}));
    assert_eq!((&*request.asked_by, &*request.reason), ("careful", "it is large"));
    assert_eq!((request.requested_at, request.expires_at), (NOW, NOW + 300));
    assert_eq!(request.intent_hash, request.intent.hash().unwrap());
    assert_eq!(parked.approval.state, State::Pending);
    assert_eq!(
        (parked.approval.answer.as_ref(), parked.approval.receipt_id.as_ref()),
        (None, None)
    );
    assert_eq!((world.runs("effect"), world.open_intents().await), (0, 1));
    assert!(world.ledger.reservations().is_empty());
    assert!(world.receipts_of(&parked.request_id).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_approved_call_runs_once_and_its_receipt_names_who_approved() {
    let world = careful_world().await;
    let parked = park(&world).await;
    let answer = world.approve(&parked).await;
    let request = parked.approval.request.clone();
    let (ended, row) = world.ended(parked).await;
    assert_eq!((value(&ended), world.runs("effect")), (&json!({"n": 1}), 1));
    let approval = json!({
        "token_id": answer.id,
        "approver_key": approver().public_key().to_hex(),
        "approval_artifact_digest": answer.artifact_digest().unwrap(),
        "approved": true,
    });
    let governed = metadata(&ended, "governed_transaction");
    assert_eq!(governed["approval"], approval);
    assert_eq!(governed["intent_hash"], json!(request.intent_hash));
    let asked = json!({"id": request.id, "asked_by": "careful", "reason": "it is large"});
    assert_eq!(metadata(&ended, "approval"), &asked);
    let evidence = json!([{"guard_name": "careful", "verdict": true}]);
    assert_eq!(json!(ended.receipt.evidence), evidence);
    assert_eq!((row.state, row.answer), (State::Used, Some(answer)));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_published_so_needs_an_approval() {
    let world = Setup::default().approved().start().await;
    let parked = world.park(world.call(&cap(), "approved", json!(1))).await;
    let request = &parked.approval.request;
    assert_eq!(request.asked_by, "kernel");
    assert_eq!(request.reason, "the tool is published as one that needs approval");
    assert_eq!((world.runs("approved"), world.ledger.reservations().len()), (0, 0));
    world.approve(&parked).await;
    let (ended, row) = world.ended(parked).await;
    assert_eq!((value(&ended), row.state), (&json!(1), State::Used));
    assert_eq!(world.runs("approved"), 1);
}

#[tokio::test(start_paused = true)]
async fn the_first_who_asks_is_named_and_the_kernel_is_the_first() {
    let other = guard("other").says(Verdict::AwaitApproval("I want it too".to_owned()));
    let world = Setup::default().approved().guard(careful()).guard(other).start().await;
    let parked = park(&world).await;
    assert_eq!(parked.approval.request.asked_by, "careful");
    let parked = world.park(world.call(&cap(), "approved", json!(1))).await;
    assert_eq!(parked.approval.request.asked_by, "kernel");
    assert_eq!(world.inbox().await.len(), 2, "one request for each call");
}

#[tokio::test(start_paused = true)]
async fn a_no_ends_the_call_and_its_receipt_names_who_said_it() {
    let world = careful_world().await;
    let parked = park(&world).await;
    let answer = no(&parked.approval.request);
    assert_eq!(world.answer(&parked, &answer).await, Answered::Recorded);
    let late = yes(&parked.approval.request);
    assert_eq!(world.answer(&parked, &late).await, Answered::Over(State::Denied));
    let (ended, row) = world.ended(parked).await;
    assert_denied_by(&ended, "approval", Code::GuardDenied, "said no");
    let recorded = &metadata(&ended, "governed_transaction")["approval"];
    assert_eq!(recorded["approved"], json!(false));
    assert_eq!(recorded["approver_key"], json!(approver().public_key().to_hex()));
    assert_eq!((row.state, world.runs("effect")), (State::Denied, 0));
}

#[tokio::test(start_paused = true)]
async fn no_answer_in_time_is_a_no() {
    let world = careful_world().await;
    let parked = park(&world).await;
    let id = parked.approval.request.id.clone();
    let (ended, row) = world.ended(parked).await;
    let words = "an approval is needed (it is large), and nobody gave it in time";
    assert_denied_by(&ended, "careful", Code::GuardDenied, words);
    assert_eq!((row.state, world.runs("effect")), (State::Expired, 0));
    assert_eq!(metadata(&ended, "approval")["id"], json!(id));
}

#[tokio::test(start_paused = true)]
async fn an_answer_after_the_time_is_refused() {
    let world = careful_world().await;
    let parked = park(&world).await;
    world.clock.set(NOW + 300);
    let answer = yes(&parked.approval.request);
    assert_eq!(world.answer(&parked, &answer).await, Answered::Over(State::Expired));
    let (ended, row) = world.ended(parked).await;
    assert_denied_by(&ended, "careful", Code::GuardDenied, "nobody gave it in time");
    assert_eq!(row.state, State::Expired);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_cancels_stops_waiting() {
    let world = careful_world().await;
    let parked = park(&world).await;
    parked.caller.cancel();
    let (ended, row) = world.ended(parked).await;
    let reason = "called off by the caller".to_owned();
    assert_eq!(ended.outcome, Outcome::Cancelled { reason, chunks: 0 });
    assert_eq!((row.state, world.runs("effect")), (State::Cancelled, 0));
}

#[tokio::test(start_paused = true)]
async fn a_kernel_that_shuts_down_lets_nobody_wait() {
    let world = careful_world().await;
    let parked = park(&world).await;
    world.kernel.drain(Duration::from_secs(60)).await.unwrap();
    let (ended, row) = world.ended(parked).await;
    let reason = "the kernel is shutting down".to_owned();
    assert_eq!(ended.outcome, Outcome::Cancelled { reason, chunks: 0 });
    assert_eq!(row.state, State::Cancelled);
    assert!(world.audit().await.is_clean());
}

#[test]
fn a_kernel_that_dies_while_a_call_waits_leaves_it_to_the_next_start() {
    let runtime_one = runtime();
    let (world, parked) = runtime_one.block_on(async {
        let world = careful_world().await;
        let parked = park(&world).await;
        (world, parked)
    });
    let next = world.crash(runtime_one);
    runtime().block_on(async {
        let world = next.start().await;
        let receipts = world.receipts_of(&parked.request_id).await;
        assert_eq!((receipts.len(), world.open_intents().await), (1, 0));
        receipts[0].verify().unwrap();
        let Some(Decision::Cancelled { reason }) = &receipts[0].decision else {
            panic!("{:?}", receipts[0].decision)
        };
        assert!(reason.contains("it waited for an approval, and never ran"), "{reason}");
        let told = receipts[0].metadata.as_ref().unwrap();
        assert_eq!(told["approval"]["id"], json!(parked.approval.request.id));
        let row = world.row(&parked.approval.request.id).await;
        assert_eq!(row.state, State::Cancelled);
        assert_eq!(row.receipt_id.as_deref(), Some(&*receipts[0].id));
        let answer = yes(&parked.approval.request);
        assert_eq!(world.answer(&parked, &answer).await, Answered::Over(State::Cancelled));
        assert_eq!(world.runs("effect"), 0);
    });
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_revoked_meanwhile_is_not_helped_by_an_approval() {
    let world = careful_world().await;
    let parked = park(&world).await;
    world.kernel.revoke("cap-1").await.unwrap();
    world.approve(&parked).await;
    let (ended, row) = world.ended(parked).await;
    assert_denied(&ended, Code::CapabilityRevoked, "`cap-1` has been revoked");
    assert_eq!((row.state, world.runs("effect")), (State::Cancelled, 0));
}

#[tokio::test(start_paused = true)]
async fn a_token_that_expires_meanwhile_is_not_helped_by_an_approval() {
    let world = careful_world().await;
    let hundred = Validity { issued_at: NOW, expires_at: NOW + 100 };
    let short = CapabilityToken { expires_at: hundred.expires_at, ..draft("c", &[grant("*")]) };
    let short = short.signed(&issuer()).unwrap();
    let parked = world.park(world.call(&short, "effect", json!(1))).await;
    world.approve(&parked).await;
    world.clock.set(hundred.expires_at);
    let (ended, row) = world.ended(parked).await;
    assert_denied(&ended, Code::CapabilityExpired, "capability verification failed");
    assert_eq!((row.state, world.runs("effect")), (State::Cancelled, 0));
}

#[tokio::test(start_paused = true)]
async fn an_approval_does_not_lift_a_stop() {
    let journal = Journal::default();
    let setup = Setup::default().approved().guard(careful().telling(&journal));
    let world = setup.start().await;
    let parked = park(&world).await;
    world.kernel.emergency_stop("fire").await.unwrap();
    world.approve(&parked).await;
    let (ended, row) = world.ended(parked).await;
    assert_denied(&ended, Code::GuardDenied, "everything is stopped: fire");
    assert_eq!((row.state, world.runs("effect")), (State::Cancelled, 0));
    assert_eq!(journal.all().len(), 1, "the guards are not asked again");
    world.kernel.resume().await.unwrap();
    let parked = park(&world).await;
    world.approve(&parked).await;
    assert_eq!(world.ended(parked).await.1.state, State::Used);
}

/// An answer that does not count, and the words that say why.
type Bad = (&'static str, fn(&ApprovalToken) -> ApprovalToken);

const BAD: [Bad; 11] = [
    ("expected a trusted approver", |yes| changed(yes, &key(9), |_| {})),
    ("for subject", |yes| changed(yes, &approver(), |it| it.subject = key(9).public_key().clone())),
    ("an approval of request", |yes| changed(yes, &approver(), |it| it.request_id.push('x'))),
    ("an approval of intent hash", |yes| {
        changed(yes, &approver(), |it| it.governed_intent_hash = "00".repeat(32))
    }),
    ("does not hold now", |yes| {
        changed(yes, &approver(), |it| (it.issued_at, it.expires_at) = (NOW - 10, NOW))
    }),
    ("does not hold now", |yes| changed(yes, &approver(), |it| it.issued_at = NOW + 1)),
    ("at most 3600 seconds", |yes| changed(yes, &approver(), |it| it.expires_at = NOW + 3601)),
    ("a vote on a threshold proposal", |yes| {
        changed(yes, &approver(), |it| it.threshold_proposal_hash = Some("00".to_owned()))
    }),
    ("signature", |yes| ApprovalToken { id: "forged".to_owned(), ..yes.clone() }),
    ("found that of the caller", |yes| changed(yes, &agent(), |_| {})),
    ("found a kernel's", |yes| changed(yes, &key(7), |_| {})),
];

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_count_denies_for_its_own_reason() {
    // Even if the operator lists them as approvers, the caller and the kernel are none.
    let setup = Setup::default().approvers(&[approver(), agent(), key(7)]).key(key(7));
    let world = setup.guard(careful()).start().await;
    for (words, bad) in BAD {
        let parked = park(&world).await;
        let answer = bad(&yes(&parked.approval.request));
        assert_eq!(world.answer(&parked, &answer).await, Answered::Recorded);
        let (ended, row) = world.ended(parked).await;
        assert_denied_by(&ended, "approval", Code::GuardDenied, words);
        assert_eq!(row.state, State::Cancelled, "{words}");
        let recorded = metadata(&ended, "governed_transaction").get("approval");
        assert_eq!(recorded, None, "{words}: nobody who counts has approved");
    }
    assert_eq!(world.runs("effect"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_no_that_does_not_count_is_in_nobodys_name() {
    let world = careful_world().await;
    let forgeries: [fn(&ApprovalToken) -> ApprovalToken; 2] = [
        |no| changed(no, &key(9), |_| {}),
        |no| ApprovalToken { id: "forged".to_owned(), ..no.clone() },
    ];
    for forge in forgeries {
        let parked = park(&world).await;
        let answer = forge(&no(&parked.approval.request));
        assert_eq!(answer.decision, ApprovalDecision::Denied);
        world.answer(&parked, &answer).await;
        let (ended, _) = world.ended(parked).await;
        assert_eq!(denial(&ended).guard, "approval");
        assert_eq!(metadata(&ended, "governed_transaction").get("approval"), None);
    }
}

#[tokio::test(start_paused = true)]
async fn the_caller_approves_itself_only_if_policy_says_so_and_trusts_it() {
    for (trusted, runs) in [(vec![approver(), agent()], true), (vec![approver()], false)] {
        let setup = Setup::default().approvers(&trusted).config(|it| it.allow_self_approval = true);
        let world = setup.guard(careful()).start().await;
        let parked = park(&world).await;
        let own = changed(&yes(&parked.approval.request), &agent(), |_| {});
        world.answer(&parked, &own).await;
        let (ended, _) = world.ended(parked).await;
        if runs {
            assert_eq!(value(&ended), &json!({"n": 1}));
        } else {
            assert_denied_by(&ended, "approval", Code::GuardDenied, "a trusted approver");
        }
        assert_eq!(world.runs("effect"), usize::from(runs));
    }
}

#[tokio::test(start_paused = true)]
async fn guards_speak_again_after_an_approval_and_know_it() {
    let journal = Journal::default();
    let heard = journal.clone();
    let counting = guard("counting").checks(move |input| {
        heard.note(format!("resumed {}", input.resumed));
        Ok(Verdict::Allow.into())
    });
    let fickle = guard("fickle").checks(|input| {
        let changed_its_mind = Verdict::Deny("the mood is gone".to_owned());
        Ok(if input.resumed { changed_its_mind } else { Verdict::Allow }.into())
    });
    let setup = Setup::default().approved().guard(counting).guard(careful()).guard(fickle);
    let world = setup.start().await;
    let parked = park(&world).await;
    assert_eq!(journal.all(), ["resumed false"]);
    world.approve(&parked).await;
    let (ended, row) = world.ended(parked).await;
    assert_denied_by(&ended, "fickle", Code::GuardDenied, "the mood is gone");
    assert_eq!(journal.all(), ["resumed false", "resumed true"]);
    let names: Vec<&str> = ended.receipt.evidence.iter().map(|it| &*it.guard_name).collect();
    assert_eq!(names, ["counting", "careful", "fickle"], "what was said last stands");
    assert_eq!((row.state, world.runs("effect")), (State::Cancelled, 0));
}

#[tokio::test(start_paused = true)]
async fn a_later_guards_no_spares_everybody_the_question() {
    let strict = guard("strict").says(Verdict::Deny("never".to_owned()));
    let world = Setup::default().approved().guard(careful()).guard(strict).start().await;
    for tool in ["effect", "approved"] {
        let ended = world.run(world.call(&cap(), tool, json!(1))).await;
        assert_denied_by(&ended, "strict", Code::GuardDenied, "never");
    }
    assert!(world.inbox().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_can_approve_is_denied_at_once() {
    let hurried = careful_world().await;
    let caller = Arc::new(hurried.caller().hurried());
    let call = hurried.call(&cap(), "effect", json!(1));
    let ended = hurried.run_for(call, caller).await;
    assert_denied_by(&ended, "careful", Code::GuardDenied, "this caller cannot wait for it");
    let lonely = Setup::default().guard(careful()).start().await;
    let ended = lonely.run(lonely.call(&cap(), "effect", json!(1))).await;
    assert_denied_by(&ended, "careful", Code::GuardDenied, "nobody is trusted to give it");
    let ended = lonely.run(lonely.call(&cap(), "approved", json!(1))).await;
    assert_denied(&ended, Code::GuardDenied, "an approval is needed (the tool is published");
    let broken = careful_world().await;
    broken.ledger.opening.fail(true);
    let ended = broken.run(broken.call(&cap(), "effect", json!(1))).await;
    assert_denied(&ended, Code::InternalError, "told to fail");
    for world in [hurried, lonely, broken] {
        assert!(world.inbox().await.is_empty());
        assert_eq!(world.runs("effect"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_seen_with_the_next_look_at_revocations() {
    let setup = Setup::default().approved().guard(careful());
    let beat = Duration::from_millis(10);
    let world = setup.config(|it| it.revocation_poll = beat).start().await;
    let parked = park(&world).await;
    let before = tokio::time::Instant::now();
    world.approve(&parked).await;
    world.ended(parked).await;
    assert!(before.elapsed() <= 2 * beat, "{:?}", before.elapsed());
}

#[tokio::test(start_paused = true)]
async fn the_inbox_keeps_arguments_as_the_receipt_does() {
    let setup = Setup::default().approved().guard(guard("secrets").redacts("pin"));
    let world = setup.guard(careful()).start().await;
    let arguments = json!({"pin": "1234", "n": 1});
    let parked = world.park(world.call(&cap(), "effect", arguments.clone())).await;
    let kept = json!({"pin": "[redacted]", "n": 1});
    assert_eq!(parked.approval.request.action.parameters, kept);
    world.approve(&parked).await;
    let (ended, _) = world.ended(parked).await;
    assert_eq!((value(&ended), &ended.receipt.action.parameters), (&arguments, &kept));
}

#[tokio::test(start_paused = true)]
async fn a_stated_intent_is_what_is_approved_and_the_receipt_keeps_both() {
    let world = careful_world().await;
    let mut call = world.call(&cap(), "effect", json!(1));
    let stated = intent("effect");
    call.governed_intent = Some(Box::new(stated.clone()));
    let parked = world.park(call).await;
    assert_eq!(parked.approval.request.intent, stated);
    assert_eq!(parked.approval.request.intent_hash, stated.hash().unwrap());
    let answer = world.approve(&parked).await;
    let (ended, row) = world.ended(parked).await;
    let governed = metadata(&ended, "governed_transaction");
    assert_eq!(governed["intent_id"], json!("intent-1"));
    assert_eq!(governed["approval"]["token_id"], json!(answer.id));
    assert_eq!(row.state, State::Used);
}

#[tokio::test(start_paused = true)]
async fn the_intent_of_a_call_without_one_can_be_worked_out_beforehand() {
    let world = careful_world().await;
    let arguments = json!({"b": [1, 2], "a": "x"});
    let parked = world.park(world.call(&cap(), "effect", arguments.clone())).await;
    let (subject, hash) = (agent().public_key().to_hex(), canonical::hash(&arguments).unwrap());
    let name = format!("{subject}\0{SERVER}\0effect\0{hash}");
    let expected = json!({
        "id": format!("call-{}", chio_core::hash::sha256_hex(name.as_bytes())),
        "server_id": SERVER,
        "tool_name": "effect",
        "purpose": format!("call `effect` of `{SERVER}` with exactly these arguments"),
        "context": {"subject": subject, "parameterHash": hash},
    });
    assert_eq!(json!(parked.approval.request.intent), expected);
    let hash_of = async |tool: &str, arguments: Value| {
        let elsewhere = careful_world().await;
        let other = token("cap-2", &[grant("*")]);
        let parked = elsewhere.park(elsewhere.call(&other, tool, arguments)).await;
        parked.approval.request.intent_hash
    };
    let made = parked.approval.request.intent_hash.clone();
    assert_eq!(hash_of("effect", arguments.clone()).await, made, "an equal call anywhere");
    assert_ne!(hash_of("effect", json!({"b": [1, 3], "a": "x"})).await, made);
    assert_ne!(hash_of("echo", arguments).await, made);
}

#[tokio::test(start_paused = true)]
async fn a_delegator_does_not_approve_the_use_of_its_token() {
    // The agent is a trusted approver, and hands its authority to a throw-away key of its own.
    let world = Setup::default().approvers(&[approver(), agent()]).guard(careful()).start().await;
    let parent = token("parent", &[grant("*")]);
    chio_kernel::store::TokenStore::remember(&*world.store, &parent).await.unwrap();
    let own = child("own", &parent, &agent(), &key(33), &[grant("effect")]);
    let parked = world.park(world.call(&own, "effect", json!({"n": 1}))).await;
    let subject = key(33).public_key().clone();
    let answer = changed(&yes(&parked.approval.request), &agent(), |it| it.subject = subject);
    world.answer(&parked, &answer).await;
    let (ended, _) = world.ended(parked).await;
    assert_eq!(world.runs("effect"), 0);
    assert!(denial(&ended).reason.contains("by somebody else"), "{}", denial(&ended));
}
