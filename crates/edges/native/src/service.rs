//! What connections are served with, whichever door they come in by.

use std::fmt;
use std::sync::Arc;

use chio_cross_protocol::{Admission, ConnectionInfo, DiscoveryProtocol, Door, Log, Road};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::connection::{ConnectionOptions, Limits, OnEof, serve_connection};
use crate::error::NativeError;

/// What connections are served with.
pub struct NativeService<T> {
    /// Where calls go.
    pub road: Arc<T>,
    /// Who may come in.
    pub admission: Arc<dyn Admission>,
    /// How much each connection may ask for at once.
    pub limits: Limits,
    /// How many connections there may be at once. Beyond, others wait to be accepted.
    pub max_connections: usize,
    /// Where the ends of connections are told of.
    pub log: Log,
}

impl<T> Clone for NativeService<T> {
    fn clone(&self) -> Self {
        Self {
            road: Arc::clone(&self.road),
            admission: Arc::clone(&self.admission),
            limits: self.limits.clone(),
            max_connections: self.max_connections,
            log: self.log.clone(),
        }
    }
}

impl<T: Road> NativeService<T> {
    /// A service with the usual limits and a log that nobody reads.
    #[must_use]
    pub fn new(road: Arc<T>, admission: Arc<dyn Admission>) -> Self {
        let (limits, log) = (Limits::default(), Log::default());
        Self { road, admission, limits, max_connections: 256, log }
    }

    /// Admits and serves one connection.
    ///
    /// # Errors
    /// As [`serve_connection`], and when the other end is not admitted.
    pub async fn serve<R, W>(
        &self,
        reader: R,
        writer: W,
        door: Door,
        shutdown: CancellationToken,
    ) -> Result<(), NativeError>
    where
        R: AsyncRead + Unpin + Send,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let on_eof = match door {
            Door::Stdio => OnEof::Finish,
            _ => OnEof::Cancel,
        };
        let info = ConnectionInfo::new(DiscoveryProtocol::Native, door);
        let peer = self.admission.admit(&info).await?;
        let options = ConnectionOptions { peer, limits: self.limits.clone(), on_eof };
        serve_connection(reader, writer, Arc::clone(&self.road), options, shutdown).await
    }
}

/// Serves the process's standard input and output until the input ends.
///
/// The runtime reads standard input on a thread that nothing interrupts: after a shutdown, leave
/// the process without waiting for it.
///
/// # Errors
/// As [`NativeService::serve`].
pub async fn serve_stdio<T: Road>(
    service: &NativeService<T>,
    shutdown: CancellationToken,
) -> Result<(), NativeError> {
    service.serve(tokio::io::stdin(), tokio::io::stdout(), Door::Stdio, shutdown).await
}

impl<T> fmt::Debug for NativeService<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeService")
            .field("limits", &self.limits)
            .field("max_connections", &self.max_connections)
            .finish_non_exhaustive()
    }
}
