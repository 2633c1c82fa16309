//! Agents that answer what they should not: one clear error each, and within bounds.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use chio_a2a_adapter::AgentLimits;
use chio_core::receipt::Execution;
use chio_kernel::{KernelConfig, Limits, Outcome};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::agent::{RPC, Speaks, card, line, model, task};
use crate::server::{Reply, Seen, Server};
use crate::support::{World, begin, config};

const REST: Speaks = Speaks { rest: true, old: false };

/// An agent that answers everything in this way, after a card of this kind.
async fn hostile(
    speaks: Speaks,
    answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
) -> Server {
    Server::start(move |seen| {
        if seen.is_card() { Reply::json(&card(&seen.base, speaks)) } else { answer(seen) }
    })
    .await
}

async fn failure(server: &Server, arguments: Value) -> String {
    World::new(config(server)).await.failure(arguments).await
}

fn envelope(seen: &Seen, members: &Value) -> Reply {
    let mut envelope = json!({"jsonrpc": "2.0", "id": seen.json()["id"]});
    for (name, value) in members.as_object().unwrap() {
        envelope[name] = value.clone();
    }
    Reply::json(&envelope)
}

// covers: A2A-026, A2A-029
#[tokio::test]
async fn answers_over_json_rpc_that_are_none() {
    type Answer = fn(&Seen) -> Reply;
    let cases: [(&str, Answer); 14] = [
        ("the answer cannot be read", |_| Reply::text(200, "<html>")),
        ("the answer cannot be read", |_| Reply::text(200, "")),
        ("expected a JSON-RPC answer", |_| Reply::text(200, "[]")),
        ("expected `jsonrpc` 2.0", |seen| envelope(seen, &json!({"jsonrpc": "1.0", "result": {}}))),
        ("found another's id", |seen| envelope(seen, &json!({"id": 999, "result": {}}))),
        ("found another's id", |seen| {
            envelope(seen, &json!({"id": seen.json()["id"].to_string(), "result": {}}))
        }),
        ("found another's id", |seen| envelope(seen, &json!({"id": null, "result": {}}))),
        ("found another's id", |seen| {
            envelope(seen, &json!({"id": 999, "error": {"code": 1, "message": "x"}}))
        }),
        ("expected a result, found none", |seen| envelope(seen, &json!({}))),
        ("expected exactly one of `task`", |seen| envelope(seen, &json!({"result": {}}))),
        ("expected exactly one of `task`", |seen| {
            let both =
                json!({"task": task("t", "TASK_STATE_WORKING"), "message": {"messageId": "m"}});
            envelope(seen, &json!({"result": both}))
        }),
        ("expected a state of A2A as `task.status.state`", |seen| {
            envelope(seen, &json!({"result": {"task": {"id": "t"}}}))
        }),
        ("expected `task` or `message` in the answer", |seen| {
            let status = json!({"state": "TASK_STATE_WORKING"});
            let update = json!({"statusUpdate": {"taskId": "t", "status": status}});
            envelope(seen, &json!({"result": update}))
        }),
        ("-32700: cannot read", |seen| {
            envelope(
                seen,
                &json!({"id": null, "error": {"code": -32700, "message": "cannot\nread"}}),
            )
        }),
    ];
    for (expected, answer) in cases {
        let server = hostile(RPC, answer).await;
        let failure = failure(&server, json!({"message": "x"})).await;
        assert!(failure.contains(expected), "expected {expected}, found {failure}");
        assert_eq!(server.calls().len(), 1);
    }
}

#[tokio::test]
async fn answers_over_http_and_json_that_are_none() {
    type Answer = fn(&Seen) -> Reply;
    let cases: [(&str, Answer); 7] = [
        ("the agent answered HTTP 409: -32002: not cancelable", |_| {
            Reply::json(&json!({"code": -32002, "message": "not cancelable"})).status(409)
        }),
        ("the answer cannot be read", |_| Reply::text(200, "{")),
        ("expected a result, found none", |_| Reply::text(200, "")),
        ("expected exactly one of `task`", |_| Reply::json(&task("t", "x"))),
        ("remote request failed: the agent: HTTP 500: oh no", |_| Reply::text(500, "oh\u{7}no")),
        ("the agent answered HTTP 400: VERSION_NOT_SUPPORTED: not this one", |_| {
            let details = json!([{"reason": "VERSION_NOT_SUPPORTED"}]);
            let error = json!({"code": 400, "message": "not this one", "details": details});
            Reply::json(&json!({"error": error})).status(400)
        }),
        ("HTTP 503", |_| Reply::text(503, vec![0xff; 5000])),
    ];
    for (expected, answer) in cases {
        let server = hostile(REST, answer).await;
        let failure = failure(&server, json!({"message": "x"})).await;
        assert!(failure.contains(expected), "expected {expected}, found {failure}");
        assert!(failure.chars().count() < 300, "{failure}");
    }
}

