//! Listeners with their edges, from the moment when they have their addresses.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use chio_edge::{Edge, EdgeKind};
use chio_policy::capabilities::DefaultCapability;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{EdgeConfig, Runtime};
use crate::admission::everything_of;
use crate::endpoint_file::{CALLS, EndpointFile, WrittenFile};
use crate::io::Io;
use crate::listeners::{AddressInUse, Listener};

/// Listeners and edges that are not served yet.
pub(crate) struct Opening {
    pub(crate) listeners: Vec<Listener>,
    pub(super) edges: Vec<EdgeConfig>,
    pub(super) data: Option<PathBuf>,
    /// How another address is chosen.
    pub(super) choose: String,
}

/// Listeners with the edges that are on them.
pub(crate) struct Served {
    listeners: Vec<(Listener, Vec<ServedEdge>)>,
    data: Option<PathBuf>,
    choose: String,
    /// Tells other commands where this process can be reached.
    file: Option<WrittenFile>,
}

struct ServedEdge {
    config: EdgeConfig,
    edge: Arc<dyn Edge>,
}

impl Opening {
    /// Starts the edges. `fallback` is issued where the policy has no default capabilities; without
    /// one, a capability for everything that the servers have.
    pub(crate) async fn open(
        self,
        runtime: &mut Runtime,
        fallback: Option<DefaultCapability>,
    ) -> Result<Served> {
        let fallback = fallback.unwrap_or_else(|| everything_of(&runtime.servers));
        let mut listeners = Vec::new();
        for listener in self.listeners {
            let mut edges = Vec::new();
            for config in self.edges.iter().filter(|edge| edge.listener == listener.name) {
                let context = runtime.edge_context(&listener, config.kind, &fallback).await?;
                let edge = (config.kind.start)(context, &config.settings);
                let edge = edge.map_err(|error| anyhow!("edge `{}`: {error}", config.kind.name))?;
                runtime.edges.push(Arc::clone(&edge));
                edges.push(ServedEdge { config: config.clone(), edge });
            }
            listeners.push((listener, edges));
        }
        Ok(Served { listeners, data: self.data, choose: self.choose, file: None })
    }
}

impl Served {
    /// Logs where clients find each edge, and how they authenticate.
    pub(super) fn announce(&self) {
        for (listener, edges) in &self.listeners {
            for ServedEdge { config, .. } in edges {
                match listener.address(config.kind.path) {
                    Some(address) => tracing::info!("{}{address}", config.announcement),
                    None => tracing::info!("serving standard input and output"),
                }
            }
            if let Some(note) = listener.access().and_then(|access| access.note.as_ref()) {
                tracing::info!("{note}");
            }
        }
    }

    /// Listens, when everything is there, and tells other commands where. Only the main process of a
    /// store replaces the file of another one that runs.
    pub(crate) async fn listen(
        &mut self,
        io: &Io<'_>,
        runtime: &Runtime,
        is_main: bool,
    ) -> Result<()> {
        for (listener, _) in &mut self.listeners {
            listener.listen_for_streams().await?;
            listener.keep_back(&io.own);
        }
        let mut file = EndpointFile::new(runtime.servers.clone());
        for (listener, edges) in &self.listeners {
            for ServedEdge { config, .. } in edges {
                let Some(url) = listener.url(config.kind.path) else { continue };
                file.edges.insert(config.kind.name.to_owned(), url);
                if config.kind.name == CALLS {
                    let bearer = listener.access().and_then(|access| access.bearer.as_ref());
                    file.token = bearer.map(|token| token.to_string());
                    file.caller = listener.access().and_then(|access| access.caller.clone());
                }
            }
        }
        let in_use = AddressInUse { choose: &self.choose, data: self.data.as_deref() };
        let mut listeners = self.listeners.iter_mut().map(|(listener, _)| listener);
        let mut listen = || listeners.try_for_each(|listener| listener.listen_for_http(in_use));
        match &self.data {
            Some(data)
                if file.calls().is_some()
                    && (is_main || EndpointFile::running_in(data).is_none()) =>
            {
                // SECURITY: the file, which names the token, gets its name only when no other process
                // can listen there; and at once, for clients that see the port.
                self.file = Some(file.write_in(io, data, &mut listen)?);
                Ok(())
            }
            _ => listen(),
        }
    }

    /// Each edge that has an address, with it, and whether that is over HTTP.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = (&'static EdgeKind, String, bool)> {
        self.listeners.iter().flat_map(|(listener, edges)| {
            edges.iter().filter_map(|served| {
                let kind = served.config.kind;
                Some((kind, listener.address(kind.path)?, listener.is_http()))
            })
        })
    }

    /// Whether clients connect over HTTP.
    pub(super) fn is_over_http(&self) -> bool {
        self.listeners.iter().any(|(listener, _)| listener.is_http())
    }

    /// Serves until `shutdown`, or until standard input ends.
    pub(super) async fn serve(self, shutdown: CancellationToken) {
        let (mut serving, closing) = (JoinSet::new(), CancellationToken::new());
        for (listener, edges) in self.listeners {
            let edges = edges.into_iter().map(|served| served.edge).collect();
            serving.spawn(listener.serve(edges, closing.clone()));
        }
        let mut served = pin!(serving.join_all());
        tokio::select! {
            _ = &mut served => {}
            () = shutdown.cancelled() => {
                // SECURITY: before another process can listen there, and be sent the token.
                drop(self.file);
                closing.cancel();
                served.await;
            }
        }
    }
}
