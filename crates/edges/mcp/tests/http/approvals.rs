//! Calls that wait for an approval: the client hears of it, and an approver answers.

use std::time::Duration;

use chio_edge::{SettingValue, Settings};
use chio_testkit::kernel::store::Answered;
use chio_testkit::mcp::{Request, Session, Stream, receipt_of, text_of};
use chio_testkit::process::until;
use serde_json::{Value, json};

use crate::world::{Beginning, Tools, World};

const TOOL: &str = "delete_everything";

/// A server whose clients' users may be asked, or not.
fn asking(may_ask: bool) -> World {
    let (policy, asks_users) = ("default", Some(may_ask));
    Beginning { policy, asks_users, ..Beginning::default() }.start()
}

/// Begins a call that waits, whose progress is told.
#[track_caller]
fn start(session: &Session) -> Stream {
    let params = json!({"name": TOOL, "arguments": {}, "_meta": {"progressToken": "p"}});
    session.start("tools/call", &params)
}

/// What the client is told about the call that waits, in both forms.
#[track_caller]
fn told(call: &mut Stream) -> String {
    let progress = call.hears("notifications/progress");
    assert_eq!(progress["params"]["progressToken"], "p");
    let log = call.hears("notifications/message");
    let words = log["params"]["data"].as_str().unwrap();
    assert_eq!(progress["params"]["message"], words);
    words.to_owned()
}

#[test]
fn an_operator_who_says_no_denies_the_call_with_a_receipt() {
    let world = World::judged();
    let session = world.door.open();
    let mut call = start(&session);
    world.answer_waiting(false);
    let result = call.result();
    assert_eq!(result["isError"], true, "{result}");
    assert_eq!(result["_meta"]["chio"]["name"], "guard_denied", "{result}");
    world.check_calls(&[(TOOL, "deny")]);
}

#[test]
fn a_call_that_is_cancelled_waits_no_more() {
    let world = World::judged();
    let session = world.door.open();
    let mut call = start(&session);
    let request = world.waiting();
    session.cancel(&call.id);
    assert_eq!(call.try_answer(), None);
    assert_ne!(world.answer(&request, true), Answered::Recorded, "it is too late");
    world.check_calls(&[(TOOL, "cancelled")]);
}

#[test]
fn the_clients_user_is_not_asked_unless_policy_says_so() {
    let world = asking(false);
    let session = world.door.open_with(&json!({"elicitation": {"form": {}}}));
    let mut call = start(&session);
    told(&mut call);
    world.answer_waiting(false);
    assert_eq!(call.result()["isError"], true);
    assert!(call.heard("elicitation/create").is_empty(), "{:?}", call.before);
}

/// The question that the client's user is asked, which need not come first.
#[track_caller]
fn question(call: &mut Stream) -> Value {
    loop {
        let message = call.message().expect("a question");
        if message["method"] == "elicitation/create" {
            return message;
        }
    }
}

#[test]
fn where_policy_says_so_the_clients_user_answers() {
    for (answer, runs) in [
        (json!({"action": "accept", "content": {"approve": true}}), true),
        (json!({"action": "accept", "content": {"approve": false}}), false),
        (json!({"action": "accept", "content": {}}), false),
        (json!({"action": "decline"}), false),
    ] {
        let world = asking(true);
        let session = world.door.open_with(&json!({"elicitation": {"form": {}}}));
        let mut call = start(&session);
        let question = question(&mut call);
        let words = question["params"]["message"].as_str().unwrap();
        assert!(words.contains(TOOL), "{words}");
        session.reply(&question, &answer);
        let result = call.result();
        assert_eq!(result["isError"] != true, runs, "{answer}: {result}");
        world.check_calls(&[(TOOL, if runs { "allow" } else { "deny" })]);
        world.audit();
    }
}

#[test]
fn a_user_who_closes_the_question_leaves_it_to_an_operator() {
    let world = asking(true);
    let session = world.door.open_with(&json!({"elicitation": {"form": {}}}));
    let mut call = start(&session);
    let question = question(&mut call);
    session.reply(&question, &json!({"action": "cancel"}));
    world.answer_waiting(true);
    assert_eq!(text_of(&call.result()), "Everything is still there.");
    world.check_calls(&[(TOOL, "allow")]);
}

