//! The native edge: connections over any pair of byte streams.

use std::sync::Arc;

use async_trait::async_trait;
use chio_cross_protocol::{Admission, CapabilityBridge, Credential, CrossProtocolOrchestrator};
use chio_edge::{Carrier, Edge, EdgeKind, StreamError, Streams};
use tokio_util::sync::CancellationToken;

use crate::bridge::NativeBridge;
use crate::connection::{ConnectionOptions, Limits, OnEof, serve_connection};
use crate::error::NativeError;

/// The version of the frames and messages. Peers agree on it before they connect.
const VERSION: &str = "chio-wire-v1";

/// The entry in the list of edges.
pub const EDGE: EdgeKind = EdgeKind {
    name: "native",
    announcement: "native ",
    path: "",
    address_hint: VERSION,
    carriers: &[Carrier::Socket, Carrier::Stdio],
    admits_ended: false,
    default_listener: "socket",
    asks_users: false,
    settings: &[],
    check: |_, _| Ok(()),
    start: |context, _| Ok(Arc::new(NativeService::new(context.orchestrator, context.admission))),
};

/// What connections are served with.
pub struct NativeService {
    /// Where calls go.
    pub orchestrator: Arc<CrossProtocolOrchestrator<'static>>,
    /// Admits principals.
    pub admission: Arc<dyn Admission>,
    /// How much each connection may ask for at once.
    pub limits: Limits,
    /// How many connections are served at once; for a further one, one goes that asks for nothing.
    pub max_connections: usize,
}

impl NativeService {
    /// A service with the usual limits.
    pub fn new(
        orchestrator: Arc<CrossProtocolOrchestrator<'static>>,
        admission: Arc<dyn Admission>,
    ) -> Self {
        Self { orchestrator, admission, limits: Limits::default(), max_connections: 256 }
    }

    /// Admits and serves one connection.
    ///
    /// # Errors
    /// As [`serve_connection`], and when the client is not admitted.
    async fn serve(
        &self,
        streams: Streams,
        shutdown: CancellationToken,
    ) -> Result<(), NativeError> {
        let Streams { reader, writer, principal, place } = streams;
        let on_eof = match principal.credential {
            Credential::Process => OnEof::Finish,
            _ => OnEof::Cancel,
        };
        let session = self.admission.admit(NativeBridge.protocol(), principal).await?;
        let options = ConnectionOptions { session, limits: self.limits.clone(), on_eof, place };
        serve_connection(reader, writer, Arc::clone(&self.orchestrator), options, shutdown).await
    }
}

#[async_trait]
impl Edge for NativeService {
    async fn serve_streams(
        &self,
        streams: Streams,
        shutdown: CancellationToken,
    ) -> Result<(), StreamError> {
        Ok(self.serve(streams, shutdown).await?)
    }

    fn max_connections(&self) -> usize {
        self.max_connections
    }
}

#[cfg(test)]
mod tests;
