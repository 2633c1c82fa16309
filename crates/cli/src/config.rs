//! `chio.yaml`: what `chio serve` runs, read strictly, with the place of everything that is wrong.

mod read;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use chio_policy::document::Problem;
use chio_store::StoreUrl;

use crate::commands::SOCKET;
use crate::files::shown;
use crate::io::Io;
use crate::policies::DEFAULT;
use crate::servers::ToolServer;
use crate::store_args::DEFAULT_FOLDER;
use crate::text;

/// The file that is read when nobody names one.
pub(crate) const DEFAULT_FILE: &str = "chio.yaml";
/// Where MCP is served when nobody says.
pub(crate) const DEFAULT_LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9090);

/// What is to be run.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) store: StoreUrl,
    pub(crate) policy: String,
    pub(crate) shadow_policy: Option<String>,
    pub(crate) servers: Vec<ToolServer>,
    pub(crate) native: Option<NativeEdge>,
    pub(crate) mcp: Option<McpEdge>,
    /// The folder of the file, where all its paths begin.
    pub(crate) folder: PathBuf,
}

/// The native transport.
#[derive(Debug, Clone)]
pub(crate) struct NativeEdge {
    /// The socket that it listens at.
    pub(crate) socket: PathBuf,
}

/// MCP over HTTP.
#[derive(Debug, Clone)]
pub(crate) struct McpEdge {
    pub(crate) listen: SocketAddr,
    /// Who may come in: tokens in files, each with the name that it stands for.
    pub(crate) tokens: Vec<(String, PathBuf)>,
    /// What whoever comes may do: `default`, or a file with a capability.
    pub(crate) anonymous: Option<String>,
    pub(crate) versions: Vec<String>,
    pub(crate) max_sessions: Option<usize>,
    pub(crate) session_idle: Option<std::time::Duration>,
    /// How many requests a caller may send in a minute.
    pub(crate) rate: Option<u32>,
    pub(crate) rotate_streams: Option<std::time::Duration>,
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
        let store = StoreUrl::Sqlite(folder.join(DEFAULT_FOLDER));
        Self {
            policy: DEFAULT.to_owned(),
            shadow_policy: None,
            servers: vec![ToolServer::demo(&store)],
            native: Some(NativeEdge { socket: folder.join(DEFAULT_FOLDER).join(SOCKET) }),
            mcp: Some(McpEdge::default()),
            store,
            folder: folder.to_owned(),
        }
    }

    /// The names of its servers, in order.
    pub(crate) fn server_ids(&self) -> Vec<String> {
        self.servers.iter().map(|server| server.id().to_owned()).collect()
    }

    /// The folder of its store, where it has one.
    pub(crate) fn data(&self) -> Option<&Path> {
        match &self.store {
            StoreUrl::Sqlite(folder) => Some(folder),
            StoreUrl::Memory => None,
        }
    }
}
