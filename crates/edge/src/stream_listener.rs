//! Accepting connections over byte streams: on Unix sockets and loopback TCP.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chio_core::principal::{ANONYMOUS, Credential, Principal};
use chio_net::places::Places;
use tokio::net::{TcpListener, UnixListener};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::edge::{Edge, Streams};
use crate::endpoint::Endpoint;
use crate::unix_socket::{self, SocketFile};

/// How long to wait when a connection cannot be accepted, such as for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why a listener cannot listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The system refuses.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// An address that other machines can reach.
    #[error("expected a loopback address, since TCP here has no authentication; found `{0}`")]
    NotLoopback(SocketAddr),
    /// Another process listens there.
    #[error("another process already answers on the socket `{}`", .0.display())]
    SocketInUse(PathBuf),
    /// The path holds something else.
    #[error("expected a socket or nothing at `{}`, found something else", .0.display())]
    NotASocket(PathBuf),
}

/// Listens for connections over byte streams.
pub struct StreamListener {
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

impl StreamListener {
    /// Sees whether a process may listen at an endpoint that will do so later.
    ///
    /// # Errors
    /// As [`Self::bind`], as far as that can be told before.
    pub async fn check(endpoint: &Endpoint) -> Result<(), ListenError> {
        match endpoint {
            Endpoint::Unix(path) => unix_socket::check(path).await,
            Endpoint::Tcp(address) if !address.ip().is_loopback() => {
                Err(ListenError::NotLoopback(*address))
            }
            Endpoint::Tcp(address) => {
                TcpListener::bind(address).await?;
                Ok(())
            }
        }
    }

    /// Listens at an endpoint.
    ///
    /// # Errors
    /// When another process does, when a TCP address is not a loopback address, or when the system
    /// refuses.
    pub async fn bind(endpoint: &Endpoint) -> Result<Self, ListenError> {
        match endpoint {
            Endpoint::Unix(path) => {
                let (listener, file) = unix_socket::bind(path).await?;
                let socket = Socket::Unix { listener, _file: file };
                Ok(Self { socket, endpoint: endpoint.clone() })
            }
            Endpoint::Tcp(address) => {
                if !address.ip().is_loopback() {
                    return Err(ListenError::NotLoopback(*address));
                }
                let listener = TcpListener::bind(address).await?;
                let endpoint = Endpoint::Tcp(listener.local_addr()?);
                Ok(Self { socket: Socket::Tcp(listener), endpoint })
            }
        }
    }

    /// Where it listens, with the port that the system chose for port 0.
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Serves connections until `shutdown` is cancelled and the last of them has ended.
    pub async fn serve(self, edge: Arc<dyn Edge>, shutdown: CancellationToken) {
        let places = Places::new(edge.max_connections());
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                // Ended connections are forgotten as they end.
                Some(_) = connections.join_next() => continue,
                accepted = self.accept(&places) => accepted,
            };
            match accepted {
                Ok(streams) => {
                    let (edge, shutdown) = (Arc::clone(&edge), shutdown.clone());
                    connections.spawn(async move {
                        let place = Arc::clone(&streams.place);
                        let served = tokio::select! {
                            served = edge.serve_streams(streams, shutdown) => served,
                            () = place.evicted() => Ok(()),
                        };
                        // What ends one connection concerns no other.
                        if let Err(error) = served {
                            tracing::warn!("a connection ended: {error}");
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!("{}: cannot accept: {error}", self.endpoint);
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        // No more connections while the last ones end.
        drop(self);
        while connections.join_next().await.is_some() {}
    }

    async fn accept(&self, places: &Places) -> io::Result<Streams> {
        match &self.socket {
            Socket::Unix { listener, .. } => {
                let (stream, _) = listener.accept().await?;
                let peer = stream.peer_cred().ok();
                let user = peer.as_ref().map(tokio::net::unix::UCred::uid);
                let process = peer.as_ref().and_then(tokio::net::unix::UCred::pid);
                let principal = Principal::new(ANONYMOUS, Credential::Unix { user, process });
                let place = Arc::new(places.take(None).await.map_err(io::Error::other)?);
                let (reader, writer) = stream.into_split();
                Ok(Streams { reader: Box::new(reader), writer: Box::new(writer), principal, place })
            }
            Socket::Tcp(listener) => {
                let (stream, from) = listener.accept().await?;
                stream.set_nodelay(true)?;
                let place = Arc::new(places.take(Some(from.ip())).await.map_err(io::Error::other)?);
                let (reader, writer) = stream.into_split();
                let principal = Principal::anonymous();
                Ok(Streams { reader: Box::new(reader), writer: Box::new(writer), principal, place })
            }
        }
    }
}
