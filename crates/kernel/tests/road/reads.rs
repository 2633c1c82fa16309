//! Reads, notices and sessions: what a server has besides tools takes the same road.

use std::sync::Arc;

use chio_core::capability::{
    CapabilityToken, ChioScope, Operation, PromptGrant, ResourceGrant, ToolGrant,
};
use chio_core::receipt::{ChildReceipt, Execution, LoggedReceipt, OperationKind, TerminalState};
use chio_core::registry::ErrorCode;
use chio_core::signed::Signed;
use chio_kernel::{
    AskError, ClientNotification, ListKind, Question, Read, ReadKind, ReadOutcome, ReadRequest,
    Review, ReviewMode, ToolCall, Verdict,
};
use serde_json::{Map, Value, json};

use crate::support::provider::{LIBRARY, TestProvider, notice};
use crate::support::tokens::{HOUR, agent, issuer};
use crate::support::world::{assert_denied, value};
use crate::support::{Setup, TestCaller, World, guard};

/// A world with a library, and what a test can see of it.
async fn with_library(setup: Setup) -> (World, TestProvider) {
    let world = setup.start().await;
    let provider = TestProvider::new(&world.journal);
    world.kernel.register_tool_server(Box::new(provider.clone())).unwrap();
    (world, provider)
}

/// A token for resources below `test://`, prompts that greet, and every tool of the library.
fn token() -> CapabilityToken {
    let operations = vec![Operation::Read, Operation::Subscribe];
    let scope = ChioScope {
        grants: vec![ToolGrant::new(LIBRARY, "*", &[Operation::Invoke])],
        resource_grants: vec![ResourceGrant { uri_pattern: "test://*".to_owned(), operations }],
        prompt_grants: vec![PromptGrant {
            prompt_name: "greet*".to_owned(),
            operations: vec![Operation::Get],
        }],
    };
    let (issuer_key, subject) = (issuer().public_key().clone(), agent().public_key().clone());
    CapabilityToken::draft("cap-read", issuer_key, subject, scope, HOUR).signed(&issuer()).unwrap()
}

fn request(kind: ReadKind, params: Value) -> ReadRequest {
    let Value::Object(params) = params else { panic!("{params}") };
    let (token, agent) = (token().into(), agent().public_key().clone());
    ReadRequest { kind, token, agent, server_id: LIBRARY.to_owned(), params, meta: None }
}

async fn read(world: &World, kind: ReadKind, params: Value) -> (Read, ChildReceipt) {
    read_for(world, kind, params, world.caller()).await
}

/// Reads, and finds the one child receipt of it.
async fn read_for(
    world: &World,
    kind: ReadKind,
    params: Value,
    caller: TestCaller,
) -> (Read, ChildReceipt) {
    let read = world.kernel.read(request(kind, params), Arc::new(caller)).await.unwrap();
    let mut found = Vec::new();
    for logged in world.logged().await {
        if let LoggedReceipt::Child(child) = logged
            && child.request_id == read.request_id
        {
            found.push(*child);
        }
    }
    assert_eq!(found.len(), 1, "exactly one receipt");
    let child = found.remove(0);
    child.check_signature().unwrap();
    assert_eq!(child.id, read.receipt_id);
    assert_eq!(world.open_intents().await, 0);
    (read, child)
}

fn denied(read: &Read) -> (ErrorCode, &str) {
    match &read.outcome {
        ReadOutcome::Denied(denial) => (denial.code, &denial.guard),
        other => panic!("expected a denial, found {other:?}"),
    }
}

