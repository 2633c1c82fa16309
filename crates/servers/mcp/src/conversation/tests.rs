//! What becomes of each thing that a child says.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;

use chio_core::text::members;
use chio_kernel::{AskError, ListKind};
use chio_net::jsonrpc::RpcError;

use super::*;
use crate::options::Limits;

/// A conversation, and where what belongs to no call comes out.
struct Talk {
    conversation: Arc<Conversation>,
    outside: mpsc::Receiver<Outside>,
}

impl Talk {
    /// With a child whose client can do this; that has none; or, for a string, that is shared.
    fn new(client: Option<Value>) -> Self {
        Self::within(client, Limits::default())
    }

    fn within(client: Option<Value>, limits: Limits) -> Self {
        let key = chio_core::crypto::Keypair::from_seed(&[7; 32]);
        let mut settings = McpServerOptions::new("srv", ["none"], key.public_key().clone());
        settings.limits = limits;
        let audience = match client {
            None => Audience::Nobody,
            Some(Value::String(_)) => Audience::Shared,
            Some(client) => Audience::Session(members(client)),
        };
        let (conversation, outside) = Conversation::new(Arc::new(settings));
        conversation.address(audience);
        Self { conversation, outside }
    }

    fn say(&self, message: &Value) {
        assert!(self.conversation.take(message.to_string().as_bytes()), "{message}");
    }

    fn notify(&self, method: &str, params: &Value) {
        self.say(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn ask(&self, id: &Value, method: &str) {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"q": 1}}));
    }

    /// What was sent since the last look.
    fn sent(&self) -> Vec<Value> {
        let lines = self.conversation.outbox.queued();
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// What came out outside of any call.
    fn outside(&mut self) -> Option<String> {
        match self.outside.try_recv().ok()? {
            Outside::ServerNotification(held) => Some(held.notification.method),
            Outside::Question(asked) => Some(format!("{:?}", asked.question.kind)),
        }
    }
}

fn all() -> Option<Value> {
    Some(json!({"sampling": {}, "elicitation": {}, "roots": {}}))
}

fn notifications(events: &mut Events) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    while let Ok(held) = events.notifications.try_recv() {
        found.push((held.notification.method, Value::Object(held.notification.params)));
    }
    found
}

async fn once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::future::poll_fn(|context| Poll::Ready(std::pin::Pin::new(&mut *future).poll(context)))
        .await
}

#[tokio::test]
async fn answers_find_who_asked() {
    let talk = Talk::new(None);
    let mut one = pin!(talk.conversation.request("a", Map::new()));
    let mut other = pin!(talk.conversation.request("b", Map::new()));
    assert!(once(&mut one).await.is_pending() && once(&mut other).await.is_pending());
    let ids: Vec<Value> = talk.sent().iter().map(|sent| sent["id"].clone()).collect();
    talk.say(&json!({"jsonrpc": "2.0", "id": ids[1], "result": {"of": "b"}}));
    let error = json!({"code": -7, "message": "no"});
    talk.say(&json!({"jsonrpc": "2.0", "id": ids[0], "error": error}));
    assert_eq!(other.await, Ok(json!({"of": "b"})));
    assert_eq!(
        one.await,
        Err(McpError::Answered { code: -7, message: "no".to_owned(), data: None })
    );
    assert!(talk.sent().is_empty(), "nothing is cancelled that was answered");
}

#[tokio::test]
async fn a_call_that_stops_waiting_is_cancelled_and_a_late_answer_is_dropped() {
    let talk = Talk::new(None);
    {
        let mut request = pin!(talk.conversation.request("a", Map::new()));
        assert!(once(&mut request).await.is_pending());
    }
    let sent = talk.sent();
    assert_eq!(sent[1]["method"], "notifications/cancelled");
    assert_eq!(sent[1]["params"]["requestId"], sent[0]["id"]);
    talk.say(&json!({"jsonrpc": "2.0", "id": sent[0]["id"], "result": 1}));
    assert!(talk.conversation.state.lock().pending.is_empty());
    assert!(talk.sent().is_empty());
}

#[tokio::test]
async fn the_first_exchange_is_never_cancelled() {
    let talk = Talk::new(None);
    {
        let mut request = pin!(talk.conversation.request("initialize", Map::new()));
        assert!(once(&mut request).await.is_pending());
    }
    assert_eq!(talk.sent().len(), 1);
}

