//! Approvals that come with a call: each is for one call, and is used only once.

use chio_core::canonical;
use chio_core::capability::CapabilityToken;
use chio_core::governance::{ApprovalDecision, ApprovalToken, GovernedTransactionIntent};
use chio_core::registry::ErrorCode as Code;
use chio_kernel::store::ApprovalState;
use chio_kernel::{Outcome, ToolCall, Verdict};
use chio_testkit::key;
use chio_testkit::process::Folder;
use serde_json::{Value, json};

use crate::support::authority::{approver, changed, intent, yes_to};
use crate::support::guards::Scripted;
use crate::support::tokens::{agent, token};
use crate::support::world::{Ended, assert_denied_by, denial, metadata, value};
use crate::support::{NOW, Setup, World, grant, guard};

fn careful() -> Scripted {
    guard("careful").says(Verdict::AwaitApproval("it is large".to_owned()))
}

fn cap() -> CapabilityToken {
    token("cap-1", &[grant("*")])
}

/// The hash of the intent that the kernel makes of a call of the agent's.
async fn made_intent(tool: &str, arguments: Value) -> String {
    let world = Setup::default().approved().guard(careful()).start().await;
    let parked = world.park(world.call(&cap(), tool, arguments)).await;
    parked.approval.request.intent_hash
}

/// A call that its caller knows by a name of its own, with an approval.
fn named(world: &World, name: &str, arguments: Value, approval: &ApprovalToken) -> ToolCall {
    let mut call = world.call(&cap(), "effect", arguments);
    call.origin_request_id = Some(name.to_owned());
    call.approval = Some(Box::new(approval.clone()));
    call
}

fn assert_refused(ended: &Ended, words: &str) {
    assert_denied_by(ended, "approval", Code::GuardDenied, words);
}

#[tokio::test(start_paused = true)]
async fn an_approval_under_either_name_of_the_call_lets_it_run_without_waiting() {
    let world = Setup::default().approved().guard(careful()).start().await;
    let hash = made_intent("effect", json!(1)).await;
    let approval = yes_to("mine-1", &hash);
    let ended = world.run(named(&world, "mine-1", json!(1), &approval)).await;
    assert_eq!(value(&ended), &json!(1));
    let recorded = &metadata(&ended, "governed_transaction")["approval"];
    assert_eq!(recorded["token_id"], json!("yes-to-mine-1"));
    assert_eq!(metadata(&ended, "approval"), &json!(null), "nobody had to be asked");
    let mut call = world.call(&cap(), "effect", json!(1));
    call.approval = Some(Box::new(yes_to(&call.request_id, &hash)));
    assert_eq!(value(&world.run(call).await), &json!(1));
    assert!(world.inbox().await.is_empty());
    assert_eq!(world.runs("effect"), 2);
}

