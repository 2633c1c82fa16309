//! Real HTTP servers on ports of their own.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use chio_net::address::AddressRules;
use chio_net::client::{ClientOptions, HttpClient, Limits};
use http::{HeaderMap, Method, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

pub(crate) type Answer = Response<Full<Bytes>>;
type Handler = Arc<dyn Fn(&Seen) -> Answer + Send + Sync>;

/// A server that remembers what came.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    pub(crate) async fn start(answer: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Self {
        Self::start_at("127.0.0.1:0", None, answer).await
    }

    pub(crate) async fn start_at(
        address: &str,
        tls: Option<TlsAcceptor>,
        answer: impl Fn(&Seen) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            connections: Arc::default(),
            requests: Arc::default(),
        };
        let (own, answer): (_, Handler) = (server.clone(), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                own.connections.fetch_add(1, Ordering::SeqCst);
                let (own, answer, tls) = (own.clone(), Arc::clone(&answer), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => own.serve(stream, answer).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                own.serve(stream, answer).await;
                            }
                        }
                    }
                });
            }
        });
        server
    }

    async fn serve(&self, stream: impl AsyncRead + AsyncWrite + Unpin, answer: Handler) {
        let service = service_fn(async |request: http::Request<Incoming>| {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
            let path = head.uri.to_string();
            let seen = Seen { method: head.method, path, headers: head.headers, body };
            self.requests.lock().unwrap().push(seen.clone());
            Ok::<_, Infallible>(answer(&seen))
        });
        let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> Vec<Seen> {
        self.requests.lock().unwrap().clone()
    }
}

/// A server that reads the head of one request on each connection and then does what it is told.
pub(crate) async fn raw_server<F, T>(then: F) -> String
where
    F: Fn(TcpStream) -> T + Send + 'static,
    T: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                match stream.read_u8().await {
                    Ok(byte) => head.push(byte),
                    Err(_) => break,
                }
            }
            tokio::spawn(then(stream));
        }
    });
    format!("http://{address}/")
}

/// A server that takes connections and never reads what is sent on them.
pub(crate) async fn stalled_server(tls: Option<TlsAcceptor>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut plain, mut secured) = (Vec::new(), Vec::new());
        while let Ok((stream, _)) = listener.accept().await {
            match &tls {
                None => plain.push(stream),
                Some(tls) => secured.push(tls.accept(stream).await.unwrap()),
            }
        }
    });
    address
}

/// How many tasks run here.
pub(crate) fn tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

/// Waits until no more tasks than these run; a test that waits in vain hangs and fails.
pub(crate) async fn until_tasks(count: usize) {
    let waiting = async {
        while tasks() > count {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(30), waiting).await;
    assert!(ended.is_ok(), "expected {count} tasks, found {}", tasks());
}

pub(crate) fn answer(status: u16, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Answer {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(Full::new(body.into())).unwrap()
}

pub(crate) fn ok(body: impl Into<Bytes>) -> Answer {
    answer(200, &[], body)
}

pub(crate) fn local() -> ClientOptions {
    ClientOptions { rules: AddressRules::public_only().with_loopback(), ..ClientOptions::default() }
}

pub(crate) fn client(limits: Limits) -> HttpClient {
    HttpClient::new(ClientOptions { limits, ..local() }).unwrap()
}
