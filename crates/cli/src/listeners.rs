//! Listeners: where clients connect, what they have to show, and which edges are there.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use axum::Router;
use chio_core::crypto::PublicKey;
use chio_cross_protocol::Principal;
use chio_edge::auth::HttpAuth;
use chio_edge::cors::with_named_pages;
use chio_edge::{Carrier, Edge, Endpoint, Place, StreamListener, Streams};
use chio_net::address::is_this_machine;
use chio_net::auth::{Authenticator, OriginRules, check_bind};
use chio_net::serve::{ServeLimits, serve};
use chio_policy::own::Own;
use tokio::net::{TcpListener, TcpSocket};
use tokio_util::sync::CancellationToken;

use crate::access::{Access, AccessConfig};
use crate::admission::Anonymous;
use crate::client_input::ClientInput;
use crate::endpoint_file::EndpointFile;
use crate::io::Io;
use crate::runtime::open_files;

/// A listener as it is configured.
#[derive(Debug, Clone)]
pub(crate) struct ListenerConfig {
    /// The name by which edges refer to it.
    pub(crate) name: String,
    pub(crate) transport: Transport,
}

/// What a listener listens on.
#[derive(Debug, Clone)]
pub(crate) enum Transport {
    /// HTTP at an address, also for web pages of these origins.
    Http { address: SocketAddr, access: AccessConfig, pages: Vec<String> },
    /// Byte streams over a Unix socket or loopback TCP.
    Socket { endpoint: Endpoint, admits: Admits },
    /// Standard input and output.
    Stdio { admits: Admits },
}

/// How clients of a listener are admitted.
#[derive(Debug, Clone)]
pub(crate) enum Admits {
    /// By their credentials and the policy.
    ByPolicy(Anonymous),
    /// All of them, as this subject, or each capability as its own.
    Everyone(Option<PublicKey>),
}

impl ListenerConfig {
    /// HTTP under its usual name.
    pub(crate) fn http(address: SocketAddr, access: AccessConfig) -> Self {
        let transport = Transport::Http { address, access, pages: Vec::new() };
        Self { name: HTTP.to_owned(), transport }
    }

    /// The same for web pages of these origins as well.
    pub(crate) fn for_pages(mut self, origins: &[String]) -> Self {
        if let Transport::Http { pages, .. } = &mut self.transport {
            origins.clone_into(pages);
        }
        self
    }

    /// A Unix socket under its usual name.
    pub(crate) fn socket(path: PathBuf) -> Self {
        let transport =
            Transport::Socket { endpoint: Endpoint::Unix(path), admits: Admits::Everyone(None) };
        Self { name: SOCKET.to_owned(), transport }
    }

    /// Standard input and output.
    pub(crate) fn stdio(admits: Admits) -> Self {
        Self { name: "stdio".to_owned(), transport: Transport::Stdio { admits } }
    }

    /// What edges are served over here.
    pub(crate) const fn carrier(&self) -> Carrier {
        match self.transport {
            Transport::Http { .. } => Carrier::Http,
            Transport::Socket { .. } => Carrier::Socket,
            Transport::Stdio { .. } => Carrier::Stdio,
        }
    }

    /// The address of an HTTP listener.
    pub(crate) const fn http_address(&self) -> Option<SocketAddr> {
        match self.transport {
            Transport::Http { address, .. } => Some(address),
            _ => None,
        }
    }
}

/// How many connections wait to be accepted.
const BACKLOG: u32 = 1024;

/// The usual name of the HTTP listener.
pub(crate) const HTTP: &str = "http";
/// The usual name of the listener on a Unix socket.
pub(crate) const SOCKET: &str = "socket";

/// A listener that has its address, and may not listen yet.
pub(crate) struct Listener {
    pub(crate) name: String,
    bound: Bound,
}

/// The socket of a listener.
enum Bound {
    Http { socket: HttpSocket, address: SocketAddr, access: Option<Access>, pages: Vec<String> },
    Socket { endpoint: Endpoint, listener: Option<StreamListener>, admits: Admits },
    Stdio { admits: Admits, input: Option<ClientInput> },
}

/// The socket of an HTTP listener.
enum HttpSocket {
    /// It keeps the address, and no client can connect.
    Reserved(TcpSocket),
    Listening(TcpListener),
    /// It could not listen.
    Lost,
}

/// What is said when another process listens at an address.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AddressInUse<'a> {
    /// How another address is chosen.
    pub(crate) choose: &'a str,
    /// The data directory of a process that may be the one.
    pub(crate) data: Option<&'a Path>,
}