/// What the receipt of a call says of its end.
async fn ending(world: &World, arguments: Value) -> (String, Option<Execution>) {
    let receipt = world.run("research", arguments).await.receipt;
    let decision = serde_json::to_value(&receipt.decision).unwrap();
    (decision["verdict"].as_str().unwrap().to_owned(), receipt.execution())
}

#[tokio::test]
async fn a_receipt_says_whether_the_agent_had_the_call() {
    type Answer = fn(&Seen) -> Reply;
    let cases: [(&str, Execution, Answer); 4] = [
        ("deny", Execution::Failed, |_| Reply::text(500, "no")),
        ("deny", Execution::Failed, |seen| {
            envelope(seen, &json!({"error": {"code": -32603, "message": "no"}}))
        }),
        ("incomplete", Execution::Begun, |_| Reply::text(200, "<html>")),
        ("allow", Execution::Failed, |seen| {
            let failed = json!({"task": task("t", "TASK_STATE_FAILED")});
            envelope(seen, &json!({"result": failed}))
        }),
    ];
    for (verdict, execution, answer) in cases {
        let server = hostile(RPC, answer).await;
        let world = World::new(config(&server)).await;
        let found = ending(&world, json!({"message": "x"})).await;
        assert_eq!(found, (verdict.to_owned(), Some(execution)));
    }
    // What is checked here does not reach the agent, and neither does what finds none there.
    let not_begun = ("deny".to_owned(), Some(Execution::NotBegun));
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = Server::start(move |_| Reply::json(&card(&format!("http://{free}"), RPC))).await;
    let world = World::new(config(&server)).await;
    for arguments in [json!({}), json!({"message": "x"})] {
        assert_eq!(ending(&world, arguments).await, not_begun);
    }
    // What one place has answered has begun, also when the next one cannot be reached.
    let answered = AtomicBool::new(false);
    let server =
        Server::start(move |seen| match (seen.is_card(), answered.load(Ordering::SeqCst)) {
            (true, false) => Reply::json(&card(&seen.base, RPC)),
            (true, true) => Reply::json(&card(&format!("http://{free}"), RPC)),
            (false, _) => {
                answered.store(true, Ordering::SeqCst);
                Reply::text(404, "gone")
            }
        })
        .await;
    let world = World::new(config(&server)).await;
    let found = ending(&world, json!({"message": "x"})).await;
    assert_eq!(found, ("deny".to_owned(), Some(Execution::Failed)));
}

#[tokio::test]
async fn a_task_that_is_not_there_is_no_reason_to_look_for_the_agent_again() {
    let server = Server::start(|seen| {
        if seen.method == "GET" && !seen.is_card() {
            let details = json!([{"reason": "TASK_NOT_FOUND"}]);
            let error = json!({"code": 404, "message": "no such task", "details": details});
            return Reply::json(&json!({"error": error})).status(404);
        }
        model(seen, REST)
    })
    .await;
    let world = World::new(config(&server)).await;
    begin(&world).await;
    let failure = world.failure(json!({"get_task": {"id": "task-1"}})).await;
    assert!(failure.contains("TASK_NOT_FOUND: no such task"), "{failure}");
    assert_eq!(server.seen().iter().filter(|seen| seen.is_card()).count(), 1);
}

#[tokio::test]
async fn an_answer_about_another_task_is_none() {
    for speaks in [RPC, REST] {
        let server = Server::start(move |seen| {
            let asks = String::from_utf8_lossy(&seen.body).contains("GetTask");
            if seen.is_card() || !(asks || seen.method == "GET") {
                return model(seen, speaks);
            }
            crate::agent::whole(seen, speaks, &task("task-2", "TASK_STATE_COMPLETED"))
        })
        .await;
        let world = World::new(config(&server)).await;
        begin(&world).await;
        let failure = world.failure(json!({"get_task": {"id": "task-1"}})).await;
        assert!(failure.contains("found another task"), "{failure}");
        let failure = world.failure(json!({"get_task": {"id": "task-2"}})).await;
        assert!(failure.contains("never recorded"), "{failure}");
    }
}

