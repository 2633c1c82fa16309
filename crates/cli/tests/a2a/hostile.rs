//! An agent that never stops talking.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};

use chio_testkit::process::until;
use serde_json::{Value, json};

use crate::support::World;

/// What the agents have been able to say, in bytes.
static SAID: AtomicU64 = AtomicU64::new(0);

/// How many streams the pinging agent has open.
static PINGED: AtomicU64 = AtomicU64::new(0);

/// An agent that begins its answers so, and then says the same thing for ever. It counts what went
/// out, and stops when no client listens.
fn endless(begin: &'static str, again: &'static str) -> String {
    agent(move |stream, card| answer(stream, card, begin, again))
}

/// An agent that answers each connection so; with its card, where that is asked for.
fn agent(answer: impl Fn(TcpStream, &str) + Clone + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let card = json!({
        "name": "Endless", "description": "An agent", "version": "1.0.0",
        "supportedInterfaces": [
            {"url": base, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
        ],
        "capabilities": {"streaming": true}, "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "talk", "name": "Talk", "description": "Talks", "tags": ["x"]}],
    });
    let card = card.to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (card, answer) = (card.clone(), answer.clone());
            std::thread::spawn(move || answer(stream.unwrap(), &card));
        }
    });
    base
}

/// A whole request.
fn request(stream: &mut TcpStream) -> String {
    let (mut text, mut block) = (String::new(), [0; 4096]);
    loop {
        let read = stream.read(&mut block).unwrap_or_default();
        text.push_str(&String::from_utf8_lossy(&block[..read]));
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            assert_ne!(read, 0, "a head that does not end");
            continue;
        };
        let length = head
            .to_ascii_lowercase()
            .lines()
            .find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
        if read == 0 || body.len() >= length.unwrap_or_default() {
            return text;
        }
    }
}

fn answer(mut stream: TcpStream, card: &str, begin: &str, again: &str) {
    let request = request(&mut stream);
    if request.starts_with("GET") {
        return send_whole(&mut stream, card);
    }
    let body = request.split_once("\r\n\r\n").map(|(_, body)| body);
    let asked: Value = body.and_then(|body| serde_json::from_str(body).ok()).unwrap_or_default();
    let again = again.replace("ID", &asked["id"].to_string());
    let block = again.repeat((64 << 10) / again.len());
    let _ = stream.write_all(begin.as_bytes());
    while stream.write_all(block.as_bytes()).is_ok() {
        SAID.fetch_add(block.len() as u64, Ordering::Relaxed);
    }
}

/// Sends a whole answer.
fn send_whole(stream: &mut TcpStream, body: &str) {
    let length = body.len();
    let _ = write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
}