#[test]
fn a_task_can_wait_for_an_approval_too() {
    let world = World::judged();
    let session = world.door.open();
    let params = json!({"name": TOOL, "arguments": {}, "task": {}});
    let answer = session.request("tools/call", &params);
    let task = answer["result"]["task"]["taskId"].clone();
    world.answer_waiting(true);
    let answer = session.request("tasks/result", &json!({"taskId": task}));
    assert_eq!(text_of(&answer["result"]), "Everything is still there.", "{answer}");
    world.check_calls(&[(TOOL, "allow")]);
}

// covers: WIRE-064
#[test]
fn a_client_whose_stream_is_closed_while_its_call_waits_comes_back_for_the_result() {
    let rotate = SettingValue::Duration(Duration::from_millis(150));
    let settings = Settings::default().with("rotate_streams", Some(rotate));
    let policy = "default";
    let world = Beginning { policy, settings, ..Beginning::default() }.start();
    let session = world.door.open();
    let mut call = start(&session);
    told(&mut call);
    while let Some(message) = call.message() {
        assert!(message.get("id").is_none(), "{message}");
    }
    world.answer_waiting(true);
    let answer = session.go_on(call);
    assert_eq!(text_of(&answer["result"]), "Everything is still there.");
    world.check_calls(&[(TOOL, "allow")]);
}

/// A server that answers calls which wait for an approval as soon as they do.
fn impatient() -> Beginning {
    let wait = SettingValue::Duration(Duration::from_millis(1));
    let settings = Settings::default().with("approval_wait", Some(wait));
    Beginning { policy: "default", settings, ..Beginning::default() }
}

/// Calls the tool, and gives the id of the approval that the call is told to wait for.
#[track_caller]
fn told_to_wait(session: &Session, tool: &str, arguments: &Value) -> String {
    let result = session.call(tool, arguments);
    assert_eq!(result["isError"], true, "{result}");
    let about = &result["_meta"]["chio"];
    assert_eq!(about["retry"]["strategy"], "same_call", "{result}");
    assert_eq!(about.get("receiptId"), None, "the call has not ended");
    let id = about["approvalId"].as_str().unwrap();
    let command = format!("chio approvals approve {id} --data /the/data");
    assert_eq!(about["command"], command);
    let text = text_of(&result);
    assert!(text.contains(&command) && text.contains("same arguments"), "{text}");
    id.to_owned()
}

/// The result of the same call, once it has one: the kernel takes a moment to see an answer.
#[track_caller]
fn asked_again(session: &Session) -> Value {
    until("a result", || {
        let result = session.call(TOOL, &json!({}));
        result["_meta"]["chio"].get("approvalId").is_none().then_some(result)
    })
}

#[test]
fn a_client_is_told_how_to_ask_again_and_the_same_call_goes_on_with_the_one_that_waits() {
    let world = impatient().start();
    let session = world.door.open();
    let id = told_to_wait(&session, TOOL, &json!({}));
    assert_eq!(told_to_wait(&session, TOOL, &json!({})), id, "no second one is opened");
    assert_eq!(world.all_waiting().len(), 1);
    assert!(world.receipts().is_empty(), "nothing has run");
    // Whether the call has gone on when it is asked for again, or not, it runs once.
    world.answer_waiting(true);
    let result = asked_again(&session);
    assert_eq!(text_of(&result), "Everything is still there.");
    world.check_calls(&[(TOOL, "allow")]);
    assert_eq!(world.receipt(receipt_of(&result))["decision"]["verdict"], "allow");
    // Its result was taken: from now on it is another call.
    assert_ne!(told_to_wait(&session, TOOL, &json!({})), id);
    world.audit();
}

#[test]
fn other_arguments_are_another_call() {
    let world = Beginning { tools: Tools::Demo, ..impatient() }.start();
    let session = world.door.open();
    let told = |text: &str| told_to_wait(&session, "needs_approval", &json!({"text": text}));
    let (one, other) = (told("one"), told("other"));
    assert_ne!(one, other);
    assert_eq!((told("other"), told("one")), (other, one));
    assert_eq!(world.all_waiting().len(), 2);
}