impl Listener {
    /// Takes the address of a listener. One that other machines can reach has to authenticate its
    /// clients.
    pub(crate) fn reserve(
        io: &mut Io<'_>,
        config: &ListenerConfig,
        in_use: AddressInUse<'_>,
    ) -> Result<Self> {
        let name = config.name.clone();
        let bound = match &config.transport {
            Transport::Http { address, access, pages } => {
                let access = access.read(io)?;
                let anonymous = Authenticator::anonymous();
                let authenticator = access.as_ref().map_or(&anonymous, |it| &it.authenticator);
                check_bind(*address, authenticator)?;
                let socket =
                    reserved(*address).map_err(|error| in_use.unless_other(*address, &error))?;
                let address = socket.local_addr()?;
                Bound::Http {
                    socket: HttpSocket::Reserved(socket),
                    address,
                    access,
                    pages: pages.clone(),
                }
            }
            Transport::Socket { endpoint, admits } => {
                let (endpoint, admits) = (endpoint.clone(), admits.clone());
                Bound::Socket { endpoint, listener: None, admits }
            }
            Transport::Stdio { admits } => Bound::Stdio { admits: admits.clone(), input: None },
        };
        Ok(Self { name, bound })
    }

    /// Sees whether it can listen on a socket for byte streams later. Whether the folder of a Unix
    /// socket is there counts only when `all_folders` are: it may be the store's, which is made first.
    pub(crate) async fn check_streams(
        &self,
        all_folders: bool,
        in_use: AddressInUse<'_>,
    ) -> Result<()> {
        let Bound::Socket { endpoint, .. } = &self.bound else { return Ok(()) };
        let is_there = match endpoint {
            Endpoint::Unix(path) => {
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                folder.is_none_or(Path::exists)
            }
            Endpoint::Tcp(_) => true,
        };
        if !is_there && !all_folders {
            return Ok(());
        }
        let Err(error) = StreamListener::check(endpoint).await else { return Ok(()) };
        let running = self.url("").and_then(|socket| in_use.running(&socket));
        let other = || anyhow::Error::from(error).context(format!("cannot listen on {endpoint}"));
        Err(running.unwrap_or_else(other))
    }

    /// Listens on a socket for byte streams.
    pub(crate) async fn listen_for_streams(&mut self) -> Result<()> {
        if let Bound::Socket { endpoint, listener, .. } = &mut self.bound {
            let bound = StreamListener::bind(endpoint).await;
            let bound = bound.with_context(|| format!("cannot listen on {endpoint}"))?;
            *endpoint = bound.endpoint().clone();
            *listener = Some(bound);
        }
        Ok(())
    }

    /// Listens for HTTP: clients can connect from now on.
    pub(crate) fn listen_for_http(&mut self, in_use: AddressInUse<'_>) -> Result<()> {
        let Bound::Http { socket, address, .. } = &mut self.bound else { return Ok(()) };
        *socket = match std::mem::replace(socket, HttpSocket::Lost) {
            HttpSocket::Reserved(socket) => {
                let listening = socket.listen(BACKLOG);
                HttpSocket::Listening(
                    listening.map_err(|error| in_use.unless_other(*address, &error))?,
                )
            }
            other => other,
        };
        Ok(())
    }

    /// `http://ADDRESS:PORT`; empty for byte streams.
    pub(crate) fn base_url(&self) -> String {
        match &self.bound {
            Bound::Http { address, .. } => format!("http://{address}"),
            _ => String::new(),
        }
    }

    /// Where clients find an edge that is served below this path.
    pub(crate) fn url(&self, path: &str) -> Option<String> {
        match &self.bound {
            Bound::Http { .. } => Some(format!("{}{path}", self.base_url())),
            Bound::Socket { endpoint, .. } => Some(match endpoint {
                Endpoint::Unix(path) => {
                    let whole = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                    Endpoint::Unix(whole).to_string()
                }
                other => other.to_string(),
            }),
            Bound::Stdio { .. } => None,
        }
    }

    /// Where clients find an edge with this path, as people read it: a socket as it was configured.
    pub(crate) fn address(&self, path: &str) -> Option<String> {
        match &self.bound {
            Bound::Socket { endpoint, .. } => Some(endpoint.to_string()),
            _ => self.url(path),
        }
    }

    /// Puts it out of reach of every call.
    pub(crate) fn keep_back(&self, own: &Own) {
        match &self.bound {
            Bound::Http { address, .. } => own.listens_at(*address),
            Bound::Socket { endpoint, .. } => match endpoint {
                Endpoint::Unix(path) => own.protect(path, true),
                Endpoint::Tcp(address) => own.listens_at(*address),
            },
            Bound::Stdio { .. } => {}
        }
    }

    /// Whether it is spoken to over HTTP.
    pub(crate) const fn is_http(&self) -> bool {
        matches!(self.bound, Bound::Http { .. })
    }

    /// Whether clients have to be told how to come in: nothing was configured.
    pub(crate) const fn needs_access(&self) -> bool {
        matches!(self.bound, Bound::Http { access: None, .. })
    }

    /// Sets what clients have to show, where nothing was configured.
    pub(crate) fn set_access(&mut self, own: Access) {
        if let Bound::Http { access, .. } = &mut self.bound {
            access.get_or_insert(own);
        }
    }

    /// Sets the input that is read already.
    pub(crate) fn set_input(&mut self, read: &mut Option<ClientInput>) {
        if let Bound::Stdio { input, .. } = &mut self.bound {
            *input = read.take();
        }
    }

    /// What clients have to show.
    pub(crate) const fn access(&self) -> Option<&Access> {
        match &self.bound {
            Bound::Http { access, .. } => access.as_ref(),
            _ => None,
        }
    }

