//! `chio.yaml`: what `chio serve` runs, read strictly, with the place of everything that is wrong.

mod read;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use chio_core::crypto::PublicKey;
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
    pub(crate) a2a: Option<A2aEdge>,
    /// Kernels elsewhere whose word counts for where a call comes from.
    pub(crate) trusted_kernels: Vec<PublicKey>,
    /// The folder of the file, where all its paths begin.
    pub(crate) folder: PathBuf,
}

/// The native transport.
#[derive(Debug, Clone)]
pub(crate) struct NativeEdge {
    /// The socket that it listens at.
    pub(crate) socket: PathBuf,
}

/// A door over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Door {
    pub(crate) listen: SocketAddr,
    /// Who may come in: tokens in files, each with the name that it stands for.
    pub(crate) tokens: Vec<(String, PathBuf)>,
    /// What whoever comes may do: `default`, or a file with a capability.
    pub(crate) anonymous: Option<String>,
}

impl Default for Door {
    fn default() -> Self {
        Self { listen: DEFAULT_LISTEN, tokens: Vec::new(), anonymous: None }
    }
}

/// A2A over HTTP.
#[derive(Debug, Clone, Default)]
pub(crate) struct A2aEdge {
    /// Its own door; that of MCP when absent.
    pub(crate) door: Option<Door>,
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    /// Where clients reach it, when that is not where it listens.
    pub(crate) url: Option<String>,
    pub(crate) http_json: bool,
    pub(crate) tags: BTreeMap<String, Vec<String>>,
    /// How many requests a caller may send in a minute.
    pub(crate) rate: Option<u32>,
}

/// MCP over HTTP.
#[derive(Debug, Clone, Default)]
pub(crate) struct McpEdge {
    pub(crate) door: Door,
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
            a2a: Some(A2aEdge { http_json: true, ..A2aEdge::default() }),
            trusted_kernels: Vec::new(),
            store,
            folder: folder.to_owned(),
        }
    }

    /// The doors over HTTP: whether MCP is served there, and whether A2A is.
    pub(crate) fn doors(&self) -> Vec<(&Door, bool, bool)> {
        let mut doors = Vec::new();
        let shares = self.a2a.as_ref().is_some_and(|a2a| a2a.door.is_none());
        doors.extend(self.mcp.as_ref().map(|mcp| (&mcp.door, true, shares)));
        let own = self.a2a.as_ref().and_then(|a2a| a2a.door.as_ref());
        doors.extend(own.map(|door| (door, false, true)));
        doors
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