#[test]
fn what_became_of_a_call_while_no_request_waited_is_kept_for_the_next_and_told_once() {
    for (approved, verdict) in [(true, "allow"), (false, "deny")] {
        let world = impatient().start();
        let session = world.door.open();
        let id = told_to_wait(&session, TOOL, &json!({}));
        world.answer_waiting(approved);
        until("the call to end", || (!world.receipts().is_empty()).then_some(()));
        let result = session.call(TOOL, &json!({}));
        assert_eq!(result["isError"] == true, !approved, "{result}");
        assert_eq!(world.receipt(receipt_of(&result))["decision"]["verdict"], verdict);
        assert_ne!(told_to_wait(&session, TOOL, &json!({})), id);
        world.check_calls(&[(TOOL, verdict)]);
    }
}

#[test]
fn a_result_that_waits_is_given_only_to_a_call_that_might_be_made_now() {
    let world = impatient().start();
    let session = world.door.open();
    told_to_wait(&session, TOOL, &json!({}));
    world.answer_waiting(true);
    until("the call to end", || (!world.receipts().is_empty()).then_some(()));
    world.block_on(world.kernel().emergency_stop("a fire drill")).unwrap();
    let stopped = session.call(TOOL, &json!({}));
    assert!(text_of(&stopped).contains("everything is stopped: a fire drill"), "{stopped}");
    assert_eq!(world.receipt(receipt_of(&stopped))["decision"]["verdict"], "deny");
    world.block_on(world.kernel().resume()).unwrap();
    let result = session.call(TOOL, &json!({}));
    assert_eq!(text_of(&result), "Everything is still there.");
    world.check_calls(&[(TOOL, "allow"), (TOOL, "deny")]);
}

#[test]
fn a_call_that_no_approver_answered_in_time_may_be_asked_for_anew() {
    let approval_timeout = Duration::from_secs(1);
    let world = Beginning { approval_timeout, ..impatient() }.start();
    let session = world.door.open();
    let id = told_to_wait(&session, TOOL, &json!({}));
    until("the call to end", || (!world.receipts().is_empty()).then_some(()));
    let anew = until("another approval", || {
        let result = session.call(TOOL, &json!({}));
        result["_meta"]["chio"]["approvalId"].as_str().map(str::to_owned)
    });
    assert_ne!(anew, id);
}

#[test]
fn a_parked_call_is_its_principals_and_without_a_name_its_sessions() {
    let world = impatient().start();
    let (one, other) = (world.door.open(), world.door.open());
    let id = told_to_wait(&one, TOOL, &json!({}));
    assert_ne!(told_to_wait(&other, TOOL, &json!({})), id, "clients without a name share nothing");
    // No client could take its result any more.
    one.send(Request::delete()).is(204);
    until("the call to end", || (!world.receipts().is_empty()).then_some(()));
    world.check_calls(&[(TOOL, "cancelled")]);
    let token = Some("right-0123456789abcdef");
    let world = Beginning { token, ..impatient() }.start();
    let door = world.door.with("Authorization", "Bearer right-0123456789abcdef");
    let one = door.open();
    let id = told_to_wait(&one, TOOL, &json!({}));
    one.send(Request::delete()).is(204);
    let again = door.open();
    assert_eq!(told_to_wait(&again, TOOL, &json!({})), id, "a client that connects again finds it");
    assert_eq!(world.waiting().principal.unwrap().name, "bob");
    world.answer_waiting(true);
    assert_eq!(text_of(&asked_again(&again)), "Everything is still there.");
    world.check_calls(&[(TOOL, "allow")]);
}

#[test]
fn a_client_that_asked_for_progress_keeps_its_request_and_takes_a_parked_call_with_it() {
    let world = impatient().start();
    let session = world.door.open();
    let id = told_to_wait(&session, TOOL, &json!({}));
    let mut call = start(&session);
    assert!(told(&mut call).contains(&id), "it waits for the same approval");
    // A further call is another one meanwhile.
    let other = told_to_wait(&session, TOOL, &json!({}));
    assert_ne!(other, id);
    let request = world.all_waiting().into_iter().find(|request| request.id == id).unwrap();
    assert_eq!(world.answer(&request, true), Answered::Recorded);
    assert_eq!(text_of(&call.result()), "Everything is still there.");
    world.check_calls(&[(TOOL, "allow")]);
    // A request that is cancelled cancels the call that it waits for.
    let mut call = start(&session);
    assert!(told(&mut call).contains(&other));
    session.cancel(&call.id);
    assert_eq!(call.try_answer(), None);
    world.check_calls(&[(TOOL, "allow"), (TOOL, "cancelled")]);
}
