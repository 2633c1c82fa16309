//! Many calls at once, and callers that get in one another's way.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use chio_core::capability::ToolGrant;
use chio_core::frame;
use chio_core::message::AgentMessage;
use chio_native_edge::{ClientError, NativeClient};
use chio_testkit::process::request;
use chio_testkit::receipts::written;
use chio_testkit::token::grant;
use serde_json::json;

use crate::world::World;

#[test]
fn sixty_four_calls_of_one_connection_run_side_by_side_and_are_answered_by_id() {
    let world = World::new();
    let token = world.token("many-1", vec![grant("sleep")]);
    let mut wire = world.connect();
    let start = Instant::now();
    for number in 0..64 {
        // The last ones asked are the first ones answered.
        let ms = 400 - number * 5;
        wire.send_call(&number.to_string(), &token, "sleep", json!({"ms": ms}));
    }
    let mut ids = BTreeSet::new();
    let mut first = None;
    for _ in 0..64 {
        let response = wire.response();
        let number: u64 = response.id.parse().unwrap();
        first.get_or_insert(number);
        let expected = json!({"status": "ok", "value": {"slept_ms": 400 - number * 5}});
        assert_eq!(written(&response.result), expected);
        ids.insert(number);
    }
    assert!(start.elapsed() < Duration::from_secs(15), "one after the other takes longer");
    assert_ne!(first, Some(0));
    assert_eq!(ids.len(), 64);
    let receipts = world.receipts("many-1");
    let unique: BTreeSet<_> = receipts.iter().map(|receipt| &receipt.id).collect();
    assert_eq!((receipts.len(), unique.len()), (64, 64));
}

#[test]
fn beyond_the_limit_nothing_is_read_until_a_call_ends() {
    let world = World::new();
    let token = world.token("many-2", vec![grant("sleep"), grant("echo")]);
    let mut wire = world.connect();
    for number in 0..64 {
        wire.send_call(&format!("sleep-{number}"), &token, "sleep", json!({"ms": 500}));
    }
    wire.send_call("last", &token, "echo", json!({"text": "hi"}));
    wire.send(&AgentMessage::Heartbeat);
    // Others are not held up.
    assert!(world.connect().is_alive());
    let mut order = Vec::new();
    for _ in 0..65 {
        loop {
            match wire.message().unwrap() {
                chio_core::message::KernelMessage::ToolCallResponse(response) => {
                    order.push(response.id);
                    break;
                }
                other => assert_eq!(other, chio_core::message::KernelMessage::Heartbeat),
            }
        }
    }
    assert_ne!(order[0], "last", "it had to wait for a place");
    assert_eq!(order.len(), 65);
    assert_eq!(world.receipts("many-2").len(), 65);
}

#[test]
fn a_second_call_with_the_id_of_one_that_runs_is_denied_and_the_id_is_free_afterwards() {
    let world = World::new();
    let token = world.token("double-1", vec![grant("sleep"), grant("echo")]);
    let mut wire = world.connect();
    wire.send_call("same", &token, "sleep", json!({"ms": 400}));
    let denied = wire.call("same", &token, "echo", json!({"text": "hi"}));
    assert_eq!(denied.id, "same");
    let detail = &written(&denied.result)["error"]["detail"];
    assert_eq!(written(&denied.result)["error"]["code"], "policy_denied");
    assert_eq!(detail["guard"], "native.request_id");
    let slept = wire.response();
    assert_eq!(written(&slept.result)["status"], "ok");
    let again = wire.call("same", &token, "echo", json!({"text": "hi"}));
    assert_eq!(written(&again.result)["status"], "ok");
    // Another connection has its own ids.
    let mut other = world.connect();
    wire.send_call("same", &token, "sleep", json!({"ms": 100}));
    let theirs = other.call("same", &token, "echo", json!({"text": "hi"}));
    assert_eq!(written(&theirs.result)["status"], "ok");
    wire.response();
    assert_eq!(world.receipts("double-1").len(), 5);
}

