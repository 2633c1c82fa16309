//! Standing in front of one server or agent: its tools behind the doors that were asked for.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::Result;
use chio_a2a_edge::A2aEdgeConfig;
use chio_mcp_edge::McpService;
use chio_store::StoreUrl;
use tokio_util::sync::CancellationToken;

use crate::admission::Anonymous;
use crate::edge_args::EdgeArgs;
use crate::endpoint_file::{EndpointFile, Kept};
use crate::http_door::{Access, AccessArgs, Edges, Listener, Taken};
use crate::io::Io;
use crate::policy_args::PolicyArgs;
use crate::servers::ToolServer;
use crate::serving::{Served, Setup, operator_log, run_server, shutdown_on_signal};
use crate::store_args::StoreArgs;
use crate::trust::TrustArgs;

/// Where one server is served over HTTP when nobody says.
pub(crate) const LISTEN: &str = "127.0.0.1:8931";
/// How another address is chosen.
const CHOOSE: &str = "`--http 127.0.0.1:0` takes a free port";

/// What is put in front of whom.
pub(crate) struct Standing<'a> {
    pub(crate) server: ToolServer,
    /// What is being done, for the operator.
    pub(crate) told: String,
    /// Over HTTP at this address; over standard input and output when absent.
    pub(crate) http: Option<SocketAddr>,
    /// Whether A2A is served as well.
    pub(crate) a2a: bool,
    /// Where clients of A2A reach it; where it listens when absent.
    pub(crate) url: Option<String>,
    pub(crate) access: &'a AccessArgs,
    pub(crate) edge: &'a EdgeArgs,
    pub(crate) store: &'a StoreArgs,
    pub(crate) policy: &'a PolicyArgs,
    pub(crate) trust: &'a TrustArgs,
}

/// A door that is open, and who may come in by it.
enum Door {
    Stdio,
    Http(Box<(Listener, Access)>),
}

impl Standing<'_> {
    /// Serves until the input ends or the process is told to end.
    pub(crate) fn serve(self, io: &mut Io<'_>) -> Result<()> {
        let trust = self.trust.read(io, Vec::new())?;
        run_server(async {
            let shutdown = shutdown_on_signal()?;
            let policies = self.policy.load(io).await?;
            let url = self.store.url(io)?;
            let said = if self.http.is_some() { self.access.said(io)? } else { None };
            // The door is tried first: a kernel that nobody can reach need not start.
            let listener = match self.http {
                Some(address) => Some(Listener::bind(address, said.as_ref(), taken(&url)).await?),
                None => None,
            };
            let store = self.store.open(io)?;
            let mut door = match (listener, said) {
                (None, _) => Door::Stdio,
                (Some(listener), Some(access)) => Door::Http(Box::new((listener, access))),
                (Some(listener), None) => Door::Http(Box::new((listener, Access::own(io, &url)?))),
            };
            operator_log().line(&self.told);
            let setup = Setup::new(store, vec![self.server], policies);
            let mut served = Served::start(Setup { trust, serves_mcp: true, ..setup }).await?;
            served.tell();
            let (anonymous, servers) = (door.anonymous(), served.servers.ids.clone());
            let options = self.edge.options(servers.clone());
            let service = served.mcp(anonymous.clone(), None, options)?;
            if let Door::Http(door) = &door
                && self.a2a
            {
                let base = self.url.unwrap_or_else(|| door.0.base());
                let mut options = A2aEdgeConfig::new(servers, base);
                options.http_json = true;
                served.a2a(anonymous, None, options)?;
            }
            let kept = reachable(io, &url, &door, &served)?;
            let (until, edges) = (shutdown.clone(), served.edges());
            served.serve(serve(&service, edges, door, shutdown), &until).await?;
            drop(kept);
            Ok(())
        })
    }
}

fn taken(url: &StoreUrl) -> Taken<'_> {
    Taken { choose: CHOOSE, data: data(url) }
}

fn data(url: &StoreUrl) -> Option<&Path> {
    match url {
        StoreUrl::Sqlite(folder) => Some(folder.as_path()),
        StoreUrl::Memory => None,
    }
}

/// Tells other commands where this process can be reached, unless they are told of another.
fn reachable(io: &Io<'_>, url: &StoreUrl, door: &Door, served: &Served) -> Result<Option<Kept>> {
    let (Some(data), Door::Http(door)) = (data(url), door) else { return Ok(None) };
    if EndpointFile::read_in(data).is_some_and(|other| other.is_running()) {
        return Ok(None);
    }
    let (listener, access) = &**door;
    let file = EndpointFile {
        mcp: listener.url(),
        native: None,
        token: access.bearer.as_ref().map(|token| token.to_string()),
        servers: served.servers.ids.clone(),
        process: std::process::id(),
    };
    file.write_in(io, data).map(Some)
}

impl Door {
    /// What somebody may do who need not show anything.
    fn anonymous(&mut self) -> Anonymous {
        match self {
            Self::Stdio => Anonymous::Refused,
            Self::Http(door) => std::mem::take(&mut door.1.anonymous),
        }
    }
}

/// Serves until the input ends or everything does.
async fn serve(service: &McpService, edges: Edges, door: Door, shutdown: CancellationToken) {
    let log = operator_log();
    let ended = match door {
        Door::Stdio => {
            log.line("serving standard input and output");
            service.serve_stdio(tokio::io::stdin(), tokio::io::stdout(), shutdown).await
        }
        Door::Http(door) => {
            let (listener, access) = *door;
            log.line(&format!("listening on {}", listener.url()));
            if edges.a2a.is_some() {
                log.line(&format!("A2A on {}", listener.base()));
            }
            if let Some(told) = &access.told {
                log.line(told);
            }
            listener.serve(edges, access, shutdown).await;
            Ok(())
        }
    };
    if let Err(error) = ended {
        log.line(&format!("the door broke: {error}"));
    }
}
