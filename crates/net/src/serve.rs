//! HTTP/1 on a listener: a limited number of connections, heads within a time, and an orderly end.

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use chio_core::with_defaults;
use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower_service::Service;

/// The largest head of a request, in bytes: the longest capability fits, and a proof.
const MAX_HEAD: usize = 96 << 10;
/// How long to wait when no connection can be taken, such as when the process has no files left.
const RETRY: Duration = Duration::from_millis(200);

with_defaults! {
    /// What clients can cost before a request is read.
    #[derive(Debug, Clone, Copy)]
    pub struct ServeLimits {
        /// How many connections are open at once. Further clients wait in the system's queue.
        pub connections: usize = 4096,
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

/// Serves until `shutdown` comes and the requests that run then have ended.
pub async fn serve<S, B>(
    listener: TcpListener,
    service: S,
    limits: ServeLimits,
    shutdown: impl Future<Output = ()>,
) where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send,
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    let (permits, graceful) =
        (Arc::new(Semaphore::new(limits.connections)), GracefulShutdown::new());
    let mut shutdown = pin!(shutdown);
    loop {
        let (stream, from, permit) = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = accept(&listener, &permits) => accepted,
        };
        let connection = Connection { stream, from, limits };
        let connection = connection.run(service.clone(), graceful.watcher());
        tokio::spawn(async move {
            connection.await;
            drop(permit);
        });
    }
    drop(listener);
    graceful.shutdown().await;
}

/// The next connection, when there is a permit for it.
async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> (TcpStream, SocketAddr, Option<OwnedSemaphorePermit>) {
    if permits.available_permits() == 0 {
        tracing::warn!("the limit of open connections is reached: further clients wait");
    }
    // The semaphore is never closed.
    let permit = Arc::clone(permits).acquire_owned().await.ok();
    let mut told = false;
    loop {
        let error = match listener.accept().await {
            Ok((stream, from)) => return (stream, from, permit),
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
    limits: ServeLimits,
}

impl Connection {
    /// Answers one request after the other.
    async fn run<S, B>(self, service: S, watcher: Watcher)
    where
        S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
        S: Clone + Send + 'static,
        S::Future: Send,
        B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
    {
        let Self { stream, from, limits } = self;
        // Answers are small and wanted at once.
        let _ = stream.set_nodelay(true);
        #[cfg(target_os = "linux")]
        let _ = rustix::net::sockopt::set_tcp_user_timeout(
            &stream,
            u32::try_from(limits.unread_time.as_millis()).unwrap_or(u32::MAX),
        );
        let answer = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(ClientAddress(from));
            service.clone().call(request)
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(limits.head_time).max_buf_size(MAX_HEAD);
        // What ends a connection, its client sees.
        let _ = watcher.watch(http.serve_connection(TokioIo::new(stream), answer)).await;
    }
}
