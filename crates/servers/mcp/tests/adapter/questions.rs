//! What a server asks back.

use std::sync::Arc;

use chio_core::receipt::{OperationKind, TerminalState};
use chio_core::signed::Signed as _;
use chio_kernel::{AskError, Caller as _, ClientNotification};
use chio_mcp_adapter::Sharing;
use serde_json::{Value, json};

use crate::support::{SERVER, TestCaller, World, options, until};

/// The answer that the server gets to a question.
async fn ask(world: &World, caller: &Arc<TestCaller>, method: &str) -> Value {
    world.data(caller, "ask", json!({"method": method, "params": {"message": "m"}})).await
}

async fn opened(world: &World, caller: TestCaller, client: Value) -> Arc<TestCaller> {
    let caller = Arc::new(caller);
    world.try_open(&caller, client).await.unwrap();
    caller
}

#[tokio::test]
async fn a_question_reaches_the_caller_and_leaves_a_child_receipt() {
    let world = World::new(&[]).await;
    for (method, kind) in [
        ("sampling/createMessage", OperationKind::CreateMessage),
        ("elicitation/create", OperationKind::CreateElicitation),
        ("roots/list", OperationKind::ListRoots),
    ] {
        let client = json!({"sampling": {}, "elicitation": {}, "roots": {}});
        let caller = TestCaller::of(method).answering(Ok(json!({"of": method})));
        let caller = opened(&world, caller, client).await;
        assert_eq!(ask(&world, &caller, method).await["result"], json!({"of": method}));
        let questions = caller.questions();
        assert_eq!((questions.len(), questions[0].kind), (1, kind));
        assert_eq!(questions[0].params, json!({"message": "m"}));
        let child = world.children().await.pop().unwrap();
        child.check_signature().unwrap();
        assert_eq!((child.operation_kind, &*child.session_id), (kind, method));
        assert_eq!(child.terminal_state, TerminalState::Completed);
        assert!(child.parent_request_id.starts_with("req-"));
    }
    assert_eq!(world.children().await.len(), 3);
}

#[tokio::test]
async fn what_the_caller_cannot_answer_is_an_error_for_the_server() {
    let world = World::new(&[]).await;
    for (number, (answer, code)) in [
        (Err(AskError::Unsupported), -32601),
        (Err(AskError::Failed("no".to_owned())), -32603),
        (Err(AskError::Gone), -32603),
    ]
    .into_iter()
    .enumerate()
    {
        let caller = TestCaller::of(&format!("s{number}")).answering(answer);
        let caller = opened(&world, caller, json!({"elicitation": {}})).await;
        let answered = ask(&world, &caller, "elicitation/create").await;
        assert_eq!(answered["error"]["code"], code, "{answered}");
    }
}

#[tokio::test]
async fn only_what_the_client_announced_is_asked() {
    let world = World::new(&[]).await;
    let caller = TestCaller::of("s1").answering(Ok(json!({})));
    let caller = opened(&world, caller, json!({"elicitation": {}, "tasks": {}})).await;
    assert_eq!(ask(&world, &caller, "sampling/createMessage").await["error"]["code"], -32601);
    assert_eq!(ask(&world, &caller, "ping").await["result"], json!({}));
    assert_eq!(caller.questions(), []);
    assert_eq!(world.children().await, []);
}

#[tokio::test]
async fn the_shared_child_asks_the_session_whose_call_runs() {
    let mut options = options(&[]);
    options.sharing = Sharing::Shared;
    let world = World::with(options).await;
    let caller = TestCaller::of("s1").answering(Ok(json!({"roots": []})));
    let guest = opened(&world, caller, json!({"roots": {}})).await;
    assert_eq!(ask(&world, &guest, "roots/list").await["result"], json!({"roots": []}));
    // What a client cannot do, it says itself.
    assert_eq!(ask(&world, &guest, "elicitation/create").await["error"]["code"], -32601);
    assert_eq!(guest.questions().len(), 2);
    // A call of another session, and nothing is sure.
    let other = world.open("s2").await;
    let (refused, _) = tokio::join!(
        async {
            until("the call", async || world.seen(&guest).await["hanging"][0].as_u64()).await;
            let refused = ask(&world, &guest, "roots/list").await;
            other.cancel();
            refused
        },
        world.call(&other, "hang", json!({})),
    );
    assert_eq!(refused["error"]["code"], -32603, "{refused}");
    assert_eq!((guest.questions().len(), other.questions().len()), (2, 0));
}

#[tokio::test]
async fn a_question_outside_of_any_call_reaches_the_session() {
    let world = World::new(&[]).await;
    let other = world.open("other").await;
    let caller = TestCaller::of("s1").answering(Ok(json!({"roots": []})));
    let caller = opened(&world, caller, json!({"roots": {"listChanged": true}})).await;
    world.kernel.tell(SERVER, caller.session(), ClientNotification::RootsChanged).await.unwrap();
    let child = until("its receipt", async || world.children().await.pop()).await;
    assert_eq!((&*child.session_id, &*child.parent_request_id), ("s1", "s1"));
    assert_eq!(caller.questions()[0].kind, OperationKind::ListRoots);
    let answer = until("the roots", async || world.seen(&caller).await.get("roots").cloned()).await;
    assert_eq!(answer[0]["result"], json!({"roots": []}));
    assert_eq!(other.questions(), []);
}

#[tokio::test]
async fn a_question_for_the_roots_outlives_the_call_that_it_was_asked_in() {
    let world = World::new(&[]).await;
    let mut caller = TestCaller::of("s1");
    for _ in 0..2 {
        caller = caller.answering(Ok(json!({"roots": []})));
    }
    let caller = opened(&world, caller, json!({"roots": {}})).await;
    world.value(&caller, "look_round", json!({})).await;
    until("its receipt", async || {
        let children = world.children().await;
        children.into_iter().find(|child| child.terminal_state == TerminalState::Completed)
    })
    .await;
    let answer = until("the roots", async || world.seen(&caller).await.get("roots").cloned()).await;
    assert_eq!(answer[0]["result"], json!({"roots": []}));
}