#[tokio::test]
async fn a_read_that_is_granted_runs_and_leaves_a_child_receipt() {
    let (world, _) = with_library(Setup::default()).await;
    let (found, child) = read(&world, ReadKind::Resource, json!({"uri": "test://a"})).await;
    assert_eq!(found.outcome, ReadOutcome::Value(json!({"contents": [{"text": "test://a"}]})));
    assert_eq!(child.operation_kind, OperationKind::ReadResource);
    assert_eq!(child.terminal_state, TerminalState::Completed);
    assert_eq!((&*child.session_id, &*child.parent_request_id), ("session-1", "session-1"));
    let metadata = child.metadata.unwrap();
    assert_eq!(metadata["outcome"], "result");
    assert_eq!(metadata["read"], "read_resource");
    assert_eq!(metadata["server"], LIBRARY);
    assert_eq!(metadata["parameters"], json!({"uri": "test://a"}));
    assert_eq!(metadata["capability_id"], "cap-read");
    for (kind, params, operation) in [
        (ReadKind::Subscribe, json!({"uri": "test://a"}), OperationKind::ReadResource),
        (ReadKind::Unsubscribe, json!({"uri": "test://a"}), OperationKind::ReadResource),
        (ReadKind::Prompt, json!({"name": "greeting"}), OperationKind::GetPrompt),
        (
            ReadKind::Completion,
            json!({"ref": {"type": "ref/prompt", "name": "greet"}}),
            OperationKind::Complete,
        ),
    ] {
        let (found, child) = read(&world, kind, params).await;
        assert_eq!(
            (found.outcome, child.operation_kind),
            (ReadOutcome::Value(json!({})), operation)
        );
    }
}

#[tokio::test]
async fn a_read_that_is_not_granted_never_reaches_the_server() {
    let (world, _) = with_library(Setup::default()).await;
    let (found, child) =
        read(&world, ReadKind::Resource, json!({"uri": "file:///etc/passwd"})).await;
    assert_eq!(denied(&found), (ErrorCode::CapabilityDenied, "kernel"));
    assert_eq!(child.metadata.unwrap()["denial"]["code"], 2100);
    let (found, _) = read(&world, ReadKind::Prompt, json!({"name": "other"})).await;
    assert_eq!(denied(&found).0, ErrorCode::CapabilityDenied);
    assert!(world.journal.all().iter().all(|event| !event.starts_with("run")));
}

#[tokio::test]
async fn a_revoked_token_reads_nothing() {
    let (world, _) = with_library(Setup::default()).await;
    world.kernel.revoke("cap-read").await.unwrap();
    let (found, _) = read(&world, ReadKind::Resource, json!({"uri": "test://a"})).await;
    assert_eq!(denied(&found).0, ErrorCode::CapabilityRevoked);
}

#[tokio::test]
async fn guards_judge_reads_and_what_they_find() {
    let setup = Setup::default()
        .guard(guard("careful").checks(|input| {
            assert_eq!(input.tool_name, "read_resource");
            let secret = input.arguments["uri"] == "test://secret";
            let verdict =
                if secret { Verdict::Deny("a secret".to_owned()) } else { Verdict::Allow };
            Ok(verdict.into())
        }))
        .guard(guard("censor").reviews(ReviewMode::EachChunk, |output| {
            Ok(match output.pointer("/contents/0/text") {
                Some(text) if text == "test://b" => Review::Block("no b".to_owned()),
                Some(text) if text == "test://c" => Review::Replace(json!({"contents": []})),
                _ => Review::Pass,
            })
        }));
    let (world, _) = with_library(setup).await;
    let (found, child) = read(&world, ReadKind::Resource, json!({"uri": "test://secret"})).await;
    assert_eq!(denied(&found), (ErrorCode::GuardDenied, "careful"));
    assert_eq!(child.metadata.unwrap()["evidence"][0]["guard_name"], "careful");
    let (found, _) = read(&world, ReadKind::Resource, json!({"uri": "test://b"})).await;
    assert_eq!(denied(&found), (ErrorCode::GuardDenied, "censor"));
    let (found, child) = read(&world, ReadKind::Resource, json!({"uri": "test://c"})).await;
    assert_eq!(found.outcome, ReadOutcome::Value(json!({"contents": []})));
    assert_eq!(child.metadata.unwrap()["post_invocation"]["sanitized"], json!(["censor"]));
}

#[tokio::test]
async fn a_read_cannot_wait_for_an_approval() {
    let asks = guard("asks").says(Verdict::AwaitApproval("careful".to_owned()));
    let (world, _) = with_library(Setup::default().guard(asks)).await;
    let (found, _) = read(&world, ReadKind::Resource, json!({"uri": "test://a"})).await;
    assert_eq!(denied(&found), (ErrorCode::GuardDenied, "asks"));
    assert!(world.inbox().await.is_empty());
}