#[tokio::test]
async fn a_lost_answer_fails_everybody_who_waits() {
    let talk = Talk::new(None);
    let mut one = pin!(talk.conversation.request("a", Map::new()));
    let mut other = pin!(talk.conversation.request("b", Map::new()));
    assert!(once(&mut one).await.is_pending() && once(&mut other).await.is_pending());
    talk.conversation.fail_all(&McpError::TooLong(5));
    assert_eq!(one.await, Err(McpError::TooLong(5)));
    assert_eq!(other.await, Err(McpError::TooLong(5)));
    let sent = talk.sent();
    let cancelled = sent.iter().filter(|sent| sent["method"] == "notifications/cancelled");
    assert_eq!(cancelled.count(), 2);
}

#[tokio::test]
async fn an_end_fails_who_waits_and_who_comes_later() {
    let talk = Talk::new(None);
    let ended = McpError::Ended("exit status 1".to_owned());
    let mut request = pin!(talk.conversation.request("a", Map::new()));
    assert!(once(&mut request).await.is_pending());
    talk.conversation.end(&ended);
    talk.conversation.end(&McpError::Stopped);
    assert_eq!(request.await, Err(ended.clone()));
    assert_eq!(talk.conversation.request("b", Map::new()).await, Err(ended), "the first reason");
    assert!(talk.conversation.over().is_cancelled() && talk.conversation.ended_at().is_some());
}

#[tokio::test]
async fn requests_are_bounded_in_number_and_bytes() {
    let limits = Limits { max_pending: 1, ..Limits::default() };
    let talk = Talk::within(None, limits);
    let mut request = pin!(talk.conversation.request("a", Map::new()));
    assert!(once(&mut request).await.is_pending());
    let refused = McpError::TooMany { what: "requests at once", max: 1 };
    assert_eq!(talk.conversation.request("b", Map::new()).await, Err(refused));
    let talk = Talk::within(None, Limits { max_queued_bytes: 100, ..Limits::default() });
    let mut request = pin!(talk.conversation.request("a", Map::new()));
    assert!(once(&mut request).await.is_pending());
    let large = members(json!({"text": "x".repeat(100)}));
    assert_eq!(talk.conversation.request("b", large).await, Err(McpError::Deaf));
    assert_eq!(talk.conversation.state.lock().pending.len(), 1);
}

#[test]
fn progress_belongs_to_the_call_that_it_names() {
    let mut talk = Talk::new(all());
    let (first, mut to_first) = talk.conversation.begin("s1");
    let (second, mut to_second) = talk.conversation.begin("s1");
    let progress = |token: Value| json!({"progressToken": token, "progress": 1, "total": 2});
    talk.notify("notifications/progress", &progress(json!(first.token)));
    talk.notify("notifications/progress", &progress(json!("unknown")));
    talk.notify("notifications/progress", &progress(json!(second.token + 100)));
    talk.notify("notifications/progress", &json!({"progress": 1}));
    let expected = ("notifications/progress".to_owned(), json!({"progress": 1, "total": 2}));
    assert_eq!(notifications(&mut to_first), [expected]);
    assert_eq!(notifications(&mut to_second), []);
    let over = first.token;
    drop(first);
    talk.notify("notifications/progress", &progress(json!(over)));
    assert_eq!(notifications(&mut to_second), []);
    assert_eq!(talk.outside(), None);
}

#[test]
fn what_is_logged_belongs_to_the_newest_call_or_the_session() {
    let mut talk = Talk::new(Some(json!({})));
    let (first, mut to_first) = talk.conversation.begin("s1");
    let (second, mut to_second) = talk.conversation.begin("s1");
    talk.notify("notifications/message", &json!({"data": "a"}));
    drop(second);
    talk.notify("notifications/message", &json!({"data": "b"}));
    drop(first);
    talk.notify("notifications/message", &json!({"data": "c"}));
    let message = |data: &str| ("notifications/message".to_owned(), json!({"data": data}));
    assert_eq!(notifications(&mut to_second), [message("a")]);
    assert_eq!(notifications(&mut to_first), [message("b")]);
    assert_eq!(talk.outside().as_deref(), Some("notifications/message"));
}

