//! What a server asks the client while a call runs, and what the client answers.

use chio_mcp_adapter::Sharing;
use chio_testkit::mcp::{Session, text_of};
use serde_json::{Value, json};

use crate::world::World;

/// A client that answers every kind of question.
fn everything() -> Value {
    json!({"sampling": {}, "elicitation": {"form": {}}, "roots": {"listChanged": true}})
}

/// A question: the tool that asks, how it is asked, what is answered, and what comes of it.
struct Case {
    tool: &'static str,
    arguments: Value,
    method: &'static str,
    kind: &'static str,
    answer: Value,
    result: &'static str,
}

/// Members stand in the order of their names: the fixture keeps or sorts them as it was built.
fn cases() -> [Case; 3] {
    [
        Case {
            tool: "test_sampling",
            arguments: json!({"prompt": "Who are you?"}),
            method: "sampling/createMessage",
            kind: "create_message",
            answer: json!({"role": "assistant", "model": "m", "stopReason": "endTurn",
                "content": {"type": "text", "text": "A test."}}),
            result: "LLM response: A test.",
        },
        Case {
            tool: "test_elicitation",
            arguments: json!({"message": "Your name?"}),
            method: "elicitation/create",
            kind: "create_elicitation",
            answer: json!({"action": "accept", "content": {"email": "e@x", "username": "u"}}),
            result: "User response: action=accept, content={\"email\":\"e@x\",\"username\":\"u\"}",
        },
        Case {
            tool: "ask_roots",
            arguments: json!({}),
            method: "roots/list",
            kind: "list_roots",
            answer: json!({"roots": [{"name": "project", "uri": "file:///project"}]}),
            result: "[{\"name\":\"project\",\"uri\":\"file:///project\"}]",
        },
    ]
}

/// The receipts inside of a call.
fn children(world: &World) -> Vec<Value> {
    world.receipts().into_iter().filter(|it| it.get("operation_kind").is_some()).collect()
}

/// Calls a tool that asks something, and answers.
#[track_caller]
fn ask(session: &Session, case: &Case) -> Value {
    let mut call = session.start_call(case.tool, &case.arguments);
    let question = call.hears(case.method);
    session.reply(&question, &case.answer);
    call.result()
}

// covers: WIRE-048, CROSS-001
#[test]
fn questions_reach_the_client_on_the_stream_of_the_call_and_leave_child_receipts() {
    let world = World::fixture();
    let session = world.door.open_with(&everything());
    for (number, case) in cases().iter().enumerate() {
        let result = ask(&session, case);
        let text = text_of(&result);
        assert!(text == case.result, "{text}");
        let children = children(&world);
        assert_eq!(children.len(), number + 1, "{children:?}");
        let child = children.last().unwrap();
        assert_eq!(child["operation_kind"], case.kind, "{child}");
        assert_eq!(child["terminal_state"]["state"], "completed", "{child}");
        let parent = world.receipts().into_iter().rfind(|it| it["tool_name"] == case.tool).unwrap();
        let request = &parent["metadata"]["receipt_context"]["request_id"];
        assert_eq!(child["parent_request_id"], *request, "{child}");
    }
    assert_eq!(world.calls().len(), 3);
    world.audit();
}

// covers: WIRE-048
#[test]
fn a_client_that_cannot_answer_gets_the_tools_own_error() {
    let world = World::fixture();
    let session = world.door.open();
    for case in cases() {
        let mut call = session.start_call(case.tool, &case.arguments);
        let result = call.result();
        assert_eq!(result["isError"], true, "{result}");
        assert!(text_of(&result).contains("the client did not say that it can do"), "{result}");
        assert!(call.before.is_empty(), "nothing was asked: {:?}", call.before);
    }
    assert!(children(&world).is_empty());
    assert_eq!(world.calls().len(), 3);
}

// covers: WIRE-048
#[test]
fn a_client_may_refuse_or_fail_and_the_tool_hears_of_it() {
    let world = World::fixture();
    let session = world.door.open_with(&everything());
    let [sampling, elicitation, _] = cases();
    let mut call = session.start_call(elicitation.tool, &elicitation.arguments);
    let question = call.hears(elicitation.method);
    session.reply(&question, &json!({"action": "decline"}));
    assert!(text_of(&call.result()).contains("action=decline"));
    let mut call = session.start_call(sampling.tool, &sampling.arguments);
    let question = call.hears(sampling.method);
    let error = json!({"code": -1, "message": "the user said no"});
    let refusal = json!({"jsonrpc": "2.0", "id": question["id"], "error": error});
    session.post_for_nothing(&refusal);
    let result = call.result();
    assert_eq!(result["isError"], true);
    assert!(text_of(&result).contains("the user said no"), "{result}");
    assert_eq!((world.calls().len(), children(&world).len()), (2, 2));
}