#[tokio::test]
async fn the_servers_own_error_and_its_failure_are_told_apart() {
    let (world, _) = with_library(Setup::default()).await;
    let (found, child) = read(&world, ReadKind::Resource, json!({"uri": "test://missing"})).await;
    let (message, data) = ("not found".to_owned(), json!({"uri": "test://missing", "secret": "s"}));
    let data = Some(Box::new(data));
    let expected = ReadOutcome::Answered { code: -32002, message, data };
    assert_eq!(found.outcome, expected);
    assert_eq!(child.execution(), Some(Execution::Failed));
    assert_eq!(child.metadata.unwrap()["outcome"], "error");
    let (found, child) = read(&world, ReadKind::Resource, json!({"uri": "test://broken"})).await;
    assert_eq!(denied(&found), (ErrorCode::ToolServerError, "tool_server"));
    assert_eq!(child.execution(), Some(Execution::Failed));
}

#[tokio::test]
async fn a_read_that_was_not_sent_and_one_whose_answer_is_lost_are_told_apart() {
    let (world, _) = with_library(Setup::default()).await;
    let (found, child) = read(&world, ReadKind::Resource, json!({"uri": "test://gone"})).await;
    assert_eq!(denied(&found), (ErrorCode::ToolServerError, "tool_server"));
    assert_eq!(child.execution(), Some(Execution::NotBegun));
    let (found, child) = read(&world, ReadKind::Resource, json!({"uri": "test://lost"})).await;
    assert_eq!(found.outcome, ReadOutcome::Incomplete("the server ended".to_owned()));
    assert!(matches!(child.terminal_state, TerminalState::Incomplete { .. }));
    assert_eq!(child.execution(), Some(Execution::Begun));
    let (_, child) = read(&world, ReadKind::Resource, json!({"uri": "test://a"})).await;
    assert_eq!(child.execution(), Some(Execution::Completed));
    assert!(child.metadata.unwrap().get("execution").is_none());
}

#[tokio::test]
async fn a_read_may_ask_back_and_both_are_receipted() {
    let (world, _) = with_library(Setup::default()).await;
    let caller = world.caller().answering(Ok(json!({"roots": []})));
    let params = json!({"uri": "test://asks"});
    let (found, child) = read_for(&world, ReadKind::Resource, params, caller).await;
    assert_eq!(found.outcome, ReadOutcome::Value(json!({"answer": {"roots": []}})));
    let children: Vec<_> = world.logged().await;
    assert_eq!(children.len(), 2);
    let LoggedReceipt::Child(question) = &children[0] else { panic!("{:?}", children[0]) };
    assert_eq!(question.parent_request_id, child.request_id);
    assert_eq!(question.operation_kind, OperationKind::ListRoots);
}

#[tokio::test]
async fn a_read_that_is_cancelled_is_receipted_as_that() {
    let (world, _) = with_library(Setup::default().guard(guard("slow").hangs())).await;
    let caller = world.caller();
    caller.cancel();
    let params = json!({"uri": "test://a"});
    let (found, child) = read_for(&world, ReadKind::Resource, params, caller).await;
    assert!(matches!(found.outcome, ReadOutcome::Cancelled(_)), "{:?}", found.outcome);
    assert!(matches!(child.terminal_state, TerminalState::Cancelled { .. }));
}

#[tokio::test]
async fn a_server_without_a_library_has_nothing_to_read() {
    let world = World::new().await;
    let server_id = crate::support::SERVER.to_owned();
    let request = request(ReadKind::Resource, json!({"uri": "test://a"}));
    let request = ReadRequest { server_id, ..request };
    let found = world.kernel.read(request, Arc::new(world.caller())).await.unwrap();
    assert_eq!(denied(&found).0, ErrorCode::ToolServerError);
    let session = chio_kernel::Caller::session(&world.caller()).clone();
    let listed = world.kernel.list(crate::support::SERVER, &session, ListKind::Tools).await;
    assert_eq!(listed.unwrap(), None);
}

