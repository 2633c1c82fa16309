//! The tools: what they answer, and what they refuse.

use std::sync::Mutex;

use chio_core::crypto::Keypair;
use chio_kernel::SystemClock;

use super::*;
use crate::manifest::{MAX_TEXT, PAID_PRICE};

/// Takes this many chunks.
struct Taker {
    most: usize,
    taken: Mutex<Vec<Value>>,
}

impl Taker {
    fn new(most: usize) -> Self {
        Self { most, taken: Mutex::default() }
    }
}

impl Chunks for Taker {
    async fn chunk(&self, data: Value) -> Result<(), Gone> {
        let mut taken = self.taken.lock().unwrap();
        if taken.len() == self.most {
            return Err(Gone);
        }
        taken.push(data);
        Ok(())
    }
}

fn server() -> DemoServer {
    let public_key = Keypair::from_seed(&[7; 32]).public_key().clone();
    let clock = Arc::new(SystemClock::default());
    DemoServer::new(DemoOptions { public_key, clock, notes: None }).unwrap()
}

async fn run(server: &DemoServer, tool: &str, arguments: Value) -> Result<Value, String> {
    let tool = Tool::read(tool, arguments).map_err(|error| error.to_string())?;
    let output = server.run(tool, &Taker::new(0)).await.map_err(|error| error.to_string())?;
    Ok(output.value.unwrap())
}

#[tokio::test]
async fn tools_answer_as_they_say() {
    let server = server();
    let cases = [
        ("echo", json!({"text": "hi"}), json!({"text": "hi"})),
        ("note_put", json!({"name": "a", "text": "1"}), json!({"puts": 1})),
        ("note_put", json!({"name": "a", "text": "2"}), json!({"puts": 2})),
        ("note_get", json!({"name": "a"}), json!({"text": "2"})),
        ("note_count", json!({}), json!({"notes": 1, "puts": 2})),
        ("note_count", json!(null), json!({"notes": 1, "puts": 2})),
        ("sleep", json!({"ms": 1}), json!({"slept_ms": 1})),
        ("paid", json!({}), json!({"text": ""})),
        ("paid", json!({"text": "x"}), json!({"text": "x"})),
        ("needs_approval", json!({"text": "x"}), json!({"text": "x"})),
    ];
    for (tool, arguments, expected) in cases {
        assert_eq!(run(&server, tool, arguments).await, Ok(expected), "{tool}");
    }
    let now = run(&server, "now", json!({})).await.unwrap();
    assert!(now["unix_seconds"].as_u64().unwrap() > 1_700_000_000);
}

#[tokio::test]
async fn bad_arguments_are_refused_without_being_repeated() {
    let server = server();
    let secret = "secret";
    let long = "x".repeat(MAX_TEXT + 1);
    let cases = [
        ("echo", json!([secret]), "as an object"),
        ("echo", json!({}), "expected `text`, found none"),
        ("echo", json!({"text": 1}), "expected `text` as text"),
        ("echo", json!({"text": long}), "expected `text` as text"),
        ("echo", json!({"text": "a", secret: 1}), "no other arguments"),
        ("now", json!({secret: secret}), "no other arguments"),
        ("note_put", json!({"name": "../secret", "text": ""}), "expected `name` as"),
        ("note_put", json!({"name": "", "text": ""}), "expected `name` as"),
        ("note_put", json!({"name": "x".repeat(65), "text": ""}), "expected `name` as"),
        ("note_get", json!({"name": secret}), "no note of this name"),
        ("count_to", json!({"n": MAX_CHUNKS + 1}), "expected `n` as a whole number from 0"),
        ("count_to", json!({"n": -1}), "expected `n`"),
        ("count_to", json!({"n": 1.5}), "expected `n`"),
        ("sleep", json!({"ms": secret}), "expected `ms`"),
        ("paid", json!({"text": 1}), "expected `text`"),
        ("needs_approval", json!({}), "expected `text`, found none"),
        (secret, json!({}), "no tool of this name"),
    ];
    for (tool, arguments, expected) in cases {
        let error = run(&server, tool, arguments).await.unwrap_err();
        assert!(error.contains(expected), "{tool}: {error}");
        assert!(!error.contains(secret), "{tool}: {error}");
    }
}

#[tokio::test]
async fn counting_streams_each_number_until_nobody_listens() {
    let server = server();
    for (n, most, taken) in [(3, 10, 3), (0, 10, 0), (10, 4, 4)] {
        let line = Taker::new(most);
        let output = server.run(Tool::CountTo { n }, &line).await.unwrap();
        assert_eq!(output, ToolOutput::stream_end());
        let expected: Vec<_> = (1..=taken).map(|number| json!({"n": number})).collect();
        assert_eq!(*line.taken.lock().unwrap(), expected);
    }
}

#[tokio::test]
async fn paid_says_what_it_costs() {
    let server = server();
    let output = server.run(Tool::Paid { text: None }, &Taker::new(0)).await.unwrap();
    assert_eq!(output.cost.unwrap().units, PAID_PRICE);
}

#[test]
fn every_tool_of_the_manifest_is_there() {
    for tool in &server().manifest().tools {
        let outcome = Tool::read(&tool.name, json!(["not an object"]));
        let error = outcome.unwrap_err().to_string();
        assert!(!error.contains("no tool"), "{error}");
        let message = Tool::read(&tool.name, json!({})).map_err(|error| error.to_string());
        assert!(!message.is_err_and(|message| message.contains("no tool")), "{}", tool.name);
    }
}