#[test]
fn questions_belong_to_the_newest_call_or_the_session() {
    let mut talk = Talk::new(all());
    let (first, mut to_first) = talk.conversation.begin("s1");
    let (second, mut to_second) = talk.conversation.begin("s1");
    talk.ask(&json!(1), "sampling/createMessage");
    let asked = to_second.questions.try_recv().unwrap();
    assert_eq!(asked.question.params, json!({"q": 1}));
    asked.reply.give(Ok(json!({"role": "assistant"})));
    drop(second);
    talk.ask(&json!("x"), "elicitation/create");
    let asked = to_first.questions.try_recv().unwrap();
    asked.reply.give(Err(AskError::Failed("no user".to_owned())));
    drop(first);
    talk.ask(&json!(3), "roots/list");
    assert_eq!(talk.outside().as_deref(), Some("ListRoots"));
    let sent = talk.sent();
    assert_eq!(sent[0], json!({"jsonrpc": "2.0", "id": 1, "result": {"role": "assistant"}}));
    assert_eq!(sent[1]["id"], "x");
    assert_eq!(sent[1]["error"]["message"], "the caller answered with an error: no user");
    assert_eq!(sent[2]["error"]["message"], "the caller is gone", "it was dropped unanswered");
    assert_eq!(sent.len(), 3);
}

#[test]
fn what_was_not_announced_is_refused() {
    for client in [None, Some(json!({})), Some(json!({"roots": {}}))] {
        let mut talk = Talk::new(client);
        let (_running, mut events) = talk.conversation.begin("s1");
        for method in ["sampling/createMessage", "elicitation/create", "tasks/list", "other"] {
            talk.ask(&json!(1), method);
            let sent = talk.sent();
            assert_eq!(sent[0]["error"]["code"], RpcError::METHOD_NOT_FOUND, "{method}");
        }
        assert!(events.questions.try_recv().is_err() && talk.outside().is_none());
        talk.ask(&json!(2), "ping");
        assert_eq!(talk.sent(), [json!({"jsonrpc": "2.0", "id": 2, "result": {}})]);
    }
}

#[test]
fn a_child_without_a_session_reaches_nobody_who_did_not_ask() {
    let mut talk = Talk::new(None);
    let (_running, mut events) = talk.conversation.begin("s1");
    for method in [
        "notifications/message",
        "notifications/elicitation/complete",
        "notifications/tasks/status",
        "notifications/unknown",
    ] {
        talk.notify(method, &json!({}));
    }
    assert_eq!(notifications(&mut events), []);
    assert_eq!(talk.outside(), None);
    talk.notify("notifications/resources/updated", &json!({"uri": "a://b"}));
    assert_eq!(talk.outside().as_deref(), Some("notifications/resources/updated"));
}

#[test]
fn what_nobody_takes_is_dropped_or_refused() {
    let limits = Limits { max_notifications: 2, max_questions: 1, ..Limits::default() };
    let talk = Talk::within(all(), limits);
    let (_running, mut events) = talk.conversation.begin("s1");
    for _ in 0..5 {
        talk.notify("notifications/message", &json!({}));
    }
    assert_eq!(notifications(&mut events).len(), 2);
    assert_eq!(
        talk.conversation.state.lock().calls[0].dropped.load(std::sync::atomic::Ordering::Relaxed),
        3
    );
    talk.ask(&json!(1), "elicitation/create");
    talk.ask(&json!(2), "elicitation/create");
    let sent = talk.sent();
    assert_eq!((sent.len(), &sent[0]["id"]), (1, &json!(2)));
}

#[test]
fn a_question_for_the_roots_goes_to_the_session_when_its_call_is_over() {
    let mut talk = Talk::new(all());
    let (running, events) = talk.conversation.begin("s1");
    talk.ask(&json!(1), "roots/list");
    talk.ask(&json!(2), "elicitation/create");
    drop((running, events));
    let sent = talk.sent();
    assert_eq!((sent.len(), &sent[0]["id"]), (1, &json!(2)), "that one ends with its call");
    let Some(Outside::Question(asked)) = talk.outside.try_recv().ok() else { panic!("none") };
    drop(asked);
    assert_eq!(talk.sent()[0]["error"]["message"], "the caller is gone", "it is asked once more");
    assert_eq!(talk.outside(), None);
}

