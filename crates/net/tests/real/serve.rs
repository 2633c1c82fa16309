//! What clients can cost a listener before a service has looked at what they say.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use chio_net::serve::{ClientAddress, RequestBody, ServeLimits, serve};
use http::{Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tower_service::Service;

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n";
/// How long a client may leave its answers unread.
const UNREAD: Duration = Duration::from_secs(1);
/// Longer than anything takes that works.
const LONG: Duration = Duration::from_secs(20);

/// Answers with where a request came from; `/slow` takes its time, and `/long` is much.
#[derive(Clone)]
struct Echo;

impl Service<Request<RequestBody>> for Echo {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<String>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let from = request.extensions().get::<ClientAddress>().unwrap().0.to_string();
        let (slow, long) = (request.uri().path() == "/slow", request.uri().path() == "/long");
        Box::pin(async move {
            if slow {
                sleep(Duration::from_millis(300)).await;
            }
            Ok(Response::new(if long { "x".repeat(64 << 20) } else { from }))
        })
    }
}

struct Served {
    address: SocketAddr,
    end: oneshot::Sender<()>,
    ended: JoinHandle<()>,
}

async fn served(connections: usize, head_time: Duration) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (end, shutdown) = oneshot::channel();
    let first_head_time = head_time;
    let limits = ServeLimits { connections, first_head_time, head_time, unread_time: UNREAD };
    let shutdown = async { drop(shutdown.await) };
    let ended = tokio::spawn(serve(listener, Echo, limits, shutdown));
    Served { address, end, ended }
}

/// Sends a request, and gives the answer as far as it comes.
async fn ask(stream: &mut TcpStream, request: &[u8]) -> String {
    stream.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"0") && answer.windows(4).all(|window| window != b"\r\n\r\n") {
        let mut more = [0; 1024];
        match timeout(LONG, stream.read(&mut more)).await.expect("an answer or an end").unwrap() {
            0 => break,
            count => answer.extend(&more[..count]),
        }
    }
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn requests_are_answered_on_one_connection_and_know_where_they_come_from() {
    let served = served(8, LONG).await;
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let from = stream.local_addr().unwrap().to_string();
    for _ in 0..3 {
        let answer = ask(&mut stream, REQUEST).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.ends_with(&from), "{answer}");
    }
}

#[tokio::test]
async fn a_head_that_never_ends_is_waited_for_no_longer_than_its_time() {
    let served = served(8, Duration::from_millis(200)).await;
    for part in [&b""[..], b"GET / HTTP/1.1\r\nHost: he"] {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        let answer = ask(&mut stream, part).await;
        assert!(!answer.contains("200"), "{answer}");
    }
    // Nor is the next one of a connection that has asked before.
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    ask(&mut stream, REQUEST).await;
    let mut rest = Vec::new();
    timeout(LONG, stream.read_to_end(&mut rest)).await.expect("an end").unwrap();
}

#[tokio::test]
async fn a_client_beyond_the_limit_waits_until_another_leaves() {
    let served = served(2, LONG).await;
    let mut first = TcpStream::connect(served.address).await.unwrap();
    let mut second = TcpStream::connect(served.address).await.unwrap();
    let slow = b"GET /slow HTTP/1.1\r\nHost: here\r\n\r\n";
    first.write_all(slow).await.unwrap();
    second.write_all(slow).await.unwrap();
    let mut third = TcpStream::connect(served.address).await.unwrap();
    third.write_all(REQUEST).await.unwrap();
    let early = timeout(Duration::from_millis(100), third.readable()).await;
    assert!(early.is_err(), "a third of two was served");
    assert!(ask(&mut first, b"").await.starts_with("HTTP/1.1 200"), "what runs is left alone");
    drop(first);
    assert!(ask(&mut third, b"").await.starts_with("HTTP/1.1 200"));
    assert!(ask(&mut second, b"").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn connections_that_wait_make_room_for_a_client_that_asks() {
    let served = served(4, LONG).await;
    let connect = async || TcpStream::connect(served.address).await.unwrap();
    let mut idle = connect().await;
    ask(&mut idle, REQUEST).await;
    let body = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\n\r\nhalf";
    let mut unread = Vec::new();
    for part in [&b""[..], b"GET / HTTP/1.1\r\nHost: he", body] {
        let mut stream = connect().await;
        stream.write_all(part).await.unwrap();
        unread.push(stream);
    }
    // As many again, each of which stays: first the others go.
    let mut honest = Vec::new();
    for _ in 0..4 {
        let mut stream = connect().await;
        assert!(ask(&mut stream, REQUEST).await.starts_with("HTTP/1.1 200"));
        honest.push(stream);
    }
    let mut rest = Vec::new();
    timeout(LONG, idle.read_to_end(&mut rest)).await.expect("an end").unwrap();
}

#[tokio::test]
async fn a_head_without_bounds_is_refused() {
    let served = served(8, LONG).await;
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let head = format!("GET / HTTP/1.1\r\nHost: here\r\nX-Long: {}\r\n", "x".repeat(300 << 10));
    let _ = stream.write_all(head.as_bytes()).await;
    let mut answer = Vec::new();
    // It may be told with an answer, or by an end.
    let _ = timeout(LONG, stream.read_to_end(&mut answer)).await.expect("an answer or an end");
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
}

#[tokio::test]
async fn at_the_end_idle_connections_close_and_what_runs_is_finished() {
    let served = served(8, LONG).await;
    let mut idle = TcpStream::connect(served.address).await.unwrap();
    ask(&mut idle, REQUEST).await;
    let mut busy = TcpStream::connect(served.address).await.unwrap();
    busy.write_all(b"GET /slow HTTP/1.1\r\nHost: here\r\n\r\n").await.unwrap();
    sleep(Duration::from_millis(100)).await;
    served.end.send(()).unwrap();
    let mut rest = Vec::new();
    timeout(LONG, idle.read_to_end(&mut rest)).await.expect("an end").unwrap();
    assert!(ask(&mut busy, b"").await.starts_with("HTTP/1.1 200"));
    timeout(LONG, served.ended).await.expect("an end").unwrap();
    assert!(TcpStream::connect(served.address).await.is_err());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_client_that_reads_nothing_loses_its_place() {
    let served = served(1, LONG).await;
    let mut deaf = TcpStream::connect(served.address).await.unwrap();
    deaf.write_all(b"GET /long HTTP/1.1\r\nHost: here\r\n\r\n").await.unwrap();
    let mut other = TcpStream::connect(served.address).await.unwrap();
    assert!(ask(&mut other, REQUEST).await.starts_with("HTTP/1.1 200"));
    drop(deaf);
}