#[tokio::test]
async fn a_redirect_to_another_origin_takes_nothing_there() {
    let other = Server::start(|seen| model(seen, RPC)).await;
    for status in [301, 302, 303, 307, 308] {
        for (speaks, arguments) in
            [(RPC, json!({"message": "x"})), (REST, json!({"message": "x", "stream": true}))]
        {
            let place = other.url("/a2a");
            let server =
                hostile(speaks, move |_| Reply::text(status, "").with("location", place.clone()))
                    .await;
            let failure = failure(&server, arguments).await;
            assert!(failure.contains("found one to another origin"), "{status}: {failure}");
        }
    }
    assert!(other.seen().is_empty());
}

#[tokio::test]
async fn a_redirect_within_the_origin_is_followed_if_the_method_stays() {
    for (status, fine) in [(307, true), (308, true), (301, false), (302, false), (303, false)] {
        let server = hostile(RPC, move |seen| {
            if seen.path == "/a2a" {
                return Reply::text(status, "").with("location", "/a2a/");
            }
            model(seen, RPC)
        })
        .await;
        let world = World::new(config(&server)).await;
        if fine {
            begin(&world).await;
            assert_eq!(server.last().line(), "POST /a2a/");
        } else {
            let failure = world.failure(json!({"message": "x"})).await;
            assert!(failure.contains("changes the method"), "{failure}");
        }
    }
    let server = hostile(RPC, |_| Reply::text(307, "").with("location", "/round")).await;
    let failure = failure(&server, json!({"message": "x"})).await;
    assert!(failure.contains("too many of them"), "{failure}");
    assert_eq!(server.calls().len(), 4);
}

#[tokio::test]
async fn an_answer_that_does_not_end_is_bounded() {
    let huge = Bytes::from(vec![b' '; (4 << 20) + 1]);
    for speaks in [RPC, REST] {
        let body = huge.clone();
        let server = hostile(speaks, move |_| Reply::text(200, body.clone())).await;
        let failure = failure(&server, json!({"message": "x"})).await;
        assert!(failure.contains("expected a body of at most 4194304 bytes"), "{failure}");
    }
}

/// An agent whose stream is what this sends.
async fn streaming<F>(feed: F) -> Server
where
    F: Fn(Seen, mpsc::Sender<Bytes>) + Send + Sync + 'static,
{
    hostile(RPC, move |seen| {
        let (sender, receiver) = mpsc::channel(4);
        feed(seen.clone(), sender);
        Reply::pieces(receiver)
    })
    .await
}

fn working(seen: &Seen, padding: usize) -> Bytes {
    let event = json!({"statusUpdate": {
        "taskId": "task-1", "status": {"state": "TASK_STATE_WORKING"}, "x": "x".repeat(padding),
    }});
    Bytes::from(line(seen, RPC, &event))
}

#[tokio::test]
async fn a_stream_of_nothing_but_comments_is_bounded() {
    let server = streaming(|_, sender| {
        let comment = Bytes::from(format!(": {}\n\n", "p".repeat(8 << 10)));
        tokio::spawn(async move { while sender.send(comment.clone()).await.is_ok() {} });
    })
    .await;
    let world = World::new(config(&server)).await;
    let done = world.run("research", json!({"message": "x", "stream": true})).await;
    let Outcome::Incomplete { reason, chunks: 0 } = &done.outcome else {
        panic!("{:?}", done.outcome)
    };
    assert!(reason.contains("expected a body of at most 2097152 bytes"), "{reason}");
}

