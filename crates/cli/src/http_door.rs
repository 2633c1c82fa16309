//! A door for MCP over HTTP: where it listens, and who may come in.

mod access;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Result, anyhow};
use chio_mcp_edge::{HttpDoor, McpService};
use chio_net::address::is_this_machine;
use chio_net::peer::{OriginRules, PeerAuthenticator, check_bind};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub(crate) use access::{Access, AccessArgs, anonymous, read_token};

use crate::endpoint_file::EndpointFile;

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

    /// Serves until told to end.
    pub(crate) async fn serve(
        self,
        service: &McpService,
        access: Access,
        shutdown: CancellationToken,
    ) -> std::io::Result<()> {
        let origins = if is_this_machine(self.address.ip()) {
            OriginRules::loopback(self.address.port())
        } else {
            // Whoever comes from elsewhere knows the host by some name, and shows a token.
            OriginRules::any_host()
        };
        let door = HttpDoor { peers: access.peers, origins, capabilities: true };
        let router = service.router(door);
        chio_mcp_edge::serve(self.listener, router, shutdown).await
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