/// Streams nothing but signs of life, and answers anything else at once.
fn ping(mut stream: TcpStream, card: &str) {
    let request = request(&mut stream);
    let Some((_, body)) = request.split_once("\r\n\r\n").filter(|_| request.starts_with("POST"))
    else {
        return send_whole(&mut stream, card);
    };
    let asked: Value = serde_json::from_str(body).unwrap_or_default();
    if asked["method"] != "SendStreamingMessage" {
        let task =
            json!({"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}});
        let done = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"task": task}});
        return send_whole(&mut stream, &done.to_string());
    }
    let _ = stream.write_all(STREAM.as_bytes());
    PINGED.fetch_add(1, Ordering::Relaxed);
    while stream.write_all(b": ping\n\n").is_ok() {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

const STREAM: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
const WHOLE: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{\"a\":\"";
const EVENT: &str = "data: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"artifactUpdate\":{\"taskId\":\
    \"t\",\"contextId\":\"c\",\"artifact\":{\"artifactId\":\"a\",\"parts\":[{\"text\":\"x\"}]}}}}\n\n";

#[test]
fn an_agent_that_never_stops_costs_bounded_memory_and_leaves_one_receipt_each_time() {
    let world = World::new();
    let cases = [
        ("an answer", WHOLE, "x", false),
        ("a line", STREAM, "x", true),
        ("an event", STREAM, "data: x\n", true),
        ("events", STREAM, EVENT, true),
        ("nothing but comments", STREAM, ": x\n", true),
    ];
    for (number, (what, begin, again, stream)) in cases.into_iter().enumerate() {
        let (target, data) = (endless(begin, again), format!("s{number}"));
        let line = format!(
            "a2a serve --target {target} --http 127.0.0.1:0 --data {data} --anonymous default \
             --server-id friend"
        );
        let here = world.start(&line.split_whitespace().collect::<Vec<_>>(), &data);
        let before = here.most_memory();
        let arguments = json!({"message": "go", "stream": stream}).to_string();
        let call = ["call", "--data", &data, "friend", "talk", &arguments];
        for _ in 0..4 {
            let failed = world.run(&call).ends(4);
            // What came before it was too much is told as well.
            assert!(failed.stderr.len() < 2 << 20, "{what}: {} bytes", failed.stderr.len());
            let told = failed.stderr.lines().rfind(|line| line.contains("expected"));
            let told = told.unwrap_or_default();
            assert!(told.len() < 1000 && told.contains("bytes"), "{what}: {told}");
        }
        // What was read of the agent is gone, and no client listens to it any more.
        until("the agent to be hung up on", || {
            let said = SAID.load(Ordering::Relaxed);
            std::thread::sleep(std::time::Duration::from_millis(100));
            (SAID.load(Ordering::Relaxed) == said).then_some(())
        });
        let more = here.most_memory().saturating_sub(before);
        assert!(more < 64, "{what}: {more} MiB more");
        assert_eq!(world.receipts(&data).len(), 4, "{what}");
    }
}

/// An agent whose streams end with a task that failed.
const FAILS: &str = "data: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"statusUpdate\":{\"taskId\":\
    \"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_FAILED\"}}}}\n\n";

#[test]
fn a_stream_that_ends_with_a_failed_task_has_failed() {
    let world = World::new();
    let target = endless(STREAM, FAILS);
    let line = format!(
        "a2a serve --target {target} --http 127.0.0.1:0 --data s --anonymous default \
         --server-id friend"
    );
    let here = world.start(&line.split_whitespace().collect::<Vec<_>>(), "s");
    let arguments = json!({"message": "go", "stream": true});
    let call = ["call", "--data", "s", "friend", "talk", &arguments.to_string()];
    world.run(&call).ends(3).complains("TASK_STATE_FAILED");
    let task = here.send("talk", &json!([{"data": arguments}]));
    assert_eq!(task["status"]["state"], "TASK_STATE_FAILED", "{task}");
}

#[test]
fn calls_whose_callers_have_left_make_room_for_others() {
    let world = World::new();
    let line = format!(
        "a2a serve --target {} --http 127.0.0.1:0 --data s --anonymous default --server-id friend",
        agent(ping)
    );
    let here = world.start(&line.split_whitespace().collect::<Vec<_>>(), "s");
    // As many as one caller may have at once, and more.
    for number in 1..=70 {
        let parts = json!([{"data": {"message": "go", "stream": true}}]);
        let left = here.leave("talk", &parts);
        until("a stream", || (PINGED.load(Ordering::Relaxed) >= number).then_some(()));
        drop(left);
    }
    let task = until("a place", || {
        let task = here.send("talk", &json!([{"data": {"message": "go"}}]));
        (task["status"]["state"] == "TASK_STATE_COMPLETED").then_some(task)
    });
    assert!(task["id"].is_string(), "{task}");
    let receipts = world.receipts("s");
    let of = |end: &str| receipts.iter().filter(|it| it["decision"]["verdict"] == end).count();
    assert_eq!(of("allow"), 1);
    assert!(of("cancelled") >= 7, "{} calls made room", of("cancelled"));
}