#[tokio::test(start_paused = true)]
async fn an_approval_is_used_once_whatever_the_tool_does() {
    let world = Setup::default().approved().guard(careful()).start().await;
    for tool in ["effect", "echo"] {
        let hash = made_intent(tool, json!(1)).await;
        let approval = yes_to("mine-1", &hash);
        let call = |name, approval| {
            let call = named(&world, name, json!(1), approval);
            ToolCall { tool_name: tool.to_owned(), ..call }
        };
        assert_eq!(value(&world.run(call("mine-1", &approval)).await), &json!(1));
        let again = world.run(call("mine-1", &approval)).await;
        assert_refused(&again, "the approval was used before");
        let other = world.run(call("mine-2", &approval)).await;
        assert_refused(&other, "expected an approval of request");
        // A second yes to the same is not a second go.
        let second = changed(&approval, &approver(), |it| it.id = "second".to_owned());
        let ended = world.run(call("mine-1", &second)).await;
        assert_refused(&ended, "the approval was used before");
        assert_eq!(world.runs(tool), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn an_approval_is_for_no_other_arguments_and_no_other_tool() {
    let world = Setup::default().approved().guard(careful()).start().await;
    let approval = yes_to("mine-1", &made_intent("effect", json!(1)).await);
    let ended = world.run(named(&world, "mine-1", json!(2), &approval)).await;
    assert_refused(&ended, "expected an approval of intent hash");
    let mut call = named(&world, "mine-1", json!(1), &approval);
    call.tool_name = "echo".to_owned();
    assert_refused(&world.run(call).await, "expected an approval of intent hash");
    // What was refused is not used up.
    assert_eq!(value(&world.run(named(&world, "mine-1", json!(1), &approval)).await), &json!(1));
    assert_eq!((world.runs("effect"), world.runs("echo")), (1, 0));
}

/// A change of a good approval, and why it is none then.
type Bad = (&'static str, fn(&ApprovalToken) -> ApprovalToken);

const BAD: [Bad; 8] = [
    ("expected a trusted approver", |yes| changed(yes, &key(9), |_| {})),
    ("for subject", |yes| changed(yes, &approver(), |it| it.subject = key(9).public_key().clone())),
    ("does not hold now", |yes| {
        changed(yes, &approver(), |it| (it.issued_at, it.expires_at) = (NOW - 10, NOW))
    }),
    ("at most 3600 seconds", |yes| changed(yes, &approver(), |it| it.expires_at = NOW + 3601)),
    ("signature", |yes| ApprovalToken { id: "forged".to_owned(), ..yes.clone() }),
    ("found that of the caller", |yes| changed(yes, &agent(), |_| {})),
    ("found a kernel's", |yes| changed(yes, &key(7), |_| {})),
    ("said no", |yes| changed(yes, &approver(), |it| it.decision = ApprovalDecision::Denied)),
];

#[tokio::test(start_paused = true)]
async fn an_approval_that_does_not_count_denies_even_where_none_is_needed() {
    let setup = || Setup::default().approvers(&[approver(), agent(), key(7)]).key(key(7));
    let approval = yes_to("mine-1", &made_intent("effect", json!(1)).await);
    for world in [setup().guard(careful()).start().await, setup().start().await] {
        for (words, bad) in BAD {
            let call = named(&world, "mine-1", json!(1), &bad(&approval));
            assert_refused(&world.run(call).await, words);
        }
        assert_eq!(world.runs("effect"), 0);
        let ended = world.run(named(&world, "mine-1", json!(1), &approval)).await;
        assert_eq!(value(&ended), &json!(1), "the good one is still good");
    }
}

#[tokio::test]
async fn an_approval_does_not_overrule_a_guard() {
    let strict = guard("strict").says(Verdict::Deny("never".to_owned()));
    let world = Setup::default().approved().guard(careful()).guard(strict).start().await;
    let approval = yes_to("mine-1", "whatever");
    let ended = world.run(named(&world, "mine-1", json!(1), &approval)).await;
    assert_denied_by(&ended, "strict", Code::GuardDenied, "never");
}

/// An intent for these arguments only.
fn bound(arguments: &Value) -> GovernedTransactionIntent {
    let context = json!({"parameterHash": canonical::hash(arguments).unwrap()});
    GovernedTransactionIntent { context: Some(context), ..intent("effect") }
}

fn governed(
    world: &World,
    intent: &GovernedTransactionIntent,
    arguments: Value,
    approval: &ApprovalToken,
) -> ToolCall {
    let mut call = named(world, &approval.request_id, arguments, approval);
    call.governed_intent = Some(Box::new(intent.clone()));
    call
}

#[tokio::test]
async fn an_approval_of_a_stated_intent_is_for_its_arguments() {
    let world = Setup::default().approved().guard(careful()).start().await;
    let stated = bound(&json!(1));
    let approval = yes_to("mine-1", &stated.hash().unwrap());
    let other = world.run(governed(&world, &stated, json!(2), &approval)).await;
    assert_denied_by(&other, "governed_intent", Code::CapabilityDenied, "for these arguments");
    let changed_intent = bound(&json!(2));
    let other = world.run(governed(&world, &changed_intent, json!(2), &approval)).await;
    assert_refused(&other, "expected an approval of intent hash");
    let ended = world.run(governed(&world, &stated, json!(1), &approval)).await;
    assert_eq!(value(&ended), &json!(1));
    let block = metadata(&ended, "governed_transaction");
    assert_eq!(block["intent_hash"], json!(stated.hash().unwrap()));
    assert_eq!(block["approval"]["token_id"], json!("yes-to-mine-1"));
    let again = world.run(governed(&world, &stated, json!(1), &approval)).await;
    assert_refused(&again, "the approval was used before");
}

#[tokio::test]
async fn an_approval_of_an_intent_for_any_arguments_does_not_count() {
    let world = Setup::default().approved().guard(careful()).start().await;
    let loose = intent("effect");
    let approval = yes_to("mine-1", &loose.hash().unwrap());
    let ended = world.run(governed(&world, &loose, json!(1), &approval)).await;
    assert_refused(&ended, "`context.parameterHash`");
    assert_eq!(world.runs("effect"), 0);
}

#[tokio::test(start_paused = true)]
async fn what_was_given_in_the_inbox_cannot_be_carried_to_another_call() {
    let world = Setup::default().approved().guard(careful()).start().await;
    let loose = intent("effect");
    let mut call = world.call(&cap(), "effect", json!(1));
    call.governed_intent = Some(Box::new(loose.clone()));
    let parked = world.park(call).await;
    let answer = world.approve(&parked).await;
    // The caller cancels before the kernel has seen the answer, and keeps it.
    parked.caller.cancel();
    let (ended, row) = world.ended(parked).await;
    let used = matches!(ended.outcome, Outcome::Value(_));
    assert_eq!(row.state == ApprovalState::Used, used);
    let ended = world.run(governed(&world, &loose, json!(2), &answer)).await;
    assert_eq!(denial(&ended).guard, "approval");
    assert_eq!(world.runs("effect"), usize::from(used));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_kernels_that_race_with_one_approval_run_the_tool_once() {
    let folder = Folder::new();
    let one = Setup::in_folder(&folder, 1).approved().start().await;
    let mut beside = Setup::in_folder(&folder, 2).approved();
    beside.journal = one.journal.clone();
    let two = beside.start().await;
    assert_ne!(one.log_id(), two.log_id());
    let hash = made_intent("effect", json!(1)).await;
    for round in 0..40 {
        let name = format!("round-{round}");
        let approval = yes_to(&name, &hash);
        let (first, second) = tokio::join!(
            one.run(named(&one, &name, json!(1), &approval)),
            two.run(named(&two, &name, json!(1), &approval)),
        );
        assert_eq!(one.runs("effect"), round + 1, "{first:?} {second:?}");
        let refused = if matches!(first.outcome, Outcome::Value(_)) { second } else { first };
        assert_refused(&refused, "the approval was used before");
    }
}

#[tokio::test]
async fn a_used_approval_is_used_after_a_restart() {
    let folder = Folder::new();
    let approval = yes_to("mine-1", &made_intent("effect", json!(1)).await);
    let world = Setup::in_folder(&folder, 1).approved().start().await;
    let ended = world.run(named(&world, "mine-1", json!(1), &approval)).await;
    assert_eq!(value(&ended), &json!(1));
    world.shut_down().await;
    let next = Setup::in_folder(&folder, 2).approved().start().await;
    let again = next.run(named(&next, "mine-1", json!(1), &approval)).await;
    assert_refused(&again, "the approval was used before");
    assert_eq!(next.runs("effect"), 0);
}
