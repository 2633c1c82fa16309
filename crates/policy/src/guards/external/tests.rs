//! A real server on a port of its own, with every kind of answer.

use std::time::Duration;

use chio_kernel::{GuardMemo, Verdict, Work};
use chio_yaml::{Problems, parse};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::*;
use crate::example::ExampleCall;

/// A server that gives every client one answer and forwards what it was asked. No answer means
/// that it keeps every client waiting.
async fn server(answer: Option<String>) -> (String, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/judge", listener.local_addr().unwrap());
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (answer, sender) = (answer.clone(), sender.clone());
            tokio::spawn(async move {
                let mut request = Vec::new();
                while !is_whole(&request) {
                    if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
                        return;
                    }
                }
                let _ = sender.send(String::from_utf8(request).unwrap());
                match answer {
                    Some(answer) => stream.write_all(answer.as_bytes()).await.unwrap_or_default(),
                    None => std::future::pending().await,
                }
            });
        }
    });
    (url, receiver)
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= length.map_or(0, |length| length.trim().parse().unwrap())
}

fn answered(status: &str, body: &str) -> Option<String> {
    let length = body.len();
    Some(format!(
        "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    ))
}

fn service(url: &str, more: &str) -> Result<Service, String> {
    let text = format!("{{name: judge, url: \"{url}\", {more}}}");
    let (root, problems) = (parse(&text, "test").unwrap(), Problems::default());
    let section = Section::new(&root, "chio.external.services[0]", SERVICE_KEYS, &problems);
    let service = service_of(&section);
    let wrong: Vec<String> = problems.into_sorted().iter().map(ToString::to_string).collect();
    service.filter(|_| wrong.is_empty()).ok_or_else(|| wrong.join("\n"))
}

async fn verdict(services: Vec<Service>) -> Verdict {
    let (call, memo) =
        (ExampleCall::new("deploy", json!({"to": "secret place"})), GuardMemo::default());
    External { services }.check(&call.input(&memo, &Work::default())).await.unwrap().verdict
}

#[tokio::test]
async fn an_answer_is_a_verdict_and_anything_else_denies() {
    let large = format!("{{\"verdict\": \"allow\", \"reason\": \"{}\"}}", "x".repeat(70_000));
    let allow = r#"{"verdict": "allow"}"#;
    for (answer, expected) in [
        (answered("200 OK", allow), "Allow"),
        (answered("200 OK", r#"{"verdict": "allow", "score": 1}"#), "Allow"),
        (
            answered("200 OK", r#"{"verdict": "deny", "reason": "too\nlate"}"#),
            "Deny(\"service `judge` denies: too late",
        ),
        (answered("200 OK", r#"{"verdict": "ask"}"#), "AwaitApproval(\"service `judge` asks"),
        (
            answered("200 OK", r#"{"verdict": "ALLOW"}"#),
            "Deny(\"service `judge` gives no answer: expected `{",
        ),
        (
            answered("200 OK", r#"{"verdict": "maybe"}"#),
            "Deny(\"service `judge` gives no answer: expected `{",
        ),
        (answered("200 OK", r#"{"verdict": "deny", "verdict": "allow"}"#), "Deny"),
        (answered("200 OK", r#"{"reason": "allow"}"#), "Deny"),
        (answered("200 OK", "allow"), "Deny"),
        (answered("200 OK", ""), "Deny"),
        (
            answered("200 OK", &large),
            "Deny(\"service `judge` gives no answer: expected a body of at most 65536",
        ),
        (
            answered("201 Created", allow),
            "Deny(\"service `judge` gives no answer: expected status 200, found 201",
        ),
        (answered("500 Oops", allow), "Deny"),
        (
            answered("302 Found\r\nlocation: /other", allow),
            "Deny(\"service `judge` gives no answer: expected status 200, found 302",
        ),
        (Some("not HTTP at all\r\n\r\n".to_owned()), "Deny"),
    ] {
        let (url, _seen) = server(answer.clone()).await;
        let said =
            format!("{:?}", verdict(vec![service(&url, "allow_private: true").unwrap()]).await);
        assert!(said.starts_with(expected), "{answer:?}: {said}");
    }
}

#[tokio::test]
async fn a_service_that_says_nothing_denies_in_time() {
    let (url, _seen) = server(None).await;
    let mut silent = service(&url, "allow_private: true").unwrap();
    silent.timeout = Duration::from_millis(50);
    let Verdict::Deny(reason) = verdict(vec![silent]).await else { panic!("it was allowed") };
    assert!(reason.contains("in time"), "{reason}");
}

#[tokio::test]
async fn a_later_denial_outweighs_an_earlier_question() {
    let (asks, _one) = server(answered("200 OK", r#"{"verdict": "ask"}"#)).await;
    let (denies, _two) = server(answered("200 OK", r#"{"verdict": "deny"}"#)).await;
    let both = [asks, denies].map(|url| service(&url, "allow_private: true").unwrap());
    assert!(matches!(verdict(both.into()).await, Verdict::Deny(_)));
}

#[tokio::test]
async fn a_service_is_told_what_was_agreed_and_no_argument() {
    let (url, mut seen) = server(answered("200 OK", r#"{"verdict": "allow"}"#)).await;
    let mut plain = service(&url, "allow_private: true").unwrap();
    plain.headers = vec![("authorization".to_owned(), "Bearer abc".to_owned())];
    assert_eq!(verdict(vec![plain]).await, Verdict::Allow);
    let request = seen.recv().await.unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert!(
        head.starts_with("POST /judge ") && head.contains("authorization: Bearer abc"),
        "{head}"
    );
    assert!(!body.contains("secret place"), "{body}");
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!((&body["tool"], &body["server"]), (&json!("deploy"), &json!("example")));
    assert_eq!(body["args_hash"].as_str().map(str::len), Some(64));
    assert!(body["agent"].is_string() && body.get("args").is_none(), "{body}");

    let whole =
        service(&url, "allow_private: true, send: [args, time, model, cost, capability, request]");
    assert_eq!(verdict(vec![whole.unwrap()]).await, Verdict::Allow);
    let request = seen.recv().await.unwrap();
    let body: Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(body["args"], json!({"to": "secret place"}));
    assert!(body.get("tool").is_none(), "{body}");
}

#[tokio::test]
async fn what_cannot_be_asked_is_said_when_the_document_is_read() {
    for (url, more, expected) in [
        ("http://127.0.0.1:8000/", "", "needs `allow_private: true`"),
        ("http://judge.example.com/", "", "expected `https`"),
        ("http://judge.example.com/", "allow_private: true", "expected `https`"),
        ("https://10.0.0.1/", "", "found `10.0.0.1` (private)"),
        ("ftp://judge.example.com/", "", "http or https URL"),
        ("https://judge.example.com/", "send: [argz]", "did you mean `args`?"),
        ("https://judge.example.com/", "timeout: 5m", "expected at most `30s`"),
        (
            "https://judge.example.com/",
            "headers_from_env: {x: CHIO_NO_SUCH_VARIABLE_HERE}",
            "that is set",
        ),
        ("https://judge.example.com/", "headers_from_env: [x]", "expected a map"),
        ("https://judge.example.com/", "on: x", "expected a list"),
    ] {
        let said = service(url, more).err().unwrap_or_default();
        assert!(said.contains(expected), "{url} {more}: {said}");
    }
    for (url, more) in [
        ("https://judge.example.com/", ""),
        ("https://10.0.0.1/", "allow_private: true"),
        ("https://judge.internal/", "allow_private: true"),
        ("http://localhost:8000/", "allow_private: true"),
    ] {
        assert_eq!(service(url, more).err(), None, "{url} {more}");
    }
}
