//! From a URL to a connection: resolve once, judge every address, connect only to those.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use http::Uri;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower_service::Service;
use url::Host;

use super::Limits;
use super::deadline::deadline;
use super::error::{ClientError, Phase};
use super::transport::Transport;
use crate::address::{AddressRules, Destination};

/// The longest reason that an error of TLS gives, in characters.
const MAX_REASON: usize = 200;

/// The most addresses of one name that are tried.
const MAX_ADDRESSES: usize = 16;

/// Looks up the addresses of names.
#[async_trait]
pub trait Resolver: fmt::Debug + Send + Sync {
    /// Every address that a name has now.
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The resolver of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let found = tokio::net::lookup_host((name, 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    }
}

/// Opens connections for hyper. Nothing else in the crate opens one.
#[derive(Clone)]
pub(super) struct Connector {
    pub(super) rules: Arc<AddressRules>,
    pub(super) resolver: Arc<dyn Resolver>,
    /// None when no root certificates are trusted.
    pub(super) tls: Option<Arc<ClientConfig>>,
    pub(super) limits: Limits,
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Transport>;
    type Error = ClientError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, ClientError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ClientError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move {
            let deadline = deadline(connector.limits.connect);
            let connection = timeout_at(deadline, connector.connect(&uri, deadline)).await;
            connection.map_err(|_| ClientError::TimedOut(Phase::Connect))?.map(TokioIo::new)
        })
    }
}

impl Connector {
    async fn connect(&self, uri: &Uri, deadline: Instant) -> Result<Transport, ClientError> {
        // INVARIANT: judged here again, so that no use of this connector bypasses the rules.
        let destination = self.rules.judge(&uri.to_string())?;
        let addresses = self.resolve(&destination).await?;
        self.rules.judge_addresses(&destination, &addresses)?;
        // SECURITY: from here on addresses only; the name is not looked up again.
        let tried = addresses.get(..MAX_ADDRESSES).unwrap_or(&addresses);
        let (stream, peer) = open(&destination, tried, deadline).await?;
        if !destination.is_https() {
            return Ok(Transport::new(stream, peer, self.limits.total));
        }
        let stream = self.secure(&destination, stream).await?;
        Ok(Transport::new(stream, peer, self.limits.total))
    }

    async fn resolve(&self, destination: &Destination) -> Result<Vec<IpAddr>, ClientError> {
        match destination.parsed_host() {
            Host::Ipv4(address) => Ok(vec![IpAddr::V4(*address)]),
            Host::Ipv6(address) => Ok(vec![IpAddr::V6(*address)]),
            Host::Domain(name) => {
                let found = self.resolver.resolve(name).await;
                found.map_err(|error| ClientError::Resolve {
                    host: name.clone(),
                    kind: error.kind(),
                })
            }
        }
    }

    async fn secure(
        &self,
        destination: &Destination,
        stream: TcpStream,
    ) -> Result<TlsStream<TcpStream>, ClientError> {
        let host = destination.host();
        let config = self.tls.clone().ok_or(ClientError::NoRoots)?;
        let tls = |reason: String| ClientError::Tls { host: host.clone(), reason };
        let name = match destination.parsed_host() {
            Host::Ipv4(address) => ServerName::from(IpAddr::V4(*address)),
            Host::Ipv6(address) => ServerName::from(IpAddr::V6(*address)),
            Host::Domain(name) => ServerName::try_from(name.clone())
                .map_err(|_| tls("expected a name that certificates can carry".to_owned()))?,
        };
        let secured = TlsConnector::from(config).connect(name, stream).await;
        // The peer influences this text, so it is bounded.
        secured.map_err(|error| tls(error.to_string().chars().take(MAX_REASON).collect()))
    }
}

/// Tries one address after the other; each gets its share of the time that is left.
async fn open(
    destination: &Destination,
    addresses: &[IpAddr],
    deadline: Instant,
) -> Result<(TcpStream, IpAddr), ClientError> {
    let mut kind = io::ErrorKind::NotFound;
    for (tried, address) in addresses.iter().enumerate() {
        let left = deadline.saturating_duration_since(Instant::now());
        let untried = u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
        let until = Instant::now() + left / untried.max(1);
        let address = SocketAddr::new(*address, destination.port());
        match timeout_at(until, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // Small requests must not wait for more to send.
                return stream
                    .set_nodelay(true)
                    .map(|()| (stream, address.ip()))
                    .map_err(|error| refused(destination, error.kind()));
            }
            Ok(Err(error)) => kind = error.kind(),
            Err(_) => kind = io::ErrorKind::TimedOut,
        }
    }
    Err(refused(destination, kind))
}

fn refused(destination: &Destination, kind: io::ErrorKind) -> ClientError {
    ClientError::Connect { host: destination.host(), kind }
}
