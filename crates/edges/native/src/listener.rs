//! Accepting connections on Unix sockets and loopback TCP.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use chio_cross_protocol::{Door, Road};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::endpoint::Endpoint;
use crate::error::NativeError;
use crate::service::NativeService;
use crate::unix_socket::{self, SocketFile};

/// How long to wait when a connection cannot be accepted, for want of files, say.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Listens for native connections.
pub struct NativeListener {
    socket: Socket,
    endpoint: Endpoint,
}

enum Socket {
    Unix {
        listener: UnixListener,
        /// Removes the file in the end.
        _file: SocketFile,
    },
    Tcp(TcpListener),
}

enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl NativeListener {
    /// Listens at an endpoint.
    ///
    /// # Errors
    /// When somebody else does, when a TCP address is not a loopback address, or when the system
    /// refuses.
    pub async fn bind(endpoint: &Endpoint) -> Result<Self, NativeError> {
        match endpoint {
            Endpoint::Unix(path) => {
                let (listener, file) = unix_socket::bind(path).await?;
                let socket = Socket::Unix { listener, _file: file };
                Ok(Self { socket, endpoint: endpoint.clone() })
            }
            Endpoint::Tcp(address) => {
                if !address.ip().is_loopback() {
                    return Err(NativeError::NotLoopback(*address));
                }
                let listener = TcpListener::bind(address).await?;
                let endpoint = Endpoint::Tcp(listener.local_addr()?);
                Ok(Self { socket: Socket::Tcp(listener), endpoint })
            }
        }
    }

    /// Where it listens: with the port that the system chose, where it was asked to.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Serves connections until `shutdown` is cancelled and the last of them has ended.
    pub async fn serve<T: Road>(self, service: NativeService<T>, shutdown: CancellationToken) {
        let room = Arc::new(Semaphore::new(service.max_connections.max(1)));
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                // Ended connections are forgotten as they end.
                Some(_) = connections.join_next() => continue,
                accepted = self.accept(&room) => accepted,
            };
            match accepted {
                Ok((place, stream, door)) => {
                    let (service, shutdown) = (service.clone(), shutdown.clone());
                    connections.spawn(async move {
                        serve_stream(&service, stream, door, shutdown).await;
                        drop(place);
                    });
                }
                Err(error) => {
                    service.log.line(&format!("{}: cannot accept: {error}", self.endpoint));
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        // No more connections while the last ones end.
        drop(self);
        while connections.join_next().await.is_some() {}
    }

    async fn accept(
        &self,
        room: &Arc<Semaphore>,
    ) -> io::Result<(tokio::sync::OwnedSemaphorePermit, Stream, Door)> {
        let place = Arc::clone(room).acquire_owned().await.map_err(io::Error::other)?;
        match &self.socket {
            Socket::Unix { listener, .. } => {
                let (stream, _) = listener.accept().await?;
                let credentials = stream.peer_cred().ok();
                let user = credentials.as_ref().map(tokio::net::unix::UCred::uid);
                let process = credentials.as_ref().and_then(tokio::net::unix::UCred::pid);
                Ok((place, Stream::Unix(stream), Door::Unix { user, process }))
            }
            Socket::Tcp(listener) => {
                let (stream, from) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok((place, Stream::Tcp(stream), Door::Tcp { from }))
            }
        }
    }
}

/// Serves one connection. Whatever ends it is told, and concerns no other.
async fn serve_stream<T: Road>(
    service: &NativeService<T>,
    stream: Stream,
    door: Door,
    shutdown: CancellationToken,
) {
    let outcome = match stream {
        Stream::Unix(stream) => {
            let (reader, writer) = stream.into_split();
            service.serve(reader, writer, door, shutdown).await
        }
        Stream::Tcp(stream) => {
            let (reader, writer) = stream.into_split();
            service.serve(reader, writer, door, shutdown).await
        }
    };
    if let Err(error) = outcome {
        service.log.line(&format!("native connection ended: {error}"));
    }
}

impl fmt::Debug for NativeListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeListener").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