#[test]
fn what_waits_for_a_client_is_bounded_in_bytes() {
    let talk = Talk::within(all(), Limits { max_held_bytes: 300, ..Limits::default() });
    let (_running, mut events) = talk.conversation.begin("s1");
    let message = json!({"data": "x".repeat(60)});
    for _ in 0..5 {
        talk.notify("notifications/message", &message);
    }
    talk.ask(&json!(1), "roots/list");
    assert_eq!(talk.sent()[0]["error"]["message"], "too much waits for the client already");
    assert_eq!(notifications(&mut events).len(), 2);
    talk.notify("notifications/message", &message);
    assert_eq!(notifications(&mut events).len(), 1, "room is given back");
    let huge = json!({"data": "x".repeat(2 << 20)});
    let talk = Talk::new(all());
    let (_running, mut events) = talk.conversation.begin("s1");
    talk.notify("notifications/message", &huge);
    assert_eq!(notifications(&mut events).len(), 0, "the kernel would not let it pass");
}

#[test]
fn a_question_that_was_withdrawn_is_not_answered() {
    let talk = Talk::new(all());
    let (_running, mut events) = talk.conversation.begin("s1");
    talk.ask(&json!(1), "roots/list");
    talk.notify("notifications/cancelled", &json!({"requestId": 1}));
    events.questions.try_recv().unwrap().reply.give(Ok(json!({})));
    assert!(talk.sent().is_empty());
}

#[tokio::test]
async fn changes_of_lists_are_gathered_and_forget_what_was_remembered() {
    let talk = Talk::new(None);
    for change in ["tools", "prompts", "tools"] {
        talk.notify(&format!("notifications/{change}/list_changed"), &json!({}));
    }
    let changes = talk.conversation.changes().await;
    assert_eq!(changes, BTreeSet::from([Change::Tools, Change::Prompts]));
    let mut next = pin!(talk.conversation.changes());
    assert!(once(&mut next).await.is_pending());
    talk.notify("notifications/resources/list_changed", &json!({}));
    assert_eq!(next.await, BTreeSet::from([Change::Resources]));
    assert_eq!(Change::Resources.kinds(), [ListKind::Resources, ListKind::ResourceTemplates]);
}

#[test]
fn an_answer_that_cannot_be_read_fails_its_request_only() {
    let talk = Talk::new(None);
    let mut one = talk.conversation.send("a", &Map::new()).unwrap();
    let mut other = talk.conversation.send("b", &Map::new()).unwrap();
    let twice = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"a":1,"a":2}}}}"#, one.id);
    assert!(talk.conversation.take(twice.as_bytes()));
    assert!(matches!(one.answer.try_recv(), Ok(Err(McpError::Unreadable(_)))));
    assert!(other.answer.try_recv().is_err());
}

fn shared() -> Option<Value> {
    Some(json!("shared"))
}

/// The params of a message that says which task it belongs to.
fn of_task(id: &str) -> Value {
    json!({"data": id, "_meta": {"io.modelcontextprotocol/related-task": {"taskId": id}}})
}

#[tokio::test(start_paused = true)]
async fn what_a_shared_child_says_is_for_the_one_session_whose_calls_run() {
    let mut talk = Talk::new(shared());
    let log = "notifications/message";
    talk.notify(log, &json!({"data": "to no call"}));
    talk.ask(&json!(1), "roots/list");
    assert_eq!(talk.sent()[0]["error"]["code"], RpcError::INTERNAL_ERROR);
    let (mut first, mut to_first) = talk.conversation.begin("s1");
    let (mut second, mut to_second) = talk.conversation.begin("s1");
    talk.notify(log, &json!({"data": "newest"}));
    talk.notify("notifications/acme", &json!({"uri": "test://1"}));
    assert_eq!((notifications(&mut to_first).len(), notifications(&mut to_second).len()), (0, 2));
    let (mut other, mut to_other) = talk.conversation.begin("s2");
    talk.notify(log, &json!({"data": "whose?"}));
    talk.ask(&json!(2), "elicitation/create");
    assert_eq!(talk.sent()[0]["error"]["code"], RpcError::INTERNAL_ERROR);
    // A task names its call, and one that is unknown none.
    talk.conversation.relate(first.token, "t1");
    for (task, expected) in [("t1", 1), ("t9", 0)] {
        talk.notify(log, &of_task(task));
        let found =
            [&mut to_first, &mut to_second, &mut to_other].map(|it| notifications(it).len());
        assert_eq!(found, [expected, 0, 0], "{task}");
    }
    // The child may still speak of a call for a while, whether it has ended or was left.
    (first.is_over, second.is_over) = (true, true);
    drop((first, second));
    for left in [false, true] {
        talk.notify(log, &json!({"data": "maybe of one before"}));
        talk.ask(&json!(3), "elicitation/create");
        assert_eq!(talk.sent()[0]["error"]["code"], RpcError::INTERNAL_ERROR);
        assert_eq!(notifications(&mut to_other).len(), 0, "{left}");
        tokio::time::advance(Duration::from_secs(11)).await;
        talk.notify(log, &json!({"data": "only the other"}));
        assert_eq!(notifications(&mut to_other).len(), 1, "{left}");
        let (mut gone, _) = talk.conversation.begin("s3");
        gone.is_over = !left;
    }
    other.is_over = true;
    drop(other);
    assert_eq!(talk.outside(), None, "nothing goes anywhere else");
}

