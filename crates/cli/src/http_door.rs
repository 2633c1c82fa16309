//! A door over HTTP: where it listens, what is served there, and who may come in.

mod access;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use axum::Router;
use axum::extract::ConnectInfo;
use axum::http::Extensions;
use chio_a2a_edge::A2aService;
use chio_mcp_edge::McpService;
use chio_net::address::is_this_machine;
use chio_net::door::HttpDoor;
use chio_net::peer::{OriginRules, PeerAuthenticator, check_bind};
use chio_net::serve::{Hooks, ServeLimits, serve};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub(crate) use access::{Access, AccessArgs, anonymous, read_token};

use crate::endpoint_file::EndpointFile;
use crate::serving::{open_files, operator_log};

/// Where MCP is served, below an address.
const PATH: &str = "/mcp";

/// A listener that nobody is served by yet.
#[derive(Debug)]
pub(crate) struct Listener {
    listener: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Listens at an address, if whoever comes in there has to show enough: what was said, or a
    /// token of the store's own, for which only this machine will do.
    pub(crate) async fn bind(
        address: SocketAddr,
        said: Option<&Access>,
        taken: Taken<'_>,
    ) -> Result<Self> {
        let nobody = PeerAuthenticator::anonymous();
        check_bind(address, said.map_or(&nobody, |access| &access.peers))?;
        let listener = match TcpListener::bind(address).await {
            Ok(listener) => listener,
            Err(error) if error.kind() == ErrorKind::AddrInUse => return Err(taken.tell(address)),
            Err(error) => return Err(anyhow!("cannot listen on {address}: {error}")),
        };
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// What a client is told to connect to.
    pub(crate) fn url(&self) -> String {
        url(self.address)
    }

    /// Where agents of A2A find the card.
    pub(crate) fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Serves until told to end.
    pub(crate) async fn serve(self, edges: Edges, access: Access, shutdown: CancellationToken) {
        let origins = if is_this_machine(self.address.ip()) {
            let own = OriginRules::loopback(self.address.port());
            // Behind a proxy, it goes by the name that its cards say. Without a token, that would
            // let pages of that name in which look somewhere else (DNS rebinding).
            let named = edges.a2a.as_ref().and_then(A2aService::authority);
            match named.filter(|_| access.peers.is_required()) {
                Some(host) => own.clone().with_host(&host).unwrap_or(own),
                None => own,
            }
        } else {
            // Whoever comes from elsewhere knows the host by some name, and shows a token.
            OriginRules::any_host()
        };
        let door = Arc::new(HttpDoor { peers: access.peers, origins, capabilities: true });
        let mut router = Router::new();
        if let Some(mcp) = &edges.mcp {
            router = router.merge(mcp.router(Arc::clone(&door)));
        }
        if let Some(a2a) = &edges.a2a {
            router = router.merge(a2a.router(door));
        }
        let mark = |extensions: &mut Extensions, from: SocketAddr| {
            extensions.insert(ConnectInfo(from));
        };
        let hooks = Hooks { mark, log: |line| operator_log().line(line) };
        let limits = ServeLimits::default();
        // The store and the servers need files as well.
        let connections = limits.connections.min(open_files() / 2);
        let limits = ServeLimits { connections, ..limits };
        serve(self.listener, router, hooks, limits, shutdown.cancelled_owned()).await;
    }
}

/// What is served at a door.
#[derive(Debug, Clone, Default)]
pub(crate) struct Edges {
    pub(crate) mcp: Option<McpService>,
    pub(crate) a2a: Option<A2aService>,
}

impl Edges {
    /// Whether there is nothing to serve.
    pub(crate) const fn is_empty(&self) -> bool {
        self.mcp.is_none() && self.a2a.is_none()
    }

    /// Ends what the clients of each keep open.
    pub(crate) async fn close(&self) {
        let mcp = async {
            if let Some(mcp) = &self.mcp {
                mcp.close().await;
            }
        };
        let a2a = async {
            if let Some(a2a) = &self.a2a {
                a2a.close().await;
            }
        };
        tokio::join!(mcp, a2a);
    }
}

/// The URL of MCP at an address.
pub(crate) fn url(address: SocketAddr) -> String {
    format!("http://{address}{PATH}")
}

/// What is said when somebody else listens at an address.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken<'a> {
    /// How another address is chosen.
    pub(crate) choose: &'a str,
    /// The folder of a process that may be the one.
    pub(crate) data: Option<&'a Path>,
}

impl Taken<'_> {
    /// Who has the address, and what to do.
    pub(crate) fn tell(self, address: SocketAddr) -> anyhow::Error {
        let own = self.data.and_then(EndpointFile::read_in);
        let (port, choose) = (address.port(), self.choose);
        match own.filter(|own| own.mcp == url(address)) {
            Some(own) => anyhow!(
                "{address} is taken by the chio that runs here already, process {}; {choose}",
                own.process
            ),
            None => anyhow!(
                "{address} is taken: `ss -ltnp 'sport = :{port}'` or `lsof -i :{port}` tells by \
                 whom; {choose}"
            ),
        }
    }
}
