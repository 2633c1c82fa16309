//! Streams: one event is one chunk.

use chio_kernel::Outcome;
use serde_json::{Value, json};

use crate::agent::{ALL, RPC, Speaks, line, model, params, update};
use crate::server::{Reply, Seen, Server};
use crate::support::{Done, World, begin, config, with_model};

/// A world whose agent answers streams in this way, and everything else as the model does.
async fn streaming(
    speaks: Speaks,
    answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
) -> (Server, World) {
    let server = Server::start(move |seen| {
        let asks = String::from_utf8_lossy(&seen.body).contains("SendStreamingMessage");
        let streams = asks || seen.path.ends_with(":stream") || seen.path.ends_with(":subscribe");
        if streams { answer(seen) } else { model(seen, speaks) }
    })
    .await;
    let world = World::new(config(&server)).await;
    (server, world)
}

fn send() -> Value {
    json!({"message": "go", "stream": true})
}

fn status(state: &str) -> Value {
    json!({"statusUpdate": {"taskId": "task-1", "status": {"state": state}}})
}

// covers: A2A-010, A2A-044, A2A-052, A2A-053
#[tokio::test]
async fn each_event_is_one_chunk_whichever_the_binding_and_the_version() {
    for speaks in ALL {
        let (server, world) = with_model(speaks).await;
        let done = world.run("research", send()).await;
        assert_eq!(done.outcome, Outcome::Stream { chunks: 2 }, "{speaks:?}");
        let expected = [status("TASK_STATE_WORKING"), status("TASK_STATE_COMPLETED")];
        assert_eq!(done.chunks, expected, "{speaks:?}");
        let seen = server.last();
        assert_eq!(seen.header("accept"), Some("text/event-stream"));
        let params = params(&seen, speaks);
        assert_eq!(params["metadata"]["chio"]["targetSkillId"], "research");
        assert!(params["message"].get("stream").is_none());
    }
}

// covers: A2A-011, A2A-055
#[tokio::test]
async fn a_task_can_be_subscribed_to() {
    for speaks in ALL {
        let (server, world) = with_model(speaks).await;
        begin(&world).await;
        let done = world.run("research", json!({"subscribe_task": {"id": "task-1"}})).await;
        assert_eq!(done.outcome, Outcome::Stream { chunks: 2 }, "{speaks:?}");
        let seen = server.last();
        match (speaks.rest, speaks.old) {
            (true, false) => assert_eq!(seen.line(), "POST /a2a/tasks/task-1:subscribe"),
            (true, true) => assert_eq!(seen.line(), "POST /a2a/v1/tasks/task-1:subscribe"),
            (false, old) => {
                let method = if old { "tasks/resubscribe" } else { "SubscribeToTask" };
                assert_eq!(seen.json()["method"], method);
                assert_eq!(seen.json()["params"], json!({"id": "task-1"}));
            }
        }
    }
}

#[tokio::test]
async fn servers_that_take_subscriptions_by_get_are_asked_so() {
    for status in [404, 405] {
        let speaks = Speaks { rest: true, old: false };
        let (server, world) = streaming(speaks, move |seen| {
            if seen.method == "POST" {
                return Reply::text(status, "no");
            }
            crate::agent::stream(seen, speaks, &[update(speaks, "completed")])
        })
        .await;
        begin(&world).await;
        let done = world.run("research", json!({"subscribe_task": {"id": "task-1"}})).await;
        assert_eq!(done.outcome, Outcome::Stream { chunks: 1 });
        assert_eq!(server.last().line(), "GET /a2a/tasks/task-1:subscribe");
    }
}

#[tokio::test]
async fn a_chunk_is_the_agents_object_as_it_came_and_the_stream_ends_with_its_task() {
    let (_server, world) = streaming(RPC, |seen| {
        let event = |event: Value| line(seen, RPC, &event);
        let task = json!({"task": {"id": "task-1", "status": {"state": "TASK_STATE_SUBMITTED"}, "x": 1.0}});
        let part = json!({"artifactUpdate": {"taskId": "task-1", "artifact": {"parts": [{"text": "a"}]}, "lastChunk": true}});
        let pretty = json!({"jsonrpc": "2.0", "id": seen.json()["id"], "result": status("TASK_STATE_WORKING")});
        let pretty = serde_json::to_string_pretty(&pretty).unwrap().replace('\n', "\ndata: ");
        let mut text = event(task) + &event(part);
        text.push_str(&format!("id: 7\nevent: message\ndata: {pretty}\n\n"));
        text.push_str(&event(status("TASK_STATE_INPUT_REQUIRED")));
        text.push_str(&event(status("TASK_STATE_COMPLETED")));
        Reply::events(text)
    })
    .await;
    let done = world.run("research", send()).await;
    assert_eq!(done.outcome, Outcome::Stream { chunks: 4 });
    assert_eq!(done.chunks[0]["task"]["x"], 1.0);
    assert_eq!(done.chunks[1]["artifactUpdate"]["lastChunk"], true);
    assert_eq!(done.chunks[2], status("TASK_STATE_WORKING"));
    assert_eq!(done.chunks[3], status("TASK_STATE_INPUT_REQUIRED"));
    // What was streamed is known afterwards.
    world.value(json!({"get_task": {"id": "task-1"}})).await;
}