    /// Sets what anonymous clients may do, and who they are in words.
    pub(crate) fn set_anonymous(&mut self, anonymous: Anonymous, caller: &str) {
        if let Bound::Http { access: Some(access), .. } = &mut self.bound {
            access.anonymous = anonymous;
            access.caller = Some(caller.to_owned());
        }
    }

    /// How clients are admitted.
    pub(crate) fn admits(&self) -> Admits {
        match &self.bound {
            Bound::Http { access, .. } => {
                let anonymous = access.as_ref().map(|access| access.anonymous.clone());
                Admits::ByPolicy(anonymous.unwrap_or_default())
            }
            Bound::Socket { admits, .. } | Bound::Stdio { admits, .. } => admits.clone(),
        }
    }

    /// Serves these edges until `shutdown`, or until standard input ends.
    pub(crate) async fn serve(self, edges: Vec<Arc<dyn Edge>>, shutdown: CancellationToken) {
        match self.bound {
            Bound::Http { socket, address, access, pages } => {
                let HttpSocket::Listening(listener) = socket else { return };
                let auth = http_auth(address, access.unwrap_or_default(), &pages, &edges);
                serve_http(listener, auth, &edges, shutdown).await;
            }
            Bound::Socket { listener, .. } => {
                if let (Some(listener), Some(edge)) = (listener, edges.into_iter().next()) {
                    listener.serve(edge, shutdown).await;
                }
            }
            Bound::Stdio { input, .. } => {
                let streams = Streams {
                    reader: match input {
                        Some(input) => input.into_reader().await,
                        None => Box::new(tokio::io::stdin()),
                    },
                    writer: Box::new(tokio::io::stdout()),
                    principal: Principal::stdio(),
                    place: Arc::new(Place::alone()),
                };
                if let Some(edge) = edges.into_iter().next()
                    && let Err(error) = edge.serve_streams(streams, shutdown).await
                {
                    tracing::warn!("the connection ended: {error}");
                }
            }
        }
    }
}

/// What requests have to show.
fn http_auth(
    address: SocketAddr,
    access: Access,
    pages: &[String],
    edges: &[Arc<dyn Edge>],
) -> HttpAuth {
    let origins = if is_this_machine(address.ip()) {
        let loopback = OriginRules::loopback(address.port());
        // Behind a proxy, it goes by the name that its edges say. Without authentication, that would
        // let pages of that name in which resolve to this machine (DNS rebinding).
        let named = edges.iter().filter_map(|edge| edge.public_host());
        let named = named.filter(|_| access.authenticator.is_required());
        named.fold(loopback, |rules, host| rules.clone().with_host(&host).unwrap_or(rules))
    } else {
        // Clients elsewhere know the host by some name, and authenticate.
        OriginRules::any_host()
    };
    let origins = pages
        .iter()
        .fold(origins, |rules, page| rules.clone().with_pages_of(page).unwrap_or(rules));
    HttpAuth { authenticator: access.authenticator, origins, capabilities: true }
}

async fn serve_http(
    listener: TcpListener,
    auth: HttpAuth,
    edges: &[Arc<dyn Edge>],
    shutdown: CancellationToken,
) {
    let auth = Arc::new(auth);
    let routes = edges.iter().filter_map(|edge| edge.routes(Arc::clone(&auth)));
    let router = with_named_pages(routes.fold(Router::new(), Router::merge), &auth);
    let limits = ServeLimits::default();
    // The store and the servers need files as well.
    let connections = limits.connections.min(open_files() / 2);
    let limits = ServeLimits { connections, ..limits };
    serve(listener, router, limits, shutdown.cancelled_owned()).await;
}

/// A socket that keeps an address, and that no client can connect to.
fn reserved(address: SocketAddr) -> std::io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // So that connections of a process before are no hindrance.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

impl AddressInUse<'_> {
    /// What to say where the chio that runs on the data directory has a socket in it: another address
    /// alone is of no help.
    fn running(self, socket: &str) -> Option<anyhow::Error> {
        let data = self.data?;
        let running = EndpointFile::running_in(data)?;
        let has_it = running.edges.values().any(|at| at == socket);
        let (process, shown) = (running.process, data.display());
        let at = running.calls().unwrap_or_default();
        has_it.then(|| {
            anyhow!(
                "the chio that runs here already, process {process}, is at {at} and works on \
                 {shown}: call its tools with `chio call`, or end it with `kill {process}`; \
                 another one beside it needs a data directory and an address of its own (`chio up \
                 --data DIR --listen 127.0.0.1:0`; `data` and `listen` in chio.yaml)"
            )
        })
    }

    fn unless_other(self, address: SocketAddr, error: &std::io::Error) -> anyhow::Error {
        match error.kind() {
            ErrorKind::AddrInUse => self.error(address),
            _ => anyhow!("cannot listen on {address}: {error}"),
        }
    }

    /// Which process has the address, and what to do.
    fn error(self, address: SocketAddr) -> anyhow::Error {
        let (port, choose) = (address.port(), self.choose);
        let own = self.data.and_then(EndpointFile::running_in);
        match own.filter(|own| own.is_at(address)) {
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