#[test]
fn a_slow_reader_gets_everything_and_holds_up_nobody() {
    let world = World::new();
    let token = world.token("slow-reader-1", vec![grant("echo")]);
    let endpoint = world.endpoint.to_string();
    let mut slow = UnixStream::connect(endpoint.strip_prefix("unix:").unwrap()).unwrap();
    slow.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    // More than the socket and the server hold together, so that calls have to wait.
    let text = "x".repeat(16_000);
    let count = 200;
    let mut writer = slow.try_clone().unwrap();
    let sent = token.clone();
    let writing = std::thread::spawn(move || {
        for number in 0..count {
            let request = request(&number.to_string(), &sent, "echo", json!({"text": text}));
            let message = AgentMessage::ToolCallRequest(Box::new(request));
            writer.write_all(&frame::encode(&message).unwrap()).unwrap();
        }
    });
    let quick = world.token("slow-reader-2", vec![grant("echo")]);
    for _ in 0..5 {
        let response = world.connect().call("1", &quick, "echo", json!({"text": "hi"}));
        assert_eq!(written(&response.result)["status"], "ok");
    }
    let mut decoder = frame::Decoder::default();
    let mut answered = 0;
    let mut chunk = vec![0; 64 * 1024];
    while answered < count {
        let read = slow.read(&mut chunk).unwrap();
        assert_ne!(read, 0);
        decoder.feed(&chunk[..read]);
        while decoder.next_payload().unwrap().is_some() {
            answered += 1;
        }
    }
    writing.join().unwrap();
    assert_eq!(world.receipts("slow-reader-1").len(), count);
}

#[test]
fn a_connection_that_misbehaves_costs_its_neighbour_nothing() {
    let world = World::new();
    let token = world.token("neighbour-1", vec![grant("sleep")]);
    let mut good = world.connect();
    good.send_call("1", &token, "sleep", json!({"ms": 500}));
    for bytes in [&b"\xff\xff\xff\xff"[..], b"\x00\x00\x00\x02{}", b"\x00\x00"] {
        let mut bad = world.connect();
        bad.send_bytes(bytes).unwrap();
    }
    assert_eq!(written(&good.response().result)["status"], "ok");
    assert!(good.is_alive());
}

#[test]
fn the_client_shares_one_connection_among_many_callers() {
    let world = World::new();
    let grants = vec![ToolGrant { max_invocations: Some(50), ..grant("echo") }];
    let token = world.token("client-1", [grants, vec![grant("count_to")]].concat());
    world.embedded.runtime.block_on(async {
        let client = NativeClient::connect(&world.endpoint).await.unwrap();
        client.heartbeat().await.unwrap();
        let mut calls = tokio::task::JoinSet::new();
        for number in 0..64 {
            let (client, token) = (client.clone(), token.clone());
            calls.spawn(async move {
                let text = number.to_string();
                let request = request(&text, &token, "echo", json!({"text": text}));
                let response = client.call(request, |_, _| ()).await.unwrap();
                assert_eq!(response.id, text);
                written(&response.result)["status"] == "ok"
            });
        }
        let ended = calls.join_all().await;
        assert_eq!(ended.into_iter().filter(|ok| *ok).count(), 50, "the budget is exact");

        let mut numbers = Vec::new();
        let count = request("c", &token, "count_to", json!({"n": 100}));
        client.call(count, |index, data| numbers.push((index, data))).await.unwrap();
        assert_eq!(numbers.len(), 100);
        assert!(numbers.iter().enumerate().all(|(at, (index, _))| *index == at as u64));
        assert_eq!(client.list_capabilities().await.unwrap(), []);

        let calls = [(); 2].map(|()| request("twice", &token, "count_to", json!({"n": 1000})));
        let [first, second] = calls;
        let (first, second) =
            tokio::join!(client.call(first, |_, _| ()), client.call(second, |_, _| ()));
        assert!(first.is_ok());
        assert_eq!(second, Err(ClientError::DuplicateId("twice".to_owned())));
    });
    let receipts = world.receipts("client-1");
    assert_eq!(receipts.len(), 66);
}