fn reason(done: &Done) -> String {
    match &done.outcome {
        Outcome::Denied(denial) => denial.reason.clone(),
        Outcome::Incomplete { reason, .. } => reason.clone(),
        other => panic!("expected a stream that broke off, found {other:?}"),
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_no_success() {
    type Answer = fn(&Seen) -> Reply;
    let cases: [(&str, usize, Answer); 7] = [
        ("incomplete stream: after 1 events", 1, |seen| {
            Reply::events(line(seen, RPC, &status("TASK_STATE_WORKING")))
        }),
        ("incomplete stream: after 0 events", 0, |_| Reply::events(": nothing\n\n")),
        ("the agent answered -32603: it broke", 1, |seen| {
            let error = json!({"jsonrpc": "2.0", "id": seen.json()["id"], "error": {"code": -32603, "message": "it broke"}});
            let first = line(seen, RPC, &status("TASK_STATE_WORKING"));
            Reply::events(format!("{first}event: error\ndata: {error}\n\n"))
        }),
        ("the agent answered -32004: UNSUPPORTED_OPERATION: no streams", 0, |seen| {
            let data = json!([{"@type": "x", "reason": "UNSUPPORTED_OPERATION"}]);
            let error = json!({"code": -32004, "message": "no streams", "data": data});
            Reply::json(&json!({"jsonrpc": "2.0", "id": seen.json()["id"], "error": error}))
        }),
        ("expected `text/event-stream`", 0, |seen| {
            crate::agent::whole(seen, RPC, &status("TASK_STATE_COMPLETED"))
        }),
        ("an event cannot be read", 1, |seen| {
            let first = line(seen, RPC, &status("TASK_STATE_WORKING"));
            Reply::events(format!("{first}data: {{\n\n"))
        }),
        ("found another task", 1, |seen| {
            let first = line(seen, RPC, &status("TASK_STATE_WORKING"));
            let other = json!({"statusUpdate": {"taskId": "task-2", "status": {"state": "TASK_STATE_COMPLETED"}}});
            Reply::events(format!("{first}{}", line(seen, RPC, &other)))
        }),
    ];
    for (expected, chunks, answer) in cases {
        let (_server, world) = streaming(RPC, answer).await;
        let done = world.run("research", send()).await;
        let reason = reason(&done);
        assert!(reason.contains(expected), "{reason}");
        assert_eq!(done.chunks.len(), chunks, "{expected}");
    }
}

#[tokio::test]
async fn errors_over_http_and_json_are_understood_in_a_stream_too() {
    let speaks = Speaks { rest: true, old: false };
    let error =
        json!({"error": {"code": 500, "status": "INTERNAL", "message": "it broke", "details": []}});
    let text = error.to_string();
    let (_server, world) = streaming(speaks, move |seen| {
        let first = line(seen, speaks, &status("TASK_STATE_WORKING"));
        Reply::events(format!("{first}event: error\ndata: {text}\n\n"))
    })
    .await;
    let done = world.run("research", send()).await;
    assert!(reason(&done).contains("500: it broke"), "{}", reason(&done));
    let (_server, world) = streaming(speaks, move |_| Reply::json(&error).status(400)).await;
    let done = world.run("research", send()).await;
    assert!(reason(&done).contains("HTTP 400: 500: it broke"), "{}", reason(&done));
}

#[tokio::test]
async fn a_subscription_tells_of_its_own_task_alone() {
    let speaks = Speaks { rest: true, old: false };
    let (_server, world) = streaming(speaks, move |seen| {
        let other = json!({"task": {"id": "task-2", "status": {"state": "TASK_STATE_COMPLETED"}}});
        crate::agent::stream(seen, speaks, &[other])
    })
    .await;
    begin(&world).await;
    let done = world.run("research", json!({"subscribe_task": {"id": "task-1"}})).await;
    assert!(reason(&done).contains("found another task"));
    assert!(done.chunks.is_empty());
}

#[tokio::test]
async fn an_agent_without_streams_is_not_asked_for_one() {
    let server = crate::support::with_card(|base| {
        let card = crate::agent::card(base, RPC);
        crate::agent::with(card, "/capabilities", json!({}))
    })
    .await;
    let world = World::new(config(&server)).await;
    let failure = world.failure(send()).await;
    assert!(failure.contains("`capabilities.streaming`"), "{failure}");
    assert!(server.calls().is_empty());
}
