//! An HTTP server that answers as it is told and remembers what came.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, Method, Response};
use axum::serve::Listener;
use bytes::Bytes;
use http_body::Frame;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// The server's own URL, without a path.
    pub(crate) base: String,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: Option<String>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> Value {
        if self.body.is_empty() {
            return Value::Null;
        }
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.to_vec()).unwrap()
    }

    pub(crate) fn is_card(&self) -> bool {
        self.path.ends_with("/.well-known/agent-card.json")
    }

    /// The method and where it went.
    pub(crate) fn line(&self) -> String {
        let query = self.query.as_ref().map(|query| format!("?{query}")).unwrap_or_default();
        format!("{} {}{query}", self.method, self.path)
    }
}

/// An answer.
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Pieces,
}

impl Reply {
    pub(crate) fn text(status: u16, body: impl Into<Bytes>) -> Self {
        Self { status, headers: Vec::new(), body: Pieces::Whole(Some(body.into())) }
    }

    pub(crate) fn json(value: &Value) -> Self {
        Self::text(200, value.to_string()).with("content-type", "application/json")
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// A stream that says all of this and ends.
    pub(crate) fn events(text: impl Into<Bytes>) -> Self {
        Self::text(200, text).with("content-type", "text/event-stream; charset=utf-8")
    }

    /// A stream of what comes through a channel, and ends with it.
    pub(crate) fn pieces(receiver: mpsc::Receiver<Bytes>) -> Self {
        let headers = vec![("content-type", "text/event-stream".to_owned())];
        Self { status: 200, headers, body: Pieces::Coming(receiver) }
    }
}

enum Pieces {
    Whole(Option<Bytes>),
    Coming(mpsc::Receiver<Bytes>),
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(piece) => Poll::Ready(piece.take().map(|piece| Ok(Frame::data(piece)))),
            Self::Coming(receiver) => {
                receiver.poll_recv(cx).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
            }
        }
    }
}

type Script = Arc<dyn Fn(&Seen) -> Reply + Send + Sync>;

/// A server that remembers what came.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    scheme: &'static str,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    pub(crate) async fn start(script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_with(None, script).await
    }

    pub(crate) async fn start_with(
        tls: Option<TlsAcceptor>,
        script: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let server = Self { address, scheme, seen: Arc::default() };
        let (own, script): (_, Script) = (server.clone(), Arc::new(script));
        let app = Router::new().fallback(move |request: Request| {
            let (own, script) = (own.clone(), Arc::clone(&script));
            async move { own.answer(request, &script).await }
        });
        match tls {
            None => drop(tokio::spawn(axum::serve(listener, app).into_future())),
            Some(tls) => {
                drop(tokio::spawn(axum::serve(Secured { listener, tls }, app).into_future()));
            }
        }
        server
    }

    async fn answer(&self, request: Request, script: &Script) -> Response<Body> {
        let (head, body) = request.into_parts();
        let seen = Seen {
            base: self.url(""),
            method: head.method,
            path: head.uri.path().to_owned(),
            query: head.uri.query().map(str::to_owned),
            headers: head.headers,
            body: axum::body::to_bytes(body, 16 << 20).await.unwrap(),
        };
        self.seen.lock().unwrap().push(seen.clone());
        let reply = script(&seen);
        let mut response = Response::builder().status(reply.status);
        for (name, value) in reply.headers {
            response = response.header(name, value);
        }
        response.body(Body::new(reply.body)).unwrap()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address)
    }

    /// Everything that came.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// What came besides requests for the card.
    pub(crate) fn calls(&self) -> Vec<Seen> {
        self.seen().into_iter().filter(|seen| !seen.is_card()).collect()
    }

    /// The last that came besides requests for the card.
    pub(crate) fn last(&self) -> Seen {
        self.calls().pop().expect("nothing came")
    }
}

/// Connections whose handshake is done; those of which it fails are dropped.
struct Secured {
    listener: TcpListener,
    tls: TlsAcceptor,
}

impl Listener for Secured {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let Ok((stream, address)) = self.listener.accept().await else { continue };
            if let Ok(stream) = self.tls.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}