// covers: A2A-052
#[tokio::test]
async fn a_stream_that_does_not_end_is_bounded() {
    // Bytes beside each event; how many events get through; what is said.
    for (padding, chunks, expected) in [
        (0, 1024, "expected at most 1024 events and 1048576 bytes"),
        (15 << 10, 67, "expected at most 1024 events and 1048576 bytes"),
        (256 << 10, 0, "expected lines of at most 262144 bytes"),
    ] {
        let server = streaming(move |seen, sender| {
            tokio::spawn(
                async move { while sender.send(working(&seen, padding)).await.is_ok() {} },
            );
        })
        .await;
        let world = World::new(config(&server)).await;
        let done = world.run("research", json!({"message": "x", "stream": true})).await;
        let reason = match &done.outcome {
            Outcome::Denied(denial) => &denial.reason,
            Outcome::Incomplete { reason, .. } => reason,
            other => panic!("{other:?}"),
        };
        assert!(reason.contains("incomplete stream") && reason.contains(expected), "{reason}");
        assert_eq!(done.chunks.len(), chunks, "{padding}");
    }
}

#[tokio::test]
async fn an_event_that_does_not_end_is_bounded() {
    let server = streaming(|_, sender| {
        let piece = Bytes::from(format!("data: {}\n", "x".repeat(10 << 10)));
        tokio::spawn(async move { while sender.send(piece.clone()).await.is_ok() {} });
    })
    .await;
    let failure = failure(&server, json!({"message": "x", "stream": true})).await;
    assert!(failure.contains("expected events of at most 262144 bytes"), "{failure}");
}

#[tokio::test]
async fn bounds_can_be_set_otherwise() {
    let server = streaming(|seen, sender| {
        tokio::spawn(async move { while sender.send(working(&seen, 20 << 10)).await.is_ok() {} });
    })
    .await;
    let limits = AgentLimits { line: 32 << 10, chunks: 3, ..AgentLimits::default() };
    let world = World::new(config(&server).with_limits(limits)).await;
    let done = world.run("research", json!({"message": "x", "stream": true})).await;
    assert_eq!(done.chunks.len(), 3);
}

#[tokio::test]
async fn silence_is_given_up() {
    let server = streaming(|_, sender| {
        // Held open, and nothing is said.
        tokio::spawn(async move { sender.closed().await });
    })
    .await;
    let world = World::new(config(&server).with_timeout(Duration::from_millis(1500))).await;
    let failure = world.failure(json!({"message": "x", "stream": true})).await;
    assert!(failure.contains("expected the next piece of the stream in time"), "{failure}");
    let failure = world.failure(json!({"message": "x"})).await;
    assert!(failure.contains("expected the whole body in time"), "{failure}");
}

#[tokio::test]
async fn a_slow_drip_ends_with_the_calls_own_time() {
    let server = streaming(|_, sender| {
        tokio::spawn(async move {
            while sender.send(Bytes::from_static(b": ping\n\n")).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
    })
    .await;
    let limits = Limits { deadline: Duration::from_millis(400), ..Limits::default() };
    let kernel = KernelConfig { limits, ..KernelConfig::default() };
    let world = World::within(config(&server), kernel).await.unwrap();
    let done = world.run("research", json!({"message": "x", "stream": true})).await;
    assert!(matches!(done.outcome, Outcome::Incomplete { .. }), "{:?}", done.outcome);
}

#[tokio::test]
async fn a_body_that_drips_is_given_up_in_time() {
    let server = hostile(RPC, |_| {
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            while sender.send(Bytes::from_static(b" ")).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        Reply::pieces(receiver)
    })
    .await;
    let world = World::new(config(&server).with_timeout(Duration::from_millis(1500))).await;
    let failure = world.failure(json!({"message": "x"})).await;
    assert!(failure.contains("expected the whole body in time"), "{failure}");
}

#[tokio::test]
async fn a_card_that_does_not_end_is_bounded() {
    let server = Server::start(|_| Reply::text(200, vec![b' '; (1 << 20) + 1])).await;
    let error = World::try_new(config(&server)).await.map(drop).unwrap_err().to_string();
    assert!(error.contains("expected a body of at most 1048576 bytes"), "{error}");
}

#[tokio::test]
async fn an_agent_that_nobody_answers_for_is_one_clear_error() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let key = chio_testkit::key(5).public_key().to_hex();
    let config = chio_a2a_adapter::A2aAdapterConfig::new(format!("http://127.0.0.1:{port}"), key);
    let error = World::try_new(config).await.map(drop).unwrap_err().to_string();
    assert!(error.contains("the agent card: cannot connect to `127.0.0.1`"), "{error}");
}