#[tokio::test]
async fn notices_leave_after_the_intent_and_the_guards() {
    let censor = guard("censor").reviews(ReviewMode::EachChunk, |output| {
        Ok(match output.get("data").and_then(Value::as_str) {
            Some("secret") => Review::Block("a secret".to_owned()),
            Some("name") => Review::Replace(json!({"data": "[name]"})),
            _ => Review::Pass,
        })
    });
    let (world, _) = with_library(Setup::default().guard(censor)).await;
    let caller = Arc::new(world.caller());
    let arguments = json!({"texts": ["hello", "secret", "name"]});
    let request_id = world.kernel.new_request_id();
    let call = ToolCall::new(request_id, token(), LIBRARY, "tell", arguments);
    let ended = world.run_for(call, Arc::<TestCaller>::clone(&caller)).await;
    assert_eq!(*value(&ended), json!({"wants_progress": false}));
    assert_eq!(caller.notices(), [notice("hello"), notice("[name]")]);
    let journal = world.journal.all();
    assert_eq!(journal, ["reserve", "notice", "notice", "append"]);
}

#[tokio::test]
async fn a_server_speaks_outside_of_calls_through_its_session_context() {
    let censor = guard("censor").reviews(ReviewMode::EachChunk, |output| {
        let secret = output.to_string().contains("secret");
        Ok(if secret { Review::Block("a secret".to_owned()) } else { Review::Pass })
    });
    let (world, provider) = with_library(Setup::default().guard(censor)).await;
    let caller = Arc::new(world.caller().answering(Ok(json!({"roots": []}))));
    let client = Map::from_iter([("roots".to_owned(), json!({}))]);
    let opened = world.kernel.open_session(LIBRARY, caller.clone(), token().into(), client).await;
    assert!(opened.unwrap().is_some());
    let context = provider.session_context.lock().unwrap().clone().unwrap();
    assert!(context.client().contains_key("roots"));
    context.notice(LIBRARY, notice("hello")).await;
    context.notice(LIBRARY, notice("secret")).await;
    assert_eq!(caller.notices(), [notice("hello")]);
    let question = |params| Question { kind: OperationKind::ListRoots, params };
    let answer = context.ask(LIBRARY, question(json!({}))).await;
    assert_eq!(answer.unwrap(), json!({"roots": []}));
    let held = context.ask(LIBRARY, question(json!({"text": "secret"}))).await;
    assert_eq!(held.unwrap_err(), AskError::Failed("held back by censor".to_owned()));
    let logged = world.logged().await;
    assert_eq!(logged.len(), 2);
    for logged in logged {
        let LoggedReceipt::Child(child) = logged else { panic!("{logged:?}") };
        child.check_signature().unwrap();
        assert_eq!((&*child.session_id, &*child.parent_request_id), ("session-1", "session-1"));
    }
    assert_eq!(world.open_intents().await, 0);
    world.kernel.tell(LIBRARY, context.session(), ClientNotification::RootsChanged).await.unwrap();
    world.kernel.close_session(LIBRARY, "session-1").await;
    let journal = world.journal.all();
    assert!(journal.contains(&"RootsChanged".to_owned()), "{journal:?}");
    assert!(journal.contains(&"close session-1".to_owned()), "{journal:?}");
}

#[tokio::test]
async fn only_tools_that_the_server_has_now_can_be_called() {
    let (world, provider) = with_library(Setup::default()).await;
    let call = |tool: &str| {
        ToolCall::new(world.kernel.new_request_id(), token(), LIBRARY, tool, json!({}))
    };
    assert_denied(&world.run(call("new")).await, ErrorCode::ToolServerError, "has no tool `new`");
    provider.have(&["new"]);
    value(&world.run(call("new")).await);
    assert_denied(&world.run(call("tell")).await, ErrorCode::ToolServerError, "has no tool `tell`");
    assert_eq!(world.kernel.manifests()[0].tools[0].name, "new");
}
