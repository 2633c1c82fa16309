//! HTTP/1 on a listener: a limited number of connections, heads within a time, and an orderly end.
//! Which connections go when there are too many is for [`places`](crate::places).

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use chio_core::with_defaults;
use http::{Request, Response};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::net::{TcpListener, TcpStream};
use tower_service::Service;

use crate::places::{Place, Places};

/// The largest head of a request, in bytes: the longest capability fits, and a proof.
const MAX_HEAD: usize = 96 << 10;
/// How long to wait when no connection can be taken, such as when the process has no files left.
const RETRY: Duration = Duration::from_millis(200);

with_defaults! {
    /// What clients can cost before a request is read.
    #[derive(Debug, Clone, Copy)]
    pub struct ServeLimits {
        /// How many connections are open at once. For a further client, one goes that waits for a
        /// request; without one, the client waits in the system's queue.
        pub connections: usize = 4096,
        /// How long a new connection may take to send the head of its first request.
        pub first_head_time: Duration = Duration::from_secs(10),
        /// How long a connection may take to send the head of its next request. Longer than clients
        /// keep connections that they do not use, lest one is closed while they take it up again.
        pub head_time: Duration = Duration::from_secs(120),
        /// How long what was written may wait for a client that does not read, where the system can
        /// tell.
        pub unread_time: Duration = Duration::from_secs(120),
    }
}

/// The address that a request comes from: an extension of every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress(pub SocketAddr);

/// The connection that a request comes on: an extension of every request.
#[derive(Debug, Clone)]
pub struct ClientConnection(pub Arc<Place>);

/// Serves until `shutdown` comes and the requests that run then have ended.
pub async fn serve<S, B>(
    listener: TcpListener,
    service: S,
    limits: ServeLimits,
    shutdown: impl Future<Output = ()>,
) where
    S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send,
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + Unpin + 'static,
{
    let (places, graceful) = (Places::new(limits.connections), GracefulShutdown::new());
    let mut shutdown = pin!(shutdown);
    loop {
        let connection = tokio::select! {
            biased;
            () = &mut shutdown => break,
            connection = accept(&listener, &places) => connection,
        };
        let (stream, from, place) = connection;
        let connection = Connection { stream, from, place: Arc::new(place), limits };
        tokio::spawn(connection.run(service.clone(), graceful.watcher()));
    }
    drop(listener);
    graceful.shutdown().await;
}

/// The next connection that has a place.
async fn accept(listener: &TcpListener, places: &Places) -> (TcpStream, SocketAddr, Place) {
    let mut told = false;
    loop {
        let error = match listener.accept().await {
            Ok((stream, from)) => match places.take(Some(from.ip())).await {
                Ok(place) => return (stream, from, place),
                // It has enough connections, and this one is closed.
                Err(_) => continue,
            },
            Err(error) => error,
        };
        // That client has left; others wait.
        let left = [
            ErrorKind::ConnectionAborted,
            ErrorKind::ConnectionRefused,
            ErrorKind::ConnectionReset,
        ];
        if left.contains(&error.kind()) {
            continue;
        }
        if !std::mem::replace(&mut told, true) {
            tracing::warn!("no connection can be taken for now: {error}");
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// A connection that was accepted.
struct Connection {
    stream: TcpStream,
    from: SocketAddr,
    place: Arc<Place>,
    limits: ServeLimits,
}

impl Connection {
    /// Answers one request after the other.
    async fn run<S, B>(self, service: S, watcher: Watcher)
    where
        S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible>,
        S: Clone + Send + 'static,
        S::Future: Send,
        B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + Unpin + 'static,
    {
        let Self { stream, from, place, limits } = self;
        // Answers are small and wanted at once.
        let _ = stream.set_nodelay(true);
        #[cfg(target_os = "linux")]
        let _ = rustix::net::sockopt::set_tcp_user_timeout(
            &stream,
            u32::try_from(limits.unread_time.as_millis()).unwrap_or(u32::MAX),
        );
        let theirs = Arc::clone(&place);
        let answer = service_fn(move |request: Request<Incoming>| {
            let (mut service, place) = (service.clone(), Arc::clone(&theirs));
            async move {
                let has_arrived = request.body().is_end_stream();
                if !(if has_arrived { place.running() } else { place.receiving() }) {
                    // The connection is being closed for another client: nothing runs for it.
                    return std::future::pending().await;
                }
                let mut request =
                    request.map(|body| RequestBody { body, place: Arc::clone(&place) });
                request.extensions_mut().insert(ClientAddress(from));
                request.extensions_mut().insert(ClientConnection(Arc::clone(&place)));
                let response = service.call(request).await?;
                Ok::<_, Infallible>(response.map(|body| ResponseBody { body, place }))
            }
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(limits.head_time).max_buf_size(MAX_HEAD);
        let serving = watcher.watch(http.serve_connection(TokioIo::new(stream), answer));
        tokio::select! {
            // What ends a connection, its client sees.
            _ = serving => {}
            () = place.evicted() => {}
            () = silent(&place, limits.first_head_time) => {}
        }
    }
}

/// Waits until a connection has been silent for too long.
async fn silent(place: &Place, most: Duration) {
    tokio::time::sleep(most).await;
    if !place.is_silent() {
        std::future::pending().await
    }
}

/// The body of a request, which tells its connection's place when it has arrived.
#[derive(Debug)]
pub struct RequestBody {
    body: Incoming,
    place: Arc<Place>,
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if matches!(polled, Poll::Ready(None)) || (polled.is_ready() && self.body.is_end_stream()) {
            self.place.running();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of an answer. When it has left, the connection waits for the next request.
struct ResponseBody<B> {
    body: B,
    place: Arc<Place>,
}

impl<B: Body + Unpin> Body for ResponseBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> Drop for ResponseBody<B> {
    fn drop(&mut self) {
        self.place.idle();
    }
}
