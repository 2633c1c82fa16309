//! `chio.yaml`: what `chio serve` runs, read strictly, with the place of everything that is wrong.

mod access;
mod kernel;
mod read;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, anyhow};
use chio_edge::Settings;
use chio_store::Location;
use chio_yaml::Problem;

use self::kernel::KernelSettings;
use crate::access::AccessConfig;
use crate::edges::EDGES;
use crate::files::shown;
use crate::io::Io;
use crate::listeners::ListenerConfig;
use crate::policies::DEFAULT;
use crate::runtime::EdgeConfig;
use crate::servers::{ToolServer, demo};
use crate::store_args::DEFAULT_FOLDER;
use crate::text;

/// The configuration file of the current folder.
pub(crate) use chio_policy::own::DEFAULT_FILE;
/// The default socket of the native transport, below the data directory.
pub(crate) const NATIVE_SOCKET: &str = "native.sock";
/// The default address of the HTTP listener.
pub(crate) const DEFAULT_LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9090);

/// What is to be run.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) location: Location,
    pub(crate) policy: String,
    pub(crate) shadow_policy: Option<String>,
    pub(crate) servers: Vec<Arc<dyn ToolServer>>,
    /// Those that an edge is on.
    pub(crate) listeners: Vec<ListenerConfig>,
    pub(crate) edges: Vec<EdgeConfig>,
    /// Whom the kernel trusts, and how long it waits.
    pub(crate) kernel: KernelSettings,
    /// The folder of the file, where all its paths begin.
    pub(crate) folder: PathBuf,
}

/// The listeners that need not be configured: HTTP, and a socket in the data directory.
pub(crate) fn default_listeners(data: Option<&Path>) -> Vec<ListenerConfig> {
    let mut listeners = vec![ListenerConfig::http(DEFAULT_LISTEN, AccessConfig::OwnToken)];
    listeners.extend(data.map(|data| ListenerConfig::socket(data.join(NATIVE_SOCKET))));
    listeners
}

/// Every edge whose default listener is there.
pub(crate) fn default_edges(listeners: &[ListenerConfig]) -> Vec<EdgeConfig> {
    let is_there = |name: &str| listeners.iter().any(|listener| listener.name == name);
    let kinds = EDGES.iter().filter(|kind| is_there(kind.default_listener));
    kinds.map(|kind| EdgeConfig::new(kind, Settings::default())).collect()
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// When there is none, or with everything that is wrong with it.
    pub(crate) fn read(io: &mut Io<'_>, file: &Path) -> Result<Result<Self, Vec<Problem>>> {
        let bytes = io.read(file)?;
        let text = String::from_utf8(bytes);
        let text = text.map_err(|_| anyhow!("expected text in {}, found bytes", shown(file)))?;
        let folder = file.parent().unwrap_or(Path::new(""));
        Ok(read::config(&text, &file.display().to_string(), &io.folder.join(folder)))
    }

    /// Reads a file, and tells what is wrong with it.
    pub(crate) fn load(io: &mut Io<'_>, file: &Path) -> Result<Self> {
        let read = match Self::read(io, file) {
            Ok(read) => read,
            Err(error) if !io.folder.join(file).exists() => {
                return Err(error.context("`chio init` writes one, --config names another"));
            }
            Err(error) => return Err(error),
        };
        read.map_err(|problems| {
            for problem in &problems {
                io.complain_at(problem);
            }
            let number = text::count(problems.len(), "problem");
            anyhow!("{} cannot be used: {number}", shown(file))
        })
    }

    /// What `chio up` runs in a folder.
    pub(crate) fn of_up(folder: &Path) -> Self {
        let location = Location::new(None, None, Path::new(DEFAULT_FOLDER)).within(folder);
        let listeners = default_listeners(location.data());
        Self {
            policy: DEFAULT.to_owned(),
            shadow_policy: None,
            servers: vec![demo::server(location.data())],
            edges: default_edges(&listeners),
            listeners,
            kernel: KernelSettings::default(),
            location,
            folder: folder.to_owned(),
        }
    }

    /// The names of its servers, in order.
    pub(crate) fn server_ids(&self) -> Vec<String> {
        self.servers.iter().map(|server| server.id().to_owned()).collect()
    }

    /// The data directory, where there is one.
    pub(crate) fn data(&self) -> Option<&Path> {
        self.location.data()
    }
}
