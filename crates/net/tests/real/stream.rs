//! Streams of events over a real connection.

use std::time::Duration;

use chio_net::client::{ClientError, Limits, Request};
use chio_net::sse::{Event, SseError, SseLimits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

use super::server::{Server, answer, client, ok, raw_server};

fn message(data: &str) -> Event {
    Event { data: data.to_owned(), ..Event::default() }
}

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: Text/Event-Stream; charset=utf-8\r\n\r\n";

#[tokio::test]
async fn events_come_as_they_are_written_in_whatever_pieces() {
    let url = raw_server(|mut stream| async move {
        let pieces = [
            HEAD,
            "id: 1\nda",
            "ta: a\n",
            "\ndata: b\r",
            "\n\r\n: still\n\nretry: 5\n\n",
            "data: c",
        ];
        for piece in pieces {
            stream.write_all(piece.as_bytes()).await.unwrap();
            tokio::task::yield_now().await;
        }
    })
    .await;
    let response = client(Limits::default()).open(Request::get(url)).await.unwrap();
    let mut events = response.events(SseLimits::default()).unwrap();
    let first = Event { id: Some("1".to_owned()), ..message("a") };
    assert_eq!(events.next().await, Ok(Some(first)));
    assert_eq!(events.next().await, Ok(Some(message("b"))));
    // The last one was broken off.
    assert_eq!(events.next().await, Ok(None));
    assert_eq!((events.last_id(), events.last_retry()), (Some("1"), Some(5)));
}

#[tokio::test]
async fn a_stream_outlives_the_deadline_of_its_head() {
    let (sender, receiver) = mpsc::channel::<&'static str>(1);
    let receiver = std::sync::Arc::new(tokio::sync::Mutex::new(receiver));
    let url = raw_server(move |mut stream| {
        let receiver = std::sync::Arc::clone(&receiver);
        async move {
            stream.write_all(HEAD.as_bytes()).await.unwrap();
            while let Some(piece) = receiver.lock().await.recv().await {
                stream.write_all(piece.as_bytes()).await.unwrap();
            }
        }
    })
    .await;
    let total = Duration::from_secs(1);
    let client = client(Limits { total, ..Limits::default() });
    let response = client.open(Request::get(url)).await.unwrap();
    let mut events = response.events(SseLimits::default()).unwrap();
    tokio::time::sleep(total).await;
    sender.send("data: late\n\n").await.unwrap();
    assert_eq!(events.next().await, Ok(Some(message("late"))));
}

#[tokio::test]
async fn an_event_that_does_not_end_is_an_error() {
    let url = raw_server(|mut stream| async move {
        stream.write_all(HEAD.as_bytes()).await.unwrap();
        while stream.write_all(b"data: 0123456789\n").await.is_ok() {}
    })
    .await;
    let response = client(Limits::default()).open(Request::get(url)).await.unwrap();
    let limits = SseLimits { max_line: 100, max_event: 1000 };
    let outcome = response.events(limits).unwrap().next().await;
    assert_eq!(outcome, Err(ClientError::Events(SseError::EventTooLarge { limit: 1000 })));
}

#[tokio::test]
async fn a_dropped_stream_ends_the_connection() {
    let (sender, mut ended) = mpsc::channel(1);
    let url = raw_server(move |mut stream| {
        let sender = sender.clone();
        async move {
            stream.write_all(HEAD.as_bytes()).await.unwrap();
            stream.write_all(b"data: a\n\n").await.unwrap();
            let read = stream.read(&mut [0; 1]).await;
            sender.send(matches!(read, Ok(0) | Err(_))).await.unwrap();
        }
    })
    .await;
    let response = client(Limits::default()).open(Request::get(url)).await.unwrap();
    let mut events = response.events(SseLimits::default()).unwrap();
    assert_eq!(events.next().await, Ok(Some(message("a"))));
    drop(events);
    assert_eq!(ended.recv().await, Some(true));
}

#[tokio::test]
async fn another_content_type_or_status_is_no_stream_of_events() {
    for kind in ["application/json", "text/event-streams", ""] {
        let server =
            Server::start(move |_| answer(200, &[("content-type", kind)], "data: a\n\n")).await;
        let response = client(Limits::default()).open(Request::get(server.url("/"))).await.unwrap();
        let outcome = response.events(SseLimits::default()).map(drop);
        assert_eq!(outcome, Err(ClientError::NotEvents), "{kind}");
    }
    for status in [201, 204, 400, 401, 500] {
        let kind = [("content-type", "text/event-stream")];
        let server = Server::start(move |_| answer(status, &kind, "")).await;
        let response = client(Limits::default()).open(Request::get(server.url("/"))).await.unwrap();
        let outcome = response.events(SseLimits::default()).map(drop);
        assert_eq!(outcome, Err(ClientError::EventStatus { status }));
    }
    let server = Server::start(|_| ok("data: a\n\n")).await;
    let response = client(Limits::default()).open(Request::get(server.url("/"))).await.unwrap();
    assert!(!response.is_type("text/event-stream"));
    assert!(response.events(SseLimits::default()).is_err());
}