// covers: WIRE-048, WIRE-067
#[test]
fn only_the_session_that_was_asked_can_answer() {
    let world = World::fixture();
    let (session, other) =
        (world.door.open_with(&everything()), world.door.open_with(&everything()));
    let [sampling, ..] = cases();
    let mut call = session.start_call(sampling.tool, &sampling.arguments);
    let mut others = other.start_call(sampling.tool, &sampling.arguments);
    let question = call.hears(sampling.method);
    let theirs = others.hears(sampling.method);
    let wrong = json!({"role": "assistant", "model": "m",
        "content": {"type": "text", "text": "Somebody else's word."}});
    // Ids are told apart within a session only, so the same one may wait in both.
    for id in
        [&question["id"], &json!("chio-99"), &json!(1), &json!("edge-client-1"), &theirs["id"]]
    {
        other.post_for_nothing(&json!({"jsonrpc": "2.0", "id": id, "result": wrong}));
    }
    assert_eq!(text_of(&others.result()), "LLM response: Somebody else's word.");
    // The first still waits for its own client; an answer to nothing changes nothing.
    for id in [json!("chio-99"), json!(1), Value::Null] {
        session.post_for_nothing(&json!({"jsonrpc": "2.0", "id": id, "result": wrong}));
    }
    session.reply(&question, &sampling.answer);
    assert_eq!(text_of(&call.result()), sampling.result);
    // And a second answer reaches no call.
    session.reply(&question, &wrong);
    assert_eq!((world.calls().len(), children(&world).len()), (2, 2));
}

// covers: WIRE-048, WIRE-064
#[test]
fn a_question_is_still_there_for_a_client_that_comes_back() {
    let world = World::rotating(150);
    let session = world.door.open_with(&everything());
    let [sampling, ..] = cases();
    let mut call = session.start_call(sampling.tool, &sampling.arguments);
    let question = call.hears(sampling.method);
    while call.message().is_some() {}
    session.reply(&question, &sampling.answer);
    let answer = session.go_on(call);
    assert_eq!(text_of(&answer["result"]), sampling.result);
    assert_eq!((world.calls().len(), children(&world).len()), (1, 1));
}

// covers: WIRE-048
#[test]
fn a_call_that_is_cancelled_while_the_client_is_asked_takes_the_question_back() {
    let world = World::fixture();
    let session = world.door.open_with(&everything());
    let [_, elicitation, _] = cases();
    let mut call = session.start_call(elicitation.tool, &elicitation.arguments);
    let question = call.hears(elicitation.method);
    session.cancel(&call.id);
    assert_eq!(call.try_answer(), None);
    let taken_back = call.heard("notifications/cancelled");
    assert_eq!(taken_back.len(), 1, "{:?}", call.before);
    assert_eq!(taken_back[0]["params"]["requestId"], question["id"]);
    session.reply(&question, &elicitation.answer);
    world.check_calls(&[("test_elicitation", "cancelled")]);
    world.audit();
}

// covers: WIRE-067, WIRE-068
#[test]
fn a_server_that_sessions_share_asks_the_one_whose_call_runs() {
    let world = World::sharing(Sharing::Shared);
    let (session, other) = (world.door.open_with(&everything()), world.door.open());
    let mut others = other.listen();
    for case in cases() {
        let result = ask(&session, &case);
        assert!(text_of(&result) == case.result, "{result}");
    }
    assert_eq!(children(&world).len(), 3);
    // A client that does not take questions is asked none, and what comes first is for it.
    for case in cases() {
        let mut call = other.start_call(case.tool, &case.arguments);
        let result = call.result();
        assert!(text_of(&result).contains("does not take this kind of question"), "{result}");
        assert!(call.before.is_empty(), "{:?}", call.before);
    }
    other.request("resources/subscribe", &json!({"uri": "test://watched-resource"}));
    other.call("touch_watched", &json!({}));
    others.hears("notifications/resources/updated");
}