#[tokio::test(start_paused = true)]
async fn a_shared_child_that_says_nothing_late_speaks_to_sessions_in_turn() {
    let mut talk = Talk::within(shared(), Limits { late: Duration::ZERO, ..Limits::default() });
    let log = "notifications/message";
    let (mut first, _) = talk.conversation.begin("s1");
    first.is_over = true;
    drop(first);
    let (mut other, mut to_other) = talk.conversation.begin("s2");
    talk.notify(log, &json!({"data": "in turn"}));
    assert_eq!(notifications(&mut to_other).len(), 1);
    // One that was left is still worked on.
    let (left, _) = talk.conversation.begin("s1");
    drop(left);
    talk.notify(log, &json!({"data": "whose?"}));
    assert_eq!(notifications(&mut to_other).len(), 0);
    other.is_over = true;
    assert_eq!(talk.outside(), None);
}

#[tokio::test]
async fn what_is_no_part_of_mcp_passes_to_a_client_that_has_extensions() {
    let mut talk = Talk::new(Some(json!({"experimental": {"acme": {}}})));
    talk.notify("notifications/acme", &json!({"a": 1}));
    assert_eq!(talk.outside().as_deref(), Some("notifications/acme"));
    talk.ask(&json!(1), "acme/ask");
    assert_eq!(talk.outside().as_deref(), Some("ToolCall"));
    talk.notify("notifications/chio/tool_call_chunk", &json!({}));
    talk.ask(&json!(2), "tools/call");
    assert_eq!(talk.outside(), None);
    let talk = Talk::new(all());
    talk.ask(&json!(1), "acme/ask");
    assert_eq!(talk.sent()[0]["error"]["code"], RpcError::METHOD_NOT_FOUND);
}

#[tokio::test]
async fn a_message_that_cannot_be_read_is_sorted_by_what_can_be_told_of_it() {
    let talk = Talk::new(None);
    let mut one = pin!(talk.conversation.request("a", Map::new()));
    let mut other = pin!(talk.conversation.request("b", Map::new()));
    assert!(once(&mut one).await.is_pending() && once(&mut other).await.is_pending());
    let ids: Vec<Value> = talk.sent().iter().map(|sent| sent["id"].clone()).collect();
    let half = format!(r#"{{"result":"\ud800","jsonrpc":"2.0","id":{}}}"#, ids[0]);
    assert!(talk.conversation.take(half.as_bytes()));
    assert!(
        matches!(one.await, Err(McpError::Unreadable(problem)) if problem.contains("surrogate"))
    );
    let question =
        br#"{"jsonrpc":"2.0","id":"q","method":"ping","params":{"n":123456789012345678901}}"#;
    assert!(talk.conversation.take(question));
    assert_eq!(talk.sent()[0]["error"]["code"], RpcError::INVALID_REQUEST);
    assert!(once(&mut other).await.is_pending());
    let (head, tail) =
        (br#"{"result":{"text":"xx"#, format!(r#"xx"}},"jsonrpc":"2.0","id":{}}}"#, ids[1]));
    talk.conversation.take_ends(head, tail.as_bytes(), McpError::TooLong(9));
    assert_eq!(other.await, Err(McpError::TooLong(9)));
}
